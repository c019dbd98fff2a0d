"""An export: a folder with one graph, its tokenizer, and what has to be known to ask it.

model.onnx                     the graph, which plain onnxruntime runs
tokenizer.json, ...            what `tokenizers` and `transformers` read
tokenizer/                     our tokenizer
export.json                    head, shape, task, precision, accuracy, and the SHA-256 of every other file
"""

from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from torch import Tensor

from litebert.checkpoint import TOKENIZER, Checkpoint
from litebert.core.errors import DataError
from litebert.core.files import check_keys, hash_file, read_json, write_json
from litebert.core.options import build_options
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.reading import ReadHead
from litebert.tasks.catalog import restore_task
from litebert.text.tokenizer import Tokenizer, load_tokenizer

EXPORT_FILE = "export.json"
GRAPH_FILE = "model.onnx"
FORMAT = "litebert-export"
FORMAT_VERSION = 1
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
    """The files of an export, in the place of a checkpoint's: they answer, and have no weights to train."""

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
        raise DataError(f"{self.path} is an export: it answers, but has no weights for torch; take its checkpoint")


@dataclass(frozen=True)
class Export:
    """An opened export whose files were found whole."""

    checkpoint: Checkpoint  # its facts; the files are the export's
    head: ReadHead
    has_exits: bool  # whether the graph may answer before its last layer
    is_int8: bool

    @property
    def graph_file(self) -> Path:
        return self.checkpoint.path / GRAPH_FILE


def is_export(path: Path) -> bool:
    return (path / EXPORT_FILE).is_file()


def open_export(path: Path) -> Export:
    """Open an export after comparing every file with its hash."""
    facts = read_json(path / EXPORT_FILE)
    if facts.get("format") != FORMAT or facts.get("version") != FORMAT_VERSION:
        raise DataError(f"{path / EXPORT_FILE} is not of format {FORMAT} {FORMAT_VERSION}; is a newer litebert needed?")
    check_keys(path / EXPORT_FILE, facts, _KEYS)
    for name, expected in facts["files"].items():
        if not (path / name).is_file() or hash_file(path / name) != expected:
            raise DataError(f"{path / name} is missing or damaged: its SHA-256 is not what {EXPORT_FILE} says")
    checkpoint = Checkpoint(
        path=path,
        config=build_options(ModelConfig, facts["model"], where=f"{path / EXPORT_FILE}: model"),
        heads=tuple(build_options(HeadSpec, head, where=f"{path / EXPORT_FILE}: heads") for head in facts["heads"]),
        layout=None,
        step=facts["step"],
        state={},
        task=facts["task"],
        foreign=ExportFiles(path),
    )
    return Export(checkpoint, facts["head"], facts["exits"], facts["precision"] == "int8")


def write_facts(folder: Path, checkpoint: Checkpoint, head: ReadHead, more: dict[str, Any]) -> None:
    """Write export.json, the last file of an export: it has the hashes of all others."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    facts = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "litebert": version("litebert"),
        "head": head,
        "model": asdict(checkpoint.config),
        "heads": [asdict(spec) for spec in checkpoint.heads if spec.kind == head],
        "step": checkpoint.step,
        # an embedding of a classifier answers no task
        "task": checkpoint.task if _is_of_task(checkpoint, head) else None,
        **more,
        "files": {path.relative_to(folder).as_posix(): hash_file(path) for path in files},
    }
    write_json(folder / EXPORT_FILE, facts)


def _is_of_task(checkpoint: Checkpoint, head: ReadHead) -> bool:
    """Whether a head is the one that the model was fine-tuned with."""
    if checkpoint.task is None:
        return False
    return any(spec.kind == head for spec in restore_task(checkpoint.task, where=str(checkpoint.path)).heads)
