"""Engines by name."""

from dataclasses import dataclass

from litebert.checkpoint import Checkpoint
from litebert.core.runtime import Runtime
from litebert.inference.engines.engine import Engine, EngineName, Graphs
from litebert.inference.engines.torch_engine import TorchEngine


@dataclass(frozen=True)
class EngineBuilder:
    """What engines of a model are built from."""

    checkpoint: Checkpoint
    runtime: Runtime
    graphs: Graphs
    num_threads: int

    def build(self, name: EngineName) -> Engine:
        if name == "torch":
            return build_torch(self.checkpoint, self.runtime)
        # here, because each needs an extra that not everyone has
        if name == "onnx":
            from litebert.inference.engines.onnx_engine import OnnxEngine

            return OnnxEngine(self.graphs, self.num_threads)
        from litebert.inference.engines.openvino_engine import OpenVinoEngine

        return OpenVinoEngine(self.graphs, self.num_threads)


def build_torch(checkpoint: Checkpoint, runtime: Runtime) -> TorchEngine:
    return TorchEngine(checkpoint.load_model().to(runtime.device).eval(), runtime)
