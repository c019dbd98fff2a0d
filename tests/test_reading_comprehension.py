"""SQuAD, RACE and own multiple choice through the whole path: files, windows, training, scores, result files."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.core.errors import ConfigError, DataError
from litebert.core.runtime import RuntimeOptions, choose_runtime
from litebert.data.groups import build_form
from litebert.finetune import Job, finetune
from litebert.finetune_recipe import build_finetune_recipe
from litebert.infer.answering import TaskModel, answer, choose
from litebert.model.config import ModelConfig
from litebert.model.model import build_model
from litebert.tasks.catalog import read_dataset, restore_task
from litebert.tasks.reading import ReadOptions
from litebert.tasks.squad.files import check_submission
from litebert.tasks.squad.reading import read_squad
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


def run(source: Path, task: str, data: Path, folder: Path, **train: Any) -> dict[str, Any]:
    options = {"batch_size": 8, "max_length": 40, "steps": 120, "evaluations": 2, **train}
    recipe = build_finetune_recipe(
        {
            "train": options,
            "optim": {"learning_rate": 3e-3},
            "model": {"dropout_rate": 0.0, "classifier_dropout_rate": 0.0},
        }
    )
    dataset = read_dataset(task, data, ReadOptions(dev=data))
    return finetune(Job(load_checkpoint(source), replace(dataset, task=small(dataset.task)), recipe), folder)


def open_model(folder: Path) -> TaskModel:
    checkpoint = load_checkpoint(folder / "model")
    tokenizer = checkpoint.load_tokenizer()
    return TaskModel(
        checkpoint.load_model(),
        tokenizer,
        restore_task(checkpoint.task, where="model"),
        build_form(tokenizer, max_length=40, num_segments=2),
        choose_runtime(RuntimeOptions()),
    )


def small(task: Any) -> Any:
    """The task with windows and questions that fit short sequences."""
    if hasattr(task, "stride"):
        return replace(task, stride=8, max_question_length=8)
    return replace(task, max_choice_length=16)


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
    assert check_submission(answers, questions, allows_none=has_unanswerable) == []
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
    found = answer(open_model(tmp_path / "run"), [(question.text, question.context) for question in questions])
    assert [one.text for one in found] == list(answers.values())
    assert all(q.context[one.start : one.end] == one.text for q, one in zip(questions, found, strict=True))
    with pytest.raises(ConfigError, match="not to choose"):
        choose(open_model(tmp_path / "run"), "the cat", "who", ["a", "b"])


def test_a_tiny_model_learns_32_multiple_choices_by_heart(tmp_path: Path, source: Path) -> None:
    data = write_choices(tmp_path / "choices.jsonl", 32)
    report = run(source, "choice", data, tmp_path / "run")
    assert report["dev"]["dev"]["scores"] == {"accuracy": 1.0}
    trained = open_model(tmp_path / "run")
    choice = choose(trained, "a cat sees it.", "_ is large", ["a river", "the tree", "the house"])
    assert (choice.number, choice.text) == (2, "the house")
    assert sum(choice.probabilities) == pytest.approx(1, abs=1e-5)
    with pytest.raises(DataError, match="nothing to choose"):
        choose(trained, "a cat sees it.", "who", ["the cat"])
    with pytest.raises(ConfigError, match="finds no answers in a text"):
        answer(trained, [("who", "a cat")])


def test_a_length_without_room_for_the_passage_is_refused(tmp_path: Path, source: Path) -> None:
    data = write_choices(tmp_path / "choices.jsonl", 4)
    with pytest.raises(ConfigError, match="max_length = 18 leaves no token for the passage"):
        run(source, "choice", data, tmp_path / "run", max_length=18)
