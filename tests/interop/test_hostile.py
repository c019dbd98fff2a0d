"""What comes from strangers: nothing in it is run, and nothing outside its folder is read."""

import argparse
import json
import os
import pickle
import struct
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from safetensors.torch import save_file

from litebert import load_checkpoint
from litebert.core.errors import DataError, LitebertError
from litebert.interop.tensor_files import open_tensor_files
from litebert.interop.their_config import DEFAULTS

CONFIG = {"model_type": "albert", "hidden_size": 16, "num_attention_heads": 2}


class Bomb:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(CONFIG), "utf-8")
    return model


@pytest.mark.parametrize("is_zip", [True, False])
@pytest.mark.parametrize("way", ["torch.save", "pickle"])
def test_a_pickle_that_runs_code_is_never_executed(is_zip: bool, way: str, folder: Path, tmp_path: Path) -> None:
    traces = tmp_path / "it ran"
    bomb = {"albert.pooler.weight": torch.ones(2), "bomb": Bomb(f"touch '{traces}'")}
    file = folder / "pytorch_model.bin"
    if way == "torch.save":
        torch.save(bomb, file, _use_new_zipfile_serialization=is_zip)
    else:
        file.write_bytes(pickle.dumps(Bomb(f"touch '{traces}'")))
    with refuses(DataError, "unsafe-pickle") as caught:
        load_checkpoint(folder)
    assert "weights_only" not in str(caught.value)
    assert "torch.load" not in str(caught.value)
    assert not traces.exists()
    os.system(f"touch '{traces}'")  # the command itself would have worked
    assert traces.exists()


def write_header(file: Path, header: Any, length: int | None = None) -> None:
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + bytes(64))


@pytest.mark.parametrize(
    ("header", "length"),
    [
        ({"w": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}}, None),
        ({"w": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 64]}}, None),
        ({"w": {"dtype": "F32", "shape": [16], "data_offsets": [64, 128]}}, None),
        ({"w": {"dtype": "F32", "shape": [16], "data_offsets": [-1, 63]}}, None),
        ({"w": {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]}}, 1 << 60),
        ({"w": {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]}}, 1 << 30),
        ({"w": {"dtype": "F99", "shape": [16], "data_offsets": [0, 64]}}, None),
        ({"w": "nothing"}, None),
        ([], None),
    ],
)
def test_a_header_with_absurd_sizes_is_refused(header: Any, length: int | None, folder: Path) -> None:
    write_header(folder / "model.safetensors", header, length)
    with refuses(DataError, "corrupt-file", at="model.safetensors"):
        open_tensor_files(folder)


@pytest.mark.parametrize(
    "name", ["../outside.safetensors", "sub/../../outside.safetensors", "..", "sub/in.safetensors"]
)
@pytest.mark.parametrize("is_absolute", [False, True])
def test_an_index_of_shards_does_not_lead_out_of_its_folder(
    name: str, is_absolute: bool, folder: Path, tmp_path: Path
) -> None:
    (folder / "sub").mkdir()
    for file in (tmp_path / "outside.safetensors", folder / "sub/in.safetensors"):
        save_file({"w": torch.ones(2)}, file)
    shard = str(folder / name) if is_absolute else name
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": shard}}), "utf-8")
    with refuses(DataError, "unsafe-path"):
        open_tensor_files(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "shard.safetensors"])
def test_a_link_out_of_the_folder_is_refused(name: str, folder: Path, tmp_path: Path) -> None:
    save_file({"w": torch.ones(2)}, tmp_path / "outside")
    (folder / name).symlink_to(tmp_path / "outside")
    if name.startswith("shard"):
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": name}}), "utf-8")
    with refuses(DataError, "unsafe-path"):
        open_tensor_files(folder)


def test_a_configuration_that_is_a_link_out_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    save_file({"w": torch.ones(2)}, folder / "model.safetensors")
    (folder / "config.json").rename(tmp_path / "elsewhere.json")
    (folder / "config.json").symlink_to(tmp_path / "elsewhere.json")
    with refuses(DataError, "unsafe-path"):
        load_checkpoint(folder)


def test_links_within_the_hubs_cache_are_followed_and_no_others(tmp_path: Path) -> None:
    model = tmp_path / "models--a--b"
    snapshot = model / "snapshots/0123"
    snapshot.mkdir(parents=True)
    (model / "blobs").mkdir()
    save_file({"w": torch.ones(2)}, model / "blobs/abc")
    (snapshot / "model.safetensors").symlink_to("../../blobs/abc")
    assert torch.equal(open_tensor_files(snapshot).read("w"), torch.ones(2))
    (snapshot / "model.safetensors").unlink()
    save_file({"w": torch.ones(2)}, tmp_path / "secret")
    (snapshot / "model.safetensors").symlink_to("../../../secret")
    with refuses(DataError, "unsafe-path"):
        open_tensor_files(snapshot)


@pytest.mark.parametrize(
    ("weight_map", "code"),
    [
        ({"v": "shard.safetensors"}, "corrupt-file"),
        ({"w": "shard.safetensors"}, "corrupt-file"),
        ({"w": "other.safetensors"}, "missing-file"),
        ({"w": "\0.safetensors"}, "unsafe-path"),
        ({"w": "x" * 5000}, "unsafe-path"),
        ({}, "corrupt-file"),
        ([], "corrupt-file"),
        ("text", "corrupt-file"),
    ],
)
def test_an_index_that_does_not_say_what_the_shards_have_is_refused(weight_map: Any, code: str, folder: Path) -> None:
    save_file({"w": torch.ones(2), "x": torch.ones(2)}, folder / "shard.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}), "utf-8")
    with refuses(DataError, code):
        open_tensor_files(folder)


@pytest.mark.parametrize("content", [[1, 2], {"w": "text"}, {"model": {"w": torch.ones(1)}}])
def test_a_pickle_of_anything_but_tensors_is_refused(content: Any, folder: Path) -> None:
    torch.save(content, folder / "pytorch_model.bin")
    with refuses(DataError, "not-weights"):
        open_tensor_files(folder)


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict"])
def test_the_weights_of_a_training_state_are_found(key: str, folder: Path) -> None:
    torch.save({key: {"model.w": torch.arange(3.0)}, "epoch": 3, "optimizer": {}}, folder / "pytorch_model.bin")
    store = open_tensor_files(folder)
    assert list(store.tensors) == ["model.w"]
    assert store.read("model.w").tolist() == [0, 1, 2]


def test_a_pickle_names_what_it_holds_besides_tensors(folder: Path) -> None:
    torch.save({"w": torch.ones(2), "args": argparse.Namespace(rate=0.1)}, folder / "pytorch_model.bin")
    with refuses(DataError, "unsafe-pickle", at="argparse.Namespace"):
        open_tensor_files(folder)


def test_a_flipped_bit_in_the_weights_of_a_pickle_is_detected(folder: Path) -> None:
    file = folder / "pytorch_model.bin"
    weights = torch.arange(50.0)
    torch.save({"w": weights}, file)
    content = bytearray(file.read_bytes())
    content[content.index(weights.numpy().tobytes()) + 70] ^= 1
    file.write_bytes(content)
    with refuses(DataError, "corrupt-file"):
        open_tensor_files(folder)


def test_a_pickle_written_without_checksums_is_read(folder: Path) -> None:
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"w": torch.arange(3.0)}, folder / "pytorch_model.bin")
    finally:
        torch.serialization.set_crc32_options(True)
    assert open_tensor_files(folder).read("w").tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("tensor", "code"),
    [
        (torch.eye(3).to_sparse(), "not-weights"),
        (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "not-weights"),
        (torch.empty(3, 3, device="meta"), "not-weights"),
        (torch.ones(1, 1).expand(1 << 20, 1 << 20), "corrupt-file"),
        (torch.ones(2000).as_strided((1000, 1000), (1, 1)), "corrupt-file"),
    ],
)
def test_a_pickle_of_tensors_that_are_not_plain_is_refused(tensor: torch.Tensor, code: str, folder: Path) -> None:
    torch.save({"w": tensor}, folder / "pytorch_model.bin")
    assert (folder / "pytorch_model.bin").stat().st_size < 20_000
    with refuses(DataError, code):
        load_checkpoint(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json", "litebert.json"])
def test_a_file_nested_too_deeply_is_refused(name: str, folder: Path) -> None:
    (folder / name).write_text('{"a":' + "[" * 100_000, "utf-8")
    with refuses(DataError, "bad-json"):
        load_checkpoint(folder)


@pytest.mark.parametrize(
    "values",
    [
        {"hidden_size": 10**12},
        {"vocab_size": 10**400},
        {"layer_norm_eps": 10**400},
        {"num_hidden_layers": 10_000, "inner_group_num": 10_000},
        {"num_hidden_groups": 10_000, "inner_group_num": 10_000},
        {"num_hidden_layers": 10_000, "num_hidden_groups": 10_000},
        {"model_type": "bert", "num_hidden_layers": 10_000},
        {"hidden_size": 1 << 24, "intermediate_size": 1 << 24, "vocab_size": 1 << 24},
    ],
)
def test_a_model_of_absurd_size_is_refused_before_it_is_built(values: dict[str, Any], folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps(CONFIG | values), "utf-8")
    save_file({"w": torch.ones(2)}, folder / "model.safetensors")
    started_at = time.process_time()
    with pytest.raises(DataError) as caught:
        load_checkpoint(folder)
    assert len(str(caught.value)) < 2000
    assert time.process_time() - started_at < 5  # of the processor, hence the same on a busy machine


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_a_file_cut_anywhere_is_refused(name: str, folder: Path) -> None:
    file = folder / name
    tensors = {"w": torch.arange(50.0)}
    save_file(tensors, file) if name.endswith("safetensors") else torch.save(tensors, file)
    content = file.read_bytes()
    for end in range(0, len(content), 23):
        file.write_bytes(content[:end])
        with pytest.raises(DataError, match=name):
            open_tensor_files(folder)


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"tf_model.h5": "x"}, "unsupported-weights"),
        ({}, "missing-file"),
        ({"model.safetensors": "", "config.json": "{"}, "bad-json"),
        ({"model.safetensors": "", "config.json": "[]"}, "bad-json"),
        ({"model.safetensors": "", "config.json": '{"model_type": "gpt2"}'}, "unsupported-model-type"),
        ({"model.safetensors": "", "config.json": '{"model_type": "bert", "hidden_size": "big"}'}, "corrupt-file"),
    ],
)
def test_a_folder_that_is_no_model_of_ours_is_refused_with_the_reason(
    files: dict[str, str], code: str, folder: Path
) -> None:
    for name, content in files.items():
        (folder / name).write_text(content, "utf-8")
    with refuses(DataError, code):
        load_checkpoint(folder)


@pytest.mark.parametrize(
    ("source", "code"),
    [("no/such/folder/here", "missing-file"), ("/nowhere", "missing-file"), ("two words", "missing-file")],
)
def test_a_missing_source_is_reported_as_missing(source: str, code: str) -> None:
    with refuses(DataError, code):
        load_checkpoint(source)


KEYS = ["model_type", "architectures", *DEFAULTS["albert"], "tie_word_embeddings", "position_embedding_type"]
ABSURD = st.sampled_from([10_000, 1 << 24, 10**12, 1 << 63, 10**400, -(10**400), 1e300])
JSON = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 10**12), ABSURD, st.floats(), st.text(max_size=5), st.just([1])
)


@settings(max_examples=150, deadline=None)
@given(family=st.sampled_from(["albert", "bert", "roberta"]), values=st.dictionaries(st.sampled_from(KEYS), JSON))
def test_a_configuration_of_anything_at_all_is_read_or_refused(family: str, values: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.json").write_text(json.dumps({**CONFIG, "model_type": family, **values}), "utf-8")
        save_file({"w": torch.ones(2)}, folder / "model.safetensors")
        with pytest.raises(LitebertError):  # one tensor is no model, whatever the configuration says
            load_checkpoint(folder)
