"""Keep only the first layers of a model: plain depth truncation, which trades accuracy for speed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from litebert.checkpoint import Checkpoint
from litebert.core.errors import ConfigError, DataError
from litebert.interop.resharing import BLOCK_NAME
from litebert.model.config import ModelConfig
from litebert.text.tokenizer import Tokenizer


def truncate(checkpoint: Checkpoint, num_layers: int) -> Checkpoint:
    """The checkpoint of the first layers; blocks that no layer uses any more are dropped."""
    whole = checkpoint.config
    if not 1 <= num_layers <= whole.num_layers:
        raise ConfigError(
            "out-of-range",
            f"layers = {num_layers}: {checkpoint.path} has {whole.num_layers} layers; choose 1 to {whole.num_layers}",
        )
    if num_layers == whole.num_layers:
        return checkpoint
    return replace(
        checkpoint, config=truncate_config(whole, num_layers), layout=None, foreign=_Cut(checkpoint, num_layers)
    )


def truncate_config(config: ModelConfig, num_layers: int) -> ModelConfig:
    """The configuration of the first layers."""
    if config.sharing in ("groups", "sandwich", "map"):
        rows = config.layer_plan.rows[: num_layers * config.num_inner]
        attention, ffn = (_renumber([row[bank] for row in rows]) for bank in (0, 1))
        renumbered = tuple((attention[row[0]], ffn[row[1]]) for row in rows)
        return replace(config, num_layers=num_layers, sharing="map", num_groups=1, layer_map=renumbered)
    return replace(config, num_layers=num_layers)


def truncate_weights(config: ModelConfig, weights: Mapping[str, Tensor], num_layers: int) -> dict[str, Tensor]:
    """The weights for `truncate_config`."""
    rows = config.layer_plan.rows[: num_layers * config.num_inner]
    numbers = {"attention": _renumber([row[0] for row in rows]), "ffn": _renumber([row[1] for row in rows])}
    kept: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        found = BLOCK_NAME.fullmatch(name)
        if found is None:
            kept[name] = tensor
        elif int(found[2]) in numbers[found[1]]:
            kept[f"encoder.{found[1]}.{numbers[found[1]][int(found[2])]}.{found[3]}"] = tensor
    return kept


def _renumber(blocks: list[int]) -> dict[int, int]:
    """The blocks still in use -> their new numbers, without gaps."""
    return {block: number for number, block in enumerate(dict.fromkeys(blocks))}


@dataclass(frozen=True)
class _Cut:
    """The files behind a truncated checkpoint: those of the original."""

    whole: Checkpoint
    num_layers: int

    @property
    def tokenizer_path(self) -> Path | None:
        return self.whole.tokenizer_path

    @property
    def weight_files(self) -> tuple[Path, ...]:
        raise DataError(
            "truncated-model",
            f"{self.whole.path} was truncated to {self.num_layers} layers: convert it first, then train the result",
        )

    def load_weights(self) -> dict[str, Tensor]:
        return truncate_weights(self.whole.config, self.whole.load_weights(), self.num_layers)

    def load_optimizer(self) -> dict[str, Tensor]:
        raise DataError(
            "truncated-model",
            f"{self.whole.path} was truncated to {self.num_layers} layers: its optimizer state is the full model's",
        )

    def load_tokenizer(self) -> Tokenizer:
        return self.whole.load_tokenizer()
