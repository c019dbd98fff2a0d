"""`litebert export`: a checkpoint becomes files that others run."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from litebert.cli.finetune import CheckpointPath
from litebert.core.errors import ConfigError


def export_model(
    checkpoint: CheckpointPath,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write; it must not exist.")],
    format: Annotated[Literal["onnx"], typer.Option(help="onnx: for onnxruntime and OpenVINO.")] = "onnx",  # noqa: A002
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
    max_drop: Annotated[float, typer.Option(min=0, help="The points that int8 may lose on --dev.")] = 1.0,
) -> None:
    """Write a model for onnxruntime, with its tokenizer; what layers share is stored once."""
    del format
    from litebert.export.int8 import export_int8
    from litebert.export.onnx_folder import export_onnx
    from litebert.interop.opening import load_checkpoint
    from litebert.interop.truncating import truncate

    if dev is not None and not int8:
        raise ConfigError("--dev is what int8 is measured on: say --int8 too, or leave it out")
    opened = load_checkpoint(checkpoint)
    opened = truncate(opened, layers) if layers else opened
    if not int8:
        done = export_onnx(opened, out, head=task_head)
    else:
        result = export_int8(opened, out, head=task_head, dev=dev, max_drop=max_drop, say=print)
        done = result.exported
        if result.accuracy is None:
            print("note: what int8 costs was not measured; give --dev FILE")
        if result.in_float:
            print(f"left in float: {', '.join(result.in_float)}")
    print(f"done: {done.path} ({done.head}, {done.num_bytes / 1e6:.1f} MB)")
