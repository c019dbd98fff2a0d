"""A pre-training run's folder: opened, continued, saved; and what it is computed with."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from litebert.batches.batch import Batch
from litebert.batches.stream import open_corpora
from litebert.checkpoint import (
    Checkpoint,
    CheckpointContent,
    list_checkpoints,
    model_tensors,
    optimizer_tensors,
    restore_optimizer,
    save_checkpoint,
)
from litebert.checkpoint import read_manifest as read_checkpoint_manifest
from litebert.core.errors import ConfigError, DataError, TrainingError, advise_on_disk
from litebert.core.files import atomic_path, exclusive_lock
from litebert.core.runlog import METRICS_FILE, RunLog, check_log, describe_log, open_sinks, read_log
from litebert.core.runtime import Ranks, Runtime, choose_device
from litebert.core.stopping import Stop
from litebert.core.view import NoView, View
from litebert.corpus.shards import MANIFEST, Corpus, read_manifest
from litebert.interop.opening import load_checkpoint
from litebert.interop.source import FOR_TRAINING
from litebert.model.model import Model, build_model
from litebert.model.positions import continue_positions
from litebert.objectives.registry import build_objective
from litebert.pretraining.recipe import Recipe, build_recipe, list_changes, read_recipe_values, with_paths
from litebert.text.tokenizer import Tokenizer, load_tokenizer
from litebert.training.card import write_card
from litebert.training.distributed import TaskLoss, give, let_go, like_shard, spread, whole
from litebert.training.kept_checkpoints import (
    CHECKPOINTS,
    RECIPE_FILE,
    check_is_ours,
    checkpoint_path,
    find_last_whole,
    forget_old_checkpoints,
)
from litebert.training.loop import Engine, Progress, build_scaler, pack_scaler, seeding_rows, unpack_scaler
from litebert.training.optimizers import build_optimizer


@dataclass
class Run:
    """A run under way: its folder, what it is made of, and how far it has come."""

    folder: Path
    recipe: Recipe
    runtime: Runtime
    tokenizer: Tokenizer
    progress: Progress
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    scaler: dict[str, float | int]  # of fp16's loss scaling; empty in other formats
    texts: dict[str, str] = field(default_factory=dict)  # the fingerprint of each corpus that was read, by its path
    first_weights: str = ""  # the fingerprint of the weights that it began with; empty if they were drawn
    branch_steps: Collection[int] = ()  # whose checkpoints others go on from
    at_chance: Mapping[str, str] = field(default_factory=dict)  # heads that have learned nothing yet, and a sentence
    stop: Stop = field(default_factory=Stop)
    taken_up_at: Progress = field(init=False)  # where this process found it

    def __post_init__(self) -> None:
        self.taken_up_at = replace(self.progress)


def open_run(folder: Path, recipe: Recipe, runtime: Runtime, view: View) -> Run:
    """The run as its last whole checkpoint left it, or at its beginning."""
    last = find_last_whole(folder, view.say)
    if last is None:
        return begin_run(folder, recipe, runtime, view)
    view.say(f"going on after step {last.step:,}")
    return continue_run(last, folder, recipe, runtime)


def begin_run(folder: Path, recipe: Recipe, runtime: Runtime, view: View) -> Run:
    """The run at its beginning: with weights that are drawn, or those of `init.from`."""
    corpora = open_corpora(recipe.data)
    tokenizer = load_tokenizer(corpora[0].tokenizer_path)
    source = open_start(recipe, tokenizer)  # another tokenizer is refused first: its size is the lesser difference
    check_vocabulary(recipe, tokenizer)
    if source is None:
        drawn = draw_weights(recipe, corpora) if recipe.init.word_bias == "frequencies" else {}
        return Run(folder, recipe, runtime, tokenizer, Progress(), drawn, {}, {})
    step, moments = start_moments(source, recipe) if recipe.init.continues else (0, {})
    weights = source.load_weights()
    for note in note_start(source, recipe):
        view.say(note)
    drawn_heads = list_new_heads(recipe, weights)
    if drawn_heads:
        view.say(f"heads drawn anew: {', '.join(drawn_heads)}")
    return Run(
        folder, recipe, runtime, tokenizer, Progress(step), weights, moments, {}, first_weights=source.fingerprint
    )


def continue_run(last: Checkpoint, folder: Path, recipe: Recipe, runtime: Runtime) -> Run:
    """The run as a checkpoint of it left it."""
    check_log(folder / METRICS_FILE, last.begun_with.get("metrics", {}))
    if "dtype" in last.begun_with:  # "auto" might measure otherwise now
        runtime = runtime.in_format(last.begun_with["dtype"])
    state = last.state
    progress = Progress(last.step, int(state["tokens"]), float(state["seconds"]))
    scaler = unpack_scaler(state)
    weights, moments, texts = last.load_weights(), last.load_optimizer(), last.begun_with.get("corpora", {})
    first = last.begun_with.get("weights", "")
    return Run(folder, recipe, runtime, last.load_tokenizer(), progress, weights, moments, scaler, texts, first)


def open_start(recipe: Recipe, tokenizer: Tokenizer) -> Checkpoint | None:
    """The checkpoint to begin with, of whatever kind; None: the model draws its own weights."""
    if not recipe.init.source:
        return None
    source = load_checkpoint(recipe.init.source, FOR_TRAINING)
    if source.load_tokenizer().fingerprint != tokenizer.fingerprint:
        raise ConfigError(
            f"init.from = '{recipe.init.source}' has another tokenizer than {', '.join(recipe.data.corpora)}: "
            f"build the corpus with --tokenizer {source.tokenizer_path}"
        )
    if recipe.model.has_pooler and not source.config.has_pooler:
        raise ConfigError(
            f"init.from = '{recipe.init.source}' has no pooler, and the model has one, for the sentence task: take "
            "a source that has one, or train without it (segments.task=none model.has_pooler=false)"
        )
    for name in ("num_heads", "activation", "norm_epsilon"):  # what no shape of a tensor shows
        theirs, ours = getattr(source.config, name), getattr(recipe.model, name)
        if theirs != ours:
            raise ConfigError(
                f"model.{name} = {ours}, but init.from = '{recipe.init.source}' was trained with {theirs}: "
                f"set model.{name}={theirs}"
            )
    check_fit(
        build_model(recipe.model, device="meta").state_dict(),
        build_model(source.config, device="meta").state_dict(),
        recipe,
    )
    return source


def note_start(source: Checkpoint, recipe: Recipe) -> list[str]:
    """What a person should know about the weights to start from; shared layers fit any depth."""
    theirs, ours = source.config.num_layers, recipe.model.num_layers
    if theirs == ours:
        return []
    changes = [stage for stage in recipe.stages if "model.num_layers" in stage.changes]
    later = [f"{stage.recipe.model.num_layers} from step {stage.at:,} on" for stage in changes]
    return [
        f"init.from = '{recipe.init.source}' was trained with {theirs} layers; this run has {ours}"
        f"{''.join(f', {change}' for change in later)} (model.num_layers)"
    ]


def start_moments(source: Checkpoint, recipe: Recipe) -> tuple[int, dict[str, Tensor]]:
    """The step that training goes on from, and the optimizer's moments."""
    is_by_steps = not (recipe.train.tokens or recipe.train.hours)
    if is_by_steps and source.step >= recipe.train.steps:
        raise ConfigError(
            f"init.from = '{recipe.init.source}' is at step {source.step:,}, and train.steps = {recipe.train.steps:,}: "
            "nothing is left to train; set more steps"
        )
    return source.step, source.load_optimizer()


def list_new_heads(recipe: Recipe, weights: dict[str, Tensor]) -> list[str]:
    """The heads to train that the weights to start from do not have, or have in another shape."""
    heads = build_objective(recipe).build_model(recipe.model, device="meta").heads
    shapes = {kind: head.state_dict(prefix=f"heads.{kind}.") for kind, head in heads.items()}
    return [
        kind
        for kind, tensors in shapes.items()
        if any(name not in weights or weights[name].shape != tensor.shape for name, tensor in tensors.items())
    ]


def draw_weights(recipe: Recipe, corpora: Sequence[Corpus]) -> dict[str, Tensor]:
    """The model's own first weights, but for the words' biases: the logarithms of their shares of the text."""
    model = build_objective(recipe).build_model(recipe.model, seed=recipe.seed)
    counts = np.ones(recipe.model.vocab_size)  # a word that never occurs has a logarithm too
    for shard in (shard for corpus in corpora for shard in corpus.shards):
        counts += np.bincount(shard.token_ids, minlength=len(counts))
    return model.state_dict() | {"heads.mlm.bias": torch.from_numpy(np.log(counts / counts.sum())).float()}


def build_engine(run: Run, recipe: Recipe) -> Engine[Batch]:
    """The model and optimizer of a stage, with the weights and moments that the run has so far."""
    objective = build_objective(recipe)
    model = objective.build_model(recipe.model, seed=recipe.seed)
    if run.weights:
        load_weights(model, run.weights, recipe)
    model.encoder.recompute = recipe.train.recompute
    model = model.to(run.runtime.device)
    if recipe.train.compile:
        # with and without a mask, of all or some places, learning or measured: eight, the default, would not do
        torch._dynamo.config.recompile_limit = 64
        for block in [*model.encoder.attention, *model.encoder.ffn]:
            block.compile()
    compute_loss = spread(TaskLoss(model, objective), recipe.train.parallel, run.runtime)
    trainable = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    optimizer = build_optimizer(trainable, recipe.optim)
    if run.optimizer:
        restore_optimizer(model, optimizer, fitting_moments(run.optimizer, dict(trainable)), like_shard)
    scaler = build_scaler(run.runtime)
    if run.scaler:
        scaler.load_state_dict(run.scaler)
    run.weights, run.optimizer = {}, {}  # they are in the engine now
    return Engine(
        model,
        compute_loss,
        optimizer,
        objective,
        run.runtime,
        scaler,
        recipe.optim.clip_norm,
        recipe.seed,
        seed_rows=seeding_rows(recipe.seed) if run.runtime.device.type == "cpu" and not recipe.train.compile else None,
    )


def continue_to_new_positions(run: Run, engine: Engine[Batch], begun_at: float) -> None:
    """Where a stage ends: let the positions that the next one is the first to reach go on as those before them do."""
    begun = (0, *(stage.at for stage in run.recipe.stages if stage.at <= begun_at))
    num_known = max(run.recipe.at(step).segments.max_length for step in begun)
    next_length = run.recipe.at(run.progress.scheduled_step(run.recipe.train)).segments.max_length
    if run.recipe.init.new_positions == "drawn" or next_length <= num_known:
        return
    let_go(engine.compute_loss)
    table = engine.model.encoder.embeddings.position.weight
    with torch.no_grad():
        table.copy_(like_shard(continue_positions(whole(table), num_known), table))


def load_weights(model: Model, weights: dict[str, Tensor], recipe: Recipe) -> None:
    """Fill a model from weights that may know fewer heads than it has; everything else must fit."""
    expected = model.state_dict()
    check_fit(expected, weights, recipe)
    fitting = {
        name: tensor for name, tensor in weights.items() if name in expected and tensor.shape == expected[name].shape
    }
    model.load_state_dict(fitting, strict=False)


def check_fit(expected: Mapping[str, Tensor], weights: Mapping[str, Tensor], recipe: Recipe) -> None:
    """Refuse weights to start from that are of another encoder."""
    wrong = [
        name
        for name in expected.keys() | weights.keys()
        if not name.startswith("heads.")
        and (name not in expected or name not in weights or expected[name].shape != weights[name].shape)
    ]
    if wrong:
        raise ConfigError(
            f"the weights to start from do not fit the model: {', '.join(sorted(wrong)[:5])}"
            f"{' ...' if len(wrong) > 5 else ''}; change [model] to their shape (init.from = '{recipe.init.source}')"
        )


def fitting_moments(moments: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The moments but those of heads and a pooler that are trained no longer, or in another shape."""

    def is_left_behind(name: str) -> bool:
        owner = name.rpartition("/")[0]
        if not owner.startswith(("encoder.pooler.", "heads.")):
            return False  # nothing else comes and goes; what does not fit there is of another model
        return owner not in trained or moments[f"{owner}/exp_avg"].shape != trained[owner].shape

    return {name: tensor for name, tensor in moments.items() if not is_left_behind(name)}


def open_log(run: Run) -> RunLog:
    """The run's logs, cut after the step that it goes on from; and its recipe, from the first moment on."""
    if not list_checkpoints(run.folder / CHECKPOINTS):
        with atomic_path(run.folder / RECIPE_FILE) as temporary:
            temporary.write_text(run.recipe.to_toml(), "utf-8")
    options = run.recipe.train
    sinks = open_sinks(options.loggers, run.folder, run_name=run.folder.name, config=run.recipe.values)
    log = RunLog(run.folder, resumed_step=run.progress.step, sinks=sinks)
    forget_checkpoints(run)  # a kill may have come between saving and forgetting
    return log


def save(run: Run, engine: Engine[Batch], log: RunLog | None) -> None:
    """Write the checkpoint of this moment, and forget those that nobody will ask for."""
    if log is None and run.recipe.train.parallel == "ddp":
        return  # the first process has all
    gather = give if log is None else whole
    weights = model_tensors(engine.model, gather)
    optimizer = optimizer_tensors(engine.model, engine.optimizer, gather)
    if log is None:
        return
    log.sync()  # a checkpoint must not be ahead of its metrics
    path = checkpoint_path(run.folder, run.progress.step)
    records = read_log(run.folder / METRICS_FILE)
    content = CheckpointContent(
        step=run.progress.step,
        recipe_toml=run.recipe.to_toml(),
        card=write_card(
            model=run.folder.name,
            corpora=run.recipe.data.corpora,
            recipe_toml=run.recipe.to_toml(),
            metrics=records,
        ),
        state={
            "tokens": run.progress.tokens,
            "seconds": run.progress.seconds,
            **pack_scaler(engine.scaler),
        },
        begun_with={
            "dtype": run.runtime.dtype_name,
            "corpora": run.texts,
            "weights": run.first_weights,
            "metrics": describe_log(run.folder / METRICS_FILE),
        },
        optimizer=optimizer,
        at_chance=tuple(run.at_chance),
    )
    try:
        save_checkpoint(path, engine.model, run.tokenizer, content, weights)
    except OSError as error:
        raise TrainingError(f"cannot save {path}: {error.strerror or error}{advise_on_disk(error, path)}") from error
    forget_checkpoints(run)


def forget_checkpoints(run: Run) -> None:
    """Delete checkpoints that are neither among the last nor the best, and that no other run starts from."""
    records = read_log(run.folder / METRICS_FILE)
    keep_last = run.recipe.train.keep_last
    forget_old_checkpoints(run.folder, records, keep_last=keep_last, branch_steps=run.branch_steps)


def check_stages(run: Run) -> None:
    """Refuse at once what would stop the run in hours: a stage of other tensors, without its corpora, of few rows."""
    own = encoder_shapes(run.recipe)
    now = run.progress.scheduled_step(run.recipe.train)
    check_rows(run.recipe.at(now), run.runtime.ranks.world_size)
    for stage in (stage for stage in run.recipe.stages if stage.at > now):
        check_rows(stage.recipe, run.runtime.ranks.world_size)
        theirs = encoder_shapes(stage.recipe)
        changed = sorted(name for name in own.keys() | theirs.keys() if own.get(name) != theirs.get(name))
        if changed:
            raise ConfigError(
                f"stages: from at = {stage.at} on, other tensors would be needed ({', '.join(changed[:5])}"
                f"{' ...' if len(changed) > 5 else ''}); a stage may change of [model] only what leaves every weight "
                "its shape, such as dropout or the depth of shared layers"
            )
        check_tokenizer(open_corpora(stage.recipe.data), run.tokenizer)
        check_same_text(run, stage.recipe)


def check_before_launch(recipe: Recipe, folder: Path, num_processes: int) -> None:
    """Refuse at once what each process would refuse on its own, after it has loaded and met the others."""
    device = choose_device(recipe.runtime.device, num_processes - 1, num_processes)
    runtime = Runtime(device, torch.float32, Ranks(world_size=num_processes))
    check_is_ours(folder)
    with exclusive_lock(folder, purpose="training"):
        check_same_recipe(folder, recipe)
        last = find_last_whole(folder, print)
        run = continue_run(last, folder, recipe, runtime) if last else begin_run(folder, recipe, runtime, NoView())
        check_stages(run)
        if not run.progress.is_finished(recipe.train):
            check_same_text(run, recipe.at(run.progress.scheduled_step(recipe.train)))


def check_rows(recipe: Recipe, num_processes: int) -> None:
    """A batch must have a row for each process; how many one by tokens has, shows when it comes."""
    if 0 < recipe.batch.sequences < num_processes:
        raise ConfigError(
            f"batch.sequences = {recipe.batch.sequences} cannot be divided among {num_processes} processes: make it "
            "larger, or start fewer"
        )


def encoder_shapes(recipe: Recipe) -> dict[str, tuple[int, ...]]:
    """The shape of each weight that every stage has; heads may be drawn anew."""
    encoder = build_model(recipe.model, (), device="meta").encoder
    return {name: tuple(tensor.shape) for name, tensor in encoder.state_dict().items()}


def check_tokenizer(corpora: Sequence[Corpus], tokenizer: Tokenizer) -> None:
    """A corpus made with another tokenizer than the run's cannot be meant."""
    for corpus in corpora:
        if not tokenizer.has_fingerprint(corpus.tokenizer_fingerprint):
            raise ConfigError(
                f"{corpus.path} was built with another tokenizer than this run's: build it again with the run's own"
            )


def check_same_text(run: Run, recipe: Recipe) -> None:
    """Note the text of the corpora that a stage reads, and refuse one that is not what the run has read before."""
    measured_on = run.recipe.data.corpora[0]  # in all stages
    for path in dict.fromkeys((*recipe.data.corpora, measured_on)):
        fingerprint = read_manifest(Path(path)).fingerprint
        noted = [content for known, content in run.texts.items() if _whole(known) == _whole(path)]
        run.texts.setdefault(path, fingerprint)
        if any(content != fingerprint for content in noted):
            raise ConfigError(
                f"{path} has another text now than when {run.folder} began to read it: put the old corpus back to go "
                f"on, or choose another --out and start from the last weights on the new one, with "
                f"init.from={run.folder / CHECKPOINTS}/step-..."
            )


def check_vocabulary(recipe: Recipe, tokenizer: Tokenizer) -> None:
    """The vocabulary's size is a fact of the tokenizer; a recipe that says otherwise is refused."""
    if recipe.model.vocab_size != tokenizer.vocab_size:
        raise ConfigError(
            f"model.vocab_size = {recipe.model.vocab_size}, but the corpus's tokenizer has {tokenizer.vocab_size} "
            f"pieces: set model.vocab_size={tokenizer.vocab_size}"
        )


def check_same_recipe(folder: Path, recipe: Recipe) -> None:
    """Refuse to go on with a run under another recipe; before its first checkpoint there is nothing to go on with."""
    file = folder / RECIPE_FILE
    if not file.exists() or not list_checkpoints(folder / CHECKPOINTS):
        return
    values = read_recipe_values(file)
    if "job" in values:
        raise ConfigError(f"{folder} is a run of fine-tuning; choose another --out")
    try:
        begun = build_recipe(values)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}; it is the recipe that {folder} was begun with") from None
    moved = find_moved(folder, begun, recipe)
    changes = list_changes(with_paths(begun, _whole), with_paths(recipe, lambda path: _whole(moved.get(path, path))))
    if changes:
        raise ConfigError(
            f"{folder} was begun with another recipe ({'; '.join(changes[:5])}); go on with the old one, or choose "
            f"another --out and start from its weights with init.from={folder / CHECKPOINTS}/step-..."
        )


def find_moved(folder: Path, begun: Recipe, recipe: Recipe) -> dict[str, str]:
    """The paths of a recipe whose content is what the run began with under another path, each with that path."""
    noted = read_beginning(folder)
    texts = noted.get("corpora", {})
    former = {texts[path]: path for path in _list_corpora(begun) if path in texts}
    at_beginning = set(map(_whole, _list_corpora(begun)))
    new = [path for path in _list_corpora(recipe) if _whole(path) not in at_beginning]
    here = {path: read_manifest(Path(path)).fingerprint for path in new if (Path(path) / MANIFEST).is_file()}
    moved = {path: former[text] for path, text in here.items() if text in former}
    source, first = recipe.init.source, begun.init.source
    is_elsewhere = bool(source and first) and Path(source).exists() and _whole(source) != _whole(first)
    if is_elsewhere and load_checkpoint(source).fingerprint == noted.get("weights"):
        moved[source] = first
    return moved


def _list_corpora(recipe: Recipe) -> list[str]:
    """The corpora of every stage, as the recipe names them."""
    return [path for part in (recipe, *(stage.recipe for stage in recipe.stages)) for path in part.data.corpora]


def read_beginning(folder: Path) -> dict[str, Any]:
    """What a run noted of its beginning, by its newest checkpoint that can be read."""
    for path in reversed(list_checkpoints(folder / CHECKPOINTS)):
        try:
            return read_checkpoint_manifest(path).begun_with
        except DataError:
            continue  # it is put aside when the run is opened
    return {}


def _whole(path: str) -> str:
    """A path that can be compared with others; what is not here may be the name of something on a hub."""
    return str(Path(path).resolve()) if Path(path).exists() else path
