"""ModelConfig: the sizes and switches that make one encoder ALBERT, BERT or RoBERTa. HeadSpec: a head on top of it."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Literal, get_args

from litebert.core.errors import ConfigError, suggest
from litebert.core.ranges import DropRate, NonNegativeInt, PositiveFloat, PositiveInt, check_values
from litebert.model.sharing import LayerPlan, Sharing, plan_layers

Activation = Literal["gelu_tanh", "gelu", "relu"]
Projection = Literal["auto", "always"]
Initializer = Literal["normal", "neighbours"]
Attention = Literal["full", "window", "block"]
HeadKind = Literal["mlm", "sentence", "classification", "tokens", "span", "conditional_span", "choice"]
Pooling = Literal["mean", "cls", "max"]  # of last states to one vector: model/pooling.py


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A model's shape. An impossible combination is an error that names the field, the value and a fix."""

    vocab_size: PositiveInt
    embedding_size: PositiveInt
    hidden_size: PositiveInt
    ffn_size: PositiveInt
    num_layers: PositiveInt
    num_heads: PositiveInt
    max_positions: PositiveInt = 512
    num_segments: PositiveInt = 2
    hidden_dropout_rate: DropRate = 0.1
    attention_dropout_rate: DropRate = 0.1
    classifier_dropout_rate: DropRate = 0.1
    activation: Activation = "gelu_tanh"
    norm_epsilon: PositiveFloat = 1e-12
    initializer_range: PositiveFloat = 0.02
    initializer: Initializer = "normal"  # "neighbours": heads first attend to adjacent tokens (model/neighbours.py)
    sharing: Sharing = "all"
    num_groups: PositiveInt = 1  # read with sharing = "groups"
    num_inner: PositiveInt = 1  # blocks applied in sequence inside each layer: Google's inner_group_num
    layer_map: tuple[tuple[int, int], ...] = ()  # read with sharing = "map"
    projection: Projection = "auto"  # "auto": none when E = H, as in Google's code; "always": as in Hugging Face's
    has_pooler: bool = True
    attention: Attention = "full"  # "window" and "block": model/sparse.py
    attention_width: PositiveInt = 128  # window: tokens seen on either side; block: tokens per block
    num_global_tokens: NonNegativeInt = 1  # the first tokens of a sequence attend to all of it, and all to them
    full_attention_every: NonNegativeInt = 0  # 2: layers 2, 4, ... are full; 0: none

    def __post_init__(self) -> None:
        check_values(self)
        if self.hidden_size % self.num_heads:
            raise ConfigError(
                "heads-do-not-divide",
                f"hidden_size = {self.hidden_size} is not a multiple of num_heads = {self.num_heads}; "
                f"with {self.num_heads} heads take {-(-self.hidden_size // self.num_heads) * self.num_heads}",
            )
        self.layer_plan  # noqa: B018 (checks sharing, groups and map)
        self._check_initializer()
        self._check_attention()

    @property
    def layer_plan(self) -> LayerPlan:
        """Which attention and which feed-forward block each layer uses."""
        return plan_layers(
            self.num_layers,
            self.sharing,
            num_groups=self.num_groups,
            num_inner=self.num_inner,
            layer_map=self.layer_map,
        )

    @property
    def has_projection(self) -> bool:
        """Whether there is a linear map from the embedding width E to the hidden width H."""
        return self.projection == "always" or self.embedding_size != self.hidden_size

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.num_heads

    def is_sparse(self, layer: int) -> bool:
        """Whether a layer, numbered from 1, attends sparsely."""
        every = self.full_attention_every
        return self.attention != "full" and not (every and layer % every == 0)

    @property
    def query_block(self) -> int:
        """How many queries share a block of keys in a sparse layer; larger blocks compute more masked scores."""
        return self.attention_width if self.attention == "block" else max(16, min(self.attention_width, 64))

    @property
    def dense_length(self) -> int:
        """The longest text for which a sparse layer computes all scores, which is faster for short texts."""
        if self.attention == "block":
            return max(self.attention_width, self.num_global_tokens)
        return max(2 * (self.query_block + 2 * self.attention_width), self.num_global_tokens)

    def count_keys(self, layer: int, length: int) -> int:
        """How many scores per query a layer, numbered from 1, computes in a text of this length."""
        if not self.is_sparse(layer) or length <= self.dense_length:
            return length
        keys = self.query_block + (2 * self.attention_width if self.attention == "window" else 0)
        return keys + 2 * self.num_global_tokens  # every query sees the global keys; global queries see every key

    def _check_attention(self) -> None:
        """Raise if options of sparse attention are set without it, or make every layer full."""
        if self.attention == "full":
            for name, default in (("attention_width", 128), ("num_global_tokens", 1), ("full_attention_every", 0)):
                if getattr(self, name) != default:
                    raise ConfigError(
                        "conflicting-keys",
                        f"{name} = {getattr(self, name)} is read only with attention = 'window' or 'block', "
                        "but attention = 'full'",
                    )
        elif self.full_attention_every == 1:
            raise ConfigError(
                "conflicting-keys",
                f"full_attention_every = 1 makes every layer full, but attention = '{self.attention}': "
                "set attention = 'full', or full_attention_every to 2 or more",
            )

    def _check_initializer(self) -> None:
        """Raise if the model is too narrow for sinusoids: they need 2 values per head and 4 per embedding."""
        if self.initializer == "neighbours" and self.head_size < 2:
            raise ConfigError(
                "conflicting-options",
                f"initializer = 'neighbours' needs heads of 2 numbers or more, not {self.head_size}: take fewer than "
                f"num_heads = {self.num_heads}",
            )
        if self.initializer == "neighbours" and self.embedding_size < 4:
            raise ConfigError(
                "conflicting-options",
                f"initializer = 'neighbours' needs embedding_size = 4 or more, not {self.embedding_size}",
            )


# Fields that affect how a model is trained, but not what a trained model computes.
TRAINING_FIELDS = frozenset(
    {
        "hidden_dropout_rate",
        "attention_dropout_rate",
        "classifier_dropout_rate",
        "initializer_range",
        "initializer",
    }
)


def check_fields(config: ModelConfig, known: Collection[str], *, writer: str) -> None:
    """Raise if a configuration has a field that is not among those `known` to a writer of another format.

    Each writer lists the fields that it converts or may ignore. A field added to `ModelConfig` later is an error until
    it is in these lists, instead of being dropped silently.
    """
    if unknown := [field.name for field in fields(config) if field.name not in known]:
        raise ConfigError(
            "unknown-model-field",
            f"{writer} does not know model.{unknown[0]}: it would be lost, and the model would compute something else",
        )


# The options of sparse attention; if `attention` is "full", the others have no effect.
ATTENTION_FIELDS = frozenset({"attention", "attention_width", "num_global_tokens", "full_attention_every"})


def check_attention(config: ModelConfig, *, writer: str) -> None:
    """Raise if a model has sparse attention, for a writer that can express full attention only."""
    if config.attention != "full":
        raise ConfigError(
            "unsupported-attention",
            f"{writer} cannot express attention = '{config.attention}' (width {config.attention_width}): the model "
            "would compute something else; use litebert's own format, or ONNX",
        )


@dataclass(frozen=True)
class HeadSpec:
    """The kind of a head, and its number of labels if the kind does not fix it."""

    kind: HeadKind
    num_labels: int = 2  # read by sentence, classification (1 = regression) and tokens

    def __post_init__(self) -> None:
        if self.kind not in get_args(HeadKind):
            raise ConfigError("unknown-head", f"unknown head '{self.kind}'; {suggest(self.kind, get_args(HeadKind))}")
        if self.num_labels < 1:
            raise ConfigError(
                "out-of-range", f"num_labels = {self.num_labels} for head '{self.kind}': at least one label is needed"
            )
