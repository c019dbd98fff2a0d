"""A message is one line for a person's terminal, whatever the file that it quotes holds."""

import json
import pickle
from pathlib import Path

import pytest
from refusals import refuses

from litebert.core.errors import DataError, describe_refusal, suggest
from litebert.core.files import parse_json_value
from litebert.interop.sentence_folder import read_sentence_folder

HOSTILE = "a\nb\x1b[31m\u202e\ud800"
ESCAPED = r"a\nb\x1b[31m\u202e\ud800"


def test_what_a_file_holds_cannot_write_to_the_terminal() -> None:
    error = DataError("unknown-key", f"café 中文: {HOSTILE}")
    assert str(error) == f"café 中文: {ESCAPED}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    refusal = describe_refusal(FileNotFoundError(2, "No such file", HOSTILE))
    assert refusal is not None
    assert refusal.line == f"error: {ESCAPED}: No such file"


def test_a_name_in_a_model_is_quoted_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(
        json.dumps([{"type": "Transformer", "path": HOSTILE}, {"type": "Pooling", "path": ""}])
    )
    with refuses(DataError, "missing-file") as caught:
        read_sentence_folder(tmp_path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 500 + "]" * 500, "9" * 5_000, "nul", b"\xff", '{"a": "\t"}'])
def test_every_json_is_read_or_refused(text: str | bytes) -> None:
    with refuses(DataError, "bad-json", at="a.json"):
        parse_json_value(text, "a.json")


def test_a_suggestion_is_one_sentence_and_says_what_else_is_valid() -> None:
    assert suggest("nanno", ["nano", "laptop"]) == "did you mean 'nano'?"
    assert suggest("nanno", ["nano", "laptop"], "a .toml file") == "did you mean 'nano', or a .toml file?"
    assert suggest("xyz", ["nano", "laptop"], "a .toml file") == "valid: laptop, nano, or a .toml file"
