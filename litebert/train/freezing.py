"""Which parameters learn: all, the head alone, or the last layers with it."""

from litebert.core.errors import ConfigError
from litebert.model.model import Model


def freeze(model: Model, num_last_layers: int | None) -> None:
    """Let the last layers, the pooler and the heads learn, and nothing else; None: everything learns."""
    if num_last_layers is None:
        return
    encoder = model.encoder
    rows = encoder.plan.rows
    if num_last_layers > len(rows):
        raise ConfigError(
            f"train.trainable = 'last-{num_last_layers}', but the model has {len(rows)} layers; write all"
        )
    first = len(rows) - num_last_layers
    _check_not_shared(rows[:first], rows[first:], num_last_layers)
    encoder.requires_grad_(False)
    for attention_index, ffn_index in rows[first:]:
        encoder.attention[attention_index].requires_grad_(True)
        encoder.ffn[ffn_index].requires_grad_(True)
    if encoder.pooler is not None:
        encoder.pooler.requires_grad_(True)


def _check_not_shared(frozen: tuple[tuple[int, int], ...], learning: tuple[tuple[int, int], ...], number: int) -> None:
    for side in (0, 1):
        if {row[side] for row in frozen} & {row[side] for row in learning}:
            raise ConfigError(
                f"train.trainable = 'last-{number}': the layers before use the same weights (the model shares them); "
                f"choose all or head"
            )
