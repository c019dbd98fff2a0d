"""Somebody else's fine-tuned model answers as it does at home."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from small_checkpoints import ALBERT, TO_HUGGINGFACE, save

import litebert
from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.interop.convert import ConvertOptions, convert
from litebert.model.config import HeadSpec
from litebert.model.model import build_model
from litebert.model.sharing import Sharing
from litebert.tasks.catalog import task_facts
from litebert.tasks.finetuning import FinetuneTask
from litebert.tasks.kinds.classification import Classification, MultiLabel, Regression
from litebert.tasks.kinds.token_tags import TokenTags
from litebert.tasks.squad.task import SpanTask
from litebert.text.tokenizer import Tokenizer

NAMES = {"0": "no", "1": "perhaps", "2": "yes"}
PAIR = ("the cat sees", "a river likes the dog")


@pytest.fixture
def theirs(tmp_path: Path, tiny_tokenizer: Tokenizer) -> Path:
    """A classifier of transformers with names for its labels."""
    save(tmp_path / "ours", ALBERT, (HeadSpec("classification", 3),), tiny_tokenizer)
    convert(tmp_path / "ours", tmp_path / "theirs", TO_HUGGINGFACE)
    change_config(tmp_path / "theirs", id2label=NAMES, label2id={name: int(i) for i, name in NAMES.items()})
    return tmp_path / "theirs"


def change_config(folder: Path, **values: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | values), "utf-8")


def test_a_classifier_of_transformers_gives_its_own_labels_and_probabilities(theirs: Path) -> None:
    pipeline = transformers.pipeline("text-classification", model=str(theirs), top_k=None)
    scores = {answer["label"]: answer["score"] for answer in pipeline({"text": PAIR[0], "text_pair": PAIR[1]})}
    (answer,) = litebert.load(theirs).classify([PAIR])
    assert answer.label == max(scores, key=scores.__getitem__)
    assert answer.probabilities == pytest.approx(scores, abs=1e-5)


def test_it_keeps_them_as_a_checkpoint_of_ours_and_back(theirs: Path, tmp_path: Path) -> None:
    convert(theirs, tmp_path / "kept", ConvertOptions())
    convert(tmp_path / "kept", tmp_path / "back", TO_HUGGINGFACE)
    assert litebert.load(tmp_path / "kept").classify([PAIR]) == litebert.load(theirs).classify([PAIR])
    assert json.loads((tmp_path / "back" / "config.json").read_text("utf-8"))["id2label"] == NAMES


def test_single_label_and_multi_label_classifiers_are_distinguished(theirs: Path) -> None:
    change_config(theirs, problem_type="multi_label_classification")
    predictor = litebert.load(theirs)
    (answer,) = predictor.classify([PAIR])
    ids = transformers.AutoTokenizer.from_pretrained(theirs)(*PAIR, return_tensors="pt")
    with torch.no_grad():
        logits = transformers.AutoModelForSequenceClassification.from_pretrained(theirs)(**ids).logits[0]
    assert list(answer.probabilities.values()) == pytest.approx(logits.sigmoid().tolist(), abs=1e-5)


def test_labels_without_names_are_numbered(theirs: Path) -> None:
    change_config(theirs, id2label={"0": "no", "7": "yes", "8": "perhaps"})
    (answer,) = litebert.load(theirs).classify(["the cat sees"])
    assert list(answer.probabilities) == ["LABEL_0", "LABEL_1", "LABEL_2"]


@pytest.mark.parametrize(("kind", "task"), [("tokens", "tags"), ("span", "spans"), ("choice", "choices")])
def test_other_heads_have_their_tasks(kind: Any, task: str, tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    save(tmp_path / "ours", ALBERT, (HeadSpec(kind),), tiny_tokenizer)
    convert(tmp_path / "ours", tmp_path / "theirs", TO_HUGGINGFACE)
    assert (litebert.load_checkpoint(tmp_path / "theirs").task or {})["kind"] == task


def test_two_labels_of_one_name_are_both_kept(theirs: Path) -> None:
    change_config(theirs, id2label={"0": "no", "1": "yes", "2": "no"})
    (answer,) = litebert.load(theirs).classify(["the cat sees"])
    assert list(answer.probabilities) == ["no (0)", "yes (1)", "no (2)"]
    assert sum(answer.probabilities.values()) == pytest.approx(1, abs=1e-5)


TASKS: dict[str, FinetuneTask] = {
    "classification": Classification("classification", ("no", "perhaps", "yes")),
    "multi-label": MultiLabel("multi-label", ("animal", "place", "old")),
    "regression": Regression("regression", low=0.0, high=9000.0, center=5000.0, scale=300.0),
    "tags": TokenTags("tags", ("B-ANIMAL", "I-ANIMAL", "O")),
}


def export(
    task: FinetuneTask, sharing: Sharing, tmp_path: Path, tokenizer: Tokenizer
) -> tuple[litebert.Predictor, str]:
    """Our predictor of a task, and the folder that transformers gets of the same model."""
    config = replace(ALBERT, sharing=sharing)
    model = build_model(config, task.heads)
    content = CheckpointContent(step=1, task=task_facts(task, max_length=config.max_positions))
    save_checkpoint(tmp_path / "ours", model, tokenizer, content)
    convert(tmp_path / "ours", tmp_path / "theirs", TO_HUGGINGFACE)
    plain = replace(task, center=0.0, scale=1.0) if isinstance(task, Regression) else task
    assert litebert.load(tmp_path / "theirs").task == plain
    return litebert.load(tmp_path / "ours"), str(tmp_path / "theirs")


@pytest.mark.parametrize("sharing", ["all", "attention", "ffn"])
@pytest.mark.parametrize("name", ["classification", "multi-label", "regression"])
def test_text_classification_of_transformers_answers_as_our_predictor_whatever_is_shared(
    name: str, sharing: Sharing, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    predictor, folder = export(TASKS[name], sharing, tmp_path, tiny_tokenizer)
    answers = transformers.pipeline("text-classification", model=folder, top_k=None)({"text": PAIR[0]})
    (ours,) = predictor.classify([PAIR[0]])
    if name == "regression":
        assert [answer["score"] for answer in answers] == pytest.approx([ours.label], rel=1e-5)
        assert abs(answers[0]["score"] - 5000) < 900
    else:
        assert {answer["label"]: answer["score"] for answer in answers} == pytest.approx(ours.probabilities, abs=1e-5)


def test_whether_there_is_an_answer_is_decided_there_and_back_alike(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    task = SpanTask("squad-v2-simple", "2.0", "span", max_question_length=16, threshold=-50.0)
    ours, folder = export(task, "all", tmp_path, tiny_tokenizer)
    question = ("the dog finds", "the old cat sees a river near the house")
    assert ours.answer(*question).text == litebert.load(folder).answer(*question).text == ""


@pytest.mark.parametrize("sharing", ["all", "attention", "ffn"])
def test_token_classification_of_transformers_answers_as_our_predictor(
    sharing: Sharing, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    predictor, folder = export(TASKS["tags"], sharing, tmp_path, tiny_tokenizer)
    words = PAIR[1].split()
    pipeline = transformers.pipeline("token-classification", model=folder, ignore_labels=[])
    starts = [sum(len(word) + 1 for word in words[:number]) for number in range(len(words))]
    theirs = {answer["start"]: answer["entity"] for answer in pipeline(PAIR[1])}  # ours: of each word's first piece
    assert predictor.tag([words]) == [[theirs[start] for start in starts]]


@pytest.mark.parametrize("name", ["classification", "multi-label", "regression", "tags"])
def test_texts_are_cut_and_split_into_words_there_and_back_alike(
    name: str, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    task = replace(TASKS[name], splits_words=True) if isinstance(TASKS[name], TokenTags) else TASKS[name]  # type: ignore[type-var]
    content = CheckpointContent(step=1, task=task_facts(task, max_length=24))
    save_checkpoint(tmp_path / "ours", build_model(ALBERT, task.heads), tiny_tokenizer, content)
    convert(tmp_path / "ours", tmp_path / "theirs", TO_HUGGINGFACE)
    convert(tmp_path / "theirs", tmp_path / "back")
    for folder in ("ours", "theirs"):  # transformers opens both
        assert transformers.AutoTokenizer.from_pretrained(tmp_path / folder).model_max_length == 24
    for folder in ("theirs", "back"):
        predictor = litebert.load(tmp_path / folder)
        assert predictor.form().max_length == 24
        assert getattr(predictor.task, "splits_words", False) == (name == "tags")


def test_words_of_a_tagger_with_other_labels_are_not_kept(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    _, folder = export(replace(TASKS["tags"], splits_words=True), "all", tmp_path, tiny_tokenizer)  # type: ignore[type-var]
    change_config(Path(folder), id2label={"0": "B-X", "1": "I-X", "2": "O"})
    assert litebert.load(folder).task == TokenTags("tags", ("B-X", "I-X", "O"))
