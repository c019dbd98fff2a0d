"""The initial state of a run: new weights, weights from a checkpoint, or the full training state of another run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from litebert.checkpoint import Checkpoint, restore_optimizer
from litebert.core.errors import ConfigError
from litebert.corpus.shards import Corpus
from litebert.interop.opening import load_checkpoint
from litebert.interop.source import FOR_TRAINING
from litebert.model.model import Model, build_model
from litebert.objectives.registry import build_objective
from litebert.pretraining.recipe import Recipe
from litebert.text.tokenizer import Tokenizer
from litebert.training.distributed import shard_like


@dataclass(frozen=True)
class State:
    """The tensors that training changes. Everything else about a run follows from its recipe and its step."""

    weights: Mapping[str, Tensor] = field(default_factory=dict)  # missing heads are initialized
    moments: Mapping[str, Tensor] = field(default_factory=dict)  # optimizer state
    scaler: Mapping[str, float | int] = field(default_factory=dict)  # fp16 loss scaling; empty in other formats


class Start(NamedTuple):
    """The beginning of a run."""

    state: State
    step: int = 0  # above 0 if it continues the training of another run
    fingerprint: str = ""  # of the weights; empty if they are new
    notes: tuple[str, ...] = ()  # messages for the user


def start_from_scratch(recipe: Recipe, corpora: Sequence[Corpus]) -> Start:
    """New weights; with `init.word_bias`, the vocabulary's biases are log frequencies."""
    if recipe.init.word_bias == "zero":
        return Start(State())
    weights = build_objective(recipe).build_model(recipe.model, seed=recipe.seed).state_dict()
    counts = np.ones(recipe.model.vocab_size)  # at least 1, so that the logarithm is finite
    for shard in (shard for corpus in corpora for shard in corpus.shards):
        counts += np.bincount(shard.token_ids, minlength=len(counts))
    return Start(State(weights | {"heads.mlm.bias": torch.from_numpy(np.log(counts / counts.sum())).float()}))


def start_from_checkpoint(recipe: Recipe, source: Checkpoint) -> Start:
    """The weights of `init.from`; with `init.continues` also its optimizer state and step."""
    is_by_steps = not (recipe.train.tokens or recipe.train.hours)
    if recipe.init.continues and is_by_steps and source.step >= recipe.train.steps:
        raise ConfigError(
            "nothing-to-train",
            f"train.steps = {recipe.train.steps:,}, but init.from = '{recipe.init.source}' is at step "
            f"{source.step:,} already: raise train.steps",
        )
    weights = source.load_weights()
    new_heads = [
        kind
        for kind, head in build_objective(recipe).build_model(recipe.model, device="meta").heads.items()
        if any(
            name not in weights or weights[name].shape != tensor.shape
            for name, tensor in head.state_dict(prefix=f"heads.{kind}.").items()
        )
    ]
    notes = describe_source(source, recipe)
    if new_heads:
        notes.append(f"newly initialized heads: {', '.join(new_heads)}")
    step, moments = (source.step, source.load_optimizer()) if recipe.init.continues else (0, {})
    return Start(State(weights, moments), step, source.fingerprint, tuple(notes))


def load_source(recipe: Recipe, tokenizer: Tokenizer) -> Checkpoint | None:
    """The checkpoint of `init.from`, ours or foreign, after checking that it fits the recipe; None without one."""
    if not recipe.init.source:
        return None
    source = load_checkpoint(recipe.init.source, FOR_TRAINING)
    if source.load_tokenizer().fingerprint != tokenizer.fingerprint:
        raise ConfigError(
            "tokenizer-mismatch",
            f"init.from = '{recipe.init.source}' has another tokenizer than {', '.join(recipe.data.corpora)}: "
            f"build the corpus with the tokenizer {source.tokenizer_path}",
        )
    if recipe.model.has_pooler and not source.config.has_pooler:
        raise ConfigError(
            "no-pooler",
            f"init.from = '{recipe.init.source}' has no pooler, which the model needs for the sentence task: choose a "
            "checkpoint with one, or train without the task (segments.task=none model.has_pooler=false)",
        )
    for name in ("num_heads", "activation", "norm_epsilon"):  # not visible in the shapes of tensors
        theirs, ours = getattr(source.config, name), getattr(recipe.model, name)
        if theirs != ours:
            raise ConfigError(
                "config-mismatch",
                f"model.{name} = {ours}, but init.from = '{recipe.init.source}' was trained with {theirs}: "
                f"set model.{name}={theirs}",
            )
    model, other = (build_model(config, device="meta").state_dict() for config in (recipe.model, source.config))
    check_same_encoder(model, other, recipe)
    return source


def describe_source(source: Checkpoint, recipe: Recipe) -> list[str]:
    """A message if the weights were trained with another depth, which shared layers allow."""
    theirs, ours = source.config.num_layers, recipe.model.num_layers
    if theirs == ours:
        return []
    changes = [stage for stage in recipe.stages if "model.num_layers" in stage.changes]
    later = [f"{stage.recipe.model.num_layers} from step {stage.at:,} on" for stage in changes]
    return [
        f"init.from = '{recipe.init.source}' was trained with {theirs} layers; this run has {ours}"
        f"{''.join(f', {change}' for change in later)} (model.num_layers)"
    ]


def load_matching_weights(model: Model, weights: Mapping[str, Tensor], recipe: Recipe) -> None:
    """Load weights into a model. The encoder must match, heads may differ; without weights nothing changes."""
    if not weights:
        return
    expected = model.state_dict()
    check_same_encoder(expected, weights, recipe)
    fitting = {
        name: tensor for name, tensor in weights.items() if name in expected and tensor.shape == expected[name].shape
    }
    model.load_state_dict(fitting, strict=False)


def load_matching_moments(optimizer: Optimizer, model: Model, moments: Mapping[str, Tensor]) -> None:
    """Load optimizer moments, except for heads and a pooler that are no longer trained or have another shape.

    Of a matrix, Muon keeps the momentum only. After a change from Muon, the matrices' moments begin anew.
    """
    if not moments:
        return
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    matrices = {id(p) for group in optimizer.param_groups if group.get("is_orthogonalized") for p in group["params"]}

    def is_fitting(name: str) -> bool:
        owner, _, moment = name.rpartition("/")
        if owner in trained and id(trained[owner]) in matrices:
            return moment == "exp_avg"
        if f"{owner}/exp_avg_sq" not in moments:
            return False
        if not owner.startswith(("encoder.pooler.", "heads.")):
            return True  # restore_optimizer raises if anything else does not match
        return owner in trained and moments[f"{owner}/exp_avg"].shape == trained[owner].shape

    fitting = {name: tensor for name, tensor in moments.items() if is_fitting(name)}
    restore_optimizer(model, optimizer, fitting, shard_like)


def check_same_encoder(expected: Mapping[str, Tensor], weights: Mapping[str, Tensor], recipe: Recipe) -> None:
    """Raise unless the weights have the names and shapes of the model, except for heads."""
    wrong = [
        name
        for name in expected.keys() | weights.keys()
        if not name.startswith("heads.")
        and (name not in expected or name not in weights or expected[name].shape != weights[name].shape)
    ]
    if wrong:
        raise ConfigError(
            "weights-mismatch",
            f"the weights to start from do not fit the model: {', '.join(sorted(wrong)[:5])}"
            f"{' ...' if len(wrong) > 5 else ''}; change [model] to their shape (init.from = '{recipe.init.source}')",
        )
