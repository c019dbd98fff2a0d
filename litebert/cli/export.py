"""`litebert export`: export a checkpoint for onnxruntime or the browser."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from litebert import api
from litebert.cli.words import CheckpointPath


def export_model(
    checkpoint: CheckpointPath,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write; it must not exist.")],
    format: Annotated[  # noqa: A002
        Literal["onnx", "web"],
        typer.Option(
            help="Export format. onnx: for onnxruntime. web: a page that runs the model in the browser, in int8."
        ),
    ] = "onnx",
    task_head: Annotated[
        str, typer.Option(help="Head to export: mlm, sentence, embedding, ... Default: the fine-tuned head.")
    ] = "",
    int8: Annotated[
        bool, typer.Option("--int8", help="Quantize matrices to int8: a quarter of the size, and faster.")
    ] = (False),
    dev: Annotated[
        Path | None,
        typer.Option(help="Labelled examples to measure int8 on (for a pre-trained model, lines of text)."),
    ] = None,
    layers: Annotated[int, typer.Option(min=0, help="Export only the first N layers; 0 exports all.")] = 0,
    max_drop: Annotated[
        float | None, typer.Option(min=0, help=f"Points int8 may lose on --dev. Default: {api.MAX_DROP:g}.")
    ] = None,
    runtime: Annotated[
        Path | None, typer.Option(help="web: folder of onnxruntime-web. Default: download with npm.")
    ] = None,
) -> None:
    """Export a model for onnxruntime or the browser, with its tokenizer; shared weights are stored once.

    Example: litebert export runs/sst-2 exports/sst-2 --int8
    """
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
        print(f"kept in float: {', '.join(report['in_float'])}")
    model = "model " if format == "web" else ""
    print(f"done: {out} ({report['head']}, {model}{report['num_bytes'] / 1e6:.1f} MB)")
    if format == "web":
        print(f"open it with: python -m http.server --directory {out}")
