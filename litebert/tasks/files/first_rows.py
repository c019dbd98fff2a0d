"""Shows how the first row of each split was read, for the user to check before training starts."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from litebert.tasks.kinds.choices import ChoiceExample
from litebert.tasks.kinds.token_tags import TaggedWords
from litebert.tasks.squad.reading import Question
from litebert.tasks.texts import TextExample

MAX_TEXT = 60  # characters of a text
MAX_WORDS = 12


def show_first_rows(splits: Mapping[str, Sequence[Any]], *, is_learned: bool = True) -> list[str]:
    """One line per non-empty split. A file that is only scored has no split name."""
    first = {name: _describe(examples[0]) for name, examples in splits.items() if examples}
    if not is_learned and list(first) == ["train"]:
        return [f"first row: {first['train']}"]
    return [f"first row of {name}: {row}" for name, row in first.items()]


def _describe(example: TextExample | TaggedWords | ChoiceExample | Question) -> str:
    if isinstance(example, TaggedWords):
        return _describe_words(example)
    if isinstance(example, ChoiceExample):
        parts = {"passage": example.context, "question": example.question, "choices": list(example.choices)}
    elif isinstance(example, Question):
        parts = {"passage": example.context, "question": example.text}
    else:
        parts = {"text": example.text, "second text": example.text_b or ""}
    shown = {name: _show(value) for name, value in parts.items() if value}
    name = "answers" if isinstance(example, Question) else "label"
    label = f"no {name}" if example.label is None else f"{name} = {_show(example.label)}"
    return ", ".join([*(f"{name} = {value}" for name, value in shown.items()), label])


def _describe_words(sentence: TaggedWords) -> str:
    more = " ..." if len(sentence.words) > MAX_WORDS else ""
    if sentence.label is None:
        return f"{' '.join(sentence.words[:MAX_WORDS])}{more}, no tags"
    tagged = [f"{word}/{tag}" for word, tag in zip(sentence.words, sentence.label, strict=True)]
    return f"{' '.join(tagged[:MAX_WORDS])}{more}"


def _show(value: Any) -> str:
    """A value in one line, with tabs, newlines and quotation marks visible."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_show, value))}]"
    if isinstance(value, str) and len(value) > MAX_TEXT:
        value = f"{value[:MAX_TEXT]}..."
    return json.dumps(value, ensure_ascii=False)
