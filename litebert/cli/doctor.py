"""`litebert doctor`: describe a checkpoint and diagnose problems."""

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
    """Describe a checkpoint and diagnose problems; exit code 0 if it is usable, 1 if not.

    Example: litebert doctor runs/nano
    """
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
