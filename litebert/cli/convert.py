"""`litebert convert`: a model from anywhere becomes a checkpoint of ours, or a folder for transformers."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from litebert import api

SourceName = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A Hugging Face folder or hub name, a TensorFlow checkpoint (model.ckpt-best), a litebert checkpoint, or "
        "a run that has one.",
    ),
]
AllowMissing = Annotated[
    Literal["heads"] | None, typer.Option(help="Take a model whose heads are missing or not whole, without them.")
]
Classifier = Annotated[
    Literal["classification", "tokens", "choice"] | None,
    typer.Option(help="What a classifier is, where the source does not say."),
]
TokenizerPath = Annotated[
    Path | None,
    typer.Option(help="The tokenizer, where it is not stored next to the weights; none for a model that reads ids."),
]
ConfigPath = Annotated[Path | None, typer.Option(help="TensorFlow: albert_config.json, where it lies elsewhere.")]


def convert_model(
    source: SourceName,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write; it must not exist.")],
    to: Annotated[Literal["litebert", "huggingface"], typer.Option(help="For litebert, or for transformers.")] = (
        "litebert"
    ),
    allow_missing: AllowMissing = None,
    keep_slots: Annotated[bool, typer.Option("--keep-slots", help="Keep the optimizer's moments, to go on.")] = False,
    heads: Annotated[str | None, typer.Option(help="Keep only these heads: mlm,sentence. '' keeps none.")] = None,
    sharing: Annotated[
        Literal["none", "all"] | None,
        typer.Option(help="none: each layer its own weights, exactly. all: one block, the average of the layers."),
    ] = None,
    dtype: Annotated[
        Literal["float32", "float16", "bfloat16"] | None,
        typer.Option(help="Store the weights in this type: half the size, rounded. Computing stays in float32."),
    ] = None,
    layers: Annotated[int, typer.Option(min=0, help="Keep only so many of the first layers; 0: all.")] = 0,
    classifier: Classifier = None,
    tokenizer: TokenizerPath = None,
    config: ConfigPath = None,
) -> None:
    """Convert a model exactly: nothing missing, nothing left over, or it is refused."""
    result = api.convert(
        source,
        out,
        to=to,
        allow_missing=allow_missing,
        keep_slots=keep_slots,
        heads=None if heads is None else [name for name in heads.split(",") if name],
        sharing=sharing,
        dtype=dtype,
        layers=layers,
        classifier=classifier,
        tokenizer=tokenizer,
        config=config,
    )
    for note in result.report["notes"]:
        print(f"note: {note}")
    print(f"done: {out} ({result.report['written_as']}, {result.report['num_parameters']:,} parameters)")
