"""Checkpoints, exports, tokenizers and reports that rot: each has one root file that verifies itself and the others."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from mutants import read_mutants
from refusals import refuses

from litebert.checkpoint import load_checkpoint
from litebert.core.errors import DataError
from litebert.core.sealed import read_sealed, write_sealed
from litebert.exporters.onnx_folder import export_onnx
from litebert.inference.export_folder import open_export
from litebert.tasks.predictions import read_predictions
from litebert.tasks.report import read_report, write_report
from litebert.text.tokenizer import Tokenizer, load_tokenizer

REPORT = {"task": "SST-2", "metric": "accuracy", "facts": {"labels": ["no", "yes"]}, "dev": {}, "test": {}}


def read_checkpoint(path: Path) -> object:
    checkpoint = load_checkpoint(path)
    weights = {name: tensor.tolist() for name, tensor in checkpoint.load_weights().items()}
    return vars(checkpoint), weights, checkpoint.load_tokenizer().fingerprint


def read_export(path: Path) -> object:
    export = open_export(path)
    return export.head, export.has_exits, export.is_int8, vars(export.checkpoint), export.graph_file.read_bytes()


def read_tokenizer(path: Path) -> object:
    tokenizer = load_tokenizer(path)
    return tokenizer.fingerprint, tokenizer.settings, tokenizer.special_ids, tokenizer.encode("the small cat")


def read_answers(path: Path) -> object:
    report = read_report(path)
    return {name: report[name] for name in REPORT}


@pytest.fixture(scope="module")
def folders(
    tmp_path_factory: pytest.TempPathFactory, tiny_checkpoint: Path, tiny_tokenizer: Tokenizer
) -> dict[str, tuple[Path, Callable[[Path], object]]]:
    """One folder of each kind, and how it is read."""
    folder = tmp_path_factory.mktemp("folders")
    shutil.copytree(tiny_checkpoint, folder / "checkpoint")
    export_onnx(load_checkpoint(tiny_checkpoint), folder / "export")
    tiny_tokenizer.save(folder / "tokenizer")
    (folder / "run" / "predictions").mkdir(parents=True)
    write_report(folder / "run", REPORT)
    readers = {"checkpoint": read_checkpoint, "export": read_export, "tokenizer": read_tokenizer, "run": read_answers}
    return {name: (folder / name, read) for name, read in readers.items()}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("checkpoint", "litebert.json"),
        ("checkpoint", "model.safetensors"),
        ("checkpoint", "tokenizer/tokenizer.json"),
        ("export", "export.json"),
        ("export", "model.onnx"),
        ("tokenizer", "manifest.json"),
        ("tokenizer", "tokenizer.json"),
        ("run", "report.json"),
    ],
)
def test_no_mutant_is_read_otherwise(
    kind: str, name: str, folders: dict[str, tuple[Path, Callable[[Path], object]]]
) -> None:
    folder, read = folders[kind]
    found = read_mutants(folder / name, lambda: read(folder), seed=7, count=60, is_json=name.endswith(".json"))
    assert not found["otherwise"]
    assert len(found["refused"]) > 40


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("checkpoint", "litebert.json"),
        ("export", "export.json"),
        ("tokenizer", "manifest.json"),
        ("run", "report.json"),
    ],
)
def test_root_files_without_a_checksum_load_and_their_mutants_raise_only_our_errors(
    kind: str, name: str, folders: dict[str, tuple[Path, Callable[[Path], object]]]
) -> None:
    folder, read = folders[kind]
    original = (folder / name).read_bytes()
    try:
        before = read(folder)
        (folder / name).write_text(json.dumps(read_sealed(folder / name)))  # as earlier versions wrote it
        assert read(folder) == before
        read_mutants(folder / name, lambda: read(folder), seed=8, count=100, is_json=True)
    finally:
        (folder / name).write_bytes(original)


def test_reversed_labels_in_a_root_file_are_refused(
    folders: dict[str, tuple[Path, Callable[[Path], object]]], tmp_path: Path
) -> None:
    run = Path(shutil.copytree(folders["run"][0], tmp_path / "run"))
    text = (run / "report.json").read_text()
    changed = text.replace('"no"', '"-"').replace('"yes"', '"no"').replace('"-"', '"yes"')
    (run / "report.json").write_text(changed)
    with refuses(DataError, "corrupt-file", at="report.json"):
        read_report(run)


@pytest.mark.parametrize(
    "line", [b'{"id": "1", "answer": "n\xff"}', b'{"id": 1, "answer": 1, "output": 2}', b"[]", b"{"]
)
def test_a_line_that_is_no_prediction_is_named(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "dev.jsonl").write_bytes(b'{"id": "0", "answer": "no", "output": [1.0]}\n' + line + b"\n")
    with pytest.raises(DataError, match=r"dev\.jsonl:2"):
        read_predictions(tmp_path / "dev.jsonl")


def test_a_tokenizers_manifest_has_no_other_keys(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    tiny_tokenizer.save(tmp_path / "tokenizer")
    facts = read_sealed(tmp_path / "tokenizer" / "manifest.json")
    write_sealed(tmp_path / "tokenizer" / "manifest.json", {**facts, "checksun": ""})
    with refuses(DataError, "corrupt-file", at="manifest.json"):
        load_tokenizer(tmp_path / "tokenizer")
