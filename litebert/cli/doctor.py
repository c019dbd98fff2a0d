"""`litebert doctor`: describe a checkpoint and diagnose problems."""

import typer

from litebert import api
from litebert.cli.convert import AllowMissing, Classifier, ConfigPath, TokenizerPath
from litebert.cli.printing import print_json
from litebert.cli.words import AsJson, ModelPath


def examine(
    model: ModelPath,
    allow_missing: AllowMissing = None,
    classifier: Classifier = None,
    tokenizer: TokenizerPath = None,
    config: ConfigPath = None,
    as_json: AsJson = False,
) -> None:
    """Describe a checkpoint and diagnose problems.

    Exit code 0 if it is usable, 1 if not.

    Examples:
      litebert doctor runs/nano
      litebert doctor models/cpu-small-en --json
    """
    report = api.doctor(
        str(model), allow_missing=allow_missing, classifier=classifier, tokenizer=tokenizer, config=config
    ).report
    if as_json:
        print_json(report)
        raise typer.Exit(0 if report["is_sound"] else 1)
    width = max(map(len, report["facts"]))
    for name, value in report["facts"].items():
        print(f"{name:{width}}  {value}")
    for finding in report["findings"]:
        print(f"{finding['level']}: {finding['text']}")
    print(f"verdict: {report['verdict']}")
    raise typer.Exit(0 if report["is_sound"] else 1)
