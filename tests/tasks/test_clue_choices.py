"""C3 and CHID are read from their files as distributed."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

from litebert.core.errors import DataError
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.clue_choices import IDIOM_WINDOW
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.finetuning import Dataset


def read(name: str, folder: Path, files: dict[str, Any], **options: Any) -> Dataset:
    for file, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        (folder / file).write_text(text, "utf-8")
    return read_dataset(name, folder, TableOptions(**options))


DIALOGUE = [
    ["女：今天3号还是4号？", "男：3号。"],
    [
        {"question": "今天几号？", "choice": ["1", "2", "3"], "answer": "3"},
        {"question": "谁在说话？", "choice": ["A和B", "男女"], "answer": "男女"},
    ],
    "1-141",
]
MIXED = [["动物的感觉。"], [{"question": "器官?", "choice": ["灵敏", "一般", "差", "没有"], "answer": "灵敏"}], "7"]


def test_both_parts_of_c3_are_read_and_scored_by_themselves_too(tmp_path: Path) -> None:
    files = {"m-train.json": [MIXED], "d-train.json": [DIALOGUE], "m-dev.json": [MIXED], "d-dev.json": [DIALOGUE]}
    dataset = read("c3", tmp_path, files)
    first, second, third = dataset.train
    assert (first.context, first.choices, first.label, first.level) == (
        "动物的感觉。",
        ("灵敏", "一般", "差", "没有"),
        0,
        "mixed",
    )
    # the answer "3" is the text of a choice, not its number
    assert (second.id, second.context, second.label) == ("1-141-0", "女：今天3号还是4号？\n男：3号。", 2)
    assert (third.choices, third.label, third.level) == (("A和B", "男女"), 1, "dialogue")
    outputs = [[1.0, 0, 0, 0], [1.0, 0, 0], [0, 1.0]]
    scores = dataset.task.score(outputs, dataset.dev["dev"])
    assert scores == {"accuracy": pytest.approx(2 / 3), "accuracy_mixed": 1.0, "accuracy_dialogue": 0.5}


def test_the_test_file_of_c3_has_ids_and_no_answers(tmp_path: Path) -> None:
    questions = [{"question": "几号？", "choice": ["1", "2"], "id": 12}]
    files = {"m-train.json": [MIXED], "m-dev.json": [MIXED], "test1.0.json": [[["3号"], questions, "1"]]}
    [example] = read("c3", tmp_path, files).test["test"]
    assert (example.id, example.label) == ("12", None)


IDIOMS = [
    "传宗接代",
    "得过且过",
    "咄咄逼人",
    "碌碌无为",
    "软硬兼施",
    "无所作为",
    "苦口婆心",
    "未雨绸缪",
    "和衷共济",
    "人老珠黄",
]
TEXTS = ["他#idiom000001#，从不_努力。", "父母#idiom000002#地劝他，不要#idiom000003#。"]
GROUP = json.dumps({"groupID": 3, "candidates": IDIOMS, "content": TEXTS}, ensure_ascii=False) + "\n"
ANSWERS = {"#idiom000001#": 1, "#idiom000002#": 6, "#idiom000003#": 5}


@pytest.mark.parametrize(
    "answers",
    [
        {"train_answer.json": ANSWERS},
        {"train_answer.csv": "".join(f"{blank},{answer}\n" for blank, answer in ANSWERS.items())},
    ],
    ids=["json", "csv"],
)
def test_every_blank_of_chid_is_an_example(answers: dict[str, Any], tmp_path: Path) -> None:
    dataset = read("chid", tmp_path, {"train.json": GROUP, **answers}, dev_share=0)
    assert [(one.id, one.choices[one.label]) for one in dataset.train] == [
        ("#idiom000001#", "得过且过"),
        ("#idiom000002#", "苦口婆心"),
        ("#idiom000003#", "无所作为"),
    ]
    # the idiom is filled in where the blank is; another blank is an ellipsis; an underscore of the text is no blank
    assert dataset.train[0].sentences[0] == "他传宗接代，从不 努力。"
    assert dataset.train[2].sentences[4] == "父母……地劝他，不要软硬兼施。"
    assert len({one.group for one in dataset.train}) == 1


def test_chids_first_release_has_pythons_dictionaries(tmp_path: Path) -> None:
    line = str({"candidates": IDIOMS, "content": TEXTS}) + "\n"
    dataset = read(
        "chid", tmp_path, {"test.json": line, "train.json": GROUP, "train_answer.json": ANSWERS}, dev_share=0
    )
    assert [one.label for one in dataset.test["test"]] == [None] * 3


def test_a_long_text_of_chid_is_cut_around_the_blank(tmp_path: Path) -> None:
    text = "".join(chr(0x4E00 + n) for n in range(300)) + "#idiom000001#" + "尾" * 300
    group = json.dumps({"candidates": IDIOMS, "content": [text]}, ensure_ascii=False)
    [example] = read("chid", tmp_path, {"train.json": group, "train_answer.json": ANSWERS}, dev_share=0).train
    before, _, after = example.question.partition("_")
    assert before == text[300 - IDIOM_WINDOW : 300]
    assert after == "尾" * IDIOM_WINDOW


@pytest.mark.parametrize(
    ("name", "files", "code"),
    [
        ("c3", {"train.json": {"a": 1}}, "bad-layout"),
        ("c3", {"train.json": [[["a"], [{"question": "b", "choice": ["c"]}], "1"]]}, "bad-layout"),
        ("c3", {"train.json": [[["a"], [{"question": "b", "choice": ["c", "d"], "answer": "e"}], "1"]]}, "bad-label"),
        ("c3", {"train.json": [[["a"], [{"question": "b", "choice": ["c", "d"]}], "1"]]}, "missing-label"),
        ("c3", {"other.json": "[]"}, "missing-file"),
        ("chid", {"train.json": "[]\n"}, "bad-layout"),
        ("chid", {"train.json": "{'a': \n"}, "bad-layout"),
        ("chid", {"train.json": GROUP}, "missing-label"),
        ("chid", {"train.json": GROUP, "train_answer.json": {"#idiom000001#": 1}}, "missing-label"),
        ("chid", {"train.json": GROUP, "train_answer.json": ANSWERS | {"#idiom000001#": 10}}, "bad-label"),
        ("chid", {"train.json": GROUP, "train_answer.csv": "#idiom000001#,x\n"}, "bad-answers"),
        ("chid", {"train.json": json.dumps({"candidates": IDIOMS, "content": ["a"]})}, "empty-file"),
    ],
)
def test_a_slip_is_named_with_its_place(name: str, files: dict[str, Any], code: str, tmp_path: Path) -> None:
    with refuses(DataError, code):
        read(name, tmp_path, files)
