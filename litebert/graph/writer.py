"""GraphWriter: nodes in the order they are computed, and the tensors they read, each stored once.

Tracing a model and undoing what the tracer does (copying shared weights, transposing, renaming) is more work than
writing the few operations of an encoder, and it hides weights from quantizers.
"""

import itertools
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from litebert.core.errors import explain_import

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    raise explain_import(error, purpose="exporting needs onnx", remedy="pip install 'litebert[export]'") from None

OPSET = 20  # the first with Gelu
IR_VERSION = 10  # matches that opset; older runtimes reject newer files
MICROSOFT = "com.microsoft"  # the domain of onnxruntime's own operations
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Shape = Sequence[str | int]  # a name is a size that may vary between calls


class GraphWriter:
    """One graph, or the body of a loop, which can use the names of the enclosing graph."""

    def __init__(self, around: Self | None = None) -> None:
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        # A body stores no tensors of its own: they are stored once, in the enclosing graph.
        self._stored: dict[str, Any] = around._stored if around else {}
        self._domains: set[str] = around._domains if around else set()  # of operations that are not ONNX's own
        self._numbers: itertools.count[int] = around._numbers if around else itertools.count()

    def open_body(self) -> Self:
        """The body of a loop, to be written and then passed to `call_many`."""
        return type(self)(self)

    def add_input(self, name: str, kind: int, shape: Shape) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def add_output(self, value: str, name: str, kind: int, shape: Shape) -> None:
        """Make a value an output of the graph under a name."""
        self._nodes.append(helper.make_node("Identity", [value], [name], name=f"give {name}"))
        self._outputs.append(helper.make_tensor_value_info(name, kind, list(shape)))

    def store(self, name: str, values: NDArray[Any]) -> str:
        """Store a tensor unless one of this name is stored already; returns the name."""
        if name not in self._stored:
            # asarray: ascontiguousarray would turn a scalar into a vector
            self._stored[name] = numpy_helper.from_array(np.asarray(values, order="C"), name)
        return name

    def has(self, name: str) -> bool:
        """Whether a tensor of this name is stored."""
        return name in self._stored

    def number(self, value: float) -> str:
        return self.store(f"number {value!r}", np.array(value, dtype=np.float32))

    def integers(self, *values: int) -> str:
        """A short list of integers, such as axes and shapes."""
        return self.store(f"integers {' '.join(map(str, values))}", np.array(values, dtype=np.int64))

    def integer(self, value: int) -> str:
        return self.store(f"integer {value}", np.array(value, dtype=np.int64))

    def call(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation with one output; returns its name."""
        (output,) = self.call_many(kind, *inputs, count=1, **attributes)
        return output

    def call_many(self, kind: str, *inputs: str, count: int, **attributes: Any) -> list[str]:
        """Add an operation with `count` outputs; returns their names."""
        number = next(self._numbers)
        if "domain" in attributes:
            self._domains.add(attributes["domain"])
        outputs = [f"{kind} {number}.{index}" if count > 1 else f"{kind} {number}" for index in range(count)]
        bodies = {name: value._to_graph(name) for name, value in attributes.items() if isinstance(value, GraphWriter)}
        node = helper.make_node(kind, list(inputs), outputs, name=f"{kind} {number}", **(attributes | bodies))
        self._nodes.append(node)
        return outputs

    def to_model(self, facts: dict[str, str]) -> Any:
        """The finished model, checked, with `facts` as its metadata."""
        graph = self._to_graph("litebert")
        graph.initializer.extend(self._stored.values())
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET), *(helper.make_opsetid(name, 1) for name in self._domains)],
            ir_version=IR_VERSION,
            producer_name="litebert",
        )
        helper.set_model_props(model, facts)
        onnx.checker.check_model(model)
        return model

    def _to_graph(self, name: str) -> Any:
        return helper.make_graph(self._nodes, name, self._inputs, self._outputs)
