"""Models are served by any engine with the same answers; an export answers with the head that it has."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from litebert.checkpoint import load_checkpoint
from litebert.exporters.onnx_folder import export_onnx
from litebert.inference.predictor import Label, Predictor, load
from litebert.server.app import build_app
from litebert.server.models import NamedModel
from litebert.server.options import ServeOptions
from litebert.server.server import Computing, load_models

ASKED = {
    "fill-mask": ["the [MASK] sees a [MASK]", "a [MASK] near the old house and the river"],
    "order": [["the cat", "a dog"], ["a dog near the old house", "the cat"]],
}


@pytest.mark.parametrize("engine", ["onnx", "openvino"])
@pytest.mark.parametrize("function", ASKED)
def test_other_engines_answer_as_torch_does(checkpoints: dict[str, Path], function: str, engine: str) -> None:
    pytest.importorskip({"onnx": "onnxruntime"}.get(engine, engine))
    models = [NamedModel.of(name, load(checkpoints["words"], engine=name)) for name in ("torch", engine)]  # type: ignore[arg-type]
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


def test_patience_reaches_a_model_that_has_learned_it(client: TestClient, predictors: dict[str, Predictor]) -> None:
    texts = ["the cat", "a small dog", "river and house", "old cat sees", "near the house a dog"]
    expected = predictors["early"].with_patience(1).classify(texts)
    for patience, is_early in ((1, True), (0, False)):
        body = {"inputs": texts, "model": "early", "patience": patience}
        results = client.post("/v1/classify", json=body).json()["results"]
        given = [list(result["probabilities"].values()) for result in results]
        is_same = flatten(given) == pytest.approx(
            flatten([list(one.probabilities.values()) for one in expected]), abs=1e-5
        )
        assert is_same == is_early


@pytest.mark.parametrize("head", ["classification", "embedding"])
def test_an_export_is_served_with_the_head_that_it_has(head: str, checkpoints: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    export_onnx(load_checkpoint(checkpoints["animals"]), tmp_path / "out", head=head)
    (model,) = load_models([f"it={tmp_path / 'out'}"], Computing(threads=1))
    functions = {"classification": ("classify", "rerank"), "embedding": ("embed", "embeddings")}[head]
    assert model.functions == functions
    function = functions[0]
    with TestClient(build_app([model], ServeOptions())) as client:
        results = client.post(f"/v1/{function}", json={"inputs": ["the cat"]}).json()["results"]
    original = load(checkpoints["animals"])
    expected = original.embed(["the cat"])[0] if head == "embedding" else original.classify(["the cat"])[0]
    numbers = list(expected.probabilities.values()) if isinstance(expected, Label) else expected.tolist()
    assert flatten(results) == pytest.approx(numbers, abs=1e-4)
