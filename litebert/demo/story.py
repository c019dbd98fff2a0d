"""The demo from start to finish: text, vocabulary, shards, pre-training, evaluation, report.

Each stage writes its output completely or not at all, so an interrupted demo resumes where it stopped, and a finished
one only shows its result.
"""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape

from litebert.checkpoint import list_checkpoints
from litebert.core.errors import ConfigError
from litebert.core.files import (
    LOCK_FILE,
    atomic_directory,
    atomic_path,
    check_keys,
    exclusive_lock,
    remove_leftovers,
)
from litebert.core.options import build_options
from litebert.core.runlog import TIMING_FILE, read_log
from litebert.core.sealed import read_sealed, write_sealed
from litebert.core.view import format_seconds
from litebert.corpus.build import BuildOptions, build_corpus
from litebert.corpus.documents import ReadOptions, iter_documents
from litebert.corpus.shards import MANIFEST, open_corpus
from litebert.corpus.unfinished import UNFINISHED
from litebert.demo.evaluation import Evaluation, evaluate_model
from litebert.demo.library import collect_documents, load_topics, standard_library
from litebert.demo.page import build_page
from litebert.demo.words import describe_fillings, describe_scores, draw_fillings, draw_scores, next_commands
from litebert.model.cost import count_parameters
from litebert.objectives.registry import build_objective
from litebert.pretraining.pretrain import pretrain
from litebert.pretraining.recipe import Recipe, load_recipe
from litebert.text.tokenizer import load_tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer
from litebert.training.kept_checkpoints import CHECKPOINTS
from litebert.training.loop import Progress

MARKER = "demo.json"  # marks a folder as a demo's, and records its recipe
EVALUATION = "evaluation.json"
REPORT = "report.html"
TIMES = "times.json"
# Large enough for intervals of a few percent; every validation document is lost to training
VALID_SHARE = 0.12


@dataclass(frozen=True)
class Demo:
    """The demo's folder, recipe overrides and the library whose documentation it reads."""

    folder: Path
    overrides: Sequence[str] = ()
    library: Path = field(default_factory=standard_library)

    @property
    def recipe(self) -> Recipe:
        return load_recipe("nano", [f"data.corpora={self.folder / 'corpus'}", *self.overrides])

    @property
    def run(self) -> Path:
        return self.folder / "nano"

    @property
    def last_checkpoint(self) -> Path | None:
        """The run's latest checkpoint; None before the first."""
        return next(reversed(list_checkpoints(self.run / CHECKPOINTS)), None)


class Stage(NamedTuple):
    """A part of the demo: its announcement, whether it is done, and its work, which returns a summary."""

    name: str
    announcement: str
    is_done: Callable[[Demo], bool]
    work: Callable[[Demo], str]


def run_demo(demo: Demo, *, is_fresh: bool = False, console: Console | None = None) -> Path:
    """Run the stages that are not done yet, show the result, and return the report's path."""
    console = console or Console(highlight=False)
    started_at = time.monotonic()
    check_can_be_told(demo.recipe)
    with exclusive_lock(demo.folder, purpose="running the demo"):
        if is_fresh:
            clear(demo.folder)
        check_same_demo(demo)
        remove_leftovers(demo.folder)
        if all(stage.is_done(demo) for stage in STAGES):
            console.print(f"The demo in {demo.folder} is already complete; this is its result.\n")
        else:
            console.print(f"[bold]A small ALBERT learns from Python's own documentation[/] ({demo.folder})")
            console.print("This takes about five minutes. If interrupted, run the same command to resume.\n")
            for number, stage in enumerate(STAGES, start=1):
                do_stage(demo, stage, f"{number}/{len(STAGES)}", console)
            console.print(f"\nDone in {format_seconds(time.monotonic() - started_at)}.\n")
    show_result(demo, console)
    return demo.folder / REPORT


def do_stage(demo: Demo, stage: Stage, number: str, console: Console) -> None:
    """Run a stage unless it is done, and record how long it took."""
    if stage.is_done(demo):
        console.print(f"[green]✓[/] [bold]{number} {stage.name}[/] already done")
        return
    console.print(f"[cyan]▸[/] [bold]{number} {stage.name}[/] {stage.announcement}")
    started_at = time.monotonic()
    summary = stage.work(demo)
    seconds = time.monotonic() - started_at
    note_time(demo, stage.name, seconds)
    console.print(f"  {escape(summary)} [dim]({format_seconds(seconds)})[/]")


# --- the stages, in their order


def collect_text(demo: Demo) -> str:
    documents = collect_documents(demo.library, load_topics())
    with atomic_directory(demo.folder / "text") as temporary:
        for kind in ("topic", "module"):
            texts = ["\n".join(document.sentences) for document in documents if document.id.startswith(kind)]
            (temporary / f"{kind}s.txt").write_text("\n\n".join(texts) + "\n", "utf-8")
    sentences = [sentence for document in documents for sentence in document.sentences]
    return (
        f"{len(documents):,} documents, {len(sentences):,} sentences, {sum(map(len, sentences)) / 1e6:.1f} MB; "
        f'such as "{documents[0].sentences[0]}"'
    )


def learn_vocabulary(demo: Demo) -> str:
    options = VocabularyOptions(kind="unigram", vocab_size=demo.recipe.model.vocab_size)
    tokenizer = train_tokenizer(iter_text(demo), options)
    tokenizer.save(demo.folder / "tokenizer")
    example = "Dictionaries remember insertion order."
    pieces = " ".join(tokenizer.pieces(tokenizer.encode(example)))
    return f'{tokenizer.vocab_size:,} pieces; "{example}" becomes {pieces}'


def build_shards(demo: Demo) -> str:
    tokenizer = load_tokenizer(demo.folder / "tokenizer")
    options = BuildOptions(read=READ_LINES, valid_share=VALID_SHARE, is_quiet=True)
    build_corpus([demo.folder / "text"], tokenizer, demo.folder / "corpus", options)
    train, valid = (open_corpus(demo.folder / "corpus", split) for split in ("train", "valid"))
    return (
        f"training split: {train.num_documents:,} documents, {train.num_tokens:,} tokens; "
        f"validation split: {valid.num_documents:,} documents, {valid.num_tokens:,} tokens"
    )


def train_model(demo: Demo) -> str:
    recipe = demo.recipe
    pretrain(recipe, demo.run)
    count = count_parameters(recipe.model, build_objective(recipe).heads)
    return f"{count.total:,} parameters, {read_progress(demo).step:,} steps"


def evaluate(demo: Demo) -> str:
    assert demo.last_checkpoint is not None, "pre-training has finished"
    evaluation = evaluate_model(demo.last_checkpoint, demo.recipe)
    write_sealed(demo.folder / EVALUATION, asdict(evaluation))
    return f"{evaluation.trained.masked.total:,} masked tokens and {evaluation.trained.pairs.total:,} sentence pairs"


def write_report(demo: Demo) -> str:
    times = read_times(demo)
    listed = {stage.name: times.get(stage.name) for stage in STAGES[:-1]}
    page = build_page(demo.run, demo.recipe, read_evaluation(demo), listed)
    with atomic_path(demo.folder / REPORT) as temporary:
        temporary.write_text(page, "utf-8")
    return f"{demo.folder / REPORT}"


READ_LINES = ReadOptions(format="lines")
STAGES = (
    Stage(
        "Text",
        "from the help topics and docstrings that ship with Python",
        lambda demo: (demo.folder / "text").is_dir(),
        collect_text,
    ),
    Stage(
        "Vocabulary",
        "of word pieces, trained with SentencePiece",
        lambda demo: (demo.folder / "tokenizer").is_dir(),
        learn_vocabulary,
    ),
    Stage(
        "Shards",
        "of token ids, split into training and validation",
        lambda demo: (
            (demo.folder / "corpus" / MANIFEST).exists() and not (demo.folder / "corpus" / UNFINISHED).exists()
        ),
        build_shards,
    ),
    Stage(
        "Pre-training",
        "on masked n-grams and sentence order",
        lambda demo: read_progress(demo).is_finished(demo.recipe.train),
        train_model,
    ),
    Stage(
        "Evaluation",
        "on the validation split, compared with baselines",
        lambda demo: (demo.folder / EVALUATION).exists(),
        evaluate,
    ),
    Stage("Report", "as one HTML page", lambda demo: (demo.folder / REPORT).exists(), write_report),
)


def show_result(demo: Demo, console: Console) -> None:
    """Print scores, filled masks, and the next commands to try."""
    evaluation = read_evaluation(demo)
    console.print(draw_scores(evaluation))
    for line in describe_scores(evaluation):
        console.print(escape(line))
    console.print(draw_fillings(evaluation))
    if caution := describe_fillings(evaluation):
        console.print(caution)
    console.print(f"\nReport with learning curves: [bold]{demo.folder / REPORT}[/]")
    console.print("\nNext, train on your own text (a file or folder of plain text, .gz, .zst, JSONL or Parquet):")
    for command in next_commands():
        console.print(f"  {command}", soft_wrap=True)


def iter_text(demo: Demo) -> "map[str]":
    return map("\n".join, (document.sentences for document in iter_documents([demo.folder / "text"], READ_LINES)))


# --- what the folder contains besides the stages' output


def check_can_be_told(recipe: Recipe) -> None:
    """Fail before training if the report could not describe this recipe."""
    for now in (recipe, *(stage.recipe for stage in recipe.stages)):
        if now.model.sharing != "all" or not now.model.layer_plan.is_one_layer:
            raise ConfigError(
                "unsupported-by-demo",
                "the demo needs a single shared layer (model.sharing = 'all', model.num_inner = 1); "
                "for other models use `litebert pretrain nano`",
            )
        if now.segments.task == "none":
            raise ConfigError(
                "unsupported-by-demo",
                "the demo needs a sentence-pair objective, but segments.task = 'none'; "
                "to train without one use `litebert pretrain nano`",
            )


def check_same_demo(demo: Demo) -> None:
    """Accept an empty folder, or one in which the same demo was started."""
    marker = demo.folder / MARKER
    if marker.exists():
        if read_sealed(marker) != describe_demo(demo):
            raise ConfigError(
                "options-changed",
                f"{demo.folder} contains a demo with another recipe or litebert version: start over, or use an "
                "empty folder",
                option="overwrite",
            )
    elif any(path.name != LOCK_FILE for path in demo.folder.iterdir()):
        raise ConfigError(
            "output-exists",
            f"{demo.folder} is not empty and was not created by the demo: use another folder",
            option="out",
        )
    else:
        write_sealed(marker, describe_demo(demo))


def describe_demo(demo: Demo) -> dict[str, str]:
    return {"litebert": version("litebert"), "recipe": demo.recipe.fingerprint}


def clear(folder: Path) -> None:
    """Delete a demo; a folder that is not a demo's is left unchanged."""
    if (folder / MARKER).exists():
        for path in folder.iterdir():
            if path.name not in (LOCK_FILE, MARKER):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        (folder / MARKER).unlink()  # last, so that an interrupted deletion can be repeated


def read_progress(demo: Demo) -> Progress:
    """How far training has come; runs limited by hours or tokens have no fixed last step."""
    if demo.last_checkpoint is None:
        return Progress()
    return Progress.of(demo.last_checkpoint)


def read_evaluation(demo: Demo) -> Evaluation:
    return build_options(Evaluation, read_sealed(demo.folder / EVALUATION), where=f"{demo.folder / EVALUATION}")


def note_time(demo: Demo, name: str, seconds: float) -> None:
    write_sealed(demo.folder / TIMES, read_times(demo) | {name: seconds})


def read_times(demo: Demo) -> dict[str, float]:
    """How long each finished stage took; training time includes updates before an interruption."""
    file = demo.folder / TIMES
    times: dict[str, float] = read_sealed(file, fix="delete it") if file.exists() else {}
    check_keys(file, times, dict.fromkeys(times, float))
    if "Pre-training" in times:
        updates = sum(record["seconds"] for record in read_log(demo.run / TIMING_FILE))
        times["Pre-training"] = max(times["Pre-training"], updates)
    return times
