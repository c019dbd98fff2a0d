"""`litebert score`: score a file of answers from any model against a task's labels."""

from pathlib import Path
from typing import Annotated

import typer

from litebert.cli.printing import print_json
from litebert.cli.scores import print_split
from litebert.cli.words import (
    AsJson,
    ChoicesField,
    DataPath,
    DevShare,
    Encoding,
    GroupColumn,
    HasHeader,
    LabelColumn,
    MaxLabels,
    MetricName,
    OnErrorWord,
    PositiveLabel,
    TaskName,
    TextBColumn,
    TextColumn,
)


def score_predictions(
    predictions: Annotated[
        Path,
        typer.Argument(
            metavar="ANSWERS",
            help="JSON lines with id and answer (as predict and evaluate write), a JSON object from ids to "
            "answers, or a table of ids and answers.",
            exists=True,
            dir_okay=False,
        ),
    ],
    task: TaskName,
    data: DataPath,
    split: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Split of a folder: train, dev, test, ... Default: dev; for a file, all rows. dev without a dev file: "
            "the rows that fine-tuning holds out.",
        ),
    ] = "",
    text: TextColumn = None,
    text_b: TextBColumn = None,
    label: LabelColumn = None,
    encoding: Encoding = "utf-8",
    dev_share: DevShare = 0.1,
    header: HasHeader = None,
    group: GroupColumn = None,
    max_labels: MaxLabels = 500,
    choices: ChoicesField = None,
    on_error: OnErrorWord = "fail",
    metric: MetricName = None,
    positive: PositiveLabel = None,
    as_json: AsJson = False,
) -> None:
    """Score the answers of any model against a task's labels.

    Scores have intervals, and are compared with a baseline.

    Examples:
      litebert score answers.jsonl --task classification --data more-reviews.csv
    """
    from litebert.inference.evaluation import score_file
    from litebert.tasks.files.reading import TableOptions

    options = TableOptions(
        text=text,
        text_b=text_b,
        label=label,
        encoding=encoding,
        dev_share=dev_share,
        has_header=header,
        group=group,
        max_labels=max_labels,
        choices=choices,
        on_error=on_error,
        metric=metric,
        positive=positive,
    )
    report = score_file(predictions, task, data, split, options)
    if as_json:
        print_json(report)
    else:
        print_split(f"{report['split']}, {report['num_examples']:,} examples", report, report["metric"])
