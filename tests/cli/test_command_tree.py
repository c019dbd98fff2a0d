"""Laws that hold for every command: help, examples, one meaning per flag, one policy for existing output."""

import json
import re
import shlex
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from small_tasks import invent_rows
from typer.core import TyperOption
from typer.main import get_command

from litebert import api
from litebert.cli import completion
from litebert.cli.help import EXAMPLES, list_arguments, list_options, name_argument, name_option
from litebert.cli.main import Commands, _run, app
from litebert.corpus.formats.parsers import FORMATS
from litebert.study.spec import SCALES
from litebert.text.sentencepiece_backend import DigitComma
from litebert.text.train_tokenizer import VocabularyOptions
from tests.conftest import invent_documents

ROOT = Path(__file__).parents[2]


def _walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", {})
    if not below:
        yield path, command
    for name, one in below.items():
        yield from _walk(f"{path} {name}", one)


COMMANDS = dict(_walk("litebert", get_command(app)))
GROUPS = ["litebert", *sorted({path.rpartition(" ")[0] for path in COMMANDS if path.count(" ") == 2})]
OPTIONS = [(path, option) for path, command in COMMANDS.items() for option in list_options(command)]


def _examples(command: Any) -> list[str]:
    lines = (command.epilog or "").splitlines()
    assert lines[:1] == [EXAMPLES], command.name
    return [line.strip() for line in lines[1:]]


EXAMPLE_LINES = [(path, line) for path, command in COMMANDS.items() for line in _examples(command)]


def test_the_sections_contain_every_command_once() -> None:
    listed = [name for names in Commands.sections.values() for name in names]
    assert sorted(listed) == sorted(get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", [*GROUPS, *COMMANDS])
def test_help_is_readable_at_80_columns(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert _run([*path.split()[1:], "--help"], debug=False) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert not re.search(r"<(bool|str|int|path|float)|\bNone\b|\x1b", shown)
    assert re.match(rf"Usage: {path}\b", shown)


@pytest.mark.parametrize(("path", "command"), COMMANDS.items())
def test_a_command_says_what_it_does_and_shows_examples(path: str, command: Any) -> None:
    first = re.split(r"\.\s|\.$", command.help)[0]
    assert first[0].isupper()
    assert len(first) < 80
    assert all(example.startswith(f"{path} ") or example == path for example in _examples(command))
    assert all(re.fullmatch(r"[A-Z].*\.|-.*\.|[a-z].*\.", one.help, re.DOTALL) for one in list_options(command))


ARGUMENTS = {
    *("MODEL", "MODEL...", "RECIPE", "PRESET", "STUDY", "CORPUS", "TEXT", "TEXTS...", "ANSWERS", "FOLDERS..."),
    *("INDEX", "[QUESTIONS]..."),
    *("RUNS...", "[RUNS]...", "[FILES]...", "[FOLDERS]...", "[KEY=VALUE]..."),
}


def test_an_argument_has_one_name() -> None:
    named = {name_argument(one) for command in COMMANDS.values() for one in list_arguments(command)}
    assert named == ARGUMENTS


# What a flag takes, and how its help begins; several where the flag means the same for several things
MEANINGS = {
    "--out": {("FOLDER", "Run folder"), ("FOLDER", "Folder to write"), ("FOLDER", "Corpus folder")}
    | {("FOLDER", "Study folder"), ("FILE", "File to write"), ("FILE", "PNG file to")},
    "--data": {("PATH", "Task data")},
    "--corpus": {("FOLDER", "Corpus folder")},
    "--model": {("MODEL", "Model")},
    "--rerank-label": {("LABEL", "Label of")},
    "--split": {("NAME", "Split"), ("train|valid", "Split")},
    "--count": {("N", "Number of")},
    "--device": {("auto|cpu|cuda|mps", "Device to compute")},
    "--hardware": {("NAME", "Hardware to plan")},
    "--seeds": {("LIST", "Run these seeds")},
    "--table": {("", "Print a table")},
    "--to": {("onnx|web", "Format to write"), ("litebert|huggingface|sentence-transformers", "Format to write")},
    "--task": {("TASK", "Task")},
    "--on-error": {("fail|skip", "On"), ("fail|skip|fix", "On")},
    "--dev": {("FILE", "Dev file"), ("FILE", "Labelled examples")},
    "--length": {("N", "Tokens per")},
    "--layers": {("N", "")},
    "--processes": {("N", "Number of")},
    "--valid-share": {("X", "Share of documents")},
    "--tokenizer": {("PATH", "")},
    "--metric": {("METRIC", "Metric to"), ("METRIC", "Main metric")},
    "--recipe": {("RECIPE", "Recipe")},
}


def _name_value(option: TyperOption) -> str:
    return "" if option.is_flag else name_option(option).rpartition(" ")[2]


def test_a_flag_has_one_meaning() -> None:
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for _, option in OPTIONS:
        assert option.opts[0].startswith("--"), option.opts
        found[option.opts[0]].add((_name_value(option), str(option.help)))
    for flag, uses in found.items():
        allowed = MEANINGS.get(flag)
        if allowed is None:
            assert len(uses) == 1, (flag, uses)
            continue
        for value, text in uses:
            assert any(value == takes and text.startswith(begins) for takes, begins in allowed), (flag, value, text)


def test_a_short_flag_stands_for_one_long_flag() -> None:
    long: dict[str, set[str]] = defaultdict(set)
    for _, option in OPTIONS:
        for flag in option.opts[1:]:
            long[flag].add(option.opts[0])
    assert all(len(flags) == 1 for flags in long.values()), long


def test_existing_output_is_resumed_replaced_or_needs_overwrite() -> None:
    for path, command in COMMANDS.items():
        options = {option.opts[0]: option for option in list_options(command)}
        if "--out" in options:
            says = re.search(r"resumed|replaced", str(options["--out"].help))
            assert says or "--overwrite" in options, path


def _choices(path: str, flag: str) -> tuple[str, ...]:
    [option] = [one for one in list_options(COMMANDS[f"litebert {path}"]) if one.opts[0] == flag]
    return tuple(option.type_descriptor.choices or ())


def test_choices_are_enumerated_as_the_library_has_them() -> None:
    assert _choices("corpus build", "--format") == ("auto", *FORMATS)
    assert _choices("tokenizer train", "--kind") == get_args(get_type_hints(VocabularyOptions)["kind"])
    assert _choices("tokenizer show", "--digit-comma") == get_args(DigitComma)
    assert sorted(_choices("study run", "--scale")) == sorted(SCALES)
    assert _choices("finetune", "--on-error") == ("fail", "skip", "fix")
    for names, incomplete in (
        (completion.list_recipes, "nan"),
        (completion.list_studies, "table-"),
        (completion.list_presets, "albert"),
        (completion.list_tasks, "sst"),
        (completion.list_hardware, "a100"),
    ):
        found = names(incomplete)
        assert found
        assert all(name.startswith(incomplete) for name in found)


PRINT_TABLES = {
    *("tokenizer show", "tokenizer info", "corpus stats", "models list", "models show", "recipes list", "recipes show"),
    *("recipes check", "recipes plan", "recipes batches", "finetune", "evaluate", "score", "doctor", "verify"),
    "distill",
    *("study list", "study show", "compare", "ensemble", "search query"),
}


def test_json_wherever_a_table_is_printed() -> None:
    have = {path.removeprefix("litebert ") for path, option in OPTIONS if option.opts == ["--json"]}
    assert have == PRINT_TABLES


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the examples name, as small as it can be."""
    desk = tmp_path_factory.mktemp("desk")
    (desk / "texts").mkdir()
    documents = ["\n".join(sentences) for sentences in invent_documents(60, seed=3)]
    (desk / "texts" / "all.txt").write_text("\n\n".join(documents), "utf-8")
    (desk / "books.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in documents), "utf-8")
    rows = invent_rows(lambda words: "good" if "cat" in words or "dog" in words else "bad", count=40)
    for name, some in (("reviews.csv", rows), ("more-reviews.csv", rows[:20])):
        table = "".join(f"{row['text']},{row['label']}\n" for row in some)
        (desk / name).write_text(f"text,label\n{table}", "utf-8")
    (desk / "more.txt").write_text("a small cat\nthe large house\n", "utf-8")
    (desk / "masked.txt").write_text("a small [MASK] near the house\n", "utf-8")
    (desk / "glue" / "SST-2").mkdir(parents=True)
    lines = "".join(f"{row['text']}\t{int(row['label'] == 'good')}\n" for row in rows)
    for split in ("train", "dev"):
        (desk / "glue" / "SST-2" / f"{split}.tsv").write_text(f"sentence\tlabel\n{lines}", "utf-8")
    articles = [
        {"title": str(number), "paragraphs": [{"context": "a small cat near the house", "qas": [_ask(number)]}]}
        for number in range(12)
    ]
    (desk / "squad.json").write_text(json.dumps({"version": "1.1", "data": articles}), "utf-8")
    (desk / "models").mkdir()
    shutil.copytree(ROOT / "docs" / "studies" / "table-1", desk / "runs" / "studies" / "table-1-paper")
    return desk


def _ask(number: int) -> dict[str, Any]:
    return {"id": str(number), "question": "which animal?", "answers": [{"text": "cat", "answer_start": 8}]}


@pytest.fixture
def at_desk(desk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The desk, with the files that earlier examples write."""
    monkeypatch.chdir(desk)
    if not (desk / "answers.jsonl").exists():
        small = {**SMALL_MODEL, "data.corpora": "corpora/en"}
        api.train_tokenizer("texts", "tokenizers/en", vocab_size=60)
        api.build_corpus("texts", "corpora/en", tokenizer="tokenizers/en", valid_share=0.3, processes=1)
        api.pretrain("nano", small, out="runs/nano")
        api.convert("runs/nano", "albert/albert-base-v2", to="huggingface")
        api.convert("runs/nano", "models/cpu-small-en")
        for name, is_new in (("reviews", False), ("reviews-scratch", True)):
            changes = {"train.steps": 2, "train.max_length": 16}
            out = f"runs/{name}"
            api.finetune("runs/nano", "classification", "reviews.csv", changes, out=out, from_scratch=is_new)
        api.finetune("runs/nano", "squad-v1", "squad.json", QUESTIONS, out="runs/squad")
        api.evaluate("runs/reviews", "more-reviews.csv", out="answers.jsonl")
    return desk


SMALL_MODEL = {
    "model": {"vocab_size": 60, "embedding_size": 8, "hidden_size": 16, "ffn_size": 16, "num_layers": 1},
    "train": {"steps": 2, "evaluate_every": 2, "evaluate_batches": 1, "save_every": 2},
    "batch.sequences": 4,
    "schedule.warmup_steps": 1,
}
QUESTIONS = {"train.steps": 2, "train.max_length": 48, "passage.max_question_length": 16}
# What makes an example quick: overrides of the model's size and the run's length, or a dry run
_SHORT_RUN = "model.vocab_size=60 train.steps=2 schedule.warmup_steps=1 batch.sequences=4"
QUICK = {
    "tokenizer train": "--vocab-size 60 --overwrite",
    "corpus build": "--valid-share 0.3",
    "recipes batches": "model.vocab_size=60",
    "recipes check nano": "model.vocab_size=60",
    "pretrain nano": f"{_SHORT_RUN} --out runs/another",
    "pretrain cpu-small": f"{_SHORT_RUN} model.num_layers=1 train.hours=0 --processes 1",
    "adapt": "train.steps=2",
    "finetune": "train.steps=2 train.max_length=16",
    "distill": "train.steps=2 train.max_length=16",
    "evaluate runs/nano": "--pairs 16",
    "evaluate runs/reviews --data more-reviews.csv --out": "--overwrite",
    "study run": "--dry-run --hardware a100-80g",
}


def _shorten(example: str) -> list[str]:
    """The words of an example after `litebert`, made quick."""
    words = shlex.split(example)[1:]
    extra = [quick for begins, quick in QUICK.items() if example.startswith(f"litebert {begins}")]
    return [*words, *(word for quick in extra for word in quick.split())]


@pytest.mark.parametrize("example", [line for _, line in EXAMPLE_LINES])
def test_an_example_runs_and_is_quiet(
    example: str,
    at_desk: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    called = []
    monkeypatch.setattr(api, "serve", lambda *_, **__: called.append("serve"))
    monkeypatch.setattr("litebert.demo.story.run_demo", lambda *_, **__: called.append("demo"))
    command, _, file = example.partition(" > ")
    code = _run(_shorten(command), debug=False)
    said = capfd.readouterr()
    assert code == 0, said.err
    assert called or said.out
    assert "\x1b" not in said.out + said.err  # no colours and no progress bars where nobody is looking
    assert not said.err.startswith(("error", "hint"))
    if file:
        (at_desk / file).write_text(said.out, "utf-8")


@pytest.mark.parametrize("path", sorted(PRINT_TABLES))
@pytest.mark.usefixtures("at_desk")
def test_json_is_all_that_json_prints(path: str, capfd: pytest.CaptureFixture[str]) -> None:
    example = next(line for other, line in EXAMPLE_LINES if other == f"litebert {path}").partition(" > ")[0]
    words = [word for word in _shorten(example) if word != "--json"]
    if "--overwrite" in {option.opts[0] for option in list_options(COMMANDS[f"litebert {path}"])}:
        words.append("--overwrite")
    assert _run([*words, "--json"], debug=False) == 0
    json.loads(capfd.readouterr().out)
