"""SQuAD files are read whole or refused with the place and the remedy."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refuses

from litebert.core.errors import DataError
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.misplaced import Misplaced
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.squad.reading import Question, check_answers, read_squad, split_articles


def squad_file(folder: Path, *qas: Any, context: str = "A cat sat.", **changes: Any) -> Path:
    content = {"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": list(qas)}]}]}
    path = folder / "squad.json"
    path.write_text(json.dumps({**content, **changes}), "utf-8")
    return path


def question(**changes: Any) -> dict[str, Any]:
    whole = {"id": "1", "question": "Who?", "answers": [{"text": "cat", "answer_start": 2}]}
    return {name: value for name, value in {**whole, **changes}.items() if value is not ...}


def test_the_real_files_have_their_true_numbers_of_questions(real_data: Path) -> None:
    numbers = {
        "dev-v1.1": (10_570, 10_570, 34_726),
        "dev-v2.0.cs224n-half": (6_078, 6_078 - 3_168, 10_052),
        "xquad.en": (1_190, 1_190, 1_190),
    }
    for name, expected in numbers.items():
        questions = read_squad(real_data / "squad" / f"{name}.json")
        answers = [len(question.answers or ()) for question in questions]
        assert (len(questions), sum(map(bool, answers)), sum(answers)) == expected


def test_an_answer_stands_where_the_file_says(tmp_path: Path) -> None:
    [read] = read_squad(squad_file(tmp_path, question()))
    assert read.answers is not None
    assert read.context[read.answers[0].start : read.answers[0].end] == read.answers[0].text == "cat"
    assert read.label == ["cat"]


def test_a_files_own_facts_about_answers_are_kept(tmp_path: Path) -> None:
    unknown, impossible, also_impossible = read_squad(
        squad_file(
            tmp_path,
            question(answers=...),
            question(id="2", answers=[], is_impossible=True),
            question(id="3", answers=[]),
        )
    )
    assert unknown.answers is None
    assert unknown.label is None
    assert impossible.answers == also_impossible.answers == ()
    assert impossible.label == [""]


@pytest.mark.parametrize(
    ("qas", "message"),
    [
        ([question(id=...)], "qas[0]: 'id'"),
        ([question(question=...)], "qas[0]: 'question'"),
        ([question(question=7)], "'question' is 7, not text"),
        ([question(), question()], "qas[1]: id '1'"),
        ([question(answers=[{"text": "cat"}])], "answers[0]: 'answer_start'"),
        (
            [question(answers=[{"text": "cat", "answer_start": 3}])],
            "not at character 3 of the context; it is at character 2",
        ),
        ([question(answers=[{"text": "dog", "answer_start": 2}])], "it does not occur there"),
        ([question(answers=[{"text": "cat", "answer_start": -8}])], "not at character -8"),
        ([question(answers=[{"text": " ", "answer_start": 1}])], "answers[0]: the answer text is empty"),
        ([question(is_impossible=True)], "is_impossible is true"),
        ([], "no questions found"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, qas: list[Any], message: str) -> None:
    path = squad_file(tmp_path, *qas)
    with pytest.raises(DataError) as error:
        read_squad(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"data": [', "squad.json: not JSON (Expecting value: line 1"),
        (b'{"data": ["\\ud83d"]}', "squad.json: not JSON ('utf-8' codec can't encode"),
        (b"[]", "expected an object with 'data'"),
        (b'{"data": [{"title": "t"}]}', "data[0]: 'paragraphs'"),
        (b'{"data": "\xe9"}', "byte 0xe9 is not valid utf-8"),
    ],
)
def test_what_is_no_squad_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "squad.json").write_bytes(content)
    with pytest.raises(DataError, match=r"squad\.json") as error:
        read_squad(tmp_path / "squad.json")
    assert message in str(error.value)


def test_a_missing_file_and_an_empty_context_are_refused(tmp_path: Path) -> None:
    with refuses(DataError, "missing-file"):
        read_squad(tmp_path / "nothing.json")
    with refuses(DataError, "empty-cell", at="paragraphs[0].qas"):
        read_squad(squad_file(tmp_path, question(answers=...), context=" "))


def test_training_refuses_what_has_no_answers(tmp_path: Path) -> None:
    with refuses(DataError, "no-labels"):
        check_answers(read_squad(squad_file(tmp_path, question(answers=...))), allows_none=True)
    unanswerable = read_squad(squad_file(tmp_path, question(answers=[])))
    check_answers(unanswerable, allows_none=True)
    with refuses(DataError, "no-labels"):
        check_answers(unanswerable, allows_none=False)


def test_a_split_by_article_divides_no_article(real_data: Path) -> None:
    questions = read_squad(real_data / "squad" / "xquad.en.json")
    kept, held = split_articles(questions, 0.2)
    assert kept + held == questions
    assert not {q.article for q in kept} & {q.article for q in held}
    assert 0.15 < len(held) / len(questions) < 0.25


def test_a_split_of_shuffled_rows_is_as_large_as_one_of_sorted_rows() -> None:
    in_order = [Question(str(n), "?", "text", article=n // 5) for n in range(1000)]
    for seed in range(4):
        shuffled = [in_order[n] for n in np.random.default_rng(seed).permutation(1000)]
        numbers = {article: n for n, article in enumerate(dict.fromkeys(q.article for q in shuffled))}
        questions = [replace(q, article=numbers[q.article]) for q in shuffled]  # by first appearance, as rows are read
        kept, held = split_articles(questions, 0.1)
        assert len(held) == len(split_articles(in_order, 0.1)[1]) == 100
        assert not {q.article for q in kept} & {q.article for q in held}


def test_something_is_kept_of_two_articles_at_any_share_and_nothing_held_out_of_one() -> None:
    questions = [Question(str(n), "?", "text", article=n // 5) for n in range(10)]
    assert split_articles(questions, 0.9) == split_articles(questions, 0.01) == (questions[:5], questions[5:])
    assert split_articles(questions[:5], 0.5) == (questions[:5], [])


def test_rows_as_datasets_has_them_are_the_same_questions(tmp_path: Path) -> None:
    row = {"id": "1", "title": "t", "context": "A cat sat.", "question": "Who?"}
    answers = {"text": ["cat"], "answer_start": [2]}
    path = tmp_path / "squad.jsonl"
    path.write_text(json.dumps({**row, "answers": answers}) + "\n" + json.dumps({**row, "id": "2"}), "utf-8")
    with_answers, without = read_squad(path)
    [official] = read_squad(squad_file(tmp_path, question()))
    assert (with_answers.id, with_answers.text, with_answers.context, with_answers.answers) == (
        official.id,
        official.text,
        official.context,
        official.answers,
    )
    assert without.answers is None
    path.write_text(json.dumps({**row, "answers": {"text": ["cat"], "answer_start": []}}), "utf-8")
    with refuses(DataError, "bad-layout", at="squad.jsonl:1"):
        read_squad(path)


def test_misplaced_answers_are_refused_skipped_or_fixed_and_counted(tmp_path: Path) -> None:
    path = squad_file(
        tmp_path,
        question(),
        question(id="2", answers=[{"text": "cat", "answer_start": 8}]),
        question(id="3", answers=[{"text": "dog", "answer_start": 2}]),
        question(id="4", answers=[{"text": "dog", "answer_start": 2}, {"text": "cat", "answer_start": 12}]),
        context="A cat, a cat and a mouse.",
    )
    with refuses(DataError, "misplaced-answer", at="qas[1].answers"):
        read_squad(path)
    fixed = Misplaced("fix")
    starts = {one.id: [answer.start for answer in one.answers or ()] for one in read_squad(path, misplaced=fixed)}
    assert starts == {"1": [2], "2": [9], "4": [9]}
    assert (fixed.num_fixed, len(fixed.skipped)) == (2, 2)
    skipped = Misplaced("skip")
    assert [one.id for one in read_squad(path, misplaced=skipped)] == ["1"]
    assert skipped.tell("squad.json")[0].startswith("squad.json: 4 were skipped; the first: ")


def test_the_first_question_of_a_file_is_shown_as_it_was_understood(tmp_path: Path) -> None:
    path = squad_file(tmp_path, question(), context="A cat and a mouse.")
    notes = read_dataset("squad-v1", path, TableOptions(dev_share=0.0, is_learned=False)).notes
    assert notes == ('first row: passage = "A cat and a mouse.", question = "Who?", answers = ["cat"]',)
