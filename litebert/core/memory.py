"""This process's memory: returning it to the system, and recognizing out-of-memory errors."""

import ctypes
import errno
import re
import sys

# how torch (CPU and CUDA), numpy, onnxruntime and the system say it
_SHORTAGE = re.compile(
    r"out of memory|can't allocate memory|cannot allocate memory|not enough memory|unable to allocate|bad.?alloc"
    r"|failed to allocate|failed to map segment",
    re.IGNORECASE,
)
_BYTES = re.compile(r"(?:allocate|size) (\d+)(?: bytes|$|\b(?!\.))")
_AMOUNT = re.compile(r"allocate (\d+(?:\.\d+)? [KMGTPE]iB)")


def return_freed_memory() -> None:
    """Return freed memory to the system: glibc keeps much of it, which makes the process look several times larger."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none, and keep less
        if trim is not None:
            trim(0)


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
