"""The files that tasks are read from: an example of each layout, and how it is read."""

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc, parquet

from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.leaderboard.answer_scores import read_answers
from litebert.tasks.leaderboard.answer_sheets import check_answer_sheet, read_questions
from litebert.tasks.leaderboard.clue_submission import check_clue_files, check_clue_zip
from tests.small_tasks import find_animal, invent_rows, split_pairs, tag_words, write_rows
from tests.torture.reader import Reader

TABLES: Mapping[str, str] = {
    "classes.jsonl": "classification",
    "classes.json": "classification",
    "classes.csv": "classification",
    "classes.tsv": "classification",
    "classes.parquet": "classification",
    "classes.txt": "classification",  # fastText's lines
    "pairs.jsonl": "classification",
    "numbers.csv": "regression",
    "labels.jsonl": "multi-label",
    "tags.conll": "tags",
    "tags.jsonl": "tags",
    "questions.json": "squad-v2",
    "choices.jsonl": "choice",
    "choices.csv": "choice",
    "slashes.txt": "tags",
    "words.csv": "tags",  # one word per row
    "lists.csv": "multi-label",  # printed lists of Python
    "columns.csv": "multi-label",  # a column of 0 and 1 for each label
    "named.parquet": "classification",  # the names of numbered labels in the schema
}
# task -> the training file as it is distributed, and its content
_PAIRS = "花呗怎么还款\t如何还花呗\t1\n借呗怎么用\t花呗怎么用\t0\n" * 12
_SENTENCES = "label\ttext_a\n1\t很好，“棒”\n0\t房间小\n"
_NEWS = "655_!_101_!_news_culture_!_京城，博物馆_!_保利,马未都\n656_!_109_!_news_tech_!_手机很快_!_\n" * 12
_WINOGRAD = {
    "target": {"span1_text": "床", "span1_index": 2, "span2_text": "它", "span2_index": 5},
    "idx": 261,
    "label": "false",
    "text": "一张床，有它。",
}
_ABSTRACT = {"id": 1, "abst": "摘要", "keyword": ["水", "声"], "label": "1"}
_APP = {"label": "110", "label_des": "社区超市", "sentence": "朴朴快送超市"}
CHINESE: Mapping[str, tuple[str, str]] = {
    "lcqmc": ("train.txt", _PAIRS),
    "afqmc": ("train.json", json.dumps({"sentence1": "花呗", "sentence2": "借呗", "label": "0"}) + "\n"),
    "tnews": ("train.txt", _NEWS),
    "chnsenticorp": ("train.tsv", _SENTENCES),
    "cluewsc": ("train.json", json.dumps(_WINOGRAD, ensure_ascii=False) + "\n"),
    "csl": ("train.json", json.dumps(_ABSTRACT, ensure_ascii=False) + "\n"),
    "iflytek": ("train.json", json.dumps(_APP, ensure_ascii=False) + "\n"),
}
_NAMES = {"text": "叶老桂在浙商银行工作", "label": {"name": {"叶老桂": [[0, 2]]}, "company": {"浙商银行": [[4, 7]]}}}
_TALK = [["女：今天几号？", "男：3号。"], [{"question": "几号？", "choice": ["1", "2", "3"], "answer": "3"}], "1-141"]
_IDIOMS = ["传宗接代", "得过且过", "咄咄逼人", "碌碌无为", "软硬兼施"]
_IDIOMS += ["无所作为", "苦口婆心", "未雨绸缪", "和衷共济", "人老珠黄"]
_GAPS = {"groupID": 3, "candidates": _IDIOMS, "content": ["他#idiom000001#，从不努力。", "父母#idiom000002#地劝他。"]}
CHINESE = {
    **CHINESE,
    "cluener": ("train.json", json.dumps(_NAMES, ensure_ascii=False) + "\n"),
    "c3": ("m-train.json", json.dumps([_TALK], ensure_ascii=False)),
    "chid": ("train.json", json.dumps(_GAPS, ensure_ascii=False) + "\n"),
}
CLUE_SHEETS = ("cluener_predict.json", "csl_predict.json", "cmrc2018_predict.json")
ANSWERS = ("answers.json", "answers.jsonl", "answers.tsv")


def list_task_readers() -> list[Reader]:
    tables = [Reader(f"table/{name}", "tables", name, _rows_of(task, name)) for name, task in TABLES.items()]
    whole = TableOptions(dev_share=0.0)
    chinese = [
        Reader(
            f"table/{task}",
            f"clue-{task}",
            name,
            lambda folder, task=task: _describe(read_dataset(task, folder, whole)),
        )
        for task, (name, _) in CHINESE.items()
    ]
    return [
        *tables,
        *chinese,
        Reader("table/cmrc2018", "cmrc", "train.json", lambda f: _describe(read_dataset("cmrc2018", f, whole))),
        Reader("table/arrow", "arrow", "train/data-00000-of-00001.arrow", _read_arrow),
        *(Reader(f"answers/{name}", "answers", name, _answers_of(name)) for name in ANSWERS),
        *(Reader(f"answers/{name}", "clue-answers", name, _check_clue_of(name)) for name in CLUE_SHEETS),
        Reader("answers/clue.zip", "clue-answers", "clue.zip", lambda folder: check_clue_zip(folder / "clue.zip")),
        Reader("answers/sheet", "answers", "sheet.json", _check_sheet),
        Reader("table/SST-2", "SST-2", "train.tsv", lambda folder: _describe(read_dataset("sst-2", folder))),
        Reader("table/race", "race", "train/high/1.txt", lambda folder: _describe(read_dataset("race", folder))),
    ]


def _rows_of(task: str, name: str) -> Callable[[Path], object]:
    return lambda folder: _describe(read_dataset(task, folder / name))


def _split_of(task: str) -> Callable[[Path], object]:
    return lambda folder: _describe(read_dataset(task, folder, TableOptions(dev_share=0.0)))


def _read_arrow(folder: Path) -> object:
    return _describe(read_dataset("classification", folder, TableOptions(dev_share=0.5)))


def _answers_of(name: str) -> Callable[[Path], object]:
    return lambda folder: repr(read_answers(folder / name))


def _check_clue_of(name: str) -> Callable[[Path], object]:
    return lambda folder: check_clue_files({name: (folder / name).read_text("utf-8", errors="replace")})


def _check_sheet(folder: Path) -> object:
    return check_answer_sheet(folder / "sheet.json", read_questions("squad-v2", folder / "questions.json", "train"))


def _describe(dataset: Any) -> str:
    return repr((dataset.task, dataset.train, dataset.dev, dataset.test))


def write_task_files(made: Path) -> None:
    folder = made / "tables"
    folder.mkdir()
    rows = invent_rows(count=40)
    write_jsonl = lambda name, values: (folder / name).write_text("".join(json.dumps(v) + "\n" for v in values))  # noqa: E731
    write_jsonl("classes.jsonl", rows)
    (folder / "classes.json").write_text(json.dumps(rows))
    for name, separator in (("classes.csv", ","), ("classes.tsv", "\t")):
        lines = [separator.join(("text", "label")), *(separator.join((row["text"], row["label"])) for row in rows)]
        (folder / name).write_text("\n".join(lines) + "\n")
    parquet.write_table(pa.Table.from_pylist(rows), folder / "classes.parquet")
    (folder / "classes.txt").write_text("".join(f"__label__{row['label']} {row['text']}\n" for row in rows))
    write_jsonl("pairs.jsonl", split_pairs(rows))
    numbers = [f"{row['text']},{len(row['text']) / 10}" for row in rows]
    (folder / "numbers.csv").write_text("\n".join(["text,label", *numbers]) + "\n")
    write_jsonl("labels.jsonl", [{"text": row["text"], "labels": sorted({row["label"], "x"})} for row in rows])
    tagged = tag_words(rows)
    write_jsonl("tags.jsonl", tagged)
    blocks = ["\n".join(" ".join(p) for p in zip(row["tokens"], row["tags"], strict=True)) for row in tagged]
    (folder / "tags.conll").write_text("-DOCSTART- O\n\n" + "\n\n".join(blocks) + "\n")
    (folder / "questions.json").write_text(json.dumps(invent_squad([f"The {row['text']} here." for row in rows[:12]])))
    choices = [
        {"context": row["text"], "question": "Who?", "choices": ["cat", "dog", "bird"], "label": n % 3}
        for n, row in enumerate(rows)
    ]
    write_jsonl("choices.jsonl", choices)
    lines = [f"{row['text']},cat,dog,bird,{n % 3}" for n, row in enumerate(rows)]
    (folder / "choices.csv").write_text("\n".join(["sent1,ending0,ending1,ending2,label", *lines]) + "\n")
    _write_unusual_tables(folder, rows, tagged)
    _write_chinese(made)
    _write_answers(made / "answers", rows)
    for split in ("train", "dev"):
        (made / "SST-2").mkdir(exist_ok=True)
        sentences = [f"{row['text']}\t{int(find_animal(row['text'].split()) == 'cat')}" for row in rows]
        (made / "SST-2" / f"{split}.tsv").write_text("\n".join(["sentence\tlabel", *sentences]) + "\n")
        for level in ("middle", "high"):
            (made / "race" / split / level).mkdir(parents=True)
            (made / "race" / split / level / "1.txt").write_text(json.dumps(invent_article("A cat sees a dog.")))
    write_rows(made / "rows", rows)


def _write_unusual_tables(folder: Path, rows: list[dict[str, Any]], tagged: list[dict[str, Any]]) -> None:
    sentences = [list(zip(row["tokens"], row["tags"], strict=True)) for row in tagged]
    (folder / "slashes.txt").write_text("".join(" ".join(f"{w}/{t}" for w, t in one) + "\n" for one in sentences))
    words = [f"{number},{word},{tag}" for number, one in enumerate(sentences) for word, tag in one]
    (folder / "words.csv").write_text("\n".join(["sentence_id,word,tag", *words]) + "\n")
    lists = [f"{row['text']},\"['{row['label']}', 'x']\"" for row in rows]
    (folder / "lists.csv").write_text("\n".join(["text,labels", *lists]) + "\n")
    kinds = sorted({row["label"] for row in rows})
    marks = [",".join([row["text"], *(str(int(row["label"] == kind)) for kind in kinds)]) for row in rows]
    (folder / "columns.csv").write_text("\n".join([",".join(["text", *kinds]), *marks]) + "\n")
    features = {"label": {"names": kinds, "_type": "ClassLabel"}}
    numbered = [{"text": row["text"], "label": kinds.index(row["label"])} for row in rows]
    table = pa.Table.from_pylist(numbered)
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    parquet.write_table(table, folder / "named.parquet")
    arrow = folder.parent / "arrow" / "train"
    arrow.mkdir(parents=True)
    with ipc.new_stream(str(arrow / "data-00000-of-00001.arrow"), table.schema) as stream:
        stream.write_table(table)


def _write_chinese(made: Path) -> None:
    for task, (name, content) in CHINESE.items():
        (made / f"clue-{task}").mkdir()
        (made / f"clue-{task}" / name).write_text(content, "utf-8")
    (made / "clue-chid" / "train_answer.json").write_text(json.dumps({"#idiom000001#": 1, "#idiom000002#": 6}))
    (made / "clue-answers").mkdir()
    rows = {"cluener_predict.json": {"id": 0, **_NAMES}, "csl_predict.json": {"id": 0, "label": "1"}}
    rows["cmrc2018_predict.json"] = {"1": "小猫"}
    with zipfile.ZipFile(made / "clue-answers" / "clue.zip", "w") as archive:
        for name, row in rows.items():
            (made / "clue-answers" / name).write_text(json.dumps(row, ensure_ascii=False) + "\n", "utf-8")
            archive.write(made / "clue-answers" / name, name)
    (made / "cmrc").mkdir()
    question = {"id": "1", "question": "谁来了？", "answers": [{"text": "小猫", "answer_start": 2}] * 3}
    paragraph = {"context": "今天小猫来了，狗走了。", "qas": [question]}
    cmrc = {"version": "v1.0", "data": [{"title": "猫", "id": "T1", "paragraphs": [paragraph]}]}
    (made / "cmrc" / "train.json").write_text(json.dumps(cmrc, ensure_ascii=False), "utf-8")


def _write_answers(folder: Path, rows: list[dict[str, Any]]) -> None:
    folder.mkdir()
    answers = {str(number): row["label"] for number, row in enumerate(rows)}
    (folder / "answers.json").write_text(json.dumps(answers))
    lines = [json.dumps({"id": id_, "answer": answer}) for id_, answer in answers.items()]
    (folder / "answers.jsonl").write_text("\n".join(lines) + "\n")
    cells = [f"{id_}\t{answer}" for id_, answer in answers.items()]
    (folder / "answers.tsv").write_text("\n".join(["index\tprediction", *cells]) + "\n")
    questions = invent_squad([f"The {row['text']} here." for row in rows[:6]])
    (folder / "questions.json").write_text(json.dumps(questions))
    sheet = {qa["id"]: "" for article in questions["data"] for qa in article["paragraphs"][0]["qas"]}
    (folder / "sheet.json").write_text(json.dumps(sheet))


def invent_squad(paragraphs: list[str]) -> dict[str, Any]:
    articles = []
    for number, text in enumerate(paragraphs):
        word = text.split()[1]
        answers = [{"text": word, "answer_start": text.index(word)}]
        questions = [{"id": f"q{number}", "question": "What does it see?", "answers": answers, "is_impossible": False}]
        questions += [{"id": f"n{number}", "question": "Why?", "answers": [], "is_impossible": True}]
        articles.append({"title": f"Cats {number}", "paragraphs": [{"context": text, "qas": questions}]})
    return {"version": "v2.0", "data": articles}


def invent_article(text: str) -> dict[str, Any]:
    options = [["a cat", "a dog", "a bird", "a tree"], ["one", "two", "three", "four"]]
    return {
        "id": "1",
        "article": text,
        "questions": ["Who is _ ?", "How many?"],
        "options": options,
        "answers": ["A", "C"],
    }
