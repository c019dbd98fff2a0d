"""`litebert doctor`: what a checkpoint is, and whether anything is wrong with it."""

import typer

from litebert import api
from litebert.cli.convert import AllowMissing, Classifier, ConfigPath, SourceName, TokenizerPath


def examine(
    source: SourceName,
    allow_missing: AllowMissing = None,
    classifier: Classifier = None,
    tokenizer: TokenizerPath = None,
    config: ConfigPath = None,
) -> None:
    """Say what a checkpoint is and what is wrong with it; exit code 0 if it can be used, 1 if not."""
    report = api.doctor(
        source, allow_missing=allow_missing, classifier=classifier, tokenizer=tokenizer, config=config
    ).report
    width = max(map(len, report["facts"]))
    for name, value in report["facts"].items():
        print(f"{name:{width}}  {value}")
    for finding in report["findings"]:
        print(f"{finding['level']}: {finding['text']}")
    print(f"verdict: {report['verdict']}")
    raise typer.Exit(0 if report["is_sound"] else 1)
