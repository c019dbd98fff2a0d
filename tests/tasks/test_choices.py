"""Multiple choice: RACE's files and anybody's, blanks filled in, what is cut, and choices that stay together."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refuses

from litebert.core.errors import DataError
from litebert.model.config import ModelConfig
from litebert.model.model import Model, build_model
from litebert.tasks.files.choice_files import race_reader, read_choice_dataset, read_choices, read_race
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.group_batch import build_group_batch, cut_micro_batches
from litebert.tasks.groups import SequenceForm
from litebert.tasks.kinds.choices import ChoiceExample, Choices, fill_in
from litebert.text.tokenizer import Tokenizer

FORM = SequenceForm(cls_id=2, sep_id=3, pad_id=0, max_length=32)


def test_the_real_tree_has_its_questions(real_data: Path) -> None:
    dataset = race_reader()(real_data / "race", TableOptions())
    examples = [*dataset.train, *dataset.dev["dev"], *dataset.test["test"]]
    assert len(examples) == 61
    assert len({example.id for example in examples}) == 61
    assert {example.level for example in examples} == {"middle", "high"}
    assert all(len(example.choices) == 4 and example.label in range(4) for example in examples)
    middle = race_reader(("middle",))(real_data / "race" / "RACE", TableOptions())
    assert [e for e in examples if e.level == "middle"] == [*middle.train, *middle.dev["dev"], *middle.test["test"]]


@pytest.mark.parametrize(
    ("question", "choice", "sentence"),
    [
        ("The cat is _ .", "old", "The cat is old ."),
        ("_ or _?", "x", "x or x?"),
        ("Why?", "Because.", "Why? Because."),
        ("", "Because.", "Because."),
    ],
)
def test_a_choice_fills_the_blanks_or_follows_the_question(question: str, choice: str, sentence: str) -> None:
    assert fill_in(question, choice) == sentence


def test_the_passage_loses_its_end_and_the_question_its_beginning(tiny_tokenizer: Tokenizer) -> None:
    example = ChoiceExample("1", "the cat sees a dog " * 9, "old house near the river and", ("a tree", "the bird"), 1)
    [group] = Choices("x", max_choice_length=4).encode([example], tiny_tokenizer, FORM)
    passage = tiny_tokenizer.encode(example.context)
    for sequence, sentence in zip(group.sequences, example.sentences, strict=True):
        side = tiny_tokenizer.encode(sentence)[-4:]
        assert sequence.token_ids.tolist() == [2, *passage[: 32 - 3 - 4], 3, *side, 3]
        assert sequence.num_first == 32 - 4 - 1
    assert group.target == 1


def build_examples() -> list[ChoiceExample]:
    choices = ("a dog", "the bird", "an old house", "the river", "a small tree")
    return [
        ChoiceExample(str(n), "the cat sees a dog. " * (n % 3 + 1), "it is _", choices[: 2 + n % 4], n % 2)
        for n in range(8)
    ]


@pytest.fixture(scope="module")
def model(tiny_tokenizer: Tokenizer) -> Model:
    config = ModelConfig(
        vocab_size=tiny_tokenizer.vocab_size, embedding_size=8, hidden_size=16, ffn_size=32, num_layers=2, num_heads=2
    )
    return build_model(config, ["choice"], seed=3).eval()


def test_other_questions_in_the_batch_change_no_answer(model: Model, tiny_tokenizer: Tokenizer) -> None:
    task, examples = Choices("x", max_choice_length=12), build_examples()
    groups = task.encode(examples, tiny_tokenizer, FORM)
    with torch.inference_mode():
        together = task.predict(model, build_group_batch(groups, 0), groups)
        alone = [task.predict(model, build_group_batch([group], 0), [group])[0] for group in groups]
    for example, one, other in zip(examples, together, alone, strict=True):
        assert len(one) == len(example.choices)
        assert sum(one) == pytest.approx(1, abs=1e-5)
        assert one == pytest.approx(other, abs=1e-5)


def test_parts_of_a_batch_add_up_to_its_loss(model: Model, tiny_tokenizer: Tokenizer) -> None:
    task = Choices("x", max_choice_length=12)
    groups = task.encode(build_examples(), tiny_tokenizer, FORM)
    whole = build_group_batch(groups, 0)
    totals = task.count(whole)
    parts = cut_micro_batches(groups, 5, 0)
    assert len(parts) > 2
    with torch.inference_mode():
        expected = float(task.loss(model, whole, totals).loss)
        summed = sum(float(task.loss(model, part, totals).loss) for part in parts)
    assert summed == pytest.approx(expected, rel=1e-5)


def test_levels_are_also_scored_separately() -> None:
    examples = [ChoiceExample(str(n), "", "", ("a", "b"), 0, "high" if n else "middle") for n in range(3)]
    outputs = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]
    scores = Choices("race").score(outputs, examples)
    assert scores == {"accuracy": pytest.approx(2 / 3), "accuracy_middle": 1.0, "accuracy_high": 0.5}
    assert Choices("race", has_letters=True).decide([0.1, 0.7, 0.2]) == "B"
    assert Choices("race").decide([0.1, 0.7, 0.2]) == 1
    assert Choices("race").combine([[0.5, 0.5], [0.0, 1.0]]) == [0.25, 0.75]
    assert Choices("race").wrongness(outputs[1], examples[1]) > 0 == Choices("race").wrongness(outputs[0], examples[0])


def article(**changes: Any) -> dict[str, Any]:
    whole = {"article": "A cat.", "questions": ["Who?"], "options": [["x", "y"]], "answers": ["B"], "id": "high1.txt"}
    return {name: value for name, value in {**whole, **changes}.items() if value is not ...}


def write_race(folder: Path, *articles: Any) -> Path:
    (folder / "high").mkdir(parents=True)
    for number, value in enumerate(articles, start=8):
        (folder / "high" / f"{number}.txt").write_text(json.dumps(value), "utf-8")
    return folder


def test_articles_come_by_number_and_one_file_says_the_same(tmp_path: Path) -> None:
    articles = [article(id=f"high{n}.txt") for n in (8, 9, 10)]
    apart = read_race(write_race(tmp_path / "apart", *articles), ["high"])
    (tmp_path / "one" / "high").mkdir(parents=True)
    (tmp_path / "one" / "high" / "all.txt").write_text("\n".join(map(json.dumps, articles)), "utf-8")
    together = read_race(tmp_path / "one", ["high"])
    assert [e.id for e in apart] == [e.id for e in together] == ["high8.txt-0", "high9.txt-0", "high10.txt-0"]
    assert apart[0].label == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (article(answers=["E"]), 'question 1: its answer: "E" is not one of the choices; give a number from 0 to 1'),
        (article(answers=[]), "'answers' must be a list of 1"),
        (article(options=[]), "lists of the same length"),
        (article(options=[["x"]]), "question 1: expected a question text and two or more options"),
        (article(article=...), "expected an object with 'article'"),
        (article(article="half a face \ud83d"), "not JSON ('utf-8' codec can't encode"),
        ("nothing", "is this RACE?"),
    ],
)
def test_a_wrong_article_is_refused_with_its_file(tmp_path: Path, wrong: Any, message: str) -> None:
    with pytest.raises(DataError) as error:
        read_race(write_race(tmp_path / "dev", article(), wrong), ["high"])
    assert message in str(error.value)
    assert "9.txt" in str(error.value)


def test_a_folder_that_is_not_races_tree_is_refused(tmp_path: Path) -> None:
    with refuses(DataError, "missing-folder"):
        race_reader()(tmp_path, TableOptions())
    with refuses(DataError, "missing-folder"):
        read_race(write_race(tmp_path / "dev", article()))


def test_a_test_split_may_lack_answers(tmp_path: Path) -> None:
    [example] = read_race(write_race(tmp_path / "test", article(answers=...)), ["high"])
    assert example.label is None


def write_rows(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return path


@pytest.mark.parametrize("label", [1, "B", "dog"])
def test_a_label_is_a_number_a_letter_or_the_choice(tmp_path: Path, label: Any) -> None:
    row = {"passage": "A dog.", "query": "Who?", "options": ["cat", "dog", "bird"], "answer": label}
    [example] = read_choices(write_rows(tmp_path / "x.jsonl", row), TableOptions(), has_labels=True)
    assert (example.label, example.context, example.question) == (1, "A dog.", "Who?")


def test_an_answer_of_race_is_a_letter_whatever_the_options_say(tmp_path: Path) -> None:
    options = ["B", "C", "D", "A"]
    [example] = read_race(write_race(tmp_path / "dev", article(options=[options], answers=["A"])), ["high"])
    assert example.label == 0


def test_a_label_that_is_one_choices_letter_and_anothers_text_is_refused(tmp_path: Path) -> None:
    row = {"question": "Which?", "choices": ["B", "C", "A"], "label": "A"}
    file = write_rows(tmp_path / "x.jsonl", {**row, "choices": ["A", "B"]}, row)
    with refuses(DataError, "ambiguous-label", at="x.jsonl:2"):
        read_choices(file, TableOptions(), has_labels=True)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "Who?", "choices": ["a"], "label": 0}, "x.jsonl:1: no choices found"),
        ({"question": "Who?", "choices": ["a", "b"], "label": 2}, "label: 2 is not one of the choices"),
        ({"question": "Who?", "choices": ["a", "b"], "label": "C"}, '"C" is not one of the choices'),
        ({"question": "Who?", "choices": ["a", "b"], "label": True}, "true is not one of the choices"),
        ({"question": " ", "choices": ["a", "b"], "label": 0}, "no passage"),
        ({"question": "Who?", "choices": ["a", "b"]}, "cannot tell which field is the label"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line(tmp_path: Path, row: Any, message: str) -> None:
    with pytest.raises(DataError) as error:
        read_choices(write_rows(tmp_path / "x.jsonl", row), TableOptions(), has_labels=True)
    assert message in str(error.value)


def test_held_out_questions_take_their_passage_along(tmp_path: Path) -> None:
    rows = [{"context": f"Passage {n // 3}.", "question": "?", "choices": ["a", "b"], "label": 0} for n in range(30)]
    dataset = read_choice_dataset(write_rows(tmp_path / "x.jsonl", *rows), TableOptions(dev_share=0.2))
    assert len(dataset.dev["dev"]) == 6
    assert not {e.context for e in dataset.train} & {e.context for e in dataset.dev["dev"]}
    assert any("by passage" in note for note in dataset.notes)
    chance = dataset.task.chance(dataset.dev["dev"])
    assert chance.score == 0.5
    assert np.isfinite(chance.margin)


QUESTION = {"context": "A cat sat.", "question": "Who?", "choices": ["a dog", "a cat"]}


@pytest.mark.parametrize(
    ("rows", "label"),
    [
        ([QUESTION | {"label": 1}, QUESTION | {"label": "A"}], [1, 0]),
        ([QUESTION, QUESTION], [None, None]),
        ([QUESTION | {"label": -1}, QUESTION | {"label": None}], [None, None]),
    ],
    ids=["labelled", "no field", "not told"],
)
@pytest.mark.parametrize("named", [None, "label"])
def test_a_test_file_of_choices_is_scored_if_it_has_labels(
    rows: list[Any], label: list[int | None], named: str | None, tmp_path: Path
) -> None:
    train = write_rows(tmp_path / "train.jsonl", QUESTION | {"label": 1}, QUESTION | {"label": 0})
    test = write_rows(tmp_path / "test.jsonl", *rows)
    dataset = read_choice_dataset(train, TableOptions(dev=train, test=test, label=named))
    assert [example.label for example in dataset.test["test"]] == label
    told = "fields of test.jsonl: passage = 'context', question = 'question', no label"
    assert (told in dataset.notes) == (label[0] is None)
    assert dataset.notes[0] == "fields of train.jsonl: passage = 'context', question = 'question', label = 'label'"


def test_a_missing_label_among_labelled_test_questions_is_reported_with_its_line(tmp_path: Path) -> None:
    train = write_rows(tmp_path / "train.jsonl", QUESTION | {"label": 1}, QUESTION | {"label": 0})
    test = write_rows(tmp_path / "test.jsonl", QUESTION | {"label": 1}, QUESTION)
    dataset = read_choice_dataset(train, TableOptions(dev=train, test=test))
    assert [example.label for example in dataset.test["test"]] == [None, None]
    assert (
        f"the test file is predicted but not scored: its labels are unusable ({test}:2 has no label)" in dataset.notes
    )


def test_a_named_field_has_no_other_role(tmp_path: Path) -> None:
    row = {"question": "Who sat?", "answer": "a cat", "choices": ["a dog", "a cat"]}
    [example] = read_choices(write_rows(tmp_path / "x.jsonl", row), TableOptions(text="question"), has_labels=True)
    assert (example.context, example.question, example.label) == ("Who sat?", "", 1)


def test_a_named_field_that_is_not_there_is_refused_with_file_and_option(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "x.jsonl", QUESTION | {"label": 1})
    for option, options in {
        "label": TableOptions(label="lab"),
        "text": TableOptions(text="lab"),
        "text_b": TableOptions(text_b="lab"),
    }.items():
        with pytest.raises(DataError) as error:
            read_choices(file, options, has_labels=True)
        assert "x.jsonl: no field 'lab'; it has context, question, choices, label" in str(error.value)
        assert error.value.option == option
