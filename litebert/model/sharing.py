"""Sharing as a table: the attention block and the feed-forward block that each layer uses.

Every strategy of the paper fills that table in its own way; the encoder only reads it.
"""

from typing import Literal, NamedTuple

from litebert.core.errors import ConfigError

Sharing = Literal["all", "attention", "ffn", "none", "groups", "sandwich", "map"]


class LayerPlan(NamedTuple):
    """Rows of (attention block, feed-forward block), one per layer that is computed."""

    rows: tuple[tuple[int, int], ...]

    @property
    def is_one_layer(self) -> bool:
        """Whether all layers are the same layer, so that a loop can compute them."""
        return set(self.rows) == {(0, 0)}

    @property
    def num_attention_blocks(self) -> int:
        return 1 + max(attention for attention, _ in self.rows)

    @property
    def num_ffn_blocks(self) -> int:
        return 1 + max(ffn for _, ffn in self.rows)


def plan_layers(
    num_layers: int,
    sharing: Sharing,
    *,
    num_groups: int = 1,
    num_inner: int = 1,
    layer_map: tuple[tuple[int, int], ...] = (),
) -> LayerPlan:
    """The table for a strategy; with `num_inner` blocks per layer it has num_layers * num_inner rows."""
    _check_fit(num_layers, sharing, num_groups, num_inner, layer_map)
    if sharing == "map":
        return LayerPlan(layer_map)
    if sharing == "sandwich":  # Subformer (Reid et al., 2021): only the layers between the first and the last share
        groups = [0, *[1] * (num_layers - 2), 2]
        blocks = [group * num_inner + inner for group in groups for inner in range(num_inner)]
        return LayerPlan(tuple((block, block) for block in blocks))
    num_attention_groups = {"all": 1, "attention": 1, "groups": num_groups}.get(sharing, num_layers)
    num_ffn_groups = {"all": 1, "ffn": 1, "groups": num_groups}.get(sharing, num_layers)
    return LayerPlan(
        tuple(
            (
                group_of(layer, num_layers, num_attention_groups) * num_inner + inner,
                group_of(layer, num_layers, num_ffn_groups) * num_inner + inner,
            )
            for layer in range(num_layers)
            for inner in range(num_inner)
        )
    )


def group_of(layer: int, num_layers: int, num_groups: int) -> int:
    """The group of a layer. In integers: the published floating-point forms are off by one, as at L = G = 22."""
    return layer * num_groups // num_layers


def _check_fit(
    num_layers: int, sharing: Sharing, num_groups: int, num_inner: int, layer_map: tuple[tuple[int, int], ...]
) -> None:
    if sharing != "groups" and num_groups != 1:
        raise ConfigError(
            "conflicting-keys",
            f"num_groups = {num_groups} is read only with sharing = 'groups', but sharing = '{sharing}'",
        )
    if num_groups > num_layers:
        raise ConfigError(
            "conflicting-keys",
            f"num_groups = {num_groups} is more than num_layers = {num_layers}: some group is never used",
        )
    if sharing == "sandwich" and num_layers < 3:
        raise ConfigError(
            "conflicting-keys",
            "sharing = 'sandwich' has a first layer, shared layers and a last layer: num_layers must be at least 3, "
            f"got {num_layers}",
        )
    if sharing != "map":
        if layer_map:
            raise ConfigError(
                "conflicting-keys", f"layer_map is read only with sharing = 'map', but sharing = '{sharing}'"
            )
        return
    if len(layer_map) != num_layers * num_inner:
        raise ConfigError(
            "bad-layer-map",
            f"layer_map has {len(layer_map)} rows, but num_layers * num_inner = {num_layers * num_inner}: a row each",
        )
    for name, used in (("attention", {row[0] for row in layer_map}), ("ffn", {row[1] for row in layer_map})):
        if used != set(range(len(used))):
            raise ConfigError(
                "bad-layer-map",
                f"layer_map uses {name} blocks {sorted(used)}: number them 0 to {len(used) - 1} without a gap",
            )
