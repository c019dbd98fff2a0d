"""Search by meaning: against a plain product of float vectors, through changes of the texts, and through kills."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses
from typer.testing import CliRunner

import litebert
from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.cli.main import app
from litebert.core.errors import ConfigError, DataError
from litebert.corpus.documents import Document
from litebert.inference.predictor import Label, Predictor, load
from litebert.search import build as module
from litebert.search.build import IndexOptions, build_index
from litebert.search.index import SearchIndex, read_index
from litebert.search.passages import cut_passages
from litebert.search.segment import row_type
from litebert.text.tokenizer import Tokenizer
from litebert.verify import verify
from tests.conftest import invent_documents


@pytest.fixture(scope="module")
def model(tiny_checkpoint: Path) -> Predictor:
    return load(tiny_checkpoint)


def make_documents(num: int, seed: int = 5) -> list[Document]:
    found = invent_documents(num, seed)
    return [Document(f"{number}.txt:1", tuple(sentences)) for number, sentences in enumerate(found)]


def index(folder: Path, model: Predictor, documents: list[Document], **options: object) -> module.IndexResult:
    made = replace(IndexOptions(passage_tokens=16), **options)  # type: ignore[arg-type]
    return build_index(documents, folder, model, made, title=str(model.checkpoint.path))


def list_hits(folder: Path, model: Predictor, k: int = 10_000) -> list[tuple[str, str, float]]:
    """Everything that a question finds, in an order that does not depend on where it is stored."""
    found = SearchIndex(folder, model=model).search("a river near the old house", k)
    return sorted((hit.document, hit.text, hit.score) for hit in found)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_search_is_the_product_of_all_vectors(precision: str, model: Predictor, tmp_path: Path) -> None:
    documents = make_documents(60)
    index(tmp_path / "index", model, documents, precision=precision)
    passages = [(document.id, text) for document in documents for text in cut_passages(document, model.tokenizer, 16)]
    query = "the cat follows a bird"
    vectors, question = model.embed([text for _, text in passages]), model.embed([query])[0]
    expected = vectors @ question
    hits = SearchIndex(tmp_path / "index", model=model).search(query, k=len(passages))
    assert len(hits) == len(passages) == len(SearchIndex(tmp_path / "index"))
    tolerance = {"float32": 1e-5, "int8": 0.01}[precision]
    by_passage = dict(zip(passages, expected, strict=True))
    assert all(abs(hit.score - by_passage[hit.document, hit.text]) < tolerance for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    if precision == "float32":
        assert {hit.text for hit in hits[:5]} == {passages[n][1] for n in np.argsort(-expected)[:5]}


def test_blocks_and_segments_do_not_change_what_is_found(
    model: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = make_documents(50)
    index(tmp_path / "one", model, documents)
    whole = list_hits(tmp_path / "one", model, k=20)
    monkeypatch.setattr(module, "_BATCH_PASSAGES", 10)
    monkeypatch.setattr(module, "_SEGMENT_PASSAGES", 15)
    monkeypatch.setattr("litebert.search.segment._BLOCK_ROWS", 7)
    index(tmp_path / "many", model, documents)
    assert len(read_index(tmp_path / "many").segments) > 3
    assert [hit[:2] for hit in list_hits(tmp_path / "many", model, k=20)] == [hit[:2] for hit in whole]


def test_passages_are_sentences_that_fit_and_nothing_is_lost(tiny_tokenizer: Tokenizer) -> None:
    long = " ".join(["house"] * 50)
    document = Document("x:1", ("The cat sees a dog.", "A bird.", long, "old" * 30, "The tree and the river."))
    passages = cut_passages(document, tiny_tokenizer, 8)
    assert max(len(tiny_tokenizer.encode(passage)) for passage in passages) <= 8
    assert "".join(passages).replace(" ", "") == "".join(document.sentences).replace(" ", "")


def test_a_sentence_without_tokens_begins_no_passage(tiny_tokenizer: Tokenizer) -> None:
    assert tiny_tokenizer.encode("\u200b") == []  # a zero-width space
    assert cut_passages(Document("x:1", ("\u200b", "A cat.", "\u200b")), tiny_tokenizer, 8) == ["A cat. \u200b"]
    assert cut_passages(Document("x:1", ("\u200b",)), tiny_tokenizer, 8) == []


def test_only_what_is_new_is_embedded_and_what_is_gone_is_not_found(
    model: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded: list[str] = []
    embed = module.embed
    monkeypatch.setattr(module, "embed", lambda m, texts, cut: embedded.extend(texts) or embed(m, texts, cut))
    documents = make_documents(40)
    first = index(tmp_path / "index", model, documents[:30])
    assert len(embedded) == first.num_new == first.record.num_passages

    embedded.clear()
    moved = [document._replace(id=f"moved/{document.id}") for document in documents[5:10]]
    second = index(tmp_path / "index", model, [*moved, *documents[10:]])
    new = {text for document in documents[30:] for text in cut_passages(document, model.tokenizer, 16)}
    assert set(embedded) == new
    assert second.num_removed == sum(len(cut_passages(one, model.tokenizer, 16)) for one in documents[:5])

    index(tmp_path / "fresh", model, [*moved, *documents[10:]])
    grown, fresh = list_hits(tmp_path / "index", model), list_hits(tmp_path / "fresh", model)
    assert [hit[:2] for hit in grown] == [hit[:2] for hit in fresh]
    assert np.allclose([hit[2] for hit in grown], [hit[2] for hit in fresh], atol=0.01)  # batches differ


def test_a_segment_that_lost_most_of_its_passages_is_written_again(model: Predictor, tmp_path: Path) -> None:
    documents = make_documents(40)
    index(tmp_path / "index", model, documents)
    index(tmp_path / "index", model, documents[:4])
    (segment,) = read_index(tmp_path / "index").segments
    assert segment.name == "000002"
    assert segment.removed == ()
    assert sorted(path.name for path in (tmp_path / "index").glob("0*")) == ["000002.jsonl", "000002.vectors"]
    index(tmp_path / "fresh", model, documents[:4])
    assert [hit[:2] for hit in list_hits(tmp_path / "index", model)] == [
        hit[:2] for hit in list_hits(tmp_path / "fresh", model)
    ]


@pytest.mark.parametrize("killed_at", range(1, 8))
def test_a_kill_at_any_write_leaves_an_index_that_the_same_call_completes(
    killed_at: int, model: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = make_documents(30)
    index(tmp_path / "index", model, documents[:20])
    before = list_hits(tmp_path / "index", model)
    monkeypatch.setattr(module, "_BATCH_PASSAGES", 20)
    monkeypatch.setattr(module, "_SEGMENT_PASSAGES", 20)
    replace_file, calls = Path.replace, iter(range(1, 1000))

    def kill(self: Path, target: Path) -> Path:
        if next(calls) == killed_at:
            raise KeyboardInterrupt
        return replace_file(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", kill)
        with pytest.raises(KeyboardInterrupt):
            index(tmp_path / "index", model, documents[10:])
    found = {hit[:2] for hit in list_hits(tmp_path / "index", model)}
    assert {hit[:2] for hit in before if hit[0] in {document.id for document in documents[10:20]}} <= found
    index(tmp_path / "index", model, documents[10:])
    index(tmp_path / "fresh", model, documents[10:])
    assert [hit[:2] for hit in list_hits(tmp_path / "index", model)] == [
        hit[:2] for hit in list_hits(tmp_path / "fresh", model)
    ]


@pytest.mark.parametrize("killed_at", [1, 2, 3])
def test_a_first_call_that_was_killed_is_repeated_and_other_files_are_left_alone(
    killed_at: int, model: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "index"
    replace_file, calls = Path.replace, iter(range(1, 1000))

    def kill(self: Path, target: Path) -> Path:
        if next(calls) == killed_at:
            shutil.copy(self, folder / ".000001.vectors.x.tmp")  # nothing cleans up after a SIGKILL
            raise KeyboardInterrupt
        return replace_file(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", kill)
        with pytest.raises(KeyboardInterrupt):
            index(folder, model, make_documents(10))
    index(folder, model, make_documents(10))
    assert {path.name for path in folder.iterdir()} == {".lock", "000001.jsonl", "000001.vectors", "index.json"}
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "000001.jsonl").write_text("{}")
    with refuses(ConfigError, "output-exists", at="rows"):
        index(tmp_path / "rows", model, make_documents(10))
    assert (tmp_path / "rows" / "000001.jsonl").is_file()


def test_another_model_and_a_changed_file_are_refused(model: Predictor, tmp_path: Path) -> None:
    index(tmp_path / "index", model, make_documents(10))
    other = litebert.build_model(model.checkpoint.config, ["mlm"], seed=9)
    save_checkpoint(tmp_path / "other", other, model.tokenizer, CheckpointContent(step=0))
    with pytest.raises(ConfigError) as refused:
        SearchIndex(tmp_path / "index", model=tmp_path / "other").search("a cat")
    assert refused.value.code == "wrong-model"
    with pytest.raises(ConfigError) as refused:
        index(tmp_path / "index", model, make_documents(10), precision="float32")
    assert refused.value.code == "other-index"
    shutil.copytree(tmp_path / "index", tmp_path / "cut")
    (vectors,) = (tmp_path / "cut").glob("*.vectors")
    vectors.write_bytes(vectors.read_bytes()[:-1])
    with pytest.raises(DataError) as corrupt:
        SearchIndex(tmp_path / "cut", model=model).search("a cat")
    assert corrupt.value.code == "corrupt-file"
    root = json.loads((tmp_path / "index" / "index.json").read_text("utf-8"))
    root["passage_tokens"] = 17
    (tmp_path / "index" / "index.json").write_text(json.dumps(root), "utf-8")
    with pytest.raises(DataError):
        SearchIndex(tmp_path / "index")


def test_a_flipped_bit_is_found_by_verify(model: Predictor, tmp_path: Path) -> None:
    index(tmp_path / "index", model, make_documents(10))
    (found,) = verify(tmp_path / "index")
    assert (found.kind, found.problems) == ("search index", ())
    (vectors,) = (tmp_path / "index").glob("*.vectors")
    data = bytearray(vectors.read_bytes())
    data[row_type(32, "int8").itemsize + 15] ^= 4
    vectors.write_bytes(data)
    (found,) = verify(tmp_path / "index")
    assert str(vectors) in found.problems[0]


def test_an_index_without_text_is_refused_and_leaves_nothing(model: Predictor, tmp_path: Path) -> None:
    with pytest.raises(DataError) as refused:
        index(tmp_path / "index", model, [])
    assert refused.value.code == "no-text"
    assert not (tmp_path / "index").exists()


def test_the_commands_of_the_documentation_work(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "articles").mkdir()
    text = "\n\n".join("\n".join(sentences) for sentences in invent_documents(20, seed=3))
    (tmp_path / "articles" / "text.txt").write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    made = run(app, ["search", "index", "articles", "--model", str(tiny_checkpoint), "--out", "index"])
    assert made.exit_code == 0, made.output
    assert "passages of 20 documents" in made.stdout
    found = run(app, ["search", "query", "index", "a cat", "the river", "-n", "2", "--json"])
    answers = json.loads(found.stdout)
    assert [answer["question"] for answer in answers] == ["a cat", "the river"]
    assert [len(answer["passages"]) for answer in answers] == [2, 2]
    again = litebert.build_index("articles", "index", model=tiny_checkpoint)
    assert (again.metrics["new"], again.metrics["removed"]) == (0, 0)


def test_a_reranker_puts_first_what_it_prefers(model: Predictor, tmp_path: Path) -> None:
    class Longest:
        """Prefers long passages."""

        def classify(self, pairs: list[tuple[str, str]]) -> list[Label]:
            return [Label(len(passage), {}) for _, passage in pairs]

    index(tmp_path / "index", model, make_documents(30))
    opened = SearchIndex(tmp_path / "index", model=model)
    candidates = opened.search("a cat", k=15)
    hits = opened.search("a cat", k=3, reranker=Longest())  # type: ignore[arg-type]
    assert [hit.text for hit in hits] == sorted((hit.text for hit in candidates), key=len, reverse=True)[:3]


def test_a_reranking_classifier_needs_one_of_its_labels(model: Predictor, tmp_path: Path) -> None:
    class Classifier:
        """Knows two labels."""

        def classify(self, pairs: list[tuple[str, str]]) -> list[Label]:
            return [Label("yes", {"no": 0.1, "yes": 0.9}) for _ in pairs]

    index(tmp_path / "index", model, make_documents(5))
    opened = SearchIndex(tmp_path / "index", model=model)
    for label in (None, "maybe"):
        with pytest.raises(ConfigError, match="one of no, yes") as caught:
            opened.search("a cat", reranker=Classifier(), label=label)  # type: ignore[arg-type]
        assert (caught.value.code, caught.value.option) == ("unknown-label", "label")
