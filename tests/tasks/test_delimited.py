"""Text with a mark between cells: quoted TSV is read as it was written, GLUE's as it is; separators are found."""

import csv
import io
from pathlib import Path

import pytest
from refusals import refuses

from litebert.core.errors import DataError
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.delimited import read_delimited
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.files.tables import read_table, read_text

HEADER = ["text", "label"]
ODD_CELLS = ['first "part"\tmore\nand a second line', 'he said "no"', '"', "plain", "it's, well; a|b", "a\r\nb"]


def write_as_pandas(rows: list[list[str]], separator: str = "\t") -> str:
    """What DataFrame.to_csv(sep=...) writes: minimal quoting, quotes doubled, \\n at the end of lines."""
    file = io.StringIO()
    csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)
    return file.getvalue()


@pytest.mark.parametrize("name", ["rows.tsv", "rows.txt"])
def test_a_tsv_that_pandas_wrote_is_read_as_it_was(name: str, tmp_path: Path) -> None:
    rows = [[cell, str(number % 2)] for number, cell in enumerate(ODD_CELLS * 50)]
    text = write_as_pandas([HEADER, *rows])
    assert text.count("\n") > len(rows) + 1
    (tmp_path / name).write_text(text, newline="")
    dataset = read_dataset("classification", tmp_path / name, TableOptions(dev_share=0.0))
    assert [[example.text, example.label] for example in dataset.train] == rows
    assert f"{name}: read with quoted cells, as pandas writes TSV" in dataset.notes


def test_cells_that_continue_in_lines_of_as_many_tabs_are_no_rows_of_their_own(tmp_path: Path) -> None:
    rows = [['a "quoted"\tword\nof two lines', label] for label in ("yes", "no") * 150]
    (tmp_path / "rows.tsv").write_text(write_as_pandas([HEADER, *rows]), newline="")
    dataset = read_dataset("classification", tmp_path / "rows.tsv", TableOptions(dev_share=0.0))
    assert len(dataset.train) == 300
    assert dataset.task.labels == ("no", "yes")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "line",
    ['"Well," she said.', 'he said "no"', '"a quote that never ends', 'ends with a quote"', '"two" and "more"'],
)
def test_quotation_marks_that_no_writer_left_so_are_letters(line: str, tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text(f'text\tlabel\n{line}\t1\n"whole"\t0\n')
    dataset = read_dataset("classification", tmp_path / "rows.tsv", TableOptions(dev_share=0.0))
    assert [example.text for example in dataset.train] == [line, '"whole"']
    assert not any("quoted" in note for note in dataset.notes)


def test_a_quote_that_would_swallow_cells_is_a_letter(tmp_path: Path) -> None:
    text = '"open\ta\t1\nb\tclosed"\t0\nc\td\t1\n'
    found = read_delimited(tmp_path / "rows.tsv", text)
    assert (found.is_quoted, [line.cells for line in found.lines]) == (
        False,
        [['"open', "a", "1"], ["b", 'closed"', "0"], ["c", "d", "1"]],
    )


@pytest.mark.parametrize("is_label_first", [False, True])
def test_texts_between_two_quotes_are_rows_and_not_one_cell(is_label_first: bool, tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(20)]
    texts[3], texts[9] = f'"{texts[3]}', f'{texts[9]}"'
    rows = [[text, ("good", "bad")[number % 2]] for number, text in enumerate(texts)]
    rows = [row[::-1] for row in rows] if is_label_first else rows
    text = "".join("\t".join(row) + "\n" for row in rows)
    found = read_delimited(tmp_path / "rows.tsv", text)
    assert [line.cells for line in found.lines] == rows
    assert not found.is_quoted


def test_glue_is_taken_as_it_is_though_its_cells_look_quoted(tmp_path: Path) -> None:
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text('sentence\tlabel\n"fine"\t1\nplain\t0\n')
    assert [example.text for example in read_dataset("sst-2", tmp_path).train] == ['"fine"', "plain"]


def test_no_official_file_is_taken_for_a_quoted_one(real_data: Path) -> None:
    files = sorted((real_data / "glue").glob("*/*.tsv"))
    assert len(files) > 15
    for file in files:
        if file.stat().st_size < 2_000_000:
            text = read_text(file)
            assert read_delimited(file, text) == read_delimited(file, text, may_be_quoted=False), file


@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.txt"])
def test_the_separator_is_the_one_that_cuts_all_rows_alike(separator: str, name: str, tmp_path: Path) -> None:
    rows = [["good, really, nice; and cheap", "yes"], ["bad", "no"], ["so|so", "yes"]]
    (tmp_path / name).write_text(write_as_pandas(rows, separator), newline="")
    table = read_table(tmp_path / name, has_header=False)
    assert [list(row.cells.values()) for row in table.rows] == rows


def test_a_ragged_row_of_a_bar_separated_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("text|label\nx|1\ny|z|2\n")
    with refuses(DataError, "ragged-row", at="rows.csv:3"):
        read_table(tmp_path / "rows.csv")


def test_the_line_in_which_excel_names_the_separator_is_no_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\ufeffsep=;\r\ntext;label\r\none, two, three;x\r\nfour;y\r\n", encoding="utf-8", newline="")
    table = read_table(path)
    assert [row.cells for row in table.rows] == [
        {"text": "one, two, three", "label": "x"},
        {"text": "four", "label": "y"},
    ]
    assert table.rows[0].where.endswith(":3")
