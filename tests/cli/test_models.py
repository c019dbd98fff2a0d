"""What a person types and sees: `litebert models list` and `show`, wrong words, exit codes."""

import io
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console

from litebert.cli.main import main
from litebert.model.presets import PRESETS


def litebert(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "litebert", *words], capture_output=True, text=True, check=False)


def test_version() -> None:
    assert litebert("--version").stdout == f"litebert {version('litebert')}\n"


def test_the_table_has_every_preset_and_albert_bases_exact_count() -> None:
    done = litebert("models", "list")
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in PRESETS)
    assert "11,683,584" in done.stdout
    assert "89,780,402" in done.stdout  # unrolled


def test_json_holds_the_same_facts() -> None:
    facts = {fact["name"]: fact for fact in json.loads(litebert("models", "list", "--json").stdout)}
    assert facts.keys() == PRESETS.keys()
    assert facts["albert-base"]["parameters"]["with_heads"] == 11_813_810
    assert facts["albert-base"]["memory_bytes"]["optimizer"] == 2 * 4 * 11_813_810


@pytest.mark.parametrize("words", [["list"], ["list", "--paper-table", "1"], ["show", "nano"]], ids=" ".join)
def test_no_table_is_cut_in_a_terminal_of_80_columns(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False, color_system=None)
    monkeypatch.setattr("litebert.cli.models.open_console", lambda: terminal)
    monkeypatch.setattr(sys, "argv", ["litebert", "models", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    shown = cast(io.StringIO, terminal.file).getvalue()
    names = {"1": ["ALBERT-xxlarge", "222.60M"], "nano": ["nano", "512,128", "524,770"]}.get(
        words[-1], [*PRESETS, "1270M"]
    )
    assert [name for name in names if name not in shown] == []
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown


@pytest.mark.parametrize("table", ["1", "3", "4"])
def test_the_papers_tables_are_shown_next_to_ours(table: str) -> None:
    rows = json.loads(litebert("models", "list", "--paper-table", table, "--json").stdout)
    assert len(rows) == {"1": 7, "3": 8, "4": 8}[table]
    shown = litebert("models", "list", "--paper-table", table).stdout
    for row in rows:
        assert row["name"] in shown
        assert f"{row['printed_millions']}M" in shown
        assert f"{row['with_pooler']:,}" in shown


def test_a_shape_of_table_4_is_one_override_away() -> None:
    done = litebert("models", "show", "albert-base", "sharing=attention", "--json")
    assert json.loads(done.stdout)[0]["parameters"]["with_pooler"] == 63_647_232


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["models", "show", "albert-bse"], "unknown preset 'albert-bse'; did you mean 'albert-base'?"),
        (["models", "show", "nano", "shring=all"], "unknown key 'shring'; did you mean 'sharing'?"),
        (["models", "show", "nano", "num_layers=two"], "num_layers = 'two': input should be a valid integer"),
        (["models", "show", "nano", "num_heads=3"], "hidden_size = 128 is not a multiple of num_heads = 3"),
        (
            ["models", "show", "nano", "--length", "513"],
            "513 is more than the 512 positions of nano (--length)",
        ),
        (["models", "list", "--paper-table", "2"], "table 2 is not available; choose 1, 3, 4 (--paper-table)"),
        (["models", "list", "--tabel", "1"], "No such option: --tabel"),
        (["modles"], "No such command 'modles'"),
    ],
)
def test_wrong_words_give_one_line_and_exit_code_2(words: list[str], message: str) -> None:
    done = litebert(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_debug_shows_the_traceback() -> None:
    done = litebert("models", "show", "nope", "--debug")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_the_shell_is_taught_our_words() -> None:
    asked_by_bash = {
        **os.environ,
        "_LITEBERT_COMPLETE": "complete_bash",
        "COMP_WORDS": "litebert mod",
        "COMP_CWORD": "1",
    }
    code = "import sys; sys.argv = ['litebert']; from litebert.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=asked_by_bash)
    assert done.stdout.split() == ["models"]


def test_a_file_that_cannot_be_written_gives_one_line_and_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "metrics.jsonl").write_text('{"step": 1, "loss": 1.0}\n{"step": 2, "loss": 0.5}\n')
    (tmp_path / "file").touch()
    done = litebert("plot", str(tmp_path / "run"), "--out", str(tmp_path / "file" / "x.png"))
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
