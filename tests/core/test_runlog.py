"""The run's log: an interrupted run has the same file as an uninterrupted one."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from small_disk import small_disk

from litebert.core.errors import ConfigError, DataError, TrainingError
from litebert.core.runlog import METRICS_FILE, TIMING_FILE, RunLog, open_sinks, read_log, truncate_log


def write_steps(folder: Path, steps: range, *, resumed_step: int = 0) -> None:
    with RunLog(folder, resumed_step=resumed_step) as log:
        for step in steps:
            log.write(step, metrics={"loss": 10 / step, "lr": 0.1 * step}, timing={"seconds": 0.5})
        log.sync()


def test_lines_come_back_as_they_were_written(tmp_path: Path) -> None:
    write_steps(tmp_path / "run", range(1, 4))
    assert read_log(tmp_path / "run" / METRICS_FILE)[2] == {"step": 3, "loss": 10 / 3, "lr": 0.1 * 3}
    assert read_log(tmp_path / "run" / TIMING_FILE)[0] == {"step": 1, "seconds": 0.5}


@given(written=st.integers(0, 12), resumed=st.integers(0, 12), cut=st.integers(0, 60))
def test_resuming_gives_the_file_of_an_uninterrupted_run(
    tmp_path_factory: pytest.TempPathFactory, written: int, resumed: int, cut: int
) -> None:
    resumed = min(resumed, written)
    folder = tmp_path_factory.mktemp("runs")
    write_steps(folder / "straight", range(1, 13))
    write_steps(folder / "stopped", range(1, written + 1))
    path = folder / "stopped" / METRICS_FILE
    # a kill in the middle of a write: some bytes of the line after the last
    next_line = b'{"step": 99, "loss": 0.1234567890123456, "lr": 0.333333333333}\n'
    with path.open("ab") as file:
        file.write(next_line[:cut])
    write_steps(folder / "stopped", range(resumed + 1, 13), resumed_step=resumed)
    assert path.read_bytes() == (folder / "straight" / METRICS_FILE).read_bytes()


def test_forgetting_twice_changes_nothing_more(tmp_path: Path) -> None:
    write_steps(tmp_path, range(1, 9))
    path = tmp_path / METRICS_FILE
    truncate_log(path, 5)
    once = path.read_bytes()
    truncate_log(path, 5)
    truncate_log(path, 8)
    assert path.read_bytes() == once
    assert [record["step"] for record in read_log(path)] == [1, 2, 3, 4, 5]


def test_a_fresh_run_forgets_everything(tmp_path: Path) -> None:
    write_steps(tmp_path, range(1, 9))
    write_steps(tmp_path, range(1, 2))
    assert [record["step"] for record in read_log(tmp_path / METRICS_FILE)] == [1]


def test_reading_a_live_log_leaves_the_half_line_out(tmp_path: Path) -> None:
    (tmp_path / METRICS_FILE).write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "lo')
    assert read_log(tmp_path / METRICS_FILE) == [{"step": 1, "loss": 2.0}]


@pytest.mark.parametrize("line", ["not json", "[1]", '{"loss": 2.0}', '{"step": true}', "[" * 100_000])
def test_a_damaged_line_is_named_and_nothing_is_cut(tmp_path: Path, line: str) -> None:
    path = tmp_path / METRICS_FILE
    content = f'{{"step": 1}}\n{line}\n{{"step": 3}}\n'
    path.write_text(content)
    with refuses(DataError, "corrupt-log", at="metrics.jsonl:2"):
        truncate_log(path, 3)
    assert path.read_text() == content


def test_a_missing_log_is_named(tmp_path: Path) -> None:
    with refuses(DataError, "missing-file"):
        read_log(tmp_path / METRICS_FILE)


def test_a_missing_log_here_is_named_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with refuses(DataError, "missing-file"):
        read_log(Path(METRICS_FILE))


def test_a_full_disk_stops_the_run_and_the_log_can_be_continued(tmp_path: Path) -> None:
    with small_disk(100), refuses(TrainingError, "cannot-write", at=METRICS_FILE):
        write_steps(tmp_path, range(1, 100))
    whole = read_log(tmp_path / METRICS_FILE)[-1]["step"]
    write_steps(tmp_path, range(whole + 1, 9), resumed_step=whole)
    assert [record["step"] for record in read_log(tmp_path / METRICS_FILE)] == list(range(1, 9))


def test_values_that_are_not_numbers_are_not_logged(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log, pytest.raises(ValueError, match="JSON compliant"):
        log.write(1, metrics={"loss": float("nan")}, timing={})


def test_sinks_get_every_number(tmp_path: Path) -> None:
    seen = []

    class Sink:
        def write(self, step: int, values: object) -> None:
            seen.append((step, values))

        def close(self) -> None:
            seen.append("closed")

    with RunLog(tmp_path, sinks=[Sink()]) as log:
        log.write(1, metrics={"loss": 2.0}, timing={"seconds": 1.0})
    assert seen == [(1, {"loss": 2.0, "seconds": 1.0}), "closed"]


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_a_log_that_is_not_installed_names_its_extra(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (name, "tensorboard.summary"):
        monkeypatch.setitem(sys.modules, module, None)
    with refuses(ConfigError, "missing-package"):
        open_sinks([name], tmp_path, run_name="run", config={})


def test_an_unknown_log_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with refuses(ConfigError, "unknown-value"):
        open_sinks(["tensor-board"], tmp_path, run_name="run", config={})


def test_tensorboard_can_read_what_its_sink_writes(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with RunLog(tmp_path, sinks=open_sinks(["tensorboard"], tmp_path, run_name="run", config={})) as log:
        log.write(7, metrics={"loss": 2.5}, timing={"seconds": 1.0})
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert sorted(events.Tags()["tensors"]) == ["loss", "seconds"]
    assert events.Tensors("loss")[0].step == 7


def test_two_runs_with_one_name_are_two_at_wandb_and_a_resumed_run_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=lambda **words: begun.append(words["id"])))
    for folder in (tmp_path / "a" / "nano", tmp_path / "b" / "nano", tmp_path / "a" / "nano"):
        open_sinks(["wandb"], folder, run_name=folder.name, config={})
    assert begun[0] != begun[1]
    assert begun[0] == begun[2]
