"""docs/recipe-keys.md has every key of both recipes with its default, and the reason for keys that no recipe sets."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import litebert
from litebert.finetuning.recipe import FinetuneRecipe
from litebert.model.config import ModelConfig
from litebert.model.presets import PRESETS
from litebert.pretraining.recipe import Recipe

PAGE = (Path(__file__).parents[2] / "docs" / "recipe-keys.md").read_text("utf-8")
_, PRETRAINING, FINETUNING, EXPERT = re.split(r"^## .*$", PAGE, flags=re.MULTILINE)
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


def list_set_keys() -> set[str]:
    """The keys that a shipped recipe, study or preset sets to something."""
    package = Path(litebert.__file__).parent
    found = {
        f"model.{field.name}"
        for field in fields(ModelConfig)
        if any(getattr(preset.config, field.name) != field.default for preset in PRESETS.values())
    }
    for file in (*package.glob("pretraining/recipes/*.toml"), *package.glob("studies/*.toml")):
        for name in iter_names(tomllib.loads(file.read_text("utf-8"))):
            parts = name.split(".")
            found |= {".".join(parts[k:]) for k in range(len(parts))}  # a study's arms have a recipe's keys inside
    return found


def iter_names(values: object, prefix: str = "") -> Iterator[str]:
    """The dotted names in nested tables, with and without what is inside."""
    if isinstance(values, dict):
        for name, value in values.items():
            yield f"{prefix}{name}"
            yield from iter_names(value, f"{prefix}{name}.")
    elif isinstance(values, list):
        for value in values:
            yield from iter_names(value, prefix)


def test_every_key_is_set_by_something_shipped_or_listed_with_a_reason() -> None:
    keys = {"init.from" if key == "init.source" else key for key in list_defaults(Recipe, set())}
    listed = set(
        re.findall(
            r"`([a-z_]+\.[a-z_0-9]+)`", "".join(line.split("|")[1] for line in EXPERT.splitlines() if "|" in line)
        )
    )
    unset = keys - list_set_keys()
    assert listed == unset, (sorted(unset - listed), sorted(listed - unset))
