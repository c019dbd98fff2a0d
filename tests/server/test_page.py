"""The playground in a real browser: each function, errors, keyboard, languages, colours, no request to elsewhere."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_server import listen

from litebert.inference.predictor import Predictor
from litebert.server.app import build_app
from litebert.server.models import NamedModel
from litebert.server.options import ServeOptions

pytestmark = pytest.mark.slow

Page = Any
OpenPage = Callable[..., Page]
DONE = ".output:not([aria-busy])"


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[OpenPage]:
    """A page at a model's function; afterwards it must have asked nobody else and complained of nothing."""
    contexts, asked, complaints = [], [], []

    def open_at(model: str = "words", function: str = "fill-mask", *, at: str = address, **options: Any) -> Page:
        context = browser.new_context(**({"viewport": {"width": 1000, "height": 800}, "locale": "en-GB"} | options))
        contexts.append(context)
        context.on("request", lambda request: asked.append(request.url))
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.goto(at)
        if at == address:
            page.select_option("#model", model)
            page.click(f"#tab-{function}")
            page.wait_for_selector(f"#output-{function}")
        return page

    yield open_at
    for context in contexts:
        context.close()
    origins = {re.match(r"\w+:(//[^/]+)?", url)[0] for url in asked}  # type: ignore[index]
    assert len(origins) == 1
    assert "127.0.0.1" in origins.pop()
    # a refusal is shown to the person; the browser also notes its status
    assert [text for text in complaints if "Failed to load resource" not in text] == []


def ask(page: Page, **fields: str) -> None:
    """Write into the fields and ask."""
    function = page.locator("[role=tab][aria-selected=true]").get_attribute("id").removeprefix("tab-")
    for name, text in fields.items():
        box = page.locator(f"#field-{function}-{name}")
        if not box.is_visible():
            page.click("details.optional summary")
        box.fill(text)
    with page.expect_response("**/v1/**"):
        page.click("button[type=submit]")
    page.wait_for_selector(DONE)


def bars(page: Page) -> list[str]:
    names: list[str] = page.locator(".bar .name").all_inner_texts()
    return names


def test_gaps_are_filled_and_a_guess_can_be_chosen(open_page: OpenPage, predictors: dict[str, Predictor]) -> None:
    page = open_page()
    ask(page, text="the [MASK] sees a bird")
    expected = [
        guess.piece.removeprefix("##") for guess in predictors["words"].fill_mask("the [MASK] sees a bird", 8)[0]
    ]
    assert bars(page) == expected
    assert page.inner_text(".sentence") == f"the {expected[0]} sees a bird"
    page.locator(".bar").nth(2).click()
    assert page.inner_text(".sentence") == f"the {expected[2]} sees a bird"
    assert page.locator(".bar[aria-pressed=true]").count() == 1
    ask(page, text="a [MASK] near the [MASK]")
    assert page.locator(".group").count() == 2


def test_the_mask_button_writes_the_mark_at_the_cursor(open_page: OpenPage) -> None:
    page = open_page()
    box = page.locator("#field-fill-mask-text")
    box.fill("the  sees a bird")
    box.evaluate("box => box.setSelectionRange(4, 4)")
    page.click("text=Insert [MASK]")
    assert box.input_value() == "the [MASK] sees a bird"
    page.wait_for_selector(".bar")  # asked by itself after a moment


def test_texts_and_pairs_are_classified(open_page: OpenPage, predictors: dict[str, Predictor]) -> None:
    page = open_page("animals", "classify")
    ask(page, text="the old dog")
    (answer,) = predictors["animals"].classify(["the old dog"])
    assert page.inner_text(".verdict") == answer.label
    assert sorted(bars(page)) == ["bird", "cat", "dog"]
    ask(page, text="the old dog", second="sees the bird")
    (pair,) = predictors["animals"].classify([("the old dog", "sees the bird")])
    shown = dict(zip(bars(page), page.locator(".bar .value").all_inner_texts(), strict=True))
    assert float(shown[pair.label].split()[0]) == pytest.approx(100 * pair.probabilities[pair.label], abs=0.6)


def test_a_model_for_pairs_has_two_fields_and_one_for_single_texts_has_one(
    open_page: OpenPage, predictors: dict[str, Predictor]
) -> None:
    page = open_page("pairs", "classify")
    page.wait_for_selector(".verdict")  # its example is a pair
    assert page.locator("textarea").count() == 2
    ask(page, text="the old dog", second="sees a bird")
    (pair,) = predictors["pairs"].classify([("the old dog", "sees a bird")])
    assert page.inner_text(".verdict") == pair.label
    page.fill("#field-classify-second", "")
    page.click("button[type=submit]")
    assert "needs two texts" in page.inner_text(".output")
    page.select_option("#model", "early")
    page.wait_for_selector(".verdict")
    assert page.locator("textarea").count() == 1


def test_a_model_that_has_learned_it_answers_early(open_page: OpenPage) -> None:
    page = open_page("early", "classify")
    ask(page, text="the old dog")
    late = page.locator(".bar .value").all_inner_texts()
    with page.expect_response("**/v1/classify") as answered:
        page.select_option("#patience", "1")
    assert answered.value.request.post_data_json["patience"] == 1
    page.wait_for_selector(DONE)
    assert page.locator(".bar .value").all_inner_texts() != late
    page.select_option("#model", "animals")
    page.wait_for_selector(".verdict")
    assert page.locator("#patience").count() == 0


def test_tags_that_are_no_spans_are_shown_word_by_word(open_page: OpenPage, predictors: dict[str, Predictor]) -> None:
    page = open_page("kinds", "tokens")
    text = "the old cat sees a bird near the river"
    ask(page, text=text)
    tags = [tag for tag in predictors["kinds"].tag([text.split()])[0] if tag != "O"]
    assert tags
    assert page.locator(".entity small").all_inner_texts() == tags


def test_a_number_is_shown_as_a_number(open_page: OpenPage, predictors: dict[str, Predictor]) -> None:
    page = open_page("length", "classify")
    ask(page, text="the old dog")
    (answer,) = predictors["length"].classify(["the old dog"])
    assert float(page.inner_text(".verdict")) == pytest.approx(answer.label, abs=1e-3)


def test_tagged_words_are_named(open_page: OpenPage, predictors: dict[str, Predictor]) -> None:
    page = open_page("names", "tokens")
    text = "the old cat sees a bird near the river"
    ask(page, text=text)
    tags = predictors["names"].tag([text.split()])[0]
    shown = page.locator(".entity small").all_inner_texts()
    assert bool(shown) == any(tag != "O" for tag in tags)
    assert set(shown) <= {"ANIMAL"}
    assert re.sub(r"\s*ANIMAL", "", page.inner_text(".sentence")) == text


def test_the_answer_is_marked_in_the_passage(open_page: OpenPage, predictors: dict[str, Predictor]) -> None:
    page = open_page("answers", "answer")
    context = "The 😀 old cat 🐈 sees the river 🏞 near the house."
    ask(page, question="who sees", context=context)
    found = predictors["answers"].answer("who sees", context)
    assert page.inner_text("mark.answer") == found.text == page.inner_text(".verdict")
    assert page.inner_text(".passage") == context
    before = page.locator(".passage").evaluate(
        "node => { const range = document.createRange(); range.setStart(node, 0);"
        " range.setEndBefore(node.querySelector('mark.answer')); return range.toString() }"
    )
    assert before == context[: found.start]


def test_a_choice_is_made(open_page: OpenPage, predictors: dict[str, Predictor]) -> None:
    page = open_page("choices", "choose")
    choices = ["a dog", "a bird", "the trees"]
    ask(page, context="the cat", question="it sees _", choices="\n".join(choices))
    assert page.inner_text(".verdict") == predictors["choices"].choose("the cat", "it sees _", choices).text
    assert bars(page) == choices


def test_swapping_two_texts_swaps_their_judgements(open_page: OpenPage) -> None:
    page = open_page("words", "order")
    ask(page, a="the old cat", b="near the river")
    given, other = page.locator(".scale .value").all_inner_texts()
    assert given != other
    with page.expect_response("**/v1/order"):
        page.click("text=Swap A and B")
    page.wait_for_selector(DONE)
    assert page.input_value("#field-order-a") == "near the river"
    assert page.locator(".scale .value").all_inner_texts() == [other, given]


def test_texts_are_compared(open_page: OpenPage, predictors: dict[str, Predictor]) -> None:
    page = open_page("words", "embed")
    texts = ["the cat", "a dog near the river", "the old house"]
    ask(page, lines="\n".join(texts))
    vectors = predictors["words"].embed(texts)
    cells = page.locator(".matrix .cell").all_inner_texts()
    expected = (vectors @ vectors.T)[~np.eye(3, dtype=bool)]
    assert [float(cell) for cell in cells] == pytest.approx(expected.tolist(), abs=0.006)


def test_how_it_reads_can_be_looked_at_token_by_token(open_page: OpenPage) -> None:
    page = open_page("words", "read")
    ask(page, text="the old cat sees", second="a bird")
    tokens = page.locator(".tokens .token").all_inner_texts()
    assert " ".join(tokens) == "[CLS] the old c ##a ##t sees [SEP] a bird [SEP]"
    pixels = "canvas => canvas.toDataURL()"
    first = page.locator("canvas").evaluate(pixels)
    page.locator(".token").nth(1).press("ArrowRight")
    assert page.inner_text(".token[aria-selected=true]") == "old"
    assert page.evaluate("document.activeElement.textContent") == "old"
    page.locator("#layer").press("ArrowRight")
    assert page.inner_text("output[for=layer]") == "2 / 2"
    assert page.locator("canvas").evaluate(pixels) != first
    with page.expect_response("**/v1/read") as answered:
        page.locator("#head").focus()
        page.select_option("#head", index=2)  # after the mean and the first
    assert answered.value.request.post_data_json["head"] == 1
    page.wait_for_selector(DONE)
    assert page.evaluate("document.activeElement.id") == "head"
    assert page.locator(".chart svg").count() == 2
    colours = page.locator("canvas").evaluate(
        "c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " return new Set(Array.from({length: d.length / 4}, (_, i) => d.slice(4 * i, 4 * i + 4).join())).size }"
    )
    assert colours > 10  # not one black square


def test_only_what_the_model_can_do_is_offered(open_page: OpenPage) -> None:
    page = open_page("names", "tokens")
    assert page.locator("[role=tab]").all_inner_texts() == ["Tag words", "Compare", "How it reads"]
    page.select_option("#model", "answers")
    assert page.locator("[role=tab]").all_inner_texts() == ["Answer", "Compare", "How it reads"]


def alert_of(page: Page) -> str:
    page.wait_for_selector("[role=alert]")
    text: str = page.inner_text("[role=alert]")
    return text


def test_a_refusal_is_shown_to_the_person_and_the_next_answer_replaces_it(open_page: OpenPage) -> None:
    page = open_page("animals", "classify")
    page.fill("#field-classify-text", "x" * 3000)
    assert "too long" in alert_of(page)
    ask(page, text="the old dog")
    assert page.locator("[role=alert]").count() == 0


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [(429, "busy", "busy"), (503, "timeout", "too long"), (500, "internal", "mistake"), (422, "odd", "something odd")],
)
def test_every_error_has_its_words(open_page: OpenPage, status: int, code: str, words: str) -> None:
    page = open_page("animals", "classify")
    body = {"error": {"code": code, "message": "something odd", "where": ""}}
    page.route("**/v1/classify", lambda route: route.fulfill(status=status, json=body))
    ask(page, text="the old dog")
    assert words in alert_of(page)


def test_the_page_reports_an_unreachable_server(open_page: OpenPage) -> None:
    page = open_page("animals", "classify")
    page.route("**/v1/classify", lambda route: route.abort())
    page.fill("#field-classify-text", "the old dog")
    assert "cannot be reached" in alert_of(page)


def test_a_token_is_asked_for_and_used(open_page: OpenPage, guarded_address: str) -> None:
    page = open_page(at=guarded_address)
    page.fill("#token", "wrong")
    page.click("button[type=submit]")
    page.wait_for_selector("#token")
    page.fill("#token", "letmein")
    page.click("button[type=submit]")
    page.wait_for_selector("[role=tab]")
    ask(page, text="the [MASK] sees")
    assert len(bars(page)) == 8


def test_it_can_be_used_without_a_mouse(open_page: OpenPage) -> None:
    page = open_page()
    page.locator("#tab-fill-mask").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-order"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "field-order-a"
    page.keyboard.press("Control+A")
    page.keyboard.type("the old cat")
    with page.expect_response("**/v1/order"):
        page.keyboard.press("Control+Enter")
    page.wait_for_selector(".scale")
    assert "%" in page.inner_text("[role=status]")  # what a screen reader hears


def test_the_interface_can_be_chinese_and_remembers_it(open_page: OpenPage) -> None:
    page = open_page(locale="zh-CN")
    assert page.locator("[role=tab]").all_inner_texts() == ["填空", "顺序", "比较", "模型如何阅读"]
    assert page.get_attribute("html", "lang") == "zh-Hans"
    page.fill("#field-fill-mask-text", "the [MASK]")
    page.click("#language")
    assert page.inner_text("#tab-fill-mask") == "Fill the gap"
    assert page.input_value("#field-fill-mask-text") == "the [MASK]"
    page.reload()
    page.wait_for_selector("#tab-fill-mask")
    assert page.inner_text("#tab-fill-mask") == "Fill the gap"


FUNCTIONS = [
    ("words", "fill-mask"),
    ("animals", "classify"),
    ("names", "tokens"),
    ("answers", "answer"),
    ("choices", "choose"),
    ("words", "order"),
    ("words", "embed"),
    ("words", "read"),
]


def test_nothing_is_wider_than_a_phone(open_page: OpenPage) -> None:
    page = open_page(viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    for model, function in FUNCTIONS:
        page.select_option("#model", model)
        page.click(f"#tab-{function}")
        page.wait_for_selector(f"{DONE} > *")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, function


# For every piece of text that is seen: its contrast with what lies behind it.
CONTRASTS = """() => {
  const parse = (text) => {
    const numbers = text.match(/[\\d.e-]+/g).map(Number);
    const scale = text.startsWith("color(") ? 255 : 1;
    return [...numbers.slice(0, 3).map((n) => scale * n), numbers[3] ?? 1];
  };
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => [r, g, b].map((v) => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let one = node; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour[3] > 0) return colour;
    }
    return [255, 255, 255, 1];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.getClientRects().length) continue;
    if (node.closest("script, noscript, .status, .skip, svg")) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    found.push([walker.currentNode.data.trim().slice(0, 30), (a + 0.05) / (b + 0.05)]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_and_every_field_has_a_name(open_page: OpenPage, scheme: str) -> None:
    page = open_page(color_scheme=scheme)
    for model, function in FUNCTIONS:
        page.select_option("#model", model)
        page.click(f"#tab-{function}")
        page.wait_for_selector(f"{DONE} > *")
        page.evaluate("Promise.all(document.getAnimations().map((one) => one.finished))")  # it has faded in
        contrasts = page.evaluate(CONTRASTS)
        assert len(contrasts) > 15
        assert [(text, round(ratio, 2)) for text, ratio in contrasts if ratio < 4.5] == []
        nameless = page.evaluate(
            "[...document.querySelectorAll('textarea, select, input')].filter(one => !one.labels?.length).length"
            " + [...document.querySelectorAll('button')].filter(one => !(one.innerText.trim() || one.ariaLabel)).length"
            " + [...document.images].filter(one => !one.hasAttribute('alt')).length"
        )
        assert nameless == 0


@pytest.fixture(scope="module")
def axe() -> str:
    """axe-core's script, which checks a page for people who do not see it, or use no mouse."""
    folder = os.environ.get("LITEBERT_AXE")
    if not folder:
        pytest.skip("LITEBERT_AXE is not set: the folder of the npm package axe-core")
    return (Path(folder) / "axe.min.js").read_text("utf-8")


def find_violations(page: Page, axe: str) -> list[str]:
    page.evaluate("Promise.all(document.getAnimations().map((one) => one.finished))")
    page.evaluate(axe)
    found = page.evaluate("axe.run().then((found) => found.violations.map((one) => [one.id, one.nodes[0].html]))")
    return [f"{rule}: {node[:200]}" for rule, node in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(open_page: OpenPage, address: str, axe: str, scheme: str) -> None:
    page = open_page(color_scheme=scheme)
    found = {}
    for model, function in FUNCTIONS:
        page.select_option("#model", model)
        page.click(f"#tab-{function}")
        page.wait_for_selector(f"{DONE} > *")
        found[function] = find_violations(page, axe)
    page.goto(f"{address}/docs")
    page.wait_for_selector(".call")
    found["docs"] = find_violations(page, axe)
    page.click("#language")
    found["docs, Chinese"] = find_violations(page, axe)
    assert {place: violations for place, violations in found.items() if violations} == {}


@pytest.mark.parametrize("place", ["", "#embed"])
def test_the_first_tab_goes_to_the_skip_link_and_that_to_the_panel(
    open_page: OpenPage, address: str, place: str
) -> None:
    page = open_page(at=f"{address}/{place}")
    page.wait_for_selector("#panel")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    before = page.evaluate("location.hash")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "panel"
    assert page.evaluate("location.hash") == before


def test_many_lines_are_compared_and_too_many_are_refused(open_page: OpenPage) -> None:
    page = open_page("words", "embed")
    ask(page, lines="\n".join(f"the cat {n}" for n in range(20)))
    assert page.locator(".matrix tbody tr").count() == 20
    page.fill("#field-embed-lines", "a\n" * 65)
    page.wait_for_selector("text=65 lines: at most 64")


def test_more_choices_than_can_be_judged_are_refused_and_not_dropped(open_page: OpenPage) -> None:
    page = open_page("choices", "choose")
    page.fill("#field-choose-choices", "a\n" * 17)
    page.wait_for_selector("text=17 choices: at most 16")


def test_numbers_say_what_they_are(open_page: OpenPage) -> None:
    page = open_page("words", "order")
    ask(page, a="the cat", b="the dog")
    assert "Each order is judged on its own" in page.inner_text(".output")
    assert "cuts texts at" in page.inner_text(".facts").replace("\u00a0", " ")
    page.select_option("#model", "answers")
    ask(page, question="who sees", context="the old cat sees")
    assert "Probability" in page.inner_text(".output")
    assert "in windows of 48 tokens" in page.inner_text(".facts").replace("\u00a0", " ")


@pytest.mark.parametrize("code", ["invalid", "busy", "not_found", "too_slow", "unavailable"])
def test_a_refusal_is_chinese_on_a_chinese_page(open_page: OpenPage, code: str) -> None:
    page = open_page("animals", "classify", locale="zh-CN")
    body = {"error": {"code": code, "message": "something odd", "where": ""}}
    page.route("**/v1/classify", lambda route: route.fulfill(status=422, json=body))
    ask(page, text="the old dog")
    assert re.search("[\u4e00-\u9fff]", alert_of(page))


def test_colours_can_be_chosen(open_page: OpenPage) -> None:
    page = open_page()
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.click("#theme")
    page.click("#theme")
    assert page.get_attribute("html", "data-theme") == "dark"
    assert page.evaluate(colour) != light


def test_the_description_of_the_api_is_drawn_and_can_be_tried(open_page: OpenPage, address: str) -> None:
    page = open_page(at=f"{address}/docs")
    page.wait_for_selector(".call")
    assert {"/v1/fill-mask", "/v1/read", "/metrics"} <= {
        text.split()[-1] for text in page.locator(".call h2").all_inner_texts()
    }
    call = page.locator("#v1-order")
    with page.expect_response("**/v1/order"):
        call.locator("button").click()
    call.locator("pre", has_text="results").wait_for()
    assert call.locator("pre").last.inner_text().startswith("200")


SHOWN_TEXTS = """() => {
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!node.closest("code, pre, .method, h2") && /[A-Za-z]{3}/.test(walker.currentNode.data)) {
      found.push(walker.currentNode.data);
    }
  }
  return found;
}"""
# Names that are the same in every language.
NAMES = re.compile(
    r"\[MASK\]|OpenAI|Cohere|TEI|base64|Prometheus|Retry-After|Host|[BI]-PER|JSON|BERT|classify|patience|null"
    r"|/[\w/-]+|\d{3}"
)


def test_the_description_of_the_api_is_chinese_on_a_chinese_page(open_page: OpenPage, address: str) -> None:
    page = open_page(at=f"{address}/docs", locale="zh-CN")
    page.wait_for_selector(".call")
    assert page.get_attribute("html", "lang") == "zh-Hans"
    assert page.locator("h3").first.inner_text() == "请求"
    for summary in page.locator("summary").all():
        summary.click()
    english = [text for text in page.evaluate(SHOWN_TEXTS) if re.search("[A-Za-z]{3}", NAMES.sub("", text))]
    assert english == []
    page.click("#language")
    assert page.locator("h3").first.inner_text() == "Request"
    page.reload()
    page.wait_for_selector(".call")
    assert page.get_attribute("html", "lang") == "en"


def test_the_page_works_where_a_proxy_offers_it_under_a_path(open_page: OpenPage, models: list[NamedModel]) -> None:
    with listen(build_app(models[:1], ServeOptions(root_path="/bert"))) as address:
        page = open_page(at=f"{address}/bert/")
        page.wait_for_selector("#output-fill-mask")
        ask(page, text="the [MASK] sees")
        assert len(bars(page)) == 8
        page.click("text=API")
        page.wait_for_selector(".call")
        assert page.url == f"{address}/bert/docs"
