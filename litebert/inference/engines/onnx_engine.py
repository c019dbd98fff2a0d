"""The onnxruntime engine."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from litebert.core.errors import explain_import
from litebert.core.memory import return_freed_memory
from litebert.inference.engines.graphs import EngineName, Graphs, to_feeds
from litebert.model.engine import HeadInputs, HeadName, output_names

try:
    import onnxruntime
except ImportError as error:
    purpose = "the engine onnx needs onnxruntime"
    raise explain_import(error, purpose=purpose, remedy="pip install 'litebert[export]'") from None

ERRORS_ONLY = 3


class OnnxEngine:
    """onnxruntime sessions of a model's graphs, opened when a head is first used."""

    name: EngineName = "onnx"
    batch_cost = 8  # on two cores, of ALBERT-base

    def __init__(self, graphs: Graphs, num_threads: int) -> None:
        self._graphs = graphs
        self.batch_tokens = graphs.batch_tokens
        self._options = onnxruntime.SessionOptions()
        self._options.intra_op_num_threads = num_threads
        self._options.log_severity_level = ERRORS_ONLY
        self._sessions: dict[tuple[HeadName, bool], Any] = {}

    def run(self, head: HeadName, inputs: HeadInputs) -> Mapping[str, Tensor]:
        has_exits = self._graphs.has_exits(head, inputs.patience)
        assert has_exits or not inputs.patience, f"{head} does not support early exit"
        if (head, has_exits) not in self._sessions:
            with self._graphs.open(head, has_exits=has_exits) as file:
                self._sessions[head, has_exits] = onnxruntime.InferenceSession(
                    file, self._options, providers=["CPUExecutionProvider"]
                )
            return_freed_memory()  # building and loading the graph takes more memory than the model itself
        names = output_names(head, has_exits=has_exits)
        feeds = to_feeds(head, inputs, self._graphs.max_positions, has_exits=has_exits)
        values = self._sessions[head, has_exits].run(names, feeds)
        return {name: torch.from_numpy(value) for name, value in zip(names, values, strict=True)}

    def can_exit(self, head: HeadName) -> bool:
        return self._graphs.can_exit(head)
