"""The contract of an objective: its heads, the loss of a micro-batch, its metrics, and what a step costs.

The training loop, `plan`, the studies and the demo know an objective only through this class. A new one is a subclass
in a file of its own, registered under a name that recipes use.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

import torch

from litebert.batches.batch import Batch
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.cost import training_flops_per_token
from litebert.model.model import Model, build_model
from litebert.tasks.task import BatchLoss, Counts

if TYPE_CHECKING:
    from litebert.pretraining.recipe import Recipe


class Objective(ABC):
    """A pre-training objective, computed from batches of text."""

    shown: tuple[str, ...] = ("loss",)  # the metrics that the terminal shows, where `summarize` gives them

    @classmethod
    @abstractmethod
    def from_recipe(cls, recipe: "Recipe") -> Self:
        """The objective with a recipe's options."""

    @property
    @abstractmethod
    def heads(self) -> tuple[HeadSpec, ...]:
        """The heads that the loss uses."""

    @property
    def reads_pooler(self) -> bool:
        """Whether the loss reads the pooler; otherwise it is not trained: processes would wait for its gradient."""
        return False

    @property
    def vocabulary_rate(self) -> float:
        """The share of tokens for which logits of the whole vocabulary are computed."""
        return 0.0

    @abstractmethod
    def count(self, batch: Batch) -> dict[str, int]:
        """The micro-batch's share of the counts that losses are divided by; `tokens` is one of them."""

    @abstractmethod
    def loss(self, model: Model, batch: Batch, totals: Counts) -> BatchLoss:
        """The micro-batch's share of the loss of a batch with counts `totals`; `loss` is one of its sums."""

    @abstractmethod
    def summarize(self, sums: Mapping[str, float], totals: Counts) -> dict[str, float]:
        """The metrics of a batch, or of several."""

    def find_at_chance(self, metrics: Mapping[str, float], batches: Sequence[Batch]) -> dict[str, str]:  # noqa: ARG002
        """The heads that learned nothing, by their `metrics` on these batches, each with a warning for the user."""
        return {}

    def batch_loss(self, model: Model, batch: Batch) -> BatchLoss:
        """The loss of a batch that is computed at once."""
        return self.loss(model, batch, self.count(batch))

    def build_model(self, config: ModelConfig, *, seed: int = 0, device: str | torch.device = "cpu") -> Model:
        """A newly initialized model with the heads of this objective; a pooler that it does not read is frozen."""
        model = build_model(config, self.heads, seed=seed, device=device)
        if model.encoder.pooler is not None:
            model.encoder.pooler.requires_grad_(self.reads_pooler)
        return model

    def flops_per_token(self, config: ModelConfig, length: int, *, step: int = 0) -> float:  # noqa: ARG002
        """Floating-point operations that a token costs in training; what a step does may depend on its number."""
        return training_flops_per_token(config, length, mlm_rate=self.vocabulary_rate)
