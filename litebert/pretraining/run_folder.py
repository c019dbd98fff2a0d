"""The folder of a pre-training run: locked, opened or resumed, and saved to.

recipe.toml      written before the first step; a resumed run must have the same one
metrics.jsonl    reproducible values, one line per logged step
timing.jsonl     seconds and tokens per second
checkpoints/     the last ones, the best one, and those that other runs start from
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from litebert.batches.batch import Batch
from litebert.batches.stream import open_corpora
from litebert.checkpoint import (
    Checkpoint,
    CheckpointContent,
    list_checkpoints,
    model_tensors,
    optimizer_tensors,
    save_checkpoint,
)
from litebert.checkpoint import read_manifest as read_checkpoint_manifest
from litebert.core.errors import ConfigError, DataError, TrainingError, advise_on_disk, naming_shortages
from litebert.core.files import atomic_path, exclusive_lock, remove_leftovers
from litebert.core.runlog import METRICS_FILE, NoLog, RunLog, check_log, describe_log, open_sinks, read_log
from litebert.core.runtime import Runtime, choose_runtime
from litebert.core.view import NoView, View, open_view
from litebert.corpus.shards import MANIFEST, Corpus, read_manifest
from litebert.interop.opening import load_checkpoint
from litebert.pretraining.initialization import State, load_source, start_from_checkpoint, start_from_scratch
from litebert.pretraining.recipe import Recipe, build_recipe, list_changes, read_recipe_values, with_paths
from litebert.text.tokenizer import Tokenizer, load_tokenizer
from litebert.training.card import write_card
from litebert.training.distributed import agree_on_dtype, gather_tensor, process_group, send_shard
from litebert.training.kept_checkpoints import (
    CHECKPOINTS,
    RECIPE_FILE,
    check_is_ours,
    checkpoint_path,
    delete_old_checkpoints,
    find_last_checkpoint,
    rename_damaged,
)
from litebert.training.loop import SMALLER_MODEL, Engine, Progress, pack_scaler, unpack_scaler


@dataclass
class Run:
    """A run in progress."""

    folder: Path
    recipe: Recipe
    runtime: Runtime
    tokenizer: Tokenizer
    progress: Progress
    state: State  # between stages; during a stage, its engine has it
    texts: dict[str, str] = field(default_factory=dict)  # path -> fingerprint of each corpus that was read
    measures_dtype: bool = False  # runtime.dtype = "auto", and no checkpoint recorded what was chosen
    first_weights: str = ""  # fingerprint of the weights that it started from; empty if they were new
    branch_steps: Collection[int] = ()  # other runs start from these checkpoints
    at_chance: Mapping[str, str] = field(default_factory=dict)  # heads that have learned nothing yet -> a warning
    is_plateau_known: bool = False  # this process has said that the run is no better than its unigram model
    opened_at: Progress = field(init=False)  # when this process opened it

    def __post_init__(self) -> None:
        self.opened_at = replace(self.progress)

    @property
    def is_finished(self) -> bool:
        return self.progress.is_finished(self.recipe.train)


@contextmanager
def join_run(folder: Path, recipe: Recipe) -> Iterator[tuple[Runtime, View]]:
    """Join the run's other processes, if there are any. The first one locks the folder and shows progress.

    A training error inside the block is raised with the name of the last checkpoint.
    """
    runtime = choose_runtime(recipe.runtime)
    is_main = runtime.ranks.is_main
    check_is_ours(folder)
    with process_group(runtime), exclusive_lock(folder, purpose="training") if is_main else nullcontext():
        runtime = agree_on_dtype(runtime)
        check_same_recipe(folder, recipe)
        if is_main:
            remove_leftovers(folder / CHECKPOINTS)
        with open_view(folder.name) if is_main else NoView() as view:
            try:
                yield runtime, view
            except TrainingError as error:
                saved = list_checkpoints(folder / CHECKPOINTS)
                last = f"the last checkpoint is {saved[-1]}" if saved else "no checkpoint was saved yet"
                raise TrainingError(error.code, f"{error}; {last}") from error


def open_run(folder: Path, recipe: Recipe, runtime: Runtime, view: View, branch_steps: Collection[int] = ()) -> Run:
    """The run at its last complete checkpoint, or at its beginning. Renames corrupt checkpoints."""
    last, damaged = find_last_checkpoint(folder)
    for path, reason in damaged.items():
        view.say(f"{reason}; renamed to {rename_damaged(path).name}")
    if last is None:
        run = begin_run(folder, recipe, runtime, view)
    else:
        view.say(f"resuming after step {last.step:,}")
        run = resume_run(last, folder, recipe, runtime)
    run.branch_steps = branch_steps
    return run


@naming_shortages("building the model", fix=SMALLER_MODEL)
def begin_run(folder: Path, recipe: Recipe, runtime: Runtime, view: View) -> Run:
    """The run at its beginning: from scratch, or from `init.from`."""
    corpora = open_corpora(recipe.data)
    tokenizer = load_tokenizer(corpora[0].tokenizer_path)
    source = load_source(recipe, tokenizer)  # before the vocabulary size, which follows from the tokenizer
    check_vocabulary(recipe, tokenizer)
    start = start_from_checkpoint(recipe, source) if source else start_from_scratch(recipe, corpora)
    for note in start.notes:
        view.say(note)
    run = Run(folder, recipe, runtime, tokenizer, Progress(start.step), start.state, first_weights=start.fingerprint)
    run.measures_dtype = recipe.runtime.dtype == "auto"
    return run


@naming_shortages("building the model", fix=SMALLER_MODEL)
def resume_run(last: Checkpoint, folder: Path, recipe: Recipe, runtime: Runtime) -> Run:
    """The run at one of its checkpoints."""
    begun_with = last.begun_with
    check_log(folder / METRICS_FILE, begun_with.get("metrics", {}))
    if "dtype" in begun_with:  # "auto" might choose another one now
        runtime = runtime.in_format(begun_with["dtype"])
    progress = Progress.of(last.path)
    state = State(last.load_weights(), last.load_optimizer(), unpack_scaler(last.state))
    texts, first_weights = begun_with.get("corpora", {}), begun_with.get("weights", "")
    return Run(folder, recipe, runtime, last.load_tokenizer(), progress, state, texts, first_weights=first_weights)


def open_log(run: Run) -> RunLog | NoLog:
    """The run's logs, truncated to the step that it resumes from; the first process writes them and the recipe."""
    if not run.runtime.ranks.is_main:
        return NoLog()
    if not list_checkpoints(run.folder / CHECKPOINTS):
        with atomic_path(run.folder / RECIPE_FILE) as temporary:
            temporary.write_text(run.recipe.to_toml(), "utf-8")
    sinks = open_sinks(run.recipe.train.loggers, run.folder, run_name=run.folder.name, config=run.recipe.values)
    log = RunLog(run.folder, resumed_step=run.progress.step, sinks=sinks)
    delete_checkpoints(run)  # a kill may have come between saving and deleting
    return log


@naming_shortages("saving a checkpoint", fix=SMALLER_MODEL)
def save(run: Run, engine: Engine[Batch], log: RunLog | NoLog) -> None:
    """Write a checkpoint, and delete those that are no longer needed."""
    is_main = run.runtime.ranks.is_main
    if not is_main and run.recipe.train.parallel == "ddp":
        return  # the first process has everything
    gather = gather_tensor if is_main else send_shard
    weights = model_tensors(engine.model, gather)
    moments = optimizer_tensors(engine.model, engine.optimizer, gather)
    if not is_main:
        return
    log.sync()  # a checkpoint must not be ahead of its metrics
    path = checkpoint_path(run.folder, run.progress.step)
    recipe_toml = run.recipe.to_toml()
    content = CheckpointContent(
        step=run.progress.step,
        recipe_toml=recipe_toml,
        card=write_card(
            model=run.folder.name,
            corpora=run.recipe.data.corpora,
            recipe_toml=recipe_toml,
            metrics=read_log(run.folder / METRICS_FILE),
        ),
        state={"tokens": run.progress.tokens, "seconds": run.progress.seconds, **pack_scaler(engine.scaler)},
        begun_with={
            "dtype": run.runtime.dtype_name,
            "corpora": run.texts,
            "weights": run.first_weights,
            "metrics": describe_log(run.folder / METRICS_FILE),
        },
        optimizer=moments,
        at_chance=tuple(run.at_chance),
    )
    try:
        save_checkpoint(path, engine.model, run.tokenizer, content, weights)
    except OSError as error:
        raise TrainingError(
            "cannot-save", f"cannot save {path}: {error.strerror or error}{advise_on_disk(error, path)}"
        ) from error
    delete_checkpoints(run)


def delete_checkpoints(run: Run) -> None:
    """Delete all checkpoints except the last ones, the best one, and those that other runs start from."""
    records, keep_last = read_log(run.folder / METRICS_FILE), run.recipe.train.keep_last
    ends = {run.recipe.train.steps, *(stage.at for stage in run.recipe.stages)}
    counts_steps = not (run.recipe.train.hours or run.recipe.train.tokens)  # otherwise a stage may end at any step

    def is_scheduled(step: int) -> bool:
        return not counts_steps or step in ends or step % run.recipe.at(step - 1).train.save_every == 0

    delete_old_checkpoints(
        run.folder, records, keep_last=keep_last, branch_steps=run.branch_steps, is_scheduled=is_scheduled
    )


def record_corpora(run: Run, recipe: Recipe) -> None:
    """Record a fingerprint of each corpus that a stage reads; raise if a recorded path now has another text."""
    measured_on = run.recipe.data.corpora[0]  # in all stages
    for path in dict.fromkeys((*recipe.data.corpora, measured_on)):
        fingerprint = read_manifest(Path(path)).fingerprint
        recorded = [content for known, content in run.texts.items() if _resolve(known) == _resolve(path)]
        run.texts.setdefault(path, fingerprint)
        if any(content != fingerprint for content in recorded):
            raise ConfigError(
                "corpus-changed",
                f"{path} has another text than when {run.folder} began to read it: put the old corpus back to "
                f"resume, or start a new run in another folder from the last weights "
                f"(init.from={run.folder / CHECKPOINTS}/step-...)",
            )


def check_tokenizer(corpora: Sequence[Corpus], tokenizer: Tokenizer) -> None:
    """Raise unless every corpus was built with the run's tokenizer."""
    for corpus in corpora:
        if not tokenizer.has_fingerprint(corpus.tokenizer_fingerprint):
            raise ConfigError(
                "tokenizer-mismatch",
                f"{corpus.path} was built with another tokenizer than this run's: build it again with the run's own",
            )


def check_vocabulary(recipe: Recipe, tokenizer: Tokenizer) -> None:
    """Raise unless the recipe has the vocabulary size of the tokenizer."""
    if recipe.model.vocab_size != tokenizer.vocab_size:
        raise ConfigError(
            "vocabulary-mismatch",
            f"model.vocab_size = {recipe.model.vocab_size}, but the corpus's tokenizer has {tokenizer.vocab_size} "
            f"pieces: set model.vocab_size={tokenizer.vocab_size}",
        )


def check_same_recipe(folder: Path, recipe: Recipe) -> None:
    """Raise if the folder's run was started with another recipe; its corpora may have moved."""
    file = folder / RECIPE_FILE
    if not file.exists() or not list_checkpoints(folder / CHECKPOINTS):
        return
    values = read_recipe_values(file)
    if "job" in values:
        raise ConfigError("other-run", f"{folder} is a fine-tuning run; choose another folder", option="out")
    try:
        begun = build_recipe(values)
    except ConfigError as error:
        raise ConfigError("unreadable-run", f"{file}: {error}; {folder} was started with this recipe") from None
    moved = find_moved(folder, begun, recipe)
    changes = list_changes(
        with_paths(begun, _resolve), with_paths(recipe, lambda path: _resolve(moved.get(path, path)))
    )
    if changes:
        raise ConfigError(
            "recipe-changed",
            f"{folder} was started with another recipe ({'; '.join(changes[:5])}); resume it with that recipe, or "
            f"choose another folder (init.from={folder / CHECKPOINTS}/step-... starts from this run's weights)",
            option="out",
        )


def find_moved(folder: Path, begun: Recipe, recipe: Recipe) -> dict[str, str]:
    """The paths in a recipe whose content the run has recorded under an earlier path, with that path."""
    recorded = _read_beginning(folder)
    texts = recorded.get("corpora", {})
    former = {texts[path]: path for path in _list_corpora(begun) if path in texts}
    at_beginning = set(map(_resolve, _list_corpora(begun)))
    new = [path for path in _list_corpora(recipe) if _resolve(path) not in at_beginning]
    here = {path: read_manifest(Path(path)).fingerprint for path in new if (Path(path) / MANIFEST).is_file()}
    moved = {path: former[text] for path, text in here.items() if text in former}
    source, first = recipe.init.source, begun.init.source
    is_elsewhere = bool(source and first) and Path(source).exists() and _resolve(source) != _resolve(first)
    if is_elsewhere and load_checkpoint(source).fingerprint == recorded.get("weights"):
        moved[source] = first
    return moved


def _list_corpora(recipe: Recipe) -> list[str]:
    """The corpora of all stages, as the recipe names them."""
    return [path for part in (recipe, *(stage.recipe for stage in recipe.stages)) for path in part.data.corpora]


def _read_beginning(folder: Path) -> dict[str, Any]:
    """The facts recorded when the run began, from its newest readable checkpoint."""
    for path in reversed(list_checkpoints(folder / CHECKPOINTS)):
        try:
            return read_checkpoint_manifest(path).begun_with
        except DataError:
            continue  # it is renamed when the run is opened
    return {}


def _resolve(path: str) -> str:
    """An absolute path to compare with others; a path that does not exist may be a name on the hub and is kept."""
    return str(Path(path).resolve()) if Path(path).exists() else path
