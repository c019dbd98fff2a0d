"""Small tasks for a tiny model: sentences of common words, with a label that can be read off them."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

ANIMALS, PLACES = ("cat", "dog", "bird"), ("house", "tree", "river")
FILLERS = ["the", "a", "small", "large", "old", "new", "sees", "likes", "finds", "and", "near"]


def find(words: list[str], among: tuple[str, ...]) -> str:
    return next(word for word in words if word in among)


def find_animal(words: list[str]) -> str:
    return find(words, ANIMALS)


def invent_rows(
    label_of: Callable[[list[str]], Any] = find_animal, count: int = 32, seed: int = 0
) -> list[dict[str, Any]]:
    """Rows with a text and its label."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        words = [*rng.choices(FILLERS, k=rng.randint(2, 6)), rng.choice(ANIMALS), rng.choice(PLACES)]
        rng.shuffle(words)
        rows.append({"text": " ".join(words), "label": label_of(words)})
    return rows


def split_pairs(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with the last two words as a second text."""
    texts = [(row["text"].split(), row["label"]) for row in rows]
    return [{"text_a": " ".join(w[:-2]), "text_b": " ".join(w[-2:]), "label": label} for w, label in texts]


def tag_words(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with a tag for each word."""
    tags = {**dict.fromkeys(ANIMALS, "B-ANIMAL"), **dict.fromkeys(PLACES, "B-PLACE")}
    words = [row["text"].split() for row in rows]
    return [{"tokens": sentence, "tags": [tags.get(word, "O") for word in sentence]} for sentence in words]


def write_rows(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """A folder whose train and dev rows are the same."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev"):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder
