"""The schema of study files: arms, measurements, claims and published numbers. docs/studies.md explains the keys.

Nothing is trained or built here; this module is sufficient for `litebert study list` and `show`.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from litebert.core.errors import ConfigError, suggest
from litebert.core.options import build_options, parse_toml, read_toml, unflatten
from litebert.study.metrics import MATRICES, SERIES, check_metric

_SHIPPED = files("litebert") / "studies"
_AND = "+"  # joins the axes of a grid in an arm's name; not a comma, which separates names in lists
_FILE_SAFE = re.compile(r"[a-z0-9][a-z0-9.+=_-]*")

Scale = Literal["paper", "laptop"]
SCALES: tuple[Scale, ...] = get_args(Scale)
Measure = Literal["parameters", "speed", "memory", "intrinsic", "distances", "similarity", "curves"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
# Measures that need only a recipe; the others need a trained model.
UNTRAINED: frozenset[Measure] = frozenset({"parameters", "speed", "memory"})
Relation = Literal["above", "below", "near"]
FigureKind = Literal["values", "differences", "series", "series-differences", "matrix"]
# The kinds of figures that do not show metrics, and what they can show.
DRAWN: dict[FigureKind, Collection[str]] = {"series": SERIES, "series-differences": SERIES, "matrix": MATRICES}


@dataclass(frozen=True, kw_only=True)
class Series:
    """A published curve."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ConfigError("bad-study", f"a series has {len(self.x)} x and {len(self.y)} y")


@dataclass(frozen=True, kw_only=True)
class ArmAtScale:
    """The changes of an arm at one scale."""

    title: str = ""
    change: dict[str, Any] = field(default_factory=dict)
    starts_at: int = 0  # continue that arm from this step, with its optimizer state; 0: start from its last weights


@dataclass(frozen=True, kw_only=True)
class ArmSpec:
    """One arm: its changes to the base recipe, and its published numbers."""

    title: str = ""
    change: dict[str, Any] = field(default_factory=dict)  # recipe keys
    starts_from: str = ""  # the arm that provides its initial weights, from the end or from step `starts_at`
    scales: tuple[Scale, ...] = SCALES
    published: dict[str, float] = field(default_factory=dict)  # by metric, in the paper's units
    series: dict[str, Series] = field(default_factory=dict)  # published curves, by name
    note: str = ""
    paper: ArmAtScale = field(default_factory=ArmAtScale)
    laptop: ArmAtScale = field(default_factory=ArmAtScale)

    def at(self, scale: Scale) -> ArmAtScale:
        return self.paper if scale == "paper" else self.laptop


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """A task that every arm is fine-tuned for."""

    task: str
    data: str  # path in the folder of task data
    name: str = ""  # the metric's name; empty: the task's
    recipe: str = "two-core"  # or "paper"
    change: tuple[str, ...] = ()  # overrides as for `litebert finetune`
    seeds: int = 1  # fine-tuning runs per pre-trained model; the score is their median
    starts_from: str = ""  # an earlier task, whose best model is fine-tuned further (RTE from MNLI)
    has_ensemble: bool = False  # also score the ensemble of the seeds

    @property
    def metric(self) -> str:
        return self.name or self.task


# Sets of tasks that many studies share, by name: `tasks = "paper"`.
_SMALL = ("optim.learning_rate=3e-4", "train.evaluations=5")
TASK_SETS: dict[str, tuple[TaskSpec, ...]] = {
    # the five columns of ALBERT's tables, with the settings of its Table 14
    "paper": tuple(
        TaskSpec(task=task, data=data, recipe="paper", seeds=5)
        for task, data in (
            ("squad-v1", "squad"),
            ("squad-v2", "squad"),
            ("mnli", "glue"),
            ("sst-2", "glue"),
            ("race", "race/RACE"),
        )
    ),
    # minutes on one core at H = 128: SST-2, and 9,000 pairs of MNLI; no longer than the trained sequence length
    "laptop": (
        TaskSpec(task="mnli", data="pairs/MNLI", change=(*_SMALL, "train.steps=1000", "train.max_length=64")),
        TaskSpec(task="sst-2", data="glue", change=(*_SMALL, "train.steps=2500", "train.max_length=64")),
    ),
}


@dataclass(frozen=True, kw_only=True)
class ScaleSpec:
    """A study at one scale."""

    recipe: str  # a recipe's name, or the path of a file
    seeds: tuple[int, ...]
    measures: tuple[Measure, ...]
    change: dict[str, Any] = field(default_factory=dict)
    tasks: tuple[TaskSpec, ...] = ()
    pairs: int = 4096  # for intrinsic evaluation
    length: int = 0  # length of its pairs; 0: as trained
    speed_steps: int = 5  # timed updates
    corpora: dict[str, str] = field(default_factory=dict)  # a name in data.corpora -> a description of the text
    cost: str = ""  # shown to the user before starting
    notes: tuple[str, ...] = ()  # for this scale, in addition to the study's

    def __post_init__(self) -> None:
        if not self.seeds:
            raise ConfigError("bad-study", "seeds is empty: at least one is needed")

    @property
    def is_trained(self) -> bool:
        """Whether any measure needs training."""
        return bool(self.tasks) or not set(self.measures) <= UNTRAINED


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of the paper that two numbers can support or contradict."""

    text: str
    metric: str
    arm: str
    relation: Relation
    to: str | float  # another arm, or a number
    by: float = 0.0  # the minimum difference for "above" and "below", the maximum for "near"
    learned: str = ""  # a metric by which the arm must have learned, if the claim would otherwise hold for any model
    scales: tuple[Scale, ...] = SCALES


@dataclass(frozen=True, kw_only=True)
class FigureSpec:
    """A figure with one panel per metric, series or matrix."""

    kind: FigureKind
    of: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study, with its arms by name in the order of the table."""

    name: str
    title: str
    source: str  # the table or figure of the paper
    about: str  # one sentence
    reference: str  # the arm to compare the others with
    arms: dict[str, ArmSpec]
    scales: dict[Scale, ScaleSpec]
    columns: tuple[str, ...] = ()  # metrics of the table, in order; unmeasured ones are omitted
    claims: tuple[Claim, ...] = ()
    figures: tuple[FigureSpec, ...] = ()
    notes: tuple[str, ...] = ()

    def at(self, scale: Scale) -> ScaleSpec:
        if scale not in self.scales:
            raise ConfigError(
                "unknown-scale", f"the study {self.name} has no scale '{scale}', only {', '.join(self.scales)}"
            )
        return self.scales[scale]

    def arms_at(self, scale: Scale) -> dict[str, ArmSpec]:
        return {name: arm for name, arm in self.arms.items() if scale in arm.scales}


def load_study(source: str | Path) -> Study:
    """Load a study by name, if it is shipped with litebert, or from a file."""
    path = Path(source)
    if path.suffix == ".toml":
        if not path.is_file():
            raise ConfigError("missing-file", f"there is no study file {path}")
        return parse_study(read_toml(path, "study"), name=path.stem, where=str(path))
    shipped = _shipped_texts()
    if str(source) not in shipped:
        raise ConfigError(
            "unknown-study", f"unknown study '{source}'; {suggest(str(source), shipped, 'the path of a .toml file')}"
        )
    return parse_study(shipped[str(source)], name=str(source), where=str(source))


def list_studies() -> list[Study]:
    """The studies shipped with litebert, in the order of the papers' tables."""
    studies = [parse_study(text, name=name, where=name) for name, text in _shipped_texts().items()]
    return sorted(studies, key=lambda study: reading_order(study.name))


def parse_study(text: str, *, name: str, where: str) -> Study:
    """Parse the text of a study's file; errors name the file."""
    values = parse_toml(text, where=where, code="bad-study")
    try:
        return _build_study(values, name)
    except ConfigError as error:
        raise ConfigError(error.code, f"{where}: {error}") from None


def _build_study(values: Mapping[str, Any], name: str) -> Study:
    known = {item.name for item in fields(Study)} - {"name", "scales"} | {"grid", *SCALES}
    for key in values:
        if key not in known:
            raise ConfigError("unknown-key", f"unknown key '{key}'; {suggest(key, known)}")
    if ("grid" in values) == ("arms" in values):
        raise ConfigError("bad-study", "a study has either [arms.NAME] tables or a [grid]")
    arms = _expand_grid(values["grid"]) if "grid" in values else values["arms"]
    plain = {key: value for key, value in values.items() if key not in ("grid", *SCALES)}
    plain = {"reference": next(iter(arms), ""), **plain, "name": name, "arms": arms, "scales": {}}
    scales = {scale: _build_scale(values[scale], scale) for scale in SCALES if scale in values}
    study = replace(build_options(Study, plain), scales=scales)
    _check(study)
    return study


def _expand_grid(axes: Any) -> dict[str, dict[str, Any]]:
    """Make an arm of every combination of values of some recipe keys."""
    if not isinstance(axes, Mapping) or not all(isinstance(values, list) and values for values in axes.values()):
        raise ConfigError("bad-study", "grid: write key = [value, value] for each key that varies")
    names: dict[str, dict[str, Any]] = {"": {}}
    for key, values in axes.items():
        names = {
            _AND.join([*([name] if name else []), f"{key.rpartition('.')[2]}={str(value).lower().replace(' ', '')}"]): {
                **change,
                key: value,
            }
            for name, change in names.items()
            for value in values
        }
    return {
        name: {"title": name.replace("_", " ").replace(_AND, ", "), "change": unflatten(change)}
        for name, change in names.items()
    }


def _build_scale(table: Any, scale: Scale) -> ScaleSpec:
    tasks = table.get("tasks") if isinstance(table, Mapping) else None
    if not isinstance(tasks, str):
        return build_options(ScaleSpec, table, where=scale)
    if tasks not in TASK_SETS:
        raise ConfigError(
            "unknown-value", f"{scale}.tasks = '{tasks}': {suggest(tasks, TASK_SETS, 'a list of tables')}"
        )
    return replace(build_options(ScaleSpec, {**table, "tasks": ()}, where=scale), tasks=TASK_SETS[tasks])


def _check(study: Study) -> None:
    """Check what types cannot express: names must exist and be usable as file names."""
    for name in study.arms:
        if not _FILE_SAFE.fullmatch(name):
            raise ConfigError(
                "bad-study", f"arms: '{name}' must be usable as a file name: only small letters, digits and . + = _ -"
            )
    if not study.scales:
        raise ConfigError("bad-study", f"a study needs a scale: [{'] or ['.join(SCALES)}]")
    named = [("reference", study.reference)]
    named += [(f"arms.{name}.starts_from", arm.starts_from) for name, arm in study.arms.items() if arm.starts_from]
    for number, claim in enumerate(study.claims, start=1):
        named.append((f"claims {number}.arm", claim.arm))
        if isinstance(claim.to, str):
            named.append((f"claims {number}.to", claim.to))
    for where, name in named:
        if name not in study.arms:
            raise ConfigError("unknown-arm", f"{where} = '{name}' is not an arm; {suggest(name, study.arms)}")
    _check_starts(study)
    _check_metrics(study)
    for scale, spec in study.scales.items():
        if not study.arms_at(scale):
            raise ConfigError("bad-study", f"[{scale}] has no arm: add it to the scales of one, or remove the section")
        _check_tasks(spec.tasks, scale)


def _check_metrics(study: Study) -> None:
    """Check that the metrics in tables, claims and figures are measured."""
    tasks = {task.metric for spec in study.scales.values() for task in spec.tasks}
    named = [("columns", name) for name in study.columns]
    named += [(f"arms.{name}.published", metric) for name, arm in study.arms.items() for metric in arm.published]
    for number, claim in enumerate(study.claims, start=1):
        named += [(f"claims {number}", name) for name in (claim.metric, claim.learned) if name]
    for number, figure in enumerate(study.figures, start=1):
        known = DRAWN.get(figure.kind)
        for name in figure.of:
            if known is None:
                named.append((f"figures {number}", name))
            elif name not in known:
                raise ConfigError(
                    "unknown-metric", f"figures {number}: there is no {figure.kind} '{name}'; {suggest(name, known)}"
                )
    for where, name in named:
        check_metric(name, tasks, where=where)


def _check_tasks(tasks: tuple[TaskSpec, ...], scale: Scale) -> None:
    """Check that tasks have distinct names and start only from earlier tasks."""
    before: dict[str, TaskSpec] = {}
    for task in tasks:
        where = f"{scale}.tasks: '{task.metric}'"
        if task.metric in before:
            raise ConfigError("bad-study", f"{where} is named twice; give one of them another name")
        if task.seeds < 1:
            raise ConfigError("bad-study", f"{where} has seeds = {task.seeds}; its runs are at least 1")
        if task.starts_from and task.starts_from not in before:
            raise ConfigError("bad-study", f"{where} starts from '{task.starts_from}', which is not a task before it")
        if task.starts_from and task.seeds > before[task.starts_from].seeds:  # seed n starts from its seed n
            raise ConfigError(
                "bad-study",
                f"{where} has {task.seeds} seeds and starts from '{task.starts_from}', which has "
                f"{before[task.starts_from].seeds}: give that one as many",
            )
        before[task.metric] = task


def _check_starts(study: Study) -> None:
    """Check that arms start only from earlier ones, so that they can run in the order of the table."""
    seen: list[str] = []
    for name, arm in study.arms.items():
        if arm.starts_from and arm.starts_from not in seen:
            raise ConfigError("bad-study", f"arms.{name}.starts_from = '{arm.starts_from}' must stand before it")
        for scale in study.scales:
            at = arm.at(scale).starts_at
            if at < 0 or (at and not arm.starts_from):
                raise ConfigError(
                    "bad-study", f"arms.{name}.{scale}.starts_at = {at} is a step of the arm that starts_from names"
                )
        seen.append(name)


def reading_order(name: str) -> list[tuple[int, str]]:
    """A sort key for names of studies: table-2 before table-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _shipped_texts() -> dict[str, str]:
    return {Path(item.name).stem: item.read_text("utf-8") for item in _SHIPPED.iterdir() if item.name.endswith(".toml")}
