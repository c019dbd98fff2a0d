"""Intrinsic evaluation: a checkpoint's accuracy on unseen text, compared with baselines.

The left half of the ALBERT paper's Table 5: masked tokens, sentence order (SOP) and next sentence (NSP), regardless
of which of them the checkpoint was trained on. Scores on a task's labelled data are in inference/evaluation.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litebert.batches.segments import NoSequencesError
from litebert.checkpoint import Checkpoint
from litebert.core.errors import ConfigError
from litebert.core.options import parse_toml
from litebert.core.progress import ProgressBar
from litebert.core.runtime import choose_device
from litebert.corpus.shards import Split, open_corpus
from litebert.evaluation.intrinsic.guesses import Advance, guess_words, probe, read_pairs
from litebert.evaluation.intrinsic.pair_batches import PairWriter, build_pair_writer
from litebert.evaluation.intrinsic.pairs import (
    PairTable,
    TooFewPairsError,
    draw_next_pairs,
    draw_order_pairs,
    draw_plain_pairs,
)
from litebert.evaluation.intrinsic.passages import open_passages
from litebert.evaluation.intrinsic.report import IntrinsicReport, MaskedWords, SentencePairs, Training
from litebert.evaluation.intrinsic.score import PairScores, score_guesses, score_pairs
from litebert.evaluation.intrinsic.shallow import Bags, collect_bags, count_pieces, guess_next, guess_order
from litebert.interop.opening import load_checkpoint
from litebert.model.model import Model
from litebert.text.tokenizer import Tokenizer
from litebert.training.loop import Progress
from litebert.training.options import TrainOptions

USUAL_LENGTH = 128
_BASELINE_PAIRS = 8  # training pairs per pair of a probe: a bag of words has many weights and is cheap to fit
_WORD_SHARE = 4  # one masked sequence per this many pairs; it has about 19 masked tokens


@dataclass(frozen=True, kw_only=True)
class IntrinsicOptions:
    """What to measure."""

    split: Split = "valid"
    pairs: int = 4096  # at most, for each of SOP and NSP; a probe is trained on the same number of other pairs
    length: int | None = None  # tokens per pair; None: as in the checkpoint's training, at most USUAL_LENGTH
    seed: int = 1


@dataclass(frozen=True)
class Bench:
    """A model, the text it is tested on, and the text that probes and baselines are trained on."""

    model: Model
    tokenizer: Tokenizer
    tested: PairWriter
    learned: PairWriter
    options: IntrinsicOptions
    advance: Advance

    def collect_bags(self, writer: PairWriter, pairs: PairTable) -> Bags:
        return collect_bags(writer, pairs, self.tokenizer.vocab_size)


Draw = Callable[..., PairTable]
Guess = Callable[[Bags, Bags], NDArray[np.int64]]


def evaluate_intrinsic(source: Path, corpus: Path, options: IntrinsicOptions | None = None) -> IntrinsicReport:
    """Measure a checkpoint, or a run's last one, on a corpus built with its tokenizer."""
    options = options or IntrinsicOptions()
    checkpoint = load_checkpoint(source)
    tokenizer = checkpoint.load_tokenizer()
    check_tokenizer(corpus, tokenizer, checkpoint)
    training = read_training(checkpoint)
    length = choose_length(checkpoint, training, options.length)
    enough = 2 * _BASELINE_PAIRS * options.pairs * length
    learned, tested = open_passages(corpus, options.split, enough_tokens=enough, seed=options.seed)
    model = checkpoint.load_model().to(choose_device("auto")).eval()
    with ProgressBar("reading", total=_count_readings(options), unit="pairs", scale=1) as bar:
        bench = Bench(
            model,
            tokenizer,
            build_pair_writer(tested, tokenizer, length=length, seed=options.seed),
            build_pair_writer(learned, tokenizer, length=length, seed=options.seed),
            options,
            _counter(bar),
        )
        measures: dict[str, Callable[[], Any]] = {
            "sop": lambda: measure_pairs(bench, draw_order_pairs, guess_order),
            "nsp": lambda: measure_pairs(bench, draw_next_pairs, guess_next),
        }
        if "mlm" in model.heads:
            measures = {"mlm": lambda: measure_words(bench)} | measures
        measured, skipped = measure_possible(measures)
        return IntrinsicReport(
            checkpoint=str(checkpoint.path),
            step=checkpoint.step,
            corpus=str(corpus),
            tested_on=tested.name,
            learned_from=learned.name,
            length=length,
            training=training,
            seed=options.seed,
            mlm=measured.get("mlm"),
            sop=measured.get("sop"),
            nsp=measured.get("nsp"),
            skipped=skipped,
        )


def measure_possible(measures: Mapping[str, Callable[[], Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """The measurements that this text allows, and why the others were skipped; raises if none is possible."""
    measured: dict[str, Any] = {}
    skipped: dict[str, str] = {}
    for name, measure in measures.items():
        try:
            measured[name] = measure()
        except (TooFewPairsError, NoSequencesError) as error:
            if len(skipped) == len(measures) - 1:
                raise
            skipped[name] = str(error)
    return measured, skipped


def measure_words(bench: Bench) -> MaskedWords:
    """Masked-token accuracy on text in its original order."""
    settings = {"length": bench.tested.length, "seed": bench.options.seed}
    count = max(1, bench.options.pairs // _WORD_SHARE)
    pairs = draw_plain_pairs(bench.tested.passages, count=count, **settings)
    read_before = draw_plain_pairs(bench.learned.passages, count=_BASELINE_PAIRS * bench.options.pairs, **settings)
    frequent = count_pieces(bench.learned, read_before, bench.tokenizer.vocab_size)
    words = guess_words(bench.model, bench.tested, pairs, frequent, bench.advance)
    return MaskedWords(
        hidden=score_guesses(words.by_model, words.documents),
        hidden_loss=float(words.losses.mean()),
        usual=score_guesses(words.by_model_usual, words.documents),
        usual_loss=float(words.losses_usual.mean()),
        frequent=score_guesses(words.by_frequency, words.documents),
        frequent_piece=bench.tokenizer.pieces([frequent.anywhere])[0],
        left_neighbour=score_guesses(words.by_left_neighbour, words.documents),
    )


def measure_pairs(bench: Bench, draw: Draw, guess: Guess) -> SentencePairs:
    """Score the model's own head, a probe and a baseline on the same pairs."""
    settings = {"length": bench.tested.length, "seed": bench.options.seed}
    count = bench.options.pairs
    pairs = draw(bench.tested.passages, count=count, **settings)
    to_learn = draw(bench.learned.passages, count=count, **settings)
    to_count = draw(bench.learned.passages, count=_BASELINE_PAIRS * count, **settings)
    states = read_pairs(bench.model, bench.tested, pairs, bench.advance)
    learned_states = read_pairs(bench.model, bench.learned, to_learn, bench.advance)
    bags = bench.collect_bags(bench.tested, pairs), bench.collect_bags(bench.learned, to_count)

    def score(answers: NDArray[np.int64]) -> PairScores:
        return score_pairs(answers == pairs.labels, pairs.documents, pairs.is_lead)

    return SentencePairs(
        head=None if states.answers is None else score(states.answers),
        probe=score(probe(states, learned_states, to_learn)),
        baseline=score(guess(*bags)),
    )


def check_tokenizer(corpus: Path, tokenizer: Tokenizer, checkpoint: Checkpoint) -> None:
    """Raise if a corpus was built with another tokenizer than the checkpoint's."""
    if not tokenizer.has_fingerprint(open_corpus(corpus).tokenizer_fingerprint):
        raise ConfigError(
            "tokenizer-mismatch",
            f"{corpus} was built with a different tokenizer than {checkpoint.path} uses: rebuild it with the tokenizer "
            f"in {checkpoint.tokenizer_path}",
            option="corpus",
        )


def choose_length(checkpoint: Checkpoint, training: Training, asked: int | None) -> int:
    """The length of a pair: as requested, else as in training, at most USUAL_LENGTH."""
    most = checkpoint.config.max_positions
    if asked is not None and asked > most:
        raise ConfigError(
            "out-of-range", f"length = {asked} exceeds the {most} positions of {checkpoint.path}", option="length"
        )
    return min(USUAL_LENGTH, training.length) if asked is None else asked


def read_training(checkpoint: Checkpoint) -> Training:
    """Sequence length and sentence objective of the training, from the recipe in the checkpoint."""
    values = parse_toml(checkpoint.recipe_toml, where=f"the recipe of {checkpoint.path}")
    if "segments" not in values:  # a fine-tuning recipe or a converted model: no record of pre-training
        return Training(checkpoint.config.max_positions, None)
    reached = _scheduled_step(values, checkpoint)
    begun = [values, *(stage for stage in values.get("stages", ()) if stage["at"] < reached)]
    segments = [part["segments"] for part in begun if "segments" in part]
    lengths = [part["max_length"] for part in segments if "max_length" in part]
    tasks = [part["task"] for part in segments if "task" in part]
    return Training(max(lengths, default=checkpoint.config.max_positions), tasks[-1] if tasks else None)


def _scheduled_step(recipe: dict[str, Any], checkpoint: Checkpoint) -> float:
    """A checkpoint's progress in the unit of its recipe's stages."""
    length = {key: value for key, value in recipe.get("train", {}).items() if key in ("steps", "tokens", "hours")}
    if not length:
        return checkpoint.step
    progress = Progress.of(checkpoint.path)
    return progress.scheduled_step(TrainOptions(**length))


def _count_readings(options: IntrinsicOptions) -> int:
    """The maximum number of sequences to compute: test and training pairs of two tasks, and two ways of masking."""
    return 4 * options.pairs + 2 * (options.pairs // _WORD_SHARE)


def _counter(bar: ProgressBar) -> Advance:
    count = 0

    def advance(number: int) -> None:
        nonlocal count
        count += number
        bar.move_to(count)

    return advance
