"""CLUE submissions have the files and codes that the leaderboard reads, and the check finds what it would not."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

from litebert.cli.main import _run
from litebert.core.errors import ConfigError, DataError
from litebert.tasks.catalog import task_facts
from litebert.tasks.files.clue import NLI, TNEWS
from litebert.tasks.finetuning import FinetuneTask
from litebert.tasks.kinds.choices import ChoiceExample, Choices
from litebert.tasks.kinds.classification import Classification
from litebert.tasks.kinds.token_tags import TokenTags
from litebert.tasks.leaderboard.clue_submission import (
    CLUE_SHEETS,
    IFLYTEK,
    ClueSheet,
    check_clue_sheet,
    check_clue_zip,
    fill_each_once,
    gather_clue,
)
from litebert.tasks.leaderboard.submission import write_archive
from litebert.tasks.predictions import Prediction, predictions_file, write_predictions
from litebert.tasks.report import write_report
from litebert.tasks.squad.task import SpanTask


def make_run(folder: Path, task: FinetuneTask, predictions: list[Prediction]) -> Path:
    facts = {"task": task.name, "metric": task.metric, "facts": task_facts(task, max_length=8)}
    write_report(folder, {**facts, "dev": {}, "test": {}})
    write_predictions(predictions_file(folder, "test"), predictions)
    return folder


def write_lines(file: Path, *rows: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


IDIOMS = [f"成语甲{n}" for n in range(10)]
TEXT = "\u3000iPhone 在浙商"


@pytest.fixture
def clue(tmp_path: Path) -> Path:
    """CLUE's folder with the test files of three tasks."""
    folder = tmp_path / "clue"
    write_lines(folder / "tnews" / "test.json", *({"id": n, "sentence": "a"} for n in range(3)))
    write_lines(folder / "chid" / "test.json", {"candidates": IDIOMS, "content": ["a#idiom000001#b#idiom000002#"]})
    write_lines(folder / "cluener" / "test.json", {"id": 0, "text": TEXT})
    return folder


def submit(runs: list[Path], file: Path, data: Path | None = None, **options: Any) -> dict[str, str]:
    write_archive(file, gather_clue(runs, data, **options))
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_labels_are_written_as_codes_in_the_order_of_the_test_file(tmp_path: Path, clue: Path) -> None:
    tnews = make_run(
        tmp_path / "tnews",
        Classification("tnews", tuple(TNEWS.values())),
        [Prediction(str(n), label, [1.0]) for n, label in enumerate(["news_game", "news_story", "news_car"])],
    )
    names = tuple(f"应用{n}" for n in range(119))
    iflytek = make_run(tmp_path / "iflytek", Classification("iflytek", names), [Prediction("7", "应用118", [1.0])])
    cmnli = make_run(tmp_path / "cmnli", Classification("cmnli", NLI), [Prediction("0", "neutral", [1.0])])
    files = submit([tnews, iflytek, cmnli], tmp_path / "s.zip")
    assert files == {
        "tnews11_predict.json": '{"id": 0, "label": "116"}\n{"id": 1, "label": "100"}\n{"id": 2, "label": "107"}\n',
        "iflytek_predict.json": '{"id": 7, "label": "118"}\n',
        "cmnli_predict.json": '{"id": 0, "label": "neutral"}\n',
    }
    # without the data, the rows of the official test sets are missing; with it, its own rows count
    assert check_clue_zip(tmp_path / "s.zip") == [
        "cmnli_predict.json: 1 rows, but the test set has 13,880",
        "iflytek_predict.json: 1 rows, but the test set has 2,600",
        "tnews11_predict.json: 3 rows, but the test set has 10,000",
    ]
    submit([tnews], tmp_path / "s.zip")
    assert check_clue_zip(tmp_path / "s.zip", clue) == []
    with refuses(ConfigError, "repeated-value"):
        gather_clue([tnews, tnews], None)


def test_codes_of_iflytek_need_all_of_its_labels(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Classification("iflytek", ("a", "b")), [Prediction("0", "a", [1.0])])
    with refuses(DataError, "bad-label"):
        gather_clue([run], None)


def test_names_of_cluener_are_places_in_the_text_as_it_was_given(tmp_path: Path, clue: Path) -> None:
    task = TokenTags("cluener", ("O", "B-game", "I-game", "B-company", "I-company"), "characters", "names")
    tags = ["B-game", *["I-game"] * 5, "O", "B-company", "I-company"]
    run = make_run(tmp_path / "run", task, [Prediction("0", tags, [])])
    [text] = submit([run], tmp_path / "s.zip", clue).values()
    names = {"game": {"iPhone": [[1, 6]]}, "company": {"浙商": [[9, 10]]}}
    assert json.loads(text) == {"id": 0, "text": TEXT, "label": names}
    assert check_clue_zip(tmp_path / "s.zip", clue) == []
    with refuses(ConfigError, "incomplete-options"):
        gather_clue([run], None)


def test_an_idiom_of_chid_fills_one_blank_of_a_group_the_likeliest_first(tmp_path: Path, clue: Path) -> None:
    outputs = [[0.5, 0.3, *[0.0] * 8], [0.9, 0.1, *[0.0] * 8]]
    answers = [Prediction(f"#idiom00000{n + 1}#", 0, output) for n, output in enumerate(outputs)]
    run = make_run(tmp_path / "run", Choices("chid"), answers)
    assert json.loads(submit([run], tmp_path / "s.zip", clue)["chid11_predict.json"]) == {
        "#idiom000001#": 0,
        "#idiom000002#": 0,
    }
    ranked = submit([run], tmp_path / "s.zip", clue, is_ranked=True)
    assert json.loads(ranked["chid11_predict.json"]) == {"#idiom000001#": 1, "#idiom000002#": 0}
    assert check_clue_zip(tmp_path / "s.zip", clue) == []


def test_more_blanks_than_idioms_use_some_of_them_again() -> None:
    examples = [ChoiceExample(str(n), "", "_", ("a", "b"), group="x") for n in range(3)]
    answers = [Prediction(str(n), 0, [0.6 + n / 10, 0.4 - n / 10]) for n in range(3)]
    assert [one.answer for one in fill_each_once(answers, examples)] == [1, 0, 0]


CLUENER = CLUE_SHEETS["cluener_predict.json"]


@pytest.mark.parametrize(
    ("text", "sheet", "problem"),
    [
        ('{"id": 0, "label": 1}', ClueSheet("csl", labels=("0", "1")), "line 1: 1 is not one of 0, 1"),
        ('{"id": 0, "label": true}', ClueSheet("c3", labels=(0, 1)), "line 1: true is not one of 0, 1"),
        ('{"id": 0, "label": "119"}', ClueSheet("iflytek", labels=IFLYTEK), 'line 1: "119" is not one of 0 to 118'),
        ('{"id": 0}', ClueSheet("csl"), "line 1: expected an object with 'id' and 'label'"),
        ("{", ClueSheet("csl"), "line 1 is not JSON"),
        ("[" * 100_000, ClueSheet("csl"), "line 1 is not JSON"),
        ("[" * 100_000, ClueSheet("chid"), "not JSON"),
        ('{"id": 0, "text": "ab", "label": {"name": {"b": 5}}}', CLUENER, "line 1: 'b' is not at 5"),
        ('{"id": 0, "label": "0"}\n' * 2, ClueSheet("csl", (2,), ("0",)), "two lines have the same id"),
        ('{"id": 0, "text": "a", "label": {"city": {}}}', CLUENER, "line 1: 'city' is not one of"),
        ('{"id": 0, "text": "ab", "label": {"name": {"b": [[0, 0]]}}}', CLUENER, "line 1: 'b' is not at [0, 0]"),
        ('{"#idiom1#": 10}', ClueSheet("chid", labels=tuple(range(10))), "the answer to '#idiom1#' is 10, not one of"),
        ('{"TRIAL_0_QUERY_0": 1}', ClueSheet("cmrc2018"), "the answer to 'TRIAL_0_QUERY_0' is 1, not text"),
        ("[]", ClueSheet("cmrc2018"), "expected one object"),
    ],
)
def test_the_check_names_what_is_wrong(text: str, sheet: ClueSheet, problem: str) -> None:
    [found] = check_clue_sheet(text, sheet)
    assert found.startswith(problem)


def test_the_check_compares_ids_with_the_test_file() -> None:
    rows = '{"id": 0, "label": "0"}\n{"id": 2, "label": "0"}\n'
    sheet = ClueSheet("csl", (3000,), ("0",))
    assert check_clue_sheet(rows, sheet, ["0", "1", "2"]) == [
        "line 2: id is '2', but the test file has '1' there",
        "2 rows, but the test set has 3",
    ]
    assert check_clue_sheet('{"a": "x", "c": "y"}', ClueSheet("cmrc2018"), ["a", "b"]) == [
        "1 questions have no answer, such as 'b'",
        "1 answers are to no question of the test file, such as 'c'",
    ]


def test_the_command_writes_a_zip_for_clue_and_answers_for_one_run_of_questions(
    tmp_path: Path, clue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = [Prediction(f"#idiom00000{n}#", 0, [1.0, *[0.0] * 9]) for n in (1, 2)]
    chid = make_run(tmp_path / "chid", Choices("chid"), answers)
    cmrc = make_run(tmp_path / "cmrc", SpanTask("cmrc2018"), [Prediction("TEST_0", "北京", {})])
    zipped, single = str(tmp_path / "a.zip"), str(tmp_path / "a.json")
    assert _run(["submission", str(chid), str(cmrc), "--rank", str(clue), "--out", zipped], debug=False) == 2
    assert _run(["submission", str(chid), str(cmrc), "--out", zipped], debug=False) == 0
    assert _run(["submission", "--check", zipped], debug=False) == 0
    assert _run(["submission", str(cmrc), "--out", single], debug=False) == 0
    assert json.loads(Path(single).read_text("utf-8")) == {"TEST_0": "北京"}
    capsys.readouterr()
    with zipfile.ZipFile(zipped, "a") as archive:
        archive.writestr("clue/csl_predict.json", "{}")
    assert _run(["submission", "--check", zipped], debug=False) == 1
    assert "clue/csl_predict.json is not a file of CLUE (files must be at the top level" in capsys.readouterr().out
