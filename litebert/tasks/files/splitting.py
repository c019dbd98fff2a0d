"""Splits rows into training and dev rows, with no text or group of texts in both.

Texts that differ only in case and white space are the same.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from litebert.core.errors import DataError

AnyExample = TypeVar("AnyExample")


def text_of(example: Any) -> str:
    """Everything that a model reads of an example, without case and white space: equal for duplicates."""
    values = list_inputs(example)
    parts = [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
    return "\x1f".join(" ".join(str(part).casefold().split()) for part in parts if part is not None)


def list_inputs(example: Any) -> list[Any]:
    """The texts of an example; its dataclass marks the fields that are neither read nor shown."""
    shown = [field.name for field in fields(example) if field.metadata.get("is_shown", True)]
    return [getattr(example, name) for name in shown if name not in ("id", "label", "where")]


def hold_out(
    rows: Sequence[AnyExample],
    share: float,
    key_of: Callable[[AnyExample], Hashable] = text_of,
    labels_of: Callable[[AnyExample], Sequence[str]] = lambda _: (),
) -> tuple[list[AnyExample], list[AnyExample]]:
    """(kept, held out), deterministically, with about `share` of the texts held out.

    Rows with the same key, and rows of the same `group`, stay together. Every label gets at least half of its share, or
    a model that never predicts a rare label could look best. Rare labels at most double the number of texts
    held out.
    """
    unit_of = _join_rows([(("text", key_of(row)), ("group", getattr(row, "group", ""))) for row in rows])
    units = list(dict.fromkeys(unit_of))
    num_held = max(1, round(len(units) * share))
    if num_held >= len(units):
        what = "rows" if len(units) == len(rows) else "different texts or groups"
        where = getattr(rows[0], "where", "")
        raise DataError(
            "too-few-examples",
            f"{where}: {len(units)} {what} are too few for a held-out dev split; give a dev file",
            option="dev",
        )
    order = np.random.default_rng(0).permutation(len(units))
    held = {units[number] for number in order[:num_held]}
    labels: dict[int, set[str]] = {unit: set() for unit in units}
    for row, unit in zip(rows, unit_of, strict=True):
        labels[unit].update(labels_of(row))
    held |= set(_find_rare([units[number] for number in order[num_held:]], held, labels, share)[:num_held])
    kept = [row for row, unit in zip(rows, unit_of, strict=True) if unit not in held]
    return kept, [row for row, unit in zip(rows, unit_of, strict=True) if unit in held]


def _find_rare(rest: Sequence[int], held: set[int], labels: Mapping[int, set[str]], share: float) -> list[int]:
    """Further texts to hold out, so that every label has half of its share there and still occurs in training."""
    totals = Counter(label for some in labels.values() for label in some)
    counts = Counter(label for unit in held for label in labels[unit])
    added: list[int] = []
    for unit in rest:
        is_missed = any(counts[label] < max(1, round(totals[label] * share / 2)) for label in labels[unit])
        if is_missed and all(counts[label] + 1 < totals[label] for label in labels[unit]):
            counts.update(labels[unit])
            added.append(unit)
    return added


def _join_rows(keys: Sequence[tuple[tuple[str, Hashable], ...]]) -> list[int]:
    """A number per row, equal for rows connected through shared keys; empty keys connect nothing."""
    parents = list(range(len(keys)))

    def find(row: int) -> int:
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = parents[row]
        return row

    first_with: dict[tuple[str, Hashable], int] = {}
    for row, shared in enumerate(keys):
        for kind, key in shared:
            if key != "":
                first, mine = find(first_with.setdefault((kind, key), row)), find(row)
                parents[max(first, mine)] = min(first, mine)
    return [find(row) for row in range(len(keys))]


def describe_shared(train: Sequence[Any], others: Mapping[str, Sequence[Any]]) -> list[str]:
    """For each other split, the number of rows with a text or group that is also in training; without zeros."""
    if not train:
        return []
    notes = []
    texts = {text_of(example) for example in train}
    groups = {getattr(example, "group", "") for example in train} - {""}
    for split, examples in others.items():
        num_texts = sum(text_of(example) in texts for example in examples)
        num_groups = sum(getattr(example, "group", "") in groups for example in examples)
        for number, what in ((num_texts, "a text"), (num_groups, "a group")):
            if number:
                notes.append(
                    f"{number:,} of {len(examples):,} rows of {split} have {what} that also occurs in train; "
                    f"scores on {split} may be too high"
                )
    return notes
