"""`litebert export`: a checkpoint becomes files that others run."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from litebert import api
from litebert.cli.words import CheckpointPath


def export_model(
    checkpoint: CheckpointPath,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write; it must not exist.")],
    format: Annotated[  # noqa: A002
        Literal["onnx", "web"],
        typer.Option(help="onnx: for onnxruntime. web: a page that answers in the browser, always in int8."),
    ] = "onnx",
    task_head: Annotated[
        str, typer.Option(help="Which head answers: mlm, sentence, embedding, ... Default: what it was fine-tuned for.")
    ] = "",
    int8: Annotated[bool, typer.Option("--int8", help="Matrices in eight bits: a quarter of the size, and faster.")] = (
        False
    ),
    dev: Annotated[
        Path | None,
        typer.Option(help="Labelled examples (or, of a pre-trained model, lines of text) that int8 is measured on."),
    ] = None,
    layers: Annotated[int, typer.Option(min=0, help="Only so many of the first layers; 0: all.")] = 0,
    max_drop: Annotated[
        float | None, typer.Option(min=0, help=f"The points that int8 may lose on --dev; {api.MAX_DROP:g} unless told.")
    ] = None,
    runtime: Annotated[
        Path | None, typer.Option(help="Of web: the folder of onnxruntime-web; without it npm fetches it.")
    ] = None,
) -> None:
    """Write a model for onnxruntime or for the browser, with its tokenizer; what layers share is stored once."""
    result = api.export(
        checkpoint,
        out,
        format=format,
        head=task_head,
        int8=int8,
        dev=dev,
        layers=layers,
        max_drop=max_drop,
        runtime=runtime,
    )
    report = result.report
    for note in report["notes"]:
        print(f"note: {note}")
    if report["in_float"]:
        print(f"left in float: {', '.join(report['in_float'])}")
    model = "model " if format == "web" else ""
    print(f"done: {out} ({report['head']}, {model}{report['num_bytes'] / 1e6:.1f} MB)")
    if format == "web":
        print(f"look at it: python -m http.server --directory {out}")
