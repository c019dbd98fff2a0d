"""Runs one arm: pre-train, measure, fine-tune, report.

An arm that was killed resumes when it is started again: pre-training and fine-tuning are ordinary runs, and the report
is written last, because it marks a complete arm.
"""

import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from litebert.checkpoint import list_checkpoints, load_checkpoint
from litebert.core.errors import ConfigError
from litebert.core.files import atomic_path, check_keys, exclusive_lock
from litebert.core.runtime import choose_runtime, describe_processor
from litebert.core.sealed import read_sealed, write_sealed
from litebert.pretraining.pretrain import pretrain
from litebert.pretraining.recipe import Recipe, build_recipe, read_recipe_values, with_paths
from litebert.study.arms import ArmRun, list_ancestors, start_of
from litebert.study.downstream import tune_all
from litebert.study.identity import (
    Texts,
    check_current,
    describe_measures,
    describe_texts,
    fingerprint,
    hash_corpora,
    list_other_measures,
)
from litebert.study.measures import FUNCTIONS, Measured, Subject
from litebert.study.place import FORMAT_VERSION, Place, Report, read_arm_report, report_file
from litebert.training.kept_checkpoints import CHECKPOINTS, RECIPE_FILE, check_is_ours, checkpoint_path

BEGINNING = "begun-with.json"  # in the folder of an arm's pre-training
PLACES = "places"  # key of the folders in the same file

Say = Callable[[str], None]


def run_arm(run: ArmRun, place: Place, say: Say = print) -> Report:
    """Run the missing steps of one arm and seed, and return its report; raises if another process is running it.

    Under torchrun, all processes pre-train together; the first one does everything else.
    """
    describe_measures(run)  # builds the tasks' recipes, so that a wrong key raises before training
    with exclusive_lock(place.lock_folder(run.name), purpose="running this arm"):
        for path in place.folder.glob(f".{report_file(place.folder, run).name}.*.tmp"):
            path.unlink()  # left by a killed process; temporary files of other arms may be in use
        texts = describe_texts([run], place)
        finished = find_report(run, place, texts)
        if finished is not None:
            return finished
        start = find_start(run, place, texts)
        recipe = settle_recipe(run, place, start)
        say(f"{run.name}: pre-training" if run.at_scale.is_trained else run.name)
        checkpoint = None
        if run.at_scale.is_trained:
            note_beginning(run, place, texts, start)
            checkpoint = train(run, recipe, place)
        with alone():
            began_at = time.process_time()
            measured = measure(run, recipe, place, checkpoint, say)
            measured |= Measured(timed={"measuring_hours": (time.process_time() - began_at) / 3600})
        report = build_report(run, texts, measured, checkpoint)
        write_sealed(report_file(place.folder, run), report)
        return report


def help_arm(run: ArmRun, place: Place) -> None:
    """The work of torchrun's other processes, which only pre-train."""
    texts = describe_texts([run], place)
    is_finished = find_report(run, place, texts) is not None
    if run.at_scale.is_trained and not is_finished:
        train(run, settle_recipe(run, place, find_start(run, place, texts)), place)


def train(run: ArmRun, recipe: Recipe, place: Place) -> Path:
    """Pre-train; on a CPU, time limits count processor time, because other arms may run in parallel."""
    is_on_cpu = choose_runtime(recipe.runtime).device.type == "cpu"
    clock = time.process_time if is_on_cpu else time.perf_counter
    return pretrain(recipe, place.run_folder(run.name), clock=clock, branch_steps=run.branch_steps)


def settle_recipe(run: ArmRun, place: Place, start: Path | None) -> Recipe:
    """The recipe with the paths of corpora and initial weights, unless nothing is trained."""
    return run.recipe_with(place.corpora, start) if place.corpora else run.recipe


@contextmanager
def alone() -> Iterator[None]:
    """Run as a single process: torchrun's other processes have ended after pre-training."""
    ranks = {name: os.environ.pop(name) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE") if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(ranks)


def find_report(run: ArmRun, place: Place, texts: Texts) -> Report | None:
    """The report of a finished arm if its measurements are up to date; raises if its training is not."""
    path = report_file(place.folder, run)
    if not path.is_file():
        return None
    report = read_arm_report(path)
    if report["fingerprint"] == fingerprint(run, texts):
        return report
    check_current(path, report, run, texts)
    return None if list_other_measures(report, run, texts) else report


def find_start(run: ArmRun, place: Place, texts: Texts) -> Path | None:
    """The checkpoint that an arm starts from; raises if the arm that made it is out of date."""
    start = start_of(run) if run.at_scale.is_trained else None
    if start is None:
        return None
    path = report_file(place.folder, start)
    if not path.is_file():
        raise ConfigError(
            "arm-not-finished", f"{run.name} starts from {start.name}, which is not finished: run that one first"
        )
    check_current(path, read_arm_report(path), start, texts)
    folder = place.run_folder(start.name)
    saved = [checkpoint_path(folder, run.starts_at)] if run.starts_at else list_checkpoints(folder / CHECKPOINTS)
    if not saved or not saved[-1].is_dir():
        of_step = f" of step {run.starts_at:,}" if run.starts_at else ""
        raise ConfigError(
            "missing-file",
            f"{run.name} starts from {start.name}, whose weights{of_step} are not in {folder}: copy them from where "
            f"it was run, or delete {path} and that folder and run it again",
        )
    return saved[-1]


def note_beginning(run: ArmRun, place: Place, texts: Texts, start: Path | None) -> None:
    """Record the inputs of a new arm; raise if the corpora or initial weights of a started arm have changed.

    Pre-training compares recipes, which have only their paths. If unchanged inputs have moved, the recipe is updated.
    """
    folder = place.run_folder(run.name)
    weights = {f"the weights of {run.starts_from}": load_checkpoint(start).fingerprint} if start else {}
    now = {f"the corpus {name}": content for name, content in hash_corpora(run, texts).items()} | weights
    paths = {name: place.corpora[name] for name in hash_corpora(run, texts)} | (
        {run.starts_from: start} if start else {}
    )
    places = {name: str(path.absolute()) for name, path in paths.items()}
    file = folder / BEGINNING
    if not list_checkpoints(folder / CHECKPOINTS):
        check_is_ours(folder)
        with exclusive_lock(folder, purpose="training"):  # pre-training recognizes the folder as a run by the lock file
            write_sealed(file, {**now, PLACES: places})
        return
    before = read_sealed(file) if file.is_file() else {}  # runs of earlier versions have none
    changed = [name for name in now if before.get(name, now[name]) != now[name]]
    if changed:
        raise ConfigError(
            "input-changed",
            f"{folder} was begun before {' and '.join(changed)} changed: restore what it "
            "was begun with, or delete the folder to start again",
        )
    places_before = before.get(PLACES, places)
    check_keys(file, {PLACES: places_before}, {PLACES: dict})
    if places_before != places:
        moved = {path: places[name] for name, path in places_before.items() if name in places}
        recipe = with_paths(build_recipe(read_recipe_values(folder / RECIPE_FILE)), lambda path: moved.get(path, path))
        with atomic_path(folder / RECIPE_FILE) as temporary:
            temporary.write_text(recipe.to_toml(), "utf-8")
        write_sealed(file, {**now, PLACES: places})


def measure(run: ArmRun, recipe: Recipe, place: Place, checkpoint: Path | None, say: Say) -> Measured:
    """Take all measurements of the study."""
    subject = Subject(recipe, run.at_scale, None if checkpoint is None else place.run_folder(run.name))
    measured = Measured()
    for name in run.at_scale.measures:
        say(f"{run.name}: measuring {name}")
        measured |= FUNCTIONS[name](subject)
    if checkpoint is not None:
        measured |= tune_all(run, place, checkpoint)
    return measured


def build_report(run: ArmRun, texts: Texts, measured: Measured, checkpoint: Path | None) -> Report:
    """The data for tables and figures; only the last two entries differ between runs with the same options."""
    state = load_checkpoint(checkpoint).state if checkpoint else {}
    seconds = {"hours": float(state["seconds"]) / 3600} if state else {}
    return {
        "format": FORMAT_VERSION,
        "study": run.study.name,
        "scale": run.scale,
        "arm": run.arm,
        "seed": run.seed,
        "fingerprint": fingerprint(run, texts),
        "words": list(run.words),
        "measures": describe_measures(run),
        "corpora": texts.corpora,
        "task_data": texts.tasks,
        "tokens": int(state["tokens"]) if state else 0,
        "values": measured.values,
        "intervals": json.loads(json.dumps(measured.intervals)),
        "counts": measured.counts,
        "levels": measured.levels,
        "series": measured.series,
        "matrices": measured.matrices,
        "recipe": run.recipe.to_toml(),
        "ancestors": {name: recipe.to_toml() for name, recipe in list_ancestors(run).items()},
        "timed": measured.timed | seconds,
        "machine": describe_machine(),
    }


def describe_machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "processor": describe_processor(),
        "device": "cuda" if torch.cuda.is_available() else "cpu",
        "litebert": version("litebert"),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
