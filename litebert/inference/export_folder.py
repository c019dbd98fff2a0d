"""An export: a folder with one graph, its tokenizer, and the facts needed to run it.

model.onnx                     the graph, which plain onnxruntime runs
tokenizer.json, ...            for `tokenizers` and `transformers`; truncates at the model's length
config.json                    labels, length and pooling, for running the graph without litebert
tokenizer/                     our tokenizer
export.json                    head, shape, task, precision, accuracy, and the SHA-256 of every other file
"""

from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from torch import Tensor

from litebert.checkpoint import TOKENIZER, Checkpoint, read_embedding
from litebert.core.errors import DataError
from litebert.core.files import check_keys
from litebert.core.options import build_options
from litebert.core.sealed import find_changed, hash_files, read_sealed, write_sealed
from litebert.interop.opening import EXPORT_FILE
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.engine import HeadName
from litebert.tasks.catalog import find_head, restore_task
from litebert.text.tokenizer import Tokenizer, load_tokenizer

GRAPH_FILE = "model.onnx"
FORMAT = "litebert-export"
FORMAT_VERSION = 1
PER_TOKEN = "per-token"  # "activations" of an int8 export: each token has its own quantization scale
_KEYS = {
    "files": dict,
    "model": dict,
    "heads": list,
    "head": str,
    "step": int,
    "task": object,
    "exits": bool,
    "precision": str,
}


@dataclass(frozen=True)
class ExportFiles:
    """The files of an export in place of a checkpoint's; they contain no torch weights."""

    path: Path

    @property
    def tokenizer_path(self) -> Path:
        return self.path / TOKENIZER

    @property
    def weight_files(self) -> tuple[Path, ...]:
        return (self.path / GRAPH_FILE,)

    def load_weights(self) -> dict[str, Tensor]:
        self._refuse()

    def load_optimizer(self) -> dict[str, Tensor]:
        self._refuse()

    def load_tokenizer(self) -> Tokenizer:
        return load_tokenizer(self.path / TOKENIZER)

    def _refuse(self) -> NoReturn:
        raise DataError(
            "export-has-no-weights",
            f"{self.path} is an export and has no torch weights: use the checkpoint it was exported from",
        )


@dataclass(frozen=True)
class Export:
    """An opened export whose files are verified."""

    checkpoint: Checkpoint  # its facts; its files are the export's
    head: HeadName
    has_exits: bool  # whether the graph supports early exit
    is_int8: bool
    mixes_texts: bool  # an old int8 export: one scale per batch, so that texts affect each other's outputs

    @property
    def graph_file(self) -> Path:
        return self.checkpoint.path / GRAPH_FILE


def is_export(path: Path) -> bool:
    return (path / EXPORT_FILE).is_file()


def open_export(path: Path) -> Export:
    """Open an export after comparing every file with its hash."""
    facts = read_sealed(path / EXPORT_FILE, fix="export the model again")
    if facts.get("format") != FORMAT or facts.get("version") != FORMAT_VERSION:
        raise DataError(
            "newer-version",
            f"{path / EXPORT_FILE} does not have format {FORMAT} {FORMAT_VERSION}; it may need a newer litebert",
        )
    check_keys(path / EXPORT_FILE, facts, _KEYS)
    if problems := find_changed(path, facts["files"]):
        raise DataError("corrupt-file", f"{problems[0]}; export the model again")
    checkpoint = Checkpoint(
        path=path,
        config=build_options(ModelConfig, facts["model"], where=f"{path / EXPORT_FILE}: model"),
        heads=tuple(build_options(HeadSpec, head, where=f"{path / EXPORT_FILE}: heads") for head in facts["heads"]),
        layout=None,
        step=facts["step"],
        state={},
        task=facts["task"],
        foreign=ExportFiles(path),
        embedding=read_embedding(facts.get("embedding"), where=f"{path / EXPORT_FILE}: embedding"),
    )
    is_int8 = facts["precision"] == "int8"
    mixes_texts = is_int8 and facts.get("activations") != PER_TOKEN
    return Export(checkpoint, facts["head"], facts["exits"], is_int8, mixes_texts)


def write_facts(folder: Path, checkpoint: Checkpoint, head: HeadName, more: dict[str, Any]) -> None:
    """Write export.json, the last file of an export: it has the hashes of all others."""
    facts = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "litebert": version("litebert"),
        "model": asdict(checkpoint.config),
        "heads": [asdict(spec) for spec in checkpoint.heads if spec.kind == head],
        "step": checkpoint.step,
        **describe_export(checkpoint, head),
        **more,
        "files": hash_files(folder),
    }
    write_sealed(folder / EXPORT_FILE, facts)


def describe_export(checkpoint: Checkpoint, head: HeadName) -> dict[str, Any]:
    """A head's task, or how it makes embeddings."""
    embedding = replace(checkpoint.embedding_spec, max_length=checkpoint.find_max_length(head))
    return {
        "head": head,
        # a classifier exported for embeddings has no task
        "task": checkpoint.task if _is_of_task(checkpoint, head) else None,
        "embedding": asdict(embedding) if head == "embedding" else None,
    }


def _is_of_task(checkpoint: Checkpoint, head: HeadName) -> bool:
    """Whether a head is the one that the model was fine-tuned with."""
    if checkpoint.task is None:
        return False
    return find_head(restore_task(checkpoint.task, where=str(checkpoint.path))) == head
