"""A name of the hub is a checkpoint like any other; a slip in a path is none."""

import importlib
from pathlib import Path

import pytest
from refusals import refuses
from small_checkpoints import ALBERT, PRETRAINING, TO_HUGGINGFACE, save, weights_equal

from litebert import load_checkpoint
from litebert.core.errors import DataError
from litebert.interop.convert import convert
from litebert.text.tokenizer import Tokenizer


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    constants = importlib.import_module("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_hub_name_comes_from_the_cache_without_a_network(
    hub_cache: Path, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    save(tmp_path / "ours", ALBERT, PRETRAINING, tiny_tokenizer)
    model = hub_cache / "models--somebody--albert"
    commit = "0123456789" * 4
    convert(tmp_path / "ours", tmp_path / "theirs", TO_HUGGINGFACE)
    snapshot = model / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (model / "blobs").mkdir()
    for number, file in enumerate((tmp_path / "theirs").iterdir()):
        (model / f"blobs/{number}").write_bytes(file.read_bytes())
        (snapshot / file.name).symlink_to(f"../../blobs/{number}")
    (model / "refs").mkdir()
    (model / "refs/main").write_text(commit, "utf-8")
    convert("somebody/albert", tmp_path / "back")
    assert weights_equal(tmp_path / "ours", tmp_path / "back")


def test_a_hub_name_that_cannot_be_had_is_refused(hub_cache: Path) -> None:
    assert not hub_cache.exists()
    with refuses(DataError, "hub-unreachable"):
        load_checkpoint("albert/albert-base-v2")


def test_a_name_that_the_hub_does_not_know_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    hub, errors = (importlib.import_module(name) for name in ("huggingface_hub", "huggingface_hub.errors"))

    def download(*_: object, **__: object) -> str:
        raise errors.HFValidationError("three\nlines of\nreasons")

    monkeypatch.setattr(hub, "snapshot_download", download)
    with refuses(DataError, "unknown-model"):
        load_checkpoint("a/b--c")


@pytest.mark.parametrize("slip", ["nothing", "runs/modle", "model.safetensors", "./here", "runs/model.bin"])
def test_a_slip_in_a_path_is_not_looked_for_on_the_hub(
    slip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    with refuses(DataError, "missing-file"):
        load_checkpoint(slip)
