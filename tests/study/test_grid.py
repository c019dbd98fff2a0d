"""Many arms: in their order, as many at a time as allowed, none that somebody else has, and no failure unsaid."""

import io
import itertools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from refusals import refuses
from rich.console import Console

from litebert.core.errors import TrainingError
from litebert.core.files import exclusive_lock
from litebert.core.runlog import RunLog
from litebert.study import grid as module
from litebert.study.arms import ArmRun, plan_arms
from litebert.study.estimate import Cost, estimate_end, threads_of_one
from litebert.study.grid import Grid, _Clock, run_grid, share_done
from litebert.study.place import Place
from litebert.study.spec import load_study
from litebert.study.view import GridStatus, GridView, draw_grid

COST = Cost(train_hours=1.0, task_hours=1.0, flops=1.0, tokens=1, num_uncounted=0)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)


def make_grid(folder: Path, runs: list[ArmRun], seconds: Callable[[ArmRun], float] = lambda _: 0.2) -> Grid:
    """Arms that only pretend; one of 0 seconds fails, one of fewer finds that another process has it."""
    folder.mkdir(exist_ok=True)
    return Grid(
        Place(folder, {}, None),
        {run.name: COST for run in runs},
        lambda run: ["tests.study.pretend", str(folder), run.name, str(seconds(run))],
        lambda run: (folder / f"{run.name}.json").is_file(),
        list(runs),
    )


def moments(folder: Path, kind: str) -> dict[str, float]:
    return {path.stem: float(path.read_text() or 0) for path in folder.glob(f"*.{kind}")}


def test_all_arms_run_and_at_most_as_many_at_a_time_as_allowed(tmp_path: Path) -> None:
    runs = plan_arms(load_study("table-5"), "laptop")
    assert run_grid(make_grid(tmp_path, runs), jobs=2, view=GridView("t", io.StringIO())) == []
    begun, ended = moments(tmp_path, "begun"), moments(tmp_path, "ended")
    assert begun.keys() == ended.keys() == {run.name for run in runs}
    for name, moment in begun.items():
        assert sum(begun[other] <= moment < ended[other] for other in begun) <= 2, name


def test_an_arm_waits_for_the_one_it_starts_from(tmp_path: Path) -> None:
    runs = plan_arms(load_study("table-11"), "laptop", seeds=[1])[:3]
    run_grid(make_grid(tmp_path, runs, lambda _: 0.05), jobs=3, view=GridView("t", io.StringIO()))
    begun, ended = moments(tmp_path, "begun"), moments(tmp_path, "ended")
    for run in runs[1:]:
        assert begun[run.name] >= ended[run.starts_from]


def test_finished_arms_are_not_begun_and_those_of_others_are_named(tmp_path: Path) -> None:
    runs = plan_arms(load_study("table-5"), "laptop", seeds=[1])
    (tmp_path / f"{runs[0].name}.json").write_text("{}")
    grid = make_grid(tmp_path, runs, lambda _: 0.05)
    with exclusive_lock(grid.place.lock_folder(runs[1].name), purpose="running this arm"):
        assert run_grid(grid, jobs=1, view=GridView("t", io.StringIO())) == [runs[1].name]
    assert moments(tmp_path, "begun").keys() == {runs[2].name}


def test_a_finished_arm_does_not_need_the_one_that_it_started_from(tmp_path: Path) -> None:
    _, run = plan_arms(load_study("table-11"), "laptop", seeds=[1])[:2]
    assert run.starts_from
    (tmp_path / f"{run.name}.json").write_text("{}")
    assert run_grid(make_grid(tmp_path, [run]), jobs=1, view=GridView("t", io.StringIO())) == []


def test_a_failed_arm_is_named_with_its_last_output_and_the_others_continue(tmp_path: Path) -> None:
    runs = plan_arms(load_study("table-5"), "laptop", seeds=[1])
    grid = make_grid(tmp_path, runs, lambda run: 0.0 if run.arm == "nsp" else 0.05)
    stream = io.StringIO()
    with refuses(TrainingError, "arms-failed", at="nsp-seed-1.log"):
        run_grid(grid, jobs=1, view=GridView("t", stream))
    assert "nsp-seed-1: stopped (error: no room on the disk)" in stream.getvalue()
    assert moments(tmp_path, "ended").keys() == {"none-seed-1", "sop-seed-1"}


def test_arms_whose_start_has_failed_are_named_and_not_done(tmp_path: Path) -> None:
    runs = plan_arms(load_study("table-11"), "laptop", seeds=[1])[:3]
    grid = make_grid(tmp_path, runs, lambda run: 0.0 if run.arm == "depth-1" else 0.05)
    with refuses(TrainingError, "arms-failed"):
        run_grid(grid, jobs=2, view=GridView("t", io.StringIO()))
    assert moments(tmp_path, "ended") == {}


def test_an_arm_whose_start_nobody_runs_is_named(tmp_path: Path) -> None:
    runs = plan_arms(load_study("table-11"), "laptop", seeds=[1])[1:2]
    with refuses(TrainingError, "arms-failed"):
        run_grid(make_grid(tmp_path, runs), jobs=1, view=GridView("t", io.StringIO()))


def test_an_arm_waits_for_a_start_that_another_process_is_at_work_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = plan_arms(load_study("table-11"), "laptop", seeds=[1])[:2]
    grid = make_grid(tmp_path, runs, lambda _: 0.05)
    look, polls = module._look_elsewhere, itertools.count(1)

    def finish_at_the_fifth_look(grid: Grid) -> None:
        if next(polls) == 5:
            (tmp_path / f"{runs[0].name}.json").write_text("{}")
        look(grid)

    monkeypatch.setattr(module, "_look_elsewhere", finish_at_the_fifth_look)
    with exclusive_lock(grid.place.lock_folder(runs[0].name), purpose="running this arm"):
        assert run_grid(grid, jobs=2, view=GridView("t", io.StringIO())) == []
    assert moments(tmp_path, "begun").keys() == {runs[1].name}
    assert next(polls) > 5


def test_an_arm_that_another_process_took_a_moment_before_is_no_failure(tmp_path: Path) -> None:
    runs = plan_arms(load_study("table-5"), "laptop", seeds=[1])[:1]
    attempts: list[float] = []

    def seconds(_: ArmRun) -> float:
        attempts.append(-1.0 if not attempts else 0.05)  # the other one has died since: it is ours
        return attempts[-1]

    stream = io.StringIO()
    run_grid(make_grid(tmp_path, runs, seconds), jobs=1, view=GridView("t", stream))
    assert attempts == [-1.0, 0.05]
    assert "none-seed-1: left to another process" in stream.getvalue()
    assert moments(tmp_path, "ended").keys() == {runs[0].name}


def test_the_time_left_is_estimated_from_this_call_alone(tmp_path: Path) -> None:
    runs = plan_arms(load_study("table-5"), "laptop", seeds=[1, 2])
    assert len(runs) == 6
    for run in runs[:3]:
        (tmp_path / f"{run.name}.json").write_text("{}")
    now = [0.0]
    grid = make_grid(tmp_path, runs)
    clock = _Clock(grid, runs, 2, clock=lambda: now[0])
    grid.finished, grid.waiting = [run.name for run in runs[:3]], runs[3:]
    assert clock.status().seconds_left == 3 * 2 * 3600 / 2  # three arms of two hours, two at a time
    now[0] = 7200.0
    grid.finished.append(runs[3].name)
    grid.waiting = runs[4:]
    status = clock.status()
    assert status.seconds_left == 2 * 7200.0
    assert status.share == pytest.approx(4 / 6)


def test_arms_side_by_side_share_the_processors_that_they_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert [threads_of_one(jobs) for jobs in (1, 2, 4, 8)] == [6, 3, 1, 1]


def test_the_end_is_estimated_with_arms_side_by_side_and_after_each_other() -> None:
    runs = plan_arms(load_study("table-5"), "laptop", seeds=[1, 2])
    assert estimate_end(runs, dict.fromkeys((run.name for run in runs), 1.0), 2) == 3.0
    assert estimate_end(runs, dict.fromkeys((run.name for run in runs), 1.0), 4) == 2.0
    chain = plan_arms(load_study("table-11"), "laptop", seeds=[1])
    assert estimate_end(chain, dict.fromkeys((run.name for run in chain), 1.0), 2) == len(chain)
    assert estimate_end([], {}, 2) == 0.0


@pytest.mark.parametrize(("sent", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_no_process_is_left_after_termination(
    sent: signal.Signals, raised: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = plan_arms(load_study("table-5"), "laptop", seeds=[1])
    grid = make_grid(tmp_path, runs, lambda _: 60.0)
    monkeypatch.setattr(module, "_collect", lambda *_: signal.raise_signal(sent))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(raised):
            run_grid(grid, jobs=2, view=GridView("t", io.StringIO()))
    finally:
        signal.signal(signal.SIGINT, before)
    assert [process.poll() is not None for _, process in grid.running.values()] == [True, True]


def test_arms_end_with_a_study_that_is_killed(tmp_path: Path) -> None:
    process = os.fork()
    if process == 0:
        runs = plan_arms(load_study("table-5"), "laptop", seeds=[1])
        run_grid(make_grid(tmp_path, runs, lambda _: 600.0), jobs=2, view=GridView("t", io.StringIO()))
        os._exit(0)
    while len(moments(tmp_path, "begun")) < 2:
        assert os.waitpid(process, os.WNOHANG)[0] == 0
        time.sleep(0.02)
    arms = psutil.Process(process).children()
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    gone, alive = psutil.wait_procs(arms, timeout=60)
    assert (len(gone), alive) == (2, [])


def test_how_far_an_arm_has_come_is_read_from_its_logs(tmp_path: Path) -> None:
    (run,) = plan_arms(load_study("table-5"), "laptop", arms=["sop"], seeds=[1])
    place = Place(tmp_path, {}, None)
    assert share_done(run, place, COST) == 0.0
    with RunLog(place.run_folder(run.name)) as log:
        log.write(run.recipe.train.steps // 2, metrics={"tokens": 7}, timing={"seconds": 1.0})
    assert share_done(run, place, COST) == pytest.approx(0.25)  # half of the training, none of the tasks
    task = place.task_folder(run, run.at_scale.tasks[0], 1)
    task.mkdir(parents=True)
    (task / "report.json").write_text("{}")
    assert share_done(run, place, COST) == pytest.approx(0.75)


def test_the_view_shows_running_arms_and_the_time_left() -> None:
    status = GridStatus(2, 6, {"sop-seed-1": 0.4}, share=0.4, seconds_left=5400.0)
    assert status.words == "2 of 6 arms finished; sop-seed-1 40%; about 1 h 30 min left"
    stream = io.StringIO()
    with GridView("table-5", stream) as view:
        view.show(status)
        view.show(status)  # too soon for another line
    assert stream.getvalue().count("\n") == 1
    console = Console(file=io.StringIO(), width=80)
    console.print(draw_grid("table-5", status))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "40%, about 1 h 30 min left" in shown
    assert "2 of 6 arms finished" in shown
