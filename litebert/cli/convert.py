"""`litebert convert`: convert a model from elsewhere to a litebert checkpoint, or a checkpoint to transformers."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from litebert import api
from litebert.cli.words import ModelPath, OutFolder, Overwrite

AllowMissing = Annotated[
    Literal["heads"] | None, typer.Option(help="heads: accept a model with missing or incomplete heads, and drop them.")
]
Classifier = Annotated[
    Literal["classification", "tokens", "choice"] | None,
    typer.Option(help="Kind of classifier, if the source does not state it."),
]
TokenizerPath = Annotated[
    Path | None,
    typer.Option(
        "--tokenizer", "-t", metavar="PATH", help="Tokenizer, if it is not stored next to the weights; none: read ids."
    ),
]
ConfigPath = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="TensorFlow: albert_config.json, if it is not next to the checkpoint."),
]


def convert_model(
    model: ModelPath,
    out: OutFolder,
    to: Annotated[
        Literal["litebert", "huggingface", "sentence-transformers"],
        typer.Option(
            help="Format to write; huggingface is for transformers, sentence-transformers has the encoder and how it "
            "makes vectors."
        ),
    ] = "litebert",
    allow_missing: AllowMissing = None,
    keep_slots: Annotated[
        bool, typer.Option("--keep-slots", help="Keep the optimizer state, to continue training.")
    ] = False,
    heads: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Keep only these heads, such as mlm,sentence; '' keeps none. Default: all."),
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
    max_positions: Annotated[
        int, typer.Option(min=0, help="Extend the model to this many positions, such as 4096; 0 keeps its own.")
    ] = 0,
    new_positions: Annotated[
        Literal["tiled", "continued"],
        typer.Option(help="Added positions: the learned ones repeated, or extrapolated by regression on waves."),
    ] = "continued",
    attention: Annotated[
        Literal["full", "window", "block"] | None,
        typer.Option(help="Change attention; window and block are linear in the length. Default: unchanged."),
    ] = None,
    attention_width: Annotated[
        int, typer.Option(min=0, help="Tokens seen on either side (window) or per block; 0: unchanged, or 128.")
    ] = 0,
    classifier: Classifier = None,
    tokenizer: TokenizerPath = None,
    config: ConfigPath = None,
    overwrite: Overwrite = False,
) -> None:
    """Convert a model to litebert or to transformers, exactly.

    A missing or unmatched weight is an error.

    Examples:
      litebert convert albert/albert-base-v2 --out models/albert-base
      litebert convert runs/reviews --to huggingface --out for-transformers
      litebert convert runs/nano --to sentence-transformers --out embedder
      litebert convert albert/albert-base-v2 --out models/albert-4k --max-positions 4096 --attention window
    """
    result = api.convert(
        str(model),
        out,
        to=to,
        allow_missing=allow_missing,
        keep_slots=keep_slots,
        heads=None if heads is None else [name for name in heads.split(",") if name],
        sharing=sharing,
        dtype=dtype,
        layers=layers,
        max_positions=max_positions,
        new_positions=new_positions,
        attention=attention,
        attention_width=attention_width,
        classifier=classifier,
        tokenizer=tokenizer,
        config=config,
        overwrite=overwrite,
    )
    for note in result.report["notes"]:
        print(f"note: {note}")
    print(f"done: {out} ({result.report['written_as']}, {result.report['num_parameters']:,} parameters)")
