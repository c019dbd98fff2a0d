"""Arguments and options that several commands share: one name, one meaning and one help text each."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from litebert.cli import completion
from litebert.core.errors import ConfigError

COLUMNS, RUNNING = "Options for your own files", "Options for inference"

RecipeName = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE", help="Recipe name, such as nano, or a .toml file.", autocompletion=completion.list_recipes
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Recipe keys to override, such as train.steps=500 model.sharing=ffn."),
]
ModelPath = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A checkpoint, a run, a Hugging Face or TensorFlow model, or a hub name such as albert/albert-base-v2.",
    ),
]
Texts = Annotated[
    list[str], typer.Argument(metavar="TEXTS", help="Text files, folders or globs; - reads standard input.")
]
CorpusPath = Annotated[Path, typer.Argument(metavar="CORPUS", help="Corpus folder.")]
Runs = Annotated[list[Path], typer.Argument(metavar="RUNS", help="Folders of finished fine-tuning runs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing output.")]
TokenizerOption = Annotated[
    Path,
    typer.Option(
        "--tokenizer",
        "-t",
        metavar="PATH",
        help="A litebert tokenizer, an ALBERT .model, a BERT vocab.txt, a RoBERTa vocab.json or a tokenizer.json.",
    ),
]
OutFolder = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to write.")]
TextFormat = Annotated[
    Literal["auto", "lines", "prose", "wrapped", "wiki", "gutenberg", "jsonl", "race", "squad"],
    typer.Option("--format", metavar="FORMAT", help="Text format; auto detects it per file."),
]
Script = Annotated[
    Literal["simplified", "traditional"] | None,
    typer.Option(
        metavar="NAME",
        help="Convert Chinese characters to simplified or traditional ones. Needs wordpiece. Default: as they are.",
    ),
]
TextField = Annotated[str, typer.Option("--field", metavar="NAME", help="Text field of JSONL and Parquet files.")]
OnBadText = Annotated[
    Literal["fail", "skip"],
    typer.Option(
        "--on-error", help="On bad input (not UTF-8, invalid JSON, truncated gzip, ...): fail, or skip and count it."
    ),
]
Hardware = Annotated[
    str,
    typer.Option(
        "--hardware",
        metavar="NAME",
        help="Hardware to plan for: a100-80g, a100-40g, h100-80g, v100-32g, tpu-v3, this-cpu, or a .toml file.",
        autocompletion=completion.list_hardware,
    ),
]
NumDevices = Annotated[int, typer.Option("--devices", min=1, help="Number of devices to plan for.")]
TaskName = Annotated[
    str,
    typer.Option(
        "--task",
        metavar="TASK",
        help="Task: cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte, wnli; race, race-middle, race-high; squad-v1, "
        "squad-v2, squad-v2-simple (also for your own SQuAD-format JSON); Chinese: afqmc, tnews, iflytek, "
        "cmnli, ocnli, csl, cluewsc, lcqmc, chnsenticorp, cmrc2018, drcd; or for your own files classification, "
        "regression, multi-label, tags, choice, embedding.",
        autocompletion=completion.list_tasks,
    ),
]
DataPath = Annotated[
    Path,
    typer.Option(
        "--data",
        metavar="PATH",
        help="Task data: the folder of the task, of GLUE or of RACE, or your own file (.csv, .tsv, .jsonl, .json, "
        ".conll, .parquet, or a `save_to_disk` folder).",
    ),
]
DevFile = Annotated[
    Path | None,
    typer.Option("--dev", metavar="FILE", help="Dev file, if --data is a file. Default: a share of --data."),
]
TestFile = Annotated[
    Path | None, typer.Option("--test", metavar="FILE", help="Test file to answer; scored if labelled.")
]
TextColumn = Annotated[
    str | None,
    typer.Option(
        "--text",
        metavar="COLUMN",
        help="Text column (tags: the words): name, or number without a header. For pairs also set --text-b.",
        rich_help_panel=COLUMNS,
    ),
]
TextBColumn = Annotated[
    str | None,
    typer.Option(
        "--text-b",
        metavar="COLUMN",
        help="Column of the second text of a pair; not guessed if --text is set.",
        rich_help_panel=COLUMNS,
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label", metavar="COLUMN", help="Label column (tags: the list of tags).", rich_help_panel=COLUMNS),
]
GroupColumn = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="COLUMN",
        help="Keep rows with the same value in this column in one split, such as one author.",
        rich_help_panel=COLUMNS,
    ),
]
_Metric = Literal[
    "accuracy",
    "f1",
    "macro-f1",
    "mcc",
    "pearson",
    "spearman",
    "micro-f1",
    "exact-match",
    "mrr@10",
    "ndcg@10",
    "recall@1",
    "recall@10",
]
MetricName = Annotated[
    _Metric | None,
    typer.Option(
        "--metric",
        metavar="METRIC",
        help="Main metric, which also selects the model: accuracy, f1, macro-f1, mcc; regression: pearson, spearman; "
        "multi-label: micro-f1, exact-match; embedding: mrr@10, ndcg@10, recall@1, recall@10, spearman. "
        "Default for classes: accuracy, or macro-f1 if a label is rare.",
        rich_help_panel=COLUMNS,
    ),
]
PositiveLabel = Annotated[
    str | None,
    typer.Option(
        "--positive",
        metavar="LABEL",
        help="Positive label of f1, which is then the main metric.",
        rich_help_panel=COLUMNS,
    ),
]
HasHeader = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether tables start with a header row. Default: yes, or detected if columns are numbers.",
        rich_help_panel=COLUMNS,
    ),
]
ChoicesField = Annotated[
    str | None,
    typer.Option(
        "--choices",
        metavar="COLUMN",
        help="Multiple choice: the field with the choices, or their fields separated by commas.",
        rich_help_panel=COLUMNS,
    ),
]
OnErrorWord = Annotated[
    Literal["fail", "skip", "fix"],
    typer.Option(
        "--on-error",
        help="On an answer or name that is not at its stated offset: fail, skip it, or fix the offset.",
        rich_help_panel=COLUMNS,
    ),
]
MaxLabels = Annotated[
    int, typer.Option("--max-labels", min=2, help="Maximum number of distinct labels.", rich_help_panel=COLUMNS)
]
DevShare = Annotated[
    float,
    typer.Option(
        "--dev-share",
        help="Share of training rows to hold out for dev, if there is no dev file.",
        rich_help_panel=COLUMNS,
    ),
]
Encoding = Annotated[
    str,
    typer.Option("--encoding", metavar="NAME", help="Text encoding of the files.", rich_help_panel=COLUMNS),
]
EngineWord = Annotated[
    Literal["auto", "torch", "onnx", "openvino"] | None,
    typer.Option(
        "--engine",
        help="Inference engine; auto picks the fastest. Default: torch, or onnx for exports.",
        rich_help_panel=RUNNING,
    ),
]
Threads = Annotated[
    int,
    typer.Option(
        "--threads",
        min=0,
        help="Compute threads; 0 uses OMP_NUM_THREADS, or one per core.",
        rich_help_panel=RUNNING,
    ),
]
Patience = Annotated[
    int,
    typer.Option(
        "--patience",
        min=0,
        help="Exit early once N layers in a row agree; needs a model fine-tuned with exit.enabled=true. 0: never.",
        rich_help_panel=RUNNING,
    ),
]
Layers = Annotated[
    int,
    typer.Option("--layers", min=0, help="Compute only the first N layers; 0 computes all.", rich_help_panel=RUNNING),
]


def check_new(file: Path, *, overwrite: bool) -> None:
    """Raise if a file to write exists, unless it may be replaced."""
    if file.exists() and not overwrite:
        raise ConfigError(
            "output-exists", f"{file} already exists; choose another name, or replace it with --overwrite"
        )


def name_files(paths: list[str]) -> list[Path]:
    """Convert to `Path`, because the library reads strings as texts."""
    if not all(path.strip() for path in paths):
        raise ConfigError("missing-file", "an empty path names no file; use . for the whole current folder")
    return [Path(path) for path in paths]
