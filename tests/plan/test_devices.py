"""Device facts: those shipped with litebert, a user's own, and this machine."""

from importlib.resources import files
from pathlib import Path

import pytest
from refusals import refuses

from litebert.core.errors import ConfigError
from litebert.plan.devices import list_devices, load_device, with_efficiency

FACTS = """
title = "mine"
memory_gb = 24.0
memory_gb_per_second = 936.0
link_gb_per_second = 16.0
network_gb_per_second = 1.25
devices_per_node = 2
efficiency = 0.3
[tflops]
fp32 = 35.6
"""


def write(folder: Path, text: str) -> str:
    (folder / "mine.toml").write_text(text, "utf-8")
    return str(folder / "mine.toml")


def test_the_devices_of_the_issue_are_there() -> None:
    assert list_devices() == ["a100-40g", "a100-80g", "h100-80g", "this-cpu", "tpu-v3", "v100-32g"]


@pytest.mark.parametrize("name", [name for name in list_devices() if name != "this-cpu"])
def test_every_fact_of_a_shipped_device_names_its_source(name: str) -> None:
    text = (files("litebert") / "devices" / f"{name}.toml").read_text("utf-8")
    assert load_device(name).memory_gb > 30
    assert "# Sources: [1]" in text
    for line in text.splitlines():
        key = line.partition(" =")[0]
        if key.endswith("_per_second") or key in ("fp32", "bf16", "fp16", "reserved_gb", "efficiency"):
            assert "# [" in line, line


def test_a_file_of_ones_own_is_read(tmp_path: Path) -> None:
    device = load_device(write(tmp_path, FACTS))
    assert device.title == "mine"
    assert device.peak_flops("fp32") == 35.6e12
    assert with_efficiency(device, 0.5).efficiency == 0.5
    assert with_efficiency(device, None) == device


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("memory_gb = 24.0>memory_gib = 24.0", "unknown-key"),
        ("fp32 = 35.6>bf16 = 35.6", "missing-key"),
        ("fp32 = 35.6>fp32 = 35.6\nfp64 = 1.0", "unknown-key"),
        ("fp32 = 35.6>fp32 = 0.0", "out-of-range"),
        ("efficiency = 0.3>efficiency = 40.0", "out-of-range"),
        ("devices_per_node = 2>devices_per_node = 0", "out-of-range"),
        ("link_gb_per_second = 16.0>link_gb_per_second = -1.0", "out-of-range"),
        ("efficiency = 0.3>efficiency = 0.3\nreserved_gb = 24.0", "out-of-range"),
        ('title = "mine">title = mine', "bad-device-file"),
    ],
)
def test_a_wrong_fact_is_refused_by_name(change: str, code: str, tmp_path: Path) -> None:
    old, new = change.split(">")
    with refuses(ConfigError, code) as caught:
        load_device(write(tmp_path, FACTS.replace(old, new)))
    assert "mine.toml" in str(caught.value)


def test_a_plan_leaves_a_tenth_of_the_memory_free(tmp_path: Path) -> None:
    device = load_device(write(tmp_path, FACTS.replace("efficiency = 0.3", "efficiency = 0.3\nreserved_gb = 4.0")))
    assert device.usable_bytes == pytest.approx(0.9 * (24 - 4) * 1e9)


def test_an_unknown_device_is_refused_with_the_nearest_name() -> None:
    with refuses(ConfigError, "unknown-device"):
        load_device("a100-80gb")
    with refuses(ConfigError, "missing-file", at="nowhere.toml"):
        load_device("nowhere.toml")


def test_this_machine_is_measured() -> None:
    device = load_device("this-cpu")
    assert device.tflops.fp32 > 0
    assert device.memory_gb_per_second > 0
    assert device.memory_gb > device.reserved_gb
    assert device.devices_per_node == 1
