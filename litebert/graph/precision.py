"""How matrices are stored: in float or in int8.

Int8 matrices have one scale per output. Their values use seven bits (-63 to 63): processors without VNNI add two
products of bytes in sixteen bits, where larger values would overflow silently and corrupt the result. The token
embeddings, which are looked up more than multiplied, use all eight bits, unsigned, which overflows on no processor.
Activations are quantized to unsigned bytes at run time, with one scale per token.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]

LARGEST = 63
LARGEST_IN_TABLE = 127
TABLE_ZERO = 128
LARGEST_INPUT = 255
CENTRED = 128  # the byte for 0 if inputs are negative as often as positive
MOSTLY_POSITIVE = 32  # after GELU (never below -0.17) or ReLU, so most bytes represent positive values
_CLIPPINGS = np.linspace(
    1.0, 0.7, 7
)  # candidate shares of the largest value to keep; clipping makes the steps finer for all other values


@dataclass(frozen=True)
class Precision:
    """Which matrices are in int8: none, or all but those for which quantization costs too much accuracy."""

    is_int8: bool = False
    in_float: frozenset[str] = frozenset()  # names of matrices that stay in float

    def quantizes(self, name: str) -> bool:
        return self.is_int8 and name not in self.in_float


def quantize_columns(matrix: FloatArray) -> tuple[NDArray[np.int8], FloatArray]:
    """Quantize a matrix (in, out) to bytes, with a scale per column (out,) that minimizes the squared error."""
    largest = np.maximum(np.abs(matrix).max(0), 1e-12)
    best = np.full(largest.shape, np.inf)
    scales = largest
    for clipping in _CLIPPINGS:
        tried = largest * clipping / LARGEST
        error = ((_round(matrix, tried, LARGEST) * tried - matrix) ** 2).sum(0)
        scales = np.where(error < best, tried, scales)
        best = np.minimum(error, best)
    return _round(matrix, scales, LARGEST).astype(np.int8), scales.astype(np.float32)


def quantize_rows(table: FloatArray) -> tuple[NDArray[np.uint8], FloatArray]:
    """Quantize a table (rows, E) to bytes around TABLE_ZERO, with a scale per row (rows,)."""
    scales = np.maximum(np.abs(table).max(1), 1e-12) / LARGEST_IN_TABLE
    rounded = _round(table, scales[:, None], LARGEST_IN_TABLE) + TABLE_ZERO
    return rounded.astype(np.uint8), scales.astype(np.float32)


def _round(values: FloatArray, scales: FloatArray, largest: int) -> FloatArray:
    rounded: FloatArray = np.clip(np.rint(values / scales), -largest, largest)
    return rounded
