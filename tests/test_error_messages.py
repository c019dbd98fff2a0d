"""Every sentence of every error in one file, so that rewording an error changes one snapshot and no other test.

Write the snapshot again with `python tests/test_error_messages.py`, and read its diff.
"""

import ast
import re
from pathlib import Path

from litebert.core import errors

ROOT = Path(__file__).parent.parent
SNAPSHOT = Path(__file__).parent / "error_messages.txt"
KINDS = {"TooFewPairsError", "NoSequencesError"} | {
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.LitebertError)
} - {"WorkersError"}


def iter_errors() -> list[tuple[str, ast.Call]]:
    """Every construction of one of our errors, with the file it stands in."""
    return [
        (str(path.relative_to(ROOT)), node)
        for path in sorted((ROOT / "litebert").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS
    ]


def template(message: ast.expr) -> str:
    """The sentence with {expressions} where values go."""
    if isinstance(message, ast.Constant):
        return str(message.value)
    if isinstance(message, ast.JoinedStr):
        return "".join(
            value.value if isinstance(value, ast.Constant) else "{" + ast.unparse(value.value) + "}"  # type: ignore[attr-defined]
            for value in message.values
        )
    return "{" + ast.unparse(message) + "}"


def render() -> str:
    lines = {
        f"{node.args[0].value} | {template(node.args[1])}"  # type: ignore[attr-defined]
        for _, node in iter_errors()
        if len(node.args) == 2 and isinstance(node.args[0], ast.Constant)
    }
    return "\n".join(sorted(lines)) + "\n"


def test_every_error_has_a_code_in_kebab_case_and_a_message() -> None:
    for file, node in iter_errors():
        assert len(node.args) == 2, f"{file}:{node.lineno}: an error takes a code and a message"
        code = node.args[0]
        if isinstance(code, ast.Constant):
            assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", str(code.value)), f"{file}:{node.lineno}: {code.value}"


def test_the_sentences_are_those_of_the_snapshot() -> None:
    assert render() == SNAPSHOT.read_text("utf-8"), f"reworded? Run python {Path(__file__).name} and read the diff"


if __name__ == "__main__":
    SNAPSHOT.write_text(render(), "utf-8")
