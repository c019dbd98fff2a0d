"""A checkpoint: one directory with weights, configuration, tokenizer and recipe. It is complete, or it does not exist.

litebert.json            the manifest: model, heads, step, the SHA-256 of every other file, and its own checksum
model.safetensors        the weights, under Hugging Face's names where its classes can express the model
config.json, tokenizer.json, ...   with these, `transformers` loads the directory as it is
tokenizer/               our tokenizer
recipe.toml              the resolved recipe
optimizer.safetensors    moments by parameter, if training can be resumed from it
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
from typing import Any, Literal, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.optim import Optimizer

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import atomic_directory, hash_file, write_json
from litebert.core.options import build_options
from litebert.core.sealed import build_record, hash_files, read_sealed, stays_inside, write_sealed
from litebert.interop.layout import from_theirs, to_theirs
from litebert.interop.names import Family, find_family, their_config, their_labels
from litebert.interop.tokenizer_files import write_tokenizer_files
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.model import Model, build_model
from litebert.model.pooling import EmbeddingSpec
from litebert.text.tokenizer import Tokenizer, load_tokenizer

FORMAT = "litebert-checkpoint"
FORMAT_VERSION = 1
MANIFEST = "litebert.json"
WEIGHTS = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"
RECIPE = "recipe.toml"
CARD = "README.md"
TOKENIZER = "tokenizer"
_NAME = re.compile(r"step-\d{8,}")  # as in training/kept_checkpoints.py


@dataclass(frozen=True)
class CheckpointContent:
    """The content of a checkpoint in addition to the model and its tokenizer."""

    step: int
    recipe_toml: str = ""
    card: str = ""
    state: Mapping[str, float | int] = field(default_factory=dict)  # counters of the run, such as tokens seen
    begun_with: Mapping[str, Any] = field(default_factory=dict)  # settings that must be the same to resume the run
    optimizer: Mapping[str, Tensor] | None = None
    licences: Mapping[str, bytes] = field(default_factory=dict)  # files that must be copied with the weights
    task: Mapping[str, Any] | None = None  # the task of a fine-tuned model, as tasks/catalog.py reads it
    embedding: EmbeddingSpec | None = None  # how sequence vectors are made, for a model trained to make them
    at_chance: Sequence[str] = ()  # heads that learned nothing


class Foreign(Protocol):
    """The files of a foreign checkpoint (interop/source.py)."""

    @property
    def tokenizer_path(self) -> Path | None: ...

    @property
    def weight_files(self) -> tuple[Path, ...]: ...

    def load_weights(self) -> dict[str, Tensor]: ...

    def load_optimizer(self) -> dict[str, Tensor]: ...

    def load_tokenizer(self) -> Tokenizer: ...


@dataclass(frozen=True)
class Checkpoint:
    """An opened checkpoint with verified files."""

    path: Path
    config: ModelConfig
    heads: tuple[HeadSpec, ...]
    layout: Family | None  # the library whose tensor names the weights use; None: ours
    step: int
    state: dict[str, float | int]
    begun_with: dict[str, Any] = field(default_factory=dict)
    task: dict[str, Any] | None = None  # the task of a fine-tuned model; tasks/catalog.py reads it
    foreign: Foreign | None = None  # None: the files are ours
    embedding: EmbeddingSpec | None = None  # how sequence vectors are made; None: not stated
    at_chance: tuple[str, ...] = ()  # heads that learned nothing in pre-training, if that was measured

    @property
    def embedding_spec(self) -> EmbeddingSpec:
        """How sequence vectors are made: as the checkpoint states, else our defaults."""
        return self.embedding or EmbeddingSpec()

    def find_max_length(self, head: str) -> int:
        """The maximum number of tokens for a head, including special ones; longer texts are truncated."""
        longest = self.config.max_positions
        if head == "mlm":  # masks are filled in any text that fits the model
            return longest
        stated = self.embedding_spec.max_length if head == "embedding" else None
        return min(stated or (self.task or {}).get("max_length", longest), longest)

    def load_model(self, config: ModelConfig | None = None) -> Model:
        """The model with its weights; `config` may differ in options without weights (dropout, depth if shared)."""
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
                "no-optimizer",
                f"{self.path} has no {OPTIMIZER}: training can start from its weights but not resume",
            )
        return _read_tensors(self.path / OPTIMIZER)

    def load_tokenizer(self) -> Tokenizer:
        if self.foreign is not None:
            return self.foreign.load_tokenizer()
        if not (self.path / TOKENIZER).is_dir():
            raise DataError(
                "no-tokenizer", f"{self.path} has no tokenizer: its input is token ids; load it with tokenizer=None"
            )
        return load_tokenizer(self.path / TOKENIZER)

    @property
    def tokenizer_path(self) -> Path | None:
        """The path of its tokenizer; None if there is none, as with some foreign weights."""
        return self.path / TOKENIZER if self.foreign is None else self.foreign.tokenizer_path

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the files with the weights, independent of their paths."""
        files = (self.path / WEIGHTS,) if self.foreign is None else self.foreign.weight_files
        hashes = [hash_file(file) for file in files]
        return hashes[0] if len(hashes) == 1 else hashlib.sha256(" ".join(hashes).encode()).hexdigest()

    @property
    def recipe_toml(self) -> str:
        return "" if self.foreign is not None else (self.path / RECIPE).read_text("utf-8")


def _on_cpu(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous()


def model_tensors(model: Model, gather: Callable[[Tensor], Tensor] = _on_cpu) -> dict[str, Tensor]:
    """The weights under our names; `gather` makes full tensors from shards."""
    return {name: gather(tensor) for name, tensor in model.state_dict().items()}


def save_checkpoint(
    path: Path,
    model: Model,
    tokenizer: Tokenizer | None,
    content: CheckpointContent,
    weights: Mapping[str, Tensor] | None = None,
    *,
    replaces: bool = False,
) -> None:
    """Write a checkpoint, which appears at `path` when complete and synced; `replaces` allows overwriting one.

    `weights` are the model's, if they had to be gathered from shards. Without a tokenizer, the input is token ids.
    """
    family = find_family(model.config, model.head_specs, pad_id=0 if tokenizer is None else tokenizer.pad_id)
    tensors = model_tensors(model) if weights is None else dict(weights)
    longest = model.config.max_positions
    with atomic_directory(path, replaces=replaces) as temporary:
        if family is not None:
            tensors = to_theirs(family, model.config, model.head_specs, tensors)
            labels = their_labels(content.task or {})
            theirs = their_config(family, model.config, model.head_specs, list_special_ids(tokenizer))
            write_json(temporary / "config.json", theirs | labels)
        if family is not None and tokenizer is not None:
            write_tokenizer_files(
                tokenizer,
                temporary,
                has_segments=model.config.num_segments > 1,
                max_length=min((content.task or {}).get("max_length", longest), longest),
            )
        write_tensors(tensors, temporary / WEIGHTS)
        if content.optimizer is not None:
            write_tensors(content.optimizer, temporary / OPTIMIZER)
        if tokenizer is not None:
            tokenizer.save(temporary / TOKENIZER)
        for name, text in content.licences.items():
            (temporary / name).write_bytes(text)
        (temporary / RECIPE).write_text(content.recipe_toml, "utf-8")
        (temporary / CARD).write_text(content.card, "utf-8")
        write_sealed(temporary / MANIFEST, _manifest(temporary, model, family, content))


def list_special_ids(tokenizer: Tokenizer | None) -> dict[str, int | None]:
    """The special token ids for a config.json."""
    if tokenizer is None:
        return {"pad": 0, "cls": None, "sep": None}
    return {"pad": tokenizer.pad_id, "cls": tokenizer.cls_id, "sep": tokenizer.sep_id}


def write_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write a safetensors file with the usual permissions (the library would make it readable by its owner only)."""
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file(dict(tensors), path, metadata={"format": "pt"})
    except SafetensorError as error:  # on a full disk, the library puts the system's error into its message only
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error
    path.chmod(mode)


def load_checkpoint(path: Path) -> Checkpoint:
    """Open a checkpoint after comparing every file with its hash; the error names a corrupt or missing file."""
    manifest = read_manifest(path)
    for name, expected in manifest.files.items():
        file = path / name
        if name == CARD:  # older checkpoints list it, although users edit it
            continue
        if not stays_inside(name):
            raise DataError(
                "corrupt-file", f"{path / MANIFEST} is corrupt: it lists a file outside of it, {name[:80]!r}"
            )
        if not file.is_file():
            raise DataError("missing-file", f"{file} is missing: the checkpoint is incomplete")
        if hash_file(file) != expected:
            raise DataError("corrupt-file", f"{file} is corrupt: its SHA-256 differs from the one in {MANIFEST}")
    return Checkpoint(
        path=path,
        config=build_options(ModelConfig, manifest.model, where=f"{path / MANIFEST}: model"),
        heads=tuple(build_options(HeadSpec, head, where=f"{path / MANIFEST}: heads") for head in manifest.heads),
        layout=manifest.layout,
        step=manifest.step,
        state=manifest.state,
        begun_with=manifest.begun_with,
        task=manifest.task,
        embedding=read_embedding(manifest.embedding, where=f"{path / MANIFEST}: embedding"),
        at_chance=tuple(manifest.at_chance),
    )


def read_embedding(facts: dict[str, Any] | None, *, where: str) -> EmbeddingSpec | None:
    """The embedding options in one of our manifests; None if it has none."""
    return None if facts is None else build_options(EmbeddingSpec, facts, where=where)


def drop_optimizer(path: Path) -> None:
    """Delete a checkpoint's optimizer state, several times the size of its weights; a crash leaves it valid."""
    manifest = read_sealed(path / MANIFEST)
    if manifest["files"].pop(OPTIMIZER, None):
        write_sealed(path / MANIFEST, manifest)
    (path / OPTIMIZER).unlink(missing_ok=True)


def optimizer_tensors(
    model: Model, optimizer: Optimizer, gather: Callable[[Tensor], Tensor] = _on_cpu
) -> dict[str, Tensor]:
    """The optimizer's state as named tensors, `<parameter>/<moment>`; `gather` makes full tensors from shards."""
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
    """Load the state from `optimizer_tensors` into an optimizer; `cut` shards a tensor like its parameter."""
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
        raise DataError(
            "optimizer-mismatch",
            f"the optimizer state belongs to another model: this one has no {', '.join(sorted(states))}",
        )
    optimizer.load_state_dict({"state": by_number, "param_groups": optimizer.state_dict()["param_groups"]})


def _manifest(folder: Path, model: Model, family: Family | None, content: CheckpointContent) -> dict[str, Any]:
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
        **({} if content.embedding is None else {"embedding": asdict(content.embedding)}),
        **({"at_chance": list(content.at_chance)} if content.at_chance else {}),
        "files": hash_files(folder, without=[CARD]),  # users edit it
    }


@dataclass(frozen=True)
class Manifest:
    """The content of litebert.json."""

    format: str
    version: int
    model: dict[str, Any]
    heads: list[dict[str, Any]]
    layout: Family | None
    step: int
    state: dict[str, int | float]
    files: dict[str, str]
    litebert: str = ""
    begun_with: dict[str, Any] = field(default_factory=dict)  # missing in older checkpoints
    task: dict[str, Any] | None = None
    embedding: dict[str, Any] | None = None
    at_chance: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _BegunWith:
    """The fields that a manifest's `begun_with` may have; earlier versions wrote fewer."""

    dtype: Literal["", "fp32", "bf16", "fp16"] = ""
    corpora: dict[str, str] = field(default_factory=dict)
    weights: str = ""
    metrics: dict[str, int | str] = field(default_factory=dict)


def read_manifest(path: Path) -> Manifest:
    """The manifest of a checkpoint, without reading its other files."""
    if not (path / MANIFEST).is_file():
        raise DataError("not-a-checkpoint", f"{path} is not a litebert checkpoint: it has no {MANIFEST}")
    manifest = read_sealed(path / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise DataError("not-a-checkpoint", f"{path / MANIFEST} does not have format {FORMAT}; is this the right path?")
    if manifest.get("version") != FORMAT_VERSION:  # a ConfigError, because the checkpoint is not corrupt
        raise ConfigError(
            "newer-version",
            f"{path / MANIFEST} has version {manifest.get('version')}, but this litebert reads version "
            f"{FORMAT_VERSION}; upgrade litebert",
        )
    record = build_record(Manifest, manifest, where=str(path / MANIFEST))
    build_record(_BegunWith, record.begun_with, where=f"{path / MANIFEST}: begun_with")
    return record


def _read_tensors(file: Path) -> dict[str, Tensor]:
    try:
        tensors: dict[str, Tensor] = load_file(file)
    except (OSError, SafetensorError) as error:
        raise DataError("corrupt-file", f"{file} cannot be read: {error}") from None
    return tensors


def list_checkpoints(folder: Path) -> Sequence[Path]:
    """The checkpoints of a run, the oldest first; a copy with another name (step-00000100-good) is not one of them."""
    return sorted(path for path in folder.glob("step-*") if _NAME.fullmatch(path.name) and path.is_dir())
