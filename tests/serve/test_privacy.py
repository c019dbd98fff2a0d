"""Who may ask, what other sites may do, and that nothing a user writes is kept in the log."""

import json
import logging
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from tiny_server import ServeTiny

from litebert.infer.predictor import Predictor
from litebert.serve.logs import JsonLines

SECRET = "Xanthippe"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """What the log would hold, filled as it is written."""
    found: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(JsonLines().format(record))

    handler = Keep()
    logging.getLogger().addHandler(handler)
    with caplog.at_level(logging.DEBUG):
        yield found
    logging.getLogger().removeHandler(handler)


def test_no_word_of_a_user_reaches_the_log(
    client: TestClient, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"could not embed {SECRET}")

    monkeypatch.setattr(Predictor, "embed", fail)
    bodies = {
        "fill-mask": {"inputs": [SECRET]},
        "order": {"inputs": [[SECRET, "a"]]},
        "classify": {"inputs": [SECRET], "model": SECRET},
        "embed": {"inputs": [SECRET]},  # our own mistake
        SECRET: {SECRET: SECRET},
    }
    statuses = [client.post(f"/v1/{name}?text={SECRET}", json=body).status_code for name, body in bodies.items()]
    assert statuses == [422, 200, 404, 500, 404]
    client.post("/v1/order", content=SECRET, headers={"content-type": "application/json", "user-agent": SECRET})
    assert len([line for line in lines if json.loads(line)["event"] == "request"]) == 6
    assert SECRET not in "\n".join(lines)
    (failed,) = [json.loads(line) for line in lines if json.loads(line)["event"] == "failed"]
    assert failed["error"] == "RuntimeError"
    assert "test_privacy.py" in failed["at"][-1]


def test_a_log_line_says_what_was_asked_and_how_it_went(client: TestClient, lines: list[str]) -> None:
    client.post("/v1/order", json={"inputs": [["a", "b"]]})
    (line,) = [json.loads(line) for line in lines if '"request"' in line]
    expected = {"method": "POST", "route": "/v1/order", "status": 200, "model": "words", "inputs": 1}
    assert {key: line[key] for key in expected} == expected
    assert line["is_answered"] is True


@pytest.mark.parametrize("header", ["", "Bearer wrong", "Bearer", "letmein", "Bearer letmein2", "Bearer ünïcode"])
def test_without_the_token_nothing_is_answered(serve_tiny: ServeTiny, header: str) -> None:
    with serve_tiny(token="letmein") as client:
        headers = {"authorization": header.encode("latin-1")} if header else {}
        for response in (
            client.post("/v1/embed", json={"inputs": ["a"]}, headers=headers),  # type: ignore[arg-type]
            client.get("/v1/models", headers=headers),  # type: ignore[arg-type]
            client.get("/metrics", headers=headers),  # type: ignore[arg-type]
        ):
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
        assert client.get("/health").status_code == 200


def test_with_the_token_it_is(serve_tiny: ServeTiny) -> None:
    with serve_tiny(token="letmein") as client:
        headers = {"authorization": "Bearer letmein"}
        assert client.post("/v1/embed", json={"inputs": ["a"]}, headers=headers).status_code == 200


def ask_first(client: TestClient, origin: str) -> dict[str, str]:
    """What a browser asks before it lets a page of another site send JSON."""
    wish = {"origin": origin, "access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    return dict(client.options("/v1/embed", headers=wish).headers)


def test_other_sites_may_not_ask_unless_they_are_named(serve_tiny: ServeTiny, client: TestClient) -> None:
    allow = "access-control-allow-origin"
    assert allow not in ask_first(client, "https://example.org")
    response = client.post("/v1/embed", json={"inputs": ["a"]}, headers={"origin": "https://example.org"})
    assert allow not in response.headers
    with serve_tiny(origins=("https://example.org",), token="letmein") as open_client:
        assert ask_first(open_client, "https://example.org")[allow] == "https://example.org"
        assert allow not in ask_first(open_client, "https://example.com")


def test_a_form_of_another_site_is_not_taken_for_json(client: TestClient) -> None:
    """A browser sends text/plain without asking first."""
    response = client.post("/v1/embed", content='{"inputs": ["a"]}', headers={"content-type": "text/plain"})
    assert response.status_code == 422
