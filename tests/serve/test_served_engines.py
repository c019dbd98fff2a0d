"""Models are served by any engine with the same answers; an export answers with the head that it has."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from litebert.infer.predictor import load
from litebert.serve.app import build_app
from litebert.serve.models import NamedModel
from litebert.serve.options import ServeOptions

ASKED = {
    "fill-mask": ["the [MASK] sees a [MASK]", "a [MASK] near the old house and the river"],
    "order": [["the cat", "a dog"], ["a dog near the old house", "the cat"]],
}


@pytest.mark.parametrize("function", ASKED)
def test_onnxruntime_answers_as_torch_does(checkpoints: dict[str, Path], function: str) -> None:
    pytest.importorskip("onnxruntime")
    models = [NamedModel.of(engine, load(checkpoints["words"], engine=engine)) for engine in ("torch", "onnx")]  # type: ignore[arg-type]
    with TestClient(build_app(models, ServeOptions())) as client:
        answers = [
            client.post(f"/v1/{function}", json={"inputs": ASKED[function], "model": model.name}).json()["results"]
            for model in models
        ]
    assert flatten(answers[0]) == pytest.approx(flatten(answers[1]), abs=1e-4)


def flatten(value: object) -> list[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for one in value for number in flatten(one)]
    return [value] if isinstance(value, float) else []


def test_patience_is_refused_by_a_model_that_has_not_learned_it(client: TestClient) -> None:
    refused = client.post("/v1/classify", json={"inputs": ["a"], "patience": 2})
    assert refused.status_code == 422
    assert "exit.enabled" in refused.json()["error"]["message"]
