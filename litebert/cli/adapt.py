"""`litebert adapt`: continue the pre-training of any model on your own text."""

import re
from pathlib import Path
from typing import Annotated

import typer

from litebert import api
from litebert.cli.words import ModelPath, OnBadText, TextField, TextFormat, Texts, name_files

_OVERRIDE = re.compile(r"[a-z]\w*(\.\w+)*=")  # a file of such a name can be given as ./a=b


def adapt_model(
    model: ModelPath,
    texts: Texts,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Run folder; an interrupted run is resumed.")
    ],
    text_format: TextFormat = "auto",
    field: TextField = "text",
    on_error: OnBadText = "fail",
    valid_share: Annotated[float, typer.Option(help="Share of documents to hold out for evaluation.")] = 0.1,
) -> None:
    """Continue pre-training a model on your own text.

    Masked-token accuracy on held-out text is reported before and after. Tokenizer, architecture and sequence length
    come from the model. To resume an interrupted run, repeat the command.

    TEXTS may be followed by recipe keys to override, as KEY=VALUE.

    Examples:
      litebert adapt models/cpu-small-en texts/ --out runs/adapted
      litebert adapt models/cpu-small-en texts/ train.steps=500 --out runs/adapted-500
    """
    changes = [word for word in texts if _OVERRIDE.match(word)]
    result = api.adapt(
        str(model),
        name_files([word for word in texts if word not in changes]),
        out,
        changes,
        format=text_format,
        field=field,
        on_error=on_error,
        valid_share=valid_share,
    )
    numbers = result.metrics
    print(
        f"masked-token accuracy on {numbers['num_masked']:,} held-out tokens: {numbers['mlm_accuracy_before']:.1%} "
        f"before, {numbers['mlm_accuracy']:.1%} after (loss {numbers['mlm_loss_before']:.3f} and "
        f"{numbers['mlm_loss']:.3f})"
    )
    print(f"done: {result.checkpoint}")
