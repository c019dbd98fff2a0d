"""`litebert export`: a checkpoint becomes files that others run."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from litebert.cli.finetune import CheckpointPath


def export_model(
    checkpoint: CheckpointPath,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write; it must not exist.")],
    format: Annotated[Literal["onnx"], typer.Option(help="onnx: for onnxruntime and OpenVINO.")] = "onnx",  # noqa: A002
    task_head: Annotated[
        str, typer.Option(help="Which head answers: mlm, sentence, embedding, ... Default: what it was fine-tuned for.")
    ] = "",
) -> None:
    """Write a model for onnxruntime, with its tokenizer; what layers share is stored once."""
    del format
    from litebert.export.onnx_folder import export_onnx
    from litebert.interop.opening import load_checkpoint

    done = export_onnx(load_checkpoint(checkpoint), out, head=task_head)
    print(f"done: {done.path} ({done.head}, {done.num_bytes / 1e6:.1f} MB)")
