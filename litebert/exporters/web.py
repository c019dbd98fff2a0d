"""Web export: a static folder with a page that runs the model in the visitor's browser and contacts no other server.

index.html, *.js, *.css                    the page, the same for all models: the server's views, and the engine
model.onnx, vocabulary.json, facts.json    the model in int8, and the data needed to use it
runtime/                                   onnxruntime-web
"""

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from litebert.checkpoint import Checkpoint
from litebert.core.errors import ConfigError
from litebert.core.files import atomic_directory, write_json
from litebert.core.sealed import hash_files, write_sealed
from litebert.exporters.int8 import Accuracy, Int8Options, fit_int8
from litebert.exporters.onnx_folder import check_is_new, choose_head
from litebert.exporters.web_model import describe_for_page
from litebert.exporters.web_vocabulary import describe_vocabulary, describe_words
from litebert.model.engine import HeadName
from litebert.tasks.groups import build_form

RUNTIME_VERSION = "1.30.0"
RUNTIME_FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
# a larger model loads too slowly for a web page
MAX_BYTES = 16_000_000
PAGE_FOLDERS = (
    files("litebert") / "page",
    files("litebert.exporters") / "page",
)  # shared with the server's page, or only on this one


@dataclass(frozen=True)
class WebExport:
    """The files that were written."""

    path: Path
    head: HeadName
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
    """Write the folder. `runtime` is a folder with onnxruntime-web; without it, npm downloads the package."""
    check_is_new(out)
    chosen = choose_head(checkpoint, head)
    facts = describe_for_page(checkpoint, chosen)
    form = build_form(
        checkpoint.load_tokenizer(),
        max_length=facts["model"]["max_length"],
        num_segments=checkpoint.config.num_segments,
    )
    vocabulary = describe_vocabulary(checkpoint.load_tokenizer(), form)
    if chosen == "tokens":
        vocabulary |= describe_words()
    graph = fit_int8(checkpoint, chosen, options)
    with atomic_directory(out) as temporary:
        for folder in PAGE_FOLDERS:
            for file in folder.iterdir():
                (temporary / file.name).write_bytes(file.read_bytes())
        (temporary / "model.onnx").write_bytes(graph.content)
        write_json(temporary / "vocabulary.json", vocabulary)
        _copy_runtime(runtime, temporary / "runtime")
        write_sealed(
            temporary / "facts.json", {**facts, "files": hash_files(temporary)}
        )  # last, because it contains the hashes of all the others
    return WebExport(out, chosen, len(graph.content), graph.accuracy)


def _copy_runtime(source: Path | None, target: Path) -> None:
    target.mkdir()
    if source is not None:
        _copy_files(source, target)
        return
    with tempfile.TemporaryDirectory() as folder:
        _copy_files(fetch_runtime(Path(folder)), target)


def fetch_runtime(folder: Path) -> Path:
    """Download onnxruntime-web with npm; returns its folder."""
    npm = shutil.which("npm")
    if npm is None:
        raise ConfigError(
            "no-npm",
            "npm is needed to download onnxruntime-web, but is not installed: install npm, or pass a folder with "
            "onnxruntime-web",
            option="runtime",
        )
    # No install scripts: they are not needed, and one of them would download more.
    words = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder)]
    done = subprocess.run([*words, f"onnxruntime-web@{RUNTIME_VERSION}"], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ConfigError(
            "no-npm",
            f"npm could not download onnxruntime-web ({reason}): pass a folder that contains it",
            option="runtime",
        )
    return folder / "node_modules" / "onnxruntime-web"


def _copy_files(source: Path, target: Path) -> None:
    folder = source / "dist" if (source / "dist").is_dir() else source
    for name in RUNTIME_FILES:
        if not (folder / name).is_file():
            raise ConfigError(
                "no-file",
                f"{name} is missing in {source}: it must be the onnxruntime-web package folder",
                option="runtime",
            )
        shutil.copyfile(folder / name, target / name)
