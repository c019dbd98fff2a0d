"""Tagged text as people have it: places in texts, CSV with a word or a sentence in each row, word/TAG."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

from litebert.core.errors import ConfigError, DataError
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.words import find_words

TEXT = "Ada Lovelace, b. 1815, met Babbage."
WORDS = ("Ada", "Lovelace", ",", "b", ".", "1815", ",", "met", "Babbage", ".")
TAGS = ("B-PER", "I-PER", "O", "O", "O", "B-DATE", "O", "O", "B-PER", "O")
PLACES = [(0, 12, "PER"), (17, 21, "DATE"), (27, 34, "PER")]


def read(path: Path, content: str, **options: Any) -> list[tuple[tuple[str, ...], tuple[str, ...] | None]]:
    path.write_text(content)
    dataset = read_dataset("tags", path, TableOptions(dev_share=0.0, **options))
    return [(sentence.words, sentence.label) for sentence in dataset.train]


def as_objects(start: str, end: str, label: str, *, is_list: bool = False, last: int = 0) -> list[dict[str, Any]]:
    return [{start: a, end: b - last, label: [kind] if is_list else kind, "text": TEXT[a:b]} for a, b, kind in PLACES]


@pytest.mark.parametrize(
    "row",
    [
        {"text": TEXT, "entities": as_objects("start", "end", "label")},
        {"text": TEXT, "spans": as_objects("start", "end", "label")},  # Prodigy
        {"id": 1, "text": TEXT, "entities": as_objects("start_offset", "end_offset", "label")},  # doccano
        {"text": TEXT, "label": PLACES},  # doccano
        [TEXT, {"entities": PLACES}],  # spaCy
        {"text": TEXT, "label": as_objects("start", "end", "labels", is_list=True)},  # Label Studio
        {"text": TEXT, "entities": as_objects("start", "end", "type", last=1)},  # the last character counts
        {
            "content": TEXT,  # Dataturks
            "annotation": [
                {"label": [kind], "points": [{"start": a, "end": b - 1, "text": TEXT[a:b]}]} for a, b, kind in PLACES
            ],
        },
        {
            "text": TEXT,
            "label": {"PER": {"Ada Lovelace": [[0, 11]], "Babbage": [[27, 33]]}, "DATE": {"1815": [[17, 20]]}},
        },
        {"text": TEXT, "ents": as_objects("start", "end", "label")},  # spaCy's Doc.to_json
        {"text": TEXT, "spans": [[kind, a, b] for a, b, kind in PLACES]},
        {
            "text": TEXT,
            "entities": [{"offset": a, "length": b - a, "category": kind} for a, b, kind in PLACES],
        },  # Azure
        {"text": TEXT, "entities": [{"offsets": [a, b], "type": kind} for a, b, kind in PLACES]},
        {
            "text": TEXT,  # BigBIO
            "entities": [{"offsets": [[a, b]], "type": kind, "text": [TEXT[a:b]]} for a, b, kind in PLACES],
        },
    ],
    ids=[
        *("plain", "prodigy", "doccano", "doccano triples", "spacy", "label studio", "last", "dataturks", "cluener"),
        *("spacy json", "label first", "azure", "offsets", "bigbio"),
    ],
)
def test_places_in_a_text_become_tags_of_its_words(row: Any, tmp_path: Path) -> None:
    assert read(tmp_path / "a.json", json.dumps([row])) == [(WORDS, TAGS)]


@pytest.mark.parametrize("place", [{"from": 0, "to": 3, "label": "PER"}, {"offsets": [[0, 2], [3, 5]], "type": "PER"}])
def test_places_of_an_unknown_form_are_named(place: dict[str, Any], tmp_path: Path) -> None:
    with refuses(DataError, "bad-span", at="entities"):
        read(tmp_path / "a.json", json.dumps([{"text": TEXT, "entities": [place]}]))


def test_pairs_of_text_and_places_may_stand_in_lines(tmp_path: Path) -> None:
    pairs = [[TEXT, {"entities": PLACES}], ["nothing here", {"entities": []}]]
    expected = [(WORDS, TAGS), (("nothing", "here"), ("O", "O"))]
    assert read(tmp_path / "a.jsonl", "\n".join(map(json.dumps, pairs))) == expected
    assert read(tmp_path / "a.json", json.dumps(pairs, indent=1)) == expected
    assert (
        read(tmp_path / "b.json", json.dumps({"classes": ["PER", "DATE"], "annotations": [*pairs, None]})) == expected
    )


def test_the_full_export_of_label_studio_is_read_and_texts_without_annotation_are_left_out(tmp_path: Path) -> None:
    places = [
        {"type": "labels", "from_name": "label", "value": {"start": a, "end": b, "text": TEXT[a:b], "labels": [kind]}}
        for a, b, kind in PLACES
    ]
    done = {"was_cancelled": False, "result": [*places, {"type": "choices", "value": {"choices": ["good"]}}]}
    tasks = [
        {"id": 7, "data": {"text": TEXT}, "annotations": [{"was_cancelled": True, "result": []}, done, done]},
        {"id": 8, "data": {"text": "not annotated yet"}, "annotations": []},
        {"id": 9, "data": {"text": "nothing here"}, "annotations": [{"result": []}]},
    ]
    (tmp_path / "a.json").write_text(json.dumps(tasks))
    dataset = read_dataset("tags", tmp_path / "a.json", TableOptions(dev_share=0.0))
    assert [(one.id, one.words, one.label) for one in dataset.train] == [
        ("7", WORDS, TAGS),
        ("9", ("nothing", "here"), ("O", "O")),
    ]
    assert "a.json: 1 texts without an annotation were skipped" in dataset.notes
    assert "a.json: 1 texts have several annotations; the first one is used" in dataset.notes


WORD_ROWS = [f"{n},{word},{n % 3}" for n in range(9) for word in ("Ada,B-P", f"w{n},O")]
PLACE_ROWS = [{"text": f"Ada {n}", "entities": [[0, 3, "PER"]], "by": n % 3} for n in range(9)]
GROUPED = {
    "places": ("a.jsonl", [json.dumps(row) for row in PLACE_ROWS]),
    "words": ("a.csv", ["sentence_id,word,tag,by", *WORD_ROWS]),
    "sentences": ("b.csv", ["tokens,tags,by", *(f"Ada w{n},B-P O,{n % 3}" for n in range(9))]),
}


@pytest.mark.parametrize("layout", GROUPED)
def test_sentences_of_a_group_are_held_out_together_in_every_layout(layout: str, tmp_path: Path) -> None:
    name, lines = GROUPED[layout]
    (tmp_path / name).write_text("\n".join(lines))
    dataset = read_dataset("tags", tmp_path / name, TableOptions(group="by", dev_share=0.3))
    groups = [{one.group for one in rows} for rows in (dataset.train, dataset.dev["dev"])]
    assert (len(dataset.dev["dev"]), groups[0] & groups[1], groups[0] | groups[1]) == (3, set(), {"0", "1", "2"})


def test_a_group_is_refused_where_columns_have_no_names(tmp_path: Path) -> None:
    with refuses(ConfigError, "unknown-column"):
        read(tmp_path / "a.conll", "Ada B-P\nran O\n\n", group="by")


def test_places_are_read_from_a_cell_of_a_csv_too(tmp_path: Path) -> None:
    rows = f'text,entities\n"{TEXT}","{PLACES}"\nnothing here,[]\n'
    assert read(tmp_path / "a.csv", rows) == [(WORDS, TAGS), (("nothing", "here"), ("O", "O"))]


def test_words_are_found_in_any_script() -> None:
    text = "叶老桂a-1 naïve 10\xa0km नमस्ते"
    words = [text[word.start : word.end] for word in find_words(text)]
    assert words == ["叶", "老", "桂", "a", "-", "1", "naïve", "10", "km", "नमस्ते"]


WRONG = [
    {"text": "Ada met Ada", "entities": [{"start": 3, "end": 6, "label": "PER", "text": "Ada"}]},
    {"text": "Ada met Ada", "entities": [{"start": 0, "end": 3, "label": "PER"}]},
]


def test_a_misplaced_name_is_refused_skipped_or_fixed(tmp_path: Path) -> None:
    content = "\n".join(map(json.dumps, WRONG))
    with refuses(DataError, "misplaced-answer", at="a.jsonl:1"):
        read(tmp_path / "a.jsonl", content)
    assert [tags for _, tags in read(tmp_path / "a.jsonl", content, on_error="skip")] == [("B-PER", "O", "O")]
    fixed = [tags for _, tags in read(tmp_path / "a.jsonl", content, on_error="fix")]
    assert fixed == [("B-PER", "O", "O"), ("B-PER", "O", "O")]
    notes = read_dataset("tags", tmp_path / "a.jsonl", TableOptions(dev_share=0.0, on_error="fix")).notes
    assert "a.jsonl: 1 wrong positions were fixed" in notes


def test_names_that_overlap_are_refused_or_the_longer_is_kept(tmp_path: Path) -> None:
    content = json.dumps({"text": "New York City", "entities": [[0, 8, "LOC"], [0, 13, "GPE"]]})
    with refuses(DataError, "overlapping-spans"):
        read(tmp_path / "a.jsonl", content)
    assert read(tmp_path / "a.jsonl", content, on_error="fix")[0][1] == ("B-GPE", "I-GPE", "I-GPE")


KAGGLE = """Sentence #,Word,POS,Tag
Sentence: 1,Ada,NNP,B-per
,met,VBD,O
,"1,000",CD,O
Sentence: 2,None,NN,O
"""


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", KAGGLE), ("a.tsv", KAGGLE.replace('"1,000"', "1.000").replace(",", "\t").replace("1.000", "1,000"))],
)
def test_a_word_in_each_row_is_joined_to_sentences(name: str, content: str, tmp_path: Path) -> None:
    assert read(tmp_path / name, content) == [(("Ada", "met", "1,000"), ("B-per", "O", "O")), (("None",), ("O",))]
    assert read(tmp_path / name, content, label="POS")[0][1] == ("NNP", "VBD", "CD")


def test_words_without_sentences_are_refused(tmp_path: Path) -> None:
    with refuses(DataError, "ambiguous-column", at="a.csv"):
        read(tmp_path / "a.csv", "word,tag\nAda,B-PER\nmet,O\n")


@pytest.mark.parametrize(
    "row",
    [
        "\"['Ada', 'met']\",\"['B-PER', 'O']\"",
        "\"['Ada' 'met']\",\"['B-PER' 'O']\"",
        "Ada met,B-PER O",
        'Ada met,"B-PER,O"',
        'Ada met,"B-PER, O"',
    ],
)
def test_a_sentence_in_each_row_of_a_csv_is_a_list_or_has_spaces(row: str, tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv", f"tokens,ner_tags\n{row}\n") == [(("Ada", "met"), ("B-PER", "O"))]


def test_word_slash_tag_is_a_sentence_in_each_line(tmp_path: Path) -> None:
    text = "Ada/B-PER met/O 1/2/O\n\na\xa0b/O London/B-LOC\n"
    assert read(tmp_path / "a.txt", text) == [
        (("Ada", "met", "1/2"), ("B-PER", "O", "O")),
        (("a\xa0b", "London"), ("O", "B-LOC")),
    ]
    with refuses(DataError, "missing-tag", at="a.txt:22"):
        read(tmp_path / "a.txt", "a/O b/B-X\n" * 21 + "lost c/O\n")


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_split_without_any_name_is_read_as_the_training_file_is(split: str, tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(json.dumps({"text": TEXT, "entities": PLACES}))
    (tmp_path / f"{split}.jsonl").write_text(json.dumps({"text": "nothing here, yet", "entities": []}))
    dataset = read_dataset("tags", tmp_path, TableOptions(dev_share=0.0))
    [sentence] = {**dataset.dev, **dataset.test}[split]
    assert (sentence.words, sentence.label) == (("nothing", "here", ",", "yet"), ("O", "O", "O", "O"))


def test_unlabelled_texts_are_cut_into_words_as_the_training_texts_are(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(json.dumps({"text": TEXT, "entities": PLACES}))
    (tmp_path / "test.jsonl").write_text(json.dumps({"text": "nothing here, yet"}))
    [sentence] = read_dataset("tags", tmp_path, TableOptions(dev_share=0.0)).test["test"]
    assert (sentence.words, sentence.label) == (("nothing", "here", ",", "yet"), None)
