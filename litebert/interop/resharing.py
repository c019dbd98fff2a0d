"""The same weights under another table of sharing: written out layer by layer (exact), or averaged (not)."""

import re
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from litebert.core.errors import ConfigError
from litebert.model.config import ModelConfig

BLOCK_NAME = re.compile(r"encoder\.(attention|ffn)\.(\d+)\.(.+)")


def unroll_config(config: ModelConfig) -> ModelConfig:
    """The configuration of the same model with a block of its own for each layer."""
    num_layers = len(config.layer_plan.rows)
    return replace(config, num_layers=num_layers, sharing="none", num_groups=1, num_inner=1, layer_map=())


def unroll_weights(config: ModelConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights for `unroll_config`: each layer's own copy of the blocks that it uses. The same function, exactly."""
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
    """The configuration of a model that shares one block over as many layers."""
    num_layers = len(config.layer_plan.rows)
    return replace(config, num_layers=num_layers, sharing="all", num_groups=1, num_inner=1, layer_map=())


def average_weights(config: ModelConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights for `average_config`: the mean of what the layers use. An initialisation, and not the same model."""
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
    """Only the two ends of sharing can be reached from any model."""
    if sharing not in ("none", "all"):
        raise ConfigError(
            "unsupported-sharing",
            f"sharing = '{sharing}': only none (exact) and all (by averaging) are supported",
        )
