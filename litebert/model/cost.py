"""What a model weighs and costs, by arithmetic: parameters to the last integer, FLOPs, memory. Builds nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from litebert.model.config import HeadKind, HeadSpec, ModelConfig

MLM_RATE = 0.15  # the share of tokens whose words are predicted, in every recipe of the papers
BYTES = 4  # fp32


@dataclass(frozen=True)
class ParameterCount:
    """Stored parameters by part. `unrolled_layers` counts each layer as often as it is computed."""

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
        """What a model that stored every layer would hold: the count that is computed with."""
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
    """Floating-point operations that one token's forward pass needs in pre-training at a sequence length.

    Matrix multiplies only (two operations a multiply-add), with vocabulary logits at the masked tokens.
    """
    width = config.hidden_size
    layer = 4 * width * width + 2 * width * config.ffn_size + 2 * length * width  # the last: scores and weighted sum
    projection = config.embedding_size * width if config.has_projection else 0
    mlm = width * config.embedding_size + config.embedding_size * config.vocab_size
    pooler = width * width / length if config.has_pooler else 0
    return 2 * (len(config.layer_plan.rows) * layer + projection + mlm_rate * mlm + pooler)


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
    """What pre-training holds at once for a micro-batch of `batch_size` sequences."""
    weights = BYTES * count_parameters(config, heads).total
    activations = activation_memory(config, batch_size=batch_size, length=length, mlm_rate=mlm_rate)
    return TrainingMemory(weights, weights, 2 * weights, activations)


def activation_memory(config: ModelConfig, *, batch_size: int, length: int, mlm_rate: float = MLM_RATE) -> int:
    """Bytes that our model keeps between forward and backward for MLM pre-training of a batch without padding."""
    plan, width, embedding_size = config.layer_plan, config.hidden_size, config.embedding_size
    tokens, masked = batch_size * length, round(batch_size * length * mlm_rate)
    read = masked + batch_size  # the last layer computes keys and values everywhere, the rest for these
    per_token = (len(plan.rows) - 1) * _layer_activations(config, length) + 2 * width + _embedding_activations(config)
    per_read = width + _layer_activations(config, length) - 3 * width  # gathered input; no keys, values, last norm
    per_masked = width + 4 * embedding_size  # gathered; dense, activation, norm; gradient of the vocabulary loss
    gradients = config.vocab_size * (embedding_size + 1)  # the vocabulary loss makes the table's and bias's at once
    fused_weights = plan.num_attention_blocks * 3 * width * width
    return BYTES * (tokens * per_token + read * per_read + masked * per_masked + gradients + fused_weights)


def _layer_activations(config: ModelConfig, length: int) -> int:
    """Floats that one layer keeps for each token."""
    width = config.hidden_size
    attention = 3 * width + width + config.num_heads + 2 * width  # q, k, v; context, its log-sums; residual sum, norm
    ffn = config.ffn_size + 2 * width  # before the activation; residual sum, norm
    kept = attention + ffn + 4  # two LayerNorms' means and deviations
    if config.hidden_dropout_rate > 0:
        kept += 2 * width  # two masks
    if config.attention_dropout_rate > 0:
        kept += 3 * config.num_heads * length  # fused attention has no dropout on a CPU: probabilities, mask, product
    return kept


def _embedding_activations(config: ModelConfig) -> int:
    kept = 2 * config.embedding_size + (config.hidden_size if config.has_projection else 0)
    return kept + (config.embedding_size if config.hidden_dropout_rate > 0 else 0)


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
