"""The server against its own description: whatever is sent, it answers as OpenAPI says, and never with a 5xx."""

import json
from collections import defaultdict
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litebert.server.app import build_app
from litebert.server.models import NamedModel
from litebert.server.options import Limits, ServeOptions

# Anything that JSON can hold, with our own keys among the keys.
KEYS = (
    st.sampled_from(["inputs", "model", "top_k", "head", "normalize", "question", "context", "choices", "patience"])
    | st.sampled_from(["input", "encoding_format", "dimensions", "query", "documents", "texts", "top_n", "label"])
    | st.text()
)
TEXTS = st.text() | st.sampled_from(["the [MASK] cat", "[MASK]", "a\x00b", "\u202e", "words", "animals", "names"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
FUNCTIONS = ["fill-mask", "classify", "tokens", "answer", "choose", "order", "embed", "read", "embeddings", "rerank"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_whatever_is_sent_is_answered_or_refused(client: TestClient, function: str) -> None:
    @settings(max_examples=12, suppress_health_check=list(HealthCheck))
    @given(
        st.dictionaries(KEYS, ANYTHING, max_size=4)
        | st.fixed_dictionaries({"inputs": st.lists(ANYTHING)})
        | st.fixed_dictionaries({"query": TEXTS, "documents": st.lists(ANYTHING), "label": TEXTS})
    )
    def send(body: Any) -> None:
        content = json.dumps(body).encode()
        response = client.post(f"/v1/{function}", content=content, headers={"content-type": "application/json"})
        assert response.status_code in (200, 400, 404, 422), response.text

    send()


def test_the_least_and_the_greatest_number_that_a_setting_may_have_are_described(client: TestClient) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert (
        schemas["FillMask"]["properties"]["top_k"] | {"minimum": 1, "maximum": 50}
        == (schemas["FillMask"]["properties"]["top_k"])
    )
    (whole,) = [one for one in schemas["Read"]["properties"]["head"]["anyOf"] if one["type"] == "integer"]
    assert whole["minimum"] == 0


@pytest.mark.slow
@pytest.mark.fuzz
def test_schemathesis_finds_nothing(models: list[NamedModel]) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    from schemathesis.checks import load_all_checks
    from schemathesis.specs.openapi import checks

    load_all_checks()
    app = build_app(models, ServeOptions(limits=Limits(timeout_seconds=120)))
    wanted = [
        schemathesis.checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
        checks.negative_data_rejection,
        checks.unsupported_method,
    ]
    with TestClient(app):  # the queue must run
        schema = schemathesis.openapi.from_asgi("/openapi.json", app)
        statuses = defaultdict(set)
        for operation in schema.get_all_operations():
            case_strategy = operation.ok().as_strategy()

            @settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck), database=None)
            @given(case_strategy)
            def send(case: Any) -> None:
                statuses[case.path].add(case.call_and_validate(checks=wanted).status_code)

            send()
    assert set(statuses) >= {f"/v1/{name}" for name in FUNCTIONS}
    # it was not only refused
    assert all(
        200 in statuses[f"/v1/{name}"] for name in ("classify", "tokens", "order", "embed", "read", "embeddings")
    )
