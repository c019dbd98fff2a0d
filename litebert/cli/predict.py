"""`litebert predict`: print a model's predictions for texts."""

import json
from pathlib import Path
from typing import Annotated

import typer

from litebert import api
from litebert.cli.words import (
    CheckpointPath,
    ChoicesField,
    Encoding,
    EngineWord,
    HasHeader,
    Layers,
    Patience,
    TextBColumn,
    TextColumn,
    Threads,
)


def predict_texts(
    checkpoint: CheckpointPath,
    files: Annotated[
        list[Path] | None, typer.Argument(help="Text files with one text per line, or tables. Default: standard input.")
    ] = None,
    text: TextColumn = None,
    text_b: TextBColumn = None,
    encoding: Encoding = "utf-8",
    header: HasHeader = None,
    choices: ChoicesField = None,
    as_table: Annotated[bool, typer.Option("--table", help="Print a table instead of JSON lines.")] = False,
    engine: EngineWord = None,
    threads: Threads = 0,
    patience: Patience = 0,
    layers: Layers = 0,
) -> None:
    """Predict for texts: one per line (a tab separates a pair), or tables (.csv, .tsv, .jsonl, ...).

    A model that was only pre-trained predicts the tokens at [MASK].

    Example: litebert predict runs/sst-2 reviews.txt
    """
    answers = api.iter_answers(
        checkpoint,
        files or [],
        text=text,
        text_b=text_b,
        encoding=encoding,
        header=header,
        choices=choices,
        engine=engine,
        threads=threads,
        patience=patience,
        layers=layers,
    )
    for one in answers:
        print("\t".join(one.row) if as_table else json.dumps(one.record, ensure_ascii=False))
