"""`litebert adapt`: continued pre-training of any model on a person's own text, in one command."""

from pathlib import Path
from typing import Annotated

import typer

from litebert import api
from litebert.cli.words import CheckpointPath, name_files


def adapt_model(
    model: CheckpointPath,
    texts: Annotated[list[str], typer.Argument(metavar="TEXTS...", help="Text: files, folders, globs, or -.")],
    out: Annotated[Path, typer.Option(help="The run's folder.")],
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the recipe: train.steps=500."),
    ] = None,
    text_format: Annotated[str, typer.Option("--format", help="The format of the text; auto looks.")] = "auto",
    field: Annotated[str, typer.Option(help="JSONL and Parquet: the field with the text.")] = "text",
    on_error: Annotated[str, typer.Option(help="At bad input: fail, or skip it and count it.")] = "fail",
    valid_share: Annotated[float, typer.Option(help="Share of the documents held out, to measure on.")] = 0.1,
) -> None:
    """Continue a model's pre-training on your own text; report masked-token accuracy on held-out text before and after.

    Tokenizer, shape, depth and length come from the model. Interrupted, the same command continues.

    Example: litebert adapt models/cpu-small-en my-texts/ --out runs/adapted
    """
    result = api.adapt(
        str(model),
        name_files(texts),
        out,
        changes or [],
        format=text_format,
        field=field,
        on_error=on_error,  # type: ignore[arg-type]  # checked there
        valid_share=valid_share,
    )
    numbers = result.metrics
    print(
        f"masked-token accuracy on {numbers['num_masked']:,} held-out tokens: {numbers['mlm_accuracy_before']:.1%} "
        f"before, {numbers['mlm_accuracy']:.1%} after (loss {numbers['mlm_loss_before']:.3f} and "
        f"{numbers['mlm_loss']:.3f})"
    )
    print(f"done: {result.checkpoint}")
