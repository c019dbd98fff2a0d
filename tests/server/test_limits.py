"""What is too much is refused with the right status and the remedy, and the server goes on."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tiny_server import Gate, ServeTiny, wait_until

from litebert.core.errors import ConfigError
from litebert.inference.predictor import Predictor
from litebert.server.options import Limits, ServeOptions
from litebert.text.tokenizer import Tokenizer

SMALL = Limits(max_body_bytes=2000, max_inputs=3, max_characters=100, max_queue=4)


@pytest.fixture(scope="module")
def strict_client(serve_tiny: ServeTiny) -> Iterator[TestClient]:
    with serve_tiny(SMALL) as client:
        yield client


@pytest.mark.parametrize(
    ("function", "body", "status", "code", "where"),
    [
        ("embed", {"inputs": ["x" * 3000]}, 413, "too_large", ""),
        ("embed", {"inputs": ["a", "x" * 101]}, 422, "too_long", "inputs.1"),
        ("answer", {"inputs": [{"question": "x" * 60, "context": "x" * 60}]}, 422, "too_long", "inputs.0"),
        ("embed", {"inputs": ["a"] * 4}, 422, "too_many", "inputs"),
        ("embed", {"inputs": []}, 422, "invalid", "inputs"),
        ("embed", {"inputs": "a"}, 422, "invalid", "inputs"),
        ("embed", {"inputs": ["a"], "colour": 1}, 422, "invalid", "colour"),
        ("embed", {"inputs": ["\ud800"]}, 422, "invalid", "inputs.0"),
        ("fill-mask", {"inputs": ["no gap"]}, 422, "invalid", "inputs.0"),
        ("fill-mask", {"inputs": ["a [MASK]", "no gap"]}, 422, "invalid", "inputs.1"),
        ("fill-mask", {"inputs": ["[MASK]"], "top_k": 99}, 422, "invalid", "top_k"),
        ("answer", {"inputs": [{"question": "who", "context": " "}]}, 422, "invalid", "inputs.0"),
        ("choose", {"inputs": [{"choices": ["one"]}]}, 422, "invalid", "inputs.0.choices"),
        ("read", {"inputs": ["a"], "head": 2}, 422, "invalid", "head"),
        ("fill-mask", {"inputs": ["a [MASK]" + " [MASK]" * 12]}, 200, "", ""),
        ("tokens", {"inputs": [[""] * 102]}, 422, "too_long", "inputs.0"),
        ("tokens", {"inputs": [[""] * 101]}, 200, "", ""),
        ("classify", {"inputs": ["a"], "patience": 2}, 422, "invalid", "patience"),
        ("classify", {"inputs": [["a", "b"], "a"], "model": "pairs"}, 422, "invalid", "inputs.1"),
        ("classify", {"inputs": [["a", "b"]], "model": "early"}, 422, "invalid", "inputs.0"),
        ("classify", {"inputs": ["a"], "model": "words"}, 422, "invalid", "model"),
        ("classify", {"inputs": ["a"], "model": "animal"}, 404, "not_found", "model"),
        ("translate", {"inputs": ["a"]}, 404, "not_found", ""),
    ],
)
def test_a_request_that_cannot_be_answered_is_refused_with_its_place(
    strict_client: TestClient, function: str, body: object, status: int, code: str, where: str
) -> None:
    response = strict_client.post(f"/v1/{function}", content=json.dumps(body), headers=AS_JSON)
    assert response.status_code == status, response.text
    if status != 200:
        error = response.json()["error"]
        assert (error["code"], error["where"]) == (code, where)
        assert "/" not in error["message"].replace("/v1/", "")  # none of our folders
    assert strict_client.post("/v1/embed", json={"inputs": ["a"]}).status_code == 200


AS_JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b"[" * 1900, b""])
def test_what_is_not_json_is_refused(strict_client: TestClient, body: bytes) -> None:
    response = strict_client.post("/v1/embed", content=body, headers=AS_JSON)
    assert response.status_code in (400, 422)
    assert response.json()["error"]["message"]


def test_a_body_of_undeclared_length_is_cut_off_at_the_limit(strict_client: TestClient) -> None:
    def drip() -> Iterator[bytes]:
        for _ in range(10_000):
            yield b"x" * 100

    assert strict_client.post("/v1/embed", content=drip(), headers=AS_JSON).status_code == 413


def test_a_text_that_is_longer_than_the_model_reads_is_cut_but_a_gap_is_never_cut_away(client: TestClient) -> None:
    long = "the cat " * 200
    for function in ("classify", "embed", "read"):
        assert client.post(f"/v1/{function}", json={"inputs": [long]}).status_code == 200
    refused = client.post("/v1/fill-mask", json={"inputs": [f"{long} [MASK]"]})
    assert refused.status_code == 422
    assert "shorten" in refused.json()["error"]["message"]


def test_an_overloaded_server_sheds_and_recovers(serve_tiny: ServeTiny, gate: Gate) -> None:
    with serve_tiny(SMALL) as client, ThreadPoolExecutor(8) as threads:
        ask = lambda: client.post("/v1/embed", json={"inputs": ["a", "b"]})  # noqa: E731
        first = threads.submit(ask)
        assert gate.has_come.wait(60)  # the model has it
        waiting = [threads.submit(ask) for _ in range(2)]
        wait_until(lambda: "litebert_waiting_inputs 4.0" in client.get("/metrics").text)
        assert client.get("/ready").status_code == 503
        assert client.get("/health").status_code == 200
        shed = ask()
        assert shed.status_code == 429
        assert shed.headers["retry-after"] == "1"
        gate.is_open.set()
        assert [future.result().status_code for future in (first, *waiting)] == [200] * 3
        assert ask().status_code == 200
        assert client.get("/ready").json() == {"status": "ready"}


def test_more_gaps_than_the_server_fills_are_refused(client: TestClient) -> None:
    refused = client.post("/v1/fill-mask", json={"inputs": ["[MASK] " * 17]})
    assert refused.status_code == 422
    assert "limit of 16" in refused.json()["error"]["message"]


def test_an_answer_that_takes_too_long_is_given_up_and_the_next_one_comes(serve_tiny: ServeTiny, gate: Gate) -> None:
    with serve_tiny(Limits(timeout_seconds=1.0)) as client:
        late = client.post("/v1/embed", json={"inputs": ["a"]})
        assert (late.status_code, late.json()["error"]["code"]) == (503, "timeout")
        gate.is_open.set()
    with serve_tiny() as client:
        assert client.post("/v1/embed", json={"inputs": ["a"]}).status_code == 200


@pytest.mark.parametrize(
    "options",
    [
        lambda: Limits(max_batch=0),
        lambda: Limits(max_wait_seconds=-1),
        lambda: Limits(max_queue=10, max_inputs=11),
        lambda: ServeOptions(port=70_000),
        lambda: ServeOptions(origins=("example.org",)),
        lambda: ServeOptions(origins=("https://example.org/",)),
    ],
)
def test_impossible_options_are_refused(options: object) -> None:
    with pytest.raises(ConfigError):
        options()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("function", "model", "value"),
    [
        ("answer", "answers", {"question": "which animal", "context": "the cat " * 60}),
        ("tokens", "names", "the cat " * 60),
    ],
)
def test_what_was_encoded_to_be_counted_is_what_is_computed(
    function: str,
    model: str,
    value: Any,
    serve_tiny: ServeTiny,
    predictors: dict[str, Predictor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind, encoded = type(predictors[model].task), list[Any]()
    encode = kind.encode

    def note(task: Any, examples: Any, *others: Any) -> Any:
        encoded.extend(examples)
        return encode(task, examples, *others)

    body = {"model": model, "inputs": [value, value]}
    with serve_tiny() as client:
        expected = client.post(f"/v1/{function}", json=body).json()
    monkeypatch.setattr(kind, "encode", note)
    with serve_tiny(Limits(max_tokens=1500)) as client:  # the input could have more, but does not
        assert client.post(f"/v1/{function}", json=body).json() == expected
    assert len(encoded) == 2


def test_texts_are_encoded_once_for_their_vectors_and_their_counts(
    serve_tiny: ServeTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[str] = []
    encode = Tokenizer.encode_batch

    def note(tokenizer: Tokenizer, texts: list[str]) -> Any:
        encoded.extend(texts)
        return encode(tokenizer, texts)

    with serve_tiny() as client:
        monkeypatch.setattr(Tokenizer, "encode_batch", note)
        client.post("/v1/embeddings", json={"input": ["the cat", "a dog"]}).raise_for_status()
    assert encoded == ["the cat", "a dog"]
