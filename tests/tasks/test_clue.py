"""Chinese tasks with one label are read from their files as they are distributed."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

from litebert.core.errors import ConfigError, DataError
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.finetuning import Dataset


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read(name: str, folder: Path, files: dict[str, str], **options: Any) -> Dataset:
    for file, text in files.items():
        (folder / file).write_text(text, "utf-8")
    return read_dataset(name, folder, TableOptions(**options))


def labels_of(dataset: Dataset) -> tuple[str, ...]:
    return dataset.task.labels  # type: ignore[attr-defined, no-any-return]


PAIRS = "花呗怎么还款\t如何还花呗\t1\n借呗\t花呗\t0\n"
XNLI_TRAIN = "premise\thypo\tlabel\n他 说 ， 妈妈 ， 我 回来 了 。\t他 没 说 话\tcontradictory\n"
NLI_ROWS = [
    {"sentence1": "他来了", "sentence2": "有人来", "label": "entailment", "genre": "news", "id": 7},
    {"sentence1": "他来了", "sentence2": "没人来", "label": "contradiction", "genre": "news", "id": 8},
    {"sentence1": "他来了", "sentence2": "他高兴", "label": "-", "genre": "news", "id": 9},
]


@pytest.mark.parametrize(
    ("name", "files", "first"),
    [
        ("afqmc", {"train.json": lines({"sentence1": "a", "sentence2": "b", "label": "0"})}, ("a", "b", "0")),
        ("afqmc", {"train.txt": PAIRS}, ("花呗怎么还款", "如何还花呗", "1")),
        ("lcqmc", {"train.tsv": "text_a\ttext_b\tlabel\n" + PAIRS}, ("花呗怎么还款", "如何还花呗", "1")),
        ("lcqmc", {"train.txt": PAIRS}, ("花呗怎么还款", "如何还花呗", "1")),
        (
            "tnews",
            {"train.json": lines({"label": "102", "label_desc": "news_entertainment", "sentence": "a"})},
            ("a", None, "news_entertainment"),
        ),
        ("tnews", {"train.tsv": "巴铁，为何\tnews_tech\n"}, ("巴铁，为何", None, "news_tech")),
        (
            "tnews",
            {"train.txt": "655_!_101_!_news_culture_!_京城，博物馆_!_保利,马未都\n"},
            ("京城，博物馆", None, "news_culture"),
        ),
        (
            "iflytek",
            {"train.json": lines({"label": "110", "label_des": "社区超市", "sentence": "朴朴"})},
            ("朴朴", None, "社区超市"),
        ),
        ("cmnli", {"train.json": lines(*NLI_ROWS)}, ("他来了", "有人来", "entailment")),
        ("ocnli", {"train.50k.json": lines(*NLI_ROWS)}, ("他来了", "有人来", "entailment")),
        (
            "csl",
            {"train.json": lines({"id": 1, "abst": "摘要", "keyword": ["水", "声"], "label": "1"})},
            ("水 声", "摘要", "1"),
        ),
        ("xnli-zh", {"train.tsv": XNLI_TRAIN}, ("他 说 ， 妈妈 ， 我 回来 了 。", "他 没 说 话", "contradiction")),
        (
            "xnli-zh",
            {"multinli.train.zh.tsv": XNLI_TRAIN},
            ("他 说 ， 妈妈 ， 我 回来 了 。", "他 没 说 话", "contradiction"),
        ),
        ("chnsenticorp", {"train.tsv": "label\ttext_a\n1\t很好，“棒”\n"}, ("很好，“棒”", None, "1")),
        ("chnsenticorp", {"train.tsv": "0\t房间小\n"}, ("房间小", None, "0")),
        ("chnsenticorp", {"train.csv": 'label,review\n1,"近, 好"\n'}, ("近, 好", None, "1")),
    ],
)
def test_an_official_layout_is_read(name: str, files: dict[str, str], first: Any, tmp_path: Path) -> None:
    example = read(name, tmp_path, files, dev_share=0, labels=("社区超市",)).train[0]
    assert (example.text, example.text_b, example.label) == first


def test_only_the_chinese_rows_of_xnli_are_read(tmp_path: Path) -> None:
    columns = ["language", "gold_label", "sentence1_parse", "sentence1", "sentence2", "promptID", "match"]
    rows = [
        ["en", "neutral", "(ROOT)", "He said", "He spoke", "1", "True"],
        ["zh", "neutral", "(ROOT)", '他说"好"', "他说话", "1", "True"],
        ["zh", "entailment", "(ROOT)", "他说", "他说话", "1", "True"],
    ]
    (tmp_path / "XNLI-1.0").mkdir()
    table = "\n".join("\t".join(row) for row in [columns, *rows]) + "\n"
    dataset = read(
        "xnli-zh", tmp_path, {"train.tsv": XNLI_TRAIN, "XNLI-1.0/xnli.dev.tsv": table, "xnli.test.tsv": table}
    )
    for examples in (dataset.dev["dev"], dataset.test["test"]):
        assert [(one.text, one.label) for one in examples] == [('他说"好"', "neutral"), ("他说", "entailment")]
    assert any("2 of 3 rows are Chinese" in note for note in dataset.notes)
    with refuses(DataError, "no-rows"):
        read("xnli-zh", tmp_path, {"XNLI-1.0/xnli.dev.tsv": table.replace("zh", "fr")})


def test_the_winograd_schema_marks_the_noun_and_the_pronoun(tmp_path: Path) -> None:
    target = {"span1_text": "床", "span1_index": 2, "span2_text": "它", "span2_index": 5}
    row = {"target": target, "idx": 261, "label": "false", "text": "一张床，有它。"}
    dataset = read("cluewsc", tmp_path, {"train.json": lines(row)}, dev_share=0)
    [example] = dataset.train
    assert (example.id, example.text, example.label) == ("261", "一张_床_，有[它]。", "false")


def test_a_test_file_may_have_other_columns_than_the_training_file(tmp_path: Path) -> None:
    files = {
        "train.tsv": "label\ttext_a\n1\t好\n0\t差\n",
        "dev.tsv": "qid\tlabel\ttext_a\n0\t1\t好\n",
        "test.tsv": "qid\ttext_a\n5\t不错\n",
    }
    dataset = read("chnsenticorp", tmp_path, files)
    assert [(one.id, one.text, one.label) for one in dataset.test["test"]] == [("0", "不错", None)]
    assert dataset.dev["dev"][0].label == "1"


def test_a_labelled_test_file_is_scored_and_a_partly_labelled_one_is_not(tmp_path: Path) -> None:
    whole = read("lcqmc", tmp_path, {"train.txt": PAIRS, "dev.txt": PAIRS, "test.txt": PAIRS})
    assert [one.label for one in whole.test["test"]] == ["1", "0"]
    partly = read("lcqmc", tmp_path, {"test.txt": PAIRS.replace("\t0\n", "\t\n")})
    assert [one.label for one in partly.test["test"]] == [None, None]


def test_rows_without_agreement_are_left_out_of_training_and_counted(tmp_path: Path) -> None:
    dataset = read("ocnli", tmp_path, {"train.json": lines(*NLI_ROWS), "dev.json": lines(*NLI_ROWS)})
    assert (len(dataset.train), len(dataset.dev["dev"])) == (2, 2)
    assert sum("no agreement" in note for note in dataset.notes) == 2


def test_labels_of_iflytek_have_the_order_of_their_numbers(tmp_path: Path) -> None:
    rows = [
        {"label": "10", "label_des": "射击", "sentence": "a"},
        {"label": "9", "label_des": "约会", "sentence": "b"},
        {"label": "0", "label_des": "打车", "sentence": "c"},
    ]
    dataset = read("iflytek", tmp_path, {"train.json": lines(*rows), "dev.json": lines(rows[0])})
    assert labels_of(dataset) == ("打车", "约会", "射击")


def test_the_folder_of_clue_has_a_folder_for_each_task(tmp_path: Path) -> None:
    (tmp_path / "ocnli_public").mkdir()
    (tmp_path / "ocnli_public" / "train.json").write_text(lines(*NLI_ROWS), "utf-8")
    assert len(read_dataset("ocnli", tmp_path, TableOptions(dev_share=0)).train) == 2


@pytest.mark.parametrize(
    ("name", "files", "code"),
    [
        ("tnews", {"train.json": lines({"label": "105", "sentence": "a"})}, "unknown-label"),
        ("tnews", {"train.tsv": "a\tb\tc\n"}, "bad-layout"),
        ("tnews", {"train.txt": "1_!_101_!_news_culture_!_a_!_\n1_!_2\n"}, "ragged-row"),
        ("afqmc", {"train.json": lines({"sentence1": "a", "sentence2": "b"})}, "unknown-column"),
        ("afqmc", {"train.json": lines({"sentence1": "a", "label": "0"})}, "unknown-column"),
        ("afqmc", {"train.json": lines({"sentence1": "a", "sentence2": "", "label": "0"})}, "empty-cell"),
        ("lcqmc", {"train.txt": "a\tb\t\n"}, "missing-label"),
        ("cluewsc", {"train.json": lines({"text": "a", "target": {}, "label": "true"})}, "bad-span"),
        ("csl", {"other.json": ""}, "missing-file"),
    ],
)
def test_a_slip_is_named_with_its_place(name: str, files: dict[str, str], code: str, tmp_path: Path) -> None:
    with refuses(DataError, code):
        read(name, tmp_path, files)


def test_options_for_other_files_are_refused(tmp_path: Path) -> None:
    with refuses(ConfigError, "conflicting-options"):
        read("afqmc", tmp_path, {"train.txt": PAIRS}, text="1")


def test_cells_of_toutiao_are_columns_of_a_users_own_task_too(tmp_path: Path) -> None:
    rows = "".join(f"{n}_!_101_!_{'ab'[n % 2]}_!_text, {n}_!_\n" for n in range(20))
    (tmp_path / "toutiao.txt").write_text(rows, "utf-8")
    dataset = read_dataset("classification", tmp_path / "toutiao.txt", TableOptions(text="4", label="3"))
    assert labels_of(dataset) == ("a", "b")
    assert dataset.train[0].text.startswith("text, ")


def test_the_real_files_have_their_true_rows(real_data: Path) -> None:
    tnews, afqmc = (read_dataset(name, real_data / "clue") for name in ("tnews", "afqmc"))
    assert (len(tnews.train), len(tnews.dev["dev"]), len(tnews.test["test"])) == (53_360, 10_000, 10_000)
    assert (len(afqmc.train), len(afqmc.dev["dev"]), len(afqmc.test["test"])) == (34_334, 4_316, 3_861)
    assert len(labels_of(tnews)) == 15
    assert {one.label for one in tnews.dev["dev"]} == set(labels_of(tnews))
