"""Words of the command line that several commands have in common, with their help."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from litebert.core.errors import ConfigError

RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's name, such as nano, or a .toml file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Changes: train.steps=500 data.corpora=corpus/ model.sharing=ffn."),
]
CheckpointPath = Annotated[
    Path,
    typer.Argument(
        metavar="CHECKPOINT",
        help="A checkpoint, a run that has one, a Hugging Face or TensorFlow model, or a name on the hub.",
    ),
]
TaskName = Annotated[
    str,
    typer.Option(
        "--task",
        help="cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte, wnli; race, race-middle, race-high; squad-v1, "
        "squad-v2, squad-v2-simple (your own questions too, in SQuAD's JSON); or for your own files classification, "
        "regression, multi-label, tags, choice.",
    ),
]
DataPath = Annotated[
    Path,
    typer.Option(
        "--data",
        help="The task's folder, GLUE's, RACE's, or a training file (.csv, .tsv, .jsonl, .json, .conll, .parquet, or a "
        "folder of `save_to_disk`).",
    ),
]
DevFile = Annotated[Path | None, typer.Option("--dev", help="The dev file, where --data is a file.")]
TestFile = Annotated[Path | None, typer.Option("--test", help="The test file; it is scored if it has labels.")]
TextColumn = Annotated[
    str | None,
    typer.Option(
        "--text", help="The text's column (for tags: its words); a number if there are no names. Of pairs name both."
    ),
]
TextBColumn = Annotated[
    str | None,
    typer.Option("--text-b", help="The second text's column, of pairs; never guessed where --text is named."),
]
LabelColumn = Annotated[str | None, typer.Option("--label", help="The label's column (for tags: the list of them).")]
GroupColumn = Annotated[
    str | None,
    typer.Option("--group", help="Hold out rows with the same value in this column together, such as an author's."),
]
MetricName = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="The score that chooses the model, for your own files: accuracy, f1, macro-f1, mcc; regression: pearson, "
        "spearman; multi-label: micro-f1, exact-match. Default for classes: accuracy, macro-f1 if a label is rare.",
    ),
]
PositiveLabel = Annotated[str | None, typer.Option("--positive", help="The label that f1 is of; chooses by f1.")]
HasHeader = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether tables begin with column names. Default: yes; if columns are given by number, it is guessed.",
    ),
]
ChoicesField = Annotated[
    str | None,
    typer.Option("--choices", help="For --task choice: the field of the choices, or of each with commas between."),
]
OnErrorWord = Annotated[
    Literal["fail", "skip", "fix"],
    typer.Option("--on-error", help="What to do about answers and names that are not where the file says."),
]
MaxLabels = Annotated[int, typer.Option("--max-labels", min=2, help="Accept up to so many different labels.")]
DevShare = Annotated[float, typer.Option(help="Of the training rows held out for dev, where there is no dev file.")]
EngineWord = Annotated[
    Literal["auto", "torch", "onnx", "openvino"] | None,
    typer.Option("--engine", help="What computes; auto: the fastest here. Default: torch, and onnx for exports."),
]
Threads = Annotated[
    int,
    typer.Option("--threads", min=0, help="Threads that compute; 0: as OMP_NUM_THREADS says, else one for each core."),
]
Patience = Annotated[
    int,
    typer.Option(
        "--patience",
        min=0,
        help="Answer once so many layers in a row say the same, if the model was fine-tuned with exit.enabled=true.",
    ),
]
Layers = Annotated[int, typer.Option("--layers", min=0, help="Compute only so many of the first layers; 0: all.")]
Encoding = Annotated[str, typer.Option("--encoding", help="The files' encoding.")]


def name_files(paths: list[str]) -> list[Path]:
    """Paths as the library takes files; a list of strings would be texts."""
    if not all(path.strip() for path in paths):
        raise ConfigError("missing-file", "an empty path names no file; use . for the whole current folder")
    return [Path(path) for path in paths]
