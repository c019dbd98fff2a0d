"""Checks that a source has exactly the tensors that a model needs: each used once, none missing, none unexpected."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from litebert.core.errors import DataError

MAX_LISTED = 12
# any other type is a counter, a mask or a quantized weight, not a weight value
WEIGHT_TYPES = frozenset({"float16", "bfloat16", "float32", "float64"})


class Stored(NamedTuple):
    """The shape and type of a tensor, known before it is read."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Store:
    """A source's tensors by name, in whichever files they are."""

    tensors: dict[str, Stored]
    read: Callable[[str], Tensor]
    files: tuple[Path, ...]
    is_pickle: bool = False


class Place(NamedTuple):
    """The location and layout of a tensor in a source."""

    name: str
    is_transposed: bool = False
    dead_rows: int = 0  # unused rows at the beginning
    spare_rows: int = 0  # unused rows at the end

    def stored_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The stored shape of a tensor that has `shape` in our layout."""
        if self.is_transposed:
            shape = shape[::-1]
        return (self.dead_rows + shape[0] + self.spare_rows, *shape[1:]) if shape else shape

    def holds(self, stored: Stored, shape: tuple[int, ...]) -> bool:
        """Whether the stored tensor can be a weight that has `shape` in our layout."""
        return stored.shape == self.stored_shape(shape) and stored.dtype in WEIGHT_TYPES


@dataclass(frozen=True)
class Mismatch:
    """The differences that prevent a conversion, under the source's tensor names."""

    missing: tuple[str, ...] = ()
    left_over: tuple[str, ...] = ()
    misshapen: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.left_over or self.misshapen)

    def describe(self) -> str:
        parts = [
            ("missing", self.missing),
            ("unexpected", self.left_over),
            ("with the wrong shape or type", self.misshapen),
        ]
        return "; ".join(f"{len(names)} {what}: {list_some(names)}" for what, names in parts if names)


def match(
    wanted: Mapping[str, Place], shapes: Mapping[str, tuple[int, ...]], store: Store, ignored: Iterable[str]
) -> Mismatch:
    """Compare the tensors that a model needs, with their shapes, to those in the store, except `ignored` names."""
    used = {place.name for place in wanted.values()}
    misshapen = []
    for ours, place in wanted.items():
        stored = store.tensors.get(place.name)
        if stored is None or place.holds(stored, shapes[ours]):
            continue
        expected = place.stored_shape(shapes[ours])
        misshapen.append(
            f"{place.name} is {list(stored.shape)}, expected {list(expected)}"
            if stored.shape != expected
            else f"{place.name} has type {stored.dtype}, expected {', '.join(sorted(WEIGHT_TYPES))}"
        )
    return Mismatch(
        missing=tuple(sorted(name for name in used if name not in store.tensors)),
        left_over=tuple(sorted(store.tensors.keys() - used - set(ignored))),
        misshapen=tuple(misshapen),
    )


def check_match(where: Path, mismatch: Mismatch) -> None:
    """Raise if the source does not have exactly the tensors that its model needs."""
    if mismatch:
        raise DataError("tensors-mismatch", f"{where} does not match its configuration: {mismatch.describe()}")


def note_rounding(store: Store) -> tuple[str, ...]:
    """A note if weights are stored in a higher precision than litebert computes in."""
    is_rounded = any(stored.dtype == "float64" for stored in store.tensors.values())
    return ("weights in float64 are rounded to float32",) if is_rounded else ()


def list_some(names: Sequence[str], most: int = MAX_LISTED) -> str:
    """The first of these names, and the number of the others."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
