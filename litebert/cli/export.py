"""`litebert export`: a checkpoint becomes files that others run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from litebert.cli.words import CheckpointPath
from litebert.core.errors import ConfigError

if TYPE_CHECKING:
    from litebert.checkpoint import Checkpoint
    from litebert.exporters.int8 import Int8Options

MAX_DROP = 1.0  # points


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
        float | None, typer.Option(min=0, help=f"The points that int8 may lose on --dev; {MAX_DROP:g} unless told.")
    ] = None,
    runtime: Annotated[
        Path | None, typer.Option(help="Of web: the folder of onnxruntime-web; without it npm fetches it.")
    ] = None,
) -> None:
    """Write a model for onnxruntime or for the browser, with its tokenizer; what layers share is stored once."""
    from litebert.exporters.int8 import Int8Options
    from litebert.interop.opening import load_checkpoint
    from litebert.interop.truncating import truncate

    is_int8 = int8 or format == "web"
    if not is_int8 and (dev is not None or max_drop is not None):
        raise ConfigError("--dev and --max-drop are for int8: say --int8 too, or leave them out")
    if max_drop is not None and dev is None:
        raise ConfigError("--max-drop is measured on --dev FILE: give one, or leave it out")
    if runtime is not None and format != "web":
        raise ConfigError("--runtime is for --format web: say that too, or leave it out")
    opened = load_checkpoint(checkpoint)
    opened = truncate(opened, layers) if layers else opened
    options = Int8Options(dev, MAX_DROP if max_drop is None else max_drop, print)
    if format == "web":
        write_page(opened, out, options, head=task_head, runtime=runtime)
    else:
        write_onnx(opened, out, options if int8 else None, head=task_head)


def write_onnx(checkpoint: "Checkpoint", out: Path, options: "Int8Options | None", *, head: str) -> None:
    """The folder of an ONNX file, in float or as the options say in eight bits."""
    from litebert.exporters.int8 import export_int8
    from litebert.exporters.onnx_folder import export_onnx, has_exits, learned_exits

    if options is None:
        done = export_onnx(checkpoint, out, head=head)
    else:
        result = export_int8(checkpoint, out, options, head=head)
        done = result.exported
        if result.accuracy is None:
            print("note: what int8 costs was not measured; give --dev FILE")
        if result.in_float:
            print(f"left in float: {', '.join(result.in_float)}")
    if learned_exits(checkpoint, done.head) and not has_exits(checkpoint, done.head):
        print("note: its layers are not one, so that a graph cannot leave them early: it always computes all of them")
    print(f"done: {done.path} ({done.head}, {done.num_bytes / 1e6:.1f} MB)")


def write_page(checkpoint: "Checkpoint", out: Path, options: "Int8Options", *, head: str, runtime: Path | None) -> None:
    """The static folder of a page, always in eight bits."""
    from litebert.exporters.web import MAX_BYTES, export_web

    done = export_web(checkpoint, out, options, head=head, runtime=runtime)
    if done.accuracy is None:
        print("note: what int8 costs was not measured; give --dev FILE")
    if done.num_bytes > MAX_BYTES:
        print(f"note: visitors load {done.num_bytes / 1e6:.0f} MB of model; a smaller one, or --layers, is kinder")
    print(f"done: {done.path} ({done.head}, model {done.num_bytes / 1e6:.1f} MB)")
    print(f"look at it: python -m http.server --directory {done.path}")
