"""The recipe of a fine-tuning run: all options other than its model and data.

Three recipes have names: `paper`, the ALBERT paper's hyper-parameters; `two-core`, a fixed number of epochs, used by
studies; and `adaptive`, which differs only in length: it takes as many steps as the data needs, and stops early when
dev no longer improves.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from litebert.core.errors import ConfigError, suggest
from litebert.core.options import build_options, describe_changes, dump_toml, merge, parse_assignments, read_toml_values
from litebert.core.ranges import (
    DropRate,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    Range,
    check_values,
    read_whole_number,
)
from litebert.core.runtime_options import RuntimeOptions
from litebert.tasks.files.reading import EmbeddingOptions, ExitOptions, PassageOptions
from litebert.training.options import OptimOptions, TrainOptions
from litebert.training.schedule import ScheduleOptions

# options that may change when a run is resumed, because no score or weight depends on them
_FREE_KEYS = {"train.keep_last", "train.loggers", "runtime.num_threads"}


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """Training length, batches, evaluation, and which weights are trained."""

    batch_size: PositiveInt = 32  # groups: sentences, pairs, questions
    max_length: Annotated[int, Range(8)] = 128
    steps: NonNegativeInt = 0  # 0: set by epochs
    epochs: NonNegativeFloat = 3.0
    warmup_steps: int | None = None  # None: set by warmup_share
    warmup_share: DropRate = 0.06
    micro_batch: NonNegativeInt = 0  # sequences per micro-batch; 0: the whole batch
    bucket_batches: PositiveInt = 16  # batches among which texts are sorted by length; 1: not sorted
    evaluations: PositiveInt = 10  # spread evenly over the run; each saves a checkpoint
    patience: NonNegativeInt = 0  # stop after this many evaluations without improvement; 0: never
    trainable: str = "all"  # all, head (with the pooler), or last-K: the last K layers and the head
    keep_last: PositiveInt = 1  # checkpoints kept in addition to the best one
    log_every: PositiveInt = 10
    loggers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_values(self)
        if not self.steps and not self.epochs:
            raise ConfigError("conflicting-options", "steps = 0 and epochs = 0: set one of them")
        self.num_last_layers  # noqa: B018 (checks trainable)

    @property
    def num_last_layers(self) -> int | None:
        """How many last layers are trained: None = the whole model, 0 = only the head."""
        if self.trainable in ("all", "head"):
            return None if self.trainable == "all" else 0
        prefix, _, number = self.trainable.partition("-")
        count = read_whole_number(number)
        if prefix != "last" or not count:
            raise ConfigError(
                "bad-value", f"trainable = '{self.trainable}' is unknown; valid: all, head, last-K such as last-2"
            )
        return count


@dataclass(frozen=True, kw_only=True)
class DropoutOptions:
    """The part of the model's configuration that a task may change."""

    dropout_rate: DropRate = 0.1  # of states and of attention
    classifier_dropout_rate: DropRate = 0.1

    def __post_init__(self) -> None:
        check_values(self)


@dataclass(frozen=True, kw_only=True)
class FinetuneRecipe:
    """All options of a run other than model and data."""

    train: TuneOptions = field(default_factory=TuneOptions)
    optim: OptimOptions = field(default_factory=lambda: OptimOptions(name="adamw", learning_rate=1e-4))
    model: DropoutOptions = field(default_factory=DropoutOptions)
    passage: PassageOptions = field(default_factory=PassageOptions)
    exit: ExitOptions = field(default_factory=ExitOptions)
    embedding: EmbeddingOptions = field(default_factory=EmbeddingOptions)
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    seed: NonNegativeInt = 1

    def __post_init__(self) -> None:
        check_values(self)

    @property
    def values(self) -> dict[str, Any]:
        return asdict(self)

    def to_toml(self) -> str:
        return dump_toml(self.values)


class Length(NamedTuple):
    """The length of a run for a given number of examples."""

    options: TrainOptions
    schedule: ScheduleOptions
    evaluate_every: int

    def is_evaluated(self, step: int) -> bool:
        return step % self.evaluate_every == 0 or step == self.options.steps


def settle_length(recipe: FinetuneRecipe, num_examples: int) -> Length:
    """The steps of a run; if set by epochs, they depend on the number of examples."""
    train = recipe.train
    # rounded up: one batch of an epoch may be smaller, and it may come at any place in the epoch
    steps = train.steps or max(1, round(train.epochs * math.ceil(num_examples / train.batch_size)))
    warmup = round(steps * train.warmup_share) if train.warmup_steps is None else train.warmup_steps
    if warmup > steps:
        raise ConfigError(
            "warm-up-too-long",
            f"train.warmup_steps = {warmup:,} exceeds the {steps:,} steps of the run; lower it or train longer",
        )
    every = max(1, -(-steps // train.evaluations))
    options = TrainOptions(steps=steps, micro_batch=train.micro_batch)
    return Length(options, ScheduleOptions(warmup_steps=warmup), every)


def describe_length(recipe: FinetuneRecipe, length: Length, num_examples: int) -> str:
    """A one-line summary of the run for the user."""
    train, steps = recipe.train, length.options.steps
    epochs = steps / math.ceil(num_examples / train.batch_size)
    parts = [
        f"{steps:,} steps of {train.batch_size} examples ({epochs:.2g} epochs of {num_examples:,})",
        f"length {train.max_length}",
        f"{recipe.optim.name} at {recipe.optim.learning_rate:.2g}",
    ]
    if train.patience:
        parts.append(
            f"evaluated every {length.evaluate_every:,} steps, stops early after {train.patience} evaluations "
            f"without improvement"
        )
    return ", ".join(parts)


class PaperRow(NamedTuple):
    """A row of the ALBERT paper's table of fine-tuning hyper-parameters."""

    learning_rate: float
    batch_size: int
    dropout_rate: float
    classifier_dropout_rate: float
    steps: int
    warmup_steps: int
    max_length: int


# ALBERT (camera-ready), Table 14. AdamW; clipping at 1.0 and the official optimizer's epsilon are the defaults.
PAPER = {
    "cola": PaperRow(1e-5, 16, 0.0, 0.1, 5336, 320, 512),
    "sts-b": PaperRow(2e-5, 16, 0.0, 0.1, 3598, 214, 512),
    "sst-2": PaperRow(1e-5, 32, 0.0, 0.1, 20935, 1256, 512),
    "mnli": PaperRow(3e-5, 128, 0.0, 0.1, 10000, 1000, 512),
    "qnli": PaperRow(1e-5, 32, 0.0, 0.1, 33112, 1986, 512),
    "qqp": PaperRow(5e-5, 128, 0.1, 0.1, 14000, 1000, 512),
    "rte": PaperRow(3e-5, 32, 0.1, 0.1, 800, 200, 512),
    "mrpc": PaperRow(2e-5, 32, 0.0, 0.1, 800, 200, 512),
    "wnli": PaperRow(2e-5, 16, 0.1, 0.1, 2000, 250, 512),
    "squad-v1": PaperRow(5e-5, 48, 0.0, 0.1, 3649, 365, 384),
    "squad-v2": PaperRow(3e-5, 48, 0.0, 0.1, 8144, 814, 512),
    "race": PaperRow(2e-5, 32, 0.1, 0.1, 12000, 1000, 512),
    "race-middle": PaperRow(2e-5, 32, 0.1, 0.1, 12000, 1000, 512),
    "race-high": PaperRow(2e-5, 32, 0.1, 0.1, 12000, 1000, 512),
}


class PublishedRow(NamedTuple):
    """The fine-tuning hyper-parameters of a published baseline, which trains by epochs. Dropout is BERT's 0.1."""

    learning_rate: float
    batch_size: int
    epochs: float
    max_length: int
    warmup_share: float = 0.1


# The baseline scripts of CLUE's authors, for BERT-base (github.com/CLUEbenchmark/CLUE, baselines/models_pytorch), but
# cluener is from CLUEbenchmark/CLUENER2020 (pytorch_version/run_ner_softmax.sh), msra-ner from CLUE's
# baselines/models/bert, chnsenticorp from PaddlePaddle/ERNIE (script/run_ChnSentiCorp.sh). CHID's script has 64 tokens
# around the blank; our reader takes 60 characters on either side, which need 136.
CHINESE = {
    "afqmc": PublishedRow(2e-5, 16, 3, 128),
    "tnews": PublishedRow(2e-5, 16, 3, 128),
    "iflytek": PublishedRow(2e-5, 16, 3, 128),
    "cmnli": PublishedRow(3e-5, 16, 2, 128),
    "ocnli": PublishedRow(3e-5, 16, 2, 128),
    "csl": PublishedRow(1e-5, 8, 5, 256),
    "cluewsc": PublishedRow(1e-5, 16, 50, 128),
    "cmrc2018": PublishedRow(3e-5, 32, 2, 256),
    "drcd": PublishedRow(3e-5, 32, 2, 256),
    "c3": PublishedRow(2e-5, 16, 8, 512, 0.05),
    "chid": PublishedRow(2e-5, 24, 3, 136, 0.06),
    "cluener": PublishedRow(3e-5, 24, 4, 128),
    "msra-ner": PublishedRow(2e-5, 16, 5, 256),
    "lcqmc": PublishedRow(2e-5, 16, 4, 128),
    "xnli-zh": PublishedRow(2e-5, 8, 4, 512),
    "chnsenticorp": PublishedRow(5e-5, 24, 10, 256, 0.0),
}
# For two cores: there is time only for short texts. The learning rate depends on the model's width. No dropout, as in
# the paper for most tasks: it costs a small model a third of what it could learn (docs/lab-notes.md).
TWO_CORE: dict[str, Any] = {
    "train": {"batch_size": 32, "max_length": 128, "epochs": 3.0},
    "model": {"dropout_rate": 0.0},
}
TWO_CORE_BY_TASK: dict[str, dict[str, Any]] = {
    "rte": {"train": {"epochs": 10.0}},
    "mrpc": {"train": {"epochs": 10.0}},
    "sts-b": {"train": {"epochs": 10.0}},
    "cola": {"train": {"epochs": 5.0}},
    "wnli": {"train": {"epochs": 5.0}},
    "squad-v1": {"train": {"max_length": 256}},
    "squad-v2": {"train": {"max_length": 256}},
    "squad-v2-simple": {"train": {"max_length": 256}},
    "cmrc2018": {"train": {"max_length": 256}},
    "drcd": {"train": {"max_length": 256}},
    "race": {"train": {"max_length": 256, "batch_size": 8}},
    "race-middle": {"train": {"max_length": 256, "batch_size": 8}},
    "race-high": {"train": {"max_length": 256, "batch_size": 8}},
    "choice": {"train": {"max_length": 256, "batch_size": 8}},
    "c3": {"train": {"max_length": 256, "batch_size": 8}},
    "chid": {"train": {"max_length": 136, "batch_size": 8}},
    "embedding": {"train": {"batch_size": 64}},  # the other texts of a batch are the negatives
}

# The length of adaptive runs. A small training set is repeated until dev no longer improves: three epochs of 300 rows
# are 27 steps, in which a small model hardly learns. With a large one, a run on a CPU is limited to about an hour.
MIN_STEPS = 500
MAX_CPU_STEPS = 4000
PATIENCE = 3
PAPER_WIDTH = 768  # models narrower than BERT-base hardly learn at the paper's learning rates


def choose_recipe(task: str, *, hidden_size: int, has_gpu: bool) -> str:
    """The default recipe: the published one of the task if the model is wide enough and there is a GPU."""
    return "paper" if task in (*PAPER, *CHINESE) and has_gpu and hidden_size >= PAPER_WIDTH else "adaptive"


def choose_epochs(usual: float, num_examples: int, batch_size: int, *, has_gpu: bool) -> float:
    """The usual epochs, but at least MIN_STEPS steps and, without a GPU, at most MAX_CPU_STEPS."""
    steps_per_epoch = max(1, math.ceil(num_examples / batch_size))
    steps = max(MIN_STEPS, usual * steps_per_epoch)
    return round((steps if has_gpu else min(steps, MAX_CPU_STEPS)) / steps_per_epoch, 3)


def choose_two_core_rate(hidden_size: int) -> float:
    """A rule of thumb for the learning rate at batch size 32: 3e-4 up to H 330, then falling with the width squared.

    It is based on models/cpu-small-en (H 192): on CoLA 3e-4 was better than 9e-4 and than 1e-4, with which the model
    learned nothing; on MNLI and SST-2 they hardly differ. The square was chosen to give about 5e-5 at H 768.
    """
    return float(f"{min(3e-4, 5e-4 * (256 / hidden_size) ** 2):.1e}")


def load_finetune_recipe(
    task: str,
    source: str = "",
    overrides: Sequence[str] = (),
    *,
    hidden_size: int = 256,
    num_examples: int = 0,
    has_gpu: bool = False,
) -> FinetuneRecipe:
    """The recipe of a task: `adaptive`, `paper`, `two-core` or a .toml file.

    Without a name it is `paper` if the paper covers the task, else `two-core`; studies have always relied on this.
    Overrides look like train.epochs=5; `lr` is short for optim.learning_rate. `hidden_size` is the model's; `adaptive`
    also depends on the number of training examples and on whether there is a GPU.
    """
    words = [f"optim.learning_rate={word[3:]}" if word.startswith("lr=") else word for word in overrides]
    changes = parse_assignments(words)
    recipe = build_finetune_recipe(merge(_base_values(task, source, hidden_size), changes))
    if source != "adaptive" or {"steps", "epochs"} & changes.get("train", {}).keys():
        return recipe
    epochs = choose_epochs(recipe.train.epochs, num_examples, recipe.train.batch_size, has_gpu=has_gpu)
    return replace(recipe, train=replace(recipe.train, epochs=epochs))


def build_finetune_recipe(values: Mapping[str, Any]) -> FinetuneRecipe:
    """A recipe from nested values, as read from TOML."""
    base = {"optim": {"name": "adamw", "learning_rate": 1e-4}}
    return build_options(FinetuneRecipe, merge(base, values))


def _base_values(task: str, source: str, hidden_size: int) -> dict[str, Any]:
    source = source or ("paper" if task in PAPER else "two-core")
    if source == "paper":
        if task in CHINESE:
            return _published_values(CHINESE[task])
        if task not in PAPER:
            raise ConfigError(
                "unknown-recipe",
                f"recipe 'paper' has no settings for task '{task}', only for {', '.join((*PAPER, *CHINESE))}",
                option="recipe",
            )
        row = PAPER[task]
        return {
            "train": {
                "batch_size": row.batch_size,
                "steps": row.steps,
                "warmup_steps": row.warmup_steps,
                "max_length": row.max_length,
            },
            "optim": {"name": "adamw", "learning_rate": row.learning_rate},
            "model": {"dropout_rate": row.dropout_rate, "classifier_dropout_rate": row.classifier_dropout_rate},
        }
    if source in ("two-core", "adaptive"):
        optim = {"name": "adamw", "learning_rate": choose_two_core_rate(hidden_size)}
        values = merge({**TWO_CORE, "optim": optim}, TWO_CORE_BY_TASK.get(task, {}))
        return merge(values, {"train": {"patience": PATIENCE}}) if source == "adaptive" else values
    file = Path(source)
    if file.suffix != ".toml":
        raise ConfigError(
            "unknown-recipe",
            f"unknown recipe '{source}'; {suggest(source, ('adaptive', 'paper', 'two-core'), 'a .toml file')}",
            option="recipe",
        )
    if not file.is_file():
        raise ConfigError("missing-file", f"{file}: no such recipe file", option="recipe")
    values = read_toml_values(file, "recipe")
    values.pop("job", None)  # the recipe.toml of a run records its data and weights there
    return values


def _published_values(row: PublishedRow) -> dict[str, Any]:
    return {
        "train": {
            "batch_size": row.batch_size,
            "epochs": row.epochs,
            "warmup_share": row.warmup_share,
            "max_length": row.max_length,
        },
        "optim": {"name": "adamw", "learning_rate": row.learning_rate},
        "model": {"dropout_rate": 0.1, "classifier_dropout_rate": 0.1},
    }


def list_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The differences between the values of two runs, as `key: old -> new`, without keys that affect no result."""
    return describe_changes(old, new, _FREE_KEYS)
