"""The runtime of a program: device, number format, threads, ranks, and peak matrix-multiply speed."""

import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch

from litebert.core.errors import ConfigError
from litebert.core.runtime_options import RuntimeOptions as RuntimeOptions

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Ranks:
    """This process's ranks among those that torchrun started."""

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1

    @property
    def is_main(self) -> bool:
        return self.rank == 0


@dataclass(frozen=True)
class Runtime:
    """The resolved device, number format and ranks of a run."""

    device: torch.device
    dtype: torch.dtype
    ranks: Ranks

    @property
    def dtype_name(self) -> str:
        return next(name for name, dtype in DTYPES.items() if dtype == self.dtype)

    def in_format(self, name: str) -> "Runtime":
        """The same runtime in another number format; a run resumes in the format that it started with."""
        return replace(self, dtype=DTYPES[name])

    @property
    def needs_loss_scaling(self) -> bool:
        return self.dtype == torch.float16


def choose_runtime(options: RuntimeOptions, environment: Mapping[str, str] = os.environ) -> Runtime:
    """Resolve device, number format and ranks, and set torch's number of threads."""
    ranks = read_ranks(environment)
    if options.num_threads:
        torch.set_num_threads(options.num_threads)
    device = choose_device(options.device, ranks.local_rank, ranks.world_size)
    return Runtime(device, choose_dtype(options.dtype, device), ranks)


def read_ranks(environment: Mapping[str, str] = os.environ) -> Ranks:
    """The ranks in torchrun's environment variables; without them this is the only process."""
    if "RANK" not in environment:
        return Ranks()
    try:
        rank, local_rank, world_size = (int(environment[key]) for key in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
    except (KeyError, ValueError) as error:
        raise ConfigError(
            "bad-launcher-environment",
            f"RANK is set, but RANK, LOCAL_RANK and WORLD_SIZE are not all integers ({error}); "
            "start with torchrun, or unset RANK",
        ) from error
    return Ranks(rank, local_rank, world_size)


def choose_device(name: str, local_rank: int = 0, world_size: int = 1) -> torch.device:
    """The device of that name, or the best available one for "auto"; each local rank has its own cuda device."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    is_alone = world_size == 1
    if name == "auto":
        name = next(device for device, is_there in available.items() if is_there and (is_alone or device != "mps"))
    if name == "mps" and not is_alone:  # no torch.distributed backend supports it
        raise ConfigError(
            "unsupported-device",
            f"runtime.device = mps supports one process, got {world_size}; use runtime.device = cpu, or one process",
        )
    if not available[name]:
        others = ", ".join(device for device, is_there in available.items() if is_there)
        raise ConfigError(
            "unsupported-device",
            f"runtime.device = {name} is not available on this machine or in this build of torch; available: {others}",
        )
    if name == "cuda" and local_rank >= torch.cuda.device_count():
        raise ConfigError(
            "too-few-devices",
            f"process {local_rank + 1} on this machine has no GPU: there are {torch.cuda.device_count()}; start one "
            "process per GPU",
        )
    return torch.device(name, local_rank) if name == "cuda" else torch.device(name)


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """The number format of that name; "auto" measures and picks bf16 if it is clearly faster than fp32 here."""
    if name != "auto":
        return DTYPES[name]
    # fp16 has to be requested, since it needs loss scaling. A CPU without bf16 instructions is several times slower in
    # bf16, so bf16 is chosen only by measurement.
    is_clearly_faster = measure_peak_flops(device, torch.bfloat16) > 1.2 * measure_peak_flops(device, torch.float32)
    return torch.bfloat16 if is_clearly_faster else torch.float32


def describe_processor(facts: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name, if the system knows it, and the instruction set that torch uses."""
    lines = facts.read_text("utf-8").splitlines() if facts.is_file() else []  # only Linux has it
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}"


@cache
def measure_peak_flops(device: torch.device, dtype: torch.dtype, seconds: float = 0.4) -> float:
    """The floating-point operations per second of the fastest matrix multiply, measured once per process."""
    size, best = 256, 0.0
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        multiply_seconds = min(_time_multiply(size, device, dtype) for _ in range(3))
        best = max(best, 2 * size**3 / multiply_seconds)
        # Grow while it is quick: large matrices show a fast device's peak, and would take a slow format seconds.
        if multiply_seconds < 0.02 and size < 8192:
            size *= 2
    return best


def _time_multiply(size: int, device: torch.device, dtype: torch.dtype) -> float:
    left, right, result = torch.full((3, size, size), 0.5, device=device, dtype=dtype)
    _wait_for(device)
    started_at = time.perf_counter()
    torch.mm(left, right, out=result)
    _wait_for(device)
    return time.perf_counter() - started_at


def _wait_for(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
