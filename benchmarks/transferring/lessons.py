"""The runs of one task: a learning rate is chosen for each beginning, and then every seed learns with it."""

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from transferring.cases import BEGINNINGS, CONTROL, TIMES_LONGER, Case, draw, hold_out

FACTS_FILE = "transfer.json"
COST_FILE = "cost.json"
SEARCH = "search"  # the folder of the runs that only choose a learning rate
RECIPE = "two-core"
# The best of five measurements counts, as the papers stop early on dev: one beginning overfits before the other begins
ALWAYS = ("train.evaluations=5",)
FACTORS = (1.0, 1 / 3, 3.0)  # of the recipe's learning rate; of equals the first is taken
MAX_SEARCHED = 3000  # examples
MIN_SHARE = 1 / 3  # of the run's steps, however many more examples it has


class Search(NamedTuple):
    """What chose a learning rate: the score on held-out training examples of each, None where it diverged."""

    learning_rate: float
    scores: dict[str, float | None]
    num_train: int
    num_held_out: int
    steps: int


@dataclass(frozen=True)
class Lesson:
    """A task to be learned from a checkpoint and from random weights of its shape."""

    source: Any  # the checkpoint
    case: Case
    dataset: Any
    folder: Path
    num_seeds: int

    @property
    def recipe(self) -> Any:
        """The recipe as it is without our changes."""
        from litebert.finetune_recipe import load_finetune_recipe

        return load_finetune_recipe(self.case.task, RECIPE, hidden_size=self.source.config.hidden_size)

    def plan(self, beginning: str, dataset: Any, words: Sequence[str], num_seeds: int) -> Any:
        """The runs from a beginning with the recipe and these changes of it."""
        from litebert.finetune_recipe import FinetuneRecipe
        from litebert.finetune_run import Job
        from litebert.finetune_trials import plan_trials

        job = Job(self.source, dataset, FinetuneRecipe(), beginning != "pretrained", predicts_test=False)
        return plan_trials(job, RECIPE, (*words, *ALWAYS), num_seeds)


def learn(lesson: Lesson, beginning: str) -> None:
    """The runs from one beginning, over all seeds, with facts beside them; what is finished is not made again."""
    from litebert.core.files import write_json

    case = lesson.case
    search = choose_rate(lesson, "random" if beginning == CONTROL else beginning)
    epochs = case.epochs * (TIMES_LONGER if beginning == CONTROL else 1)
    words = (f"train.epochs={epochs}", f"lr={search.learning_rate:.2g}")
    trials = lesson.plan(beginning, lesson.dataset, words, lesson.num_seeds)
    title = BEGINNINGS.get(beginning, f"{BEGINNINGS['random']}, {TIMES_LONGER} times as long")
    print(f"== {case.title}, {title}: {len(lesson.dataset.train):,} examples, {' '.join(words)}", flush=True)
    scores = [run_once(trial, lesson.folder / beginning) for trial in trials]
    print(f"== {', '.join(f'{score:.4f}' for score in scores)}", flush=True)
    config = asdict(lesson.source.config)
    recipe = lesson.recipe
    facts = {
        "case": asdict(case),
        "epochs": epochs,
        "search": search._asdict(),
        "recipe": {
            "learning_rate": recipe.optim.learning_rate,
            "batch_size": recipe.train.batch_size,
            "epochs": recipe.train.epochs,
        },
        "checkpoint": lesson.source.path.name,
        "weights": lesson.source.fingerprint,
        "shape": {key: config[key] for key in ("hidden_size", "num_layers", "vocab_size", "sharing", "initializer")},
    }
    write_json(lesson.folder / beginning / FACTS_FILE, facts)


def choose_rate(lesson: Lesson, beginning: str) -> Search:
    """The best of three learning rates by one seed on a tenth of the training examples; dev is not looked at.

    Of a large task few examples are read, as often as the run reads its own, and at least for a third of its steps.
    """
    from litebert.core.errors import TrainingError
    from litebert.finetune_recipe import settle_length

    recipe, num_examples = lesson.recipe, len(lesson.dataset.train)
    kept, held = hold_out(lesson.dataset.train)
    train = draw(kept, MAX_SEARCHED)
    whole = replace(recipe, train=replace(recipe.train, epochs=float(lesson.case.epochs)))
    share = max(MIN_SHARE, len(train) / num_examples)
    steps = max(1, round(share * settle_length(whole, num_examples).options.steps))
    rates = [f"{factor * recipe.optim.learning_rate:.2g}" for factor in FACTORS]
    dataset = replace(lesson.dataset, train=train, dev={"held-out": held})
    trials = lesson.plan(beginning, dataset, (f"train.steps={steps}", f"lr={','.join(rates)}"), 1)
    print(f"== {lesson.case.title}, {BEGINNINGS[beginning]}: which of {', '.join(rates)}?", flush=True)
    scores: dict[str, float | None] = {}
    for rate, trial in zip(rates, trials, strict=True):
        try:
            scores[rate] = run_once(trial, lesson.folder / beginning / SEARCH)
        except TrainingError:  # what the search is for: three times the recipe's may be too much
            scores[rate] = None
    best = max(rates, key=lambda rate: -1e9 if scores[rate] is None else scores[rate])
    return Search(float(best), scores, len(train), len(held), steps)


def run_once(trial: Any, folder: Path) -> float:
    """The score of a run, which is made if it is not there; its cost is remembered, its weights are not."""
    from litebert.finetune import finetune

    began = time.process_time()
    report = finetune(trial.job, folder / trial.folder)
    forget_weights(folder / trial.folder)
    add_cost(folder / trial.folder, time.process_time() - began)
    return float(next(iter(report["dev"].values()))["scores"][report["metric"]])


def forget_weights(folder: Path) -> None:
    """Delete the weights of a finished run: scores are wanted, and 114 models with their optimizers are gigabytes."""
    for name in ("checkpoints", "model"):
        shutil.rmtree(folder / name, ignore_errors=True)


def add_cost(folder: Path, seconds: float) -> None:
    """Remember the processor time of a run; one that is killed forgets its own."""
    file = folder / COST_FILE
    if not file.is_file():
        file.write_text(json.dumps({"processor_seconds": round(seconds, 1)}), "utf-8")


def read_costs(out: Path) -> list[float]:
    return [json.loads(file.read_text("utf-8"))["processor_seconds"] for file in out.rglob(COST_FILE)]
