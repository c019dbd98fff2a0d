"""`litebert doctor`: what a checkpoint is, and whether anything is wrong with it."""

import typer

from litebert.cli.convert import AllowMissing, Classifier, ConfigPath, SourceName, TokenizerPath, read_wishes


def examine(
    source: SourceName,
    allow_missing: AllowMissing = None,
    classifier: Classifier = None,
    tokenizer: TokenizerPath = None,
    config: ConfigPath = None,
) -> None:
    """Say what a checkpoint is and what is wrong with it; exit code 0 if it can be used, 1 if not."""
    from litebert.interop.doctor import diagnose

    diagnosis = diagnose(source, read_wishes(allow_missing, classifier, tokenizer, config))
    width = max(map(len, diagnosis.facts))
    for name, value in diagnosis.facts.items():
        print(f"{name:{width}}  {value}")
    for finding in diagnosis.findings:
        print(f"{finding.level}: {finding.text}")
    print(f"verdict: {diagnosis.verdict}")
    raise typer.Exit(0 if diagnosis.is_sound else 1)
