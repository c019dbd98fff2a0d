"""A checkpoint: one directory with weights, configuration, tokenizer and how it came to be. Complete or not there.

litebert.json            what this is: model, heads, step, and the SHA-256 of every other file
model.safetensors        the weights, under Hugging Face's names where its classes can express the model
config.json, tokenizer.json, ...   with these, `transformers` loads the directory as it lies
tokenizer/               our tokenizer
recipe.toml              the resolved recipe
optimizer.safetensors    moments by parameter, where training is to go on
README.md                the model card
"""

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.optim import Optimizer

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import atomic_directory, check_keys, hash_file, read_json, write_json
from litebert.core.options import build_options
from litebert.interop.layout import from_theirs, to_theirs
from litebert.interop.names import Family, find_family, their_config, their_labels
from litebert.interop.tokenizer_files import write_tokenizer_files
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.model import Model, build_model
from litebert.text.tokenizer import Tokenizer, load_tokenizer

FORMAT = "litebert-checkpoint"
FORMAT_VERSION = 1
_KEYS = {"files": dict, "model": dict, "heads": list, "layout": object, "step": int, "state": dict}
MANIFEST = "litebert.json"
WEIGHTS = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"
RECIPE = "recipe.toml"
CARD = "README.md"
TOKENIZER = "tokenizer"
_NAME = re.compile(r"step-\d{8,}")  # as train/keeping.py gives it


@dataclass(frozen=True)
class CheckpointContent:
    """What is saved beside the model and its tokenizer."""

    step: int
    recipe_toml: str = ""
    card: str = ""
    state: Mapping[str, float | int] = field(default_factory=dict)  # counters of the run, such as tokens seen
    begun_with: Mapping[str, Any] = field(default_factory=dict)  # what the run must find again to go on
    optimizer: Mapping[str, Tensor] | None = None
    task: Mapping[str, Any] | None = None  # what a fine-tuned model answers, with all that has to be known to ask it


class Foreign(Protocol):
    """Somebody else's files behind a checkpoint; interop/source.py has them."""

    @property
    def tokenizer_path(self) -> Path | None: ...

    @property
    def weight_files(self) -> tuple[Path, ...]: ...

    def load_weights(self) -> dict[str, Tensor]: ...

    def load_optimizer(self) -> dict[str, Tensor]: ...

    def load_tokenizer(self) -> Tokenizer: ...


@dataclass(frozen=True)
class Checkpoint:
    """An opened checkpoint whose files were found whole."""

    path: Path
    config: ModelConfig
    heads: tuple[HeadSpec, ...]
    layout: Family | None  # whose tensor names the weights have; None = ours
    step: int
    state: dict[str, float | int]
    begun_with: dict[str, Any] = field(default_factory=dict)
    task: dict[str, Any] | None = None  # of a fine-tuned model; tasks/catalog.py reads it
    foreign: Foreign | None = None  # None: the files are ours

    def load_model(self, config: ModelConfig | None = None) -> Model:
        """The model with its weights; `config` may differ in what has none (dropout, the depth of shared layers)."""
        model = build_model(config or self.config, self.heads, device="meta").to_empty(device="cpu")
        model.load_state_dict(self.load_weights(), strict=True)
        return model

    def load_weights(self) -> dict[str, Tensor]:
        """The weights under our names."""
        if self.foreign is not None:
            return self.foreign.load_weights()
        tensors = _read_tensors(self.path / WEIGHTS)
        return tensors if self.layout is None else from_theirs(self.layout, self.config, self.heads, tensors)

    def load_optimizer(self) -> dict[str, Tensor]:
        """The optimizer's tensors, as `optimizer_tensors` names them."""
        if self.foreign is not None:
            return self.foreign.load_optimizer()
        if not (self.path / OPTIMIZER).exists():
            raise DataError(
                f"{self.path} has no {OPTIMIZER}: training cannot go on from it, only start from its weights"
            )
        return _read_tensors(self.path / OPTIMIZER)

    def load_tokenizer(self) -> Tokenizer:
        if self.foreign is not None:
            return self.foreign.load_tokenizer()
        return load_tokenizer(self.path / TOKENIZER)

    @property
    def tokenizer_path(self) -> Path | None:
        """Where its tokenizer lies; None where there is none, as beside some of other people's weights."""
        return self.path / TOKENIZER if self.foreign is None else self.foreign.tokenizer_path

    @cached_property
    def fingerprint(self) -> str:
        """What tells its weights from others: a hash of the files that hold them, wherever those lie."""
        files = (self.path / WEIGHTS,) if self.foreign is None else self.foreign.weight_files
        hashes = [hash_file(file) for file in files]
        return hashes[0] if len(hashes) == 1 else hashlib.sha256(" ".join(hashes).encode()).hexdigest()

    @property
    def recipe_toml(self) -> str:
        return "" if self.foreign is not None else (self.path / RECIPE).read_text("utf-8")


def _on_cpu(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous()


def model_tensors(model: Model, gather: Callable[[Tensor], Tensor] = _on_cpu) -> dict[str, Tensor]:
    """The weights under our names; `gather` makes shards whole."""
    return {name: gather(tensor) for name, tensor in model.state_dict().items()}


def save_checkpoint(
    path: Path,
    model: Model,
    tokenizer: Tokenizer,
    content: CheckpointContent,
    weights: Mapping[str, Tensor] | None = None,
    *,
    replaces: bool = False,
) -> None:
    """Write a checkpoint; it appears at `path` when it is complete and on the disk, over an old one if so wished.

    `weights` are the model's own, where they had to be gathered from shards.
    """
    special_ids = {"pad": tokenizer.pad_id, "cls": tokenizer.cls_id, "sep": tokenizer.sep_id}
    family = find_family(model.config, model.head_specs, pad_id=tokenizer.pad_id)
    tensors = model_tensors(model) if weights is None else dict(weights)
    with atomic_directory(path, replaces=replaces) as temporary:
        if family is not None:
            tensors = to_theirs(family, model.config, model.head_specs, tensors)
            labels = their_labels(content.task or {})
            theirs = their_config(family, model.config, model.head_specs, special_ids)
            write_json(temporary / "config.json", theirs | labels)
            write_tokenizer_files(
                tokenizer,
                temporary,
                has_segments=model.config.num_segments > 1,
                max_length=model.config.max_positions,
            )
        write_tensors(tensors, temporary / WEIGHTS)
        if content.optimizer is not None:
            write_tensors(content.optimizer, temporary / OPTIMIZER)
        tokenizer.save(temporary / TOKENIZER)
        (temporary / RECIPE).write_text(content.recipe_toml, "utf-8")
        (temporary / CARD).write_text(content.card, "utf-8")
        write_json(temporary / MANIFEST, _manifest(temporary, model, family, content))


def write_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """A safetensors file that may be read by whoever may read others of this process (theirs: by its owner alone)."""
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file(dict(tensors), path, metadata={"format": "pt"})
    except SafetensorError as error:  # of a full disk, say: the library hides the system's error in its own words
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error
    path.chmod(mode)


def load_checkpoint(path: Path) -> Checkpoint:
    """Open a checkpoint after comparing every file with its hash; a damaged or missing file is named."""
    manifest = _read_manifest(path)
    for name, expected in manifest["files"].items():
        file = path / name
        if name == CARD:  # which checkpoints of before counted among them
            continue
        if not file.is_file():
            raise DataError(f"{file} is missing: the checkpoint is not whole")
        if hash_file(file) != expected:
            raise DataError(f"{file} is damaged: its SHA-256 is not what {MANIFEST} says")
    return Checkpoint(
        path=path,
        config=build_options(ModelConfig, manifest["model"], where=f"{path / MANIFEST}: model"),
        heads=tuple(build_options(HeadSpec, head, where=f"{path / MANIFEST}: heads") for head in manifest["heads"]),
        layout=manifest["layout"],
        step=manifest["step"],
        state=manifest["state"],
        begun_with=manifest.get("begun_with", {}),  # checkpoints of before have none
        task=manifest.get("task"),
    )


def optimizer_tensors(
    model: Model, optimizer: Optimizer, gather: Callable[[Tensor], Tensor] = _on_cpu
) -> dict[str, Tensor]:
    """The optimizer's state as named tensors, `<parameter>/<moment>`; `gather` makes shards whole."""
    return {
        f"{name}/{key}": gather(torch.as_tensor(value))
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(
    model: Model,
    optimizer: Optimizer,
    tensors: Mapping[str, Tensor],
    cut: Callable[[Tensor, Tensor], Tensor] = lambda tensor, _: tensor,
) -> None:
    """Give an optimizer the state that `optimizer_tensors` named; `cut` makes shards like a parameter's."""
    states: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        parameter_name, _, key = name.rpartition("/")
        states.setdefault(parameter_name, {})[key] = tensor
    numbers = {id(p): n for n, p in enumerate(p for group in optimizer.param_groups for p in group["params"])}
    by_number = {
        numbers[id(parameter)]: {key: cut(tensor, parameter) for key, tensor in states.pop(name).items()}
        for name, parameter in model.named_parameters()
        if name in states
    }
    if states:
        raise DataError(f"the optimizer's state is of another model: it speaks of {', '.join(sorted(states))}")
    optimizer.load_state_dict({"state": by_number, "param_groups": optimizer.state_dict()["param_groups"]})


def _manifest(folder: Path, model: Model, family: Family | None, content: CheckpointContent) -> dict[str, Any]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / CARD)  # people write in it
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "litebert": version("litebert"),
        "model": asdict(model.config),
        "heads": [asdict(spec) for spec in model.head_specs],
        "layout": family,
        "step": content.step,
        "state": dict(content.state),
        "begun_with": dict(content.begun_with),
        **({} if content.task is None else {"task": dict(content.task)}),
        "files": {path.relative_to(folder).as_posix(): hash_file(path) for path in files},
    }


def _read_manifest(path: Path) -> dict[str, Any]:
    if not (path / MANIFEST).is_file():
        raise DataError(f"{path} is not a litebert checkpoint: it has no {MANIFEST}")
    manifest = read_json(path / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise DataError(f"{path / MANIFEST} is not of format {FORMAT}; is the path right?")
    if manifest.get("version") != FORMAT_VERSION:  # whole, for all that we know: nobody may put it aside as damaged
        raise ConfigError(
            f"{path / MANIFEST} is of version {manifest.get('version')}, and this litebert reads {FORMAT_VERSION}; "
            "is a newer litebert needed?"
        )
    check_keys(path / MANIFEST, manifest, _KEYS)
    return manifest


def _read_tensors(file: Path) -> dict[str, Tensor]:
    try:
        tensors: dict[str, Tensor] = load_file(file)
    except (OSError, SafetensorError) as error:
        raise DataError(f"{file} cannot be read: {error}") from None
    return tensors


def list_checkpoints(folder: Path) -> Sequence[Path]:
    """The checkpoints of a run, the oldest first; somebody's copy under another name, step-00000100-good, is none."""
    return sorted(path for path in folder.glob("step-*") if _NAME.fullmatch(path.name) and path.is_dir())
