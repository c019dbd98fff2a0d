"""The OpenVINO engine, the fastest on many Intel processors."""

import sys
from collections.abc import Mapping
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from litebert.core.errors import ConfigError, explain_import
from litebert.core.memory import return_freed_memory
from litebert.inference.engines.graphs import EngineName, Graphs, to_feeds
from litebert.model.engine import HeadInputs, HeadName, output_names

TELEMETRY = "openvino_telemetry"


class OpenVinoEngine:
    """A model's graphs, compiled when a head is first used."""

    name: EngineName = "openvino"
    batch_cost = 8  # on two cores, of ALBERT-base

    def __init__(self, graphs: Graphs, num_threads: int) -> None:
        openvino = import_openvino()
        self._graphs = graphs
        self.batch_tokens = graphs.batch_tokens
        self._core = openvino.Core()
        # keep float32: OpenVINO defaults to bfloat16 on some processors
        self._settings = {
            "INFERENCE_NUM_THREADS": num_threads,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
        }
        self._requests: dict[HeadName, Any] = {}
        self._lock = Lock()  # an inference request serves one caller at a time

    def run(self, head: HeadName, inputs: HeadInputs) -> Mapping[str, Tensor]:
        if self._graphs.has_exits(head, inputs.patience):
            raise ConfigError(
                "unsupported-early-exit",
                "the openvino engine does not support early exit: use the onnx engine",
                option="engine",
            )
        feeds = to_feeds(head, inputs, self._graphs.max_positions)
        with self._lock:
            if head not in self._requests:
                with self._graphs.open(head, has_exits=False) as file:
                    compiled = self._core.compile_model(file, "CPU", self._settings)
                self._requests[head] = compiled.create_infer_request()
                return_freed_memory()  # used for building and loading the graph
            request = self._requests[head]
            request.infer(feeds, share_inputs=True)
            # copies: the next call overwrites these
            return {name: torch.from_numpy(request.get_tensor(name).data.copy()) for name in output_names(head)}

    def can_exit(self, head: HeadName) -> bool:
        del head
        return False


def import_openvino() -> ModuleType:
    """Import OpenVINO without its telemetry."""
    return import_in_silence("openvino")


def import_in_silence(name: str) -> ModuleType:
    """Import a module with the telemetry package hidden, so that it uses its own no-op stub."""
    if name not in sys.modules:
        sys.modules[TELEMETRY] = None  # type: ignore[assignment]
    try:
        return import_module(name)
    except ImportError as error:
        purpose = f"the engine openvino needs {name}"
        raise explain_import(error, purpose=purpose, remedy="pip install 'litebert[openvino]'") from None
    finally:
        if sys.modules.get(TELEMETRY, ...) is None:
            del sys.modules[TELEMETRY]
