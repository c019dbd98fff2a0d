"""Open any checkpoint from a path or name: ours, Hugging Face's, Google's, or a name on the hub."""

import os
from dataclasses import replace
from pathlib import Path

from litebert import checkpoint
from litebert.checkpoint import MANIFEST, WEIGHTS, Checkpoint, list_checkpoints
from litebert.core.errors import DataError
from litebert.core.files import check_keys
from litebert.core.sealed import read_sealed, stays_inside
from litebert.interop.foreign_task import read_foreign_task
from litebert.interop.google import find_bundle, open_google
from litebert.interop.hub import fetch_from_hub, is_hub_name
from litebert.interop.huggingface import CONFIG_FILE, open_huggingface
from litebert.interop.sentence_folder import SentenceFolder, read_sentence_folder
from litebert.interop.source import LoadOptions, Source
from litebert.interop.tensor_files import PICKLE_SUFFIX, SAFE_SUFFIX, has_tensor_files

TRIALS_FILE = "trials.json"  # the summary of several fine-tuning runs, in the folder that holds theirs
EXPORT_FILE = "export.json"  # what `litebert export` writes; infer/exported.py reads it


def load_checkpoint(source: str | os.PathLike[str], load_options: LoadOptions = LoadOptions()) -> Checkpoint:
    """Open a checkpoint and verify it: ours, a Hugging Face folder or hub name, or a TensorFlow checkpoint."""
    opened = open_source(source, load_options)
    if isinstance(opened, Checkpoint):
        return opened
    opened.check()
    return Checkpoint(
        path=opened.path,
        config=opened.config,
        heads=opened.heads,
        layout=opened.family,
        step=opened.step,
        state={},
        task=read_foreign_task(opened),
        foreign=opened,
        embedding=opened.embedding,
    )


def open_source(source: str | os.PathLike[str], load_options: LoadOptions = LoadOptions()) -> Checkpoint | Source:
    """Open a checkpoint of ours or from elsewhere; the latter is not yet checked for completeness."""
    source = os.fspath(source)  # also accepts the results of `litebert.pretrain` and the like
    path = Path(source)
    if path.exists() or find_bundle(path):
        return _open_path(path, load_options)
    if not is_hub_name(str(source)):
        raise DataError(
            "missing-file", f"{source}: no such folder; expected a model, or a hub name such as albert/albert-base-v2"
        )
    return _open_path(fetch_from_hub(str(source)), load_options)


def _open_path(path: Path, load_options: LoadOptions) -> Checkpoint | Source:
    ours = _find_ours(path)
    if ours is not None:
        return checkpoint.load_checkpoint(ours)
    if path.suffix in (SAFE_SUFFIX, PICKLE_SUFFIX) and path.is_file():
        return open_huggingface(path.parent, load_options, path.name)
    if (path / EXPORT_FILE).is_file():
        raise DataError(
            "export-has-no-weights",
            f"{path} is an export, which cannot be loaded in torch; use the checkpoint it was made from",
        )
    sentences = read_sentence_folder(path) if path.is_dir() else None
    if sentences is not None:
        return _open_sentences(path, sentences, load_options)
    if path.is_dir() and ((path / CONFIG_FILE).is_file() or has_tensor_files(path)):
        return open_huggingface(path, load_options)
    bundle = find_bundle(path)
    if bundle is not None:
        return open_google(bundle, load_options)
    if (path / "checkpoints").is_dir():
        raise DataError("no-checkpoint", f"{path} is a run that has no complete checkpoint yet")
    if (path / "predictions").is_dir() and (path / "report.json").is_file():
        raise DataError(
            "ensemble-has-no-weights",
            f"{path} is an ensemble, which has no weights of its own; use one of its members",
        )
    raise DataError(
        "not-a-model",
        f"{path} is not a model: it has no {MANIFEST} (litebert), no {CONFIG_FILE} with weights (Hugging Face) and no "
        "*.index (TensorFlow)",
    )


def _open_sentences(path: Path, folder: SentenceFolder, load_options: LoadOptions) -> Source:
    """The encoder of a sentence-transformers folder, with how it makes embeddings."""
    opened = open_huggingface(folder.encoder, load_options)
    if folder.lowers_case and opened.load_tokenizer().normalize("A") != "a":
        raise DataError(
            "unsupported-sentence-module",
            f"{path} lowercases texts (do_lower_case) before a cased tokenizer, which is not supported: "
            "lowercase your texts and set do_lower_case to false",
        )
    return replace(opened, path=path, embedding=folder.embedding, notes=(*opened.notes, *folder.notes))


def _find_ours(path: Path) -> Path | None:
    """Our checkpoint at a path: the folder itself, or the final model of a run, else its last checkpoint.

    A folder of several runs (seeds, a grid) gives the run with the best dev score.
    """
    if path.name == WEIGHTS and (path.parent / MANIFEST).is_file():
        return path.parent
    in_run = [path / "model", *reversed(list_checkpoints(path / "checkpoints"))]
    if (path / TRIALS_FILE).is_file():
        summary = read_sealed(path / TRIALS_FILE, fix="run the same fine-tuning command again")
        check_keys(path / TRIALS_FILE, summary, {"best_run": str})
        if not stays_inside(summary["best_run"]):
            raise DataError("corrupt-file", f"{path / TRIALS_FILE} is corrupt: its best run is outside of its folder")
        in_run.append(path / summary["best_run"] / "model")
    return next((folder for folder in (path, *in_run) if (folder / MANIFEST).is_file()), None)
