"""litebert from Python: what each verb's docstring shows, and that Python and the command line do the same."""

import doctest
import inspect
import json
import signal
import subprocess
import sys
from collections import UserList
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import typer
from small_runs import assert_same_run, make_recipe
from small_text import make_sentences

import litebert
from litebert import api
from litebert.cli.main import _run, app
from litebert.core.runlog import RunLog
from tests.conftest import invent_documents

VERBS = list(litebert._VERBS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the examples of the docstrings run, one after another."""
    folder = tmp_path_factory.mktemp("api")
    (folder / "texts").mkdir()
    sentences = make_sentences(1200)
    text = "\n\n".join("\n".join(sentences[start : start + 6]) for start in range(0, len(sentences), 6))
    (folder / "texts" / "text.txt").write_text(text, "utf-8")
    return folder


def test_every_example_in_a_docstring_is_true(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the file, in which one verb makes what the next one reads."""
    monkeypatch.chdir(folder)
    functions = [value for value in vars(api).values() if inspect.isfunction(value)]  # in the order of the file
    names: dict[str, Any] = {"litebert": litebert, "list_words": api.list_words}
    shown = set()
    for function in functions:
        for example in doctest.DocTestParser().get_examples(function.__doc__ or ""):
            shown.add(function.__name__)
            if doctest.SKIP in example.options:  # serving never ends; tests/test_examples.py asks a server
                compile(example.source, function.__name__, "exec")
                continue
            if example.want:
                assert repr(eval(example.source, names)) == example.want.strip(), example.source
            else:
                exec(example.source, names)
    assert set(VERBS) <= shown


def test_importing_litebert_loads_nothing_heavy() -> None:
    heavy = ("torch", "numba", "numpy", "transformers", "pyarrow", "matplotlib", "typer", "rich")
    code = f"import sys, litebert, litebert.api; loaded = set({heavy!r}) & set(sys.modules); assert not loaded, loaded"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_can_be_imported() -> None:
    assert sorted(litebert.__all__) == sorted(litebert._PUBLIC)
    for name in litebert.__all__:
        assert getattr(litebert, name) is not None, name


def hash_shards(corpus: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in corpus.rglob("*.safetensors")}


def test_texts_from_python_give_the_same_vocabulary_and_corpus_as_a_file_of_them(tmp_path: Path) -> None:
    texts = [" ".join(document) for document in invent_documents(60, seed=4)]
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(f'{{"text": "{text}"}}\n' for text in texts))
    one = litebert.train_tokenizer(texts, tmp_path / "one", kind="wordpiece", vocab_size=90)
    other = litebert.train_tokenizer(lines, tmp_path / "other", kind="wordpiece", vocab_size=90)
    assert one.report["fingerprint"] == other.report["fingerprint"]
    corpora = [
        litebert.build_corpus(source, tmp_path / name, tokenizer=one, valid_share=0.2, processes=1)
        for name, source in (("a", texts), ("b", lines), ("c", {"id": range(len(texts)), "text": texts}))
    ]
    shards = [hash_shards(Path(corpus)) for corpus in corpora]
    assert shards[0]
    assert shards[0] == shards[1] == shards[2]
    again = litebert.build_corpus(texts, tmp_path / "a", tokenizer=one, valid_share=0.2, processes=1)
    assert again.report["num_known"] == 1
    assert again.metrics == corpora[0].metrics


def test_the_command_line_makes_the_same_corpus(tmp_path: Path, folder: Path) -> None:
    litebert.train_tokenizer(folder / "texts", tmp_path / "tokenizer", kind="wordpiece", vocab_size=90)
    litebert.build_corpus(folder / "texts", tmp_path / "one", tokenizer=tmp_path / "tokenizer")
    words = ["corpus", "build", f"{folder}/texts", "--tokenizer", f"{tmp_path}/tokenizer", "--out", f"{tmp_path}/two"]
    assert _run(words, debug=False) == 0
    assert hash_shards(tmp_path / "one") == hash_shards(tmp_path / "two")


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["one", None], r"texts\[1\] is None"),
        (["one", float("nan")], r"texts\[1\] is nan"),
        ([], "texts is empty"),
        ({"body": ["one"]}, "no column 'text', but body"),
        (7, r"texts\[0\] is 7"),
        ([__file__], "is the name of a file"),
    ],
)
def test_texts_that_are_none_are_refused(texts: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(litebert.DataError, match=says) as raised:
        litebert.train_tokenizer(texts, tmp_path / "tokenizer")
    assert "--" not in str(raised.value)
    assert not (tmp_path / "tokenizer").exists()


def test_an_error_names_the_argument_and_the_command_line_its_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tiny_checkpoint: Path
) -> None:
    texts = [" ".join(document) for document in invent_documents(60, seed=4)]
    litebert.train_tokenizer(texts, tmp_path / "tok", kind="wordpiece", vocab_size=90)
    with pytest.raises(litebert.ConfigError, match="or replace it") as raised:
        litebert.train_tokenizer(texts, tmp_path / "tok", kind="wordpiece", vocab_size=90)
    assert raised.value.option == "overwrite"
    assert _run(["tokenizer", "train", __file__, "--out", f"{tmp_path}/tok"], debug=False) == 2
    assert capsys.readouterr().err.endswith("or replace it (--overwrite)\n")
    assert _run(["export", str(tiny_checkpoint), f"{tmp_path}/x", "--max-drop", "1"], debug=False) == 2
    assert capsys.readouterr().err.endswith("(--int8)\n")
    words = ["study", "run", "table-5", "--corpus", f"{tmp_path}/nowhere", "--out", f"{tmp_path}/study"]
    assert _run(words, debug=False) == 2
    assert capsys.readouterr().err.endswith("(--corpus)\n")


COMMANDS = {
    "train_tokenizer": "tokenizer train",
    "build_corpus": "corpus build",
    "build_index": "search index",
    "run_study": "study run",
}


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "evaluate_intrinsic"])
def test_an_option_has_the_same_default_as_on_the_command_line(verb: str) -> None:
    command: Any = typer.main.get_command(app)
    for word in COMMANDS.get(verb, verb).split():
        command = command.commands[word]
    flags = {parameter.name.removesuffix("_"): parameter.default for parameter in command.params}
    options = inspect.signature(getattr(litebert, verb)).parameters.values()
    ours = {one.name: one.default for one in options if one.default is not one.empty and one.name in flags}
    assert len(ours) > 2
    empty = (None, False, "", (), [])
    for name, default in ours.items():
        assert default == flags[name] or (default in empty and flags[name] in empty), name


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train": {"steps": 5, "hours": 0.5}}, ["train.steps=5", "train.hours=0.5"]),
        ({"data.corpora": ["a", Path("b")]}, ['data.corpora=["a", "b"]']),
        ({"train.recompute": True, "objective.name": "1"}, ["train.recompute=true", 'objective.name="1"']),
        (["train.steps=5"], ["train.steps=5"]),
    ],
)
def test_changes_are_the_words_of_the_command_line(changes: api.Changes, words: list[str]) -> None:
    assert api.list_words(changes) == words


@pytest.mark.parametrize("changes", ["train.steps=5", {"train.steps": None}, {"train.steps": object()}])
def test_changes_that_no_recipe_has_are_refused(changes: Any, tmp_path: Path) -> None:
    with pytest.raises(litebert.ConfigError):
        litebert.pretrain("nano", changes, out=tmp_path)


def test_a_result_shows_its_folder_and_metrics() -> None:
    result = api.Result("pretrain", Path("runs/<x>"), None, {"loss": 1.25, "step": 1200})
    assert repr(result) == "<pretrain: folder='runs/<x>', loss=1.25, step=1,200>"
    html = result._repr_html_()
    assert "<code>runs/&lt;x&gt;</code>" in html
    assert "1.25" in html
    assert Path(result) == Path("runs/<x>")
    with pytest.raises(litebert.ConfigError, match="wrote nothing"):
        Path(api.Result("doctor"))


def test_a_script_without_a_main_guard_may_build_with_several_processes(folder: Path, tmp_path: Path) -> None:
    """Children that imported the script would run it again, which Python ends with an error."""
    script = tmp_path / "script.py"
    script.write_text(
        "import litebert\n"
        f"litebert.train_tokenizer('{folder}/texts', 'tokenizer', kind='wordpiece', vocab_size=200)\n"
        f"litebert.build_corpus('{folder}/texts', 'corpus', tokenizer='tokenizer', processes=2)\n"
        "print('once')\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "once\n"), done.stderr


ANIMALS = ["a cat sees", "the dog sees", "one bird", "a large cat", "the old bird", "a small dog"]
PLACES = ["a house", "the river near", "one tree", "the old house", "a new river", "the large tree"]
TABLE = {
    "text": [f"{words} {n}" for n in range(6) for words in ANIMALS + PLACES],
    "label": (["animal"] * 6 + ["place"] * 6) * 6,
}
QUICK = {"train.steps": 4, "train.evaluations": 1, "seed": 1}


class Frame:
    """What litebert asks a pandas table."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.columns, self.rows = list(rows[0]), rows

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return self.rows


@pytest.mark.parametrize("kind", ["rows", "frame", "file", "splits"])
def test_a_table_from_python_trains_the_same_model_as_a_file(
    kind: str, tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]
    file = tmp_path / "table.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    same = {"rows": rows, "frame": Frame(rows), "file": file, "splits": {"train": TABLE, "dev": TABLE}}[kind]
    dev = TABLE if kind != "splits" else None
    one = litebert.finetune(tiny_checkpoint, "classification", TABLE, QUICK, out=tmp_path / "one", dev=TABLE)
    two = litebert.finetune(tiny_checkpoint, "classification", same, QUICK, out=tmp_path / "two", dev=dev)
    assert one.report == two.report
    assert json.loads((tmp_path / "two" / "report.json").read_text())["dev"] == two.report["dev"]
    if kind == "file":
        words = ["finetune", tiny_checkpoint, "--task", "classification", "--data", file, "--dev", file]
        words += ["--out", tmp_path / "three", *api.list_words(QUICK)]
        assert _run([str(word) for word in words], debug=False) == 0
        assert (tmp_path / "three" / "report.json").read_bytes() == (tmp_path / "one" / "report.json").read_bytes()
        texts = ["a cat sees", "the river"]
        (tmp_path / "texts.txt").write_text("\n".join(texts))
        capsys.readouterr()
        assert _run(["predict", str(tmp_path / "three"), str(tmp_path / "texts.txt")], debug=False) == 0
        printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert litebert.predict(litebert.load(one), tmp_path / "texts.txt") == printed
        for source in (
            texts,
            np.array(texts),
            UserList(texts),
            {"text": texts},
        ):  # lists and tables count from 0, lines of a file from 1
            answers = litebert.predict(one, source)
            assert [answer["probabilities"] for answer in answers] == [line["probabilities"] for line in printed]
        assert litebert.evaluate(one, TABLE).metrics == litebert.evaluate(one, file).metrics


@pytest.mark.parametrize(
    ("table", "code", "says"),
    [
        ({"text": ["a"], "label": ["x", "y"]}, "ragged-table", "text 1, label 2"),
        ({"text": "a", "label": ["x"]}, "no-table", "mapping of column names to lists"),
        ([], "no-rows", "data has no rows"),
        (7, "no-table", "data is 7"),
    ],
)
def test_a_table_that_is_none_is_refused(
    table: Any, code: str, says: str, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    with pytest.raises(litebert.DataError, match=says) as raised:
        litebert.finetune(tiny_checkpoint, "classification", table, out=tmp_path / "run")
    assert raised.value.code == code
    assert not (tmp_path / "run").exists()


class NAType:
    """Named as pandas.NA's class, which is no float."""


@pytest.mark.parametrize("missing", [None, float("nan"), NAType()])
@pytest.mark.parametrize("column", ["text", "label"])
def test_an_error_in_a_table_names_its_row_and_no_file(
    column: str, missing: Any, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    table: dict[str, list[Any]] = {"text": ["one", "two", "three"], "label": ["x", "x", "y"]}
    table[column][1] = missing
    with pytest.raises(litebert.DataError) as raised:
        litebert.finetune(tiny_checkpoint, "classification", table, out=tmp_path / "run")
    assert "data, row 2" in str(raised.value)
    assert "/" not in str(raised.value)


def test_ctrl_c_leaves_a_folder_from_which_the_same_call_continues(
    tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = make_recipe(tiny_corpus)
    whole = litebert.pretrain(recipe, out=tmp_path / "whole")
    write = RunLog.write

    def interrupt(self: RunLog, step: int, **values: dict[str, float]) -> None:
        write(self, step, **values)
        if step == 3:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(RunLog, "write", interrupt)
        litebert.pretrain(recipe, out=tmp_path / "cut")
    again = litebert.pretrain(recipe, out=tmp_path / "cut")
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    assert again.metrics == whole.metrics


def test_in_a_notebook_one_output_is_redrawn_and_sentences_stay(
    tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The two names that litebert takes from IPython, by what they are documented to do."""
    shown: list[str] = []

    class Handle:
        def update(self, html: str) -> None:
            shown[-1] = html

    def display(html: str, *, display_id: bool) -> Handle:
        assert display_id
        shown.append(html)
        return Handle()

    for name in ("ipykernel", "IPython"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    module = ModuleType("IPython.display")
    module.HTML, module.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    litebert.pretrain(make_recipe(tiny_corpus), out=tmp_path / "run")
    assert len(shown) == 1
    assert "value='1.0000'" in shown[0]
    assert "step 12/12" in shown[0]
    said = capsys.readouterr().out
    assert "step 12, validation" in said
    assert "run: step" not in said
