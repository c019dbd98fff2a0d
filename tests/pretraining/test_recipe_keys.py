"""docs/recipe-keys.md names every key of both recipes, and no other, with its default."""

import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from litebert.finetuning.recipe import FinetuneRecipe
from litebert.pretraining.recipe import Recipe

PAGE = (Path(__file__).parents[2] / "docs" / "recipe-keys.md").read_text("utf-8")
_, PRETRAINING, FINETUNING = re.split(r"^## .*$", PAGE, flags=re.MULTILINE)
SAID_ONCE = {"optim", "runtime"}  # with pre-training's, for both
WORDS = {"none": None, "true": True, "false": False, "`[]`": (), "": MISSING}


def list_defaults(recipe: type, said_once: set[str]) -> dict[str, Any]:
    """Every key with its default; a section that has none of its own gives its class's."""
    keys: dict[str, Any] = {}
    for section in fields(recipe):
        if isinstance(section.type, type) and is_dataclass(section.type):
            if section.name not in said_once:
                keys |= {f"{section.name}.{field.name}": field.default for field in fields(section.type)}
        else:
            keys[section.name] = section.default
    return keys


def read_page(part: str) -> Iterator[tuple[str, Any]]:
    """The keys of the tables with their defaults; below a heading of one section they stand without its name."""
    heading = ""
    for line in part.splitlines():
        if line.startswith("### "):
            heading = line.removeprefix("### ")
        elif line.startswith("| `"):
            names, defaults = (cell.strip() for cell in line.split("|")[1:3])
            keys = re.findall(r"`([\w.]+)`", names)
            values = defaults.split(", ")
            for key, value in zip(keys, values if len(values) > 1 else values * len(keys), strict=True):
                is_bare = "," not in heading and heading and "." not in key
                yield f"{heading}.{key}" if is_bare else key, read_default(value)


def read_default(word: str) -> Any:
    if word in WORDS:
        return WORDS[word]
    return word.strip("`") if word.startswith("`") else float(word)


@pytest.mark.parametrize(
    ("part", "recipe", "said_once"), [(PRETRAINING, Recipe, set()), (FINETUNING, FinetuneRecipe, SAID_ONCE)]
)
def test_the_page_has_every_key_with_its_default(part: str, recipe: type, said_once: set[str]) -> None:
    keys = list_defaults(recipe, said_once)
    page = dict(read_page(part))
    page.pop("data.compat", None)  # a shorthand, which the resolved recipe spells out
    if recipe is Recipe:
        keys["init.from"] = MISSING if keys.pop("init.source") == "" else None
        keys["stages"] = MISSING if keys["stages"] == () else None
    assert page == keys
