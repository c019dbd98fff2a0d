"""Multiple choice: select the answer to a question about a passage. RACE has four choices; any number is supported.

Each choice gets one logit from its pooled vector, with a softmax over the choices of a question.
"""

import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from litebert.core.errors import ConfigError
from litebert.model.config import HeadSpec
from litebert.model.engine import Engine
from litebert.model.heads import forbid
from litebert.model.model import Model
from litebert.tasks.finetuning import ONE_SIDED, Chance, Output, Tally
from litebert.tasks.group_batch import GroupBatch
from litebert.tasks.groups import Group, SequenceForm
from litebert.tasks.kinds.classification import count_texts
from litebert.tasks.task import BatchLoss, Counts
from litebert.tasks.texts import to_floats
from litebert.text.tokenizer import Tokenizer

BLANK = "_"  # marks where the option is inserted in a RACE question


@dataclass(frozen=True)
class ChoiceExample:
    """A passage, a question about it, and the possible answers."""

    id: str
    context: str
    question: str
    choices: tuple[str, ...]
    label: int | None = None  # index of the right choice; None: unknown
    level: str = ""  # such as middle or high; levels are also scored separately
    where: str = ""  # file and line, for messages
    group: str = field(default="", repr=False, metadata={"is_shown": False})  # held out together; not part of the text

    @property
    def text(self) -> str:
        return self.question

    def to_input(self) -> dict[str, Any]:
        """The example as server input."""
        return {"context": self.context, "question": self.question, "choices": list(self.choices)}

    @property
    def sentences(self) -> list[str]:
        """The question with each of the choices in it."""
        return [fill_in(self.question, choice) for choice in self.choices]


def fill_in(question: str, choice: str) -> str:
    """Replace every blank of the question by the choice, or append the choice if there is no blank."""
    return question.replace(BLANK, choice) if BLANK in question else f"{question} {choice}".strip()


@dataclass(frozen=True)
class Choices:
    """One of several choices; the output is their probabilities."""

    name: str
    max_choice_length: int = 128  # tokens of question and choice together; truncated at the beginning
    has_letters: bool = False  # answers are A, B, C, ... instead of 0, 1, 2, ...

    @property
    def metric(self) -> str:
        return "accuracy"

    @property
    def heads(self) -> tuple[HeadSpec, ...]:
        return (HeadSpec("choice"),)

    def encode(self, examples: Sequence[ChoiceExample], tokenizer: Tokenizer, form: SequenceForm) -> list[Group]:
        """[CLS] passage [SEP] question with choice [SEP]; cut at the end of the passage and the start of the rest."""
        room = form.max_length - form.num_special(is_pair=True)
        if room <= self.max_choice_length:
            raise ConfigError(
                "text-too-long",
                f"max_length = {form.max_length} leaves no room for the passage after {self.max_choice_length} "
                f"tokens of question and choice; raise train.max_length or lower passage.max_choice_length",
            )
        contexts = list(dict.fromkeys(example.context for example in examples))
        ids_of = dict(zip(contexts, tokenizer.encode_batch(contexts), strict=True))
        sentences = iter(tokenizer.encode_batch([text for example in examples for text in example.sentences]))
        groups = []
        for example in examples:
            passage = ids_of[example.context]
            sequences = []
            for _ in example.choices:
                whole = next(sentences)
                side = whole[-self.max_choice_length :]
                kept = passage[: room - len(side)]
                num_cut = len(passage) - len(kept) + len(whole) - len(side)
                sequences.append(form.join_as_is(kept, side)._replace(num_cut=num_cut))
            groups.append(Group(tuple(sequences), None if example.label is None else np.array(example.label)))
        return groups

    def count(self, part: GroupBatch) -> dict[str, int]:
        return count_texts(part)

    def loss(self, model: Model, part: GroupBatch, totals: Counts) -> BatchLoss:
        assert part.targets is not None, "nothing to learn from"
        logits = read_choices(model, part)  # (G, C)
        loss = F.cross_entropy(logits, part.targets, reduction="sum") / totals["groups"]
        correct = (logits.argmax(-1) == part.targets).sum()
        return BatchLoss(loss, {"loss": loss.detach(), "correct": correct})

    def summarize(self, sums: Mapping[str, float], totals: Counts) -> dict[str, float]:
        return {"loss": sums["loss"], "train_accuracy": sums["correct"] / totals["groups"]}

    def predict(self, engine: Engine, batch: GroupBatch, groups: Sequence[Group]) -> list[Output]:
        logits = engine.run("choice", batch.to_inputs())["logits"].float().squeeze(-1)  # (S,)
        probabilities = stack_choices(logits, batch).softmax(-1).cpu().numpy()
        return [to_floats(row[: len(group.sequences)]) for row, group in zip(probabilities, groups, strict=True)]

    def combine(self, outputs: Sequence[Output]) -> Output:
        return to_floats(np.mean(outputs, axis=0))

    def decide(self, output: Output) -> str | int:
        return self.name_choice(int(np.argmax(output)))

    def name_choice(self, number: int) -> str | int:
        """A choice as it appears in answers."""
        return string.ascii_uppercase[number] if self.has_letters else number

    def score(self, outputs: Sequence[Output], examples: Sequence[ChoiceExample]) -> dict[str, float]:
        """Accuracy over all questions and per level."""
        is_right = np.array([np.argmax(output) == e.label for output, e in zip(outputs, examples, strict=True)])
        levels = np.array([example.level for example in examples])
        scores = {"accuracy": float(is_right.mean())}
        for level in sorted(set(levels) - {""}):
            scores[f"accuracy_{level}"] = float(is_right[levels == level].mean())
        return scores

    def tally(self, outputs: Sequence[Output], examples: Sequence[ChoiceExample]) -> Tally:
        rows = [[np.argmax(output) == e.label] for output, e in zip(outputs, examples, strict=True)]
        share = lambda rows: float(rows.mean())  # noqa: E731
        return Tally(np.array(rows, dtype=np.float64), {"accuracy": share}, frozenset({"accuracy"}))

    def wrongness(self, output: Output, example: ChoiceExample) -> float:
        best = int(np.argmax(output))
        return 0.0 if best == example.label else float(output[best])

    def chance(self, examples: Sequence[ChoiceExample]) -> Chance:
        """Any choice, drawn at random."""
        rates = np.array([1 / len(example.choices) for example in examples])
        return Chance(float(rates.mean()), ONE_SIDED * math.sqrt(float(np.sum(rates * (1 - rates)))) / len(examples))


def read_choices(model: Model, batch: GroupBatch) -> Tensor:
    """The logits (G, C) of each group's choices; missing choices are masked out."""
    pooled = model.encoder.pool_sequences(batch.token_ids, batch.segment_ids, batch.mask)
    return stack_choices(model.heads["choice"](pooled, 1).squeeze(-1), batch)


def stack_choices(logits: Tensor, batch: GroupBatch) -> Tensor:
    """The logits (S,) of all sequences, reshaped to one row (G, C) per group."""
    is_choice = torch.arange(int(batch.group_sizes.max()), device=logits.device) < batch.group_sizes[:, None]
    return forbid(logits.new_zeros(is_choice.shape).masked_scatter(is_choice, logits), is_choice)
