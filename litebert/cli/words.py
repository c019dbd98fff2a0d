"""Arguments and options that several commands share, with their help."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from litebert.core.errors import ConfigError

RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help="Recipe name, such as nano, or a .toml file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Overrides, such as train.steps=500 model.sharing=ffn."),
]
CheckpointPath = Annotated[
    Path,
    typer.Argument(
        metavar="CHECKPOINT",
        help="Model: a checkpoint, a run, a Hugging Face or TensorFlow model, or a hub name.",
    ),
]
TaskName = Annotated[
    str,
    typer.Option(
        "--task",
        help="Task: cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte, wnli; race, race-middle, race-high; squad-v1, "
        "squad-v2, squad-v2-simple (also for your own SQuAD-format JSON); or for your own files classification, "
        "regression, multi-label, tags, choice.",
    ),
]
DataPath = Annotated[
    Path,
    typer.Option(
        "--data",
        help="Data: the folder of the task, of GLUE or of RACE, or a training file (.csv, .tsv, .jsonl, .json, .conll, "
        ".parquet, or a `save_to_disk` folder).",
    ),
]
DevFile = Annotated[
    Path | None, typer.Option("--dev", help="Dev file, if --data is a file. Default: a share of --data.")
]
TestFile = Annotated[Path | None, typer.Option("--test", help="Test file to answer; scored if labelled.")]
TextColumn = Annotated[
    str | None,
    typer.Option(
        "--text", help="Text column (tags: the words): name, or number without a header. For pairs also set --text-b."
    ),
]
TextBColumn = Annotated[
    str | None,
    typer.Option("--text-b", help="Column of the second text of a pair; not guessed if --text is set."),
]
LabelColumn = Annotated[str | None, typer.Option("--label", help="Label column (tags: the list of tags).")]
GroupColumn = Annotated[
    str | None,
    typer.Option("--group", help="Keep rows with the same value in this column in one split, such as one author."),
]
MetricName = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="Metric to select the model by, for your own files: accuracy, f1, macro-f1, mcc; regression: pearson, "
        "spearman; multi-label: micro-f1, exact-match. Default for classes: accuracy, or macro-f1 if a label is rare.",
    ),
]
PositiveLabel = Annotated[str | None, typer.Option("--positive", help="Positive label of f1; selects the model by f1.")]
HasHeader = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether tables start with a header row. Default: yes, or detected if columns are numbers.",
    ),
]
ChoicesField = Annotated[
    str | None,
    typer.Option(
        "--choices", help="For --task choice: the field with the choices, or their fields separated by commas."
    ),
]
OnErrorWord = Annotated[
    Literal["fail", "skip", "fix"],
    typer.Option(
        "--on-error", help="On an answer or name that is not at its stated offset: fail, skip it, or fix the offset."
    ),
]
MaxLabels = Annotated[int, typer.Option("--max-labels", min=2, help="Maximum number of distinct labels.")]
DevShare = Annotated[float, typer.Option(help="Share of training rows to hold out for dev, if there is no dev file.")]
EngineWord = Annotated[
    Literal["auto", "torch", "onnx", "openvino"] | None,
    typer.Option("--engine", help="Inference engine; auto picks the fastest. Default: torch, or onnx for exports."),
]
Threads = Annotated[
    int,
    typer.Option("--threads", min=0, help="Compute threads; 0 uses OMP_NUM_THREADS, or one per core."),
]
Patience = Annotated[
    int,
    typer.Option(
        "--patience",
        min=0,
        help="Exit early once N layers in a row agree; needs a model fine-tuned with exit.enabled=true. 0: never.",
    ),
]
Layers = Annotated[int, typer.Option("--layers", min=0, help="Compute only the first N layers; 0 computes all.")]
Encoding = Annotated[str, typer.Option("--encoding", help="Text encoding of the files.")]


def name_files(paths: list[str]) -> list[Path]:
    """Convert to `Path`, because the library reads strings as texts."""
    if not all(path.strip() for path in paths):
        raise ConfigError("missing-file", "an empty path names no file; use . for the whole current folder")
    return [Path(path) for path in paths]
