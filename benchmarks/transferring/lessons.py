"""The runs of one task from one initialization, and the small file with their results."""

import json
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transferring.cases import BEGINNINGS, TIMES_LONGER, Case

RECIPE = "two-core"
# The best of five evaluations counts, as papers stop early on dev: one initialization overfits sooner than the other
NUM_MEASUREMENTS = 5
OUTCOME = "outcome"  # the key of the runs' results, next to the facts about the initialization


@dataclass(frozen=True)
class Lesson:
    """Fine-tuning of one task from one initialization: a checkpoint's weights, or random ones of its shape."""

    source: Any  # the checkpoint
    case: Case
    dataset: Any
    beginning: str
    num_seeds: int

    @property
    def epochs(self) -> int:
        return self.case.epochs * (TIMES_LONGER if self.is_control else 1)

    @property
    def is_control(self) -> bool:
        return self.beginning not in BEGINNINGS

    @property
    def is_from_scratch(self) -> bool:
        return self.beginning != "pretrained"

    @property
    def title(self) -> str:
        return (
            f"{BEGINNINGS['random']}, {TIMES_LONGER} times as long" if self.is_control else BEGINNINGS[self.beginning]
        )

    def plan(self) -> list[Any]:
        """The planned runs, one per seed."""
        from litebert.finetuning.recipe import FinetuneRecipe
        from litebert.finetuning.run_folder import Job
        from litebert.finetuning.trials import plan_trials

        job = Job(self.source, self.dataset, FinetuneRecipe(), self.is_from_scratch, predicts_test=False)
        words = (f"train.epochs={self.epochs}", f"train.evaluations={NUM_MEASUREMENTS}")
        return plan_trials(job, RECIPE, words, self.num_seeds)

    def describe(self, recipe: Any) -> dict[str, Any]:
        """Everything that the scores depend on except the seed; random weights depend only on the shape."""
        config = asdict(self.source.config)
        return {
            "case": asdict(self.case),
            "beginning": self.beginning,
            "num_train": len(self.dataset.train),
            "num_dev": sum(len(rows) for rows in self.dataset.dev.values()),
            "checkpoint": None if self.is_from_scratch else self.source.path.name,
            "weights": None if self.is_from_scratch else self.source.fingerprint,
            "shape": {
                key: config[key] for key in ("hidden_size", "num_layers", "vocab_size", "sharing", "initializer")
            },
            "recipe": {
                "epochs": recipe.train.epochs,
                "batch_size": recipe.train.batch_size,
                "max_length": recipe.train.max_length,
                "learning_rate": recipe.optim.learning_rate,
                "dropout_rate": recipe.model.dropout_rate,
            },
        }


def learn(lesson: Lesson, out: Path) -> None:
    """Fine-tune with every seed, and write the results to a file; runs already in the file are not repeated."""
    from litebert.core.files import write_json

    trials = lesson.plan()
    facts = lesson.describe(trials[0].job.recipe)
    name = f"{lesson.case.name}-{lesson.beginning}"
    file = out / f"{name}.json"
    outcome: dict[str, Any] = read_outcome(file, facts) if file.is_file() else {"scores": {}, "processor_minutes": 0.0}
    print(
        f"== {lesson.case.title}, {lesson.title}: {facts['num_train']:,} examples, {lesson.epochs} epochs", flush=True
    )
    for trial in trials:
        if str(trial.seed) not in outcome["scores"]:
            report, seconds = run_once(trial, out / "runs" / name / trial.folder)
            outcome = add_run(outcome, trial.seed, report, seconds)
            write_json(file, {**facts, OUTCOME: outcome})
    print(f"== {', '.join(f'{score:.4f}' for score in outcome['scores'].values())}", flush=True)


def read_outcome(file: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """The content of a lesson's file; raises an error if the file belongs to another lesson."""
    known = json.loads(file.read_text("utf-8"))
    changed = [key for key, value in facts.items() if known.get(key) != json.loads(json.dumps(value))]
    if changed:
        raise SystemExit(f"{file} was made with another {', '.join(changed)}: begin in a new folder")
    return dict(known[OUTCOME])


def run_once(trial: Any, folder: Path) -> tuple[dict[str, Any], float]:
    """The report of a run and its processor seconds; weights are not kept: 60 models take gigabytes."""
    from litebert.finetuning.finetune import finetune

    began = time.process_time()
    report = finetune(trial.job, folder)
    for name in ("checkpoints", "model"):
        shutil.rmtree(folder / name, ignore_errors=True)
    return report, time.process_time() - began


def add_run(outcome: dict[str, Any], seed: int, report: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The results with one more run."""
    (dev,) = report["dev"].values()
    return {
        "metric": report["metric"],
        "num_parameters": report["num_parameters"],
        "by_chance": dev["chance"]["score"],
        "by_luck": dev["chance"]["score"] + dev["chance"]["margin"],
        "scores": {**outcome["scores"], str(seed): dev["scores"][report["metric"]]},
        "processor_minutes": round(outcome["processor_minutes"] + seconds / 60, 2),
    }
