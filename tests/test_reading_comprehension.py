"""SQuAD, RACE and own multiple choice through the whole path: files, windows, training, scores, result files."""

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

import litebert
from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.cli.main import _run
from litebert.core.errors import ConfigError, DataError
from litebert.finetuning.finetune import Job, finetune
from litebert.finetuning.recipe import build_finetune_recipe
from litebert.model.config import ModelConfig
from litebert.model.model import build_model
from litebert.tasks.catalog import read_dataset, restore_task, with_passage
from litebert.tasks.ensemble import make_ensemble
from litebert.tasks.files.reading import PassageOptions, TableOptions
from litebert.tasks.kinds.choices import ChoiceExample, Choices
from litebert.tasks.leaderboard.answer_sheets import check_choices, check_spans
from litebert.tasks.predictions import Prediction, read_predictions, write_predictions
from litebert.tasks.squad.metrics import score_questions
from litebert.tasks.squad.reading import read_squad
from litebert.tasks.squad.task import SpanTask
from litebert.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: Tokenizer) -> Path:
    """A small model that has learned nothing."""
    config = ModelConfig(
        vocab_size=tiny_tokenizer.vocab_size,
        embedding_size=32,
        hidden_size=64,
        ffn_size=128,
        num_layers=2,
        num_heads=2,
        sharing="none",
        max_positions=96,
    )
    path = tmp_path_factory.mktemp("source") / "checkpoint"
    save_checkpoint(path, build_model(config, ["mlm"], seed=1), tiny_tokenizer, CheckpointContent(step=0))
    return path


def write_squad(path: Path, num_questions: int, *, has_unanswerable: bool) -> Path:
    """Where an animal is, in paragraphs of which some need several windows; every second question may ask who it is."""
    rng = random.Random(0)
    paragraphs = []
    for number in range(num_questions):
        filler = ["a large bird leaves." for _ in range(rng.choice([0, 1, 1, 5]))]
        answer = f"the {rng.choice(['old', 'new'])} {rng.choice(['house', 'tree', 'river'])}"
        sentences = [f"the {rng.choice(['cat', 'dog'])} finds {answer}.", *filler]
        rng.shuffle(sentences)
        context = " ".join(sentences)
        is_impossible = has_unanswerable and number % 2 == 1
        question = {
            "id": str(number),
            "question": "who likes it" if is_impossible else "below or near",
            "answers": [] if is_impossible else [{"text": answer, "answer_start": context.index(answer)}],
            "is_impossible": is_impossible,
        }
        paragraphs.append({"context": context, "qas": [question]})
    path.write_text(json.dumps({"version": "x", "data": [{"title": "t", "paragraphs": paragraphs}]}), "utf-8")
    return path


def write_choices(path: Path, num_questions: int) -> Path:
    """Two, three or four choices, of which it is always the house."""
    rng = random.Random(1)
    rows = []
    for _ in range(num_questions):
        others = rng.sample(["a cat", "the dog", "a bird", "the tree", "a river"], rng.randint(1, 3))
        choices = rng.sample([*others, "the house"], len(others) + 1)
        row = {"context": f"{rng.choice(others)} sees it.", "question": "_ is large", "choices": choices}
        rows.append({**row, "label": choices.index("the house")})
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
    return path


def run(source: Path, task: str, data: Path, folder: Path, *, seed: int = 1, **train: Any) -> dict[str, Any]:
    options = {"batch_size": 8, "max_length": 40, "steps": 120, "evaluations": 2, **train}
    recipe = build_finetune_recipe(
        {
            "train": options,
            "passage": SHORT[task[:5]],
            "seed": seed,
            "optim": {"learning_rate": 3e-3},
            "model": {"dropout_rate": 0.0, "classifier_dropout_rate": 0.0},
        }
    )
    dataset = read_dataset(task, data, TableOptions(dev=data))
    return finetune(Job(load_checkpoint(source), dataset, recipe), folder)


SHORT = {"squad": {"stride": 8, "max_question_length": 8}, "choic": {"max_choice_length": 16}}


@pytest.mark.parametrize(
    ("task", "has_unanswerable"), [("squad-v1", False), ("squad-v2", True), ("squad-v2-simple", True)]
)
def test_a_tiny_model_learns_32_questions_by_heart(
    tmp_path: Path, source: Path, task: str, has_unanswerable: bool
) -> None:
    data = write_squad(tmp_path / "squad.json", 32, has_unanswerable=has_unanswerable)
    report = run(source, task, data, tmp_path / "run")
    scores = report["dev"]["dev"]["scores"]
    assert scores["exact"] == scores["f1"] == 1.0
    assert not report["dev"]["dev"]["is_at_chance"]

    answers = json.loads((tmp_path / "run" / "predictions.json").read_text("utf-8"))
    questions = read_squad(data)
    assert check_spans(answers, questions, allows_none=has_unanswerable) == ([], [])
    assert answers == {question.id: question.label[0] for question in questions}  # type: ignore[index]
    nbest = json.loads((tmp_path / "run" / "nbest_predictions.json").read_text("utf-8"))
    for question in questions:
        for span in nbest[question.id]:
            assert question.context[span["start"] : span["end"]] == span["text"]
        assert sum(span["probability"] for span in nbest[question.id]) == pytest.approx(1, abs=1e-4)
    model = load_checkpoint(tmp_path / "run" / "model")
    restored = restore_task(model.task, where="model")
    if has_unanswerable:
        odds = json.loads((tmp_path / "run" / "null_odds.json").read_text("utf-8"))
        assert restored.threshold is not None  # type: ignore[attr-defined]
        for question in questions:
            assert (odds[question.id] > restored.threshold) == (not question.has_answer)  # type: ignore[attr-defined]
    predictor = litebert.load(tmp_path / "run")
    found = predictor.answer_batch([(question.text, question.context) for question in questions])
    assert predictor.answer(questions[0].text, questions[0].context).text == found[0].text
    assert [one.text for one in found] == list(answers.values())
    assert all(q.context[one.start : one.end] == one.text for q, one in zip(questions, found, strict=True))
    with refuses(ConfigError, "wrong-task"):
        predictor.choose("the cat", "who", ["a", "b"])
    with refuses(DataError, "wrong-input"):
        predictor.answer("who", " ")
    for pair in (None, "the cat"), ("who", None), ("who", ["the cat"]):
        with refuses(ConfigError, "wrong-input"):
            predictor.answer(*pair)  # type: ignore[arg-type]


def test_a_tiny_model_learns_32_multiple_choices_by_heart(tmp_path: Path, source: Path) -> None:
    data = write_choices(tmp_path / "choices.jsonl", 32)
    report = run(source, "choice", data, tmp_path / "run")
    assert report["dev"]["dev"]["scores"] == {"accuracy": 1.0}
    predictor = litebert.load(tmp_path / "run")
    choice = predictor.choose("a cat sees it.", "_ is large", ["a river", "the tree", "the house"])
    assert (choice.number, choice.text) == (2, "the house")
    assert sum(choice.probabilities) == pytest.approx(1, abs=1e-5)
    with refuses(DataError, "wrong-input"):
        predictor.choose("a cat sees it.", "who", ["the cat"])
    for asked in ("a cat", "who", [1, 2]), (None, "who", ["a", "b"]), ("a cat", None, ["a", "b"]), ("a", "who", None):
        with refuses(ConfigError, "wrong-input"):
            predictor.choose(*asked)  # type: ignore[arg-type]
    with refuses(ConfigError, "wrong-task"):
        predictor.answer("who", "a cat")


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory, source: Path) -> Path:
    """Two short runs for SQuAD 2.0 that have seen too little to be good."""
    folder = tmp_path_factory.mktemp("answered")
    data = write_squad(folder / "squad.json", 16, has_unanswerable=True)
    for seed in (1, 2):
        run(source, "squad-v2", data, folder / f"run{seed}", steps=8, evaluations=1, seed=seed)
    return folder


def litebert_says(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """The exit code of a command and what it prints."""
    capsys.readouterr()
    code = _run(list(words), debug=False)
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def test_an_ensemble_tunes_its_own_threshold(answered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = answered / "squad.json", answered / "ensemble"
    dataset = read_dataset("squad-v2", data, TableOptions(dev=data))
    report = make_ensemble([answered / "run1", answered / "run2"], dataset, out, selects=False)
    questions = read_squad(data)
    answers = json.loads((out / "predictions.json").read_text("utf-8"))
    scores = score_questions([answers[question.id] for question in questions], questions, "2.0")
    reached = report["dev"]["dev"]["scores"]
    assert reached["f1"] == pytest.approx(sum(score.f1 for score in scores) / len(scores))
    assert reached["f1"] == reached["best_f1"]
    assert report["values"]["job"]["num_train"] == len(dataset.train)  # tells whether dev was held out of a file
    odds = json.loads((out / "null_odds.json").read_text("utf-8"))
    single = [json.loads((answered / f"run{n}" / "null_odds.json").read_text("utf-8")) for n in (1, 2)]
    assert odds == pytest.approx({id_: (single[0][id_] + single[1][id_]) / 2 for id_ in odds}, rel=1e-5)

    sheet = answered / "sheet.json"
    words = ["submission", str(out), "--split", "dev", "--out", str(sheet), "--task", "squad-v2", "--data", str(data)]
    assert litebert_says(capsys, *words) == (0, f"{sheet}: complete\n")
    assert json.loads(sheet.read_text("utf-8")) == answers


def test_an_answer_sheet_with_problems_is_not_called_complete(
    answered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = answered / "bad.json"
    questions = read_squad(answered / "squad.json")
    answers = {question.id: "" for question in questions[3:]} | {"0": 7, "1": "a pig", "other": ""}
    sheet.write_text(json.dumps(answers), "utf-8")
    words = ["submission", "--check", str(sheet), "--task", "squad-v2", "--data", str(answered / "squad.json")]
    code, printed = litebert_says(capsys, *words)
    assert (code, printed.splitlines()) == (
        1,
        [
            "no answer for question '2'",
            "the answer to '0' is 7, not text",
            "warning: no question has the id 'other'; its answer is ignored",
            "warning: the answer to '1', 'a pig', does not occur in its paragraph; it is scored anyway",
            f"{sheet}: 2 problems and 2 warnings",
        ],
    )
    assert "is empty" in check_spans({"1": ""}, questions[1:2], allows_none=False).warnings[0]
    examples = [ChoiceExample(str(n), "", "", ("x", "y")) for n in range(4)]
    assert check_choices({"0": "A", "1": 1, "2": "C", "3": 2}, examples).problems == [
        "the answer to '2' is \"C\", which is not one of its choices",
        "the answer to '3' is 2, which is not one of its choices",
    ]


def test_questions_are_evaluated_and_answered_from_files(
    answered: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model = answered / "squad.json", str(answered / "run1")
    code, printed = litebert_says(capsys, "evaluate", model, "--task", "squad-v2", "--data", str(data), "--json")
    assert code == 0
    report = json.loads((answered / "run1" / "report.json").read_text("utf-8"))
    facts, _ = json.JSONDecoder().raw_decode(printed[printed.index("{") :])
    assert facts["scores"] == pytest.approx(report["dev"]["dev"]["scores"], abs=1e-5)
    assert (facts["split"], facts["num_trained_on"], facts["num_examples"]) == ("all", 16, 16)

    code, printed = litebert_says(capsys, "predict", model, str(data))
    records = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    expected = json.loads((answered / "run1" / "predictions.json").read_text("utf-8"))
    assert code == 0
    assert {record["id"]: record["answer"] for record in records} == expected
    first = read_squad(data)[0]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{first.text}\t{first.context}\n".encode())))
    code, printed = litebert_says(capsys, "predict", model)
    assert json.loads(next(line for line in printed.splitlines() if line.startswith("{")))["answer"] == expected["0"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"who\n")))
    code, printed = litebert_says(capsys, "predict", model)
    assert (code, "standard input:1: expected a question, a tab" in printed) == (2, True)


def test_answers_with_odd_line_ends_survive_their_file(tmp_path: Path) -> None:
    odd = [Prediction("1", "a\u2028b\x85c", {"spans": []}, ["x"])]
    write_predictions(tmp_path / "dev.jsonl", odd)
    assert read_predictions(tmp_path / "dev.jsonl") == odd


def test_a_length_without_room_for_the_passage_is_refused(tmp_path: Path, source: Path) -> None:
    data = write_choices(tmp_path / "choices.jsonl", 4)
    with refuses(ConfigError, "text-too-long"):
        run(source, "choice", data, tmp_path / "run", max_length=18)


def test_a_length_that_a_task_does_not_read_is_refused() -> None:
    with refuses(ConfigError, "conflicting-keys", at="passage.stride"):
        with_passage(Choices("choice"), PassageOptions(stride=5))
    assert with_passage(Choices("choice"), PassageOptions(max_choice_length=5)) == Choices("choice", 5)
    assert with_passage(SpanTask("x"), PassageOptions(num_best=3)) == SpanTask("x", num_best=3)
