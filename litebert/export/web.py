"""A checkpoint becomes a static folder: a page that answers in the visitor's browser, and asks no other server.

index.html, app.js, model.js, tokenizer.js, style.css    the page, the same for all models
model.onnx, vocabulary.json, facts.json                  the model in eight bits, and what has to be known to ask it
runtime/                                                 onnxruntime-web
"""

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from litebert.checkpoint import Checkpoint
from litebert.core.errors import ConfigError
from litebert.core.files import atomic_directory, write_json
from litebert.data.groups import build_form
from litebert.export.int8 import Accuracy, Int8Options, settle_int8
from litebert.export.onnx_folder import check_is_new, choose_head, has_exits
from litebert.export.web_vocabulary import describe_vocabulary
from litebert.infer.fill_mask import MASK
from litebert.infer.naming import name_model, tell_language
from litebert.model.reading import ReadHead
from litebert.tasks.catalog import restore_task
from litebert.tasks.classification import Classification, MultiLabel, Regression

RUNTIME_VERSION = "1.30.0"
RUNTIME_FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
# of a model: more is too much to wait for on a page
MAX_BYTES = 16_000_000
EXAMPLES = {"en": f"The list is {MASK} in place.", "zh": f"今天天气很{MASK}。"}
PAGE_FILES = ("index.html", "app.js", "model.js", "tokenizer.js", "style.css")


@dataclass(frozen=True)
class WebExport:
    """What was written."""

    path: Path
    head: ReadHead
    num_bytes: int  # of the model
    accuracy: Accuracy | None


def export_web(
    checkpoint: Checkpoint,
    out: Path,
    options: Int8Options = Int8Options(),
    *,
    head: str = "",
    runtime: Path | None = None,
) -> WebExport:
    """Write the folder; `runtime` is where onnxruntime-web lies, without it npm fetches it."""
    check_is_new(out)
    chosen = choose_head(checkpoint, head)
    facts = describe_model(checkpoint, chosen)
    vocabulary = _describe_tokenizer(checkpoint)
    graph = settle_int8(checkpoint, chosen, options)
    with atomic_directory(out) as temporary:
        for name in PAGE_FILES:
            (temporary / name).write_bytes(files("litebert.export").joinpath("page", name).read_bytes())
        (temporary / "model.onnx").write_bytes(graph.content)
        write_json(temporary / "vocabulary.json", vocabulary)
        write_json(temporary / "facts.json", facts)
        _copy_runtime(runtime, temporary / "runtime")
    return WebExport(out, chosen, len(graph.content), graph.accuracy)


def describe_model(checkpoint: Checkpoint, head: ReadHead) -> dict[str, Any]:
    """What goes into facts.json; a head that the page has no view for is refused."""
    facts: dict[str, Any] = {
        "head": head,
        "title": name_model(checkpoint.path),
        "has_exits": has_exits(checkpoint, head),
        "num_texts": {"mlm": 1, "sentence": 2}.get(head, 0),
        "example": EXAMPLES[tell_language(checkpoint.load_tokenizer())] if head == "mlm" else "",
    }
    if head in ("mlm", "sentence"):
        return facts
    task = None if checkpoint.task is None else restore_task(checkpoint.task, where=str(checkpoint.path))
    if head != "classification" or not isinstance(task, Classification | MultiLabel | Regression):
        raise ConfigError(
            f"the page fills masks, classifies and orders texts, and has no view for the head '{head}': export it as "
            "onnx"
        )
    facts["num_texts"] = task.num_texts
    if isinstance(task, Regression):
        keys = ("low", "high", "center", "scale")
        return facts | {"kind": "regression", **{key: getattr(task, key) for key in keys}}
    kind = "multi-label" if isinstance(task, MultiLabel) else "classification"
    return facts | {"kind": kind, "labels": list(task.labels)}


def _describe_tokenizer(checkpoint: Checkpoint) -> dict[str, Any]:
    config, tokenizer = checkpoint.config, checkpoint.load_tokenizer()
    length = min((checkpoint.task or {}).get("max_length", config.max_positions), config.max_positions)
    form = build_form(tokenizer, max_length=length, num_segments=config.num_segments)
    return describe_vocabulary(tokenizer, form)


def _copy_runtime(source: Path | None, target: Path) -> None:
    target.mkdir()
    if source is not None:
        _copy_files(source, target)
        return
    with tempfile.TemporaryDirectory() as folder:
        _copy_files(fetch_runtime(Path(folder)), target)


def fetch_runtime(folder: Path) -> Path:
    """onnxruntime-web by npm, and where it lies."""
    npm = shutil.which("npm")
    if npm is None:
        raise ConfigError("onnxruntime-web is fetched by npm, which is not here: install npm, or give --runtime FOLDER")
    # no scripts: nothing of a package is run, and one of them would download more
    words = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder)]
    done = subprocess.run([*words, f"onnxruntime-web@{RUNTIME_VERSION}"], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ConfigError(f"npm could not fetch onnxruntime-web ({reason}); give its folder with --runtime")
    return folder / "node_modules" / "onnxruntime-web"


def _copy_files(source: Path, target: Path) -> None:
    folder = source / "dist" if (source / "dist").is_dir() else source
    for name in RUNTIME_FILES:
        if not (folder / name).is_file():
            raise ConfigError(f"--runtime {source}: it has no {name}; is it the folder of onnxruntime-web?")
        shutil.copyfile(folder / name, target / name)
