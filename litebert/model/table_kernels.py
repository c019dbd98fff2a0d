"""Lookups in a table with an entry for every 16-bit number."""

import numpy as np
from numpy.typing import NDArray

from litebert.core.compiled import compiled_with


@compiled_with()
def look_up(numbers: NDArray[np.uint16], table: NDArray[np.uint16], output: NDArray[np.uint16]) -> None:
    """Write the table's entry for each number. A layer's numbers are close together, so their entries stay cached."""
    for i in range(numbers.size):
        output[i] = table[numbers[i]]
