"""Score an engine on a dev file, to compare int8 with float."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litebert.checkpoint import Checkpoint
from litebert.core.errors import DataError
from litebert.core.runtime import RuntimeOptions, choose_runtime
from litebert.inference.engines.graphs import BatchEngine
from litebert.inference.evaluation import choose_examples, evaluate, name_task, read_for
from litebert.inference.predictor import Predictor
from litebert.inference.session import Session
from litebert.model.early_exit import TOLERANCE
from litebert.model.engine import HeadName
from litebert.tasks.catalog import find_head, restore_task
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.files.tables import read_text
from litebert.tasks.group_batch import GroupBatch
from litebert.tasks.groups import Group
from litebert.tasks.kinds.classification import Regression
from litebert.tasks.kinds.embedding import Embedding
from litebert.tasks.seen_texts import find_seen_texts
from litebert.text.tokenizer import Tokenizer

MASK_EVERY = 7  # mask every seventh token of a line, about the masking rate of training
MAX_LINES = 2000
COSINE_TOLERANCE = 0.01


@dataclass(frozen=True)
class Verdict:
    """An engine's score and its answers, to compare with another engine's."""

    score: float  # in points, at most 100
    answers: Sequence[Any]
    tolerance: float | None = None  # for numeric answers: smaller differences do not count as a change

    def count_changes(self, other: "Verdict") -> int:
        """The number of answers that differ from the other's."""
        pairs = zip(self.answers, other.answers, strict=True)
        if self.tolerance is None:
            return sum(one != another for one, another in pairs)
        return sum(abs(one - another) > self.tolerance for one, another in pairs)

    def distance(self, other: "Verdict") -> float:
        """The distance between both sets of answers: the mean difference, or the share of labels that differ."""
        if self.tolerance is None:
            return self.count_changes(other) / len(self.answers)
        return float(np.mean(np.abs(np.subtract(self.answers, other.answers))))


@dataclass(frozen=True)
class Judge:
    """A dev file, and `judge`, which scores an engine on it."""

    metric: str
    num_examples: int
    judge: Callable[[BatchEngine], Verdict]
    notes: tuple[str, ...] = ()  # guessed or skipped while reading the file


def build_judge(checkpoint: Checkpoint, head: HeadName, dev: Path) -> Judge:
    """A fine-tuned model needs a dev file with labelled examples; other heads need plain text, one text per line."""
    if checkpoint.task is not None and head == find_head(restore_task(checkpoint.task, where=str(checkpoint.path))):
        return _judge_task(checkpoint, dev)
    tokenizer = checkpoint.load_tokenizer()
    lines = [line for line in read_text(dev, "utf-8").split("\n") if line.strip()][:MAX_LINES]
    if len(lines) < 2:
        raise DataError("too-few-examples", f"{dev} has {len(lines)} lines of text; at least 2 are needed")
    judges = {"mlm": _judge_masks, "sentence": _judge_order, "embedding": _judge_vectors}
    return judges[head](checkpoint, tokenizer, lines)


def _judge_task(checkpoint: Checkpoint, dev: Path) -> Judge:
    asked = _predictor(checkpoint, None)
    task = asked.task
    # GLUE's dev sets are folders; a single file is read like a user's own data
    dataset = read_for(asked, name_task(task, dev), dev, TableOptions())
    if isinstance(task, Embedding):  # vectors can be scored by any form of data
        task = dataset.task
    else:  # scored by the metric of the model's own task, whatever the dev file is
        dataset = replace(dataset, task=task)
    chosen = choose_examples(dataset, "", dev, find_seen_texts(checkpoint.path))
    examples, notes = chosen.examples, [*dataset.notes]
    if chosen.num_trained is not None and chosen.note:
        notes.append(chosen.note)
    if any(example.label is None for example in examples):
        raise DataError("no-labels", f"{dev} has unlabelled examples: accuracy needs a label for each", option="dev")
    # for numbers the same tolerance as in early exit
    tolerance = TOLERANCE * task.scale if isinstance(task, Regression) else None
    tolerance = COSINE_TOLERANCE if isinstance(task, Embedding) else tolerance

    def judge(engine: BatchEngine) -> Verdict:
        facts, outputs = evaluate(_predictor(checkpoint, engine), dataset, examples)
        return Verdict(100 * facts["scores"][task.metric], [task.decide(output) for output in outputs], tolerance)

    return Judge(task.metric, len(examples), judge, tuple(notes))


def _judge_masks(checkpoint: Checkpoint, tokenizer: Tokenizer, lines: Sequence[str]) -> Judge:
    """Mask every seventh token of each line; the score is the masked-token accuracy."""
    groups, hidden = [], []
    form = _predictor(checkpoint, None).form()
    for ids in tokenizer.encode_batch(lines):
        sequence = form.join(ids)
        places = np.arange(1 + MASK_EVERY // 2, len(sequence.token_ids) - 1, MASK_EVERY)
        if not len(places):
            continue
        hidden.append(sequence.token_ids[places])
        masked = sequence.token_ids.copy()
        masked[places] = tokenizer.mask_id
        groups.append(Group((sequence._replace(token_ids=masked),), about=len(places)))
    if not groups:
        raise DataError(
            "too-few-examples", f"every line is shorter than {MASK_EVERY // 2 + 1} tokens, too short to mask a token in"
        )
    truth = np.concatenate(hidden)

    def guess(engine: BatchEngine, batch: GroupBatch, chosen: Sequence[Group]) -> list[NDArray[Any]]:
        logits = engine.run("mlm", batch.to_inputs(mask_id=tokenizer.mask_id))["logits"]  # (M, V)
        ends = np.cumsum([group.about for group in chosen])[:-1]
        return np.split(logits.argmax(-1).numpy(), ends)

    def judge(engine: BatchEngine) -> Verdict:
        guesses = np.concatenate(Session(engine, form.pad_id).answer(groups, partial(guess, engine)))
        return Verdict(100 * float(np.mean(guesses == truth)), guesses.tolist())

    return Judge("masked tokens", len(truth), judge)


def _judge_order(checkpoint: Checkpoint, tokenizer: Tokenizer, lines: Sequence[str]) -> Judge:
    """Pair each line with the next, in both orders; the score is the accuracy of the order prediction."""
    del tokenizer
    pairs = [pair for first, second in pairwise(lines) for pair in ((first, second), (second, first))]
    truth = np.arange(len(pairs)) % 2

    def judge(engine: BatchEngine) -> Verdict:
        guesses = np.array(_predictor(checkpoint, engine).order_batch(pairs)) < 0.5
        return Verdict(100 * float(np.mean(guesses == truth)), guesses.tolist())

    return Judge("sentence order", len(pairs), judge)


def _judge_vectors(checkpoint: Checkpoint, tokenizer: Tokenizer, lines: Sequence[str]) -> Judge:
    """Find the nearest other line of each line; the score is the mean cosine similarity to the float vectors."""
    del tokenizer
    expected = _predictor(checkpoint, None).embed(lines, normalize=True)

    def judge(engine: BatchEngine) -> Verdict:
        vectors = _predictor(checkpoint, engine).embed(lines, normalize=True)
        similarity = vectors @ vectors.T - 2 * np.eye(len(vectors))
        return Verdict(100 * float(np.mean((vectors * expected).sum(1))), similarity.argmax(1).tolist())

    return Judge("similarity", len(lines), judge)


def _predictor(checkpoint: Checkpoint, engine: BatchEngine | None) -> Predictor:
    return Predictor(checkpoint, choose_runtime(RuntimeOptions(device="cpu")), engine)
