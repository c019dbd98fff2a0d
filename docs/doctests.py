"""A griffe extension: examples in docstrings (`>>> ...`) are shown as blocks of Python."""

import re
from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Puts a fence around each run of lines that begins with a prompt."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = re.sub(
                r"^>>> .*?(?=\n\s*\n|\Z)",
                lambda found: f"```pycon\n{found[0]}\n```",
                obj.docstring.value,
                flags=re.MULTILINE | re.DOTALL,
            )
