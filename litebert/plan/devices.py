"""Devices: compute speed, memory and bandwidth, from device files with sources, or measured on this machine."""

import os
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from litebert.core.errors import ConfigError, suggest
from litebert.core.options import build_options, parse_toml
from litebert.core.ranges import NonNegativeFloat, PositiveFloat, PositiveInt, Range, check_values

_SHIPPED = files("litebert") / "devices"
THIS_CPU = "this-cpu"
BILLION = 1_000_000_000
# share of the peak matrix-multiply speed that a training step reaches on a CPU (benchmarks/train.py)
CPU_EFFICIENCY = 0.7
# the network between machines: with `this-cpu`, a device is a whole machine
GIGABIT_ETHERNET = 0.125
# share of memory that a plan leaves free: actual use exceeds the counted tensors (docs/planning.md)
MARGIN = 0.1


@dataclass(frozen=True, kw_only=True)
class Peaks:
    """Peak speed in each number format, in 1e12 floating-point operations per second; None: not supported."""

    fp32: PositiveFloat
    bf16: PositiveFloat | None = None
    fp16: PositiveFloat | None = None

    def __post_init__(self) -> None:
        check_values(self)


@dataclass(frozen=True, kw_only=True)
class Device:
    """The facts of one device. GB are 1e9 bytes; link rates are for one direction."""

    title: str
    memory_gb: PositiveFloat
    memory_gb_per_second: PositiveFloat
    link_gb_per_second: PositiveFloat  # per device, between devices of one node
    network_gb_per_second: PositiveFloat  # between nodes, for all devices of a node together
    devices_per_node: PositiveInt
    tflops: Peaks
    efficiency: Annotated[float, Range(above=0, most=1)]  # share of the peak that a training step usually reaches
    reserved_gb: NonNegativeFloat = 0.0  # not available: driver, libraries, fragmentation
    fuses_dropout: bool = True  # attention with dropout does not store probabilities
    note: str = ""

    def __post_init__(self) -> None:
        check_values(self)
        if not self.reserved_gb < self.memory_gb:
            raise ConfigError(
                "out-of-range", f"reserved_gb = {self.reserved_gb} must be less than memory_gb = {self.memory_gb}"
            )

    @property
    def usable_bytes(self) -> float:
        """The memory that a plan may use."""
        return (1 - MARGIN) * (self.memory_gb - self.reserved_gb) * BILLION

    def peak_flops(self, dtype: str) -> float:
        """Floating-point operations per second in a format."""
        peak = getattr(self.tflops, dtype)
        if peak is None:
            able = ", ".join(name for name in ("fp32", "bf16", "fp16") if getattr(self.tflops, name))
            raise ConfigError(
                "unsupported-device",
                f"runtime.dtype = '{dtype}' is not supported by {self.title}: use one of {able}",
            )
        return float(peak) * 1e12

    def choose_dtype(self, wanted: str) -> str:
        """The number format of a recipe's `runtime.dtype`; "auto" is bf16 where that is clearly faster."""
        if wanted != "auto":
            return wanted
        return "bf16" if (self.tflops.bf16 or 0.0) > 1.2 * self.tflops.fp32 else "fp32"

    def ring_bytes_per_second(self, num_devices: int) -> float:
        """The send rate per device when all devices send in a ring; a node's devices share its network."""
        slowest = self.link_gb_per_second
        if num_devices > self.devices_per_node:
            slowest = min(slowest, self.network_gb_per_second)
        return slowest * BILLION


def load_device(source: str) -> Device:
    """A device by name, from a .toml device file, or `this-cpu`, measured now."""
    if source == THIS_CPU:
        return measure_this_cpu()
    path = Path(source)
    if path.suffix == ".toml" or path.is_file():
        if not path.is_file():
            raise ConfigError("missing-file", f"device file {path} does not exist")
        return _parse(path.read_bytes(), where=str(path))
    shipped = {Path(item.name).stem: item for item in _SHIPPED.iterdir() if item.name.endswith(".toml")}
    if source not in shipped:
        raise ConfigError(
            "unknown-device",
            f"unknown device '{source}'; {suggest(source, list_devices(), 'the path of a .toml device file')}",
        )
    return _parse(shipped[source].read_bytes(), where=source)


def list_devices() -> list[str]:
    """The names that `load_device` accepts."""
    return sorted([Path(item.name).stem for item in _SHIPPED.iterdir() if item.name.endswith(".toml")] + [THIS_CPU])


def measure_this_cpu() -> Device:
    """This machine as one device, with measured compute and memory speed."""
    import torch

    from litebert.core.runtime import measure_peak_flops

    cpu, threads = torch.device("cpu"), torch.get_num_threads()
    peaks = Peaks(
        fp32=measure_peak_flops(cpu, torch.float32) / 1e12, bf16=measure_peak_flops(cpu, torch.bfloat16) / 1e12
    )
    gb_per_second = _measure_memory_speed() / BILLION
    return Device(
        title=f"this machine's CPU ({threads} thread{'s' * (threads > 1)})",
        memory_gb=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / BILLION,
        reserved_gb=0.5,  # the interpreter and the libraries
        memory_gb_per_second=gb_per_second,
        link_gb_per_second=GIGABIT_ETHERNET,
        network_gb_per_second=GIGABIT_ETHERNET,
        devices_per_node=1,
        tflops=peaks,
        efficiency=CPU_EFFICIENCY,
        fuses_dropout=False,
        note="compute and memory speed measured now (a busy machine measures less); links assume gigabit Ethernet",
    )


def _measure_memory_speed(num_bytes: int = 1 << 27) -> float:
    """Bytes per second that a copy reads and writes, the best of several runs."""
    import time

    import torch

    source, target = torch.zeros(num_bytes, dtype=torch.uint8), torch.zeros(num_bytes, dtype=torch.uint8)
    best = float("inf")
    for _ in range(5):
        started_at = time.perf_counter()
        target.copy_(source)
        best = min(best, time.perf_counter() - started_at)
    return 2 * num_bytes / best


def _parse(content: bytes, *, where: str) -> Device:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError("bad-device-file", f"{where}: {error}") from None
    values = parse_toml(text, where=where, code="bad-device-file")
    try:
        return build_options(Device, values)
    except ConfigError as error:
        raise ConfigError(error.code, f"{where}: {error}") from None


def with_efficiency(device: Device, efficiency: float | None) -> Device:
    """The device with another efficiency; None leaves it unchanged."""
    return device if efficiency is None else replace(device, efficiency=efficiency)
