"""`litebert predict`: print a model's predictions for texts."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from litebert import api
from litebert.cli.words import (
    ChoicesField,
    Encoding,
    EngineWord,
    HasHeader,
    Layers,
    ModelPath,
    Patience,
    TextBColumn,
    TextColumn,
    Threads,
)


def predict_texts(
    model: ModelPath,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILES", help="Text files with one text per line, or tables. Default: standard input."),
    ] = None,
    text: TextColumn = None,
    text_b: TextBColumn = None,
    encoding: Encoding = "utf-8",
    header: HasHeader = None,
    choices: ChoicesField = None,
    as_table: Annotated[bool, typer.Option("--table", help="Print a table instead of JSON lines.")] = False,
    long: Annotated[
        Literal["truncate", "windows"],
        typer.Option(help="Single texts longer than the model reads. windows: read all of it, and pool the answers."),
    ] = "truncate",
    pool_windows: Annotated[
        Literal["mean", "max", "first"], typer.Option(help="How --long windows makes one answer of several.")
    ] = "mean",
    engine: EngineWord = None,
    threads: Threads = 0,
    patience: Patience = 0,
    layers: Layers = 0,
) -> None:
    """Predict for texts, one per line, or for the rows of tables.

    A tab separates the texts of a pair. A model that was only pre-trained predicts the tokens at [MASK].

    Examples:
      litebert predict runs/reviews more.txt
      litebert predict runs/reviews more.txt --table
      litebert predict runs/nano masked.txt
    """
    answers = api.iter_answers(
        model,
        files or [],
        text=text,
        text_b=text_b,
        encoding=encoding,
        header=header,
        choices=choices,
        long=long,
        window_pooling=pool_windows,
        engine=engine,
        threads=threads,
        patience=patience,
        layers=layers,
    )
    for one in answers:
        print("\t".join(one.row) if as_table else json.dumps(one.record, ensure_ascii=False))
