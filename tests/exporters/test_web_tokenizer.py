"""The page's tokenizer gives Python's ids: run in node, where there is one."""

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
import sentencepiece
from refusals import refuses
from small_text import SIZES, make_sentences
from varied_lines import iter_rare_lines

from litebert.core.errors import ConfigError
from litebert.exporters.web_vocabulary import check_model, describe_vocabulary
from litebert.inference.fill_mask import encode_masked
from litebert.tasks.groups import build_form
from litebert.text.tokenizer import Kind, Tokenizer, load_tokenizer
from litebert.text.train_tokenizer import BERT_SPECIAL, VocabularyOptions, train_tokenizer

SCRIPT = """
import { readFileSync } from "node:fs";
import { buildTokenizer, join } from "./tokenizer.js";
const [vocabulary, texts] = ["vocabulary.json", "texts.json"].map((name) => JSON.parse(readFileSync(name, "utf-8")));
const tokenizer = buildTokenizer(vocabulary);
const ids = texts.map((text) => tokenizer.encode(text));
const pairs = ids.map((one, n) => join(vocabulary, one, ids[(n + 1) % ids.length]));
const located = texts.map((text) => tokenizer.encodeWithOffsets(text));
const places = located.map(({ starts, ends }) => starts.map((start, n) => [start, ends[n]]));
const masked = texts.map((text) => tokenizer.encodeMasked(text));
console.log(JSON.stringify({ ids, pairs, places, masked }));
"""


def rare_lines() -> list[str]:
    return list(iter_rare_lines(400))


def run_node(folder: Path, tokenizer: Tokenizer, texts: list[str]) -> dict[str, list]:  # type: ignore[type-arg]
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    form = build_form(tokenizer, max_length=40, num_segments=2)
    for name in ("tokenizer.js", "normalize.js"):
        (folder / name).write_bytes(files("litebert.exporters").joinpath("page", name).read_bytes())
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "vocabulary.json").write_text(json.dumps(describe_vocabulary(tokenizer, form)))
    (folder / "texts.json").write_text(json.dumps(texts))
    (folder / "run.js").write_text(SCRIPT)
    done = subprocess.run([node, "run.js"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, list] = json.loads(done.stdout)  # type: ignore[type-arg]
    return found


@pytest.fixture(scope="module", params=["unigram", "wordpiece"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    kind: Kind = request.param
    return train_tokenizer(make_sentences(), VocabularyOptions(kind=kind, vocab_size=SIZES[kind]))


def test_ids_and_pairs_are_those_of_python(tokenizer: Tokenizer, tmp_path: Path) -> None:
    texts = [*make_sentences(60), *rare_lines()]
    found = run_node(tmp_path, tokenizer, texts)
    expected = tokenizer.encode_batch(texts)
    assert found["ids"] == expected
    form = build_form(tokenizer, max_length=40, num_segments=2)
    for number, pair in enumerate(found["pairs"]):
        sequence = form.join(expected[number], expected[(number + 1) % len(expected)])
        assert pair["ids"] == sequence.token_ids.tolist()
        rest = len(sequence.token_ids) - sequence.num_first
        assert pair["types"] == [0] * sequence.num_first + [1] * rest


def test_every_token_has_its_place_in_the_text_as_it_was_written(tokenizer: Tokenizer, tmp_path: Path) -> None:
    texts = [*make_sentences(20), *iter_rare_lines(1500)]
    found = run_node(tmp_path, tokenizer, texts)
    for text, ids, places in zip(texts, found["ids"], found["places"], strict=True):
        expected = tokenizer.encode_with_offsets(text)
        assert (ids, [tuple(place) for place in places]) == (expected.token_ids, expected.offsets), text


def test_masks_stand_for_words(tokenizer: Tokenizer, tmp_path: Path) -> None:
    texts = ["[MASK] river", "the ([MASK]), of [MASK].", "walks  [MASK]  slowly [MASK]", "a [MASK], 2010, [MASK] it"]
    assert run_node(tmp_path, tokenizer, texts)["masked"] == [encode_masked(tokenizer, text)[0] for text in texts]


def test_the_official_vocabulary_is_read_too(real_data: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(real_data / "vocab" / "albert-30k.model")
    lines = (real_data / "glue" / "SST-2" / "dev.tsv").read_text("utf-8").split("\n")[1:300]
    texts = [*lines, *rare_lines(), "In 2010, some 1,000 people; 9,999, too."]
    assert run_node(tmp_path, tokenizer, texts)["ids"] == tokenizer.encode_batch(texts)


def test_chinese_characters_are_converted_as_in_python(tmp_path: Path) -> None:
    pytest.importorskip("opencc")
    texts = ["台湾的图书馆在发展 OpenCC 2。", "臺灣的圖書館在發展ＡＢ！"]
    (tmp_path / "vocab.txt").write_text("\n".join([*BERT_SPECIAL, *dict.fromkeys(texts[0]), "open"]), "utf-8")
    tokenizer = load_tokenizer(tmp_path / "vocab.txt").adapted(script="simplified")
    found = run_node(tmp_path, tokenizer, texts)
    assert found["ids"] == tokenizer.encode_batch(texts)
    assert found["ids"][0][:8] == found["ids"][1][:8]
    for text, places in zip(texts, found["places"], strict=True):
        assert [tuple(place) for place in places] == tokenizer.encode_with_offsets(text).offsets


def test_a_byte_level_vocabulary_is_refused() -> None:
    tokenizer = train_tokenizer(make_sentences(), VocabularyOptions(kind="bpe", vocab_size=SIZES["bpe"]))
    with refuses(ConfigError, "no-web-tokenizer"):
        describe_vocabulary(tokenizer, build_form(tokenizer, max_length=40, num_segments=1))


@pytest.mark.parametrize(
    "changes", [{"model_type": "bpe"}, {"byte_fallback": True}, {"normalization_rule_name": "identity"}]
)
def test_other_kinds_of_sentencepiece_are_refused(changes: dict[str, object], tmp_path: Path) -> None:
    options = {"vocab_size": 400, "hard_vocab_limit": False, "minloglevel": 2} | changes
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(make_sentences()), model_prefix=str(tmp_path / "other"), **options
    )
    with refuses(ConfigError, "no-web-tokenizer"):
        check_model((tmp_path / "other.model").read_bytes())
