"""`litebert recipes plan` as a person meets it."""

import json
from pathlib import Path

import pytest

from litebert.cli.main import _run


def plan(*words: str) -> int:
    return _run(["recipes", "plan", *words], debug=False)


def test_the_table_says_what_fits_what_is_sent_and_how_long_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan("albert-large", "--devices", "64", "--hardware", "a100-80g") == 0
    shown = capsys.readouterr().out
    assert "albert-large on 64 x NVIDIA A100 80 GB, fp32 at 40% of 19.5 TFLOP/s" in shown
    assert "17,847,474 parameters, shared across layers" in shown
    for row in ("optimizer state", "activations", "largest micro-batch", "sent per step", "of which waiting", "hours"):
        assert row in shown
    assert "18.8 times as many to send" in shown


def test_every_stage_has_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan("bert-base", "--devices", "16", "--hardware", "tpu-v3") == 0
    shown = capsys.readouterr().out
    assert "stage 1: steps 0 to 900,000" in shown
    assert "stage 2: steps 900,000 to 1,000,000" in shown
    assert "litebert does not run on TPUs" in shown


def test_json_holds_the_same_and_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan("albert-base", "--devices", "8", "--hardware", "v100-32g", "--efficiency", "0.3", "--json") == 0
    values = json.loads(capsys.readouterr().out)
    way = values["stages"][0]["ways"][0]
    assert values["machine"]["device"]["efficiency"] == 0.3
    assert way["messages"][0]["num_bytes"] == 4 * 11_813_810
    assert way["messages"][0]["number"] is None  # torch decides
    assert way["memory"]["total"] > way["memory"]["activations"]
    assert way["hours"] == pytest.approx(way["step_seconds"] * 125_000 / 3600)
    assert values["bert"]["num_parameters"] == 109_705_010


def test_a_plan_that_does_not_fit_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.toml").write_text(
        'title = "a toy"\nmemory_gb = 1.0\nmemory_gb_per_second = 10.0\nlink_gb_per_second = 1.0\n'
        "network_gb_per_second = 1.0\ndevices_per_node = 1\nefficiency = 0.4\n[tflops]\nfp32 = 1.0\n"
    )
    assert plan("albert-xxlarge", "--devices", "2", "--hardware", str(tmp_path / "small.toml")) == 0
    shown = capsys.readouterr().out
    assert "does not fit" in shown
    assert "does not fit: a single sequence needs" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["albert-base", "--hardware", "a100"], "unknown device 'a100'"),
        (["albert-base", "train.stepps=5", "--hardware", "a100-80g"], "unknown key 'train.stepps'"),
        (["albert-base", "--hardware", "a100-80g", "--efficiency", "40"], "efficiency must be above 0 and at most 1"),
        (["albert-bas", "--hardware", "a100-80g"], "unknown recipe 'albert-bas'"),
    ],
)
def test_a_slip_is_refused_in_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(*words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
