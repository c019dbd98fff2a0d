"""The interface of engines, where their graphs come from, and what they are fed with."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from litebert.checkpoint import Checkpoint
from litebert.core.errors import ConfigError, DataError
from litebert.model.reading import ReadHead, ReadInputs

NEVER = 2**31  # a patience that no model has layers for
EngineName = Literal["torch", "onnx", "openvino"]


class Engine(Protocol):
    """A model in evaluation mode, however it is computed."""

    @property
    def name(self) -> EngineName: ...

    def read(self, head: ReadHead, inputs: ReadInputs) -> Mapping[str, Tensor]:
        """The outputs of a head, as `Reader.read` describes them."""
        ...


class Graphs(Protocol):
    """A model as ONNX graphs, one for each head that is asked for."""

    @property
    def max_positions(self) -> int: ...

    def load(self, head: ReadHead, *, exits: bool) -> bytes:
        """The graph of a head; `exits`: of one that may answer early."""
        ...

    def has_exits(self, head: ReadHead, patience: int) -> bool:
        """Whether the graph for this head and patience is one that may answer early."""
        ...


@dataclass(frozen=True)
class CheckpointGraphs:
    """The graphs of a checkpoint, written when they are asked for; in float, as the checkpoint is."""

    checkpoint: Checkpoint
    mask_id: int

    @property
    def max_positions(self) -> int:
        return self.checkpoint.config.max_positions

    def load(self, head: ReadHead, *, exits: bool) -> bytes:
        from litebert.graph.model import build_graph

        weights = {name: tensor.float().numpy() for name, tensor in self.checkpoint.load_weights().items()}
        model = build_graph(self.checkpoint.config, weights, head, mask_id=self.mask_id, exits=exits)
        content: bytes = model.SerializeToString()
        return content

    def has_exits(self, head: ReadHead, patience: int) -> bool:
        return head == "classification" and patience > 0


@dataclass(frozen=True)
class ExportedGraph:
    """The one graph of an export."""

    file: Path
    head: ReadHead
    max_positions: int
    exits: bool

    def load(self, head: ReadHead, *, exits: bool) -> bytes:
        del exits  # it is what it is
        if head != self.head:
            raise ConfigError(
                f"{self.file.parent} is an export of the head '{self.head}' and cannot answer as '{head}'"
            )
        return self.file.read_bytes()

    def has_exits(self, head: ReadHead, patience: int) -> bool:
        del head, patience
        return self.exits


@dataclass(frozen=True)
class MemoryGraph:
    """A graph that lies in no file."""

    content: bytes
    head: ReadHead
    max_positions: int
    exits: bool = False

    def load(self, head: ReadHead, *, exits: bool) -> bytes:
        assert (head, exits) == (self.head, self.exits), (head, exits)
        return self.content

    def has_exits(self, head: ReadHead, patience: int) -> bool:
        del head, patience
        return self.exits


def to_feeds(head: ReadHead, inputs: ReadInputs, max_positions: int, *, exits: bool = False) -> dict[str, NDArray[Any]]:
    """The inputs of a head's graph by name."""
    length = inputs.token_ids.shape[1]
    if length > max_positions:
        raise DataError(f"a sequence of {length} tokens does not fit the model's {max_positions} positions: shorten it")
    feeds = {
        "input_ids": inputs.token_ids.numpy(),
        "token_type_ids": inputs.segment_ids.numpy(),
        "attention_mask": inputs.mask.numpy().astype(np.int64),
    }
    if head == "conditional_span":
        assert inputs.allowed is not None, "the start-conditioned head must know where an answer may lie"
        feeds["answer_mask"] = inputs.allowed.numpy().astype(np.int64)
    if exits:
        feeds["patience"] = np.array(inputs.patience or NEVER)
    return feeds
