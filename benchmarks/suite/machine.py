"""The machine of a measurement: results from two machines may only be compared if these facts agree."""

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from litebert.core.runtime import describe_processor

# The instruction sets that determine which number formats are fast
INSTRUCTIONS = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8")
PACKAGES = ("torch", "transformers", "onnxruntime", "openvino", "nncf", "sentencepiece", "tokenizers")


def describe_machine() -> dict[str, Any]:
    """The processor, its instruction sets, the versions of compared packages, and the current load."""
    return {
        "processor": describe_processor(),
        "instructions": list_instructions(),
        "cores": os.cpu_count(),
        "packages": {name: found for name in PACKAGES if (found := find_version(name))},
        "load": round(os.getloadavg()[0], 1),
    }


def list_instructions(facts: Path = Path("/proc/cpuinfo")) -> list[str]:
    """The processor's instruction sets among `INSTRUCTIONS`; empty except on Linux, which lists them."""
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
    """A one-line description for the terminal."""
    return (
        f"{machine['processor']} ({', '.join(machine['instructions'])}), load {machine['load']} on "
        f"{machine['cores']} cores, torch {machine['packages']['torch']}"
    )
