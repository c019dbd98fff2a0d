"""Evaluate all contenders with the same held-out measure: one small file per run, kept when its weights are deleted."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from learners.budget import read_record

from litebert.batches.options import MaskingOptions
from litebert.checkpoint import list_checkpoints, load_checkpoint
from litebert.core.files import write_json
from litebert.evaluation.evaluate_intrinsic import IntrinsicOptions, evaluate_intrinsic
from litebert.evaluation.intrinsic.guesses import guess_words, read_pairs
from litebert.evaluation.intrinsic.pair_batches import build_pair_writer
from litebert.evaluation.intrinsic.pairs import draw_order_pairs, draw_plain_pairs
from litebert.evaluation.intrinsic.passages import open_passages
from litebert.evaluation.intrinsic.score import Score, score_guesses
from litebert.evaluation.intrinsic.shallow import count_pieces
from litebert.text.tokenizer import load_tokenizer
from litebert.training.kept_checkpoints import CHECKPOINTS

CURVE_SHARE = 4  # points of a curve use a quarter of the pairs, the final evaluation uses all
MEASURES = "measured"  # in a run's folder: cached evaluations


class Measuring(NamedTuple):
    """The size of the evaluation: the number of pairs, and their length in tokens."""

    length: int
    pairs: int


def measure_runs(out: Path, corpus: Path, measuring: Measuring, kept: Path) -> None:
    """Write a file for each finished run in `out` into `kept`, and list the unfinished ones."""
    folders = [folder for folder in sorted(out.iterdir()) if list_checkpoints(folder / CHECKPOINTS)]
    if not folders:
        raise SystemExit(f"{out}: no contender has a checkpoint yet")
    held_out = HeldOut(corpus, length=measuring.length, pairs=measuring.pairs // CURVE_SHARE)
    for folder in folders:
        outcome = read_outcome(folder)
        if outcome["cpu_minutes_used"] < outcome["cpu_minutes"]:
            print(f"{folder}: {outcome['cpu_minutes_used']:.1f} of {outcome['cpu_minutes']:g} minutes; left out")
            continue
        last = list_checkpoints(folder / CHECKPOINTS)[-1]
        options = IntrinsicOptions(length=measuring.length, pairs=measuring.pairs)
        asked = {"length": measuring.length, "pairs": measuring.pairs}
        measured = {
            "measured": measure(folder, last, corpus, options),
            "single_pieces": read_single_pieces(folder, last, held_out),
            "curve": read_curve(folder, held_out),
        }
        kept.mkdir(parents=True, exist_ok=True)
        write_json(kept / f"{folder.name}.json", {**outcome, **asked, **measured})
        print(f"{kept / folder.name}.json")


def read_outcome(folder: Path) -> dict[str, Any]:
    """The settings of a run, and its progress."""
    record = read_record(folder)
    if record is None:
        raise SystemExit(
            f"{folder} has checkpoints, and nothing says how they were made (contender.json): move it away"
        )
    checkpoint = load_checkpoint(list_checkpoints(folder / CHECKPOINTS)[-1])
    minutes = float(checkpoint.state["seconds"]) * record["machine"]["processes"] / 60
    progress = {"steps": checkpoint.step, "tokens": int(checkpoint.state["tokens"]), "cpu_minutes_used": minutes}
    return {**record, **progress}


def read_curve(folder: Path, held_out: "HeldOut") -> list[dict[str, float]]:
    """The evaluation of each checkpoint of a run, over processor minutes; from disk if measured before."""
    record, points = read_record(folder), []
    assert record is not None, folder
    for path in list_checkpoints(folder / CHECKPOINTS):
        file = folder / MEASURES / f"{path.name}-{held_out.name}.json"
        if not file.exists():
            write_json(file, held_out.measure(path))
        minutes = float(load_checkpoint(path).state["seconds"]) * record["machine"]["processes"] / 60
        points.append({"cpu_minutes": minutes, **json.loads(file.read_text("utf-8"))})
    return points


def read_single_pieces(folder: Path, checkpoint: Path, held_out: "HeldOut") -> dict[str, Any]:
    """The accuracy of a checkpoint on masked single pieces; from disk if measured before."""
    file = folder / MEASURES / f"{checkpoint.name}-{held_out.name}-single-pieces.json"
    if not file.exists():
        write_json(file, {name: asdict(score) for name, score in held_out.measure_single_pieces(checkpoint).items()})
    single: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return single


class HeldOut:
    """Masked tokens and pairs for the points of all curves: fewer than in the final evaluation, and without probes."""

    def __init__(self, corpus: Path, *, length: int, pairs: int) -> None:
        self.name = f"{corpus.name}-{length}-{pairs}-point"
        tokenizer = load_tokenizer(corpus / "tokenizer")
        learned, tested = open_passages(corpus, "valid", enough_tokens=2 * pairs * length, seed=1)
        self.writer = build_pair_writer(tested, tokenizer, length=length, seed=1)
        self.order = draw_order_pairs(tested, count=pairs, length=length, seed=1)
        self.words = draw_plain_pairs(tested, count=max(1, pairs // CURVE_SHARE), length=length, seed=1)
        self.more_words = draw_plain_pairs(tested, count=pairs, length=length, seed=1)
        writer = build_pair_writer(learned, tokenizer, length=length, seed=1)
        read_before = draw_plain_pairs(learned, count=pairs, length=length, seed=1)
        self.frequent = count_pieces(writer, read_before, tokenizer.vocab_size)

    def measure_single_pieces(self, checkpoint: Path) -> dict[str, Score]:
        """Mask 15 % of single pieces, all by [MASK] and 80/10/10, which is the default of `transformers`' collator."""
        model = load_checkpoint(checkpoint).load_model().eval()
        writer = replace(self.writer, masking=MaskingOptions(kind="token"))
        words = guess_words(model, writer, self.more_words, self.frequent, lambda _: None)
        return {
            "hidden": score_guesses(words.by_model, words.documents),
            "usual": score_guesses(words.by_model_usual, words.documents),
        }

    def measure(self, checkpoint: Path) -> dict[str, float]:
        """One point of each curve."""
        model = load_checkpoint(checkpoint).load_model().eval()
        words = guess_words(model, self.writer, self.words, self.frequent, lambda _: None)
        answers = read_pairs(model, self.writer, self.order, lambda _: None).answers
        assert answers is not None, checkpoint
        is_right = answers == self.order.labels
        return {
            "hidden words, share guessed": float(words.by_model.mean()),
            "hidden words, loss": float(words.losses.mean()),
            "sentence order, share right": float(is_right.mean()),
            "sentence order, away from beginnings": float(is_right[~self.order.is_lead].mean()),
        }


def measure(folder: Path, checkpoint: Path, corpus: Path, options: IntrinsicOptions) -> dict[str, Any]:
    """The intrinsic evaluation of a checkpoint, from disk if measured before."""
    file = folder / MEASURES / f"{checkpoint.name}-{corpus.name}-{options.length}-{options.pairs}.json"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        write_json(file, evaluate_intrinsic(checkpoint, corpus, options).to_json())
    measured: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return {**measured, "checkpoint": checkpoint.name, "corpus": corpus.name}  # full paths depend on the machine
