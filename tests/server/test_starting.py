"""A server starts with every kind of model that fine-tuning makes."""

import os
import signal
import socket
from contextlib import closing
from pathlib import Path

import pytest
import uvicorn
from refusals import refuses

from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.cli.main import _run
from litebert.core.errors import ConfigError
from litebert.model.model import build_model
from litebert.server.models import NamedModel
from litebert.server.options import ServeOptions
from litebert.server.server import Computing, bind, load_models, serve, warm_up
from litebert.tasks.catalog import task_facts
from litebert.tasks.kinds.classification import Classification
from litebert.text.tokenizer import Tokenizer


@pytest.mark.parametrize("num_texts", [0, 1, 2])
def test_models_of_single_texts_and_of_pairs_are_warmed_up(
    num_texts: int, tiny_checkpoint: Path, tiny_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    task = Classification("classification", ("no", "yes"), num_texts=num_texts)
    model = build_model(load_checkpoint(tiny_checkpoint).config, task.heads)
    content = CheckpointContent(step=1, task=task_facts(task, max_length=48))
    save_checkpoint(tmp_path / "model", model, tiny_tokenizer, content)
    (served,) = load_models([f"it={tmp_path / 'model'}"], Computing(device="cpu"))
    assert "classify" in served.functions


def test_an_occupied_port_is_reported_with_the_fix(tmp_path: Path) -> None:
    with closing(bind(ServeOptions(port=0))) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        # before any model is loaded: there is none here
        with refuses(ConfigError, "cannot-listen", at=f"127.0.0.1:{port}"):
            serve([str(tmp_path)], ServeOptions(port=port))


@pytest.mark.parametrize("content", [b"", b"two words", b"\xff\xfe", "wörd".encode()])
def test_a_token_file_must_hold_one_word(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "token").write_bytes(content)
    assert _run(["serve", "runs/none", "--token-file", str(tmp_path / "token")], debug=False) == 2
    assert "must contain only the token" in capsys.readouterr().err


def test_a_folder_is_no_token_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["serve", "runs/none", "--token-file", str(tmp_path)], debug=False) == 2
    assert "is a directory" in capsys.readouterr().err


def test_every_function_of_every_model_is_asked_before_the_first_user_comes(models: list[NamedModel]) -> None:
    for model in models:
        warm_up(model)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_between_listening_and_serving_stops_the_server(
    number: signal.Signals, tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = uvicorn.Server.run

    def run_late(self: uvicorn.Server, sockets: list[socket.socket] | None = None) -> None:
        os.kill(os.getpid(), number)  # uvicorn has no handler yet
        run(self, sockets)

    monkeypatch.setattr(uvicorn.Server, "run", run_late)
    serve([str(tiny_checkpoint)], ServeOptions(port=0), Computing(device="cpu"))
