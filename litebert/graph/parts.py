"""The building blocks of model graphs: linear maps, LayerNorm, activation, token embeddings."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from litebert.graph.precision import (
    CENTRED,
    LARGEST_INPUT,
    TABLE_ZERO,
    FloatArray,
    Precision,
    quantize_columns,
    quantize_rows,
)
from litebert.graph.writer import FLOAT, MICROSOFT, GraphWriter
from litebert.model.config import ModelConfig

TOKENS = "embeddings.token"


@dataclass(frozen=True)
class Parts:
    """A model's weights by name, and the graph they are written into."""

    graph: GraphWriter
    config: ModelConfig
    weights: Mapping[str, FloatArray]
    precision: Precision

    def linear(self, x: str, *names: str, zero: int = CENTRED) -> str:
        """A linear map; several names become one map whose outputs are concatenated.

        `zero` is the byte that represents 0 if x is quantized: a low one if x is mostly positive.
        """
        weight = np.concatenate([self.weights[f"{name}.weight"] for name in names])  # (out, in)
        biases = [self.weights[f"{name}.bias"] for name in names if f"{name}.bias" in self.weights]
        bias = np.concatenate(biases) if biases else None
        return self.multiply(x, matrix_name(*names), weight.T, bias, zero=zero)

    def exact_linear(self, x: str, name: str) -> str:
        """A linear map that always stays in float, for heads: they are small and determine the answer."""
        graph, bias = self.graph, self.weights.get(f"{name}.bias")
        product = graph.call("MatMul", x, graph.store(name, self.weights[f"{name}.weight"].T))
        return product if bias is None else graph.call("Add", product, graph.store(f"{name}.bias", bias))

    def multiply(
        self, x: str, name: str, matrix: FloatArray, bias: FloatArray | None = None, *, zero: int = CENTRED
    ) -> str:
        """Multiply x by a matrix (in, out) stored under this name, and add a bias."""
        graph = self.graph
        if self.precision.quantizes(name):
            product = self._multiply_bytes(x, name, matrix, zero)
        else:
            product = graph.call("MatMul", x, graph.store(name, matrix))
        return product if bias is None else graph.call("Add", product, graph.store(f"{name}.bias", bias))

    def _multiply_bytes(self, x: str, name: str, matrix: FloatArray, zero: int) -> str:
        graph = self.graph
        if not graph.has(name):
            values, scales = quantize_columns(matrix)
            graph.store(name, values)
            graph.store(f"{name}.scale", scales)
            graph.store(f"{name}.zero", np.zeros(len(scales), dtype=np.int8))
        rounded, row_scales, stored_zero = self._round_rows(x, zero)
        # it scales each column while it multiplies, to the same bits as MatMulInteger, Cast and Mul
        inputs = rounded, name, graph.number(1.0), f"{name}.scale", stored_zero, f"{name}.zero"
        product = graph.call("MatMulIntegerToFloat", *inputs, domain=MICROSOFT)
        return graph.call("Mul", product, row_scales)

    def _round_rows(self, x: str, zero: int = CENTRED) -> tuple[str, str, str]:
        """Quantize x: bytes, a scale (..., 1) per row, and the byte that represents 0.

        Each token has its own scale. DynamicQuantizeLinear has one per batch, so an answer would depend on the other
        texts of the batch, and on their padding.
        """
        graph = self.graph
        above = graph.call("ReduceMax", x, graph.integers(-1))
        below = graph.call("ReduceMin", x, graph.integers(-1))
        scales = graph.call(
            "Max",
            graph.call("Mul", above, graph.number(1 / (LARGEST_INPUT - zero))),
            graph.call("Mul", below, graph.number(-1 / zero)),
            graph.number(1e-12),
        )
        stored_zero = graph.store(f"byte {zero}", np.array(zero, dtype=np.uint8))
        rounded = graph.call("QuantizeLinear", graph.call("Div", x, scales), graph.number(1.0), stored_zero)
        return rounded, scales, stored_zero

    def norm(self, x: str, name: str) -> str:
        graph = self.graph
        scale = graph.store(f"{name}.weight", self.weights[f"{name}.weight"])
        bias = graph.store(f"{name}.bias", self.weights[f"{name}.bias"])
        return graph.call("LayerNormalization", x, scale, bias, axis=-1, epsilon=self.config.norm_epsilon)

    def activate(self, x: str) -> str:
        if self.config.activation == "relu":
            return self.graph.call("Relu", x)
        return self.graph.call("Gelu", x, approximate="tanh" if self.config.activation == "gelu_tanh" else "none")

    def look_up_tokens(self, token_ids: str) -> str:
        """The embeddings (..., E) of tokens."""
        graph, table = self.graph, self.weights["encoder.embeddings.token.weight"]
        if not self.precision.quantizes(TOKENS):
            return graph.call("Gather", graph.store(TOKENS, table), token_ids)
        values, scales = self._store_table(table)
        rows = graph.call("Cast", graph.call("Gather", values, token_ids), to=FLOAT)
        rows = graph.call("Sub", rows, graph.number(TABLE_ZERO))
        of_rows = graph.call("Unsqueeze", graph.call("Gather", scales, token_ids), graph.integers(-1))
        return graph.call("Mul", rows, of_rows)

    def compare_with_tokens(self, states: str, bias: FloatArray) -> str:
        """Logits (M, V) of states (M, E): dot products with the token embeddings of `look_up_tokens`."""
        graph, table = self.graph, self.weights["encoder.embeddings.token.weight"]
        stored_bias = graph.store("token bias", bias)
        if not self.precision.quantizes(TOKENS):
            return graph.call("Gemm", states, graph.store(TOKENS, table), stored_bias, transB=1)
        values, scales = self._store_table(table)
        rounded, row_scales, zero = self._round_rows(states)
        turned = graph.call("Transpose", values, perm=[1, 0])  # runtimes fold this transpose when they load the model
        table_zero = graph.store(f"{TOKENS}.zero", np.array(TABLE_ZERO, dtype=np.uint8))
        product = graph.call("Cast", graph.call("MatMulInteger", rounded, turned, zero, table_zero), to=FLOAT)
        product = graph.call("Mul", graph.call("Mul", product, scales), row_scales)
        return graph.call("Add", product, stored_bias)

    def _store_table(self, table: FloatArray) -> tuple[str, str]:
        values, scales = quantize_rows(table)
        return self.graph.store(TOKENS, values), self.graph.store(f"{TOKENS}.scale", scales)


def matrix_name(*names: str) -> str:
    """The name of the combined matrix of these linear maps: attention.0.query+key+value."""
    short = [name.removeprefix("encoder.") for name in names]
    place = short[0].rpartition(".")[0]
    return "+".join([short[0], *(name.removeprefix(f"{place}.") for name in short[1:])])
