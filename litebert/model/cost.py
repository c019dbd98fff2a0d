"""A model's exact parameter count, FLOPs and memory, computed without building the model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from litebert.model.config import HeadKind, HeadSpec, ModelConfig

MLM_RATE = 0.15  # share of tokens that are predicted, in every recipe of the papers
BYTES = 4  # fp32
LOGITS_AT_ONCE = 8_000_000  # per chunk of the vocabulary loss; a test checks that it equals lean.CHUNK_LOGITS


@dataclass(frozen=True)
class ParameterCount:
    """Stored parameters by component. `unrolled_layers` counts shared weights once per use."""

    embeddings: int
    projection: int
    layers: int
    unrolled_layers: int
    pooler: int
    heads: int

    @property
    def without_pooler(self) -> int:
        return self.embeddings + self.projection + self.layers

    @property
    def with_pooler(self) -> int:
        return self.without_pooler + self.pooler

    @property
    def total(self) -> int:
        return self.with_pooler + self.heads

    @property
    def unrolled(self) -> int:
        """The parameter count of the same model without sharing."""
        return self.total - self.layers + self.unrolled_layers


def count_parameters(config: ModelConfig, heads: Sequence[HeadSpec] = ()) -> ParameterCount:
    """The exact parameter count of the model that `build_model` would build."""
    plan, width = config.layer_plan, config.hidden_size
    attention = 4 * _linear(width, width) + _norm(width)
    ffn = _linear(width, config.ffn_size) + _linear(config.ffn_size, width) + _norm(width)
    rows_of_tables = config.vocab_size + config.max_positions + config.num_segments
    return ParameterCount(
        embeddings=rows_of_tables * config.embedding_size + _norm(config.embedding_size),
        projection=_linear(config.embedding_size, width) if config.has_projection else 0,
        layers=plan.num_attention_blocks * attention + plan.num_ffn_blocks * ffn,
        unrolled_layers=len(plan.rows) * (attention + ffn),
        pooler=_linear(width, width) if config.has_pooler else 0,
        heads=sum(_HEAD_PARAMETERS[spec.kind](config, spec.num_labels) for spec in heads),
    )


def forward_flops_per_token(config: ModelConfig, length: int, *, mlm_rate: float = MLM_RATE) -> float:
    """Floating-point operations per token of a forward pass in pre-training.

    Matrix multiplies only (two operations per multiply-add), with vocabulary logits only at masked tokens.
    """
    width = config.hidden_size
    num_layers = len(config.layer_plan.rows)
    linear = num_layers * (4 * width * width + 2 * width * config.ffn_size)
    keys = sum(config.count_keys(layer, length) for layer in range(1, num_layers + 1))
    layers = linear + 2 * keys * width  # scores and weighted sum
    projection = config.embedding_size * width if config.has_projection else 0
    mlm = width * config.embedding_size + config.embedding_size * config.vocab_size
    pooler = width * width / length if config.has_pooler else 0
    return 2 * (layers + projection + mlm_rate * mlm + pooler)


def training_flops_per_token(config: ModelConfig, length: int, *, mlm_rate: float = MLM_RATE) -> float:
    """Forward and backward: each multiply has two gradients, so three times the forward pass."""
    return 3 * forward_flops_per_token(config, length, mlm_rate=mlm_rate)


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes of fp32 training on one device."""

    weights: int
    gradients: int
    optimizer: int  # LAMB and AdamW keep two moments
    activations: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations


def training_memory(
    config: ModelConfig, heads: Sequence[HeadSpec], *, batch_size: int, length: int, mlm_rate: float = MLM_RATE
) -> TrainingMemory:
    """The memory of pre-training in fp32 on a CPU with a micro-batch of `batch_size` sequences.

    Needs no torch; plan/memory.py estimates a recipe on other devices.
    """
    weights = BYTES * count_parameters(config, heads).total
    activations = activation_memory(config, batch_size=batch_size, length=length, mlm_rate=mlm_rate)
    return TrainingMemory(weights, weights, 2 * weights, activations)


@dataclass(frozen=True)
class ActivationStorage:
    """How activations are stored for the backward pass; by default in fp32 on a CPU."""

    number_bytes: int = BYTES  # per activation under autocast; residual sums and statistics stay fp32
    fuses_dropout: bool = False  # attention with dropout stores no probabilities; dropout masks are 1 byte per value
    recompute: bool = False  # store only each layer's input, and recompute the rest


def activation_memory(
    config: ModelConfig,
    *,
    batch_size: int,
    length: int,
    mlm_rate: float = MLM_RATE,
    storage: ActivationStorage = ActivationStorage(),
) -> int:
    """Bytes stored between forward and backward in MLM pre-training on a batch without padding.

    With `storage.recompute`, the peak: the inputs of all layers, and all activations of one.
    """
    rows, width, embedding_size = config.layer_plan.rows, config.hidden_size, config.embedding_size
    size = storage.number_bytes
    tokens, masked = batch_size * length, round(batch_size * length * mlm_rate)
    read = masked + batch_size  # the last layer computes keys and values everywhere, the rest only here
    *others, last = (_layer_activations(config, layer, length, storage) for layer in range(1, len(rows) + 1))
    per_last_token = size * 2 * width
    if size < BYTES:
        per_last_token += BYTES * width  # the fp32 input to gather from; in fp32 it is the keys' input
    per_last_read = size * width + last - size * 3 * width  # with gathered input; without keys, values, last norm
    if config.is_sparse(len(rows)) and length > config.count_keys(len(rows), length):
        # queries and context are computed everywhere, and only the operations after them at queried positions
        everywhere = size * 2 * width + _attention_statistics(config, len(rows), length, storage)
        per_last_token += everywhere
        per_last_read -= everywhere - size * width
    per_masked = size * (width + 4 * embedding_size)  # gathered states; dense, activation, norm; gradient of the loss
    gradients = size * config.vocab_size * (embedding_size + 1)  # of table and bias, computed with the loss
    ends = tokens * _embedding_activations(config, storage) + masked * per_masked + gradients
    if storage.recompute:
        inputs = tokens * BYTES * width * len(rows)
        return inputs + tokens * max([*others, last]) + ends + _copied_weights(config, storage)
    layers = tokens * sum(others) + tokens * per_last_token + read * per_last_read
    return layers + ends + _copied_weights(config, storage)


def working_memory(
    config: ModelConfig,
    *,
    batch_size: int,
    length: int,
    mlm_rate: float = MLM_RATE,
    storage: ActivationStorage = ActivationStorage(),
) -> int:
    """Temporary bytes besides stored activations: for a layer's backward pass or a chunk of the vocabulary loss."""
    tokens, masked = batch_size * length, round(batch_size * length * mlm_rate)
    # the activation and its slope; gradients of the layer's output, of the sum before it, and of its input
    layer = tokens * storage.number_bytes * (2 * config.ffn_size + 3 * config.hidden_size)
    copied = 0 if storage.number_bytes == BYTES else storage.number_bytes  # cast copies of table and logits
    num_logits = min(masked * config.vocab_size, LOGITS_AT_ONCE)
    table = copied * config.vocab_size * config.embedding_size
    return max(layer, table + num_logits * (BYTES + copied))


def _layer_activations(config: ModelConfig, layer: int, length: int, storage: ActivationStorage) -> int:
    """Bytes per token that one layer, numbered from 1, stores."""
    width, size = config.hidden_size, storage.number_bytes
    multiplied = 3 * width + width + width + width + config.ffn_size  # q, k, v; context; inputs of up and q, k, v; up
    kept = size * multiplied + BYTES * (2 * width + 4)  # residual sums; LayerNorm statistics
    if config.hidden_dropout_rate > 0:
        kept += (1 if storage.fuses_dropout else size) * 2 * width  # two masks
    if config.count_keys(layer, length) < length and config.num_global_tokens:
        kept += size * width  # also the context of local keys alone
    return kept + _attention_statistics(config, layer, length, storage)


def _attention_statistics(config: ModelConfig, layer: int, length: int, storage: ActivationStorage) -> int:
    """Bytes per token stored for softmax: log-sum-exps, and with unfused dropout the probabilities."""
    kept = BYTES * config.num_heads
    is_sparse = config.count_keys(layer, length) < length
    if config.attention_dropout_rate > 0 and (is_sparse or not storage.fuses_dropout):
        # probabilities, mask, product
        kept += storage.number_bytes * 3 * config.num_heads * config.count_keys(layer, length)
    return kept


def _embedding_activations(config: ModelConfig, storage: ActivationStorage) -> int:
    size, width = storage.number_bytes, config.embedding_size
    kept = (BYTES + size) * width + (size * config.hidden_size if config.has_projection else 0)
    return kept + ((1 if storage.fuses_dropout else size) * width if config.hidden_dropout_rate > 0 else 0)


def _copied_weights(config: ModelConfig, storage: ActivationStorage) -> int:
    """Bytes of weight copies: fused query, key and value, and casts to a narrower dtype."""
    plan, width, size = config.layer_plan, config.hidden_size, storage.number_bytes
    if size == BYTES:
        return size * plan.num_attention_blocks * 3 * width * width
    # autocast caches one copy per parameter, but casts fused q, k, v and down at each use
    per_layer = 3 * width * width + width * config.ffn_size
    per_block = plan.num_attention_blocks * width * width + plan.num_ffn_blocks * width * config.ffn_size
    ends = (2 if config.has_projection else 1) * width * config.embedding_size  # projection; the MLM head's dense layer
    return size * (len(plan.rows) * per_layer + per_block + ends)


def _linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


def _norm(width: int) -> int:
    return 2 * width


def _count_conditional_span(config: ModelConfig, _: int) -> int:
    width = config.hidden_size
    end = _linear(2 * width, width) + _norm(width) + _linear(width, 1)
    return _linear(width, 1) + end + _linear(2 * width, width) + width


def _count_classes(config: ModelConfig, num_labels: int) -> int:
    return _linear(config.hidden_size, num_labels)


_HEAD_PARAMETERS: dict[HeadKind, Callable[[ModelConfig, int], int]] = {
    "mlm": lambda c, _: _linear(c.hidden_size, c.embedding_size) + _norm(c.embedding_size) + c.vocab_size,
    "sentence": _count_classes,
    "classification": _count_classes,
    "tokens": _count_classes,
    "span": lambda c, _: _linear(c.hidden_size, 2),
    "conditional_span": _count_conditional_span,
    "choice": lambda c, _: _linear(c.hidden_size, 1),
}
