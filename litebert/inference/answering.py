"""Questions to a fine-tuned model and their answers: a span of a text, or one of several choices."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from litebert.core.errors import ConfigError, DataError
from litebert.tasks.finetuning import Output
from litebert.tasks.kinds.choices import ChoiceExample
from litebert.tasks.squad.reading import Question
from litebert.tasks.squad.task import SpanTask, to_reply


class FoundAnswer(NamedTuple):
    """A span of the context, context[start:end], and its probability among the best spans; "" means no answer."""

    text: str
    start: int
    end: int
    probability: float
    null_odds: float  # odds that there is no answer; above the task's threshold none is returned


class Choice(NamedTuple):
    """The choice that fits best, and how probable each is."""

    number: int  # from 0
    text: str
    probabilities: tuple[float, ...]


def to_questions(pairs: Sequence[tuple[str, str]]) -> list[Question]:
    """Convert (question, context) pairs to the span task's examples."""
    for number, (question, context) in enumerate(pairs, start=1):
        if not (isinstance(question, str) and isinstance(context, str)):
            raise ConfigError(
                "wrong-input",
                f"question {number} must be a (question, context) pair of strings, got {(question, context)!r:.60}",
            )
        if not context.strip():
            raise DataError(
                "wrong-input", f"question {number} has an empty context: pass the text that contains the answer"
            )
    return [Question(str(number), question, context) for number, (question, context) in enumerate(pairs)]


def read_answer(task: SpanTask, output: Output) -> FoundAnswer:
    """The task's answer with its position in the context."""
    reply = to_reply(output)
    if task.decide(output) == "":
        return FoundAnswer("", 0, 0, 0.0, reply.null_odds)
    best = reply.spans[0]
    return FoundAnswer(best.text, best.start, best.end, best.probability, reply.null_odds)


def to_choice_example(context: str, question: str, choices: Sequence[str]) -> ChoiceExample:
    """Convert a question to the choice task's example."""
    parts = (context, question, *choices) if isinstance(choices, Collection) else (choices,)
    if not all(isinstance(part, str) for part in parts):
        raise ConfigError(
            "wrong-input",
            "expected a context string, a question string and a list of choices, "
            f"got {(context, question, choices)!r:.60}",
        )
    if isinstance(choices, str) or len(choices) < 2:
        raise DataError("wrong-input", f"choices must be a list of two or more strings, got {choices!r}")
    return ChoiceExample("0", context, question, tuple(choices))


def read_choice(choices: Sequence[str], output: Output) -> Choice:
    best = int(np.argmax(output))
    return Choice(best, choices[best], tuple(output))
