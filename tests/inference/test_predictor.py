"""`litebert.load`: a model is asked in Python, and says so if it cannot answer."""

from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refuses
from small_tasks import invent_rows, split_pairs, tag_words, write_rows

import litebert
from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.core.errors import ConfigError, DataError
from litebert.finetuning.finetune import finetune
from litebert.finetuning.recipe import build_finetune_recipe
from litebert.finetuning.run_folder import Job
from litebert.inference.predictor import Predictor
from litebert.model.config import HeadSpec
from litebert.model.model import build_model
from litebert.tasks.catalog import read_dataset
from litebert.tasks.predictions import predictions_file, read_predictions


def tune(checkpoint: Path, task: str, folder: Path, rows: list[dict[str, object]]) -> Path:
    recipe = build_finetune_recipe({"train": {"steps": 4, "evaluations": 1, "batch_size": 8}})
    dataset = read_dataset(task, write_rows(folder / "data", rows))
    finetune(Job(load_checkpoint(checkpoint), dataset, recipe), folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def classifier(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tune(tiny_checkpoint, "classification", tmp_path_factory.mktemp("classifier"), split_pairs(invent_rows()))


def test_answers_are_those_that_the_run_wrote(classifier: Path) -> None:
    written = read_predictions(predictions_file(classifier, "dev"))
    pairs = [(row["text_a"], row["text_b"]) for row in split_pairs(invent_rows())]
    predictor = litebert.load(classifier)
    assert repr(predictor) == f"<Predictor '{predictor.checkpoint.path}': fine-tuned for classification, torch>"
    answers = predictor.classify(pairs)
    assert [answer.label for answer in answers] == [one.answer for one in written]
    for answer, one in zip(answers, written, strict=True):
        assert list(answer.probabilities) == ["bird", "cat", "dog"]
        assert list(answer.probabilities.values()) == pytest.approx(one.output, abs=1e-5)


def test_numbers_sets_of_labels_and_tags_are_answered(tiny_checkpoint: Path, tmp_path: Path) -> None:
    numbers = litebert.load(
        tune(tiny_checkpoint, "regression", tmp_path / "a", invent_rows(lambda w: 1000.0 + len(w)))
    ).classify(["a cat", "the dog near the river"])
    assert all(990 < answer.label < 1020 and not answer.probabilities for answer in numbers)
    many = tune(tiny_checkpoint, "multi-label", tmp_path / "b", invent_rows(lambda w: [x for x in w if len(x) > 3]))
    (answer,) = litebert.load(many).classify(["a cat"])
    assert answer.label == tuple(label for label, p in answer.probabilities.items() if p > 0.5)
    tagger = litebert.load(tune(tiny_checkpoint, "tags", tmp_path / "c", tag_words(invent_rows())))
    assert [len(tags) for tags in tagger.tag([["a", "cat"], ["the", "old", "dog", "sees"]])] == [2, 4]


def test_a_vector_does_not_depend_on_the_other_texts_of_its_batch(tiny_checkpoint: Path) -> None:
    predictor = litebert.load(tiny_checkpoint)
    texts = ["a cat", "the dog near the river and the house", ("the bird", "a tree")]
    vectors = predictor.embed(texts)
    assert vectors.shape == (3, 32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    for number, text in enumerate(texts):
        np.testing.assert_allclose(predictor.embed([text])[0], vectors[number], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("num_classes", [2, 3])
def test_order_is_how_sure_the_sentence_head_is_of_order_against_exchange(
    num_classes: int, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    source = load_checkpoint(tiny_checkpoint)
    with_head = build_model(source.config, [HeadSpec("sentence", num_labels=num_classes)], seed=3)
    save_checkpoint(tmp_path / "model", with_head, source.load_tokenizer(), CheckpointContent(step=0))
    predictor = litebert.load(tmp_path / "model")
    tokenizer, model = predictor.tokenizer, predictor.model
    first, second = tokenizer.encode("the cat"), tokenizer.encode("a dog")
    ids = torch.tensor([[tokenizer.cls_id, *first, tokenizer.sep_id, *second, tokenizer.sep_id]])
    segments = torch.tensor([[0] * (len(first) + 2) + [1] * (len(second) + 1)])
    with torch.no_grad():
        logits = model.heads["sentence"](model.encoder.pool_sequences(ids, segments, None))[0]
    assert logits.shape == (num_classes,)
    expected = (logits[0] - logits[1]).sigmoid()  # whatever the third says: of another document
    assert predictor.order("the cat", "a dog") == pytest.approx(float(expected), abs=1e-6)


def test_masks_are_filled(tiny_checkpoint: Path) -> None:
    ((first, *_),) = litebert.load(tiny_checkpoint).fill_mask("the [MASK] sees", top_k=3)
    assert 0 < first.probability <= 1


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda p: p.tag([["a"]]), "wrong-task"),
        (lambda p: p.fill_mask("a [MASK]"), "no-head"),
        (lambda p: p.order("a", "b"), "no-head"),
        (lambda p: p.classify("a cat"), "wrong-input"),
    ],
)
def test_a_question_that_a_model_cannot_answer_is_refused(ask: object, code: str, classifier: Path) -> None:
    predictor: Predictor = litebert.load(classifier)
    with refuses(ConfigError, code):
        ask(predictor)  # type: ignore[operator]


def test_a_model_that_was_only_pretrained_does_not_classify(tiny_checkpoint: Path) -> None:
    with refuses(ConfigError, "no-task"):
        litebert.load(tiny_checkpoint).classify(["a cat"])


@pytest.mark.parametrize("text", [None, 3, ("a", "b", "c"), ("a", None), ()])
def test_what_is_neither_a_text_nor_a_pair_is_refused(text: object, classifier: Path) -> None:
    with refuses(ConfigError, "wrong-input"):
        litebert.load(classifier).classify([("a", "b"), text])  # type: ignore[list-item]


def test_a_model_for_pairs_refuses_single_texts(classifier: Path) -> None:
    with refuses(DataError, "wrong-input"):
        litebert.load(classifier).classify(["a cat"])


def test_more_guesses_than_pieces_are_refused(tiny_checkpoint: Path) -> None:
    with refuses(ConfigError, "out-of-range"):
        litebert.load(tiny_checkpoint).fill_mask("the [MASK]", top_k=101)


def test_a_sentence_to_tag_is_a_list_of_words(tiny_checkpoint: Path, tmp_path: Path) -> None:
    tagger = litebert.load(tune(tiny_checkpoint, "tags", tmp_path, tag_words(invent_rows())))
    for sentence in ("the cat", ["the", 7], None):
        with refuses(ConfigError, "wrong-input"):
            tagger.tag([sentence])  # type: ignore[list-item]


def test_an_ensemble_that_can_be_interrupted_still_averages_all_members(classifier: Path, tmp_path: Path) -> None:
    """The server asks every model this way."""
    texts = [("a cat", "the dog"), ("the bird", "a tree")]
    ensemble = litebert.load(classifier)
    other = litebert.load(tune(classifier / "model", "classification", tmp_path, split_pairs(invent_rows())))
    ensemble.members = (litebert.load(classifier), other)
    expected = ensemble.classify(texts)
    assert [one.probabilities for one in expected] != [one.probabilities for one in ensemble.members[0].classify(texts)]
    asked: list[bool] = []
    found = ensemble.interruptible(lambda: not asked.append(True)).classify(texts)  # type: ignore[func-returns-value]
    assert found == expected
    assert len(asked) == 2
