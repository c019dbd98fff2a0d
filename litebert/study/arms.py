"""The runs of a study: each arm and seed with its recipe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, suggest
from litebert.core.options import flatten, merge, parse_assignments
from litebert.finetuning.recipe import FinetuneRecipe, load_finetune_recipe
from litebert.model.config import ModelConfig
from litebert.pretraining.recipe import Recipe, build_recipe, read_recipe_values, with_paths
from litebert.study.spec import ArmSpec, Scale, ScaleSpec, Study, TaskSpec

MAIN_CORPUS = "main"


@dataclass(frozen=True)
class ArmRun:
    """One arm with one seed. Its recipe names corpora and the arm it starts from as the study does."""

    study: Study
    scale: Scale
    arm: str
    seed: int
    recipe: Recipe
    words: tuple[str, ...]  # overrides, the same for every arm

    @property
    def name(self) -> str:
        return name_run(self.arm, self.seed)

    @property
    def spec(self) -> ArmSpec:
        return self.study.arms[self.arm]

    @property
    def at_scale(self) -> ScaleSpec:
        return self.study.at(self.scale)

    @property
    def starts_from(self) -> str:
        """The run whose weights initialize this one; empty: none."""
        return name_run(self.spec.starts_from, self.seed) if self.spec.starts_from else ""

    @property
    def starts_at(self) -> int:
        """The step of that run from which this one continues; 0: training starts anew from its last weights."""
        return self.spec.at(self.scale).starts_at

    @property
    def branch_steps(self) -> frozenset[int]:
        """The steps of this run from which other runs continue."""
        arms = self.study.arms_at(self.scale).values()
        return frozenset(arm.at(self.scale).starts_at for arm in arms if arm.starts_from == self.arm) - {0}

    @property
    def model(self) -> ModelConfig:
        """The model at the end of its training."""
        return self.recipe.at(self.recipe.train.steps - 1).model

    def recipe_of(self, task: TaskSpec, words: Sequence[str] = ()) -> FinetuneRecipe:
        """The fine-tuning recipe for a task, which depends on the model's width, as in `litebert finetune`."""
        words = [*task.change, *words]
        try:
            return load_finetune_recipe(task.task, task.recipe, words, hidden_size=self.model.hidden_size)
        except ConfigError as error:
            raise ConfigError(error.code, f"{self.study.name}, task {task.metric}: {error}") from None

    def recipe_with(self, corpora: Mapping[str, Path], start: Path | None) -> Recipe:
        """The recipe with paths instead of names."""
        paths = {**corpora, self.recipe.init.source: start} if start else corpora
        return with_paths(self.recipe, lambda name: str(paths[name].absolute()) if name in paths else name)


def name_run(arm: str, seed: int) -> str:
    return f"{arm}-seed-{seed}"


def plan_arms(
    study: Study,
    scale: Scale,
    *,
    words: Sequence[str] = (),
    arms: Sequence[str] = (),
    seeds: Sequence[int] = (),
) -> list[ArmRun]:
    """The runs of a study, all arms of one seed before the next; `arms` are names or patterns such as `e128-*`."""
    chosen = choose_arms(study, scale, arms)
    if len(set(seeds)) < len(seeds):
        raise ConfigError(
            "repeated-value",
            f"seeds {', '.join(map(str, seeds))}: name each seed once; the same seed gives the same run",
        )
    return [
        ArmRun(study, scale, name, seed, build_arm_recipe(study, scale, name, seed, words), tuple(words))
        for seed in (seeds or study.at(scale).seeds)
        for name in chosen
    ]


def choose_arms(study: Study, scale: Scale, patterns: Sequence[str]) -> list[str]:
    """The names of the arms that match patterns, in the study's order."""
    known = study.arms_at(scale)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise ConfigError(
                "unknown-arm", f"the study {study.name} has no arm '{pattern}' at this scale; {suggest(pattern, known)}"
            )
    return [name for name in known if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)]


def build_arm_recipe(study: Study, scale: Scale, arm: str, seed: int, words: Sequence[str] = ()) -> Recipe:
    """The base recipe with the changes of the scale, the arm and the overrides."""
    spec, at_scale = study.arms[arm], study.at(scale)
    values = read_recipe_values(at_scale.recipe)
    changes = ({"data": {"corpora": [MAIN_CORPUS]}}, at_scale.change, spec.change, spec.at(scale).change)
    for change in (*changes, parse_assignments(words), {"seed": seed}):
        values = merge(values, change)
    try:
        recipe = build_recipe(values)
    except ConfigError as error:
        raise ConfigError(error.code, f"{study.name}, arm {arm}, scale {scale}: {error}") from None
    if not spec.starts_from:
        return recipe
    # a name, because its checkpoint's path is unknown until it has run
    at = spec.at(scale).starts_at
    if not at:
        return replace(recipe, init=replace(recipe.init, source=f"arm {spec.starts_from}"))
    _check_branch(recipe, build_arm_recipe(study, scale, spec.starts_from, seed, words), at, f"{study.name}, arm {arm}")
    source = f"arm {spec.starts_from}, step {at}"
    return replace(recipe, init=replace(recipe.init, source=source, continues=True))


def _check_branch(recipe: Recipe, trunk: Recipe, at: int, where: str) -> None:
    """Raise if a run continues from a step that the other run does not reach, or that is beyond its own end."""
    for options in (recipe.train, trunk.train):
        if options.tokens or options.hours:
            raise ConfigError(
                "bad-arm-start",
                f"{where} continues from step {at:,}: set train.steps instead of train.tokens or train.hours",
            )
        if at >= options.steps:
            raise ConfigError(
                "bad-arm-start",
                f"{where} continues from step {at:,}, but train.steps = {options.steps:,}: set more steps",
            )


def start_of(run: ArmRun) -> ArmRun | None:
    """The run that another run starts from; None: random initial weights."""
    name = run.spec.starts_from
    if not name:
        return None
    return replace(run, arm=name, recipe=build_arm_recipe(run.study, run.scale, name, run.seed, run.words))


def list_ancestors(run: ArmRun) -> dict[str, Recipe]:
    """The recipes of the arms that a run's initial weights descend from, by name, the nearest first."""
    ancestors: dict[str, Recipe] = {}
    start = start_of(run)
    while start:
        ancestors[start.arm] = start.recipe
        start = start_of(start)
    return ancestors


def title_of(study: Study, arm: str, scale: Scale) -> str:
    """The title of an arm in tables."""
    spec = study.arms[arm]
    return spec.at(scale).title or spec.title or arm


def corpora_of(runs: Sequence[ArmRun]) -> list[str]:
    """The names of all corpora that runs read, the main one first."""
    stages = [recipe for run in runs for recipe in (run.recipe, *(stage.recipe for stage in run.recipe.stages))]
    names = {name for recipe in stages for name in recipe.data.corpora}
    return sorted(names, key=lambda name: (name != MAIN_CORPUS, name))


def describe_study(study: Study, scales: Sequence[Scale]) -> dict[str, Any]:
    """A study at some scales, as JSON."""
    at_scales = {}
    for scale in scales:
        spec = study.at(scale)
        arms = {
            name: {"title": title_of(study, name, scale), "change": flatten(arm.change) | flatten(arm.at(scale).change)}
            for name, arm in study.arms_at(scale).items()
        }
        at_scales[scale] = {
            "recipe": spec.recipe,
            "seeds": list(spec.seeds),
            "measures": list(spec.measures),
            "tasks": [task.metric for task in spec.tasks],
            "change": flatten(spec.change),
            "corpora": spec.corpora,
            "cost": spec.cost,
            "arms": arms,
        }
    return {
        "name": study.name,
        "title": study.title,
        "source": study.source,
        "about": study.about,
        "claims": [claim.text for claim in study.claims],
        "scales": at_scales,
    }
