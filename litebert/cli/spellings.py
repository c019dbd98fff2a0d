"""The spellings of version 0.1.0, which keep working: each is rewritten to today's, and a hint shows the result."""

import shlex
from collections.abc import Sequence
from typing import Any

from typer.core import TyperOption

_COMMANDS = {"check": ("recipes", "check"), "plan": ("recipes", "plan"), "scores": ("compare",)}
# By today's command: options that were renamed. "" drops a flag that is the default, or leaves only an option's value.
_OPTIONS = {
    ("demo",): {"--fresh": "--overwrite"},
    ("tokenizer", "train"): {"--force": "--overwrite", "--no-force": "", "--no-chinese": ""},
    ("corpus", "build"): {"--no-deduplicate": ""},
    ("recipes", "plan"): {"--device": "--hardware"},
    ("recipes", "batches"): {"--batches": "--count"},
    ("models", "list"): {"--table": "--paper-table"},
    ("adapt",): {"--set": ""},
    ("finetune",): {"--seeds": "--num-seeds"},
    ("evaluate",): {"--intrinsic": "--corpus"},
    ("export",): {"--format": "--to", "--task-head": "--head"},
    ("study", "run"): {"--device": "--hardware"},
}


def modernize(words: Sequence[str], root: Any) -> list[str]:
    """The words of a command line in today's spelling; `root` is the command tree."""
    path, rest = _find_command(list(words), root)
    renamed = _OPTIONS.get(path, {})
    new = []
    for word in rest:
        flag, sign, value = word.partition("=")
        if flag not in renamed:
            new.append(word)
        elif renamed[flag]:
            new.append(f"{renamed[flag]}{sign}{value}")
        elif sign:
            new.append(value)
    if path in (("convert",), ("export",)):  # the second argument was the folder to write
        places = _find_positionals(new, root.commands[path[0]])
        if len(places) == 2:
            new.insert(places[1], "--out")
    return [*path, *new]


def describe_hint(words: Sequence[str]) -> str:
    """The hint for a command line that was rewritten."""
    return f"hint: this is now written: {shlex.join(['litebert', *words])}"


def _find_command(words: list[str], root: Any) -> tuple[tuple[str, ...], list[str]]:
    """Today's command, and the words after it."""
    name, rest = (words[0], words[1:]) if words else ("", [])
    verb = rest[0] if rest else ""
    if name in _COMMANDS:
        return _COMMANDS[name], rest
    if (name, verb) == ("corpus", "stats") and any(word.partition("=")[0] == "--batches" for word in rest):
        return ("recipes", "batches"), rest[1:]
    verbs = getattr(root.commands.get(name), "commands", None)
    if verbs is None:
        return ((name,) if name else ()), rest
    if verb in verbs:
        return (name, verb), rest[1:]
    if name == "recipes" and not rest:
        return ("recipes", "list"), []
    if name == "models" and verb != "--help":
        has_preset = _find_positionals(rest, verbs["list"], also=("--table",))
        return ("models", "show" if has_preset else "list"), rest
    return (name,), rest


def _find_positionals(words: Sequence[str], command: Any, *, also: Sequence[str] = ()) -> list[int]:
    """The places of the words that are neither options nor the values of options."""
    takes_value = {
        flag for one in command.params if isinstance(one, TyperOption) and not one.is_flag for flag in one.opts
    }
    takes_value |= set(also)
    return [
        place
        for place, word in enumerate(words)
        if (not word.startswith("-") or word == "-") and not (place and words[place - 1] in takes_value)
    ]
