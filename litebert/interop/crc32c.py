"""CRC-32C (Castagnoli), stored in TensorFlow's files for every block and tensor; about 1 GB/s.

A thirty-line numba kernel avoids another compiled dependency; numba is already required.
"""

import numpy as np
import numpy.typing as npt

from litebert.core.compiled import compiled_with

_POLYNOMIAL = 0x82F63B78  # reflected
_MASK_DELTA = 0xA282EAD8


def crc32c(data: npt.NDArray[np.uint8] | bytes | memoryview) -> int:
    """The checksum of a byte string."""
    array = np.frombuffer(data, np.uint8)
    return int(_checksum(array, _TABLES))


def masked_crc32c(data: npt.NDArray[np.uint8] | bytes | memoryview) -> int:
    """The checksum as LevelDB and TensorFlow store it: rotated and offset, so that a CRC of data with CRCs is safe."""
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def _build_tables() -> npt.NDArray[np.uint32]:
    """Eight lookup tables (8, 256): the effect of a byte on the checksum after that many more bytes."""
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = (crc >> np.uint32(1)) ^ np.where(crc & np.uint32(1), np.uint32(_POLYNOMIAL), np.uint32(0))
    tables = [crc]
    for _ in range(7):
        tables.append((tables[-1] >> np.uint32(8)) ^ crc[tables[-1] & np.uint32(255)])
    return np.stack(tables)


_TABLES = _build_tables()


@compiled_with()
def _checksum(data: npt.NDArray[np.uint8], tables: npt.NDArray[np.uint32]) -> np.uint32:
    crc = np.uint32(0xFFFFFFFF)
    whole = len(data) // 8 * 8
    for i in range(0, whole, 8):  # eight bytes at a time
        low = crc ^ (
            np.uint32(data[i])
            | np.uint32(np.uint32(data[i + 1]) << np.uint32(8))
            | np.uint32(np.uint32(data[i + 2]) << np.uint32(16))
            | np.uint32(np.uint32(data[i + 3]) << np.uint32(24))
        )
        crc = np.uint32(
            tables[7, low & np.uint32(255)]
            ^ tables[6, (low >> np.uint32(8)) & np.uint32(255)]
            ^ tables[5, (low >> np.uint32(16)) & np.uint32(255)]
            ^ tables[4, (low >> np.uint32(24)) & np.uint32(255)]
            ^ tables[3, data[i + 4]]
            ^ tables[2, data[i + 5]]
            ^ tables[1, data[i + 6]]
            ^ tables[0, data[i + 7]]
        )
    for i in range(whole, len(data)):
        crc = np.uint32(tables[0, (crc ^ np.uint32(data[i])) & np.uint32(255)] ^ (crc >> np.uint32(8)))
    return crc ^ np.uint32(0xFFFFFFFF)
