"""`litebert submission` says "complete" of what it has checked, and writes nothing before it has read its words."""

import json
from pathlib import Path

import pytest

from litebert.cli.main import _run
from litebert.tasks.catalog import read_dataset, task_facts
from litebert.tasks.finetuning import FinetuneTask
from litebert.tasks.kinds.choices import Choices
from litebert.tasks.kinds.classification import Classification
from litebert.tasks.predictions import Prediction, predictions_file, write_predictions
from litebert.tasks.report import write_report
from litebert.tasks.squad.task import SpanTask


def submit(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    """The exit code, and what is printed, errors too."""
    capsys.readouterr()
    code = _run(["submission", *map(str, words), "--overwrite"], debug=False)
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def make_run(folder: Path, task: FinetuneTask, predictions: list[Prediction]) -> Path:
    facts = {"task": task.name, "metric": task.metric, "facts": task_facts(task, max_length=8)}
    write_report(folder, {**facts, "dev": {}, "test": {}})
    write_predictions(predictions_file(folder, "test"), predictions)
    return folder


@pytest.fixture
def race(tmp_path: Path) -> Path:
    """A tree of RACE with two questions in every split."""
    article = {"article": "A cat.", "questions": ["Who?", "What?"], "options": [["x", "y"]] * 2, "answers": ["A", "B"]}
    for split in ("train", "dev", "test"):
        for level in ("middle", "high"):
            (tmp_path / "RACE" / split / level).mkdir(parents=True)
            (tmp_path / "RACE" / split / level / "1.txt").write_text(json.dumps(article))
    return tmp_path / "RACE"


def test_answers_are_complete_only_if_they_were_compared_with_the_questions(
    race: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task, out = Choices("race", has_letters=True), tmp_path / "answers.json"
    answers = [Prediction(one.id, "A", [0.9, 0.1]) for one in read_dataset("race", race).test["test"]]
    words = ["--out", out, "--task", "race", "--data", race]
    cut, whole = (make_run(tmp_path / str(count), task, answers[:count]) for count in (1, 4))
    code, printed = submit(capsys, cut, "--out", out)
    assert (code, printed.startswith(f"{out}: written, not checked; add --task and --data")) == (0, True)
    code, printed = submit(capsys, cut, *words)
    assert (code, printed.splitlines()[-1]) == (1, f"{out}: written, with 3 problems")
    assert submit(capsys, whole, *words) == (0, f"{out}: complete\n")


def write_questions(path: Path, count: int) -> Path:
    """SQuAD's JSON: as many articles of one question each, which is about a cat."""
    asked = [{"id": str(n), "question": "who", "answers": [{"text": "cat", "answer_start": 4}]} for n in range(count)]
    articles = [{"paragraphs": [{"context": "the cat sees", "qas": [question]}]} for question in asked]
    path.write_text(json.dumps({"data": articles}))
    return path


def test_problems_of_a_submission_set_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, data = tmp_path / "answers.json", write_questions(tmp_path / "squad.json", 30)
    run = make_run(tmp_path / "run", SpanTask("squad-v1"), [Prediction(str(n), "cat", None) for n in range(2)])
    words = ["--task", "squad-v1", "--data", data]
    code, written = submit(capsys, run, "--out", out, *words)
    assert (code, written.splitlines()[-1]) == (1, f"{out}: written, with 28 problems")
    code, checked = submit(capsys, "--check", out, *words)
    assert (code, checked.splitlines()[-1]) == (1, f"{out}: 28 problems")
    listed = checked.splitlines()[:-1]
    assert listed == written.splitlines()[:-1]
    assert (len(listed), listed[0], listed[-1]) == (13, "no answer for question '2'", "... and 16 more")


def test_what_the_official_script_takes_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, data = tmp_path / "answers.json", write_questions(tmp_path / "squad.json", 3)
    out.write_text(json.dumps({"0": "cat", "1": "dog", "2": "", "3": "cat"}))
    code, printed = submit(capsys, "--check", out, "--task", "squad-v1", "--data", data)
    assert (code, printed.splitlines()) == (
        0,
        [
            "warning: no question has the id '3'; its answer is ignored",
            "warning: the answer to '1', 'dog', does not occur in its paragraph; it is scored anyway",
            "warning: the answer to '2' is empty; every SQuAD 1.1 question has an answer, so it counts as wrong",
            f"{out}: complete, with 3 warnings",
        ],
    )


def test_answers_to_questions_that_were_held_out_of_a_file_are_compared_with_those(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = write_questions(tmp_path / "squad.json", 20), tmp_path / "answers.json"
    dataset = read_dataset("squad-v1", data)
    held = [Prediction(question.id, "cat", None) for question in dataset.dev["dev"]]
    assert 0 < len(held) < 20
    words = ["--split", "dev", "--out", out, "--task", "squad-v1", "--data", data]
    for count, last in ((len(held), f"{out}: complete"), (len(held) - 1, f"{out}: written, with 19 problems")):
        run = tmp_path / f"run{count}"
        report = {"task": "squad-v1", "metric": "f1", "facts": task_facts(SpanTask("squad-v1"), max_length=8)}
        report |= {"dev": {}, "test": {}}
        write_report(run, report | {"values": {"job": {"num_train": len(dataset.train)}}})
        write_predictions(predictions_file(run, "dev"), held[:count])
        assert submit(capsys, run, *words)[1].splitlines()[-1] == last
    told = submit(capsys, tmp_path / f"run{len(held)}", *words)[1].splitlines()[0]
    assert told == f"{data}: {len(held)} of its 20 questions were held out for dev; only these are checked"


def test_a_run_that_nobody_collects_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", Classification("classification", ("a", "b")), [Prediction("0", "a", [0.9, 0.1])])
    code, printed = submit(capsys, run, "--out", tmp_path / "x.json")
    assert (code, "task classification, without a submission format" in printed) == (2, True)
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--task", "squad-v1", "--data", "FOLDER/squad.json"], "SQuAD 1.1 does not allow"),
        (["--task", "squad-v2", "--data", "FOLDER/none.json"], "no such file"),
        (["--task", "squad-v2"], "task and data go together"),
        (["--data", "FOLDER/squad.json"], "task and data go together"),
        (["--task", "sst-2", "--data", "FOLDER/glue"], "has no answer file"),
        (["--rank", "FOLDER"], "rank is only for WNLI and QNLI: leave it out (--rank)"),
        (["--split", "dev"], "no such file"),
    ],
)
def test_nothing_is_written_before_all_words_are_understood(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = {"id": "1", "question": "who", "answers": [], "is_impossible": True}
    paragraph = {"context": "the cat sees", "qas": [question]}
    (tmp_path / "squad.json").write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))
    (tmp_path / "glue").mkdir()
    (tmp_path / "glue" / "dev.tsv").write_text("sentence\tlabel\nfine\t1\n")
    run = make_run(tmp_path / "run", SpanTask("squad-v2", "2.0"), [Prediction("1", "", None)])
    out = tmp_path / "answers.json"
    code, printed = submit(capsys, run, "--out", out, *(word.replace("FOLDER", str(tmp_path)) for word in words))
    assert code == 2
    assert message in printed
    assert not out.exists()
    right = ["--task", "squad-v2", "--data", tmp_path / "squad.json"]
    assert submit(capsys, run, "--out", out, *right) == (0, f"{out}: complete\n")


def test_a_folder_is_no_file_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", Classification("rte", ("entailment", "not_entailment")), [])
    for word in ("--out", "--check"):
        code, printed = submit(capsys, *([run] if word == "--out" else []), word, tmp_path)
        usual = tmp_path / "submission.zip"
        assert (code, printed) == (
            2,
            f"error[is-a-folder]: {tmp_path} is a folder; name a file, such as {usual} ({word})\n",
        )
    code, printed = submit(capsys, run, "--out", tmp_path / "x.zip", "--task", "rte", "--data", tmp_path)
    assert (code, "GLUE does not need them" in printed) == (2, True)
