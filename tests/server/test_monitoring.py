"""Health, metrics, the API's description, and the names of models."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from refusals import refuses
from tiny_server import ServeTiny

from litebert.core.errors import ConfigError
from litebert.server.models import NamedModel, check_names, split_name


def test_requests_and_batches_are_counted(serve_tiny: ServeTiny) -> None:
    with serve_tiny() as client:
        for text in ("a", "b", ""):
            client.post("/v1/order", json={"inputs": [["the", text]]})
        client.post("/v1/order", json={})
        text = client.get("/metrics").text
    assert 'litebert_requests_total{route="/v1/order",status="200"} 3.0' in text
    assert 'litebert_requests_total{route="/v1/order",status="422"} 1.0' in text
    assert 'litebert_batch_size_sum{function="order",model="words"} 3.0' in text
    assert "litebert_open_requests 1.0" in text  # the one that asks
    assert "process_resident_memory_bytes" in text


def test_refusals_are_counted_under_their_route(serve_tiny: ServeTiny) -> None:
    with serve_tiny(token="letmein") as client:
        assert client.post("/v1/order", json={}).status_code == 401
        text = client.get("/metrics", headers={"authorization": "Bearer letmein"}).text
    assert 'litebert_requests_total{route="/v1/order",status="401"} 1.0' in text


@pytest.mark.parametrize("path", ["/", "/docs", "/health", "/ready"])
def test_each_head_is_described_by_itself(client: TestClient, path: str) -> None:
    response = client.head(path)
    assert (response.status_code, response.content) == (200, b"")


def test_a_model_says_what_it_wants(client: TestClient) -> None:
    models = {model["name"]: model for model in client.get("/v1/models").json()["models"]}
    facts = {name: [model[key] for key in ("num_texts", "has_spans", "has_exits")] for name, model in models.items()}
    assert facts["words"] == [0, False, False]
    assert facts["pairs"] == [2, False, False]
    assert facts["early"] == [1, False, True]
    assert facts["names"] == [0, True, False]
    assert facts["kinds"] == [0, False, False]


@pytest.mark.parametrize("name", ["animals", "pairs", "early", "names", "answers", "choices", "words"])
def test_the_example_of_the_description_can_be_sent(models: list[NamedModel], name: str) -> None:
    from litebert.server.app import build_app
    from litebert.server.options import ServeOptions

    served = [model for model in models if model.name == name]
    with TestClient(build_app(served, ServeOptions())) as client:
        for path, call in client.get("/openapi.json").json()["paths"].items():
            if "post" in call:
                example = call["post"]["requestBody"]["content"]["application/json"]["example"]
                assert client.post(path, json=example).status_code == 200


def test_a_path_that_nobody_has_makes_no_counter_of_its_own(client: TestClient) -> None:
    for number in range(3):
        client.get(f"/nothing/{number}")
    assert "nothing" not in client.get("/metrics").text


def test_the_description_names_only_what_is_served(models: list[NamedModel], client: TestClient) -> None:
    from litebert.server.app import build_app
    from litebert.server.options import ServeOptions

    assert {path for path in client.get("/openapi.json").json()["paths"] if path.startswith("/v1/")} == {
        f"/v1/{name}"
        for name in (
            *("fill-mask", "classify", "tokens", "answer", "choose", "order", "embed", "read", "models"),
            *("embeddings", "rerank"),
        )
    }
    with TestClient(build_app(models[:1], ServeOptions())) as pretrained:
        assert "/v1/classify" not in pretrained.get("/openapi.json").json()["paths"]
        refused = pretrained.post("/v1/classify", json={"inputs": ["a"]})
        assert refused.status_code == 404
        assert "/v1/fill-mask" in refused.json()["error"]["message"]


@pytest.mark.parametrize("address", ["/", "/docs", "/page/index.html"])
def test_pages_load_nothing_from_elsewhere(client: TestClient, address: str) -> None:
    response = client.get(address)
    assert response.status_code == 200
    assert "http://" not in response.text
    assert "https://" not in response.text
    assert "default-src 'none'" in response.headers["content-security-policy"]
    again = client.get(address, headers={"if-none-match": response.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("runs/sst-2", ("sst-2", "runs/sst-2")),
        ("runs/sst-2/model/", ("sst-2", "runs/sst-2/model/")),
        ("runs/nano/checkpoints/step-00000500", ("nano", "runs/nano/checkpoints/step-00000500")),
        ("reviews=runs/sst-2", ("reviews", "runs/sst-2")),
        ("albert/albert-base-v2", ("albert-base-v2", "albert/albert-base-v2")),
    ],
)
def test_a_model_is_named_after_its_folder_unless_a_name_is_given(word: str, expected: tuple[str, str]) -> None:
    assert split_name(word) == expected


def test_a_path_with_a_sign_of_equality_is_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "lr=0.1"
    folder.mkdir()
    assert split_name(str(folder)) == ("lr=0.1", str(folder))


@pytest.mark.parametrize("word", ["=runs/a", "a=", "runs/a=b"])
def test_half_a_name_is_refused(word: str) -> None:
    with refuses(ConfigError, "bad-model-name"):
        split_name(word)


def test_two_models_of_one_name_are_refused() -> None:
    with refuses(ConfigError, "repeated-value"):
        check_names(["a", "b", "a"])
