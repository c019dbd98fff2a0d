"""Numbers in text, however many digits they have."""

from pathlib import Path

import pytest
from refusals import refuses

from litebert.core.errors import DataError
from litebert.core.ranges import read_whole_number
from litebert.tasks.catalog import read_dataset
from litebert.training.distributed import read_timeout


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("007", 7), ("9" * 18, 10**18 - 1), ("9" * 5_000, None), ("-1", None), ("1.0", None), ("²", None)],
)
def test_digits_are_a_number_unless_there_are_too_many(text: str, number: int | None) -> None:
    assert read_whole_number(text) == number


def test_a_label_of_5000_digits_is_a_choice_that_nobody_has(tmp_path: Path) -> None:
    (tmp_path / "choices.csv").write_text(f"sent1,ending0,ending1,label\nWho?,cat,dog,{'9' * 5_000}\n")
    with refuses(DataError, "bad-label", at="choices.csv"):
        read_dataset("choice", tmp_path / "choices.csv")


def test_a_class_of_5000_digits_is_a_name(tmp_path: Path) -> None:
    rows = [f"a cat,{'9' * 5_000}", "a dog,2", "a bird,10"] * 4
    (tmp_path / "classes.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    dataset = read_dataset("classification", tmp_path / "classes.csv")
    assert dataset.task.labels == ("10", "2", "9" * 5_000)  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", ["0", "x", "9" * 12, "9" * 5_000])
def test_a_time_to_wait_that_no_clock_has_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITEBERT_PROCESS_TIMEOUT", text)
    with pytest.raises(Exception, match="LITEBERT_PROCESS_TIMEOUT"):
        read_timeout()
