"""The memory of this process: giving it back, and saying what was missing where it ran out."""

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
    """Give back to the system what was freed: glibc keeps much of it, and the process looks several times its size."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none, and keep less
        if trim is not None:
            trim(0)


def describe_shortage(error: BaseException) -> str | None:
    """That memory ran out, and how much was asked for if the error says it; None if the error is another one."""
    text = str(error)
    is_system = isinstance(error, OSError) and error.errno == errno.ENOMEM
    is_librarys = isinstance(error, RuntimeError | ImportError | OSError) and _SHORTAGE.search(text) is not None
    is_onnxruntime = type(error).__module__.startswith("onnxruntime") and _SHORTAGE.search(text) is not None
    if not (isinstance(error, MemoryError) or is_system or is_librarys or is_onnxruntime):
        return None
    amount = _AMOUNT.search(text)
    num_bytes = _BYTES.search(text)
    if amount:
        return f"not enough memory: {amount[1]} more were needed"
    if num_bytes:
        return f"not enough memory: {int(num_bytes[1]) / 1e9:.2f} GB more were needed"
    return "not enough memory"
