"""`litebert export`: export a checkpoint for onnxruntime or the browser."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from litebert import api
from litebert.cli.words import ModelPath, OutFolder, Overwrite


def export_model(
    model: ModelPath,
    out: OutFolder,
    to: Annotated[
        Literal["onnx", "web"],
        typer.Option(
            help="Format to write. onnx: for onnxruntime. web: a page that runs the model in the browser, in int8."
        ),
    ] = "onnx",
    head: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Head to export: mlm, sentence, embedding, ... Default: the fine-tuned head."
        ),
    ] = "",
    int8: Annotated[
        bool, typer.Option("--int8", help="Quantize matrices to int8: a quarter of the size, and faster.")
    ] = False,
    dev: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Labelled examples to measure int8 on (for a pre-trained model, lines of text)."
        ),
    ] = None,
    layers: Annotated[int, typer.Option(min=0, help="Export only the first N layers; 0 exports all.")] = 0,
    max_drop: Annotated[
        float | None, typer.Option(min=0, help=f"Points int8 may lose on --dev. Default: {api.MAX_DROP:g}.")
    ] = None,
    runtime: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="web: folder of onnxruntime-web. Default: download with npm."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Export a model for onnxruntime or the browser, with its tokenizer.

    Shared weights are stored once.

    Examples:
      litebert export runs/reviews --out exported
      litebert export runs/reviews --int8 --dev reviews.csv --max-drop 5 --out exported-int8
    """
    result = api.export(
        model,
        out,
        format=to,
        head=head,
        int8=int8,
        dev=dev,
        layers=layers,
        max_drop=max_drop,
        runtime=runtime,
        overwrite=overwrite,
    )
    report = result.report
    for note in report["notes"]:
        print(f"note: {note}")
    if report["in_float"]:
        print(f"kept in float: {', '.join(report['in_float'])}")
    what = "model " if to == "web" else ""
    print(f"done: {out} ({report['head']}, {what}{report['num_bytes'] / 1e6:.1f} MB)")
    if to == "web":
        print(f"open it with: python -m http.server --directory {out}")
