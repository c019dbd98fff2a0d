"""`litebert export`: a checkpoint becomes files that others run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from litebert.cli.finetune import CheckpointPath
from litebert.core.errors import ConfigError

if TYPE_CHECKING:
    from litebert.checkpoint import Checkpoint


def export_model(
    checkpoint: CheckpointPath,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write; it must not exist.")],
    format: Annotated[  # noqa: A002
        Literal["onnx", "web"], typer.Option(help="onnx: for onnxruntime. web: a page that answers in the browser.")
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
    max_drop: Annotated[float, typer.Option(min=0, help="The points that int8 may lose on --dev.")] = 1.0,
    runtime: Annotated[
        Path | None, typer.Option(help="Of web: the folder of onnxruntime-web; without it npm fetches it.")
    ] = None,
) -> None:
    """Write a model for onnxruntime or for the browser, with its tokenizer; what layers share is stored once."""
    from litebert.export.int8 import export_int8
    from litebert.export.onnx_folder import export_onnx
    from litebert.interop.opening import load_checkpoint
    from litebert.interop.truncating import truncate

    if dev is not None and not int8 and format == "onnx":
        raise ConfigError("--dev is what int8 is measured on: say --int8 too, or leave it out")
    opened = load_checkpoint(checkpoint)
    opened = truncate(opened, layers) if layers else opened
    if format == "web":
        write_page(opened, out, task_head, runtime, dev, max_drop)
        return
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


def write_page(
    checkpoint: "Checkpoint", out: Path, head: str, runtime: Path | None, dev: Path | None, max_drop: float
) -> None:
    """The static folder of a page, always in eight bits."""
    from litebert.export.web import export_web

    done = export_web(checkpoint, out, head=head, runtime=runtime, dev=dev, max_drop=max_drop, say=print)
    if done.accuracy is None:
        print("note: what int8 costs was not measured; give --dev FILE")
    print(f"done: {done.path} ({done.head}, model {done.num_bytes / 1e6:.1f} MB)")
    print(f"look at it: python -m http.server --directory {done.path}")
