"""Detect matrices that are still as initialized: their moments match the random distribution, within chance."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from litebert.core.errors import DataError
from litebert.interop.names import SEGMENTS

TRUNCATED_STD = 0.8796  # of a normal distribution cut at two sigma
TRUNCATED_KURTOSIS = 2.3654
NORMAL_KURTOSIS = 3.0
_CHANCE = 5  # standard errors
_PART = 1 << 20  # values processed at once


class Summary(NamedTuple):
    """Summary statistics of a tensor."""

    num_values: int
    is_finite: bool
    is_zero: bool
    mean: float
    std: float
    largest: float
    kurtosis: float


def is_matrix(name: str, tensor: Tensor) -> bool:
    """Whether an all-zero tensor would be an error: biases may be zero, and so may unused segment embeddings."""
    return tensor.ndim > 1 and len(tensor) > 1 and name != SEGMENTS


def find_empty(weights: Mapping[str, Tensor]) -> dict[str, list[str]]:
    """Tensors without usable values: the defect -> their names."""
    empty: dict[str, list[str]] = {"not finite": [], "all zero": []}
    for name, tensor in weights.items():
        if not tensor.numel():
            continue
        smallest, largest = torch.aminmax(tensor.detach())  # NaN propagates; no temporary memory
        if not (bool(smallest.isfinite()) and bool(largest.isfinite())):
            empty["not finite"].append(name)
        elif is_matrix(name, tensor) and not bool(smallest) and not bool(largest):
            empty["all zero"].append(name)
    return {what: names for what, names in empty.items() if names}


def check_has_content(weights: Mapping[str, Tensor], where: Path) -> None:
    """Raise if every matrix of the encoder is empty: it would otherwise be trained and scored like a real model."""
    matrices = {name for name, tensor in weights.items() if name.startswith("encoder.") and is_matrix(name, tensor)}
    empty = find_empty(weights)
    if matrices <= {name for names in empty.values() for name in names}:
        raise DataError("empty-model", f"{where} is empty: every matrix of its encoder is {' or '.join(empty)}")


def summarize(tensor: Tensor) -> Summary:
    """The moments of a tensor; rows of zeros, such as a padding token's, are excluded."""
    rows = tensor.detach().flatten(1) if tensor.ndim > 1 else tensor.detach().reshape(1, -1)
    sums, largest, num_values = torch.zeros(4, dtype=torch.float64), 0.0, 0
    for part in torch.split(rows, max(1, _PART // max(1, rows.shape[1]))):  # in chunks: a matrix can have 300 MB
        values = part[part.any(dim=1)].flatten().double()
        if not bool(values.isfinite().all()):
            return Summary(tensor.numel(), False, False, math.nan, math.nan, math.nan, math.nan)
        sums += torch.stack([(values**power).sum() for power in range(1, 5)])
        largest = max(largest, float(values.abs().max())) if len(values) else largest
        num_values += len(values)
    if not num_values:
        return Summary(tensor.numel(), True, True, 0.0, 0.0, 0.0, 0.0)
    mean, square, cube, fourth = (sums / num_values).tolist()
    variance = max(square - mean**2, 0.0)
    central = fourth - 4 * mean * cube + 6 * mean**2 * square - 3 * mean**4
    kurtosis = central / variance**2 if variance else 0.0
    return Summary(num_values, True, False, mean, math.sqrt(variance), largest, kurtosis)


def is_initial(summary: Summary, sigmas: Iterable[float]) -> bool:
    """Whether the statistics fit a truncated or a plain normal distribution with one of these sigmas."""
    return any(_is_truncated(summary, sigma) or _is_normal(summary, sigma) for sigma in sigmas)


def _is_truncated(summary: Summary, sigma: float) -> bool:
    is_cut = summary.largest <= 2 * sigma * (1 + 1e-5)
    return is_cut and _agrees(summary, TRUNCATED_STD * sigma, TRUNCATED_KURTOSIS)


def _is_normal(summary: Summary, sigma: float) -> bool:
    return _agrees(summary, sigma, NORMAL_KURTOSIS)


def _agrees(summary: Summary, std: float, kurtosis: float) -> bool:
    error = _CHANCE / math.sqrt(summary.num_values)
    return (
        abs(summary.mean) <= error * std
        and abs(summary.std / std - 1) <= error / math.sqrt(2) + 1e-3
        and abs(summary.kurtosis - kurtosis) <= error * math.sqrt(24) + 1e-2
    )
