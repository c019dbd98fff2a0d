"""Recipe: all options of a run in sections, read strictly from TOML, with key=value overrides."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from litebert.batches.google import expand_compat
from litebert.batches.options import BatchOptions, DataOptions, MaskingOptions, SegmentOptions, StreamOptions
from litebert.core.errors import ConfigError, suggest
from litebert.core.options import (
    build_options,
    describe_changes,
    dump_toml,
    flatten,
    merge,
    parse_assignments,
    parse_toml,
    read_toml,
    unflatten,
)
from litebert.core.ranges import NonNegativeInt, check_values
from litebert.core.runtime_options import RuntimeOptions
from litebert.model.config import ModelConfig
from litebert.model.presets import preset
from litebert.objectives.registry import ObjectiveOptions
from litebert.training.options import InitOptions, OptimOptions, TrainOptions
from litebert.training.schedule import ScheduleOptions, check_schedule

_SHIPPED = files("litebert") / "pretraining" / "recipes"
# no metric or weight depends on these, so they may change when a run is resumed
_FREE_KEYS = {"data.workers", "train.keep_last", "train.loggers", "runtime.num_threads"}
# keys that version 0.1.0 did not have; with these values, a recipe has the same fingerprint as in 0.1.0
_ADDED_KEYS = {
    "objective.name": "mlm",
    "model.attention": "full",
    "model.attention_width": 128,
    "model.num_global_tokens": 1,
    "model.full_attention_every": 0,
}
# sections and keys that no stage can change
_FIXED = {"runtime", "init", "stages"} | {
    f"train.{key}" for key in ("steps", "tokens", "hours", "parallel", "keep_last", "loggers")
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that decides a run."""

    model: ModelConfig
    data: DataOptions
    batch: BatchOptions
    train: TrainOptions
    segments: SegmentOptions = field(default_factory=SegmentOptions)
    masking: MaskingOptions = field(default_factory=MaskingOptions)
    objective: ObjectiveOptions = field(default_factory=ObjectiveOptions)
    optim: OptimOptions = field(default_factory=OptimOptions)
    schedule: ScheduleOptions = field(default_factory=ScheduleOptions)
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    init: InitOptions = field(default_factory=InitOptions)
    seed: NonNegativeInt = 1
    stages: tuple["StageOptions", ...] = ()

    def __post_init__(self) -> None:
        check_values(self)
        if self.segments.max_length > self.model.max_positions:
            raise ConfigError(
                "conflicting-options",
                f"segments.max_length = {self.segments.max_length} does not fit model.max_positions = "
                f"{self.model.max_positions}: lower the first or raise the second",
            )
        if self.segments.is_pair and self.model.num_segments < 2:
            raise ConfigError(
                "conflicting-options",
                f"segments.format = '{self.segments.format}' needs two segments, but model.num_segments = "
                f"{self.model.num_segments}; use full-sentences or doc-sentences",
            )
        if self.segments.task != "none" and not self.model.has_pooler:
            raise ConfigError(
                "conflicting-options",
                f"segments.task = '{self.segments.task}' reads the pooled vector, but model.has_pooler is false",
            )
        check_schedule(self.schedule, self.train.steps)
        self.stream  # noqa: B018 (checks batch against segments)

    @property
    def stream(self) -> StreamOptions:
        return StreamOptions(segments=self.segments, masking=self.masking, batch=self.batch, seed=self.seed)

    @property
    def values(self) -> dict[str, Any]:
        """Nested values from which `build_recipe` makes the same recipe."""
        values = {name: value for name, value in asdict(self).items() if name != "stages"}
        values["init"] = {"from": self.init.source} | {k: v for k, v in values["init"].items() if k != "source"}
        values["stages"] = [{"at": stage.at, **unflatten(stage.changes)} for stage in self.stages]
        return values

    @property
    def fingerprint(self) -> str:
        """A hash of everything that a weight or a metric depends on."""
        values = flatten(self.values)
        kept = {
            key: value
            for key, value in values.items()
            if key not in _FREE_KEYS and not (key in _ADDED_KEYS and value == _ADDED_KEYS[key])
        }
        return hashlib.sha256(repr(sorted(kept.items())).encode()).hexdigest()

    def to_toml(self) -> str:
        return dump_toml(self.values)

    def at(self, step: float) -> "Recipe":
        """The recipe in effect at `step` (from 0), on the scale of `train.steps`."""
        begun = [stage.recipe for stage in self.stages if stage.at <= step]
        return begun[-1] if begun else replace(self, stages=())


@dataclass(frozen=True)
class StageOptions:
    """The dotted keys that change at step `at`; `recipe` includes the changes of earlier stages."""

    at: int
    changes: dict[str, Any]
    recipe: Recipe


def load_recipe(source: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """A recipe from a file, or by the name of a shipped one; overrides such as `batch.sequences=8`."""
    return build_recipe(merge(read_recipe_values(source), parse_assignments(overrides)))


def build_recipe(values: Mapping[str, Any]) -> Recipe:
    """A recipe from nested values as TOML gives them."""
    base = {name: value for name, value in values.items() if name != "stages"}
    recipe = _build_plain(base)
    stages: list[StageOptions] = []
    for number, table in enumerate(_stage_tables(values), start=1):
        at, changes = table.get("at"), {name: value for name, value in table.items() if name != "at"}
        before = stages[-1].at if stages else 0
        if not isinstance(at, int) or at <= before:
            raise ConfigError("bad-stages", f"stages: number {number} has at = {at!r}; it is a step after {before}")
        for key in flatten(changes):
            if {key, key.partition(".")[0]} & _FIXED:
                raise ConfigError(
                    "bad-stages",
                    f"stages: number {number} changes {key}, which is fixed for the whole run: set it outside of "
                    "the stages",
                )
        base = merge(base, changes)
        try:
            now = _build_plain(base)
        except ConfigError as error:
            raise ConfigError(error.code, f"stages: number {number}: {error}") from None
        old, new = flatten((stages[-1].recipe if stages else recipe).values), flatten(now.values)
        # presets are expanded here: a recipe cannot have a preset and the keys that it sets
        stages.append(StageOptions(at, {key: value for key, value in new.items() if old[key] != value}, now))
    # a run that is shortened with train.steps=... never reaches its last stages
    return replace(recipe, stages=tuple(stage for stage in stages if stage.at < recipe.train.steps))


def _stage_tables(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tables = values.get("stages", ())
    if not isinstance(tables, list | tuple) or not all(isinstance(table, Mapping) for table in tables):
        raise ConfigError(
            "bad-stages", f"stages = {tables!r} is a list of tables: write [[stages]] with at = ... and what changes"
        )
    return list(tables)


def list_changes(old: Recipe, new: Recipe) -> list[str]:
    """The differences between two recipes as `key: old -> new`, without keys that no result depends on."""
    return describe_changes(old.values, new.values, _FREE_KEYS)


def with_paths(recipe: Recipe, rename: Callable[[str], str]) -> Recipe:
    """The recipe with other paths to its corpora, in every stage, and to its first weights."""
    values = recipe.values
    for section in (values, *values["stages"]):
        if "corpora" in section.get("data", {}):
            section["data"]["corpora"] = [rename(path) for path in section["data"]["corpora"]]
    if recipe.init.source:
        values["init"]["from"] = rename(recipe.init.source)
    return build_recipe(values)


def list_recipes() -> dict[str, str]:
    """The shipped recipes, by name, with the first line of each."""
    return {name: text.splitlines()[0].lstrip("# ") for name, text in sorted(_shipped_texts().items())}


def _build_plain(values: Mapping[str, Any]) -> Recipe:
    expanded = expand_compat(values)
    model, init = expanded.get("model"), expanded.get("init")
    if isinstance(model, Mapping):
        expanded["model"] = expand_preset(model)
    if isinstance(init, Mapping) and "from" in init:  # a Python keyword, so the field has another name
        expanded["init"] = {**{name: value for name, value in init.items() if name != "from"}, "source": init["from"]}
    return build_options(Recipe, expanded)


def expand_preset(model: Mapping[str, Any]) -> dict[str, Any]:
    """The section `model` with the values of the preset that it names."""
    if "preset" not in model:
        return dict(model)
    changes = {name: value for name, value in model.items() if name != "preset"}
    return {**asdict(preset(str(model["preset"]))), **changes}


def read_recipe_values(source: str | Path) -> dict[str, Any]:
    """The nested values of a recipe as its file has them, by path or by the name of a shipped one."""
    path = Path(source)
    if path.suffix == ".toml" or path.is_file():
        if not path.is_file():
            raise ConfigError("missing-file", f"there is no recipe file {path}")
        text = read_toml(path, "recipe")
    else:
        shipped = _shipped_texts()
        if str(source) not in shipped:
            raise ConfigError(
                "unknown-recipe",
                f"unknown recipe '{source}'; {suggest(str(source), shipped, 'the path of a .toml file')}",
            )
        text = shipped[str(source)]
    return parse_toml(text, where=str(source))


def _shipped_texts() -> dict[str, str]:
    return {Path(item.name).stem: item.read_text("utf-8") for item in _SHIPPED.iterdir() if item.name.endswith(".toml")}
