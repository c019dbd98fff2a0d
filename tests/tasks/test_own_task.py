"""A task of a user's own is one file: given as an object, or as one more row of the catalog."""

import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_tasks import ANIMALS, invent_rows, write_rows

import litebert
from litebert.tasks import catalog
from tests.tasks.star_ratings import StarRatings

QUICK = {"train.steps": 60, "train.evaluations": 1, "train.max_length": 32, "optim.learning_rate": 0.01, "seed": 1}
STARS = {"cat": 1, "dog": 3, "bird": 5}
TEXTS = ["the old cat", "a bird near the tree"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cats have one star, dogs three and birds five."""
    rows = invent_rows(lambda words: next(STARS[word] for word in words if word in ANIMALS), count=48)
    return write_rows(tmp_path_factory.mktemp("stars"), rows)


@pytest.fixture(scope="module", params=["an object", "a row"])
def run(request: pytest.FixtureRequest, data: Path, tiny_checkpoint: Path) -> Iterator[Path]:
    """A run, fine-tuned for the object, or by name with a row in the catalog."""
    folder = data / request.param
    with pytest.MonkeyPatch.context() as patch:
        task: Any = StarRatings()
        if request.param == "a row":
            patch.setitem(catalog.KINDS, "stars", catalog.Kind(StarRatings, read=StarRatings().read))
            task = "stars"
        litebert.finetune(tiny_checkpoint, task, data, QUICK, out=folder)
        yield folder


def test_it_is_learned_scored_and_described(run: Path) -> None:
    report = json.loads((run / "report.json").read_text())
    dev = report["dev"]["dev"]
    assert dev["scores"]["exact"] == 1
    assert dev["intervals"]["within_one"][1] == 1
    assert not dev["is_at_chance"]
    assert report["facts"]["num_stars"] == 5
    assert len(report["examples"]) == 3


def test_evaluate_and_predict_give_its_scores_and_answers(run: Path, data: Path) -> None:
    assert litebert.evaluate(run, data).metrics["exact"] == 1
    assert [answer["answer"] for answer in litebert.predict(run, TEXTS)] == [1, 5]
    assert [label.label for label in litebert.load(run).classify(TEXTS)] == [1, 5]


def test_an_export_answers_the_same(run: Path, data: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    litebert.export(run, tmp_path / "onnx")
    assert [answer["answer"] for answer in litebert.predict(tmp_path / "onnx", TEXTS)] == [1, 5]
    measured = litebert.export(run, tmp_path / "int8", int8=True, dev=data / "dev.jsonl", max_drop=100)
    assert measured.report["accuracy"]["num_examples"] == 48
    with pytest.raises(litebert.ConfigError) as raised:
        litebert.export(run, tmp_path / "web", format="web")
    assert raised.value.code == "no-page"


def test_a_server_answers_the_same(run: Path) -> None:
    pytest.importorskip("fastapi")
    from litebert.server.functions import FUNCTIONS

    predictor = litebert.load(run)
    possible = [name for name, function in FUNCTIONS.items() if function.is_possible(predictor)]
    assert sorted(possible) == ["classify", "embed", "embeddings", "read"]
    answers = FUNCTIONS["classify"].compute(predictor, TEXTS, {"patience": 0})
    assert [answer.label for answer in answers] == [1, 5]  # type: ignore[attr-defined]


def test_a_run_with_other_fields_is_another_run(
    data: Path, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(catalog.KINDS, "stars", raising=False)  # `run` may still have it
    short = {**QUICK, "train.steps": 2}
    litebert.finetune(tiny_checkpoint, StarRatings(), data, short, out=tmp_path / "run")
    with pytest.raises(litebert.ConfigError) as raised:
        litebert.finetune(tiny_checkpoint, StarRatings(num_stars=6), data, short, out=tmp_path / "run")
    assert raised.value.code == "options-changed"


def test_a_program_that_has_not_imported_the_class_is_asked_to(
    data: Path, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(catalog.KINDS, "stars", raising=False)
    litebert.finetune(tiny_checkpoint, StarRatings(), data, {**QUICK, "train.steps": 2}, out=tmp_path / "run")
    monkeypatch.delitem(sys.modules, StarRatings.__module__)
    with pytest.raises(litebert.DataError, match=r"import tests\.tasks\.star_ratings first") as raised:
        litebert.predict(tmp_path / "run", ["a"])
    assert raised.value.code == "unknown-task"


@pytest.mark.parametrize("task", [StarRatings, 7, object()])
def test_what_is_no_task_is_refused(task: Any, data: Path, tiny_checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(litebert.ConfigError) as raised:
        litebert.finetune(tiny_checkpoint, task, data, out=tmp_path / "run")
    assert (raised.value.code, raised.value.option) == ("not-a-task", "task")
    assert not (tmp_path / "run").exists()


def test_the_documentation_shows_the_class() -> None:
    page = Path(__file__).parents[2] / "docs" / "extending.md"
    assert f"```python\n{inspect.getsource(StarRatings)}```" in page.read_text("utf-8")
