"""Answers to questions about a text, by a model that was fine-tuned for spans or for multiple choice."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from litebert.core.errors import ConfigError, DataError
from litebert.core.runtime import Runtime
from litebert.data.groups import SequenceForm
from litebert.infer.outputs import compute_outputs
from litebert.model.model import Model
from litebert.tasks.choices import ChoiceExample, Choices
from litebert.tasks.finetuning import FinetuneTask, Output
from litebert.tasks.squad.reading import Question
from litebert.tasks.squad.task import SpanTask, to_reply
from litebert.text.tokenizer import Tokenizer


class TaskModel(NamedTuple):
    """A fine-tuned model with all that is needed to use it."""

    model: Model
    tokenizer: Tokenizer
    task: FinetuneTask
    form: SequenceForm
    runtime: Runtime


class FoundAnswer(NamedTuple):
    """A stretch of the context, context[start:end], and how probable it is among the model's best; "" = no answer."""

    text: str
    start: int
    end: int
    probability: float
    null_odds: float  # that there is no answer; above the task's threshold none is given


class Choice(NamedTuple):
    """The choice that fits best, and how probable each is."""

    number: int  # from 0
    text: str
    probabilities: tuple[float, ...]


def answer(trained: TaskModel, pairs: Sequence[tuple[str, str]]) -> list[FoundAnswer]:
    """The answer to each (question, context), however long the context is."""
    task = trained.task
    if not isinstance(task, SpanTask):
        raise ConfigError(
            f"this model was fine-tuned for '{task.name}', which finds no answers in a text; use squad-v2"
        )
    for number, (_, context) in enumerate(pairs):
        if not context.strip():
            raise DataError(f"the context of question {number + 1} is empty: there is nothing to find an answer in")
    questions = [Question(str(number), question, context) for number, (question, context) in enumerate(pairs)]
    found = []
    for output in _compute(trained, questions):
        reply = to_reply(output)
        if task.decide(output) == "":
            found.append(FoundAnswer("", 0, 0, 0.0, reply.null_odds))
        else:
            found.append(FoundAnswer(*reply.spans[0][:4], reply.null_odds))
    return found


def choose(trained: TaskModel, context: str, question: str, choices: Sequence[str]) -> Choice:
    """The choice that fits the question about the context best."""
    if not isinstance(trained.task, Choices):
        raise ConfigError(f"this model was fine-tuned for '{trained.task.name}', not to choose; use race or choice")
    if len(choices) < 2:
        raise DataError(f"{len(choices)} choices leave nothing to choose; give two or more")
    [output] = _compute(trained, [ChoiceExample("0", context, question, tuple(choices))])
    best = int(np.argmax(output))
    return Choice(best, choices[best], tuple(output))


def _compute(trained: TaskModel, examples: Sequence[Question] | Sequence[ChoiceExample]) -> list[Output]:
    groups = trained.task.encode(examples, trained.tokenizer, trained.form)
    return compute_outputs(trained.model, trained.task, groups, trained.runtime, pad_id=trained.form.pad_id)
