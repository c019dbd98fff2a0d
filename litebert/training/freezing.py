"""Freezing: train all parameters, only the head, or the head and the last layers."""

from litebert.core.errors import ConfigError
from litebert.model.model import Model
from litebert.model.sharing import LayerPlan


def check_last_layers(plan: LayerPlan, num_last_layers: int | None) -> None:
    """Raise if the model has fewer layers, or if earlier layers share the weights of the last ones."""
    if num_last_layers is None:
        return
    rows = plan.rows
    if num_last_layers > len(rows):
        raise ConfigError(
            "too-many-layers",
            f"train.trainable = 'last-{num_last_layers}', but the model has {len(rows)} layers; use 'all'",
        )
    first = len(rows) - num_last_layers
    for side in (0, 1):
        if {row[side] for row in rows[:first]} & {row[side] for row in rows[first:]}:
            raise ConfigError(
                "layers-shared",
                f"train.trainable = 'last-{num_last_layers}': these layers share their weights with earlier layers; "
                "use 'all' or 'head'",
            )


def freeze(model: Model, num_last_layers: int | None) -> None:
    """Train only the last layers, the pooler and the heads; None trains everything."""
    if num_last_layers is None:
        return
    encoder = model.encoder
    check_last_layers(encoder.plan, num_last_layers)
    rows = encoder.plan.rows
    encoder.requires_grad_(False)
    for attention_index, ffn_index in rows[len(rows) - num_last_layers :]:
        encoder.attention[attention_index].requires_grad_(True)
        encoder.ffn[ffn_index].requires_grad_(True)
    if encoder.pooler is not None:
        encoder.pooler.requires_grad_(True)
