"""Chinese tasks with one label per text or pair: CLUE's, LCQMC, ChnSentiCorp and XNLI, from their files as distributed.

A task is distributed in several layouts: JSON lines (CLUE), a table with or without a header, and cells with `_!_`
between them (Toutiao's news, from which TNEWS was made). The layout is recognized by the names or number of columns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from litebert.core.errors import DataError
from litebert.tasks.files.columnar import find_columnar, is_columnar
from litebert.tasks.files.first_rows import show_first_rows
from litebert.tasks.files.reading import TableOptions, find_files
from litebert.tasks.files.splitting import hold_out
from litebert.tasks.files.tables import Row, Table, name_labels, read_table
from litebert.tasks.finetuning import Dataset
from litebert.tasks.kinds.classification import Classification, balanced_weights
from litebert.tasks.texts import TextExample

NLI = ("entailment", "neutral", "contradiction")
BINARY = ("0", "1")
NO_AGREEMENT = "-"  # NLI: the annotators chose different labels; the official baselines leave these rows out too
# There is no 105 and no 111.
TNEWS = {
    "100": "news_story",
    "101": "news_culture",
    "102": "news_entertainment",
    "103": "news_sports",
    "104": "news_finance",
    "106": "news_house",
    "107": "news_car",
    "108": "news_edu",
    "109": "news_tech",
    "110": "news_military",
    "112": "news_travel",
    "113": "news_world",
    "114": "news_stock",
    "115": "news_agriculture",
    "116": "news_game",
}
_SUFFIXES = (".json", ".jsonl", ".tsv", ".txt", ".csv")
_STEMS = {
    "train": ("train", "train.50k"),
    "dev": ("dev", "valid", "validation"),
    "test": ("test", "test_public", "test1.1", "test1.0"),
}


@dataclass(frozen=True)
class ClueTask:
    """The facts of one task."""

    texts: tuple[tuple[str, ...], ...]  # of one or two texts, the names their column goes by
    labels: tuple[str, ...] = ()  # empty: those of the training rows
    label_names: tuple[str, ...] = ("label",)
    layouts: tuple[tuple[str, ...], ...] = ()  # the columns of files without a header, recognized by their number
    names: Mapping[str, str] = field(default_factory=dict)  # of labels that some files have as numbers
    folders: tuple[str, ...] = ()  # inside CLUE's folder; in addition to the task's own name
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of each split, if they have other names


_PAIR = (("sentence1", "text_a"), ("sentence2", "text_b"))
_PAIR_LAYOUTS = (("text_a", "text_b", "label"), ("text_a", "text_b"))
CLUE = {
    "afqmc": ClueTask(_PAIR, BINARY, layouts=_PAIR_LAYOUTS),
    "tnews": ClueTask(
        (("sentence", "text_a"),),
        tuple(TNEWS.values()),
        layouts=(("id", "code", "label", "sentence", "keywords"), ("sentence", "label")),
        names=TNEWS,
    ),
    "iflytek": ClueTask((("sentence",),), label_names=("label_des", "label")),
    "cmnli": ClueTask(_PAIR, NLI),
    "ocnli": ClueTask(_PAIR, NLI, folders=("ocnli_50k",)),
    "csl": ClueTask((("keyword",), ("abst",)), BINARY),
    "cluewsc": ClueTask((("text",),), ("false", "true"), folders=("cluewsc2020",)),
    "lcqmc": ClueTask(_PAIR, BINARY, layouts=_PAIR_LAYOUTS),
    "xnli-zh": ClueTask(
        (("premise", "sentence1"), ("hypothesis", "hypo", "sentence2")),
        NLI,
        ("label", "gold_label"),
        names={"contradictory": "contradiction"},  # in the machine-translated training file
        folders=("xnli", "XNLI"),
        files={
            "train": ("XNLI-MT-1.0/multinli/multinli.train.zh", "multinli/multinli.train.zh", "multinli.train.zh"),
            "dev": ("XNLI-1.0/xnli.dev", "xnli.dev"),
            "test": ("XNLI-1.0/xnli.test", "xnli.test"),
        },
    ),
    "chnsenticorp": ClueTask((("text_a", "text", "review"),), BINARY, layouts=(("label", "text_a"), ("text_a",))),
}
_OTHERS = ("id", "idx", "qid", "index", "keywords", "label_desc")  # columns that are known and not needed


def clue_reader(name: str) -> Callable[[Path, TableOptions], Dataset]:
    """What reads the splits of a task that are there, from CLUE's folder, the task's own, or separate files."""
    return lambda path, options: _read(name, CLUE[name], path, options)


def _read(name: str, facts: ClueTask, path: Path, options: TableOptions) -> Dataset:
    folders = [path / folder for folder in (name, name.upper(), *facts.folders, f"{name}_public")]
    path = next((folder for folder in folders if folder.is_dir()), path)
    notes: list[str] = []
    splits: dict[str, list[TextExample]] = {"train": []}
    codes: dict[str, str] = {}  # of labels, where the files have both names and numbers
    find = partial(_find_split, files=facts.files)
    for split, file in find_files(path, options, find, usual="train.json, train.tsv").items():
        table = _keep_chinese(_read_table(file, facts, options.encoding), notes)
        splits[split] = _read_examples(table, facts, notes, codes, is_test=split == "test")
    labels = facts.labels or options.labels or _order_labels({one.label for one in splits["train"]}, codes)
    _check_labels(splits, labels, notes)
    if "dev" not in splits and options.dev_share:
        rows = splits["train"]
        splits["train"], splits["dev"] = hold_out(rows, options.dev_share, labels_of=lambda one: [one.label])
        notes.append(f"no dev file: {len(splits['dev']):,} of {len(rows):,} training rows are held out for dev")
    weights = balanced_weights(splits["train"], labels) if options.is_balanced and options.is_learned else ()
    task = Classification(name, labels, class_weights=weights, num_texts=len(facts.texts))
    return Dataset.of(task, splits, [*notes, *show_first_rows(splits, is_learned=options.is_learned)])


def _find_split(folder: Path, split: str, files: Mapping[str, tuple[str, ...]]) -> Path | None:
    """The first of a split's files; the test files of several rounds of a contest may be there together."""
    stems = (*files.get(split, ()), *_STEMS[split])
    paths = [folder / f"{stem}{suffix}" for stem in stems for suffix in _SUFFIXES]
    found = [path for path in paths if path.is_file()]
    found += [path for stem in _STEMS[split] for path in find_columnar(folder, stem)]
    return found[0] if found else None


def _read_table(file: Path, facts: ClueTask, encoding: str) -> Table:
    if is_columnar(file) or file.suffix.lower() in (".json", ".jsonl"):
        return name_labels(read_table(file, encoding=encoding))
    table = read_table(file, encoding=encoding, has_header=False, may_be_quoted=False)
    first = [str(cell).strip().lower() for cell in table.rows[0].cells.values()]
    known = {*facts.label_names, *_OTHERS, *(name for names in facts.texts for name in names)}
    # XNLI has a dozen more columns
    if known.issuperset(first) or all(not set(first).isdisjoint(names) for names in (*facts.texts, facts.label_names)):
        return _rename(table, first, table.rows[1:])
    columns = next((layout for layout in facts.layouts if len(layout) == len(first)), None)
    if columns is None:
        usual = " or ".join(", ".join(layout) for layout in facts.layouts) or "JSON lines"
        raise DataError(
            "bad-layout",
            f"{file}: {len(first)} columns without a header, but expected {usual}; is this the right file?",
        )
    return _rename(table, columns, table.rows)


def _keep_chinese(table: Table, notes: list[str]) -> Table:
    """The Chinese rows of a table in several languages, such as XNLI's dev and test files."""
    if "language" not in table.columns:
        return table
    rows = [row for row in table.rows if row.cells["language"] == "zh"]
    if not rows:
        raise DataError("no-rows", f"{table.path}: no row has the language zh; is this the right file?")
    notes.append(f"{table.path.name}: {len(rows):,} of {len(table.rows):,} rows are Chinese (language zh)")
    return replace(table, rows=rows)


def _rename(table: Table, columns: Sequence[str], rows: Sequence[Row]) -> Table:
    named = [replace(row, cells=dict(zip(columns, row.cells.values(), strict=True))) for row in rows]
    if not named:
        raise DataError("empty-file", f"{table.path}: no rows found")
    return replace(table, columns=tuple(columns), rows=named)


def _read_examples(
    table: Table, facts: ClueTask, notes: list[str], codes: dict[str, str], *, is_test: bool
) -> list[TextExample]:
    columns = [_find_column(table, names) for names in facts.texts]
    label_column = next((name for name in facts.label_names if name in table.columns), None)
    if label_column is None and not is_test:
        raise DataError(
            "unknown-column",
            f"{table.path}: no column 'label'; it has {', '.join(table.columns)}; is this a test split?",
        )
    examples: list[TextExample] = []
    num_left_out = 0
    for number, row in enumerate(table.rows):
        label = _read_label(row, label_column, facts)
        if label == NO_AGREEMENT and not is_test:
            num_left_out += 1
            continue
        if label is None and not is_test:
            raise DataError("missing-label", f"{row.where}: the label is missing; is this a test split?")
        if label is not None and row.cells.get("label") is not None:
            codes.setdefault(label, str(row.cells["label"]))
        texts = [_read_text(row, column) for column in columns]
        identity = row.identity(number) if "idx" not in row.cells else str(row.cells["idx"])
        examples.append(TextExample(identity, texts[0], texts[1] if len(texts) > 1 else None, label, row.where))
    if num_left_out:
        notes.append(f"{table.path.name}: {num_left_out:,} rows with the label '-' (no agreement) were left out")
    return examples


def _find_column(table: Table, names: Sequence[str]) -> str:
    found = next((name for name in names if name in table.columns), None)
    if found is None:
        raise DataError(
            "unknown-column",
            f"{table.path}: no column '{names[0]}'; it has {', '.join(table.columns)}; is this the right file?",
        )
    return found


def _read_text(row: Row, column: str) -> str:
    value = row.cells.get(column)
    if isinstance(value, list):  # CSL's keywords
        value = " ".join(map(str, value))
    if not isinstance(value, str) or not value.strip():
        raise DataError("empty-cell", f"{row.where}: '{column}' has no text; fill it or remove the row")
    return _mark_spans(value, row) if "target" in row.cells else value


def _mark_spans(text: str, row: Row) -> str:
    """CLUEWSC's text with _ around the noun and [ ] around the pronoun, as in CLUE's baseline."""
    target = row.cells["target"]
    try:
        places = [(int(target[f"span{n}_index"]), str(target[f"span{n}_text"])) for n in (1, 2)]
    except (KeyError, TypeError, ValueError):
        raise DataError("bad-span", f"{row.where}: 'target' lacks the index or text of a span") from None
    marked = [(*place, marks) for place, marks in zip(places, ("__", "[]"), strict=True)]
    for start, surface, marks in sorted(marked, reverse=True):
        text = f"{text[:start]}{marks[0]}{surface}{marks[1]}{text[start + len(surface) :]}"
    return text


def _read_label(row: Row, column: str | None, facts: ClueTask) -> str | None:
    value = row.cells.get(column) if column else None
    value = row.cells.get("label") if value is None else value
    if value in (None, "", -1, "-1"):
        return None
    word = str(value).strip()
    return facts.names.get(word, word.lower() if word.lower() in facts.labels else word)


def _order_labels(labels: set[Any], codes: Mapping[str, str]) -> tuple[str, ...]:
    """In the order of their numbers, where the files have these."""
    by_number = all(codes.get(label, "").isdecimal() for label in labels)
    return tuple(sorted(labels, key=lambda label: (int(codes[label]) if by_number else 0, label)))


def _check_labels(splits: dict[str, list[TextExample]], labels: Sequence[str], notes: list[str]) -> None:
    """Raise on unknown labels; a test split with missing ones is predicted, not scored."""
    for split, examples in splits.items():
        if split == "test" and any(example.label not in labels for example in examples):
            splits[split] = [replace(example, label=None) for example in examples]
            if any(example.label is not None for example in examples):
                notes.append("the test file is predicted but not scored: some of its labels are missing or unknown")
            continue
        wrong = next((example for example in examples if example.label not in labels), None)
        if wrong is not None:
            shown = ", ".join(labels[:20])
            raise DataError("unknown-label", f"{wrong.where}: label '{wrong.label}' is not one of {shown}; fix it")
