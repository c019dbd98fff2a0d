"""Texts with entity spans, as annotation tools export them: a text, and for each span its start, end and label.

Supports triples ([0, 5, "PER"] as in spaCy and doccano, or ["PER", 0, 5]), objects with start, end and label under
their usual names (Prodigy, Label Studio, Dataturks), with offset and length (Azure) or offsets (BigBIO), and
CLUENER's tables of names. The spans become word tags: B-PER, I-PER.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from litebert.core.errors import DataError
from litebert.tasks.files.columns import guess_column
from litebert.tasks.files.list_cells import parse_list
from litebert.tasks.files.misplaced import Misplaced
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.files.tables import Row, Table, build_row, cell_text
from litebert.tasks.kinds.token_tags import OUTSIDE, TaggedWords
from litebert.tasks.words import Cut, Word, cut_text

TEXT = ("text", "content", "sentence", "data")
SPANS = ("entities", "spans", "ents", "label", "labels", "annotations", "annotation", "ner")
_START = ("start", "start_offset", "start_char", "start_idx", "start_pos", "start_index", "startOffset", "begin")
_END = ("end", "end_offset", "end_char", "end_idx", "end_pos", "end_index", "endOffset", "stop")
_KIND = ("label", "type", "entity_type", "entity_group", "labels", "category", "tag", "class", "entity")
_SURFACE = ("text", "word", "value", "mention", "name")


class Place(NamedTuple):
    """An entity span: text[start:end] is a `kind`."""

    start: int
    end: int
    kind: str


def lay_out_places(table: Table, notes: list[str]) -> Table:
    """The table with one text and its spans per row, for tools that nest them: Label Studio's full export, and
    spaCy's pairs inside an object with the list of classes."""
    if all(isinstance(row.cells.get("data"), dict) for row in table.rows) and "annotations" in table.columns:
        found = [_open_label_studio(row) for row in table.rows]
        rows = [row for row in found if row is not None]
        if len(rows) < len(found):
            notes.append(f"{table.path.name}: {len(found) - len(rows):,} texts without an annotation were skipped")
        num_several = sum(len(row.cells["annotations"]) > 1 for row in table.rows)
        if num_several:
            notes.append(f"{table.path.name}: {num_several:,} texts have several annotations; the first one is used")
    elif len(table.rows) == 1 and {"classes", "annotations"} <= set(table.columns):
        pairs = [pair for pair in table.rows[0].cells["annotations"] if pair]  # the tool leaves null for skipped texts
        rows = [build_row(pair, f"{table.path}: annotation {number}") for number, pair in enumerate(pairs, start=1)]
    else:
        return table
    if not rows:
        raise DataError("no-rows", f"{table.path}: none of its texts has an annotation")
    return replace(table, columns=tuple(dict.fromkeys(name for row in rows for name in row.cells)), rows=rows)


def _open_label_studio(row: Row) -> Row | None:
    """A text with the spans of its first annotation; None if it has no annotation."""
    annotations = [one for one in row.cells.get("annotations") or () if not one.get("was_cancelled")]
    if not annotations:
        return None
    places = [one["value"] for one in annotations[0].get("result", ()) if one.get("type") == "labels"]
    return replace(row, cells={**row.cells["data"], "id": row.identity(0), "spans": places})


def find_span_columns(
    table: Table, options: TableOptions, known: tuple[str, str] | None = None, *, needs_tags: bool = True
) -> tuple[str, str] | None:
    """The columns of text and spans, if any row of the table has spans; None for other tables.

    A split without any span, or with unlabelled texts, uses the columns `known` from the training file.
    """
    if known and known[0] in table.columns and (known[1] in table.columns or not needs_tags):
        cells = [row.cells.get(known[1]) for row in table.rows]
        if all(not cell or parse_list(cell) == [] for cell in cells):
            return known
    spans = options.label or guess_column(table.columns, SPANS)
    text = options.text or guess_column(table.columns, TEXT)
    if spans not in table.columns or text not in table.columns:
        return None
    values = (_list_values(row.cells.get(spans)) for row in table.rows)
    first = next((value for value in values if value), [])
    if first and all(_is_place(one) for one in first):
        return text, spans
    if first and isinstance(first[0], dict):
        raise DataError(
            "bad-span",
            f"{table.path}: '{spans}' has objects without a known start and end (they have "
            f"{', '.join(map(str, first[0]))}); name them start, end and label",
        )
    return None


def read_character_spans(
    table: Table,
    columns: tuple[str, str],
    misplaced: Misplaced,
    *,
    splits_words: Cut = True,
    needs_tags: bool,
    notes: list[str],
    group: str | None = None,
) -> list[TaggedWords]:
    """One sentence per text."""
    sentences: list[TaggedWords] = []
    num_widened = 0
    for number, row in enumerate(table.rows):
        text = cell_text(row, columns[0])
        words = cut_text(text, splits_words=splits_words)
        tags: list[str] | None = None
        if needs_tags or row.cells.get(columns[1]) is not None:
            try:
                places = _sort_places(_read_places(row, columns[1], text, misplaced), row, misplaced)
            except DataError as error:
                misplaced.skip(error)
                continue
            tags = [OUTSIDE] * len(words)
            num_widened += sum(_tag_words(words, tags, place) for place in places)
        shown = tuple(text[word.start : word.end] for word in words)
        label = None if tags is None else tuple(tags)
        sentences.append(TaggedWords(row.identity(number), shown, label, row.where, row.group(group)))
    if num_widened:
        notes.append(f"{table.path.name}: {num_widened:,} spans begin or end inside a word; the whole word is tagged")
    return sentences


def _list_values(value: Any) -> list[Any]:
    if isinstance(value, dict):  # CLUENER: {"name": {"Ada": [[0, 2]]}}
        return [place for kind, names in value.items() for place in _iter_table(kind, names)]
    return parse_list(value) or []


def _iter_table(kind: str, names: Any) -> Iterator[dict[str, Any]]:
    for surface, places in names.items() if isinstance(names, dict) else ():
        for place in places if isinstance(places, list) else [places]:
            start, end = place if isinstance(place, list) and len(place) == 2 else (place, None)  # refused later
            yield {"start": start, "end": end, "label": kind, "text": surface}


def _is_place(value: Any) -> bool:
    if isinstance(value, dict):
        return "points" in value or _find_ends(value)[0] is not None
    return isinstance(value, list | tuple) and len(value) == 3 and isinstance(value[1], int)


def _find_ends(value: dict[str, Any]) -> tuple[Any, Any]:
    """Start and end of a span, under their usual names; None if there are none."""
    if isinstance(offsets := value.get("offsets"), list):  # [0, 5], or [[0, 5]] of spans that may have several parts
        ends = offsets[0] if len(offsets) == 1 and isinstance(offsets[0], list) else offsets
        return tuple(ends) if len(ends) == 2 else (None, None)
    start, end = _take(value, _START), _take(value, _END)
    if start is None and isinstance(value.get("offset"), int) and isinstance(value.get("length"), int):
        return value["offset"], value["offset"] + value["length"]
    return start, end


def _read_places(row: Row, column: str, text: str, misplaced: Misplaced) -> list[Place]:
    values = _list_values(row.cells.get(column))
    # Dataturks: several points with the same label
    flat = [{**point, "label": one["label"]} if point else one for one in values for point in _points(one)]
    return [_read_place(value, text, f"{row.where}: {column}[{n}]", misplaced) for n, value in enumerate(flat)]


def _points(value: Any) -> list[Any]:
    return value["points"] if isinstance(value, dict) and "points" in value else [None]


def _read_place(value: Any, text: str, where: str, misplaced: Misplaced) -> Place:
    if isinstance(value, dict):
        (start, end), kind, surface = _find_ends(value), _take(value, _KIND), _take(value, _SURFACE)
    else:
        start, end, kind = value if len(value) == 3 else (None,) * 3
        start, end, kind = (end, kind, start) if isinstance(start, str) else (start, end, kind)  # the label first
        surface = None
    kind, surface = (one[0] if isinstance(one, list) and len(one) == 1 else one for one in (kind, surface))
    if not (isinstance(start, int) and isinstance(end, int) and isinstance(kind, str) and kind):
        raise DataError("bad-span", f"{where}: expected integer start and end and one label, got {str(value)[:60]}")
    if isinstance(surface, str) and text[start:end] != surface:
        if text[start : end + 1] == surface:  # its end is inclusive
            end += 1
        else:
            found = misplaced.find_nearest(text, surface, start)
            if found is None:
                raise DataError(
                    "misplaced-answer",
                    f"{where}: '{surface}' is not at character {start} of the text ('{text[start:end]}' is)",
                )
            start, end = found, found + len(surface)
    if not 0 <= start < end <= len(text):
        raise DataError("bad-span", f"{where}: span {start}-{end} is outside the text of {len(text)} characters")
    return Place(start, end, kind)


def _sort_places(places: Sequence[Place], row: Row, misplaced: Misplaced) -> list[Place]:
    """Sort spans; overlaps raise, because a word has one tag, or keep the longer span if errors are to be fixed."""
    kept: list[Place] = []
    for place in sorted(places, key=lambda one: (one.start - one.end, one.start)):
        other = next((one for one in kept if place.start < one.end and one.start < place.end), None)
        if other is None:
            kept.append(place)
        elif place != other and not misplaced.fix():
            raise DataError(
                "overlapping-spans",
                f"{row.where}: {place.kind} at {place.start} overlaps {other.kind} at {other.start}, but a "
                f"word has only one tag; keep one of them",
            )
    return sorted(kept)


def _tag_words(words: Sequence[Word], tags: list[str], place: Place) -> bool:
    """Tag the words of a span; returns whether it begins or ends inside a word."""
    inside = [n for n, word in enumerate(words) if word.start < place.end and place.start < word.end]
    free = [n for n in inside if tags[n] == OUTSIDE]
    for n in free:
        tags[n] = f"{'B' if n == free[0] else 'I'}-{place.kind}"
    return bool(inside) and (words[inside[0]].start < place.start or words[inside[-1]].end > place.end)


def _take(value: dict[str, Any], names: Sequence[str]) -> Any:
    return next((value[name] for name in names if name in value), None)
