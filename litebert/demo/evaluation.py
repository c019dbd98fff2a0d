"""What the demo's model has learned: validation scores compared with baselines, filled masks and layer distances."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from litebert.batches.batch import Batch
from litebert.batches.options import BatchOptions, MaskingOptions
from litebert.batches.stream import open_stream
from litebert.checkpoint import load_checkpoint
from litebert.core.runtime import choose_runtime
from litebert.corpus.shards import open_corpus
from litebert.demo.held_out import HeldOutScore, Share, score_constant, score_model
from litebert.evaluation.intrinsic.distances import LayerDistances, apply_more_often, measure_distances
from litebert.inference.engines.torch_engine import TorchEngine
from litebert.inference.fill_mask import Guess, fill_mask
from litebert.inference.session import Session
from litebert.model.model import Model, build_model
from litebert.pretraining.recipe import Recipe
from litebert.text.tokenizer import Tokenizer

GAPS = (
    "Raise a ValueError if the argument is not a valid [MASK].",
    "The method returns a [MASK] of all the names in the module.",
    "If the file does not exist, an exception is [MASK].",
    "Read at most n bytes from the [MASK] and return them.",
    "A subclass can override this [MASK] to change what is printed.",
    "The second argument is optional and defaults to [MASK].",
)
_SEQUENCES = 32  # per validation batch
_HIDDEN_RATE = 0.15  # as in the papers; a higher rate leaves less context to predict from
# A shared layer can be applied more often than in training; the figure shows this many applications.
_FIGURE_LAYERS = 8
_FIGURE_BATCHES = 4


@dataclass(frozen=True)
class Evaluation:
    """Everything the report shows about the trained model."""

    trained: HeldOutScore
    untrained: HeldOutScore
    constant: HeldOutScore
    rule: HeldOutScore  # a full stop before [SEP], "the" elsewhere: uses only the position
    constant_piece: str  # the most frequent piece in the training text
    fillings: list[list[Guess]]  # for each of GAPS, the best first
    distances_trained: LayerDistances
    distances_untrained: LayerDistances


def evaluate_model(checkpoint_path: Path, recipe: Recipe) -> Evaluation:
    """Score a checkpoint of the demo and its baselines, fill masks, and measure its layers."""
    # the same threads as in training, even if that ran in an earlier process
    runtime = choose_runtime(recipe.runtime)
    checkpoint = load_checkpoint(checkpoint_path)
    tokenizer = checkpoint.load_tokenizer()
    trained = checkpoint.load_model()
    session = Session(TorchEngine(trained, replace(runtime, device=torch.device("cpu"))), tokenizer.pad_id)
    untrained = build_model(checkpoint.config, checkpoint.heads, seed=recipe.seed)
    batches = draw_held_out(recipe)
    frequent = most_frequent_token(recipe)
    return Evaluation(
        trained=score_model(trained, batches),
        untrained=score_model(untrained, batches),
        constant=(constant := score_constant(batches, token_id=frequent, sentence_label=0)),
        rule=replace(constant, masked=score_rule(batches, tokenizer)),
        constant_piece=readable_piece(tokenizer.pieces([frequent])[0]),
        fillings=[fill_gap(session, tokenizer, gap) for gap in GAPS],
        distances_trained=follow_layers(trained, batches),
        distances_untrained=follow_layers(untrained, batches),
    )


def draw_held_out(recipe: Recipe) -> Sequence[Batch]:
    """One epoch over the validation documents."""
    masking = MaskingOptions(rate=_HIDDEN_RATE, mask_share=1.0, random_share=0.0)  # no chosen token stays readable
    options = replace(recipe.stream, masking=masking, batch=BatchOptions(sequences=_SEQUENCES))
    stream, _ = open_stream(recipe.data, options, split="valid")
    return [stream.batch(step) for step in range(stream.steps_per_epoch)]


def most_frequent_token(recipe: Recipe) -> int:
    """The most frequent token in the training text."""
    counts = np.zeros(recipe.model.vocab_size, np.int64)
    for path in recipe.data.corpora:
        for shard in open_corpus(Path(path)).shards:
            counts += np.bincount(shard.token_ids, minlength=len(counts))
    return int(counts.argmax())


def score_rule(batches: Sequence[Batch], tokenizer: Tokenizer) -> Share:
    """Masked-token accuracy of a rule that only checks whether [SEP] follows; a short run learns little more."""
    stop, the = tokenizer.encode("a.")[-1], tokenizer.encode("the")[0]
    right = total = 0
    for batch in batches:
        ends_segment = batch.token_ids.flatten()[batch.mlm_positions + 1] == tokenizer.sep_id
        right += int((ends_segment & (batch.mlm_labels == stop)).sum())
        right += int((~ends_segment & (batch.mlm_labels == the)).sum())
        total += len(batch.mlm_labels)
    return Share(right, total)


def fill_gap(session: Session, tokenizer: Tokenizer, gap: str) -> list[Guess]:
    (guesses,) = fill_mask(session, tokenizer, gap)
    return [guess._replace(piece=readable_piece(guess.piece)) for guess in guesses]


def follow_layers(model: Model, batches: Sequence[Batch]) -> LayerDistances:
    return measure_distances(apply_more_often(model, _FIGURE_LAYERS), batches[:_FIGURE_BATCHES])


def readable_piece(piece: str) -> str:
    """A piece as shown to a reader: a word start as it is, a continuation with a leading hyphen."""
    is_inside_word = piece.isalnum()
    return f"-{piece}" if is_inside_word else piece.removeprefix("▁") or "(space)"
