"""The page's examples are the model's own: a few rows that it was measured on, where its run is here to tell."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from small_tasks import invent_rows, write_rows
from tiny_server import listen

from litebert.core.sealed import read_sealed, write_sealed
from litebert.finetuning.finetune import finetune
from litebert.finetuning.recipe import build_finetune_recipe
from litebert.finetuning.run_folder import Job
from litebert.inference.predictor import load
from litebert.interop.opening import load_checkpoint
from litebert.server.app import build_app
from litebert.server.functions import FUNCTIONS
from litebert.server.models import TASK_FUNCTIONS, NamedModel
from litebert.server.options import ServeOptions
from litebert.tasks.catalog import read_dataset
from litebert.tasks.kinds.choices import ChoiceExample
from litebert.tasks.kinds.token_tags import TaggedWords
from litebert.tasks.report import pick_examples
from litebert.tasks.squad.reading import Answer, Question
from litebert.tasks.texts import TextExample

EXAMPLES: dict[str, list[Any]] = {
    "classify": [
        TextExample("1", "x" * 3000, None, "a"),
        TextExample("2", "good", None, "a"),
        TextExample("3", "p", "q", "b"),
    ],
    "tokens": [TaggedWords("1", ("the", "cat"), ("O", "B-ANIMAL"))],
    "answer": [Question("1", "who", "the cat", (Answer("cat", 4),)), Question("2", "when", "the cat", ())],
    "choose": [ChoiceExample("1", "the cat", "is _", ("old", "new"), 0)],
}


def test_what_is_picked_is_short_of_different_labels_and_as_the_server_takes_it() -> None:
    assert tuple(EXAMPLES) == TASK_FUNCTIONS
    for name, examples in EXAMPLES.items():
        picked = pick_examples(examples * 5)
        assert picked
        FUNCTIONS[name].request.model_validate({"inputs": picked})
    assert pick_examples(EXAMPLES["classify"]) == ["good", ["p", "q"]]
    assert len(pick_examples([TextExample(str(n), f"text {n}", None, str(n)) for n in range(9)])) == 3


@pytest.fixture(scope="module")
def run(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("animals")
    data = write_rows(folder / "data", invent_rows(count=20))
    recipe = build_finetune_recipe({"train": {"steps": 1, "batch_size": 4, "max_length": 32}})
    finetune(Job(load_checkpoint(tiny_checkpoint), read_dataset("classification", data), recipe), folder / "run")
    return folder / "run"


def list_served(path: Path, **options: Any) -> Any:
    with TestClient(build_app([NamedModel.of("run", load(path, device="cpu"))], ServeOptions(**options))) as client:
        headers = {"authorization": "Bearer secret"} if options.get("token") else {}
        return client.get("/v1/models", headers=headers).json()["models"][0]["examples"]


@pytest.mark.parametrize("inside", ["", "model"])
def test_a_run_shows_rows_that_it_was_measured_on(run: Path, inside: str) -> None:
    rows = [json.loads(line) for line in (run.parent / "data" / "dev.jsonl").read_text("utf-8").splitlines()]
    (examples,) = list_served(run / inside).values()
    assert examples
    assert set(examples) <= {row["text"] for row in rows}


def test_examples_show_nothing_of_the_training_data(run: Path) -> None:
    assert list_served(run, host="0.0.0.0") == {}
    assert list_served(run, host="0.0.0.0", token="secret") != {}


def test_a_report_of_another_model_or_a_damaged_one_gives_no_examples(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "model").mkdir(parents=True)
    for file in (run / "model").iterdir():
        target = folder / "model" / file.name
        target.symlink_to(file.resolve(), target_is_directory=file.is_dir())
    report = read_sealed(run / "report.json")
    write_sealed(folder / "report.json", {**report, "facts": {**report["facts"], "labels": ["other"]}})
    assert list_served(folder / "model") == {}
    (folder / "report.json").write_text("{}")
    assert list_served(folder / "model") == {}


@pytest.mark.slow
def test_the_page_begins_with_the_models_own_example(run: Path, browser: Any) -> None:
    app = build_app([NamedModel.of("run", load(run, device="cpu"))], ServeOptions())
    with listen(app) as address:
        page = browser.new_page()
        page.goto(f"{address}/#classify")
        page.wait_for_selector(".verdict")
        (examples,) = list_served(run).values()
        assert page.input_value("#field-classify-text") == examples[0]
        assert page.locator(".chip").all_inner_texts() == examples
        page.close()
