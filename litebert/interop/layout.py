"""Convert tensors to the Hugging Face layout and back: names, and the few tensors that only one side has."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from litebert.core.errors import DataError
from litebert.interop.names import POSITIONS, ROBERTA_DEAD_ROWS, Family, name_table
from litebert.model.config import HeadSpec, ModelConfig

_PROJECTION = "albert.encoder.embedding_hidden_mapping_in"


def to_theirs(
    family: Family, config: ModelConfig, heads: Sequence[HeadSpec], tensors: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Our tensors under their names, plus those that only their class has."""
    renamed = {theirs: tensors[ours] for ours, theirs in name_table(family, config, heads).items()}
    if family == "albert" and not config.has_projection:  # their identity projection is the same as our having none
        renamed[f"{_PROJECTION}.weight"] = torch.eye(config.hidden_size)
        renamed[f"{_PROJECTION}.bias"] = torch.zeros(config.hidden_size)
    if family == "roberta":
        name = name_table(family, config, heads)[POSITIONS]
        dead = torch.zeros(ROBERTA_DEAD_ROWS, config.embedding_size, dtype=renamed[name].dtype)
        renamed[name] = torch.cat([dead, renamed[name]])
    return renamed


def from_theirs(
    family: Family, config: ModelConfig, heads: Sequence[HeadSpec], tensors: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Their tensors under our names; missing and unexpected tensors are errors."""
    left = dict(tensors)
    ours: dict[str, Tensor] = {}
    missing = []
    for our_name, their_name in name_table(family, config, heads).items():
        if their_name in left:
            ours[our_name] = left.pop(their_name)
        else:
            missing.append(their_name)
    if family == "albert" and not config.has_projection:
        weight, bias = left.pop(f"{_PROJECTION}.weight", None), left.pop(f"{_PROJECTION}.bias", None)
        if weight is None or bias is None:
            missing.append(_PROJECTION)
        elif not torch.equal(weight, torch.eye(config.hidden_size, dtype=weight.dtype)) or bool(bias.any()):
            raise DataError(
                "tensors-mismatch", f"{_PROJECTION} is not the identity, but the configuration has no projection"
            )
    if missing or left:
        raise DataError(
            "tensors-mismatch",
            f"tensors missing: {', '.join(missing) or 'none'}; unexpected: {', '.join(left) or 'none'}",
        )
    if family == "roberta":
        ours[POSITIONS] = ours[POSITIONS][ROBERTA_DEAD_ROWS:]
    return ours
