"""The results of intrinsic evaluation, as plain values."""

from dataclasses import asdict, dataclass
from typing import Any

from litebert.evaluation.intrinsic.score import PairScores, Score


@dataclass(frozen=True)
class MaskedWords:
    """Masked-token accuracy with [MASK] for every target (`hidden`), and with 80/10/10 (`usual`)."""

    hidden: Score
    hidden_loss: float  # nats
    usual: Score
    usual_loss: float
    frequent: Score  # always the most frequent piece
    frequent_piece: str
    left_neighbour: Score  # always the most frequent successor of the piece to the left


@dataclass(frozen=True)
class SentencePairs:
    """Accuracy on pairs: in order or swapped (SOP), next or from another document (NSP)."""

    head: PairScores | None  # the model's own head, whatever its objective; None without a head
    probe: PairScores  # logistic regression on the frozen [CLS] state
    baseline: PairScores  # SOP: logistic regression on bags of words; NSP: thresholded overlap of rare words


@dataclass(frozen=True)
class Training:
    """Facts about the training from the checkpoint's recipe; without a recipe, the model's limits."""

    length: int  # positions beyond it were not trained
    sentence_task: str | None  # sop, nsp, three-way, none; None: not known


@dataclass(frozen=True)
class IntrinsicReport:
    """All measurements; `to_json` returns plain data."""

    checkpoint: str
    step: int
    corpus: str
    tested_on: str
    learned_from: str  # documents that probes and baselines were trained on; none of them is tested on
    length: int
    training: Training
    seed: int
    mlm: MaskedWords | None  # None without a masked LM head, or if skipped
    sop: SentencePairs | None  # None if skipped
    nsp: SentencePairs | None
    skipped: dict[str, str]  # which of the three could not be measured on this text, and why

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
