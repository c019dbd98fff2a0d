"""Device, number format, threads and ranks."""

import platform
import time
from pathlib import Path

import pytest
import torch
from refusals import refuses

from litebert.core import runtime
from litebert.core.errors import ConfigError
from litebert.core.runtime import (
    Ranks,
    RuntimeOptions,
    choose_device,
    choose_dtype,
    choose_runtime,
    describe_processor,
    measure_peak_flops,
    read_ranks,
)

CPU = torch.device("cpu")


def test_without_torchrun_there_is_one_process() -> None:
    assert read_ranks({}) == Ranks(0, 0, 1)
    assert read_ranks({}).is_main


def test_ranks_come_from_torchruns_environment() -> None:
    ranks = read_ranks({"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8"})
    assert ranks == Ranks(rank=5, local_rank=1, world_size=8)
    assert not ranks.is_main


@pytest.mark.parametrize("rest", [{}, {"LOCAL_RANK": "0", "WORLD_SIZE": "two"}])
def test_half_an_environment_is_refused(rest: dict[str, str]) -> None:
    with refuses(ConfigError, "bad-launcher-environment"):
        read_ranks({"RANK": "0", **rest})


def test_auto_takes_the_best_device_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device("auto") == CPU
    with refuses(ConfigError, "unsupported-device"):
        choose_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert choose_device("auto", local_rank=3) == torch.device("cuda:3")
    with refuses(ConfigError, "too-few-devices"):
        choose_device("auto", local_rank=4)


def test_several_processes_never_compute_on_mps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device("auto") == choose_device("mps") == torch.device("mps")
    torchrun = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}
    assert choose_runtime(RuntimeOptions(), torchrun).device == CPU
    with refuses(ConfigError, "unsupported-device", at="runtime.device"):
        choose_runtime(RuntimeOptions(device="mps"), torchrun)


@pytest.mark.parametrize(
    ("bf16_speed", "expected"), [(5.0, torch.bfloat16), (1.1, torch.float32), (0.2, torch.float32)]
)
def test_auto_takes_bf16_only_where_it_is_clearly_faster(
    bf16_speed: float, expected: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "measure_peak_flops", lambda _, dtype: bf16_speed if dtype == torch.bfloat16 else 1.0)
    assert choose_dtype("auto", CPU) == expected


def test_a_named_format_is_taken_without_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "measure_peak_flops", None)
    assert choose_dtype("fp32", CPU) == torch.float32
    assert choose_runtime(RuntimeOptions(device="cpu", dtype="fp16"), {}).needs_loss_scaling
    assert not choose_runtime(RuntimeOptions(device="cpu"), {}).needs_loss_scaling


def test_the_number_of_threads_is_set() -> None:
    before = torch.get_num_threads()
    try:
        choose_runtime(RuntimeOptions(device="cpu", num_threads=before + 1), {})
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)


def test_the_peak_is_plausible_and_measured_within_a_second() -> None:
    started_at = time.perf_counter()
    flops = measure_peak_flops(CPU, torch.float32, seconds=0.1)
    assert time.perf_counter() - started_at < 5  # generous: the machine may be busy
    assert 1e8 < flops < 1e14
    assert measure_peak_flops(CPU, torch.float32, seconds=0.1) == flops


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"device": "gpu"}, "unknown-value"),
        ({"dtype": "float16"}, "unknown-value"),
        ({"num_threads": -1}, "out-of-range"),
    ],
)
def test_impossible_options_are_refused_by_name(options: dict[str, object], code: str) -> None:
    with refuses(ConfigError, code):
        RuntimeOptions(**options)  # type: ignore[arg-type]


def test_a_processor_is_described_by_its_name_and_instructions(tmp_path: Path) -> None:
    facts = tmp_path / "cpuinfo"
    facts.write_text(
        "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\n\nprocessor\t: 1\nmodel name\t: Some CPU @ 3 GHz\n"
    )
    instructions = torch.backends.cpu.get_cpu_capability()
    assert describe_processor(facts) == f"Some CPU @ 3 GHz, {instructions}"
    assert describe_processor(tmp_path / "none") == f"{platform.processor() or platform.machine()}, {instructions}"
