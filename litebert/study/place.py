"""A study's folder: where each run lies, which are finished, and whether what is finished is still what is meant.

ARM-seed-1.json          the report of a finished arm: small, to be kept and committed; `study report` reads only these
study.toml               the study, where it is somebody's own
runs/ARM-seed-1/         its pre-training, an ordinary run; runs/ARM-seed-1-TASK-1/ its fine-tuning
locks/                   who works on what
"""

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import atomic_path, read_json
from litebert.data.shards import open_corpus
from litebert.recipe import build_recipe, list_changes
from litebert.study.arms import MAIN_CORPUS, ArmRun, corpora_of, plan_arms
from litebert.study.spec import TaskSpec

FORMAT_VERSION = 1
STUDY_FILE = "study.toml"
RUNS, LOCKS = "runs", "locks"

Report = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where a study is run, and where what it reads lies."""

    folder: Path
    corpora: Mapping[str, Path]
    data: Path | None

    def run_folder(self, name: str) -> Path:
        return self.folder / RUNS / name

    def task_folder(self, run: ArmRun, task: TaskSpec, seed: int) -> Path:
        return self.folder / RUNS / f"{run.name}-{task.metric}-{seed}"

    def lock_folder(self, run: ArmRun) -> Path:
        return self.folder / LOCKS / run.name


def open_place(runs: Sequence[ArmRun], folder: Path, corpora: Sequence[str], data: Path | None) -> Place:
    """The place of some runs of one study; whatever they will read must be there now, not after hours of training."""
    at_scale = runs[0].at_scale
    named = _parse_corpora(corpora)
    needed = corpora_of(runs) if at_scale.is_trained else []
    known = corpora_of(plan_arms(runs[0].study, runs[0].scale))  # of other arms too: one command may do for all
    for name in named:
        if name not in known:
            raise ConfigError(f"--corpus {name}=...: the study {runs[0].study.name} reads {', '.join(known)}")
    paths = {name: named.get(name, Path("corpora") / name) for name in needed}
    for name, path in paths.items():
        if not path.is_dir():
            wanted = at_scale.corpora.get(name, "")
            raise ConfigError(
                f"there is no corpus {path}: name it with --corpus {'' if name == MAIN_CORPUS else f'{name}='}PATH"
                f"{f' ({wanted})' if wanted else ''}"
            )
    root = data or (Path(os.environ["LITEBERT_DATA"]) if os.environ.get("LITEBERT_DATA") else None)
    for task in at_scale.tasks:
        if root is None or not (root / task.data).exists():
            where = f"{root} has none" if root else "nobody says where that is"
            raise ConfigError(
                f"the task {task.metric} reads '{task.data}' in the folder of tasks' data, and {where}: name it with "
                "--data, or set LITEBERT_DATA"
            )
    return Place(folder, paths, root)


def _parse_corpora(words: Sequence[str]) -> dict[str, Path]:
    pairs = [word.partition("=") if "=" in word else (MAIN_CORPUS, "=", word) for word in words]
    return {name: Path(path) for name, _, path in pairs}


def report_file(folder: Path, run: ArmRun) -> Path:
    return folder / f"{run.name}.json"


def is_finished(folder: Path, run: ArmRun) -> bool:
    return report_file(folder, run).is_file()


def read_arm_report(path: Path) -> Report:
    """The report of a finished arm."""
    report = read_json(path)
    if report.get("format") != FORMAT_VERSION or not {"study", "arm", "seed", "values", "recipe"} <= report.keys():
        raise DataError(f"{path} is no report of a study's arm that this litebert reads")
    return report


def describe_measures(run: ArmRun) -> dict[str, Any]:
    """All that decides how a trained model is measured."""
    spec = run.at_scale
    tasks = [asdict(task) for task in spec.tasks]
    facts = {"measures": spec.measures, "tasks": tasks, "pairs": spec.pairs, "length": spec.length}
    plain: dict[str, Any] = json.loads(json.dumps({**facts, "speed_steps": spec.speed_steps}))  # as it will be read
    return plain


def describe_corpora(place: Place) -> dict[str, Any]:
    """What each corpus is, wherever it lies."""
    facts = {}
    for name, path in place.corpora.items():
        train, valid = open_corpus(path), open_corpus(path, "valid")
        hashes = [record.sha256 for record in train.manifest.shards]
        facts[name] = {
            "fingerprint": hashlib.sha256("".join(hashes).encode()).hexdigest(),
            "documents": train.num_documents,
            "tokens": train.num_tokens,
            "held_out_documents": valid.num_documents,
            "held_out_tokens": valid.num_tokens,
            "vocab_size": train.vocab_size,
        }
    return facts


def fingerprint(run: ArmRun, corpora: Mapping[str, Any]) -> str:
    """A hash of all that a result depends on: the recipe, the text, and how it is measured."""
    identities = {name: facts["fingerprint"] for name, facts in sorted(corpora.items())}
    content = json.dumps([run.recipe.fingerprint, identities, describe_measures(run)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def list_staleness(report: Report, run: ArmRun, corpora: Mapping[str, Any] | None = None) -> list[str]:
    """Why a report's training is not the one that the study means now; empty where it is.

    Its recipe is built again before it is compared: a key that litebert has learned since then has its default in both.
    """
    changes = list_changes(build_recipe(tomllib.loads(report["recipe"])), run.recipe)
    for name, facts in (corpora or {}).items():
        before = report["corpora"].get(name, {}).get("fingerprint")
        if before != facts["fingerprint"]:
            changes.append(f"corpus {name}: another text")
    return changes


def check_current(path: Path, report: Report, run: ArmRun, corpora: Mapping[str, Any] | None = None) -> None:
    """Refuse a finished arm of another study than this one is now."""
    changes = list_staleness(report, run, corpora)
    if changes:
        raise ConfigError(
            f"{path} was made by another {run.study.name} ({'; '.join(changes[:4])}): run it as it was, choose another "
            f"--out, or delete the file and {RUNS}/{run.name}* to run this arm again"
        )


def keep_study_file(source: str, folder: Path) -> None:
    """Lay somebody's own study beside its results, which cannot be read without it."""
    if not source.endswith(".toml"):
        return
    with atomic_path(folder / STUDY_FILE) as temporary:
        temporary.write_bytes(Path(source).read_bytes())
