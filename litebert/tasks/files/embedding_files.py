"""Reads what embeddings learn from: a table of pairs, triplets or scored pairs, or plain text, of which crops are cut.

The columns decide which: a third text makes triplets, a number makes scored pairs.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from litebert.core.errors import ConfigError, DataError
from litebert.tasks.files.columns import (
    Columns,
    Usual,
    check_group,
    find_columns,
    guess_column,
    match_columns,
    read_named_table,
)
from litebert.tasks.files.crops import is_corpus, read_crops
from litebert.tasks.files.custom import forget_partial, read_number
from litebert.tasks.files.first_rows import show_first_rows
from litebert.tasks.files.reading import TableOptions, find_files, find_split
from litebert.tasks.files.splitting import hold_out
from litebert.tasks.files.tables import Table, cell_text, is_blank, tells_label
from litebert.tasks.finetuning import Dataset
from litebert.tasks.kinds.embedding import METRICS, EmbeddedText, Embedding, Form

PAIRS = Usual(
    ("anchor", "query", "question", "title", "sentence1", "text_a", "text", "premise", "question1"),
    ("positive", "passage", "document", "article", "answer", "sentence2", "text_b", "hypothesis", "question2"),
    ("score", "similarity", "similarity_score", "label"),
)
NEGATIVE = ("negative", "hard_negative")


def read_embeddings(path: Path, options: TableOptions) -> Dataset:
    """Read the examples of each split; without a dev file, a share of the pairs is held out."""
    splits, notes = (read_crops if is_corpus(path) else _read_tables)(path, options)
    if "dev" not in splits and options.dev_share and splits["train"]:
        rows = splits["train"]
        splits["train"], splits["dev"] = hold_out(rows, options.dev_share)
        notes.append(f"no dev file: {len(splits['dev']):,} of {len(rows):,} training rows are held out for dev")
    form = _find_form(next(rows for rows in splits.values() if rows))
    task = Embedding(form=form, metric=_choose_metric(form, options))
    if form == "scored":
        scores = [example.label for rows in splits.values() for example in rows if example.label is not None]
        task = dataclasses.replace(task, low=min(scores, default=0.0), high=max(scores, default=1.0))
    return Dataset.of(task, splits, [*notes, *show_first_rows(splits, is_learned=options.is_learned)])


def _read_tables(path: Path, options: TableOptions) -> tuple[dict[str, list[EmbeddedText]], list[str]]:
    splits: dict[str, list[EmbeddedText]] = {"train": []}
    notes: list[str] = []
    first: tuple[Table, Columns, str | None] | None = None
    for split, file in find_files(path, options, find_split, usual="train.csv, train.tsv, train.jsonl").items():
        table = read_named_table(file, options, first[0].columns if first and first[0].has_header else ())
        check_group(table, options, is_needed=split == "train")
        if first:
            columns, negative = match_columns(first[1], first[0], table, needs_label=split != "test"), first[2]
        else:
            columns = find_columns(table, options, needs_label=False, usual=PAIRS)
            negative = guess_column([c for c in table.columns if c not in columns.parts], NEGATIVE)
        if columns.label and not any(tells_label(row, columns.label) for row in table.rows):
            columns = dataclasses.replace(columns, label=None)
        first = first or (table, columns, negative)
        negative = negative if negative in table.columns else None
        splits[split] = _read_rows(table, columns, negative, options, is_scored=first[1].label is not None)
        if split == "test":
            splits[split] = forget_partial(splits[split], notes)
        third = "" if negative is None else f", negative = '{negative}'"
        notes += [*table.notes, f"columns of {file.name}: {columns}{third}"]
    return splits, notes


def _read_rows(
    table: Table, columns: Columns, negative: str | None, options: TableOptions, *, is_scored: bool
) -> list[EmbeddedText]:
    second, score = columns.text_b, columns.label
    if second is None:
        raise DataError(
            "ambiguous-column",
            f"{table.path}: cannot tell which column is the second text (it has {', '.join(table.columns)}); "
            "embeddings learn from pairs: name both text and text_b",
            option="text_b",
        )
    return [
        EmbeddedText(
            id=row.identity(number),
            text=cell_text(row, columns.text),
            text_b=cell_text(row, second),
            # that two texts belong together is their label
            label=(None if is_scored else 1.0) if score is None or is_blank(row, score) else read_number(row, score),
            where=row.where,
            group=row.group(options.group),
            negative=None if negative is None else cell_text(row, negative),
        )
        for number, row in enumerate(table.rows)
    ]


def _find_form(examples: Sequence[EmbeddedText]) -> Form:
    if examples[0].negative is not None:
        return "triplets"
    return "pairs" if all(example.label == 1.0 for example in examples) else "scored"


def _choose_metric(form: Form, options: TableOptions) -> str:
    if options.metric is None:
        return METRICS[form][0]
    if options.metric not in METRICS[form]:
        raise ConfigError(
            "unknown-metric",
            f"unknown metric '{options.metric}' for {form}; valid: {', '.join(METRICS[form])}",
            option="metric",
        )
    return options.metric
