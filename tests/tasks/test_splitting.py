"""Held-out rows: no text and no group is on both sides, and what given files share is counted."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

from litebert.core.errors import ConfigError, DataError
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.files.splitting import hold_out, text_of
from litebert.tasks.finetuning import Dataset, fingerprint
from litebert.tasks.texts import TextExample


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def texts_on_both_sides(dataset: Dataset) -> set[str]:
    return {text_of(one) for one in dataset.train} & {text_of(one) for one in dataset.dev["dev"]}


ROWS: dict[str, Any] = {
    "classification": lambda n: {"text": ("Text", " text ", "TEXT")[n % 3] + f" {n // 3}", "label": f"{n % 2}"},
    "regression": lambda n: {"text": f"text {n // 3}", "score": n},
    "multi-label": lambda n: {"text": f"text {n // 3}", "labels": [f"{n % 2}"]},
    "tags": lambda n: {"tokens": ["text", f"{n // 3}"], "tags": ["O", f"B-{n % 2}"]},
    "choice": lambda n: {"context": f"text {n // 3}", "question": f"{n}", "choices": ["a", "b"], "label": n % 2},
}


@pytest.mark.parametrize("task", ROWS)
def test_duplicates_of_a_text_are_held_out_together(task: str, tmp_path: Path) -> None:
    dataset = read_dataset(task, write_lines(tmp_path / "rows.jsonl", [ROWS[task](n) for n in range(60)]))
    assert (len(dataset.train), len(dataset.dev["dev"])) == (54, 6)
    assert not texts_on_both_sides(dataset)
    assert not any("also in train" in note for note in dataset.notes)


@pytest.mark.parametrize("task", ROWS)
def test_rows_of_a_group_are_held_out_together(task: str, tmp_path: Path) -> None:
    rows = [{**ROWS[task](n), "author": n // 6} for n in range(60)]
    dataset = read_dataset(task, write_lines(tmp_path / "rows.jsonl", rows), TableOptions(group="author"))
    sides = [{one.group for one in side} for side in (dataset.train, dataset.dev["dev"])]
    assert sides[0].isdisjoint(sides[1])
    assert not texts_on_both_sides(dataset)


def test_a_text_that_two_groups_share_joins_them() -> None:
    chain = [TextExample(str(n), f"text {n // 2}", group=f"group {(n + 1) // 2}") for n in range(40)]
    others = [TextExample(str(n), f"other {n}", group=f"alone {n}") for n in range(3)]
    kept, held = hold_out([*chain, *others], 0.25)
    assert len(held) in (1, 40)  # one of four units
    assert len(kept) + len(held) == 43


def test_without_duplicates_the_rows_held_out_are_those_of_earlier_versions() -> None:
    _, held = hold_out([TextExample(str(n), f"text {n}") for n in range(50)], 0.1)
    assert [one.id for one in held] == ["2", "4", "18", "23", "36"]


def test_a_group_is_not_part_of_the_text_that_a_run_knows_its_data_by() -> None:
    assert fingerprint([[TextExample("1", "text")]]) == fingerprint([[TextExample("1", "text", group="x")]])


def test_texts_that_given_files_share_are_counted(tmp_path: Path) -> None:
    rows = [{"text": f"text {n}", "label": f"{n % 2}", "author": n} for n in range(10)]
    write_lines(tmp_path / "train.jsonl", rows)
    write_lines(tmp_path / "dev.jsonl", [{**rows[0], "text": "TEXT 0"}, {**rows[1], "text": "new"}])
    notes = read_dataset("classification", tmp_path, TableOptions(group="author")).notes
    assert "1 of 2 rows of dev have a text that also occurs in train; scores on dev may be too high" in notes
    assert "2 of 2 rows of dev have a group that also occurs in train; scores on dev may be too high" in notes


@pytest.mark.parametrize("task", ["classification", "multi-label"])
def test_rare_labels_are_held_out_too(task: str, tmp_path: Path) -> None:
    label = (lambda word: word) if task == "classification" else (lambda word: [word])
    rows = [{"text": f"text {n}", "label": label("rare" if n % 50 == 49 else "often")} for n in range(100)]
    dataset = read_dataset(task, write_lines(tmp_path / "rows.jsonl", rows))
    for side in (dataset.train, dataset.dev["dev"]):
        assert sum("rare" in one.label for one in side) == 1
    assert not any("no held-out row" in note for note in dataset.notes)


def test_many_rare_labels_do_not_take_the_training_rows() -> None:
    """Half of each label's share would be a third of these rows, if each of 600 labels had one held out."""
    rows = [TextExample(str(n), f"text {n}", label=str(n % 600)) for n in range(1800)]
    _, held = hold_out(rows, 0.1, labels_of=lambda row: (row.label,))
    assert len(held) == 360  # twice the share


def test_a_label_that_no_held_out_row_has_is_reported(tmp_path: Path) -> None:
    rows = [{"text": f"text {n}", "label": "rare" if n == 0 else f"{n % 2}"} for n in range(30)]
    notes = read_dataset("classification", write_lines(tmp_path / "rows.jsonl", rows)).notes
    assert any(note.startswith("no held-out row has the label rare") for note in notes)


def test_a_group_must_be_a_column(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rows.jsonl", [ROWS["classification"](n) for n in range(6)])
    with refuses(DataError, "unknown-column"):
        read_dataset("classification", path, TableOptions(group="author"))
    with refuses(ConfigError, "conflicting-options"):
        read_dataset("sst-2", tmp_path, TableOptions(group="author"))


def test_one_text_alone_cannot_be_held_out(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rows.jsonl", [{"text": "same", "label": str(n % 2)} for n in range(20)])
    with refuses(DataError, "too-few-examples"):
        read_dataset("classification", path)
