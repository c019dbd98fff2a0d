"""An engine that can be stopped between two batches, when nobody waits for the answer any more."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from litebert.inference.engines.engine import Engine, EngineName
from litebert.model.reading import ReadHead, ReadInputs


class Interrupted(Exception):
    """The work was given up."""


@dataclass(frozen=True)
class Interruptible:
    """An engine that asks before each batch whether it is still wanted; raises `Interrupted` if not."""

    engine: Engine
    is_wanted: Callable[[], bool]

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
        if not self.is_wanted():
            raise Interrupted
        return self.engine.read(head, inputs)

    def can_exit(self, head: ReadHead) -> bool:
        return self.engine.can_exit(head)
