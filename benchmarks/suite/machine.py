"""What a measurement was made on: numbers of two machines may only be compared if these agree."""

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from litebert.core.runtime import describe_processor

# The instruction sets that decide which number format is fast
INSTRUCTIONS = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8")
PACKAGES = ("torch", "transformers", "onnxruntime", "openvino", "nncf", "sentencepiece", "tokenizers")


def describe_machine() -> dict[str, Any]:
    """The processor, its instruction sets, the packages that are compared, and how busy the machine is now."""
    return {
        "processor": describe_processor(),
        "instructions": list_instructions(),
        "cores": os.cpu_count(),
        "packages": {name: found for name in PACKAGES if (found := find_version(name))},
        "load": round(os.getloadavg()[0], 1),
    }


def list_instructions(facts: Path = Path("/proc/cpuinfo")) -> list[str]:
    """Those of `INSTRUCTIONS` that the processor has; none where the system does not say (only Linux does)."""
    lines = facts.read_text("utf-8").splitlines() if facts.is_file() else []
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return [name for name in INSTRUCTIONS if name in flags]


def find_version(package: str) -> str | None:
    """The version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def describe_in_line(machine: dict[str, Any]) -> str:
    """The same in a line, for the terminal."""
    return (
        f"{machine['processor']} ({', '.join(machine['instructions'])}), load {machine['load']} on "
        f"{machine['cores']} cores, torch {machine['packages']['torch']}"
    )
