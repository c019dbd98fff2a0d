"""Looking numbers up in a table of all that sixteen bits can say."""

import numpy as np
from numpy.typing import NDArray

from litebert.core.compiled import compiled_with


@compiled_with()
def look_up(numbers: NDArray[np.uint16], table: NDArray[np.uint16], output: NDArray[np.uint16]) -> None:
    """The table's entry for each number. The numbers of a layer are close together, and their entries in the cache."""
    for i in range(numbers.size):
        output[i] = table[numbers[i]]
