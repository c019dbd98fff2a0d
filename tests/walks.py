"""What a reader has to follow: functions entered, files they are in, and changes of file, in the order of first calls.

    python -m tests.walks step           a step of pre-training, from one update to the next
    python -m tests.walks batch          opening a corpus, and a packed step of it in micro-batches
    python -m tests.walks classify       the second /v1/classify request of a server
    python -m tests.walks fill_mask      the second fill_mask of a model
    python -m tests.walks finetune       the second fine-tuning of a process, of four steps
    python -m tests.walks size           lines, files and functions of the package

`--show` lists the functions. Compiled loops run as Python, so that they count too.
"""

import ast
import os
import statistics
import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"

import litebert
from litebert.batches.options import BatchOptions
from litebert.batches.stream import open_stream
from litebert.corpus.build import BuildOptions, build_corpus
from litebert.corpus.documents import ReadOptions
from litebert.pretraining.pretrain import pretrain
from litebert.pretraining.recipe import load_recipe
from litebert.text.tokenizer import load_tokenizer
from litebert.training import loop
from tests.conftest import invent_documents
from tests.small_tasks import write_rows
from tests.task_runs import QUICK, ROWS, make_start

PACKAGE = Path(litebert.__file__).parent
ANONYMOUS = ("<module>", "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>", "<lambda>")


class Recorder:
    """Notes the calls of our functions, in every thread, while it is switched on."""

    def __init__(self) -> None:
        self.is_on = False
        self.calls: dict[tuple[str, str], None] = {}
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_qualname
        if self.is_on and event == "call" and file.startswith(str(PACKAGE)) and not name.endswith(ANONYMOUS):
            self.calls[str(Path(file).relative_to(PACKAGE)), name] = None

    def count(self, work: Callable[[], object]) -> list[tuple[str, str]]:
        self.is_on = True
        work()
        self.is_on = False
        return list(self.calls)

    def count_step(self, train: Callable[[], object]) -> list[tuple[str, str]]:
        """The calls of a run from its second update to its third."""
        update, updates = loop.update, count(1)

        def switch_and_update(*arguments: Any) -> Any:
            self.is_on = next(updates) == 2
            return update(*arguments)

        loop.update = switch_and_update
        train()
        return list(self.calls)


def prepare_pretraining(walk: str, folder: Path) -> Callable[[], object]:
    """A run of three steps of nano, or opening its corpus for packed rows."""
    tokenizer = load_tokenizer(make_start(folder) / "tokenizer")
    texts = ["\n".join(document) for document in invent_documents(100, seed=1)]
    options = BuildOptions(ReadOptions(), valid_share=0.1, is_quiet=True)
    build_corpus([], tokenizer, folder / "corpus", options, texts=texts)
    changes = [f"data.corpora={folder / 'corpus'}", "data.workers=0", f"model.vocab_size={tokenizer.vocab_size}"]
    recipe = load_recipe("nano", [*changes, "train.steps=3", "schedule.warmup_steps=1"])
    if walk == "step":
        return lambda: pretrain(recipe, folder / "run")
    packed = replace(recipe.stream, batch=BatchOptions(tokens=500, is_packed=True))
    return lambda: open_stream(recipe.data, packed)[0].micro_batches(0, micro_rows=2)


def prepare(walk: str, folder: Path) -> Callable[[], object]:
    """What to count, after it was done once."""
    start, data = make_start(folder), write_rows(folder / "data", ROWS)
    if walk == "fill_mask":
        model = litebert.load(start)
        return lambda: model.fill_mask("the old [MASK].")
    changes = {**QUICK, "train.steps": 4, "train.evaluations": 2}
    names = iter("abc")
    tune = lambda: litebert.finetune(start, "classification", data, changes, out=folder / next(names))  # noqa: E731
    if walk == "finetune":
        return tune
    from fastapi.testclient import TestClient

    from litebert.server.app import build_app
    from litebert.server.options import ServeOptions
    from litebert.server.server import load_models

    client = TestClient(build_app(load_models([str(tune().folder)]), ServeOptions())).__enter__()
    return lambda: client.post("/v1/classify", json={"inputs": ["the old cat"]}).raise_for_status()


def show_size() -> None:
    texts = [file.read_text("utf-8") for file in PACKAGE.rglob("*.py")]
    nodes = [node for text in texts for node in ast.walk(ast.parse(text))]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    median = statistics.median((one.end_lineno or 0) - one.lineno + 1 for one in functions)
    num_lines = sum(len(text.splitlines()) for text in texts)
    print(f"{num_lines:,} lines, {len(texts)} files, {len(functions):,} functions of {median:g} lines (median)")


def main(walk: str, *, is_shown: bool) -> None:
    recorder = Recorder()
    with (
        TemporaryDirectory() as folder,
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        if walk in ("step", "batch"):
            work = prepare_pretraining(walk, Path(folder))
            way = recorder.count_step(work) if walk == "step" else recorder.count(work)
        else:
            work = prepare(walk, Path(folder))
            work()
            way = recorder.count(work)
    for file, name in way if is_shown else ():
        print(f"  {file:40} {name}")
    changes = sum(one[0] != other[0] for one, other in pairwise(way))
    print(f"{walk}: {len(way)} functions in {len({file for file, _ in way})} files, {changes} changes of file")


if __name__ == "__main__":
    if sys.argv[1] == "size":
        show_size()
    else:
        main(sys.argv[1], is_shown="--show" in sys.argv)
        os._exit(0)  # the server's threads
