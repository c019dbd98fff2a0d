"""The [data], [segments], [masking] and [batch] sections of a recipe.

This module imports neither torch nor numba, so a recipe can be read and checked without them.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from litebert.core.errors import ConfigError
from litebert.core.ranges import NonNegativeInt, PositiveInt, Probability, Range, check_values

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
    max_length: Annotated[int, Range(8)] = 512
    short_rate: Probability | None = None  # share of shorter sequences; None: 0.1 for segment-pair, else 0
    copies: PositiveInt | None = None  # K segmentations of the text in turn; None: as many as masking.copies
    single_sentence: Literal["merge_next", "drop", "random_doc"] = "merge_next"  # a chunk of one sentence is no pair
    fill: Literal["fit", "overfill"] = "fit"  # chunks of sentences that fit, or one sentence more, then trimmed
    fill_from: Literal["either", "start"] = "either"  # which end of a document is filled first; either: by coin
    target_per: Literal["chunk", "document"] = "chunk"  # how often the target length is drawn
    negatives: Literal["exchange", "draw"] = "exchange"  # random segments: from another pair, or from anywhere

    def __post_init__(self) -> None:
        check_values(self)
        if not self.is_pair and self.task != "none":
            raise ConfigError(
                "conflicting-options",
                f"task = '{self.task}' needs two segments, but format = '{self.format}' has one; "
                "use segment-pair or sentence-pair, or task = 'none'",
            )
        if self.format == "sentence-pair" and self.shortened_share > 0:
            raise ConfigError(
                "conflicting-options",
                f"short_rate = {self.short_rate} does not apply to sentence-pair, whose lengths are given; omit it",
            )
        chunk_rules = self.single_sentence, self.fill, self.fill_from, self.target_per
        if self.format != "segment-pair" and chunk_rules != ("merge_next", "fit", "either", "chunk"):
            names = "single_sentence, fill, fill_from and target_per"
            raise ConfigError(
                "conflicting-options",
                f"format = '{self.format}' ignores {names}, which are for segment-pair: omit them",
            )
        if self.single_sentence == "random_doc" and self.task == "none":
            raise ConfigError(
                "conflicting-options", "single_sentence = 'random_doc' needs a sentence task, but task = 'none'"
            )

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
    token_share: Probability = 0.0  # share of sequences in which single tokens are masked, whatever the kind is
    rate: Probability = 0.15
    final_rate: Probability | None = None  # reached linearly over rate_steps; None: the rate is constant
    rate_steps: NonNegativeInt = 0
    max_ngram: Annotated[int, Range(1, _MAX_GROUP_WORDS)] = 3  # p(n) is proportional to 1/n
    # for spans, p(n) is geometric, truncated at max_span (SpanBERT)
    span_stop_rate: Annotated[float, Range(above=0, below=1)] = 0.2
    max_span: Annotated[int, Range(1, _MAX_GROUP_WORDS)] = 10
    mask_share: Probability = 0.8  # share replaced by [MASK]; random_share by a random token; the rest is kept
    random_share: Probability = 0.1
    replace_per: Literal["token", "ngram"] = "token"
    # None: new masks every epoch (dynamic); K: K masks per text in turn (static; BERT: 10)
    copies: PositiveInt | None = None
    fills_budget: bool = False
    max_predictions: PositiveInt | None = None  # only with fills_budget
    may_straddle: bool = False  # whether a group may continue after a [SEP]
    random_from_all: bool = False  # whether a random token may be [PAD], [CLS], ...

    def __post_init__(self) -> None:
        check_values(self)
        if self.mask_share + self.random_share > 1:
            raise ConfigError(
                "conflicting-options",
                f"mask_share = {self.mask_share} and random_share = {self.random_share} must add up to at most 1",
            )
        if (self.final_rate is None) != (self.rate_steps == 0):
            raise ConfigError(
                "conflicting-options",
                f"final_rate = {self.final_rate} and rate_steps = {self.rate_steps} go together: set both or neither",
            )
        if self.final_rate is not None and self.copies is not None:
            raise ConfigError(
                "conflicting-options",
                f"copies = {self.copies} makes static masks, but final_rate = {self.final_rate} changes them",
            )
        if self.max_predictions is not None and not self.fills_budget:
            raise ConfigError(
                "conflicting-options",
                f"max_predictions = {self.max_predictions} caps the official budget: it needs fills_budget = true",
            )

    def rate_at(self, step: int) -> float:
        """The share of tokens masked in the batch of this step."""
        if self.final_rate is None:
            return self.rate
        return self.rate + (self.final_rate - self.rate) * min(step / self.rate_steps, 1.0)


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """How sequences become batches. Exactly one of `sequences` and `tokens` sets the batch size over all ranks."""

    sequences: Annotated[int, Range(0, _MAX_SEQUENCES)] = 0
    # text and special tokens without padding, so a batch of short sequences has more of them
    tokens: Annotated[int, Range(0, _MAX_TOKENS)] = 0
    is_packed: bool = False  # several sequences per row, separated by the attention mask
    bucket: PositiveInt = 16  # batches whose sequences are sorted by length together, against padding; 1: none
    width_multiple: PositiveInt = 8  # rows are padded to a multiple of this

    def __post_init__(self) -> None:
        check_values(self)
        if (self.sequences > 0) == (self.tokens > 0):
            raise ConfigError(
                "conflicting-options",
                f"sequences = {self.sequences} and tokens = {self.tokens}: set one of them, the other to 0",
            )


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Which corpora are read."""

    corpora: tuple[str, ...]  # empty in the shipped recipes: name yours
    weights: Annotated[
        tuple[float, ...], Range(above=0)
    ] = ()  # share of sequences from each corpus; empty: each is read once per epoch
    workers: NonNegativeInt = 1  # threads that prepare batches in advance; the batches do not depend on it

    def __post_init__(self) -> None:
        check_values(self)
        if self.weights and len(self.weights) != len(self.corpora):
            raise ConfigError(
                "conflicting-options",
                f"weights = {list(self.weights)} has {len(self.weights)} numbers for {len(self.corpora)} corpora",
            )


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
                "conflicting-options",
                f"batch.tokens = {self.batch.tokens} is less than one sequence of "
                f"segments.max_length = {self.segments.max_length}",
            )
