"""A search index that rots or lies: it finds what it found before, or is refused with the name of the file."""

import dataclasses
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mutants import read_mutants
from refusals import refuses

from litebert.core import sealed, verified
from litebert.core.errors import DataError
from litebert.core.files import hash_file
from litebert.inference.predictor import Predictor, load
from litebert.search.build import IndexOptions, build_index
from litebert.search.index import SearchIndex, read_index, write_index
from litebert.search.segment import row_type
from litebert.verify import verify
from tests.search.test_search import make_documents

VECTORS, TEXTS = "000001.vectors", "000001.jsonl"


@pytest.fixture(scope="module")
def model(tiny_checkpoint: Path) -> Predictor:
    return load(tiny_checkpoint)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, model: Predictor) -> Path:
    folder = tmp_path_factory.mktemp("built") / "index"
    build_index(make_documents(30), folder, model, IndexOptions("float32", 16), title=str(model.checkpoint.path))
    return folder


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "index"))


def search(folder: Path, model: Predictor) -> Any:
    return SearchIndex(folder, model=model).search("the old house", 1000)


def relist(folder: Path, **changes: Any) -> None:
    """Change the entry of the segment in the root file as somebody would who wants to be believed."""
    record = read_index(folder)
    hashes = {name: hash_file(folder / name) for name in (TEXTS, VECTORS)}
    changed = dataclasses.replace(record.segments[0], **({"sha256": hashes} | changes))
    write_index(folder, dataclasses.replace(record, segments=(changed,)))


@pytest.mark.parametrize("name", ["index.json", VECTORS, TEXTS])
def test_no_mutant_of_an_index_is_read_otherwise(index: Path, model: Predictor, name: str) -> None:
    is_json = name.endswith(".json")
    found = read_mutants(index / name, lambda: search(index, model), seed=1, count=60, is_json=is_json)
    assert not found["otherwise"]
    assert len(found["refused"]) > 50


def test_a_segment_is_hashed_once_and_again_after_it_changed(
    index: Path, model: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    real = sealed.hash_file
    monkeypatch.setattr(sealed, "hash_file", lambda path: hashed.append(path.name) or real(path))
    expected = search(index, model)
    monkeypatch.setattr(verified, "_remembered", set())  # another process
    assert search(index, model) == expected
    assert sorted(hashed) == [TEXTS, VECTORS]
    os.utime(index / VECTORS)
    assert search(index, model) == expected
    assert len(hashed) > 2


@pytest.mark.parametrize(("column", "value"), [("start", -1), ("start", 2**40), ("scale", np.nan), ("vector", np.inf)])
def test_values_that_cannot_be_right_are_refused_whatever_the_hash_says(
    index: Path, model: Predictor, column: str, value: float
) -> None:
    width = len(read_index(index).probe)
    rows = np.fromfile(index / VECTORS, row_type(width, "float32"))
    rows[column][3] = value
    rows.tofile(index / VECTORS)
    relist(index)
    with refuses(DataError, "corrupt-file", at=VECTORS):
        search(index, model)
    assert VECTORS in verify(index)[0].problems[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"removed": ((0, 10**15),)},
        {"removed": ((5, 3),)},
        {"removed": ((-2, 1),)},
        {"sha256": {}},
        {"sha256": {TEXTS: "0" * 64}},
        {"num_passages": -1},
    ],
)
def test_a_root_file_that_lies_is_refused(index: Path, model: Predictor, changes: dict[str, Any]) -> None:
    relist(index, **changes)
    with refuses(DataError, "corrupt-file", at="index.json"):
        search(index, model)


def test_a_probe_that_is_no_vector_is_not_that_of_the_model(index: Path, model: Predictor) -> None:
    record = read_index(index)
    write_index(index, dataclasses.replace(record, probe=(float("nan"), *record.probe[1:])))
    with refuses(DataError, "corrupt-file", at="index.json"):
        search(index, model)
