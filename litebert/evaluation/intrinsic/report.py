"""What intrinsic evaluation measures, as plain values."""

from dataclasses import asdict, dataclass
from typing import Any

from litebert.evaluation.intrinsic.score import PairScores, Score


@dataclass(frozen=True)
class MaskedWords:
    """Words that were guessed right in the place of [MASK]; `usual` leaves 10 % as they are, and replaces 10 %."""

    hidden: Score
    hidden_loss: float  # nats
    usual: Score
    usual_loss: float
    frequent: Score  # always the most frequent piece
    frequent_piece: str
    left_neighbour: Score  # always what most often follows the piece to the left


@dataclass(frozen=True)
class SentencePairs:
    """Pairs that were told apart: in order or swapped (SOP), next or another document's (NSP)."""

    head: PairScores | None  # the model's own, whatever it was trained for; None without one
    probe: PairScores  # logistic regression on the frozen [CLS] state
    baseline: PairScores  # SOP: logistic regression on bags of words; NSP: thresholded overlap of rare words


@dataclass(frozen=True)
class Training:
    """What a checkpoint's recipe says of its training; with no recipe, what the model allows."""

    length: int  # beyond it, its positions have learned nothing
    sentence_task: str | None  # sop, nsp, three-way, none; None: not known


@dataclass(frozen=True)
class IntrinsicReport:
    """All that was measured; `to_json` gives plain data."""

    checkpoint: str
    step: int
    corpus: str
    tested_on: str
    learned_from: str  # what probes and baselines learned from: documents that are not tested on
    length: int
    training: Training
    seed: int
    mlm: MaskedWords | None  # None without a head for words, or where skipped
    sop: SentencePairs | None  # None where skipped
    nsp: SentencePairs | None
    skipped: dict[str, str]  # which of the three could not be measured on this text, and why

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
