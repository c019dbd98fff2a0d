"""The same weights with other layer sharing: unrolled (exactly equivalent) or averaged (only an initialization)."""

import re
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from litebert.core.errors import ConfigError
from litebert.model.config import ModelConfig

BLOCK_NAME = re.compile(r"encoder\.(attention|ffn)\.(\d+)\.(.+)")


def unroll_config(config: ModelConfig) -> ModelConfig:
    """The configuration of the same model in which each layer has its own block."""
    num_layers = len(config.layer_plan.rows)
    return replace(config, num_layers=num_layers, sharing="none", num_groups=1, num_inner=1, layer_map=())


def unroll_weights(config: ModelConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights for `unroll_config`: each layer gets a copy of the blocks it uses. The function is identical."""
    unrolled = {name: tensor for name, tensor in weights.items() if not BLOCK_NAME.fullmatch(name)}
    for name, tensor in weights.items():
        found = BLOCK_NAME.fullmatch(name)
        if found is None:
            continue
        bank, block, leaf = found[1], int(found[2]), found[3]
        for layer, row in enumerate(config.layer_plan.rows):
            if row[bank == "ffn"] == block:
                unrolled[f"encoder.{bank}.{layer}.{leaf}"] = tensor.clone()
    return unrolled


def average_config(config: ModelConfig) -> ModelConfig:
    """The configuration of a model of the same depth that shares one block."""
    num_layers = len(config.layer_plan.rows)
    return replace(config, num_layers=num_layers, sharing="all", num_groups=1, num_inner=1, layer_map=())


def average_weights(config: ModelConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights for `average_config`: the mean over all layers. An initialization, not an equivalent model."""
    unrolled = unroll_weights(config, weights)
    num_layers = len(config.layer_plan.rows)
    averaged = {name: tensor for name, tensor in unrolled.items() if not BLOCK_NAME.fullmatch(name)}
    for name in unrolled:
        found = BLOCK_NAME.fullmatch(name)
        if found is not None and found[2] == "0":
            layers = [unrolled[f"encoder.{found[1]}.{layer}.{found[3]}"] for layer in range(num_layers)]
            averaged[name] = torch.stack(layers).mean(0)
    return averaged


def check_reshares(sharing: str) -> None:
    """Raise unless the sharing is one of the two extremes, the only ones that every model can be converted to."""
    if sharing not in ("none", "all"):
        raise ConfigError(
            "unsupported-sharing",
            f"sharing = '{sharing}': only none (exact) and all (by averaging) are supported",
        )
