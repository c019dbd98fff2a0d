"""`litebert distill`: teach a small model the sentence vectors of a larger one."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from litebert import api
from litebert.cli.finetune import complete_recipe, print_report
from litebert.cli.printing import print_json, stdout_left_to_json
from litebert.cli.words import AsJson, EngineWord, Threads


def distill_model(
    teacher: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="Teacher: a model that makes vectors, such as a folder of sentence-transformers."
        ),
    ],
    student: Annotated[
        str,
        typer.Option(
            "--student",
            metavar="MODEL",
            help="Model that learns; or a preset or recipe for a new one, which reads the corpus's tokens.",
        ),
    ],
    corpus: Annotated[Path, typer.Option("--corpus", metavar="FOLDER", help="Corpus folder, with a validation split.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Run folder; an interrupted run is resumed.")
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Fine-tuning keys to override, such as train.epochs=5."),
    ] = None,
    passages: Annotated[
        int, typer.Option("--passages", min=1, help="Texts of the corpus that the teacher embeds.")
    ] = 100_000,
    cache: Annotated[
        Path | None,
        typer.Option("--cache", metavar="FOLDER", help="Keep the teacher's vectors here. Default: CORPUS.vectors."),
    ] = None,
    start: Annotated[
        Literal["random", "teacher"],
        typer.Option(help="Weights of a new student; teacher: averages of the teacher's layers, if shapes agree."),
    ] = "random",
    recipe: Annotated[
        str,
        typer.Option(
            metavar="RECIPE", autocompletion=complete_recipe, help="Recipe: adaptive, two-core, or a .toml file."
        ),
    ] = "",
    engine: EngineWord = None,
    threads: Threads = 0,
    as_json: AsJson = False,
) -> None:
    """Teach a small model the sentence vectors of a larger one.

    Both may have their own tokenizers, depths and widths. The teacher embeds the corpus
    once, for any number of students.

    Examples:
      litebert distill albert/albert-base-v2 --student models/cpu-small-en --corpus corpora/en --out runs/small
      litebert distill runs/nano --student runs/nano --corpus corpora/en --out runs/same train.epochs=5
    """
    with stdout_left_to_json(as_json):
        result = api.distill(
            teacher,
            student,
            corpus,
            out,
            overrides or [],
            passages=passages,
            cache=cache,
            start=start,
            recipe=recipe,
            engine=engine,
            threads=threads,
        )
    if as_json:
        print_json(result.report)
        return
    print_report(result.report, out)
