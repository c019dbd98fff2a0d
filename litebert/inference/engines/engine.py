"""The interface of engines, where their graphs come from, and what they are fed with."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from litebert.checkpoint import Checkpoint
from litebert.core.errors import ConfigError, DataError
from litebert.inference.outputs import BATCH_TOKENS
from litebert.model.reading import ReadHead, ReadInputs

NEVER = 2**31  # a patience that no model has layers for
EngineName = Literal["torch", "onnx", "openvino"]


class Engine(Protocol):
    """A model in evaluation mode, however it is computed."""

    @property
    def name(self) -> EngineName: ...

    @property
    def batch_cost(self) -> int:
        """How many tokens it computes, about, in the time that one batch more takes."""
        ...

    @property
    def batch_tokens(self) -> int:
        """How many tokens a batch may have, padding included; 1 puts each text into a batch of its own."""
        ...

    def read(self, head: ReadHead, inputs: ReadInputs) -> Mapping[str, Tensor]:
        """The outputs of a head, as `Reader.read` describes them."""
        ...

    def can_exit(self, head: ReadHead) -> bool:
        """Whether this head can be asked with a patience."""
        ...


class Graphs(Protocol):
    """A model as ONNX graphs, one for each head that is asked for."""

    @property
    def max_positions(self) -> int: ...

    @property
    def batch_tokens(self) -> int: ...

    def can_exit(self, head: ReadHead) -> bool:
        """Whether there is a graph of this head that may answer early."""
        ...

    def has_exits(self, head: ReadHead, patience: int) -> bool:
        """Whether the graph for this head and patience is one that may answer early."""
        ...

    def open(self, head: ReadHead, *, has_exits: bool) -> AbstractContextManager[Path]:
        """A file with the graph of a head, for as long as it is read; `has_exits`: of one that may answer early.

        A file and not its bytes: onnxruntime would keep those beside what it makes of them.
        """
        ...


@dataclass(frozen=True)
class CheckpointGraphs:
    """The graphs of a checkpoint, written when they are asked for; in float, as the checkpoint is."""

    checkpoint: Checkpoint
    mask_id: int
    batch_tokens: int = BATCH_TOKENS

    @property
    def max_positions(self) -> int:
        return self.checkpoint.config.max_positions

    def can_exit(self, head: ReadHead) -> bool:
        return head == "classification" and self.checkpoint.config.layer_plan.is_one_layer

    def has_exits(self, head: ReadHead, patience: int) -> bool:
        return patience > 0 and self.can_exit(head)

    @contextmanager
    def open(self, head: ReadHead, *, has_exits: bool) -> Iterator[Path]:
        # where files in use cannot be deleted, they are left to the system
        with TemporaryDirectory(prefix="litebert-", ignore_cleanup_errors=True) as folder:
            file = Path(folder) / "model.onnx"
            self._write(file, head, has_exits=has_exits)
            yield file

    def _write(self, file: Path, head: ReadHead, *, has_exits: bool) -> None:
        import onnx

        from litebert.graph.model import build_graph

        weights, config = load_arrays(self.checkpoint), self.checkpoint.config
        pooling = self.checkpoint.embedding_spec.pooling
        model = build_graph(config, weights, head, mask_id=self.mask_id, pooling=pooling, has_exits=has_exits)
        # weights of their own file are mapped, and not copied
        onnx.save(model, file, save_as_external_data=True, location="weights")


@dataclass(frozen=True)
class ExportedGraph:
    """The one graph of an export."""

    file: Path
    head: ReadHead
    max_positions: int
    is_loop: bool  # it takes a patience, and may answer before its last layer
    batch_tokens: int = BATCH_TOKENS

    def can_exit(self, head: ReadHead) -> bool:
        return self.is_loop and head == self.head

    def has_exits(self, head: ReadHead, patience: int) -> bool:
        del patience  # it is what it is
        return self.can_exit(head)

    @contextmanager
    def open(self, head: ReadHead, *, has_exits: bool) -> Iterator[Path]:
        del has_exits
        if head != self.head:
            raise ConfigError(
                f"{self.file.parent} is an export of the head '{self.head}' and cannot answer as '{head}'"
            )
        yield self.file


@dataclass(frozen=True)
class MemoryGraph:
    """A graph that lies in no file."""

    content: bytes
    head: ReadHead
    max_positions: int
    is_loop: bool = False
    batch_tokens: int = BATCH_TOKENS

    def can_exit(self, head: ReadHead) -> bool:
        return self.is_loop and head == self.head

    def has_exits(self, head: ReadHead, patience: int) -> bool:
        del patience
        return self.can_exit(head)

    @contextmanager
    def open(self, head: ReadHead, *, has_exits: bool) -> Iterator[Path]:
        assert (head, has_exits) == (self.head, self.is_loop), (head, has_exits)
        with TemporaryDirectory(prefix="litebert-") as folder:
            file = Path(folder) / "model.onnx"
            file.write_bytes(self.content)
            yield file


def load_arrays(checkpoint: Checkpoint) -> dict[str, NDArray[np.float32]]:
    """A checkpoint's weights as graphs store them."""
    return {name: tensor.float().numpy() for name, tensor in checkpoint.load_weights().items()}


def to_feeds(
    head: ReadHead, inputs: ReadInputs, max_positions: int, *, has_exits: bool = False
) -> dict[str, NDArray[Any]]:
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
    if has_exits:
        feeds["patience"] = np.array(inputs.patience or NEVER)
    return feeds
