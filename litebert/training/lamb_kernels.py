"""LAMB's two passes over memory on a CPU. A step is bound by memory, so each pass reads every number once.

Element-wise torch operations would stream every tensor through memory some ten times. Here the first pass updates the
moments and measures the norms, the second recomputes the update from the moments and applies it: recomputing costs no
more traffic than storing it would, and leaves the gradients unchanged. The threads are our own: numba's pools either
abort on concurrent calls or compete with torch's.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.core.compiled import compiled_with

FloatArray = NDArray[np.float32]

# Norms are summed by blocks of this many elements, so that they do not depend on the number of threads.
BLOCK_SIZE = 1 << 14
# The work of one call: long enough to outweigh the call, short enough to balance the threads.
PIECE_SIZE = 32 * BLOCK_SIZE


class Coefficients(NamedTuple):
    """The numbers of one step, in the precision of the weights."""

    beta1: np.float32
    beta2: np.float32
    gain1: np.float32  # 1 - beta1, subtracted in double precision: in single, 1 - 0.999 is off by 1e-5
    gain2: np.float32
    correction1: np.float32  # the bias corrections, as factors of m and v; 1 where the dialect has none
    correction2: np.float32
    epsilon: np.float32
    weight_decay: np.float32


class Piece(NamedTuple):
    """A slice of one flattened tensor and of its optimizer state; `squares` has a row for each of its blocks."""

    weight: FloatArray
    gradient: FloatArray
    exp_avg: FloatArray
    exp_avg_sq: FloatArray
    squares: FloatArray


# Sums may be reordered and multiply-adds fused, but nan and infinity are preserved. numba inlines the functions that
# kernels call: if LLVM did, a kernel read from the cache could be fused differently from one that was just compiled.
_options: dict[str, Any] = {"error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}


@compiled_with(**_options)
def accumulate(piece: Piece, by: Coefficients) -> None:
    """Pass one: update the moments, and write ||w||^2 and ||u||^2 of every block to `squares`."""
    for block in range(len(piece.squares)):
        span = slice(block * BLOCK_SIZE, (block + 1) * BLOCK_SIZE)
        piece.squares[block] = _accumulate_block(
            piece.weight[span], piece.gradient[span], piece.exp_avg[span], piece.exp_avg_sq[span], by
        )


@compiled_with(**_options, inline="always")
def _accumulate_block(
    weight: FloatArray, gradient: FloatArray, exp_avg: FloatArray, exp_avg_sq: FloatArray, by: Coefficients
) -> tuple[np.float32, np.float32]:
    weight_square = update_square = np.float32(0)
    for i in range(weight.size):
        exp_avg[i] = by.beta1 * exp_avg[i] + by.gain1 * gradient[i]
        exp_avg_sq[i] = by.beta2 * exp_avg_sq[i] + by.gain2 * gradient[i] * gradient[i]
        update = _update(weight[i], exp_avg[i], exp_avg_sq[i], by)
        weight_square += weight[i] * weight[i]
        update_square += update * update
    return weight_square, update_square


@compiled_with(**_options)
def apply(piece: Piece, by: Coefficients, rate: np.float32) -> None:
    """Pass two: w -= rate * u."""
    weight, exp_avg, exp_avg_sq = piece.weight, piece.exp_avg, piece.exp_avg_sq
    for i in range(weight.size):
        weight[i] -= rate * _update(weight[i], exp_avg[i], exp_avg_sq[i], by)


@compiled_with(**_options, inline="always")
def _update(weight: np.float32, exp_avg: np.float32, exp_avg_sq: np.float32, by: Coefficients) -> np.float32:
    denominator = np.sqrt(by.correction2 * exp_avg_sq) + by.epsilon
    update: np.float32 = by.correction1 * exp_avg / denominator + by.weight_decay * weight
    return update


def cut(whole: Piece) -> list[Piece]:
    """The pieces of one tensor, which threads may process in any order."""
    spans = [slice(start, start + PIECE_SIZE) for start in range(0, whole.weight.size, PIECE_SIZE)]
    blocks = [slice(span.start // BLOCK_SIZE, span.stop // BLOCK_SIZE) for span in spans]
    return [
        Piece(whole.weight[s], whole.gradient[s], whole.exp_avg[s], whole.exp_avg_sq[s], whole.squares[b])
        for s, b in zip(spans, blocks, strict=True)
    ]
