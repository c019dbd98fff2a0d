"""One arm: run once, gone on with after an interruption, measured again when the measurements change, never stale."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from other_corpora import change_text
from refusals import refuses

from litebert.checkpoint import list_checkpoints
from litebert.core.errors import BusyError, ConfigError
from litebert.core.files import exclusive_lock
from litebert.core.runlog import read_log
from litebert.core.runtime import read_ranks
from litebert.core.sealed import read_sealed, write_sealed
from litebert.pretraining import pretrain as pretraining
from litebert.pretraining.run_folder import save
from litebert.study import arm as story
from litebert.study.arm import alone, find_report, help_arm, run_arm
from litebert.study.arms import ArmRun, plan_arms
from litebert.study.identity import describe_texts
from litebert.study.place import Place, locate_corpora, open_place, report_file
from litebert.study.spec import ArmSpec, Study, TaskSpec, load_study
from tests.study.miniatures import make_task_data, shrink


@pytest.fixture(scope="module")
def task_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_task_data(tmp_path_factory.mktemp("task-data"))


def plan_small(name: str, *, arm: str, words: tuple[str, ...] = (), **changes: Any) -> ArmRun:
    """An arm of a small study; `changes` are of its scale."""
    small = shrink(load_study(name), "laptop")
    study: Study = replace(small, scales={"laptop": replace(small.at("laptop"), **changes)})
    return next(run for run in plan_arms(study, "laptop", words=words) if run.arm == arm)


def silent(_: str) -> None:
    pass


def reproducible(report: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in report.items() if key not in ("timed", "machine")}


class Interrupted(Exception):
    pass


def place_for(run: ArmRun, folder: Path, corpus: Path, data: Path) -> Place:
    return open_place([run], folder, [str(corpus)], data)


def test_an_arm_interrupted_after_each_of_its_parts_ends_with_the_same_report(
    tiny_corpus: Path, task_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = plan_small("table-5", arm="sop")
    whole = run_arm(run, place_for(run, tmp_path / "a", tiny_corpus, task_data), silent)
    place = place_for(run, tmp_path / "b", tiny_corpus, task_data)
    for part in ("measure", "tune_all", "write_sealed"):
        with monkeypatch.context() as patch, pytest.raises(Interrupted):

            def die(*_: object, **__: object) -> None:
                raise Interrupted

            patch.setattr(story, part, die)
            run_arm(run, place, silent)
        assert not report_file(place.folder, run).exists()
    resumed = run_arm(run, place, silent)
    assert reproducible(resumed) == reproducible(whole)
    assert whole["counts"].keys() == whole["intervals"].keys() - {"avg"}
    assert whole["corpora"]["main"]["first_sentences"] is None
    assert len(whole["corpora"]["main"]["file_names"]) == whole["corpora"]["main"]["files"]
    assert resumed == read_sealed(report_file(place.folder, run))


def test_a_finished_arm_is_not_run_again(
    tiny_corpus: Path, task_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = plan_small("figure-2b", arm="with")
    place = place_for(run, tmp_path / "out", tiny_corpus, task_data)
    first = run_arm(run, place, silent)
    monkeypatch.setattr(story, "pretrain", None)  # would fail if it were called
    monkeypatch.setattr(story, "measure", None)
    assert run_arm(run, place, silent) == first


def test_other_measurements_measure_again_and_train_nothing(tiny_corpus: Path, task_data: Path, tmp_path: Path) -> None:
    run = plan_small("figure-2b", arm="with", measures=("curves",))
    place = place_for(run, tmp_path / "out", tiny_corpus, task_data)
    first = run_arm(run, place, silent)
    weights = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").rglob("model.safetensors")}
    more = plan_small("figure-2b", arm="with", measures=("curves", "parameters"))
    second = run_arm(more, place, silent)
    assert "parameters" in second["values"].keys() - first["values"].keys()
    assert second["fingerprint"] != first["fingerprint"]
    assert {path: path.stat().st_mtime_ns for path in weights} == weights


def test_an_arm_that_was_finished_under_another_recipe_or_text_is_refused(
    tiny_corpus: Path, task_data: Path, tmp_path: Path
) -> None:
    run = plan_small("figure-2b", arm="with", measures=("curves",))
    place = place_for(run, tmp_path / "out", tiny_corpus, task_data)
    run_arm(run, place, silent)
    changed = plan_small("figure-2b", arm="with", words=("optim.learning_rate=0.5",), measures=("curves",))
    with refuses(ConfigError, "options-changed", at="optim.learning_rate"):
        run_arm(changed, place, silent)
    report = read_sealed(report_file(place.folder, run))
    report["corpora"]["main"]["fingerprint"] = report["fingerprint"] = "another"
    write_sealed(report_file(place.folder, run), report)
    with refuses(ConfigError, "options-changed"):
        run_arm(run, place, silent)


def test_a_task_that_cannot_be_tuned_is_refused_before_anything_is_trained(
    tiny_corpus: Path, task_data: Path, tmp_path: Path
) -> None:
    task = TaskSpec(task="sst-2", data="glue", change=("train.step=5",))
    run = plan_small("figure-2b", arm="with", tasks=(task,))
    with refuses(ConfigError, "unknown-key", at="train.step"):
        run_arm(run, place_for(run, tmp_path / "out", tiny_corpus, task_data), silent)
    assert not (tmp_path / "out" / "runs").exists()


def test_torchruns_other_processes_train_and_leave_the_rest_to_the_first(
    tiny_corpus: Path, task_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = plan_small("figure-2b", arm="with")
    place = place_for(run, tmp_path / "out", tiny_corpus, task_data)
    trained: list[Path] = []
    monkeypatch.setattr(story, "pretrain", lambda _, folder, **__: trained.append(folder))
    help_arm(run, place)
    assert trained == [place.run_folder(run.name)]
    assert not place.lock_folder(run.name).exists()
    assert not report_file(place.folder, run).exists()


def test_measuring_knows_nothing_of_torchruns_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    with alone():
        assert read_ranks().world_size == 1
    assert read_ranks().world_size == 2


def test_an_arm_that_somebody_runs_is_left_to_them(tiny_corpus: Path, task_data: Path, tmp_path: Path) -> None:
    run = plan_small("figure-2b", arm="with")
    place = place_for(run, tmp_path / "out", tiny_corpus, task_data)
    with exclusive_lock(place.lock_folder(run.name), purpose="running this arm"), pytest.raises(BusyError):
        run_arm(run, place, silent)


def plan_branch(*, has_change: bool) -> list[ArmRun]:
    """A small run and one that goes on from its middle, with what is changed there or without."""
    small = shrink(load_study("figure-2b"), "laptop")
    arms = {**small.arms} if has_change else {**small.arms, "removed": copy_change(small, "with", "removed")}
    measured = replace(small.at("laptop"), measures=("curves",))
    return plan_arms(replace(small, arms=arms, scales={"laptop": measured}), "laptop")


def copy_change(study: Study, source: str, target: str) -> ArmSpec:
    return replace(study.arms[target], change=study.arms[source].change)


@pytest.mark.parametrize("has_change", [False, True])
def test_an_arm_that_continues_another_differs_by_its_change_alone(
    has_change: bool, tiny_corpus: Path, task_data: Path, tmp_path: Path
) -> None:
    trunk, branch = plan_branch(has_change=has_change)
    place = place_for(trunk, tmp_path / "out", tiny_corpus, task_data)
    for run in (trunk, branch):
        run_arm(run, place, silent)
    logs = [read_log(place.run_folder(run.name) / "metrics.jsonl") for run in (trunk, branch)]
    after = [record for record in logs[0] if record["step"] > branch.starts_at]
    assert [record["step"] for record in logs[1]] == [record["step"] for record in after]
    own = [{**record, "tokens": 0} for record in logs[1]]
    theirs = [{**record, "tokens": 0} for record in after]
    assert (own != theirs) == has_change
    last = [list_checkpoints(place.run_folder(run.name) / "checkpoints")[-1] for run in (trunk, branch)]
    names = ("model.safetensors", "optimizer.safetensors")
    assert all((last[0] / name).read_bytes() == (last[1] / name).read_bytes() for name in names) != has_change


def test_the_step_that_another_arm_continues_from_is_kept(tiny_corpus: Path, task_data: Path, tmp_path: Path) -> None:
    study = shrink(load_study("figure-2b"), "laptop")
    steps = {"laptop": replace(study.at("laptop"), change={"train": {"keep_last": 1}}, measures=("curves",))}
    trunk, branch = plan_arms(replace(study, scales=steps), "laptop", words=["train.save_every=3"])
    assert branch.starts_at % 3, "or it would be saved anyway"
    place = place_for(trunk, tmp_path / "out", tiny_corpus, task_data)
    run_arm(trunk, place, silent)
    kept = place.run_folder(trunk.name) / "checkpoints" / f"step-{branch.starts_at:08d}"
    assert kept.is_dir()
    shutil.rmtree(kept)
    with refuses(ConfigError, "missing-file"):
        run_arm(branch, place, silent)


def test_an_arm_begins_with_the_weights_of_the_one_it_starts_from(
    tiny_corpus: Path, task_data: Path, tmp_path: Path
) -> None:
    first, second = (plan_small("table-11", arm=arm, measures=("curves",), tasks=()) for arm in ("depth-1", "depth-3"))
    place = place_for(second, tmp_path / "out", tiny_corpus, task_data)
    with refuses(ConfigError, "arm-not-finished"):
        run_arm(second, place, silent)
    run_arm(first, place, silent)
    run_arm(second, place, silent)
    recipe = (tmp_path / "out" / "runs" / second.name / "recipe.toml").read_text()
    assert f'from = "{tmp_path}/out/runs/depth-1-seed-1/checkpoints/step-00000004"' in recipe


def plan_chain(**changes: Any) -> list[ArmRun]:
    """Two small arms, the second of which starts from the first; `changes` are of the first."""
    small = shrink(load_study("table-11"), "laptop")
    first = replace(small.arms["depth-1"], change={**small.arms["depth-1"].change, **changes})
    measured = replace(small.at("laptop"), measures=("curves",), tasks=())
    study = replace(small, arms={**small.arms, "depth-1": first}, scales={"laptop": measured})
    return plan_arms(study, "laptop", arms=["depth-1", "depth-3"])


FASTER = {"optim": {"learning_rate": 0.5}}


def test_an_arm_is_stale_when_the_one_it_starts_from_has_changed(
    tiny_corpus: Path, task_data: Path, tmp_path: Path
) -> None:
    place = place_for(plan_chain()[0], tmp_path / "out", tiny_corpus, task_data)
    for run in plan_chain():
        run_arm(run, place, silent)
    assert run_arm(plan_chain()[1], place, silent)
    with refuses(ConfigError, "options-changed", at="optim.learning_rate"):
        run_arm(plan_chain(**FASTER)[1], place, silent)


def test_an_arm_does_not_start_from_a_stale_one(tiny_corpus: Path, task_data: Path, tmp_path: Path) -> None:
    first, _ = plan_chain()
    place = place_for(first, tmp_path / "out", tiny_corpus, task_data)
    run_arm(first, place, silent)
    with refuses(ConfigError, "options-changed", at="depth-1-seed-1.json"):
        run_arm(plan_chain(**FASTER)[1], place, silent)
    shutil.rmtree(place.run_folder(first.name))
    with refuses(ConfigError, "missing-file", at="depth-1-seed-1.json"):
        run_arm(plan_chain()[1], place, silent)


def stop_after_first_save(run: ArmRun, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run an arm until its first checkpoint is there."""

    def save_and_stop(*words: Any) -> None:
        save(*words)
        raise Interrupted

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(pretraining, "save", save_and_stop)
        run_arm(run, place, silent)
    assert len(list(place.run_folder(run.name).glob("checkpoints/step-*"))) == 1


def forget(run: ArmRun, place: Place) -> None:
    report_file(place.folder, run).unlink()
    shutil.rmtree(place.run_folder(run.name))


def test_an_unfinished_arm_resumes_only_from_the_same_start(
    tiny_corpus: Path, task_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = place_for(plan_chain()[0], tmp_path / "whole", tiny_corpus, task_data)
    expected = [reproducible(run_arm(run, whole, silent)) for run in plan_chain()]
    first, second = plan_chain()
    place = place_for(first, tmp_path / "out", tiny_corpus, task_data)
    run_arm(first, place, silent)
    stop_after_first_save(second, place, monkeypatch)
    forget(first, place)
    other_first, other_second = plan_chain(**FASTER)
    run_arm(other_first, place, silent)
    with refuses(ConfigError, "input-changed"):
        run_arm(other_second, place, silent)
    assert not report_file(place.folder, other_second).exists()
    forget(first, place)
    run_arm(first, place, silent)  # the same weights again
    assert reproducible(run_arm(second, place, silent)) == expected[1]


def test_an_unfinished_arm_resumes_where_it_was_moved_to(
    tiny_corpus: Path, task_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    shutil.copytree(tiny_corpus, here / "corpus")
    first, second = plan_chain()
    place = place_for(first, here / "out", here / "corpus", task_data)
    run_arm(first, place, silent)
    stop_after_first_save(second, place, monkeypatch)
    shutil.copytree(here, tmp_path / "kept")
    expected = reproducible(run_arm(second, place, silent))
    shutil.rmtree(here)
    (tmp_path / "kept").rename(there)
    monkeypatch.chdir(there)
    assert reproducible(run_arm(second, place_for(second, Path("out"), Path("corpus"), task_data), silent)) == expected
    shutil.copytree(there / "out", tmp_path / "again")  # trained, to be measured otherwise
    place = place_for(first, tmp_path / "again", there / "corpus", task_data)
    measured = replace(second.study.at("laptop"), measures=("parameters", "curves"))
    more = replace(second, study=replace(second.study, scales={"laptop": measured}))
    assert "parameters" in run_arm(more, place, silent)["values"]


def test_an_unfinished_arm_does_not_resume_with_another_text(
    tiny_corpus: Path, task_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = tmp_path / "corpus"
    shutil.copytree(tiny_corpus, corpus)
    run = plan_small("figure-2b", arm="with", measures=("curves",))
    place = place_for(run, tmp_path / "out", corpus, task_data)
    stop_after_first_save(run, place, monkeypatch)
    change_text(corpus)
    with refuses(ConfigError, "input-changed"):
        run_arm(run, place, silent)


def test_an_arm_is_current_though_others_of_its_study_read_more(
    tiny_corpus: Path, task_data: Path, tmp_path: Path
) -> None:
    run = plan_small("table-7", arm="main", measures=("curves",), tasks=())
    report = run_arm(run, place_for(run, tmp_path / "out", tiny_corpus, task_data), silent)
    runs = [run, plan_small("table-7", arm="extra", measures=("curves",), tasks=())]
    place = open_place(runs, tmp_path / "out", [f"main={tiny_corpus}", f"extra={tiny_corpus}"], task_data)
    assert find_report(run, place, describe_texts(runs, place)) == report


def test_a_task_of_another_recipe_or_other_examples_is_tuned_again_and_nothing_is_trained(
    tiny_corpus: Path, tmp_path: Path
) -> None:
    task = shrink(load_study("table-5"), "laptop").at("laptop").tasks[1]
    run = plan_small("figure-2b", arm="with", measures=("curves",), tasks=(task,))
    place = place_for(run, tmp_path / "out", tiny_corpus, make_task_data(tmp_path / "data"))
    first = run_arm(run, place, silent)
    (weights,) = place.run_folder(run.name).glob("checkpoints/step-00000004/model.safetensors")
    trained_at = weights.stat().st_mtime_ns
    longer = replace(task, change=(*task.change, "train.steps=3"))
    other = plan_small("figure-2b", arm="with", measures=("curves",), tasks=(longer,))
    second = run_arm(other, place, silent)
    assert second["measures"] != first["measures"]
    rows = next((tmp_path / "data" / "glue" / "SST-2").glob("dev*"))
    rows.write_text(rows.read_text().replace("cat", "dog", 1))
    third = run_arm(other, place, silent)
    assert third["task_data"] != second["task_data"]
    assert weights.stat().st_mtime_ns == trained_at


def test_an_ensemble_is_of_the_runs_that_there_are(tiny_corpus: Path, task_data: Path, tmp_path: Path) -> None:
    task = replace(shrink(load_study("table-5"), "laptop").at("laptop").tasks[1], has_ensemble=True)
    members = []
    for number in (2, 3):
        run = plan_small("figure-2b", arm="with", measures=("curves",), tasks=(replace(task, seeds=number),))
        place = place_for(run, tmp_path / "out", tiny_corpus, task_data)
        assert f"{task.metric}-ensemble" in run_arm(run, place, silent)["values"]
        report = json.loads((place.run_folder(f"{run.name}-{task.metric}-ensemble") / "report.json").read_text())
        members.append(len(report["members"]))
    assert members == [2, 3]


def test_held_out_text_is_part_of_what_a_corpus_is(tiny_corpus: Path, tmp_path: Path) -> None:
    run = plan_small("figure-2b", arm="with")
    other = tmp_path / "other"
    shutil.copytree(tiny_corpus, other)
    change_text(other, "valid")
    texts = [describe_texts([run], Place(tmp_path, {"main": path}, None)) for path in (tiny_corpus, other)]
    assert texts[0].corpora["main"]["fingerprint"] != texts[1].corpora["main"]["fingerprint"]


@pytest.mark.parametrize(
    ("corpora", "data", "code"),
    [
        (["nowhere"], ".", "no-corpus"),
        (["books=."], ".", "unknown-value"),
        (["."], "nowhere", "no-task-data"),
    ],
)
def test_what_an_arm_will_read_is_looked_for_before_it_trains(
    corpora: list[str], data: str, code: str, tmp_path: Path
) -> None:
    runs = plan_arms(load_study("table-5"), "laptop")
    with refuses(ConfigError, code):
        open_place(runs, tmp_path, corpora, Path(data))


def test_an_existing_path_with_an_equals_sign_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "v=2" / "corpus").mkdir(parents=True)
    runs = plan_arms(load_study("table-5"), "laptop")
    for words, path in (("{0}/v=2/corpus", "v=2/corpus"), ("main={0}/v=2", "v=2")):
        assert locate_corpora(runs, [words.format(tmp_path)]) == {"main": tmp_path / path}


def test_without_a_folder_of_tasks_data_one_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LITEBERT_DATA", raising=False)
    with refuses(ConfigError, "no-task-data"):
        open_place(plan_arms(load_study("table-5"), "laptop"), tmp_path, ["."], None)


def test_a_study_that_trains_nothing_needs_no_text(tmp_path: Path) -> None:
    runs = plan_arms(load_study("table-2-speed"), "laptop")
    assert open_place(runs, tmp_path, [], None).corpora == {}
