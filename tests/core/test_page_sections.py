"""Programs replace only their own section of a page."""

from pathlib import Path

import pytest
from refusals import refuses

from litebert.core.errors import DataError
from litebert.core.pages import wrap_prose, write_part


def test_a_part_is_replaced_and_all_else_is_kept(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Ours\n\nBy hand.\n\n<!-- a: begin -->\nold\n<!-- a: end -->\n\nThe end.\n", "utf-8")
    write_part(page, "a", "new\n")
    assert page.read_text("utf-8") == "# Ours\n\nBy hand.\n\n<!-- a: begin -->\nnew\n<!-- a: end -->\n\nThe end.\n"


def test_sections_of_two_programs_are_kept_in_any_order_of_writing(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for name, text in (("a", "1"), ("b", "2"), ("a", "3")):
        write_part(page, name, text)
    begin_a, begin_b = "<!-- a: begin -->\n3\n<!-- a: end -->", "<!-- b: begin -->\n2\n<!-- b: end -->"
    assert page.read_text("utf-8") == f"# Results\n\n{begin_a}\n\n{begin_b}\n"


@pytest.mark.parametrize("marks", ["begin", "end", "end begin", "begin begin end"])
def test_broken_marks_are_refused_and_the_page_is_kept(tmp_path: Path, marks: str) -> None:
    page = tmp_path / "page.md"
    text = "\n".join(f"<!-- a: {mark} -->" for mark in marks.split())
    page.write_text(text, "utf-8")
    with refuses(DataError, "bad-markers"):
        write_part(page, "a", "new")
    assert page.read_text("utf-8") == text


def test_only_prose_is_wrapped_and_wrapping_again_changes_nothing() -> None:
    words = "word " * 40
    kept = [f"| {words}|", f"![{words}](a.png)", f"### {words}", "```", words, "```", "short"]
    wrapped = wrap_prose("\n".join([words, f"- {words}", *kept]))
    lines = wrapped.split("\n")
    assert lines[-len(kept) :] == kept
    assert all(len(line) <= 120 for line in lines[: -len(kept)])
    assert " ".join(wrapped.split()) == " ".join([*words.split(), "-", *words.split(), *" ".join(kept).split()])
    assert [line[:2] for line in lines[2:4]] == ["- ", "  "], "an item continues below its text"
    assert wrap_prose(wrapped) == wrapped


@pytest.mark.parametrize("mark", ["512.", "-", "+", "3)", "##"])
def test_no_line_of_a_paragraph_becomes_an_item_or_a_heading(mark: str) -> None:
    text = "".join(f"{'a' * number} {mark} and " for number in range(1, 40)).strip()
    lines = wrap_prose(text).split("\n")
    assert not [line for line in lines if line.startswith(f"{mark} ")]
    assert " ".join(lines) == text
