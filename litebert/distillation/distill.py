"""Distillation of sentence vectors from start to finish: the teacher embeds a corpus, and the student learns its
vectors.

The student may have another tokenizer, depth and width. If its vectors are shorter, it learns the teacher's principal
components. Training is fine-tuning for the task `embedding`, so that it resumes, and ends as a model, in the same way.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import exclusive_lock, write_json
from litebert.core.progress import ProgressBar
from litebert.corpus.shards import open_corpus
from litebert.distillation.passages import Passage, iter_passages
from litebert.distillation.student import Start, open_student
from litebert.distillation.teacher_vectors import SHARD, embed_passages, fit_projection, name_teacher
from litebert.finetuning.finetune import finetune
from litebert.finetuning.recipe import FinetuneRecipe, load_finetune_recipe
from litebert.finetuning.run_folder import Job
from litebert.finetuning.trials import plan_trials
from litebert.inference.predictor import Predictor
from litebert.tasks.finetuning import Dataset
from litebert.tasks.kinds.embedding import METRICS, EmbeddedText, Embedding, Taught
from litebert.training.kept_checkpoints import check_is_ours

REPORT = "distillation.json"
STUDENT = "student"  # the folder of a new student, in the run's
NUM_DEV = 1_000  # passages of the validation split
FITTED = 4 * SHARD  # vectors from which the projection to shorter ones is computed


@dataclass(frozen=True)
class Lesson:
    """Who learns from whom, and from how much text."""

    teacher: Predictor
    student: str  # a model's path, a preset, or a recipe
    corpus: Path
    num_passages: int
    cache: Path | None = None  # where the teacher's vectors are kept; None: next to the corpus
    start: Start = "random"  # of a new student
    recipe: str = ""
    changes: tuple[str, ...] = ()

    @property
    def vectors_folder(self) -> Path:
        folder = self.cache or self.corpus.with_name(f"{self.corpus.name}.vectors")
        return folder / name_teacher(self.teacher)


def distill(lesson: Lesson, folder: Path) -> dict[str, Any]:
    """Distil into a run's folder, resuming an interrupted run; returns the report of fine-tuning."""
    check_is_ours(folder)
    train, dev = open_corpus(lesson.corpus, "train"), open_corpus(lesson.corpus, "valid")
    load_finetune_recipe("embedding", lesson.recipe, lesson.changes)  # before the teacher works for hours
    with exclusive_lock(folder, purpose="training"):
        source = open_student(lesson.student, train, folder / STUDENT, lesson.start, lesson.teacher)
        width = lesson.teacher.checkpoint.config.hidden_size
        size = source.config.hidden_size
        if size > width:
            raise ConfigError(
                "conflicting-options",
                f"the student's vectors have {size} numbers, more than the teacher's {width}: take a narrower student",
                option="student",
            )
        passages = {
            "train": list(islice(iter_passages(train), lesson.num_passages)),
            "valid": list(islice(iter_passages(dev), NUM_DEV)),
        }
        if not all(passages.values()):
            empty = next(split for split, some in passages.items() if not some)
            raise DataError("empty-split", f"{lesson.corpus} has no text in its {empty} split", option="corpus")
        vectors = {split: _embed(lesson, split, some) for split, some in passages.items()}
        kept = 1.0
        if size < width:
            projection, kept = fit_projection(vectors["train"][:FITTED], size)
            vectors = {split: some.astype(np.float32) @ projection for split, some in vectors.items()}
        examples = {split: _teach(passages[split], vectors[split]) for split in passages}
        task = Embedding(form="vectors", metric=METRICS["vectors"][0])
        dataset = Dataset(task, examples["train"], {"dev": examples["valid"]}, notes=(_describe(lesson, size, kept),))
    job = Job(source, dataset, FinetuneRecipe())
    trials = plan_trials(job, lesson.recipe, lesson.changes, 1)
    if len(trials) > 1:
        raise ConfigError("conflicting-options", "distillation is a single run: give one value for each key")
    report = finetune(trials[0].job, folder)
    facts = {
        "teacher": lesson.teacher.checkpoint.path.name,
        "teacher_vectors": name_teacher(lesson.teacher),
        "teacher_spec": asdict(lesson.teacher.checkpoint.embedding_spec),
        "student": lesson.student,
        "start": lesson.start,
        "num_passages": len(passages["train"]),
        "size": size,
        "kept": kept,
    }
    write_json(folder / REPORT, facts)
    return {**report, "distillation": facts}


def _embed(lesson: Lesson, split: str, passages: Sequence[Passage]) -> NDArray[Any]:
    texts = [passage.text for passage in passages]
    with ProgressBar(f"the teacher embeds {split}", total=len(texts), unit="texts", scale=1) as progress:
        return embed_passages(lesson.teacher, texts, lesson.vectors_folder / split, progress.move_to)


def _teach(passages: Sequence[Passage], vectors: NDArray[Any]) -> list[EmbeddedText]:
    return [
        EmbeddedText(
            passage.name,
            passage.text,
            label=1.0,
            where=passage.name,
            taught=Taught(np.asarray(vector, dtype=np.float32)),
        )
        for passage, vector in zip(passages, vectors, strict=True)
    ]


def _describe(lesson: Lesson, size: int, kept: float) -> str:
    width = lesson.teacher.checkpoint.config.hidden_size
    told = f"vectors of {width} numbers by {lesson.teacher.checkpoint.path.name}, kept in {lesson.vectors_folder}"
    return (
        f"{told}; the student learns {size} principal components ({kept:.1%} of their length)" if size < width else told
    )
