"""CMRC 2018's and DRCD's files are read as distributed, and Chinese answers are scored as CMRC's script does."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import official_cmrc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from litebert.core.errors import DataError
from litebert.inference.evaluation import _with_metrics
from litebert.tasks.catalog import read_dataset, restore_task, task_facts
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.squad.metrics import score_answer
from litebert.tasks.squad.task import SpanTask

FRAGMENTS = st.sampled_from(
    [
        *(
            "北",
            "京",
            "北京",
            "大学",
            "的",
            "2018",
            "3.5",
            "1,000",
            "12%",
            "iPhone",
            "NBA",
            "A",
            "b",
            "x.y",
            ".",
            ",",
            "…",
        ),
        *("，", "。", "《", "》", "·", "-", "(", ")", "$", " ", "\u3000", "“", "‘", "’"),
    ]
)
TEXTS = st.lists(FRAGMENTS, max_size=7).map("".join) | st.lists(FRAGMENTS, max_size=5).map(" ".join)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_scores_by_characters_equal_the_official_ones(prediction: str, golds: list[str]) -> None:
    assert score_answer(prediction, golds, "1.1", "characters") == pytest.approx(
        official_cmrc.scores(prediction, golds)
    )


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=2))
def test_both_versions_agree_where_something_is_left_of_every_answer(prediction: str, golds: list[str]) -> None:
    if all(official_cmrc.segments(text) for text in (prediction, *golds)):
        assert score_answer(prediction, golds, "2.0", "characters") == score_answer(
            prediction, golds, "1.1", "characters"
        )


@pytest.mark.parametrize(
    ("prediction", "golds", "exact", "f1"),
    [
        ("北京大", ["北京大学"], 0.0, 6 / 7),  # by words between spaces: 0
        ("《北京》大学。", ["北京大学"], 1.0, 1.0),
        ("京北", ["北京"], 0.0, 0.5),  # a run, not a bag of characters
        ("NBA总决赛", ["nba决赛"], 0.0, 2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3)),
        ("2018年", ["2018"], 0.0, 2 / 3),  # a number is one unit
        ("12.5%", ["12.5"], 0.0, 2 / 3),
        ("ノルウェー", ["ノルウェ"], 0.0, 8 / 9),  # kana too
        ("", ["北京"], 0.0, 0.0),
    ],
)
def test_known_cases(prediction: str, golds: list[str], exact: float, f1: float) -> None:
    for version in ("1.1", "2.0"):
        assert score_answer(prediction, golds, version, "characters") == pytest.approx((exact, f1))  # type: ignore[arg-type]


def test_no_answer_is_right_where_there_is_none() -> None:
    assert score_answer("", [], "2.0", "characters") == (1.0, 1.0)
    assert score_answer("北京", [], "2.0", "characters") == (0.0, 0.0)
    assert score_answer("", ["。"], "2.0", "characters") == (1.0, 1.0)


CONTEXT = "北京大学创办于1898年，是中国近代第一所国立大学。"


def cmrc_own(count: int) -> list[dict[str, Any]]:
    """The layout of the original distribution."""
    return [
        {
            "context_id": f"DEV_{n}",
            "context_text": f"{n}号：{CONTEXT}",
            "title": "北京大学",
            "qas": [
                {"query_text": "何时创办？", "query_id": f"DEV_{n}_QUERY_0", "answers": ["1898年", "1898", "1898年"]},
                {"query_text": "哪所大学？", "query_id": f"DEV_{n}_QUERY_1", "answers": ["北京大学"] * 3},
            ],
        }
        for n in range(count)
    ]


def squad_style(count: int) -> dict[str, Any]:
    """The layout of CLUE's copy and of DRCD, with more keys than SQuAD has."""
    articles = []
    for n, one in enumerate(cmrc_own(count)):
        context = one["context_text"]
        qas = [
            {
                "question": asked["query_text"],
                "id": asked["query_id"],
                "answers": [{"id": "1", "text": t, "answer_start": context.find(t)} for t in asked["answers"]],
            }
            for asked in one["qas"]
        ]
        articles.append(
            {"title": "北京大学", "id": str(n), "paragraphs": [{"id": f"{n}-1", "context": context, "qas": qas}]}
        )
    return {"version": "v1.0", "data": articles}


def write(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value, ensure_ascii=False), "utf-8")


def test_both_layouts_of_cmrc_give_the_same_questions(tmp_path: Path) -> None:
    for name, layout in (("own", cmrc_own), ("style", squad_style)):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "cmrc2018_train.json", layout(5))
        write(tmp_path / name / "cmrc2018_dev.json", layout(2))
    own, style = (read_dataset("cmrc2018", tmp_path / name) for name in ("own", "style"))
    assert [replace(q, where="") for q in own.train] == [replace(q, where="") for q in style.train]
    assert own.task == style.task == SpanTask("cmrc2018", units="characters")
    [first, *_] = own.dev["dev"]
    assert (first.id, first.label) == ("DEV_0_QUERY_0", ["1898年", "1898"])


@pytest.mark.parametrize("train", ["DRCD_training.json", "train.json"])
def test_drcd_is_read_under_its_own_names_with_its_labelled_test_split(tmp_path: Path, train: str) -> None:
    for name in (train, train.replace("training", "dev").replace("train", "dev")):
        write(tmp_path / name, squad_style(3))
    write(tmp_path / train.replace("training", "test").replace("train", "test"), squad_style(1))
    dataset = read_dataset("drcd", tmp_path)
    assert (len(dataset.train), len(dataset.dev["dev"]), len(dataset.test["test"])) == (6, 6, 2)
    assert dataset.test["test"][0].has_answer


def test_an_answer_that_is_not_in_its_context_is_refused_or_skipped(tmp_path: Path) -> None:
    broken = cmrc_own(2)
    broken[1]["qas"][0]["answers"] = ["1989年"]
    write(tmp_path / "train.json", broken)
    with refuses(DataError, "misplaced-answer"):
        read_dataset("cmrc2018", tmp_path, TableOptions(dev_share=0))
    assert len(read_dataset("cmrc2018", tmp_path, TableOptions(dev_share=0, on_error="skip")).train) == 3


def test_units_follow_the_language_and_are_reported_and_recorded(tmp_path: Path) -> None:
    file = tmp_path / "zh.json"
    write(file, squad_style(4))
    dataset = read_dataset("squad-v1", file)
    assert any("by characters" in note for note in dataset.notes)
    facts = task_facts(dataset.task, max_length=64)
    assert facts["units"] == "characters"
    assert restore_task(facts, where="here") == dataset.task
    # a model that was trained on English is scored by characters on Chinese, and the other way round
    assert _with_metrics(SpanTask("squad-v1"), dataset.task).units == "characters"  # type: ignore[attr-defined]
    assert _with_metrics(dataset.task, SpanTask("squad-v1")).units == "words"  # type: ignore[attr-defined]


def test_english_is_scored_by_words(real_data: Path) -> None:
    dataset = read_dataset("squad-v1", real_data / "squad" / "xquad.en.json")
    assert dataset.task.units == "words"  # type: ignore[attr-defined]
    assert not any("characters" in note for note in dataset.notes)


def test_tasks_of_checkpoints_from_before_are_scored_by_words() -> None:
    facts = {key: value for key, value in task_facts(SpanTask("squad-v1"), max_length=64).items() if key != "units"}
    assert restore_task(facts, where="here") == SpanTask("squad-v1")
