"""Served models of a tiny shape, one for every function, untrained; and clients for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tiny_server import Gate, ServeTiny, listen

from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.core.runtime import RuntimeOptions, choose_runtime
from litebert.inference.predictor import Predictor
from litebert.model.model import build_model
from litebert.server.app import build_app
from litebert.server.models import NamedModel
from litebert.server.options import Limits, ServeOptions
from litebert.tasks.catalog import task_facts
from litebert.tasks.kinds.choices import Choices
from litebert.tasks.kinds.classification import Classification, MultiLabel, Regression
from litebert.tasks.kinds.token_tags import TokenTags
from litebert.tasks.squad.task import SpanTask
from litebert.text.tokenizer import Tokenizer

TASKS: dict[str, Any] = {
    "animals": Classification("classification", ("bird", "cat", "dog")),
    "pairs": Classification("classification", ("no", "yes"), num_texts=2),
    "early": Classification("classification", ("bird", "cat", "dog"), num_texts=1, exits=True),
    "several": MultiLabel("multi-label", ("old", "small")),
    "length": Regression("regression", center=10.0),
    "names": TokenTags("tags", ("O", "B-ANIMAL", "I-ANIMAL")),
    "kinds": TokenTags("tags", ("O", "CAT", "DOG")),
    "answers": SpanTask("squad-v1", max_question_length=16, stride=16),
    "choices": Choices("choice", max_choice_length=16),
}


@pytest.fixture(scope="session")
def checkpoints(
    tiny_checkpoint: Path, tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """A checkpoint for each function, by name; "words" is the pre-trained one."""
    folder = tmp_path_factory.mktemp("served")
    config = load_checkpoint(tiny_checkpoint).config
    for name, task in TASKS.items():
        content = CheckpointContent(step=1, task=task_facts(task, max_length=48))
        depth = 6 if getattr(task, "exits", False) else config.num_layers  # of two layers none can be left out
        model = build_model(replace(config, num_layers=depth), task.heads, seed=len(name))
        save_checkpoint(folder / name, model, tiny_tokenizer, content)
    return {"words": tiny_checkpoint} | {name: folder / name for name in TASKS}


@pytest.fixture(scope="session")
def models(checkpoints: dict[str, Path]) -> list[NamedModel]:
    runtime = choose_runtime(RuntimeOptions(device="cpu"))
    return [NamedModel.of(name, Predictor(load_checkpoint(path), runtime)) for name, path in checkpoints.items()]


@pytest.fixture(scope="session")
def predictors(models: list[NamedModel]) -> dict[str, Predictor]:
    return {model.name: model.predictor for model in models}


@pytest.fixture(scope="session")
def serve_tiny(models: list[NamedModel]) -> ServeTiny:
    """A client of a server with some limits and options."""

    @contextmanager
    def serve(limits: Limits = Limits(), **options: Any) -> Iterator[TestClient]:
        with TestClient(build_app(models, ServeOptions(limits=limits, **options))) as client:
            yield client

    return serve


@pytest.fixture(scope="module")
def client(serve_tiny: ServeTiny) -> Iterator[TestClient]:
    with serve_tiny() as client:
        yield client


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Every embedding waits here until the gate is opened."""
    gate = Gate()
    embed = Predictor.embed

    def wait_and_embed(self: Predictor, *arguments: Any, **options: Any) -> Any:
        gate.pass_through()
        return embed(self, *arguments, **options)

    monkeypatch.setattr(Predictor, "embed", wait_and_embed)
    yield gate
    gate.is_open.set()


@pytest.fixture(scope="session")
def address(models: list[NamedModel]) -> Iterator[str]:
    """Where a real server of all tiny models listens."""
    with listen(build_app(models, ServeOptions(limits=Limits(max_characters=2000)))) as address:
        yield address


@pytest.fixture(scope="session")
def guarded_address(models: list[NamedModel]) -> Iterator[str]:
    """The same with a token, which is letmein."""
    with listen(build_app(models[:2], ServeOptions(token="letmein"))) as address:
        yield address
