"""How well a model answers a person's own dev file, whatever computes it: what eight bits are held against."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from litebert.checkpoint import Checkpoint
from litebert.core.errors import DataError
from litebert.core.runtime import RuntimeOptions, choose_runtime
from litebert.data.group_batch import build_group_batch
from litebert.data.groups import Group, SequenceForm, TokenSequence
from litebert.infer.engines.engine import Engine
from litebert.infer.evaluation import choose_examples, evaluate, read_for
from litebert.infer.predictor import Predictor
from litebert.model.reading import ReadHead
from litebert.tasks.asking import to_inputs
from litebert.tasks.catalog import read_dataset
from litebert.tasks.finetuning import Dataset
from litebert.tasks.glue import GLUE
from litebert.tasks.reading import ReadOptions
from litebert.tasks.tables import read_text
from litebert.text.tokenizer import Tokenizer

HIDE_EVERY = 7  # of the tokens of a line, about as many as in training
MAX_LINES = 2000


@dataclass(frozen=True)
class Verdict:
    """An engine's score, and what it answered, to count what another answers otherwise."""

    score: float  # in points: 100 is perfect
    answers: Sequence[Any]


@dataclass(frozen=True)
class Judge:
    """A dev file: `judge` lets an engine answer it."""

    metric: str
    num_examples: int
    judge: Callable[[Engine], Verdict]


def build_judge(checkpoint: Checkpoint, head: ReadHead, dev: Path) -> Judge:
    """The judge of a fine-tuned model reads labelled examples; of other heads plain text, a line a text."""
    if checkpoint.task is not None and head in {spec.kind for spec in checkpoint.heads}:
        return _judge_task(checkpoint, dev)
    tokenizer = checkpoint.load_tokenizer()
    lines = [line for line in read_text(dev, "utf-8").split("\n") if line.strip()][:MAX_LINES]
    if len(lines) < 2:
        raise DataError(f"{dev} has {len(lines)} lines of text: too few to measure a model by")
    judges = {"mlm": _judge_masks, "sentence": _judge_order, "embedding": _judge_vectors}
    return judges[head](checkpoint, tokenizer, lines)


def _judge_task(checkpoint: Checkpoint, dev: Path) -> Judge:
    asked = _predictor(checkpoint, None)
    dataset = _read_dev(asked, dev)
    examples = choose_examples(dataset, "", dev)
    if any(example.label is None for example in examples):
        raise DataError(f"{dev} has examples without labels: nothing to measure accuracy by")

    def judge(engine: Engine) -> Verdict:
        facts, outputs = evaluate(_predictor(checkpoint, engine), dataset, examples)
        return Verdict(100 * facts["scores"][asked.task.metric], [asked.task.decide(output) for output in outputs])

    return Judge(asked.task.metric, len(examples), judge)


def _read_dev(asked: Predictor, dev: Path) -> Dataset:
    """The examples of a dev file; GLUE's tasks lie in folders, and a file of one is read as any user's own."""
    if not (dev.is_file() and asked.task.name in GLUE):
        return read_for(asked, asked.task.name, dev, ReadOptions())
    kind = str((asked.checkpoint.task or {})["kind"])
    return read_dataset(kind, dev, ReadOptions(labels=tuple(getattr(asked.task, "labels", ())), dev_share=0.0))


def _judge_masks(checkpoint: Checkpoint, tokenizer: Tokenizer, lines: Sequence[str]) -> Judge:
    """Every seventh token of each line is hidden; the score is how many are guessed."""
    sequences, hidden = [], []
    form = _predictor(checkpoint, None).form()
    for ids in tokenizer.encode_batch(lines):
        sequence = form.join(ids)
        places = np.arange(1 + HIDE_EVERY // 2, len(sequence.token_ids) - 1, HIDE_EVERY)
        hidden.append(sequence.token_ids[places])
        masked = sequence.token_ids.copy()
        masked[places] = tokenizer.mask_id
        sequences.append(sequence._replace(token_ids=masked))
    truth = np.concatenate(hidden)

    def judge(engine: Engine) -> Verdict:
        guesses = np.concatenate(
            [
                engine.read("mlm", to_inputs(batch, mask_id=tokenizer.mask_id))["logits"].argmax(-1).numpy()
                for batch in _iter_batches(sequences, form)
            ]
        )
        return Verdict(100 * float(np.mean(guesses == truth)), guesses.tolist())

    return Judge("hidden words", len(truth), judge)


def _judge_order(checkpoint: Checkpoint, tokenizer: Tokenizer, lines: Sequence[str]) -> Judge:
    """Each line with the next, and the other way round; the score is how many orders are told."""
    form = _predictor(checkpoint, None).form()
    ids = tokenizer.encode_batch(lines)
    pairs = [(a, b) for first, second in pairwise(ids) for a, b in ((first, second), (second, first))]
    sequences = [form.join(first, second) for first, second in pairs]
    truth = np.arange(len(pairs)) % 2

    def judge(engine: Engine) -> Verdict:
        found = [
            engine.read("sentence", to_inputs(batch))["logits"].argmax(-1).numpy()
            for batch in _iter_batches(sequences, form)
        ]
        guesses = np.concatenate(found)
        return Verdict(100 * float(np.mean(guesses == truth)), guesses.tolist())

    return Judge("sentence order", len(pairs), judge)


def _judge_vectors(checkpoint: Checkpoint, tokenizer: Tokenizer, lines: Sequence[str]) -> Judge:
    """Of each line, which other is nearest; the score is the mean likeness (cosine) with what float gives."""
    del tokenizer
    expected = _predictor(checkpoint, None).embed(lines)

    def judge(engine: Engine) -> Verdict:
        vectors = _predictor(checkpoint, engine).embed(lines)
        likeness = vectors @ vectors.T - 2 * np.eye(len(vectors))
        return Verdict(100 * float(np.mean((vectors * expected).sum(1))), likeness.argmax(1).tolist())

    return Judge("likeness", len(lines), judge)


def _predictor(checkpoint: Checkpoint, engine: Engine | None) -> Predictor:
    return Predictor(checkpoint, choose_runtime(RuntimeOptions(device="cpu")), engine)


def _iter_batches(sequences: Sequence[TokenSequence], form: SequenceForm, size: int = 16) -> Iterator[Any]:
    for start in range(0, len(sequences), size):
        yield build_group_batch([Group((sequence,)) for sequence in sequences[start : start + size]], form.pad_id)
