"""`litebert search`: index texts by meaning, and query them."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from litebert import api
from litebert.cli.words import RUNNING, AsJson, EngineWord, OnBadText, TextField, TextFormat, Texts, Threads, name_files


def index_texts(
    texts: Texts,
    model: Annotated[Path, typer.Option("--model", metavar="MODEL", help="Model that embeds texts.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FOLDER", help="Folder to write; an existing index is updated or resumed."),
    ],
    precision: Annotated[
        Literal["int8", "float32"], typer.Option("--precision", help="Number format of the vectors.")
    ] = "int8",
    passage_tokens: Annotated[
        int | None,
        typer.Option(
            "--passage-tokens", min=1, help="Tokens of the longest passage. Default: 128, or what the model reads."
        ),
    ] = None,
    text_format: TextFormat = "auto",
    field: TextField = "text",
    on_error: OnBadText = "fail",
    engine: EngineWord = None,
    threads: Threads = 0,
) -> None:
    """Embed the passages of texts, or bring an index up to date with them.

    Repeat the command after an interruption, or when texts were added, changed or
    removed: only what is new is embedded.

    Examples:
      litebert search index texts --model models/cpu-small-en --out index
      litebert search index books.jsonl --model models/cpu-small-en --precision float32 --out books-index
    """
    result = api.build_index(
        name_files(texts),
        out,
        model=model,
        precision=precision,
        passage_tokens=passage_tokens,
        format=text_format,
        field=field,
        on_error=on_error,
        engine=engine,
        threads=threads,
    )
    facts = result.report
    print(f"{out}: {facts['passages']:,} passages of {facts['documents']:,} documents, {facts['size'] / 1e6:.1f} MB")
    print(f"embedded {facts['new']:,} passages in {facts['elapsed_seconds']:.1f} s, removed {facts['removed']:,}")


def query_index(
    index: Annotated[Path, typer.Argument(metavar="INDEX", help="Folder made by `litebert search index`.")],
    questions: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTIONS", help="Questions. Default: standard input, one per line."),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of passages per question.")] = 5,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="MODEL", help="Model of the index, if it has moved.")
    ] = None,
    reranker: Annotated[
        Path | None,
        typer.Option(
            "--rerank",
            metavar="MODEL",
            help="Model of (question, passage) pairs that chooses among five times as many passages.",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    reranker_label: Annotated[
        str | None,
        typer.Option(
            "--rerank-label",
            metavar="LABEL",
            help="Label of relevant passages, if the reranking model is a classifier.",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the passages nearest in meaning to questions.

    Examples:
      litebert search query index "the old house near the river"
      litebert search query index "a cat" "a dog" --count 3 --json
    """
    from litebert.inference.predictor import load
    from litebert.search.index import SearchIndex

    asked = questions or [line.strip() for line in sys.stdin if line.strip()]
    read = None if reranker is None else load(reranker)
    found = SearchIndex(index, model=model).search_batch(asked, count, reranker=read, label=reranker_label)
    if as_json:
        pairs = zip(asked, found, strict=True)
        answers = [{"question": question, "passages": [asdict(hit) for hit in hits]} for question, hits in pairs]
        print(json.dumps(answers, ensure_ascii=False, indent=2))
        return
    for question, hits in zip(asked, found, strict=True):
        if len(asked) > 1:
            print(f"# {question}")
        for hit in hits:
            print(f"{hit.score:.3f}  {hit.document}\n       {hit.text}")
