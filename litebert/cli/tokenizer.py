"""`litebert tokenizer`: train a tokenizer, inspect one, and tokenize a text."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from litebert import api
from litebert.cli.printing import open_console, print_json
from litebert.cli.skipped import print_skipped
from litebert.cli.words import (
    AsJson,
    OnBadText,
    OutFolder,
    Overwrite,
    Script,
    TextField,
    TextFormat,
    Texts,
    TokenizerOption,
    name_files,
)

if TYPE_CHECKING:
    from rich.text import Text

    from litebert.text.tokenizer import Tokenizer

DigitCommaMode = Annotated[
    Literal["intended", "google_py3", "off"] | None,
    typer.Option(
        metavar="MODE",
        help="Digit-comma splitting of an ALBERT .model: intended, google_py3 or off. Default: as saved, or intended.",
    ),
]
# Two alternating shades make neighbouring pieces distinguishable.
SHADES = ("black on bright_cyan", "black on bright_yellow")


def train(
    texts: Texts,
    out: OutFolder,
    kind: Annotated[
        Literal["unigram", "wordpiece", "bpe"],
        typer.Option(help="Tokenizer type: unigram (as ALBERT), wordpiece (as BERT) or bpe (as RoBERTa)."),
    ] = "unigram",
    vocab_size: Annotated[int, typer.Option(help="Number of pieces, including special tokens.")] = 30_000,
    cased: Annotated[
        bool | None,
        typer.Option("--cased/--uncased", help="Keep capitals and accents. Default: cased for bpe, else uncased."),
    ] = None,
    chinese: Annotated[
        bool,
        typer.Option(
            "--chinese",
            help="Chinese: segment words with jieba for n-gram masking, up to 8,000 characters. Needs wordpiece.",
        ),
    ] = False,
    script: Script = None,
    coverage: Annotated[float, typer.Option(help="unigram: share of characters that get a piece.")] = 0.99995,
    max_sentences: Annotated[
        int, typer.Option(help="unigram: maximum number of sentences to sample into memory.")
    ] = 10_000_000,
    text_format: TextFormat = "auto",
    field: TextField = "text",
    on_error: OnBadText = "fail",
    overwrite: Overwrite = False,
) -> None:
    """Train a tokenizer on text; the same text always gives the same tokenizer.

    Examples:
      litebert tokenizer train texts/ --out tokenizers/en
      litebert tokenizer train texts/ --kind wordpiece --vocab-size 1e3 --out tokenizers/wordpiece
    """
    report = api.train_tokenizer(
        name_files(texts),
        out,
        kind=kind,
        vocab_size=vocab_size,
        cased=cased,
        chinese=chinese,
        script=script,
        coverage=coverage,
        max_sentences=max_sentences,
        format=text_format,
        field=field,
        on_error=on_error,
        overwrite=overwrite,
    ).report
    print_skipped(report["skipped"], report["counts"])
    print(f"{out}: {report['kind']}, {report['vocab_size']:,} pieces, fingerprint {report['fingerprint'][:12]}")


def show(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text to tokenize; - reads standard input.")],
    tokenizer: TokenizerOption,
    digit_comma: DigitCommaMode = None,
    as_json: AsJson = False,
) -> None:
    """Show the pieces of a text in colour, with their ids and character offsets.

    Examples:
      litebert tokenizer show "A lite BERT." --tokenizer tokenizers/en
      litebert tokenizer show "A lite BERT." --tokenizer tokenizers/en --json
    """
    loaded = _load(tokenizer, digit_comma)
    text = sys.stdin.read() if text == "-" else text
    encoding = loaded.encode_with_offsets(text)
    marks = loaded.mark_words(text, encoding.token_ids).tolist()
    pieces = loaded.pieces(encoding.token_ids)
    rows = [
        {"id": token_id, "piece": piece, "start": start, "end": end, "text": text[start:end], "begins_word": begins}
        for token_id, piece, (start, end), begins in zip(
            encoding.token_ids, pieces, encoding.offsets, marks, strict=True
        )
    ]
    print_json(rows) if as_json else _print_pieces(loaded, rows)


def info(
    tokenizer: TokenizerOption,
    digit_comma: DigitCommaMode = None,
    as_json: AsJson = False,
) -> None:
    """Show a tokenizer's kind, size, special tokens, normalization and fingerprint.

    Examples:
      litebert tokenizer info --tokenizer tokenizers/en
    """
    loaded = _load(tokenizer, digit_comma)
    special = {name: getattr(loaded, f"{name}_id") for name in ("pad", "unk", "cls", "sep", "mask")}
    facts: dict[str, Any] = {
        "kind": loaded.kind,
        "vocab_size": loaded.vocab_size,
        "special_ids": special,
        "begin_a_word": int(loaded.word_starts.sum()),
        **loaded.settings,
        "fingerprint": loaded.fingerprint,
    }
    if as_json:
        print_json(facts)
        return
    names = loaded.pieces(list(special.values()))
    facts["special_ids"] = ", ".join(f"{name} {i}" for name, i in zip(names, special.values(), strict=True))
    for name, value in facts.items():
        shown = ", ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else value
        print(
            f"{name.replace('_', ' '):14} {shown:,}"
            if isinstance(shown, int)
            else f"{name.replace('_', ' '):14} {shown}"
        )


def _load(path: Path, digit_comma: str | None) -> "Tokenizer":
    from litebert.text.sentencepiece_backend import parse_digit_comma
    from litebert.text.tokenizer import ReadingOptions, load_tokenizer

    options = None if digit_comma is None else ReadingOptions(digit_comma=parse_digit_comma(digit_comma))
    return load_tokenizer(path, options)


def _print_pieces(tokenizer: "Tokenizer", rows: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = open_console()
    first, last = tokenizer.pieces([tokenizer.cls_id, tokenizer.sep_id])
    cells = [_paint(row, number, tokenizer.unk_id) for number, row in enumerate(rows)]
    console.print(Text(" ").join([Text(first, style="bold magenta"), *cells, Text(last, style="bold magenta")]))
    table = Table(box=None, header_style="bold")
    for name in ("", "id", "piece", "offsets", "text", "word"):
        table.add_column(name, justify="right" if name in ("", "id") else "left")
    for number, (row, cell) in enumerate(zip(rows, cells, strict=True)):
        offsets = f"{row['start']}:{row['end']}"
        table.add_row(
            str(number), str(row["id"]), cell, offsets, repr(row["text"])[1:-1], "•" if row["begins_word"] else ""
        )
    console.print(table)
    print(
        f"{len(rows)} pieces, {sum(row['id'] == tokenizer.unk_id for row in rows)} unknown; "
        f"{first} and {last} are added; they are never read from the text"
    )


def _paint(row: dict[str, Any], number: int, unk_id: int) -> "Text":
    from rich.text import Text

    is_unknown = row["id"] == unk_id
    return Text(row["piece"], style="bold white on red" if is_unknown else SHADES[number % 2])
