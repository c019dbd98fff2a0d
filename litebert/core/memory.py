"""This process's memory: returning it to the system, and recognizing out-of-memory errors."""

import ctypes
import errno
import re
import sys
from contextlib import suppress
from pathlib import Path

# how torch (CPU and CUDA), numpy, onnxruntime and the system say it
_SHORTAGE = re.compile(
    r"out of memory|can't allocate memory|cannot allocate memory|not enough memory|unable to allocate|bad.?alloc"
    r"|failed to allocate|failed to map segment",
    re.IGNORECASE,
)
_BYTES = re.compile(r"(?:allocate|size) (\d+)(?: bytes|$|\b(?!\.))")
_CONTROL_GROUP = Path("/sys/fs/cgroup")
_AMOUNT = re.compile(r"allocate (\d+(?:\.\d+)? [KMGTPE]iB)")


def return_freed_memory() -> None:
    """Return freed memory to the system: glibc keeps much of it, which makes the process look several times larger."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none, and keep less
        if trim is not None:
            trim(0)


def measure_free_memory() -> int | None:
    """The bytes that this process may still take: of the machine, its control group and its own limit, the least.

    None where the system does not say.
    """
    if sys.platform != "linux":
        return None
    import resource

    free = []
    with suppress(OSError, ValueError, IndexError):
        (line,) = [line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable:")]
        free.append(int(line.split()[1]) * 1024)
    with suppress(OSError, ValueError):  # "max" is no limit
        limit, used = ((_CONTROL_GROUP / name).read_text() for name in ("memory.max", "memory.current"))
        free.append(int(limit) - int(used))
    limit_bytes, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit_bytes != resource.RLIM_INFINITY:
        free.append(limit_bytes - int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize())
    return max(0, min(free)) if free else None


def describe_shortage(error: BaseException) -> str | None:
    """A description of an out-of-memory error, with the amount requested if known; None for any other error."""
    text = str(error)
    is_system = isinstance(error, OSError) and error.errno == errno.ENOMEM
    is_librarys = isinstance(error, RuntimeError | ImportError | OSError) and _SHORTAGE.search(text) is not None
    is_onnxruntime = type(error).__module__.startswith("onnxruntime") and _SHORTAGE.search(text) is not None
    if not (isinstance(error, MemoryError) or is_system or is_librarys or is_onnxruntime):
        return None
    amount = _AMOUNT.search(text)
    num_bytes = _BYTES.search(text)
    if amount:
        return f"not enough memory: {amount[1]} more needed"
    if num_bytes:
        return f"not enough memory: {int(num_bytes[1]) / 1e9:.2f} GB more needed"
    return "not enough memory"
