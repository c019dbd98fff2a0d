"""The exported page in a real browser: Python's answers, errors that a person understands, no request to anyone else.

Needs a chromium, playwright, and onnxruntime-web, whose folder $LITEBERT_ORT_WEB names; nothing is installed here.
"""

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from small_tasks import invent_rows, write_rows

from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.core.errors import ConfigError
from litebert.core.runtime import RuntimeOptions, choose_runtime
from litebert.export.web import describe_model, export_web
from litebert.infer.engines.engine import ExportedGraph
from litebert.infer.engines.onnx_engine import OnnxEngine
from litebert.infer.predictor import Predictor
from litebert.model.config import ModelConfig
from litebert.model.model import build_model
from litebert.model.reading import ReadHead
from litebert.tasks.catalog import read_dataset, task_facts
from litebert.tasks.classification import Classification
from litebert.text.tokenizer import Tokenizer

NEAR = 0.02  # int8 differs a little between a processor and a browser


@pytest.fixture(scope="module")
def runtime() -> Path:
    folder = os.environ.get("LITEBERT_ORT_WEB")
    if not folder:
        pytest.skip("LITEBERT_ORT_WEB does not name a folder of onnxruntime-web")
    return Path(folder)


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Any]:
    servers: list[ThreadingHTTPServer] = []

    def start(folder: Path) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def in_python(checkpoint: Path, page: Path, head: ReadHead) -> Predictor:
    """A predictor that computes the page's own graph."""
    opened = load_checkpoint(checkpoint)
    graph = ExportedGraph(page / "model.onnx", head, opened.config.max_positions, is_loop=False)
    return Predictor(opened, choose_runtime(RuntimeOptions(device="cpu")), OnnxEngine(graph, 1))


def open_page(browser: Any, address: str, language: str = "en-GB") -> tuple[Any, list[str]]:
    page = browser.new_page(locale=language)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    page.wait_for_function("() => !document.getElementById('go').disabled", timeout=120_000)
    return page, requests


def read_bars(page: Any) -> list[tuple[str, float]]:
    rows = page.locator("#results li")
    return [
        (row.locator(".name").inner_text(), float(row.locator(".share").inner_text().rstrip(" %")) / 100)
        for row in rows.all()
    ]


@pytest.mark.slow
def test_masks_are_filled_as_in_python(
    browser: Any, serve: Any, runtime: Path, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    export_web(load_checkpoint(tiny_checkpoint), tmp_path / "page", head="mlm", runtime=runtime)
    page, requests = open_page(browser, serve(tmp_path / "page"))
    text = "the [MASK] sees a small dog"
    page.fill("#text", text)
    page.click("#go")
    page.wait_for_selector("#results li")
    (expected,) = in_python(tiny_checkpoint, tmp_path / "page", "mlm").fill_mask(text)
    found = read_bars(page)
    assert len(found) == 5
    shares = dict(found)
    for guess in expected[:2]:
        assert shares[guess.piece.removeprefix("##")] == pytest.approx(guess.probability, abs=NEAR)
    page.fill("#text", "nothing to guess")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#status.error")
    assert "Write [MASK] in the place of the word" in page.inner_text("#status")
    assert page.locator("#results li").count() == 0  # nothing is left of the answer before
    origin = requests[0]
    assert all(url.startswith((origin, "data:", "blob:")) for url in requests), requests
    assert any(url.endswith("model.onnx") for url in requests)


@pytest.mark.slow
def test_texts_and_pairs_are_classified_as_in_python(
    browser: Any, serve: Any, runtime: Path, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    task = replace(read_dataset("classification", write_rows(tmp_path / "data", invent_rows())).task, num_texts=0)
    config = ModelConfig(
        vocab_size=tiny_tokenizer.vocab_size, embedding_size=16, hidden_size=32, ffn_size=64, num_layers=3,
        num_heads=2, max_positions=64, initializer_range=0.3,
    )  # fmt: skip
    content = CheckpointContent(step=0, task=task_facts(task, max_length=32))
    save_checkpoint(tmp_path / "model", build_model(config, task.heads, seed=3), tiny_tokenizer, content)
    export_web(load_checkpoint(tmp_path / "model"), tmp_path / "page", runtime=runtime)
    page, _ = open_page(browser, serve(tmp_path / "page"), "zh-CN")
    assert page.inner_text("#go") == "分类"
    asked = in_python(tmp_path / "model", tmp_path / "page", "classification")
    for text in ("a cat near the old house", ("the dog sees", "a bird")):
        first, second = (text, "") if isinstance(text, str) else text
        page.fill("#text", first)
        page.fill("#second", second)
        page.click("#go")
        page.wait_for_function("() => document.querySelectorAll('#results li').length === 3")
        page.wait_for_function("() => /\\d/.test(document.getElementById('status').textContent)")
        (expected,) = asked.classify([text])
        assert dict(read_bars(page)) == pytest.approx(expected.probabilities, abs=NEAR)
        page.evaluate("() => document.getElementById('results').replaceChildren()")
        page.evaluate("() => { document.getElementById('status').textContent = '' }")


@pytest.mark.slow
def test_two_texts_are_ordered_as_in_python(
    browser: Any, serve: Any, runtime: Path, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    export_web(load_checkpoint(tiny_checkpoint), tmp_path / "page", head="sentence", runtime=runtime)
    page, _ = open_page(browser, serve(tmp_path / "page"))
    page.fill("#text", "the old cat")
    page.click("#go")
    page.wait_for_selector("#status.error")
    assert page.inner_text("#status") == "Two texts are needed."
    page.fill("#second", "sees a small dog")
    page.click("#go")
    page.wait_for_selector("#results li")
    probability = in_python(tiny_checkpoint, tmp_path / "page", "sentence").order("the old cat", "sees a small dog")
    expected = [("A, then B", probability), ("B, then A", 1 - probability)]
    for (name, share), (wanted, value) in zip(read_bars(page), expected, strict=True):
        assert name == wanted
        assert share == pytest.approx(value, abs=NEAR)


@pytest.mark.parametrize("num_texts", [0, 1, 2])
def test_a_page_knows_how_many_texts_its_model_wants(
    num_texts: int, tiny_checkpoint: Path, tiny_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    task = Classification("classification", ("no", "yes"), num_texts=num_texts)
    model = build_model(load_checkpoint(tiny_checkpoint).config, task.heads)
    content = CheckpointContent(step=0, task=task_facts(task, max_length=32))
    save_checkpoint(tmp_path / "model", model, tiny_tokenizer, content)
    assert describe_model(load_checkpoint(tmp_path / "model"), "classification")["num_texts"] == num_texts


def test_what_the_page_cannot_show_or_find_is_refused(tiny_checkpoint: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(tiny_checkpoint)
    with pytest.raises(ConfigError, match="has no view for the head 'embedding'"):
        export_web(checkpoint, tmp_path / "page", head="embedding", runtime=tmp_path)
    with pytest.raises(ConfigError, match=r"it has no ort\.wasm\.min\.mjs"):
        export_web(checkpoint, tmp_path / "page", head="mlm", runtime=tmp_path)
    assert not (tmp_path / "page").exists()


def test_without_npm_the_runtime_must_be_named(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="give --runtime FOLDER"):
        export_web(load_checkpoint(tiny_checkpoint), tmp_path / "page", head="mlm")


def test_a_page_names_no_other_server(tiny_checkpoint: Path, tmp_path: Path) -> None:
    fake = tmp_path / "runtime"
    fake.mkdir()
    for name in ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"):
        (fake / name).write_text("")
    done = export_web(load_checkpoint(tiny_checkpoint), tmp_path / "page", head="mlm", runtime=fake)
    assert done.num_bytes == (tmp_path / "page" / "model.onnx").stat().st_size < 16e6
    page = "".join(file.read_text() for file in (tmp_path / "page").glob("*.[hj][ts]*"))
    assert "http://" not in page
    assert "https://" not in page
