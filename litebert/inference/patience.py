"""An engine with patience: it answers texts whose answer has settled before the last layer."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from litebert.inference.engines.engine import Engine, EngineName
from litebert.model.reading import ReadHead, ReadInputs


@dataclass(frozen=True)
class Patient:
    """An engine that is asked with a patience."""

    engine: Engine
    patience: int

    @property
    def name(self) -> EngineName:
        return self.engine.name

    @property
    def batch_cost(self) -> int:
        return self.engine.batch_cost

    @property
    def batch_tokens(self) -> int:
        return self.engine.batch_tokens

    def read(self, head: ReadHead, inputs: ReadInputs) -> Mapping[str, Tensor]:
        return self.engine.read(head, inputs._replace(patience=self.patience))

    def can_exit(self, head: ReadHead) -> bool:
        return self.engine.can_exit(head)
