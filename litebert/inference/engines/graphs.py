"""The engine interface, and the ONNX graphs of checkpoints and exports with their inputs."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from litebert.checkpoint import Checkpoint
from litebert.core.errors import ConfigError, DataError
from litebert.model.engine import Engine, HeadInputs, HeadName

NEVER = 2**31  # a patience larger than any number of layers
BATCH_TOKENS = 4096  # per batch, padding included: enough for full CPU throughput
BATCH_COST = 48  # overhead of a batch in tokens, measured for torch on two cores
EngineName = Literal["torch", "onnx", "openvino"]


class BatchEngine(Engine, Protocol):
    """An engine with the facts needed to plan its batches."""

    @property
    def name(self) -> EngineName: ...

    @property
    def batch_cost(self) -> int:
        """The overhead of a batch, in tokens."""
        ...

    @property
    def batch_tokens(self) -> int:
        """The maximum tokens per batch, padding included; 1 puts each text into its own batch."""
        ...

    def can_exit(self, head: HeadName) -> bool:
        """Whether this head supports early exit."""
        ...


class Graphs(Protocol):
    """A model as ONNX graphs, one per head."""

    @property
    def max_positions(self) -> int: ...

    @property
    def batch_tokens(self) -> int: ...

    def can_exit(self, head: HeadName) -> bool:
        """Whether there is an early-exit graph of this head."""
        ...

    def has_exits(self, head: HeadName, patience: int) -> bool:
        """Whether the graph for this head and patience has early exits."""
        ...

    def open(self, head: HeadName, *, has_exits: bool) -> AbstractContextManager[Path]:
        """A file with the graph of a head, which exists while the context is open; `has_exits` for early exits.

        A file rather than bytes, because onnxruntime would keep the bytes in memory.
        """
        ...


@dataclass(frozen=True)
class CheckpointGraphs:
    """The graphs of a checkpoint in float, built on demand."""

    checkpoint: Checkpoint
    mask_id: int
    batch_tokens: int = BATCH_TOKENS

    @property
    def max_positions(self) -> int:
        return self.checkpoint.config.max_positions

    def can_exit(self, head: HeadName) -> bool:
        return head == "classification" and self.checkpoint.config.layer_plan.is_one_layer

    def has_exits(self, head: HeadName, patience: int) -> bool:
        return patience > 0 and self.can_exit(head)

    @contextmanager
    def open(self, head: HeadName, *, has_exits: bool) -> Iterator[Path]:
        import onnx

        from litebert.graph.model import build_graph

        weights, config = load_arrays(self.checkpoint), self.checkpoint.config
        pooling = self.checkpoint.embedding_spec.pooling
        # Windows cannot delete files in use; they stay until it cleans its temporary folder
        with TemporaryDirectory(prefix="litebert-", ignore_cleanup_errors=True) as folder:
            file = Path(folder) / "model.onnx"
            model = build_graph(config, weights, head, mask_id=self.mask_id, pooling=pooling, has_exits=has_exits)
            # weights in a file of their own are mapped instead of copied
            onnx.save(model, file, save_as_external_data=True, location="weights")
            del model, weights
            yield file


@dataclass(frozen=True)
class OneGraph:
    """The one graph of an export: a file, or bytes that are not in a file yet."""

    content: Path | bytes
    head: HeadName
    max_positions: int
    is_loop: bool = False  # it takes a patience and supports early exit
    batch_tokens: int = BATCH_TOKENS

    def can_exit(self, head: HeadName) -> bool:
        return self.is_loop and head == self.head

    def has_exits(self, head: HeadName, patience: int) -> bool:
        del patience  # a loop has early exits at every patience
        return self.can_exit(head)

    @contextmanager
    def open(self, head: HeadName, *, has_exits: bool) -> Iterator[Path]:
        del has_exits
        if head != self.head:
            where = self.content.parent if isinstance(self.content, Path) else "this"
            raise ConfigError("no-head", f"{where} is an export of the '{self.head}' head and has no '{head}' head")
        if isinstance(self.content, Path):
            yield self.content
            return
        with TemporaryDirectory(prefix="litebert-") as folder:
            file = Path(folder) / "model.onnx"
            file.write_bytes(self.content)
            yield file


def load_arrays(checkpoint: Checkpoint) -> dict[str, NDArray[np.float32]]:
    """A checkpoint's weights as graphs store them."""
    return {name: tensor.float().numpy() for name, tensor in checkpoint.load_weights().items()}


def to_feeds(
    head: HeadName, inputs: HeadInputs, max_positions: int, *, has_exits: bool = False
) -> dict[str, NDArray[Any]]:
    """The inputs of a head's graph by name."""
    length = inputs.token_ids.shape[1]
    if length > max_positions:
        raise DataError(
            "text-too-long",
            f"a sequence of {length} tokens exceeds the model's {max_positions} positions: shorten the text",
        )
    feeds = {
        "input_ids": inputs.token_ids.numpy(),
        "token_type_ids": inputs.segment_ids.numpy(),
        "attention_mask": inputs.mask.numpy().astype(np.int64),
    }
    if head == "conditional_span":
        assert inputs.allowed is not None, "the start-conditioned head needs the mask of allowed positions"
        feeds["answer_mask"] = inputs.allowed.numpy().astype(np.int64)
    if has_exits:
        feeds["patience"] = np.array(inputs.patience or NEVER)
    return feeds
