"""The exported page in a real browser: Python's answers, errors that a person understands, no request to anyone else.

Needs a chromium, playwright, and onnxruntime-web, whose folder $LITEBERT_ORT_WEB names; nothing is installed here.
"""

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refuses
from small_configs import TINY
from small_text import SIZES, make_sentences

from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.core.errors import ConfigError
from litebert.core.runtime import RuntimeOptions, choose_runtime
from litebert.exporters.web import export_web
from litebert.exporters.web_model import describe_for_page
from litebert.inference.engines.graphs import OneGraph
from litebert.inference.engines.onnx_engine import OnnxEngine
from litebert.inference.predictor import Predictor
from litebert.model.engine import HeadName
from litebert.model.model import build_model
from litebert.tasks.catalog import task_facts
from litebert.tasks.kinds.choices import Choices
from litebert.tasks.kinds.classification import Classification
from litebert.tasks.kinds.token_tags import TokenTags, find_spans
from litebert.tasks.squad.task import SpanTask
from litebert.text.tokenizer import Tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

CPU = choose_runtime(RuntimeOptions(device="cpu"))
NEAR = 0.02  # int8 differs a little between a processor and a browser
DONE = ".output:not([aria-busy])"
Page = Any


@pytest.fixture(scope="module")
def runtime() -> Path:
    folder = os.environ.get("LITEBERT_ORT_WEB")
    if not folder:
        pytest.skip("LITEBERT_ORT_WEB does not name a folder of onnxruntime-web")
    return Path(folder)


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")  # what keeps a page from asking here is its own policy
        super().end_headers()


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
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


def in_python(checkpoint: Path, page: Path, head: HeadName) -> Predictor:
    """A predictor that computes the page's own graph."""
    opened = load_checkpoint(checkpoint)
    graph = OneGraph(page / "model.onnx", head, opened.config.max_positions, is_loop=False)
    engine = OnnxEngine(graph, 1)
    return Predictor(opened, CPU, engine)


@pytest.fixture(scope="module")
def unigram() -> Tokenizer:
    return train_tokenizer(make_sentences(), VocabularyOptions(kind="unigram", vocab_size=SIZES["unigram"]))


def save_model(folder: Path, task: Any, tokenizer: Tokenizer, *, num_layers: int = 3) -> Path:
    """A model with random weights, of a scale that makes it take sides."""
    config = replace(TINY, vocab_size=tokenizer.vocab_size, num_layers=num_layers, initializer_range=0.3)  # fmt: skip
    content = CheckpointContent(step=0, task=task_facts(task, max_length=48))
    save_checkpoint(folder / "model", build_model(config, task.heads, seed=3), tokenizer, content)
    return folder / "model"


def open_page(browser: Any, address: str, **options: Any) -> Page:
    page = browser.new_page(**({"locale": "en-GB"} | options))
    page.complaints = []
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.goto(address)
    page.wait_for_selector("[role=tab]", timeout=120_000)
    page.wait_for_selector(DONE)
    return page


def ask(page: Page, **fields: str) -> None:
    """Write into the fields and ask; what stood there before is gone when this returns."""
    for name, text in fields.items():
        box = page.locator(f"textarea[id$=-{name}]")
        if not box.is_visible():
            page.click("details.optional summary")
        box.fill(text)
    page.evaluate("() => document.querySelector('.output').replaceChildren()")
    page.click("button[type=submit]")
    page.wait_for_selector(f"{DONE} > *")


def read_bars(page: Page) -> dict[str, float]:
    names, values = (page.locator(f".bar .{kind}").all_inner_texts() for kind in ("name", "value"))
    return {name: float(value.rstrip(" %")) / 100 for name, value in zip(names, values, strict=True)}


@pytest.mark.slow
def test_masks_are_filled_as_in_python(
    browser: Any, serve: Any, runtime: Path, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    export_web(load_checkpoint(tiny_checkpoint), tmp_path / "page", head="mlm", runtime=runtime)
    page = open_page(browser, serve(tmp_path / "page"))
    text = "the [MASK] sees a small dog"
    ask(page, text=text)
    (expected,) = in_python(tiny_checkpoint, tmp_path / "page", "mlm").fill_mask(text)
    found = read_bars(page)
    assert len(found) == 8
    for guess in expected[:2]:
        assert found[guess.piece.removeprefix("##")] == pytest.approx(guess.probability, abs=NEAR)
    ask(page, text="nothing to guess")
    assert "Put [MASK] where a word is to be guessed" in page.inner_text(".output")
    assert page.locator(".bar").count() == 0  # nothing is left of the answer before
    ask(page, text="the [MASK] " + "sees a dog " * 40)
    assert "too long" in page.inner_text("[role=alert]")
    assert "and the model reads 62" in page.inner_text("[role=alert]")


@pytest.mark.slow
def test_texts_and_pairs_are_classified_as_in_python(
    browser: Any, serve: Any, runtime: Path, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    task = Classification("classification", ("bird", "cat", "dog"), exits=True)
    model = save_model(tmp_path, task, tiny_tokenizer, num_layers=6)
    export_web(load_checkpoint(model), tmp_path / "page", runtime=runtime)
    page = open_page(browser, serve(tmp_path / "page"), locale="zh-CN")
    assert page.locator("[role=tab]").all_inner_texts() == ["分类"]
    graph = OneGraph(tmp_path / "page" / "model.onnx", "classification", 64, is_loop=True)
    asked = Predictor(load_checkpoint(model), CPU, OnnxEngine(graph, 1))
    for first, second in [("a cat near the old house", ""), ("the dog sees", "a bird"), ("the [MASK] house", "")]:
        ask(page, text=first, second=second)
        (expected,) = asked.classify([(first, second) if second else first])
        assert read_bars(page) == pytest.approx(expected.probabilities, abs=NEAR)
    late = read_bars(page)
    page.select_option("#patience", "1")
    page.wait_for_function("late => document.querySelector('.output').innerText !== late", arg=str(late))
    page.wait_for_selector(DONE)
    (early,) = asked.with_patience(1).classify(["the [MASK] house"])
    assert read_bars(page) == pytest.approx(early.probabilities, abs=NEAR)


@pytest.mark.slow
def test_two_texts_are_ordered_and_compared_as_in_python(
    browser: Any, serve: Any, runtime: Path, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    export_web(load_checkpoint(tiny_checkpoint), tmp_path / "order", head="sentence", runtime=runtime)
    page = open_page(browser, serve(tmp_path / "order"))
    ask(page, a="the old cat", b="")
    assert page.inner_text(".output") == "Two texts are needed."
    ask(page, a="the old cat", b="sees a small dog")
    python = in_python(tiny_checkpoint, tmp_path / "order", "sentence")
    expected = [python.order("the old cat", "sees a small dog"), python.order("sees a small dog", "the old cat")]
    shown = [float(text.rstrip(" %")) / 100 for text in page.locator(".scale .value").all_inner_texts()]
    assert shown == pytest.approx(expected, abs=NEAR)
    export_web(load_checkpoint(tiny_checkpoint), tmp_path / "embed", head="embedding", runtime=runtime)
    page = open_page(browser, serve(tmp_path / "embed"))
    texts = ["the cat", "a dog near the river", "the old house"]
    ask(page, lines="\n".join(texts))
    vectors = in_python(tiny_checkpoint, tmp_path / "embed", "embedding").embed(texts)
    cells = [float(cell) for cell in page.locator(".matrix .cell").all_inner_texts()]
    assert cells == pytest.approx((vectors @ vectors.T)[~np.eye(3, dtype=bool)].tolist(), abs=NEAR)


# What normalization makes longer, shorter or joins; emoji that are two halves in JavaScript; several windows; one word.
PASSAGES = [
    "The old builder walks by the river near the station.",
    "Ünïcödé rivers: the ﬁne ﬂow of 2010, and the naïve café — e\u0301te\u0301.",
    "😀 The teacher 👨‍👩‍👧‍👦 walks 🏳️‍🌈 to the station in 1,000 days 👍🏽.",
    "中国人民 the river 圣约翰岛, 日本語のテキスト and ｶﾀｶﾅ.",
    "한국어 문장 by the river \u1112\u1161\u11ab\u1100\u1173\u11af",
    "  tabs\tand\nlines\u3000of   \u200bwater\u00ad  ",
    "İstanbul ΑΣ ΟΔΟΣ. ẞß ½ ㎏ ① Ⅳ",
    "river",
    " ".join(make_sentences(14)),
    " ".join(make_sentences(30)[::2]) + " 😀 end",
]
QUESTIONS = ["who walks?", "what was by the river in 2010, and where 😀?", "¿Dónde está?"]


@pytest.mark.slow
@pytest.mark.parametrize("head", ["span", "conditional_span"])
def test_questions_are_answered_as_in_python_and_the_answer_is_marked(
    browser: Any, serve: Any, runtime: Path, tmp_path: Path, unigram: Tokenizer, tiny_tokenizer: Tokenizer, head: str
) -> None:
    version: Any = "1.1" if head == "span" else "2.0"
    name: Any = head
    task = SpanTask("squad", version=version, head=name, max_question_length=16, stride=16)
    tokenizer = unigram if head == "span" else tiny_tokenizer
    asked = [(QUESTIONS[number % 3], context) for number, context in enumerate(PASSAGES * 2)]
    untuned = Predictor(load_checkpoint(save_model(tmp_path / "untuned", task, tokenizer)), CPU)
    odds = [found.null_odds for found in untuned.answer_batch(asked)]
    model = save_model(tmp_path, replace(task, threshold=float(np.median(odds))), tokenizer)  # silent on half of them
    export_web(load_checkpoint(model), tmp_path / "page", runtime=runtime)
    page = open_page(browser, serve(tmp_path / "page"))
    python = in_python(model, tmp_path / "page", name)
    num_same = num_found = 0
    for question, context in asked:
        ask(page, question=question, context=context)
        found = python.answer(question, context)
        assert page.locator(".passage").evaluate("node => node.textContent") == context
        marks = page.locator("mark.answer")
        shown = marks.evaluate("node => node.textContent") if marks.count() else ""
        num_found += bool(shown)
        is_same = shown == found.text
        if shown and is_same:
            before = page.locator(".passage").evaluate(
                "node => { const range = document.createRange(); range.setStart(node, 0);"
                " range.setEndBefore(node.querySelector('mark.answer')); return range.toString() }"
            )
            assert before == context[: found.start]
        num_same += is_same
    assert (num_found == len(asked)) if head == "span" else (5 < num_found < len(asked) - 5)
    assert num_same >= len(asked) - 1  # the last bits of int8 may choose otherwise between two that are equally good
    ask(page, question="", context="the river")
    assert "A question and a passage are needed" in page.inner_text(".output")
    assert page.complaints == []


@pytest.mark.slow
def test_a_long_passage_says_where_it_is_and_typing_on_gives_it_up(
    browser: Any, serve: Any, runtime: Path, tmp_path: Path, unigram: Tokenizer
) -> None:
    model = save_model(tmp_path, SpanTask("squad", max_question_length=16, stride=4), unigram)
    export_web(load_checkpoint(model), tmp_path / "page", runtime=runtime)
    page = open_page(browser, serve(tmp_path / "page"))
    page.evaluate(
        "() => { const output = document.querySelector('.output'); globalThis.said = [];"
        " new MutationObserver(() => said.push(output.dataset.working))"
        ".observe(output, { attributeFilter: ['data-working'] }) }"
    )
    endless = " ".join(make_sentences(60))
    page.fill("#field-answer-context", endless)
    page.click("button[type=submit]")
    page.wait_for_function("() => said.some((words) => words.startsWith('reading part 3 of '))")
    ask(page, context="the river is near")
    assert page.inner_text(".passage") == "the river is near"
    last = page.evaluate("() => said.filter((words) => words.includes('part')).at(-1)")
    part, total = (int(word) for word in last.split() if word.isdigit())
    assert part < total  # the rest of the long passage was not read
    page.wait_for_timeout(300)
    assert page.inner_text(".passage") == "the river is near"


@pytest.mark.slow
def test_words_are_tagged_as_in_python(
    browser: Any, serve: Any, runtime: Path, tmp_path: Path, unigram: Tokenizer
) -> None:
    model = save_model(tmp_path, TokenTags("tags", ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")), unigram)
    export_web(load_checkpoint(model), tmp_path / "page", runtime=runtime)
    page = open_page(browser, serve(tmp_path / "page"))
    python = in_python(model, tmp_path / "page", "tokens")
    num_words = num_same = 0
    for text in PASSAGES:
        ask(page, text=text)
        kept = page.locator(".tagged").evaluate(
            "node => { const copy = node.cloneNode(true);"
            " copy.querySelectorAll('small').forEach((one) => one.remove()); return copy.textContent }"
        )
        assert kept == text
        tags = python.tag([text.split()])[0]
        shown = page.locator(".tagged .entity small").all_inner_texts()
        expected = [span.kind for span in find_spans(tags)]
        num_words += len(expected)
        num_same += sum(a == b for a, b in zip(shown, expected, strict=False)) if len(shown) == len(expected) else 0
    assert num_words > 20
    assert num_same >= 0.9 * num_words


@pytest.mark.slow
def test_choices_are_made_as_in_python(
    browser: Any, serve: Any, runtime: Path, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    model = save_model(tmp_path, Choices("choice", max_choice_length=16), tiny_tokenizer)
    export_web(load_checkpoint(model), tmp_path / "page", runtime=runtime)
    page = open_page(browser, serve(tmp_path / "page"))
    python = in_python(model, tmp_path / "page", "choice")
    for number, context in enumerate(PASSAGES):
        question = ("it sees _", "who sees the dog?")[number % 2]
        choices = ["a dog", "a naïve ﬁsh 😀", "the trees", f"number {number}"][: 2 + number % 3]
        ask(page, context=context, question=question, choices="\n".join(choices))
        chosen = python.choose(context, question, choices)
        assert read_bars(page) == pytest.approx(dict(zip(choices, chosen.probabilities, strict=True)), abs=NEAR)
    ask(page, choices="one alone")
    assert "At least two choices" in page.inner_text(".output")


@pytest.mark.slow
def test_neither_the_page_nor_its_worker_can_ask_another_server(
    browser: Any, serve: Any, runtime: Path, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    export_web(load_checkpoint(tiny_checkpoint), tmp_path / "page", head="mlm", runtime=runtime)
    address, other = serve(tmp_path / "page"), serve(tmp_path / "page")
    requests: list[str] = []
    context = browser.new_context()
    context.on("request", lambda request: requests.append(request.url))
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(".bar", timeout=120_000)
    assert any(url.endswith("model.onnx") for url in requests)
    assert all(url.startswith((address, "data:", "blob:")) for url in requests), requests
    tries = "url => fetch(url).then(() => 'answered', () => 'refused')"
    (worker,) = page.workers
    for one in (page, worker):
        assert one.evaluate(tries, f"{address}facts.json") == "answered"
        assert one.evaluate(tries, f"{other}facts.json") == "refused"
    context.close()


@pytest.mark.slow
def test_the_page_reports_a_model_that_cannot_be_loaded(
    browser: Any, serve: Any, runtime: Path, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    export_web(load_checkpoint(tiny_checkpoint), tmp_path / "page", head="mlm", runtime=runtime)
    (tmp_path / "page" / "vocabulary.json").unlink()
    page = browser.new_page(locale="en-GB")
    page.goto(serve(tmp_path / "page"))
    page.wait_for_selector("[role=alert]")
    assert "The model could not be loaded." in page.inner_text("[role=alert]")
    assert "vocabulary.json" in page.inner_text("[role=alert]")


@pytest.mark.parametrize("num_texts", [0, 1, 2])
def test_a_page_knows_how_many_texts_its_model_wants(
    num_texts: int, tiny_checkpoint: Path, tiny_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    task = Classification("classification", ("no", "yes"), num_texts=num_texts)
    model = build_model(load_checkpoint(tiny_checkpoint).config, task.heads)
    content = CheckpointContent(step=0, task=task_facts(task, max_length=32))
    save_checkpoint(tmp_path / "model", model, tiny_tokenizer, content)
    assert describe_for_page(load_checkpoint(tmp_path / "model"), "classification")["model"]["num_texts"] == num_texts


def test_what_the_page_cannot_show_or_find_is_refused(
    tiny_checkpoint: Path, tiny_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    checkpoint = load_checkpoint(tiny_checkpoint)
    save_checkpoint(
        tmp_path / "headed", build_model(checkpoint.config, ["span"]), tiny_tokenizer, CheckpointContent(step=0)
    )
    with refuses(ConfigError, "no-task"):
        export_web(load_checkpoint(tmp_path / "headed"), tmp_path / "page", head="span", runtime=tmp_path)
    with refuses(ConfigError, "no-file", at="ort.wasm.min.mjs"):
        export_web(checkpoint, tmp_path / "page", head="mlm", runtime=tmp_path)
    assert not (tmp_path / "page").exists()


def test_without_npm_the_runtime_must_be_named(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with refuses(ConfigError, "no-npm"):
        export_web(load_checkpoint(tiny_checkpoint), tmp_path / "page", head="mlm")


def test_a_page_names_no_other_server(tiny_checkpoint: Path, tmp_path: Path) -> None:
    fake = tmp_path / "runtime"
    fake.mkdir()
    for name in ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"):
        (fake / name).write_text("")
    done = export_web(load_checkpoint(tiny_checkpoint), tmp_path / "page", head="mlm", runtime=fake)
    assert done.num_bytes == (tmp_path / "page" / "model.onnx").stat().st_size < 16e6
    page = "".join(file.read_text() for file in (tmp_path / "page").glob("*.[hj][ts]*"))
    named = page.replace("http://www.w3.org/2000/svg", "")  # the name of a kind of markup, which nobody asks for
    assert "http://" not in named
    assert "https://" not in named
