"""`litebert finetune`: fine-tune a model on a task."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from litebert import api
from litebert.cli.printing import print_json, stdout_left_to_json
from litebert.cli.scores import print_split
from litebert.cli.words import (
    COLUMNS,
    AsJson,
    ChoicesField,
    DataPath,
    DevFile,
    DevShare,
    Encoding,
    GroupColumn,
    HasHeader,
    LabelColumn,
    MaxLabels,
    MetricName,
    ModelPath,
    OnErrorWord,
    PositiveLabel,
    TaskName,
    TestFile,
    TextBColumn,
    TextColumn,
)


def complete_recipe(incomplete: str) -> list[str]:
    """Names for --recipe."""
    return [name for name in ("adaptive", "paper", "two-core") if name.startswith(incomplete)]


def run_finetuning(
    model: ModelPath,
    task: TaskName,
    data: DataPath,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE", help="Recipe keys to override, such as train.epochs=5 optim.learning_rate=1e-4 seed=2."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Run folder; an interrupted run is resumed. Default: runs/TASK."
        ),
    ] = None,
    recipe: Annotated[
        str,
        typer.Option(
            metavar="RECIPE",
            autocompletion=complete_recipe,
            help="Recipe: adaptive (steps by data size, early stopping), paper, two-core, or a .toml file. "
            "Default: adaptive; paper for its tasks on a GPU with a model as wide as BERT-base.",
        ),
    ] = "",
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Start from random weights, as a baseline for pre-training.")
    ] = False,
    answers_test: Annotated[
        bool, typer.Option("--test-answers/--no-test-answers", help="Answer the test files.")
    ] = True,
    dev: DevFile = None,
    test: TestFile = None,
    text: TextColumn = None,
    text_b: TextBColumn = None,
    label: LabelColumn = None,
    encoding: Encoding = "utf-8",
    dev_share: DevShare = 0.1,
    group: GroupColumn = None,
    header: HasHeader = None,
    max_labels: MaxLabels = 500,
    choices: ChoicesField = None,
    on_error: OnErrorWord = "fail",
    metric: MetricName = None,
    positive: PositiveLabel = None,
    balanced: Annotated[
        bool | None,
        typer.Option(
            "--balanced/--no-balanced",
            help="Weight rare labels as much as frequent ones. Default: if macro-F1 selects the model.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    num_seeds: Annotated[int, typer.Option(min=1, help="Number of seeds to run; reports their median and spread.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Fine-tune a model on a task. To resume an interrupted run, repeat the command.

    Examples:
      litebert finetune runs/nano --task classification --data reviews.csv --out runs/reviews
      litebert finetune albert/albert-base-v2 --task sst-2 --data glue/ train.epochs=2
      litebert finetune runs/nano --task classification --data reviews.csv --num-seeds 3 --out runs/three
    """
    with stdout_left_to_json(as_json):
        result = api.finetune(
            model,
            task,
            data,
            overrides or [],
            out=out,
            recipe=recipe,
            seeds=num_seeds,
            from_scratch=from_scratch,
            answers_test=answers_test,
            dev=dev,
            test=test,
            text=text,
            text_b=text_b,
            label=label,
            encoding=encoding,
            dev_share=dev_share,
            group=group,
            header=header,
            max_labels=max_labels,
            choices=choices,
            on_error=on_error,
            metric=metric,
            positive=positive,
            balanced=balanced,
        )
    if as_json:
        print_json(result.report)
        return
    folder = out or Path("runs") / task
    (print_trials if "runs" in result.report else print_report)(result.report, folder)


def print_report(report: Mapping[str, Any], folder: Path) -> None:
    """Print the scores of a finished run, and the paths of its model and report."""
    for name, split in {**report["dev"], **report["test"]}.items():
        print_split(f"{name} ({split['num_examples']:,} examples)", split, report["metric"])
    print(f"best after step {report['best_step']:,} of {report['steps']:,}: {folder}/model, {folder}/report.json")


def print_trials(summary: Mapping[str, Any], folder: Path) -> None:
    """Print median, mean, spread and best run of each combination."""
    print(f"{summary['split']} {summary['metric'].replace('_', ' ')}")
    print(f"{'median':>8} {'mean':>8} {'spread':>8} {'lowest':>8} {'highest':>8}  runs")
    for one in summary["combinations"]:
        print(f"{_format_scores(one)}  {one['num_runs']} {' '.join(one['words'])}")
        for split, scores in one["test"].items():
            print(f"{_format_scores(scores)}  {split}")
        for run in one["at_chance"]:
            print(f"  not above chance: {run} (included above)")
    for split, one in summary["baselines"].items():
        print(
            f"{split}: {one['name']} {one['score']:.4f}; {one['num_above']} of {len(summary['runs'])} runs are above it"
        )
    print(f"best: {folder / summary['best_run']}/model (also used for {folder}); details: {folder}/trials.json")


def _format_scores(scores: dict[str, Any]) -> str:
    return " ".join(f"{scores[key]:8.4f}" for key in ("median", "mean", "deviation", "lowest", "highest"))
