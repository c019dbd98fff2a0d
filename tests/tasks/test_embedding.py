"""The task `embedding`: what its losses are, what its scores are, and that it is learned, served and exported."""

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refuses
from scipy.stats import spearmanr
from small_tasks import ANIMALS, PLACES, find, find_animal, invent_rows, write_rows
from torch.nn import functional as F

import litebert
from litebert.core.errors import ConfigError, DataError
from litebert.model.model import build_model
from litebert.tasks.group_batch import build_group_batch, cut_micro_batches
from litebert.tasks.groups import build_form
from litebert.tasks.kinds.embedding import EmbeddedText, Embedding, Taught, contrastive_loss, cosent_loss, vector_loss
from litebert.text.tokenizer import Tokenizer
from tests.small_configs import TINY

QUICK = {
    "seed": 3,
    "train.steps": 80,
    "train.evaluations": 2,
    "train.batch_size": 9,
    "train.max_length": 24,
    "optim.learning_rate": 0.01,
    "model.dropout_rate": 0.0,
    "train.patience": 0,
}
TEXTS = ["the old cat", "a bird", "the small new dog sees a river near the old house and a large tree"]


def random_vectors(*shape: int) -> torch.Tensor:
    return F.normalize(torch.randn(*shape, generator=torch.Generator().manual_seed(1)), dim=-1)


def name_pairs(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Texts with their animal, once for each different text."""
    return list({row["text"]: {"query": row["text"], "passage": f"one {row['label']}"} for row in rows}.values())


def score_pairs(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Consecutive texts, with 1 for the same animal and 1 for the same place."""
    pairs = []
    for one, other in pairwise(rows):
        words = [one["text"].split(), other["text"].split()]
        score = (find(words[0], ANIMALS) == find(words[1], ANIMALS)) + (
            find(words[0], PLACES) == find(words[1], PLACES)
        )
        pairs.append({"sentence1": one["text"], "sentence2": other["text"], "score": score})
    return pairs


def name_triplets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    others = {animal: ANIMALS[(n + 1) % 3] for n, animal in enumerate(ANIMALS)}
    return [
        {"anchor": row["text"], "positive": f"one {row['label']}", "negative": f"one {others[row['label']]}"}
        for row in rows
    ]


# ---- losses


def test_the_contrastive_loss_is_that_of_its_formula() -> None:
    vectors, texts = random_vectors(5, 2, 8), torch.arange(10).view(5, 2)
    scores = vectors[:, 0] @ vectors[:, 1].T / 0.1
    expected = sum(
        -scores[i, i] + math.log(sum(math.exp(s) for s in line)) for m in (scores, scores.T) for i, line in enumerate(m)
    )
    assert contrastive_loss(vectors, texts, 0.1).item() == pytest.approx(float(expected) / 10, rel=1e-5)


def test_a_negative_of_its_own_is_one_more_candidate() -> None:
    vectors, texts = random_vectors(4, 3, 8), torch.arange(12).view(4, 3)
    forth = vectors[:, 0] @ torch.cat([vectors[:, 1], vectors[:, 2]]).T / 0.1
    back = vectors[:, 1] @ vectors[:, 0].T / 0.1
    expected = (F.cross_entropy(forth, torch.arange(4)) + F.cross_entropy(back, torch.arange(4))) / 2
    assert contrastive_loss(vectors, texts, 0.1).item() == pytest.approx(expected.item(), rel=1e-5)


def test_an_equal_text_is_no_negative() -> None:
    """Rows 0 and 2 have the same second text, so each loses one candidate, as if the other were not in the batch."""
    vectors = random_vectors(3, 2, 8)
    vectors[2, 1] = vectors[0, 1]
    texts = torch.tensor([[0, 1], [2, 3], [4, 1]])
    scores = vectors[:, 0] @ vectors[:, 1].T / 0.1
    scores[0, 2] = scores[2, 0] = -math.inf
    expected = (F.cross_entropy(scores, torch.arange(3)) + F.cross_entropy(scores.T, torch.arange(3))) / 2
    assert contrastive_loss(vectors, texts, 0.1).item() == pytest.approx(expected.item(), rel=1e-5)


def test_the_loss_of_scores_is_that_of_cosent() -> None:
    cosines, scores = torch.tensor([0.9, 0.1, 0.5, 0.3]), torch.tensor([1.0, 3.0, 2.0, 2.0])
    terms = [math.exp((cosines[j] - cosines[i]) / 0.05) for i in range(4) for j in range(4) if scores[i] > scores[j]]
    assert cosent_loss(cosines, scores, 0.05).item() == pytest.approx(math.log(1 + sum(terms)), rel=1e-5)


def test_a_perfect_model_has_the_least_loss() -> None:
    texts = torch.arange(8).view(4, 2)
    perfect = torch.eye(8)[:4, None].expand(4, 2, 8)
    assert contrastive_loss(perfect, texts, 0.05) < 1e-6
    ordered = torch.tensor([0.9, 0.5, 0.1])
    assert cosent_loss(ordered, ordered, 0.01) < 1e-6 < cosent_loss(ordered.flip(0), ordered, 0.01)
    vectors = random_vectors(6, 8)
    assert vector_loss(vectors, 3 * vectors) < 1e-6 < vector_loss(vectors, vectors.flip(0))


# ---- vectors


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_padding_never_changes_a_vector(pooling: Any, tiny_tokenizer: Tokenizer) -> None:
    model = build_model(TINY, ())
    task, form = Embedding(pooling=pooling), build_form(tiny_tokenizer, max_length=32, num_segments=2)
    groups = task.encode([EmbeddedText(str(n), text) for n, text in enumerate(TEXTS)], tiny_tokenizer, form)
    together = task.predict(model, build_group_batch(groups, form.pad_id), groups)
    for group, vectors in zip(groups, together, strict=True):
        (alone,) = task.predict(model, build_group_batch([group], form.pad_id), [group])
        np.testing.assert_allclose(vectors, alone, atol=1e-6)


def test_micro_batches_of_scored_texts_add_up_to_the_batch(tiny_tokenizer: Tokenizer) -> None:
    """Without negatives the loss of a text does not depend on the others."""
    model, task = build_model(TINY, ()).eval(), Embedding(form="vectors", sizes=(4, 8))
    form = build_form(tiny_tokenizer, max_length=32, num_segments=2)
    rows = random_vectors(len(TEXTS), TINY.hidden_size).numpy()
    examples = [EmbeddedText(str(n), text, label=1.0, taught=Taught(rows[n])) for n, text in enumerate(TEXTS)]
    groups = task.encode(examples, tiny_tokenizer, form)
    totals = {"groups": len(groups)}
    whole = task.loss(model, build_group_batch(groups, form.pad_id), totals).loss
    parts = [task.loss(model, part, totals).loss for part in cut_micro_batches(groups, 1, form.pad_id)]
    assert sum(parts).item() == pytest.approx(whole.item(), rel=1e-5)  # type: ignore[attr-defined]


# ---- scores


def test_retrieval_scores_are_those_of_a_plain_search() -> None:
    vectors = random_vectors(40, 2, 4).numpy()
    examples = [EmbeddedText(str(n), f"q{n}", f"p{n}", 1.0) for n in range(40)]
    scores = Embedding().score([[a.tolist(), b.tolist()] for a, b in vectors], examples)
    order = (-(vectors[:, 0] @ vectors[:, 1].T)).argsort(1)
    ranks = np.array([1 + row.tolist().index(n) for n, row in enumerate(order)])
    assert scores["recall@1"] == (ranks <= 1).mean()
    assert scores["recall@10"] == (ranks <= 10).mean()
    assert scores["mrr@10"] == pytest.approx(np.where(ranks <= 10, 1 / ranks, 0).mean())
    assert scores["ndcg@10"] == pytest.approx(np.where(ranks <= 10, 1 / np.log2(1 + ranks), 0).mean())


def test_another_right_text_does_not_lower_a_rank() -> None:
    examples = [EmbeddedText(str(n), "q", f"p{n}", 1.0) for n in range(3)]
    vectors = [[[1.0, 0.0], [1.0, 0.1 * n]] for n in range(3)]
    assert Embedding().score(vectors, examples)["recall@1"] == 1


def test_a_model_without_an_opinion_finds_nothing() -> None:
    examples = [EmbeddedText(str(n), f"q{n}", f"p{n}", 1.0) for n in range(30)]
    assert Embedding().score([[[1.0, 0.0], [1.0, 0.0]]] * 30, examples)["recall@10"] == 0


def test_scored_pairs_are_correlated_with_their_cosines() -> None:
    vectors = random_vectors(30, 2, 4).numpy()
    labels = np.random.default_rng(0).permutation(30).astype(float)
    examples = [EmbeddedText(str(n), "a", "b", label) for n, label in enumerate(labels)]
    scores = Embedding(form="scored").score([[a.tolist(), b.tolist()] for a, b in vectors], examples)
    assert scores["spearman"] == pytest.approx(spearmanr((vectors[:, 0] * vectors[:, 1]).sum(1), labels).statistic)


def test_an_ensembles_cosine_is_the_mean_of_its_members() -> None:
    task, vectors = Embedding(), random_vectors(3, 2, 8).tolist()
    assert task.decide(task.combine(vectors)) == pytest.approx(np.mean([task.decide(one) for one in vectors]), abs=1e-5)


# ---- runs


@pytest.mark.parametrize(
    ("make", "form", "score"),
    [(name_pairs, "pairs", "recall@1"), (score_pairs, "scored", "spearman"), (name_triplets, "triplets", "accuracy")],
)
def test_it_is_learned(make: Any, form: str, score: str, tmp_path: Path, tiny_checkpoint: Path) -> None:
    data = write_rows(tmp_path / "data", make(invent_rows(find_animal, count=48)))
    before = litebert.evaluate(tiny_checkpoint, data, task="embedding").metrics
    run = litebert.finetune(tiny_checkpoint, "embedding", data, {**QUICK, "embedding.sizes": [8]}, out=tmp_path / "run")
    assert run.report["facts"]["form"] == form
    assert run.metrics[score] > max(0.8, before[score])
    assert not run.report["dev"]["dev"]["is_at_chance"]
    assert run.report["dev"]["dev"]["baseline"]["name"] == "BM25"
    assert litebert.evaluate(run, data).metrics == {
        name: run.metrics[name] for name in run.metrics if name != "best_step"
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, tiny_checkpoint: Path) -> Path:
    folder = tmp_path_factory.mktemp("embedding")
    data = write_rows(folder / "data", name_pairs(invent_rows(find_animal, count=48)))
    changes = {**QUICK, "train.steps": 20, "embedding.pooling": "cls", "embedding.normalize": False}
    changes["embedding.sizes"] = [8]
    litebert.finetune(tiny_checkpoint, "embedding", data, changes, out=folder / "run")
    return folder / "run"


def test_predict_embed_and_the_server_give_the_same_vectors(run: Path) -> None:
    pytest.importorskip("fastapi")
    from litebert.server.functions import FUNCTIONS

    predictor = litebert.load(run)
    vectors = predictor.embed(TEXTS)
    answers = [record["answer"] for record in litebert.predict(run, TEXTS)]
    np.testing.assert_allclose(answers, vectors, rtol=1e-5)
    assert abs(np.linalg.norm(vectors[0]) - 1) > 0.1, "it was asked not to normalize"
    possible = [name for name, function in FUNCTIONS.items() if function.is_possible(predictor)]
    assert sorted(possible) == ["embed", "embeddings", "read"]
    served = FUNCTIONS["embeddings"].compute(predictor, TEXTS, {"encoding_format": "float", "dimensions": None})
    np.testing.assert_allclose([json.loads(one.vector) for one in served], vectors, rtol=1e-5)


def test_shorter_vectors_are_the_first_numbers(run: Path) -> None:
    pytest.importorskip("fastapi")
    from litebert.server.functions import FUNCTIONS

    predictor = litebert.load(run)
    whole = predictor.embed(TEXTS, normalize=False)
    assert predictor.vector_sizes == (TINY.hidden_size, 8)
    np.testing.assert_array_equal(predictor.embed(TEXTS, normalize=False, size=8), whole[:, :8])
    assert np.linalg.norm(predictor.embed(TEXTS, normalize=True, size=8), axis=1) == pytest.approx(1)
    with refuses(ConfigError, "out-of-range", at="size"):
        predictor.embed(TEXTS, size=33)
    function = FUNCTIONS["embeddings"]
    settings = {"encoding_format": "float", "dimensions": 8}
    served = function.compute(predictor, TEXTS, settings)
    np.testing.assert_allclose([json.loads(one.vector) for one in served], whole[:, :8], rtol=1e-5)
    assert function.find_bad_setting(predictor, settings) is None
    assert function.find_bad_setting(predictor, {"dimensions": 4}) is not None


def test_a_pair_is_answered_by_its_cosine(run: Path) -> None:
    one, other = litebert.load(run).embed(TEXTS[:2], normalize=True)
    (record,) = litebert.predict(run, [(TEXTS[0], TEXTS[1])])
    assert record["answer"] == pytest.approx(float(one @ other), abs=1e-5)


def test_exports_give_the_same_vectors(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    vectors = litebert.load(run).embed(TEXTS)
    litebert.export(run, tmp_path / "onnx")
    np.testing.assert_allclose(litebert.load(tmp_path / "onnx").embed(TEXTS), vectors, atol=1e-5)
    assert [one["answer"] for one in litebert.predict(tmp_path / "onnx", TEXTS)] == [
        pytest.approx(vector.tolist(), abs=1e-5) for vector in vectors
    ]
    dev = run.parent / "data" / "dev.jsonl"
    measured = litebert.export(run, tmp_path / "int8", int8=True, dev=dev, max_drop=100)
    assert measured.report["accuracy"]["num_examples"] > 10


def test_its_options_are_refused_elsewhere(tmp_path: Path, tiny_checkpoint: Path) -> None:
    data = write_rows(tmp_path / "data", invent_rows())
    with refuses(ConfigError, "conflicting-keys", at="embedding"):
        litebert.finetune(tiny_checkpoint, "classification", data, {"embedding.temperature": 1.0}, out=tmp_path / "run")
    pairs = write_rows(tmp_path / "pairs", name_pairs(invent_rows()))
    with refuses(ConfigError, "out-of-range", at="embedding.sizes"):
        litebert.finetune(tiny_checkpoint, "embedding", pairs, {"embedding.sizes": [32]}, out=tmp_path / "run")
    with refuses(ConfigError, "conflicting-keys", at="train.trainable"):
        litebert.finetune(tiny_checkpoint, "embedding", pairs, {"train.trainable": "head"}, out=tmp_path / "run")
    with refuses(DataError, "ambiguous-column", at="text_b"):
        litebert.finetune(tiny_checkpoint, "embedding", {"text": ["a", "b"]}, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_file_of_answers_cannot_be_scored(tmp_path: Path) -> None:
    from litebert.tasks.catalog import read_dataset
    from litebert.tasks.leaderboard.answer_scores import score_answers

    dataset = read_dataset("embedding", write_rows(tmp_path / "data", name_pairs(invent_rows())))
    with refuses(ConfigError, "unsupported-task"):
        score_answers(dataset, dataset.dev["dev"], {}, where="answers.jsonl")
