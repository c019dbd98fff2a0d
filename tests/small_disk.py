"""A disk that is full for files above a size, without filling one."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def small_disk(num_bytes: int) -> Iterator[None]:
    """Within the block, no file of this process grows beyond so many bytes: writing more fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
