"""Parses lists written into one cell of a table, as JSON or as Python or numpy print them."""

import ast
import json
import re
from typing import Any

_LIST = re.compile(r"\s*(?:\[.*\]|\(.*\)|\{.*\})\s*", re.DOTALL)
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
# numpy prints no commas: ['a' 'b'], [0 3]. Python would parse the first as one string, 'ab'
_NUMPY_TEXTS = re.compile(rf"\s*\[\s*(?:{_QUOTED})(?:\s+(?:{_QUOTED}))+\s*\]\s*")
_NUMPY_NUMBERS = re.compile(r"\s*\[\s*-?\d[\d.]*(?:\s+-?\d[\d.]*)+\s*\]\s*")


def is_list_text(value: Any) -> bool:
    """Whether a cell is text that begins and ends like a list, a tuple or a set."""
    return isinstance(value, str) and bool(_LIST.fullmatch(value))


def parse_list(value: Any) -> list[Any] | None:
    """The list that a cell is or contains as text, or else None."""
    if isinstance(value, list):
        return value
    if isinstance(value, str) and value.strip() == "set()":  # Python prints an empty set like this
        return []
    if not is_list_text(value):
        return None
    if _NUMPY_TEXTS.fullmatch(value):
        return [ast.literal_eval(text) for text in re.findall(_QUOTED, value)]
    if _NUMPY_NUMBERS.fullmatch(value):
        return [json.loads(number.rstrip(".")) for number in value.strip().strip("[]").split()]
    for parse in (json.loads, ast.literal_eval):
        try:
            parsed = parse(value.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(parsed, set):
            return sorted(parsed, key=str)
        return list(parsed) if isinstance(parsed, list | tuple) else None
    return None
