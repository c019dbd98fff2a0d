"""Engines by name."""

from litebert.checkpoint import Checkpoint
from litebert.core.runtime import Runtime
from litebert.infer.engines.engine import Engine, EngineName, Graphs
from litebert.infer.engines.threads import count_cores
from litebert.infer.engines.torch_engine import TorchEngine


def build_engine(name: EngineName, checkpoint: Checkpoint, runtime: Runtime, graphs: Graphs, threads: int) -> Engine:
    """The engine of a name; 0 threads are as many as there are cores."""
    if name == "torch":
        return build_torch(checkpoint, runtime)
    # here, because each needs an extra that not everyone has
    if name == "onnx":
        from litebert.infer.engines.onnx_engine import OnnxEngine

        return OnnxEngine(graphs, threads or count_cores())
    from litebert.infer.engines.openvino_engine import OpenVinoEngine

    return OpenVinoEngine(graphs, threads or count_cores())


def build_torch(checkpoint: Checkpoint, runtime: Runtime) -> TorchEngine:
    return TorchEngine(checkpoint.load_model().to(runtime.device).eval(), runtime)
