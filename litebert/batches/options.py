"""The options that decide what is in a batch: how text is cut into sequences, masked, batched, and from which corpora.

This module imports neither torch nor numba, so a recipe can be read and checked without them.
"""

import math
from dataclasses import dataclass
from typing import Literal

from litebert.core.errors import ConfigError

Format = Literal["segment-pair", "sentence-pair", "full-sentences", "doc-sentences"]
SentenceTask = Literal["sop", "nsp", "three-way", "none"]
PAIR_FORMATS = ("segment-pair", "sentence-pair")
NUM_LABELS = {"none": 0, "sop": 2, "nsp": 2, "three-way": 3}

_MAX_GROUP_WORDS = 127  # the size of a group is stored in 8 bits
# A batch larger than this is a typo: planning it would take forever
_MAX_SEQUENCES = 1 << 20
_MAX_TOKENS = 1 << 30


@dataclass(frozen=True, kw_only=True)
class SegmentOptions:
    """What a sequence consists of. The last five reproduce quirks of the official ALBERT data (batches/google.py)."""

    format: Format = "segment-pair"
    task: SentenceTask = "sop"
    max_length: int = 512
    short_rate: float | None = None  # share of shorter sequences; None: 0.1 for segment-pair, 0 for the other formats
    copies: int | None = None  # K segmentations of the text in turn; None: as many as masking.copies
    single_sentence: Literal["merge_next", "drop", "random_doc"] = "merge_next"  # a chunk of one sentence is no pair
    fill: Literal["fit", "overfill"] = "fit"  # chunks of sentences that fit, or one sentence more, then trimmed
    fill_from: Literal["either", "start"] = "either"  # which end of a document is filled first; either: by coin
    target_per: Literal["chunk", "document"] = "chunk"  # how often the target length is drawn
    negatives: Literal["exchange", "draw"] = "exchange"  # random segments: from another pair, or from anywhere

    def __post_init__(self) -> None:
        if not self.is_pair and self.task != "none":
            raise ConfigError(
                f"segments.task = '{self.task}' needs two segments, but segments.format = '{self.format}' has one; "
                "use segment-pair or sentence-pair, or segments.task = 'none'"
            )
        if self.max_length < 8:
            raise ConfigError(f"segments.max_length = {self.max_length} leaves no room for text; use at least 8")
        if self.copies is not None and self.copies < 1:
            raise ConfigError(f"segments.copies must be at least 1, got {self.copies}; omit it for a new one per epoch")
        if not 0 <= self.shortened_share <= 1:
            raise ConfigError(f"segments.short_rate must be between 0 and 1, got {self.short_rate}")
        if self.format == "sentence-pair" and self.shortened_share > 0:
            raise ConfigError("segments.short_rate does not apply to sentence-pair, whose lengths are given; omit it")
        chunk_rules = self.single_sentence, self.fill, self.fill_from, self.target_per
        if self.format != "segment-pair" and chunk_rules != ("merge_next", "fit", "either", "chunk"):
            names = "single_sentence, fill, fill_from and target_per"
            raise ConfigError(f"segments: {names} apply to segments.format = 'segment-pair' only")
        if self.single_sentence == "random_doc" and self.task == "none":
            raise ConfigError("segments.single_sentence = 'random_doc' needs a sentence task; segments.task is 'none'")

    @property
    def is_pair(self) -> bool:
        return self.format in PAIR_FORMATS

    @property
    def num_labels(self) -> int:
        """The number of classes of the sentence task; 0 without one."""
        return NUM_LABELS[self.task]

    @property
    def room(self) -> int:
        """The number of text tokens that fit next to [CLS] and one or two [SEP]."""
        return self.max_length - (3 if self.is_pair else 2)

    @property
    def shortened_share(self) -> float:
        if self.short_rate is None:
            return 0.1 if self.format == "segment-pair" else 0.0
        return self.short_rate

    @property
    def draws_other_documents(self) -> bool:
        return self.task in ("nsp", "three-way") or self.single_sentence == "random_doc"


@dataclass(frozen=True, kw_only=True)
class MaskingOptions:
    """Which tokens are predicted. The last four reproduce quirks of the official ALBERT data (batches/google.py)."""

    kind: Literal["ngram", "whole-word", "token", "span"] = "ngram"
    token_share: float = 0.0  # share of sequences in which single tokens are masked, whatever the kind is
    rate: float = 0.15
    final_rate: float | None = None  # reached linearly over rate_steps; None: the rate is constant
    rate_steps: int = 0
    max_ngram: int = 3  # p(n) is proportional to 1/n
    span_stop_rate: float = 0.2  # for spans, p(n) is geometric, truncated at max_span (SpanBERT)
    max_span: int = 10
    mask_share: float = 0.8  # share replaced by [MASK]; random_share by a random token; the rest is kept
    random_share: float = 0.1
    replace_per: Literal["token", "ngram"] = "token"
    copies: int | None = None  # None: new masks every epoch (dynamic); K: K masks per text in turn (static; BERT: 10)
    fills_budget: bool = False
    max_predictions: int | None = None  # only with fills_budget
    may_straddle: bool = False  # whether a group may continue after a [SEP]
    random_from_all: bool = False  # whether a random token may be [PAD], [CLS], ...

    def __post_init__(self) -> None:
        for name in ("token_share", "rate", "final_rate", "mask_share", "random_share"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ConfigError(f"masking.{name} must be between 0 and 1, got {value}")
        if self.mask_share + self.random_share > 1:
            total = self.mask_share + self.random_share
            raise ConfigError(f"masking.mask_share + masking.random_share must be at most 1, got {total}")
        if (self.final_rate is None) != (self.rate_steps == 0) or self.rate_steps < 0:
            raise ConfigError("masking.final_rate and masking.rate_steps go together: set both or neither")
        if self.final_rate is not None and self.copies is not None:
            raise ConfigError("masking.copies makes static masks, but masking.final_rate changes them with the step")
        if self.max_predictions is not None and not self.fills_budget:
            raise ConfigError("masking.max_predictions caps the official budget: it needs masking.fills_budget = true")
        for name, most in (
            ("max_ngram", _MAX_GROUP_WORDS),
            ("max_span", _MAX_GROUP_WORDS),
            ("copies", None),
            ("max_predictions", None),
        ):
            count = getattr(self, name)
            if count is not None and (count < 1 or (most and count > most)):
                limits = f"between 1 and {most}" if most else "at least 1"
                raise ConfigError(f"masking.{name} must be {limits}, got {count}")
        if not 0 < self.span_stop_rate < 1:
            raise ConfigError(f"masking.span_stop_rate must be between 0 and 1 (exclusive), got {self.span_stop_rate}")

    def rate_at(self, step: int) -> float:
        """The share of tokens masked in the batch of this step."""
        if self.final_rate is None:
            return self.rate
        return self.rate + (self.final_rate - self.rate) * min(step / self.rate_steps, 1.0)


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """How sequences become batches. Exactly one of `sequences` and `tokens` sets the batch size over all ranks."""

    sequences: int = 0
    tokens: int = 0  # text and special tokens without padding, so a batch of short sequences has more of them
    is_packed: bool = False  # several sequences per row, separated by the attention mask
    bucket: int = 16  # number of batches whose sequences are sorted by length together to save padding; 1: no sorting
    width_multiple: int = 8  # rows are padded to a multiple of this

    def __post_init__(self) -> None:
        if (self.sequences > 0) == (self.tokens > 0):
            raise ConfigError(
                f"batch.sequences = {self.sequences} and batch.tokens = {self.tokens}: set one of them, the other to 0"
            )
        for name, least in (("sequences", 0), ("tokens", 0), ("bucket", 1), ("width_multiple", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"batch.{name} must be at least {least}, got {getattr(self, name)}")
        if self.sequences > _MAX_SEQUENCES or self.tokens > _MAX_TOKENS:
            raise ConfigError(
                f"batch: {self.sequences or self.tokens:,} is too large for one batch; use at most "
                f"{_MAX_SEQUENCES:,} sequences or {_MAX_TOKENS:,} tokens"
            )


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Which corpora are read."""

    corpora: tuple[str, ...]  # empty in the shipped recipes: whoever trains names the corpus
    weights: tuple[float, ...] = ()  # share of sequences from each corpus; empty: each is read once per epoch
    workers: int = 1  # threads that prepare batches in advance; the batches do not depend on it

    def __post_init__(self) -> None:
        if not all(0 < weight < math.inf for weight in self.weights):  # also rejects nan
            raise ConfigError(f"data.weights must be finite and greater than 0, got {list(self.weights)}")
        if self.weights and len(self.weights) != len(self.corpora):
            raise ConfigError(f"data.weights has {len(self.weights)} numbers for {len(self.corpora)} data.corpora")
        if self.workers < 0:
            raise ConfigError(f"data.workers must be at least 0, got {self.workers}")


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """Everything that decides what is in a batch, apart from the text."""

    segments: SegmentOptions
    masking: MaskingOptions
    batch: BatchOptions
    seed: int

    def __post_init__(self) -> None:
        if 0 < self.batch.tokens < self.segments.max_length:
            raise ConfigError(
                f"batch.tokens = {self.batch.tokens} is less than one sequence of "
                f"segments.max_length = {self.segments.max_length}"
            )
