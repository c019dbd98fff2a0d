"""From a study to the runs it is made of: each arm and seed with its recipe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from litebert.core.errors import ConfigError, suggest
from litebert.core.options import merge, parse_assignments
from litebert.finetuning.recipe import FinetuneRecipe, load_finetune_recipe
from litebert.model.config import ModelConfig
from litebert.pretraining.recipe import Recipe, build_recipe, read_recipe_values, with_paths
from litebert.study.spec import ArmSpec, Scale, ScaleSpec, Study, TaskSpec

MAIN_CORPUS = "main"


@dataclass(frozen=True)
class ArmRun:
    """One arm with one seed. Its recipe calls corpora and the arm it starts from by their names in the study."""

    study: Study
    scale: Scale
    arm: str
    seed: int
    recipe: Recipe
    words: tuple[str, ...]  # that somebody added to the recipe of every arm

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
        """The run that this one begins with; empty: none."""
        return name_run(self.spec.starts_from, self.seed) if self.spec.starts_from else ""

    @property
    def starts_at(self) -> int:
        """The step of that run which this one goes on from; 0: it trains anew, with that one's last weights."""
        return self.spec.at(self.scale).starts_at

    @property
    def branch_steps(self) -> frozenset[int]:
        """The steps of this run that others go on from."""
        arms = self.study.arms_at(self.scale).values()
        return frozenset(arm.at(self.scale).starts_at for arm in arms if arm.starts_from == self.arm) - {0}

    @property
    def model(self) -> ModelConfig:
        """The model that its training ends with."""
        return self.recipe.at(self.recipe.train.steps - 1).model

    def recipe_of(self, task: TaskSpec, words: Sequence[str] = ()) -> FinetuneRecipe:
        """How its model is fine-tuned for a task: as `litebert finetune` would, which looks at the model's width."""
        words = [*task.change, *words]
        try:
            return load_finetune_recipe(task.task, task.recipe, words, hidden_size=self.model.hidden_size)
        except ConfigError as error:
            raise ConfigError(error.code, f"{self.study.name}, task {task.metric}: {error}") from None

    def recipe_with(self, corpora: Mapping[str, Path], start: Path | None) -> Recipe:
        """The recipe to run: whole paths in the place of names."""
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
    """The runs of a study, all arms with one seed before the next: those named (patterns such as `e128-*`), or all."""
    chosen = choose_arms(study, scale, arms)
    if len(set(seeds)) < len(seeds):
        raise ConfigError(
            "repeated-value", f"seeds {', '.join(map(str, seeds))}: each once; the same seed gives the same run"
        )
    return [
        ArmRun(study, scale, name, seed, build_arm_recipe(study, scale, name, seed, words), tuple(words))
        for seed in (seeds or study.at(scale).seeds)
        for name in chosen
    ]


def choose_arms(study: Study, scale: Scale, patterns: Sequence[str]) -> list[str]:
    """The names of the arms that patterns mean, in the study's order."""
    known = study.arms_at(scale)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise ConfigError(
                "unknown-arm", f"the study {study.name} has no arm '{pattern}' at this scale; {suggest(pattern, known)}"
            )
    return [name for name in known if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)]


def build_arm_recipe(study: Study, scale: Scale, arm: str, seed: int, words: Sequence[str] = ()) -> Recipe:
    """The base recipe with what the scale, the arm and somebody's words change."""
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
    # a name for now: the place of its checkpoint is known when it has run
    at = spec.at(scale).starts_at
    if not at:
        return replace(recipe, init=replace(recipe.init, source=f"arm {spec.starts_from}"))
    _check_branch(recipe, build_arm_recipe(study, scale, spec.starts_from, seed, words), at, f"{study.name}, arm {arm}")
    source = f"arm {spec.starts_from}, step {at}"
    return replace(recipe, init=replace(recipe.init, source=source, continues=True))


def _check_branch(recipe: Recipe, trunk: Recipe, at: int, where: str) -> None:
    """Refuse a run that goes on from a step which the other does not come to, or beyond its own end."""
    for options in (recipe.train, trunk.train):
        if options.tokens or options.hours:
            raise ConfigError(
                "bad-arm-start", f"{where} goes on from step {at:,}: train by steps, not by train.tokens or train.hours"
            )
        if at >= options.steps:
            raise ConfigError(
                "bad-arm-start",
                f"{where} goes on from step {at:,}, and train.steps = {options.steps:,}: set more steps",
            )


def start_of(run: ArmRun) -> ArmRun | None:
    """The run that another begins with; None: that one draws its own weights."""
    name = run.spec.starts_from
    if not name:
        return None
    return replace(run, arm=name, recipe=build_arm_recipe(run.study, run.scale, name, run.seed, run.words))


def list_ancestors(run: ArmRun) -> dict[str, Recipe]:
    """The recipes of the arms that a run's first weights come from, by name, the nearest first."""
    ancestors: dict[str, Recipe] = {}
    start = start_of(run)
    while start:
        ancestors[start.arm] = start.recipe
        start = start_of(start)
    return ancestors


def title_of(study: Study, arm: str, scale: Scale) -> str:
    """What an arm is called in tables."""
    spec = study.arms[arm]
    return spec.at(scale).title or spec.title or arm


def corpora_of(runs: Sequence[ArmRun]) -> list[str]:
    """The names of all corpora that runs read, the main one first."""
    stages = [recipe for run in runs for recipe in (run.recipe, *(stage.recipe for stage in run.recipe.stages))]
    names = {name for recipe in stages for name in recipe.data.corpora}
    return sorted(names, key=lambda name: (name != MAIN_CORPUS, name))
