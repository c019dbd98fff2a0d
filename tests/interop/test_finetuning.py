"""Fine-tuning starts from other people's checkpoints as from our own, whatever files they lie in."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_checkpoints import ALBERT, PRETRAINING, TO_HUGGINGFACE
from small_tasks import invent_rows, write_rows
from test_google_checkpoints import make_variables, save

from litebert.checkpoint import Checkpoint, CheckpointContent, load_checkpoint, save_checkpoint
from litebert.cli.main import _run
from litebert.interop import opening
from litebert.interop.convert import convert
from litebert.model.model import build_model
from litebert.text.tokenizer import Tokenizer

SHORT = ["train.steps=2", "train.evaluations=1", "train.batch_size=8", "train.max_length=32", "seed=3"]
NO_DROPOUT = ["model.dropout_rate=0.0", "model.classifier_dropout_rate=0.0"]
CONFIG = replace(ALBERT, hidden_dropout_rate=0.0, attention_dropout_rate=0.0)


def write_source(kind: str, folder: Path, tokenizer: Tokenizer, scale: float = 1.0) -> Path:
    """The same weights as ours, a Hugging Face folder of three kinds, or a TensorFlow checkpoint."""
    drawn = make_variables("albert", CONFIG, PRETRAINING)
    weights, variables = ({name: scale * tensor for name, tensor in tensors.items()} for tensors in drawn)
    if kind == "tensorflow":
        return save(folder / kind, "albert", CONFIG, variables, tokenizer)
    model = build_model(CONFIG, PRETRAINING, device="meta")
    save_checkpoint(folder / "ours", model, tokenizer, CheckpointContent(step=0), weights)
    if kind == "ours":
        return folder / kind
    convert(folder / "ours", folder / kind, TO_HUGGINGFACE)
    file = folder / kind / "model.safetensors"
    tensors = load_file(file)
    if kind != "safetensors":
        file.unlink()
    if kind == "pickle":
        torch.save(tensors, folder / kind / "pytorch_model.bin")
    if kind == "shards":
        shards = {name: f"model-0000{number % 2 + 1}-of-00002.safetensors" for number, name in enumerate(tensors)}
        for shard in set(shards.values()):
            save_file({name: t for name, t in tensors.items() if shards[name] == shard}, folder / kind / shard)
        index = {"metadata": {}, "weight_map": shards}
        (folder / kind / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    return folder / kind


def finetune(source: Path, folder: Path, out: Path) -> int:
    data = write_rows(folder / "data", invent_rows())
    words = ["finetune", source, "--task", "classification", "--data", data, "--out", out, *SHORT, *NO_DROPOUT]
    return _run([str(word) for word in words], debug=False)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: Tokenizer) -> Checkpoint:
    """What fine-tuning makes of the weights where they are ours."""
    folder = tmp_path_factory.mktemp("expected")
    assert finetune(write_source("ours", folder, tiny_tokenizer), folder, folder / "run") == 0
    return load_checkpoint(folder / "run/model")


@pytest.mark.parametrize("kind", ["safetensors", "shards", "pickle", "tensorflow"])
def test_the_files_that_weights_lie_in_do_not_change_what_is_learned(
    kind: str, expected: Checkpoint, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    source = write_source(kind, tmp_path, tiny_tokenizer)
    assert finetune(source, tmp_path, tmp_path / "run") == 0
    found = load_checkpoint(tmp_path / "run/model").load_weights()
    for name, tensor in expected.load_weights().items():
        assert torch.equal(found[name], tensor), name


def test_a_source_with_half_a_head_is_refused_and_one_without_is_not(
    tmp_path: Path, tiny_tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_source("safetensors", tmp_path, tiny_tokenizer)
    tensors = load_file(source / "model.safetensors")
    save_file({n: t for n, t in tensors.items() if n != "predictions.bias"}, source / "model.safetensors")
    assert finetune(source, tmp_path, tmp_path / "run") == 2
    assert "1 missing: predictions.bias (of a head" in capsys.readouterr().err
    save_file({n: t for n, t in tensors.items() if n.startswith("albert.")}, source / "model.safetensors")
    assert finetune(source, tmp_path, tmp_path / "run") == 0


@pytest.mark.parametrize("kind", ["ours", "safetensors", "shards", "pickle", "tensorflow"])
def test_different_weights_are_distinguished_and_copies_are_not(
    kind: str, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    source = write_source(kind, tmp_path, tiny_tokenizer)
    fingerprint = opening.load_checkpoint(source).fingerprint
    shutil.copytree(source, tmp_path / "copy")
    assert opening.load_checkpoint(tmp_path / "copy").fingerprint == fingerprint
    changed = write_source(kind, tmp_path / "changed", tiny_tokenizer, scale=1.5)
    assert opening.load_checkpoint(changed).fingerprint != fingerprint
