"""Who may ask, what other sites may do, and that nothing a user writes is kept in the log."""

import json
import logging
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from refusals import refuses
from tiny_server import ServeTiny

from litebert.core.errors import ConfigError
from litebert.inference.predictor import Predictor
from litebert.server.app import build_app
from litebert.server.logs import JsonLines
from litebert.server.models import NamedModel
from litebert.server.options import ServeOptions

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


def test_a_page_of_a_named_site_can_read_refusals(serve_tiny: ServeTiny) -> None:
    with serve_tiny(origins=("https://example.org",), token="letmein") as client:
        refused = client.post("/v1/embed", json={"inputs": ["a"]}, headers={"origin": "https://example.org"})
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == "https://example.org"
    assert "Retry-After" in refused.headers["access-control-expose-headers"]


@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/nothing"])
def test_the_token_is_asked_for_under_a_root_path_too(models: list[NamedModel], path: str) -> None:
    app = build_app(models[:1], ServeOptions(token="letmein"))
    outer = FastAPI()
    outer.mount("/bert", app)
    token = {"authorization": "Bearer letmein"}
    for client in (TestClient(outer), TestClient(app, root_path="/bert")):
        assert client.get(f"/bert{path}").status_code == 401
        assert client.get(f"/bert{path}", headers=token).status_code == (404 if path == "/nothing" else 200)
        assert client.get("/bert/health").status_code == 200
    # nobody started it, and it answers
    assert TestClient(outer).post("/bert/v1/embed", json={"inputs": ["a"]}, headers=token).status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:8000", 200), ("localhost", 200), ("[::1]:8000", 200), ("bert.lan", 200), ("evil.example:8000", 421)],
)
def test_a_local_server_is_asked_by_its_own_names_only(models: list[NamedModel], host: str, status: int) -> None:
    client = TestClient(build_app(models[:1], ServeOptions(hosts=("bert.lan",)).with_own_hosts()))
    assert client.get("/v1/models", headers={"host": host}).status_code == status


def test_a_server_for_others_is_asked_by_any_name_unless_some_are_given() -> None:
    assert ServeOptions(host="0.0.0.0").with_own_hosts().hosts == ()
    assert ServeOptions(host="0.0.0.0", hosts=("bert.lan",)).with_own_hosts().hosts == ("bert.lan",)


def test_what_other_libraries_say_is_not_repeated() -> None:
    said = logging.LogRecord("asyncio", logging.ERROR, "base.py", 7, f"never retrieved: {SECRET}", None, None)
    assert json.loads(JsonLines().format(said))["at"] == ["base.py:7 None"]
    assert SECRET not in JsonLines().format(said)


def test_a_site_that_is_not_named_is_refused_in_the_documented_form_and_counted(serve_tiny: ServeTiny) -> None:
    wish = {"origin": "https://example.com", "access-control-request-method": "POST"}
    with serve_tiny(origins=("https://example.org",)) as client:
        refused = client.options("/v1/embed", headers=wish)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "wrong_origin")
        assert 'litebert_requests_total{route="unknown",status="400"} 1.0' in client.get("/metrics").text


def test_a_method_that_nobody_knows_is_not_logged(client: TestClient, lines: list[str]) -> None:
    assert client.request(SECRET, "/v1/embed").status_code == 405
    assert SECRET not in "\n".join(lines)
    assert '"method": "other"' in "\n".join(lines)


@pytest.mark.parametrize("prefix", ["", "/bert"])  # a proxy may remove it or not
def test_a_server_under_a_root_path_answers_and_says_so(models: list[NamedModel], prefix: str) -> None:
    client = TestClient(build_app(models[:1], ServeOptions(root_path="/bert", token="letmein")))
    assert client.get(f"{prefix}/").status_code == 200
    assert client.get(f"{prefix}/page/style.css").status_code == 200
    assert client.get(f"{prefix}/v1/models").status_code == 401
    assert client.get(f"{prefix}/openapi.json").json()["servers"] == [{"url": "/bert"}]


@pytest.mark.parametrize("root_path", ["bert", "/bert/", "/", "/b rt", "//bert"])
def test_a_root_path_begins_with_a_slash_and_ends_without(root_path: str) -> None:
    with refuses(ConfigError, "bad-value"):
        ServeOptions(root_path=root_path)
