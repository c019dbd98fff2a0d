"""The record of a run's texts: found from its checkpoints, kept by content, and refused where it is damaged."""

from pathlib import Path

from refusals import refuses

from litebert.core.errors import DataError
from litebert.tasks.finetuning import Dataset
from litebert.tasks.kinds.classification import Classification
from litebert.tasks.report import write_report
from litebert.tasks.seen_texts import SEEN_FILE, find_seen_texts, write_seen_texts
from litebert.tasks.texts import TextExample

TASK = Classification("classification", ("0", "1"))


def make_rows(*texts: str, label: str | None = "0") -> list[TextExample]:
    return [TextExample(str(number), text, label=label) for number, text in enumerate(texts)]


def test_a_training_file_is_known_in_any_order_with_rows_added_but_not_without_some(tmp_path: Path) -> None:
    write_seen_texts(tmp_path, Dataset(TASK, make_rows("a", "b", "c"), {"dev": make_rows("d", "e")}))
    seen = find_seen_texts(tmp_path / "model")
    assert seen is not None
    for rows, held in (("edcba", "ed"), ("EDcba", "ED"), ("abcdef", "def"), ("aabcde", "de")):
        trained, rest = seen.split(make_rows(*rows, label=None)) or ([], [])
        assert ("".join(row.text for row in rest), len(trained)) == (held, len(rows) - len(held))
    assert seen.split(make_rows(*"abcd")) is None
    assert seen.split(make_rows(*"vwxyz")) is None


def test_a_file_whose_dev_rows_are_elsewhere_has_no_held_out_rows(tmp_path: Path) -> None:
    write_seen_texts(tmp_path, Dataset(TASK, make_rows("a", "b"), {"dev": make_rows("a")}))
    seen = find_seen_texts(tmp_path)
    assert seen is not None
    assert seen.split(make_rows("a", "b")) is None
    assert seen.is_trained(make_rows("A ")[0])


def test_a_record_that_was_changed_is_refused(tmp_path: Path) -> None:
    write_seen_texts(tmp_path, Dataset(TASK, make_rows("a"), {"dev": make_rows("b")}))
    file = tmp_path / SEEN_FILE
    text = file.read_text()
    file.write_text(text.replace('"dev": "', '"dev": "AAAAAAAA'))
    with refuses(DataError, "corrupt-file", at="data.json"):
        find_seen_texts(tmp_path / "checkpoints" / "step-00000001")
    file.unlink()
    assert find_seen_texts(tmp_path / "model") is None


def test_an_ensemble_has_learned_what_any_of_its_members_has(tmp_path: Path) -> None:
    for name, trained, dev in (("one", "abc", "de"), ("two", "abd", "ce")):
        (tmp_path / name).mkdir()
        write_seen_texts(tmp_path / name, Dataset(TASK, make_rows(*trained), {"dev": make_rows(*dev)}))
    (tmp_path / "both").mkdir()
    facts = {"task": "classification", "metric": "accuracy", "facts": {}, "dev": {}, "test": {}}
    write_report(tmp_path / "both", {**facts, "members": ["one", "two"], "member_paths": ["../one", "../two"]})
    seen = find_seen_texts(tmp_path / "both")
    assert seen is not None
    assert [text for text in "abcdef" if seen.is_trained(make_rows(text)[0])] == list("abcd")
    _, held = seen.split(make_rows(*"abcde")) or ([], [])
    assert [row.text for row in held] == ["e"]
    (tmp_path / "two" / SEEN_FILE).unlink()
    assert find_seen_texts(tmp_path / "both") is None
