"""The layout of a study's folder, and which runs are finished.

ARM-seed-1.json          the report of a finished arm, small enough to commit; the input of `study report`
study.toml               the study, if it is a user's own, with recipe-SCALE.toml, its recipe if that is a file, and
                         recipe-SCALE-TASK.toml a task's
runs/ARM-seed-1/         its pre-training, an ordinary run; runs/ARM-seed-1-TASK-1/ its fine-tuning
locks/                   which process runs which arm
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import atomic_path, check_keys
from litebert.core.options import parse_toml
from litebert.core.sealed import read_sealed
from litebert.finetuning.recipe import build_finetune_recipe
from litebert.pretraining.recipe import build_recipe
from litebert.study.arms import MAIN_CORPUS, ArmRun, corpora_of, plan_arms
from litebert.study.spec import Scale, Study, TaskSpec, load_study, parse_study

FORMAT_VERSION = 3
# the keys written by `build_report` in arm.py
_NEEDED: dict[str, type] = dict.fromkeys(("study", "scale", "arm", "fingerprint", "recipe"), str)
_NEEDED |= dict.fromkeys(("seed", "tokens"), int) | {"words": list}
_NEEDED |= dict.fromkeys(("measures", "corpora", "task_data", "values", "intervals", "counts", "levels"), dict)
_NEEDED |= dict.fromkeys(("series", "matrices", "ancestors", "timed", "machine"), dict)
STUDY_FILE = "study.toml"
RUNS, LOCKS = "runs", "locks"

Report = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """A study's folder, corpora and task data."""

    folder: Path
    corpora: Mapping[str, Path]
    data: Path | None

    def run_folder(self, name: str) -> Path:
        return self.folder / RUNS / name

    def task_folder(self, run: ArmRun, task: TaskSpec, seed: int) -> Path:
        return self.folder / RUNS / f"{run.name}-{task.metric}-{seed}"

    def lock_folder(self, name: str) -> Path:
        return self.folder / LOCKS / name


def open_place(runs: Sequence[ArmRun], folder: Path, corpora: Sequence[str], data: Path | None) -> Place:
    """The place of some runs of one study; raises before training if any of their inputs is missing."""
    at_scale, paths = runs[0].at_scale, locate_corpora(runs, corpora)
    for name, path in paths.items():
        if not path.is_dir():
            wanted = at_scale.corpora.get(name, "")
            raise ConfigError(
                "no-corpus",
                f"corpus '{name}' of the study is missing at {path}: name its folder"
                f"{f' (the study asks for {wanted})' if wanted else ''}",
                option="corpora",
            )
    root = data or (Path(os.environ["LITEBERT_DATA"]) if os.environ.get("LITEBERT_DATA") else None)
    for task in at_scale.tasks:
        if root is None or not (root / task.data).exists():
            where = f"{root} has no such file" if root else "no folder is set"
            raise ConfigError(
                "no-task-data",
                f"task {task.metric} reads '{task.data}' in the folder of task data, but {where}: name the folder, or "
                "set LITEBERT_DATA",
                option="data",
            )
    return Place(folder, paths, root)


def locate_corpora(runs: Sequence[ArmRun], corpora: Sequence[str]) -> dict[str, Path]:
    """The folders of the corpora that some runs of one study read, by name."""
    is_named = ["=" in word and not Path(word).exists() for word in corpora]  # /data/v=2/corpus is a path
    pairs = [word.split("=", 1) if has else (MAIN_CORPUS, word) for word, has in zip(corpora, is_named, strict=True)]
    named = {name: Path(path) for name, path in pairs}
    known = corpora_of(plan_arms(runs[0].study, runs[0].scale))  # all arms may be run with the same options
    for name in named:
        if name not in known:
            raise ConfigError(
                "unknown-value",
                f"corpus '{name}' is unknown; the study {runs[0].study.name} reads {', '.join(known)}",
                option="corpora",
            )
    needed = corpora_of(runs) if runs[0].at_scale.is_trained else []
    return {name: named.get(name, Path("corpora") / name) for name in needed}


def report_file(folder: Path, run: ArmRun) -> Path:
    return folder / f"{run.name}.json"


def is_finished(folder: Path, run: ArmRun) -> bool:
    return report_file(folder, run).is_file()


def list_places(parent: Path) -> list[Path]:
    """The folders below a folder that contain a finished arm of a study."""
    found = sorted({path.parent for path in parent.glob("*/*-seed-*.json")})
    if not found:
        raise DataError(
            "no-finished-arm",
            f"{parent} has no folder with a finished arm of a study (ARM-seed-1.json): name such a folder",
        )
    return found


def read_arm_report(path: Path) -> Report:
    """Read the report of a finished arm."""
    report = read_sealed(path, fix="delete it to run this arm again")
    if report.get("format") != FORMAT_VERSION or not report.keys() >= _NEEDED.keys():
        raise DataError("corrupt-file", f"{path} is not an arm's report that this version of litebert can read")
    check_keys(path, report, _NEEDED)
    try:
        # a recipe may not be buildable because keys were removed since, or the file was edited
        for text in (report["recipe"], *report["ancestors"].values()):
            build_recipe(parse_toml(text, where="recipe"))
        for task in report["measures"]["tasks"]:
            if not isinstance(task["recipe"], dict):
                raise TypeError('a task\'s "recipe" is not an object')
            build_finetune_recipe(task["recipe"])
    except (ConfigError, TypeError, KeyError) as error:
        raise DataError(
            "corrupt-file", f"{path} has a recipe that cannot be read ({error}): delete it to run this arm again"
        ) from None
    return report


def keep_study_file(source: str, study: Study, folder: Path) -> None:
    """Copy a user's study and its recipes next to its results, which cannot be read without them."""
    if not source.endswith(".toml"):
        return
    files = {STUDY_FILE: source}
    for scale, spec in study.scales.items():
        files[_kept_recipe(scale)] = spec.recipe
        files |= {_kept_recipe(scale, task): task.recipe for task in spec.tasks}
    for name, path in files.items():
        if Path(path).is_file():  # otherwise the name of a recipe shipped with litebert
            with atomic_path(folder / name) as temporary:
                temporary.write_bytes(Path(path).read_bytes())
        else:
            (folder / name).unlink(missing_ok=True)  # from an earlier version of the study


def find_study(folder: Path, name: str) -> Study:
    """The study of a folder's reports: a user's own, stored next to them, or one shipped with litebert."""
    own = folder / STUDY_FILE
    if not own.is_file():
        return load_study(name)
    study = parse_study(own.read_text("utf-8"), name=name, where=str(own))

    def find(recipe: str, name: str) -> str:
        return str(folder / name) if (folder / name).is_file() else recipe

    scales = {}
    for scale, spec in study.scales.items():
        tasks = tuple(replace(task, recipe=find(task.recipe, _kept_recipe(scale, task))) for task in spec.tasks)
        scales[scale] = replace(spec, recipe=find(spec.recipe, _kept_recipe(scale)), tasks=tasks)
    return replace(study, scales=scales)


def _kept_recipe(scale: Scale, task: TaskSpec | None = None) -> str:
    return f"recipe-{scale}-{task.metric}.toml" if task else f"recipe-{scale}.toml"
