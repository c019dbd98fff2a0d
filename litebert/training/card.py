"""The model card in each checkpoint: training data, recipe, results and limitations."""

from collections.abc import Mapping, Sequence
from typing import Any


def write_card(*, model: str, corpora: Sequence[str], recipe_toml: str, metrics: Sequence[Mapping[str, Any]]) -> str:
    """The card of a pre-trained model in Markdown; `metrics` are the run's log records so far."""
    return f"""---
library_name: litebert
tags: [albert, bert, masked-lm]
---
# {model}

Pre-trained with [litebert](recipe.toml) on {", ".join(f"`{corpus}`" for corpus in corpora)}.

## Training results
{_table(metrics[-1]) if metrics else "Not evaluated yet."}

## Limitations
A language model of this size reproduces the errors and biases of its training text. It was evaluated only on the
validation split of the same corpus; evaluate it on your own task before you rely on it.

## Recipe
```toml
{recipe_toml.strip()}
```
"""


def write_task_card(*, model: str, task: str, source: str, facts: Mapping[str, Any], recipe_toml: str) -> str:
    """The card of a fine-tuned model in Markdown; `facts` are its report's dev results."""
    intervals, baseline = facts["intervals"], facts.get("baseline")
    cells = {
        name: f"{value:.4g}" + (f" ({intervals[name][0]:.4g} to {intervals[name][1]:.4g})" if name in intervals else "")
        for name, value in facts["scores"].items()
    }
    if baseline:
        cells[f"{facts['metric']} of {baseline['name']}"] = f"{baseline['scores'][facts['metric']]:.4g}"
    chance, metric = facts["chance"], facts["metric"].replace("_", " ")
    cells[f"{metric} of chance"] = f"{chance['score']:.4g}"
    warning = f"**Not above chance**: a {metric} up to {chance['score'] + chance['margin']:.4g} may be luck.\n"
    warning = warning if facts["is_at_chance"] else ""
    rows = "\n".join(f"| {name.replace('_', ' ')} | {cell} |" for name, cell in cells.items())
    return f"""---
library_name: litebert
tags: [albert, bert, {task}]
---
# {model}

Fine-tuned with litebert for `{task}` from `{source}`.

| on {facts["num_examples"]:,} dev examples, also used to select this checkpoint | score (95 % interval) |
|---|---|
{rows}

## Limitations
{warning}Scores on other kinds of text, or on a test set, may be lower; look at its errors before you rely on it.

## Recipe
```toml
{recipe_toml.strip()}
```
"""


def _table(record: Mapping[str, Any]) -> str:
    rows = [f"| {name.replace('_', ' ')} | {value:.4g} |" for name, value in record.items() if name != "step"]
    return "\n".join([f"After {record['step']:,} steps:", "", "| | |", "|---|---|", *rows])
