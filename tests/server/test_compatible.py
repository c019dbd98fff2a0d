"""The endpoints in the form of other APIs: what their clients send is answered as they expect, with our numbers."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient
from numpy.typing import NDArray
from refusals import refuses
from tiny_server import ServeTiny

from litebert.core.errors import ConfigError
from litebert.inference.predictor import Predictor
from litebert.server.app import build_app
from litebert.server.models import NamedModel
from litebert.server.options import Limits, ServeOptions

TEXTS = ["the cat", "a small dog near the river and the old house", "bird", ""]
QUERY = "the old cat"
DOCUMENTS = ["a dog near the river", "the cat", "a small bird sees the house", "the cat"]


def post(client: TestClient, path: str, body: dict[str, Any]) -> Any:
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def read_vectors(answer: Any) -> NDArray[np.float32]:
    """The vectors of an answer, in either format."""
    assert [one["index"] for one in answer["data"]] == list(range(len(answer["data"])))
    given = [one["embedding"] for one in answer["data"]]
    vectors = [np.frombuffer(base64.b64decode(one), "<f4") if isinstance(one, str) else one for one in given]
    return np.array(vectors, np.float32)


@pytest.mark.parametrize("encoding_format", ["float", "base64"])
def test_embeddings_are_exactly_those_of_python(
    client: TestClient, predictors: dict[str, Predictor], encoding_format: str
) -> None:
    answer = post(client, "/v1/embeddings", {"input": TEXTS, "model": "words", "encoding_format": encoding_format})
    assert np.array_equal(read_vectors(answer), predictors["words"].embed(TEXTS))
    assert (answer["object"], answer["model"]) == ("list", "words")
    assert {one["object"] for one in answer["data"]} == {"embedding"}


def test_a_single_text_is_a_list_of_one(client: TestClient, predictors: dict[str, Predictor]) -> None:
    answer = post(client, "/v1/embeddings", {"input": "the cat", "model": "words"})
    assert np.array_equal(read_vectors(answer), predictors["words"].embed(["the cat"]))


def test_usage_counts_the_tokens_that_were_read(client: TestClient, predictors: dict[str, Predictor]) -> None:
    encode = predictors["words"].tokenizer.encode_batch
    num_tokens = sum(len(ids) + 2 for ids in encode(TEXTS))  # [CLS] and [SEP]
    answer = post(client, "/v1/embeddings", {"input": TEXTS})
    assert answer["usage"] == {"prompt_tokens": num_tokens, "total_tokens": num_tokens}
    long = post(client, "/v1/embeddings", {"input": "the " * 100, "model": "words"})
    assert (long["usage"]["prompt_tokens"], long["data"][0]["num_cut"]) == (64, 38)


def test_dimensions_may_only_be_those_of_the_model(client: TestClient, predictors: dict[str, Predictor]) -> None:
    size = predictors["words"].checkpoint.config.hidden_size
    body = {"input": "the cat", "model": "words"}
    assert post(client, "/v1/embeddings", body | {"dimensions": size}) == post(client, "/v1/embeddings", body)
    refused = client.post("/v1/embeddings", json=body | {"dimensions": size - 1})
    assert (refused.status_code, refused.json()["error"]["where"]) == (422, "dimensions")
    assert str(size) in refused.json()["error"]["message"]


def expect_order(scores: list[float]) -> list[int]:
    return sorted(range(len(scores)), key=lambda index: -scores[index])


def test_a_classifier_reranks_by_the_probability_of_the_label(
    client: TestClient, predictors: dict[str, Predictor]
) -> None:
    answers = predictors["pairs"].classify([(QUERY, text) for text in DOCUMENTS])
    for label in ("no", "yes"):
        scores = [one.probabilities[label] for one in answers]
        body = {"query": QUERY, "documents": DOCUMENTS, "model": "pairs", "label": label}
        results = post(client, "/v1/rerank", body)["results"]
        assert [one["index"] for one in results] == expect_order(scores)
        assert [one["relevance_score"] for one in results] == pytest.approx(sorted(scores, reverse=True), abs=1e-6)
        assert {"document", "num_cut"} & set(results[0]) == {"num_cut"}


def test_a_regression_model_reranks_by_its_number(client: TestClient, predictors: dict[str, Predictor]) -> None:
    scores = [float(one.label) for one in predictors["length"].classify([(QUERY, text) for text in DOCUMENTS])]
    results = post(client, "/v1/rerank", {"query": QUERY, "texts": DOCUMENTS, "model": "length"})["results"]
    assert [one["index"] for one in results] == expect_order(scores)
    assert [one["relevance_score"] for one in results] == pytest.approx(sorted(scores, reverse=True), abs=1e-5)


def test_the_best_few_are_returned_with_their_texts(client: TestClient) -> None:
    body = {"query": QUERY, "documents": DOCUMENTS, "model": "pairs", "label": "yes"}
    everything = post(client, "/v1/rerank", body)["results"]
    best = post(client, "/v1/rerank", body | {"top_n": 2, "return_documents": True})["results"]
    assert [one["index"] for one in best] == [one["index"] for one in everything[:2]]
    assert [one["document"]["text"] for one in best] == [DOCUMENTS[one["index"]] for one in best]
    assert len(post(client, "/v1/rerank", body | {"top_n": 99})["results"]) == len(DOCUMENTS)


def test_the_server_may_choose_the_label_and_a_request_another(serve_tiny: ServeTiny, client: TestClient) -> None:
    body = {"query": QUERY, "documents": DOCUMENTS, "model": "pairs"}
    with serve_tiny(rerank_label="no") as choosing:
        for asked, same in (({}, "no"), ({"label": "yes"}, "yes")):
            assert post(choosing, "/v1/rerank", body | asked) == post(client, "/v1/rerank", body | {"label": same})
        of_numbers = {"query": QUERY, "documents": DOCUMENTS, "model": "length"}  # which has no labels
        assert post(choosing, "/v1/rerank", of_numbers) == post(client, "/v1/rerank", of_numbers)


@pytest.mark.parametrize("names", [("pairs", "length"), ("length",), ("early",), ("words",)])
def test_a_label_that_no_served_model_has_is_refused_at_the_start(models: list[NamedModel], names: list[str]) -> None:
    with refuses(ConfigError, "unknown-label"):
        build_app([model for model in models if model.name in names], ServeOptions(rerank_label="perhaps"))


@pytest.fixture(scope="module")
def strict_client(serve_tiny: ServeTiny) -> Iterator[TestClient]:
    with serve_tiny(Limits(max_inputs=3, max_characters=100)) as client:
        yield client


PAIRS = {"query": "a", "model": "pairs", "label": "yes"}


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "where"),
    [
        ("embeddings", {"input": [5, 6, 7, 8]}, 422, "invalid", "input"),
        ("embeddings", {"input": [[5, 6], [7]]}, 422, "invalid", "input"),
        ("embeddings", {"input": []}, 422, "invalid", "input"),
        ("embeddings", {"input": ["a", 5]}, 422, "invalid", "input.1"),
        ("embeddings", {"inputs": ["a"]}, 422, "invalid", "input"),
        ("embeddings", {"input": ["a"] * 4}, 422, "too_many", "input"),
        ("embeddings", {"input": ["a", "x" * 101]}, 422, "too_long", "input.1"),
        ("embeddings", {"input": "x" * 101}, 422, "too_long", "input"),
        ("embeddings", {"input": "a\ud800"}, 422, "invalid", "input"),
        ("embeddings", {"input": "a", "encoding_format": "int8"}, 422, "invalid", "encoding_format"),
        ("embeddings", {"input": "a", "dimensions": 0}, 422, "invalid", "dimensions"),
        ("embeddings", {"input": "a", "model": "text-embedding-3-small"}, 404, "not_found", "model"),
        ("rerank", PAIRS, 422, "invalid", ""),
        ("rerank", PAIRS | {"documents": ["a"], "texts": ["a"]}, 422, "invalid", ""),
        ("rerank", PAIRS | {"documents": []}, 422, "invalid", "documents"),
        ("rerank", PAIRS | {"documents": ["a", 5]}, 422, "invalid", "documents.1"),
        ("rerank", PAIRS | {"documents": ["a"] * 4}, 422, "too_many", "documents"),
        ("rerank", PAIRS | {"texts": ["a"] * 4}, 422, "too_many", "texts"),
        ("rerank", PAIRS | {"texts": ["a", "x" * 100]}, 422, "too_long", "texts.1"),
        ("rerank", PAIRS | {"documents": ["a"], "top_n": 0}, 422, "invalid", "top_n"),
        ("rerank", PAIRS | {"documents": ["a"], "return_documents": 1}, 422, "invalid", "return_documents"),
        ("rerank", PAIRS | {"documents": ["a"], "label": None}, 422, "invalid", "label"),
        ("rerank", PAIRS | {"documents": ["a"], "label": "perhaps"}, 422, "invalid", "label"),
        ("rerank", PAIRS | {"documents": ["a"], "model": "length"}, 422, "invalid", "label"),
        ("rerank", PAIRS | {"documents": ["a"], "model": "early"}, 422, "invalid", "model"),  # of single texts
        ("rerank", PAIRS | {"documents": ["a"], "model": "words"}, 422, "invalid", "model"),
    ],
)
def test_a_request_that_cannot_be_answered_is_refused_with_its_place(
    strict_client: TestClient, path: str, body: dict[str, Any], status: int, code: str, where: str
) -> None:
    content, headers = json.dumps(body).encode(), {"content-type": "application/json"}
    response = strict_client.post(f"/v1/{path}", content=content, headers=headers)
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert (error["code"], error["where"]) == (code, where), error


def test_token_arrays_are_refused_for_what_they_are_however_long(client: TestClient) -> None:
    refused = client.post("/v1/embeddings", json={"input": list(range(1000))})
    assert "token arrays" in refused.json()["error"]["message"]


def test_requests_of_both_forms_are_counted_by_their_own_names(serve_tiny: ServeTiny) -> None:
    with serve_tiny() as client:
        post(client, "/v1/embeddings", {"input": "a"})
        post(client, "/v1/embed", {"inputs": ["a"]})
        counted = client.get("/metrics").text
    assert 'litebert_requests_total{route="/v1/embeddings",status="200"} 1.0' in counted
    assert 'litebert_batch_size_count{function="embeddings",model="words"} 1.0' in counted
    assert 'litebert_batch_size_count{function="embed",model="words"} 1.0' in counted


@pytest.mark.slow
def test_the_openai_client_gets_the_vectors_of_python(address: str, predictors: dict[str, Predictor]) -> None:
    openai = pytest.importorskip("openai", reason="the openai package is not installed")
    expected = predictors["words"].embed(TEXTS)
    with openai.OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0) as client:
        for options in ({}, {"encoding_format": "float"}, {"dimensions": expected.shape[1], "user": "me"}):
            answer = client.embeddings.create(model="words", input=TEXTS, **options)  # without a format it asks base64
            vectors = np.array([one.embedding for one in answer.data], np.float32)
            np.testing.assert_allclose(vectors, expected, atol=1e-6)
            assert answer.usage.prompt_tokens == answer.usage.total_tokens > len(TEXTS)
            assert answer.model == "words"
        with pytest.raises(openai.UnprocessableEntityError, match="token arrays"):
            client.embeddings.create(model="words", input=[[5, 6]])
        with pytest.raises(openai.NotFoundError, match="unknown model"):
            client.embeddings.create(model="text-embedding-3-small", input="a")


@pytest.mark.slow
def test_the_openai_client_sends_the_token(guarded_address: str) -> None:
    openai = pytest.importorskip("openai", reason="the openai package is not installed")
    for key, is_right in (("letmein", True), ("guess", False)):
        with openai.OpenAI(base_url=f"{guarded_address}/v1", api_key=key, max_retries=0) as client:
            if is_right:
                assert client.embeddings.create(model="words", input="a").data[0].embedding
            else:
                with pytest.raises(openai.AuthenticationError):
                    client.embeddings.create(model="words", input="a")


@pytest.mark.slow
def test_the_cohere_client_gets_the_best_texts(address: str, predictors: dict[str, Predictor]) -> None:
    cohere = pytest.importorskip("cohere", reason="the cohere package is not installed")
    scores = [float(one.label) for one in predictors["length"].classify([(QUERY, text) for text in DOCUMENTS])]
    with httpx.Client() as http:
        client = cohere.Client(api_key="any", base_url=address, httpx_client=http)
        answer = client.rerank(model="length", query=QUERY, documents=DOCUMENTS, top_n=2, return_documents=True)
    assert [one.index for one in answer.results] == expect_order(scores)[:2]
    assert [one.relevance_score for one in answer.results] == pytest.approx(sorted(scores)[:-3:-1], abs=1e-5)
    assert [one.document.text for one in answer.results] == [DOCUMENTS[one.index] for one in answer.results]
