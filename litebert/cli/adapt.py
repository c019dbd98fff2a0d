"""`litebert adapt`: continue the pre-training of any model on your own text."""

from pathlib import Path
from typing import Annotated

import typer

from litebert import api
from litebert.cli.words import CheckpointPath, name_files


def adapt_model(
    model: CheckpointPath,
    texts: Annotated[
        list[str], typer.Argument(metavar="TEXTS...", help="Text files, folders or globs; - reads standard input.")
    ],
    out: Annotated[Path, typer.Option(help="Folder to write the run to.")],
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a recipe key, such as train.steps=500."),
    ] = None,
    text_format: Annotated[str, typer.Option("--format", help="Text format; auto detects it per file.")] = "auto",
    field: Annotated[str, typer.Option(help="Name of the text field (JSONL and Parquet).")] = "text",
    on_error: Annotated[str, typer.Option(help="On bad input: fail, or skip and count it.")] = "fail",
    valid_share: Annotated[float, typer.Option(help="Share of documents to hold out for evaluation.")] = 0.1,
) -> None:
    """Continue pre-training a model on your own text; report masked-token accuracy on held-out text before and after.

    Tokenizer, architecture and sequence length come from the model. To resume an interrupted run, repeat the command.

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
