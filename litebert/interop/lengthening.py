"""Adapt a model to longer texts without training: more positions, and attention of lower cost."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from litebert.core.errors import ConfigError
from litebert.model.config import Attention, ModelConfig
from litebert.model.positions import NewPositions, extend_positions

_POSITIONS = "encoder.embeddings.position.weight"


@dataclass(frozen=True)
class Lengthening:
    """The changes that a conversion makes for longer texts; none by default."""

    max_positions: int = 0  # 0: unchanged
    new_positions: NewPositions = "continued"
    attention: Attention | None = None  # None: unchanged
    attention_width: int = 0  # 0: unchanged

    @property
    def is_some(self) -> bool:
        return bool(self.max_positions or self.attention or self.attention_width)

    def change_config(self, config: ModelConfig) -> ModelConfig:
        """The configuration of the changed model."""
        if self.max_positions and self.max_positions < config.max_positions:
            raise ConfigError(
                "out-of-range",
                f"max_positions = {self.max_positions}: the model has {config.max_positions} already; choose more",
            )
        changes: dict[str, Any] = {"max_positions": self.max_positions or config.max_positions}
        attention = self.attention or config.attention
        if attention == "full" and config.attention != "full":
            changes |= {"attention_width": 128, "num_global_tokens": 1, "full_attention_every": 0}  # the defaults
        if self.attention_width:
            changes["attention_width"] = self.attention_width
        return replace(config, attention=attention, **changes)

    def change_weights(self, weights: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
        """The weights for `change_config(config)`."""
        extended = extend_positions(weights[_POSITIONS], self.max_positions or config.max_positions, self.new_positions)
        return {**weights, _POSITIONS: extended}

    def notes(self, config: ModelConfig) -> tuple[str, ...]:
        """Notes for the user of the changed model."""
        changed, notes = self.change_config(config), []
        if changed.max_positions > config.max_positions:
            notes.append(
                f"positions {config.max_positions:,} to {changed.max_positions - 1:,} are {self.new_positions} from "
                "those before them, and untrained: train the model on long text before relying on them"
            )
        if changed.attention != config.attention:
            notes.append(
                f"attention is {changed.attention} instead of {config.attention}: texts longer than the width are "
                "computed in another way than in training"
            )
        return tuple(notes)
