"""Plots of a fine-tuning run's dev errors."""

from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError
from litebert.plots.confusion import plot_confusion
from litebert.plots.scatter import plot_numbers
from litebert.tasks.predictions import predictions_file, read_predictions


def draw_errors(report: dict[str, Any], folder: Path) -> None:
    """Write a confusion matrix or scatter plot to the run's folder, if matplotlib is installed."""

    split, facts = next(iter(report["dev"].items()))
    try:
        if "confusion" in facts:
            plot_confusion(facts["confusion"], report["facts"]["labels"], folder / "confusion.png", title=folder.name)
        elif report["facts"]["kind"] == "regression":
            answers = [(one.label, one.answer) for one in read_predictions(predictions_file(folder, split))]
            plot_numbers(answers, folder / "scatter.png", title=folder.name)
    except ConfigError as error:
        print(f"no plot of the errors: {error}")
