"""Tables as the `datasets` library keeps them: shards, folders of Arrow files, and names of numbered labels."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

from litebert.core.errors import DataError
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.reading import TableOptions

pyarrow = pytest.importorskip("pyarrow")
ipc = pytest.importorskip("pyarrow.ipc")
parquet = pytest.importorskip("pyarrow.parquet")

NAMES = ["negative", "positive"]
ROWS = {"sentence": [f"film {n}" for n in range(6)], "label": [n % 2 for n in range(6)], "idx": list(range(6))}


def build_table(columns: dict[str, list[Any]], features: dict[str, Any]) -> Any:
    """A table with the note that `datasets` leaves in its schema."""
    note = json.dumps({"info": {"features": features}})
    return pyarrow.table(columns).replace_schema_metadata({"huggingface": note})


def build_split(split: str) -> Any:
    label = {"names": NAMES, "_type": "ClassLabel"}
    rows = {**ROWS, "label": [-1] * 6} if split == "test" else ROWS
    return build_table(rows, {"sentence": {"dtype": "string", "_type": "Value"}, "label": label})


def save_to_disk(table: Any, folder: Path) -> None:
    """As `Dataset.save_to_disk` does: Arrow streams, here two of them."""
    folder.mkdir(parents=True)
    for number, part in enumerate((table.slice(0, 2), table.slice(2))):
        with ipc.new_stream(str(folder / f"data-{number:05d}-of-00002.arrow"), table.schema) as stream:
            stream.write_table(part)


def save_as_hub(table: Any, folder: Path, split: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate((table.slice(0, 2), table.slice(2))):
        parquet.write_table(part, folder / f"{split}-{number:05d}-of-00002.parquet")


@pytest.mark.parametrize("kind", ["disk", "hub"])
def test_the_folders_of_datasets_are_read_as_they_are(kind: str, tmp_path: Path) -> None:
    for split in ("train", "validation", "test"):
        if kind == "disk":
            save_to_disk(build_split(split), tmp_path / "sst2" / split)
        else:
            save_as_hub(build_split(split), tmp_path / "sst2", split)
    glue = read_dataset("sst-2", tmp_path)
    assert [(e.text, e.label) for e in glue.train] == [(f"film {n}", str(n % 2)) for n in range(6)]
    assert (len(glue.dev["dev"]), [e.label for e in glue.test["test"]]) == (6, [None] * 6)
    own = read_dataset("classification", tmp_path / "sst2")
    assert own.task.labels == ("negative", "positive")  # type: ignore[attr-defined]
    assert [e.label for e in own.train] == ["negative", "positive"] * 3
    assert [e.label for e in own.test["test"]] == [None] * 6


def test_numbered_tags_get_their_names(tmp_path: Path) -> None:
    tags = {"feature": {"names": ["O", "B-PER"], "_type": "ClassLabel"}, "_type": "List"}
    table = build_table({"tokens": [["Ada", "lived"]], "ner_tags": [[1, 0]]}, {"ner_tags": tags})
    save_to_disk(table, tmp_path / "train")
    (example,) = read_dataset("tags", tmp_path, TableOptions(dev_share=0.0)).train
    assert example.label == ("B-PER", "O")


def test_questions_of_datasets_are_read(tmp_path: Path) -> None:
    answers = {"text": ["A cat"], "answer_start": [0]}
    columns = {"id": ["1"], "question": ["Who?"], "context": ["A cat sat."], "answers": [answers]}
    save_to_disk(pyarrow.table(columns), tmp_path / "train")
    (question,) = read_dataset("squad-v1", tmp_path, TableOptions(dev_share=0.0)).train
    assert question.label == ["A cat"]


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    save_as_hub(build_split("train"), tmp_path, "train")
    (tmp_path / "train-00001-of-00002.parquet").unlink()
    with refuses(DataError, "missing-file", at="train-00001-of-00002.parquet"):
        read_dataset("classification", tmp_path)


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
def test_a_damaged_table_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"not a table")
    with refuses(DataError, "corrupt-file"):
        read_dataset("classification", tmp_path / name)
