"""Distillation of vectors: the laws of the cache and of the loss, and that a student becomes its teacher's likeness."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refuses

import litebert
from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.core.errors import ConfigError, DataError
from litebert.corpus.shards import open_corpus
from litebert.distillation import teacher_vectors
from litebert.distillation.passages import iter_passages, join_sentences
from litebert.distillation.starting import start_from_teacher
from litebert.distillation.teacher_vectors import embed_passages, fit_projection, name_teacher
from litebert.model.model import build_model
from litebert.model.pooling import EmbeddingSpec
from litebert.text.tokenizer import Tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer
from tests.conftest import invent_documents
from tests.small_configs import NARROW, TINY

QUICK: dict[str, Any] = {
    "train.steps": 60,
    "train.batch_size": 32,
    "train.evaluations": 2,
    "train.patience": 0,
    "optim.learning_rate": 0.01,
    "model.dropout_rate": 0.0,
}


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of another tokenizer than the corpus's, as a folder of sentence-transformers."""
    folder = tmp_path_factory.mktemp("teacher")
    sentences = [sentence for document in invent_documents(80, seed=5) for sentence in document]
    tokenizer = train_tokenizer(sentences, VocabularyOptions(kind="wordpiece", vocab_size=90))
    content = CheckpointContent(step=0, embedding=EmbeddingSpec("mean", True, 32))
    model = build_model(replace(TINY, vocab_size=tokenizer.vocab_size), [], seed=7)
    save_checkpoint(folder / "ours", model, tokenizer, content)
    litebert.convert(folder / "ours", folder / "theirs", to="sentence-transformers")
    return folder / "theirs"


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: Tokenizer) -> Path:
    path = tmp_path_factory.mktemp("narrow") / "checkpoint"
    save_checkpoint(path, build_model(NARROW, [], seed=1), tiny_tokenizer, CheckpointContent(step=0))
    return path


def test_passages_are_all_sentences_in_their_order() -> None:
    sentences = [np.arange(10 * n, 10 * n + 7) for n in range(40)]
    parts = list(join_sentences(sentences, np.random.default_rng(1)))
    assert np.array_equal(np.concatenate(parts), np.concatenate(sentences))
    assert len({len(part) for part in parts}) > 3
    assert all(len(part) % 7 == 0 for part in parts)


def test_the_first_passages_do_not_depend_on_how_many_are_taken(tiny_corpus: Path) -> None:
    passages = list(iter_passages(open_corpus(tiny_corpus)))
    assert passages == list(iter_passages(open_corpus(tiny_corpus)))
    documents = [passage.document for passage in passages]
    assert len(set(documents)) == open_corpus(tiny_corpus).num_documents
    assert documents[:20] != sorted(documents)[:20], "they sample the whole corpus"


def test_cached_and_recomputed_vectors_have_the_same_bytes(
    teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teacher_vectors, "SHARD", 8)
    predictor = litebert.load(teacher, threads=1)
    texts = [" ".join(sentences) for sentences in invent_documents(20, seed=3)]
    first = embed_passages(predictor, texts, tmp_path / "vectors")
    files = sorted((tmp_path / "vectors").iterdir())
    assert len(files) == 3
    written = [file.read_bytes() for file in files]
    files[1].unlink()  # as after a kill
    done: list[int] = []
    again = embed_passages(predictor, texts, tmp_path / "vectors", done.append)
    assert done == [8, 16, 20]
    assert again.tobytes() == first.tobytes()
    assert [file.read_bytes() for file in files] == written
    fewer = embed_passages(predictor, texts[:12], tmp_path / "vectors")
    assert fewer.tobytes() == first[:12].tobytes()
    content = bytearray(files[0].read_bytes())
    content[-1] ^= 1
    files[0].write_bytes(bytes(content))
    with refuses(DataError, "corrupt-arrays", at=files[0].name):
        embed_passages(predictor, texts, tmp_path / "vectors")


def test_another_teacher_has_vectors_of_its_own(teacher: Path, tiny_checkpoint: Path) -> None:
    names = {name_teacher(litebert.load(path)) for path in (teacher, tiny_checkpoint)}
    assert len(names) == 2


def test_a_projection_to_all_directions_keeps_every_product() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float16)
    projection, kept = fit_projection(vectors, 6)
    products = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    projected = vectors.astype(np.float64) @ projection
    np.testing.assert_allclose(projected @ projected.T, products, atol=1e-4)
    assert kept == pytest.approx(1)
    assert fit_projection(vectors, 3)[1] < fit_projection(vectors, 4)[1] < 1


def test_a_student_equal_to_its_teacher_has_no_loss(tiny_corpus: Path, tiny_checkpoint: Path, tmp_path: Path) -> None:
    changes = {"train.steps": 2, "optim.learning_rate": 1e-9, "model.dropout_rate": 0.0, "train.log_every": 1}
    run = litebert.distill(
        tiny_checkpoint, tiny_checkpoint, tiny_corpus, tmp_path / "run", changes, passages=40, cache=tmp_path / "cache"
    )
    log = (tmp_path / "run" / "metrics.jsonl").read_text()
    losses = [float(line.split('"loss": ')[1].split(",")[0].rstrip("}\n")) for line in log.splitlines()]
    assert losses
    assert all(abs(loss) < 1e-5 for loss in losses)  # the cache has float16
    assert run.metrics["cosine"] > 0.9999


def test_a_student_learns_with_another_tokenizer_and_shorter_vectors(
    teacher: Path, narrow: Path, tiny_corpus: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    run = litebert.distill(teacher, narrow, tiny_corpus, tmp_path / "run", QUICK, passages=400, cache=cache)
    assert run.report["distillation"]["size"] == NARROW.hidden_size < TINY.hidden_size
    assert 0.5 < run.report["distillation"]["kept"] < 1
    history = [record["dev_cosine"] for record in run.report["history"]]
    assert history[-1] > 0.9
    texts = [" ".join(document) for document in invent_documents(40, seed=11)]
    products = [litebert.load(model).embed(texts) for model in (teacher, run, narrow)]
    wanted, learned, before = ((vectors @ vectors.T)[np.triu_indices(len(texts), 1)] for vectors in products)
    assert np.corrcoef(wanted, learned)[0, 1] > max(0.3, np.corrcoef(wanted, before)[0, 1])
    report = (tmp_path / "run" / "report.json").read_bytes()
    litebert.distill(teacher, narrow, tiny_corpus, tmp_path / "run", QUICK, passages=400, cache=cache)
    assert (tmp_path / "run" / "report.json").read_bytes() == report


def test_a_preset_becomes_a_student_of_the_corpus(teacher: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "small.toml"
    shape = "embedding_size = 8\nhidden_size = 16\nffn_size = 24\nnum_layers = 2\nnum_heads = 2\nmax_positions = 32"
    recipe.write_text(f"[model]\nvocab_size = 100\n{shape}\n")
    changes = {**QUICK, "train.steps": 2}
    for _ in range(2):  # made, and resumed
        run = litebert.distill(
            teacher, recipe, tiny_corpus, tmp_path / "run", changes, passages=40, cache=tmp_path / "cache"
        )
    assert litebert.load(run).checkpoint.config.hidden_size == 16
    with refuses(ConfigError, "conflicting-options", at="student"):
        litebert.distill(teacher, "albert-base", tiny_corpus, tmp_path / "wide", passages=40)
    with refuses(ConfigError, "options-changed"):
        recipe.write_text(recipe.read_text().replace("num_layers = 2", "num_layers = 1"))
        litebert.distill(teacher, recipe, tiny_corpus, tmp_path / "run", changes, passages=40)


def make_teacher(folder: Path, tokenizer: Tokenizer, **changes: Any) -> Path:
    config = replace(TINY, has_pooler=False, sharing="none", **changes)
    save_checkpoint(folder, build_model(config, [], seed=7), tokenizer, CheckpointContent(step=0))
    return folder


def test_a_student_of_its_teachers_shape_starts_as_its_teacher(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    teacher = load_checkpoint(make_teacher(tmp_path / "teacher", tiny_tokenizer))
    shape = replace(teacher.config, max_positions=32)
    started, note = start_from_teacher(shape, build_model(shape, []).state_dict(), teacher, has_same_tokens=True)
    theirs = teacher.load_weights()
    assert started.keys() == theirs.keys()
    assert all(torch.equal(tensor, theirs[name][: len(tensor)]) for name, tensor in started.items())
    assert "equal" in note


def test_a_shared_block_is_the_mean_of_the_teachers(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    teacher = load_checkpoint(make_teacher(tmp_path / "teacher", tiny_tokenizer, num_layers=3))
    shape, theirs = replace(teacher.config, sharing="all"), teacher.load_weights()
    weights = build_model(shape, []).state_dict()
    started, _ = start_from_teacher(shape, weights, teacher, has_same_tokens=False)
    name = "encoder.{}.{}.{}.weight"
    expected = sum(theirs[name.format("ffn", n, "up")] for n in range(3)) / 3
    torch.testing.assert_close(started[name.format("ffn", 0, "up")], expected)
    assert torch.equal(started["encoder.embeddings.token.weight"], weights["encoder.embeddings.token.weight"])
    halves = replace(shape, sharing="none", num_layers=1)
    started, _ = start_from_teacher(halves, build_model(halves, []).state_dict(), teacher, has_same_tokens=False)
    torch.testing.assert_close(started[name.format("ffn", 0, "up")], expected)


def test_a_narrower_table_is_the_best_of_its_rank(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    teacher = load_checkpoint(make_teacher(tmp_path / "teacher", tiny_tokenizer, embedding_size=TINY.hidden_size))
    shape = replace(teacher.config, embedding_size=8)
    started, note = start_from_teacher(shape, build_model(shape, []).state_dict(), teacher, has_same_tokens=True)
    table = teacher.load_weights()["encoder.embeddings.token.weight"]
    values = torch.linalg.svdvals(table)
    lost = (values[8:].square().sum() / values.square().sum()).sqrt()
    assert f"{lost:.1%}" in note
    assert started["encoder.embeddings.token.weight"].shape == (100, 8)
    norms = started["encoder.embeddings.token.weight"].square().sum()
    assert norms / table.square().sum() == pytest.approx(1 - float(lost) ** 2, rel=1e-4)
    same_width = replace(shape, embedding_size=16, hidden_size=16)
    with refuses(ConfigError, "conflicting-options", at="hidden_size"):
        start_from_teacher(same_width, build_model(same_width, []).state_dict(), teacher, has_same_tokens=True)
    long = replace(shape, max_positions=128)
    with refuses(ConfigError, "conflicting-options", at="positions"):
        start_from_teacher(long, build_model(long, []).state_dict(), teacher, has_same_tokens=True)


def test_a_new_student_may_start_from_its_teacher(tiny_corpus: Path, tiny_checkpoint: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "same.toml"
    names = ("vocab_size", "embedding_size", "hidden_size", "ffn_size", "num_layers", "num_heads", "max_positions")
    recipe.write_text("[model]\n" + "".join(f"{name} = {getattr(TINY, name)}\n" for name in names))
    changes = {"train.steps": 1, "optim.learning_rate": 1e-9, "model.dropout_rate": 0.0}
    run = litebert.distill(
        tiny_checkpoint,
        recipe,
        tiny_corpus,
        tmp_path / "run",
        changes,
        passages=40,
        cache=tmp_path / "c",
        start="teacher",
    )
    assert run.metrics["cosine"] > 0.9999  # before it has learned anything
    with refuses(ConfigError, "options-changed"):
        litebert.distill(tiny_checkpoint, recipe, tiny_corpus, tmp_path / "run", changes, passages=40)
    with refuses(ConfigError, "conflicting-options", at="start"):
        litebert.distill(tiny_checkpoint, tiny_checkpoint, tiny_corpus, tmp_path / "other", start="teacher")
