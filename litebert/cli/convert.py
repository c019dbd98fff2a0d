"""`litebert convert`: convert a model from elsewhere to a litebert checkpoint, or a checkpoint to transformers."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from litebert import api

SourceName = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="Model: a Hugging Face folder or hub name, a TensorFlow checkpoint (model.ckpt-best), a litebert "
        "checkpoint, or a run.",
    ),
]
AllowMissing = Annotated[
    Literal["heads"] | None, typer.Option(help="heads: accept a model with missing or incomplete heads, and drop them.")
]
Classifier = Annotated[
    Literal["classification", "tokens", "choice"] | None,
    typer.Option(help="Kind of classifier, if the source does not state it."),
]
TokenizerPath = Annotated[
    Path | None,
    typer.Option(help="Tokenizer, if it is not stored next to the weights."),
]
ConfigPath = Annotated[
    Path | None, typer.Option(help="TensorFlow: path of albert_config.json, if it is not next to the checkpoint.")
]


def convert_model(
    source: SourceName,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write; it must not exist.")],
    to: Annotated[
        Literal["litebert", "huggingface"], typer.Option(help="Format to write; huggingface is for transformers.")
    ] = ("litebert"),
    allow_missing: AllowMissing = None,
    keep_slots: Annotated[
        bool, typer.Option("--keep-slots", help="Keep the optimizer state, to continue training.")
    ] = False,
    heads: Annotated[
        str | None, typer.Option(help="Keep only these heads, such as mlm,sentence; '' keeps none. Default: all.")
    ] = None,
    sharing: Annotated[
        Literal["none", "all"] | None,
        typer.Option(
            help="Change weight sharing. none: separate weights per layer (exact). all: one block, the layers' average."
        ),
    ] = None,
    dtype: Annotated[
        Literal["float32", "float16", "bfloat16"] | None,
        typer.Option(
            help="Store the weights as this type; 16-bit types halve the size and round. Computation stays in float32."
        ),
    ] = None,
    layers: Annotated[int, typer.Option(min=0, help="Keep only the first N layers; 0 keeps all.")] = 0,
    classifier: Classifier = None,
    tokenizer: TokenizerPath = None,
    config: ConfigPath = None,
) -> None:
    """Convert a model exactly; a missing or unmatched weight is an error.

    Example: litebert convert albert-base-v2 models/albert-base
    """
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
