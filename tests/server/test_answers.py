"""The server's answers are the predictor's own, for every function."""

from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from litebert.inference.predictor import Predictor
from litebert.tasks.kinds.token_tags import find_spans

TEXTS = ["the cat", "a small dog near the river and the old house", "bird"]


def ask(client: TestClient, function: str, inputs: list[Any], **settings: Any) -> list[Any]:
    response = client.post(f"/v1/{function}", json={"inputs": inputs, **settings})
    assert response.status_code == 200, response.text
    results: list[Any] = response.json()["results"]
    return results


def test_gaps_are_filled_as_in_python(client: TestClient, predictors: dict[str, Predictor]) -> None:
    texts = ["the [MASK] sees a [MASK]", "a [MASK]", "the old cat and the [MASK] near the small tree"]
    results = ask(client, "fill-mask", texts, top_k=3)
    for text, result in zip(texts, results, strict=True):
        expected = predictors["words"].fill_mask(text, top_k=3)
        assert [[guess["piece"] for guess in gap] for gap in result["gaps"]] == [[g.piece for g in e] for e in expected]
        for gap, guesses in zip(result["gaps"], expected, strict=True):
            assert [guess["probability"] for guess in gap] == pytest.approx([g.probability for g in guesses], abs=1e-5)


@pytest.mark.parametrize("name", ["animals", "several", "length"])
def test_texts_and_pairs_are_classified_as_in_python(
    client: TestClient, predictors: dict[str, Predictor], name: str
) -> None:
    inputs = [*TEXTS, ["the cat", "sees the dog"]]
    results = ask(client, "classify", inputs, model=name)
    expected = predictors[name].classify([tuple(i) if isinstance(i, list) else i for i in inputs])  # type: ignore[misc]
    for result, label in zip(results, expected, strict=True):
        assert result["probabilities"] == pytest.approx(label.probabilities, abs=1e-5)
        if isinstance(label.label, float):
            assert result["label"] == pytest.approx(label.label, abs=1e-4)
        else:
            assert result["label"] == (list(label.label) if isinstance(label.label, tuple) else label.label)


def test_words_are_tagged_where_they_stand(client: TestClient, predictors: dict[str, Predictor]) -> None:
    text = "  the old\tcat\n sees the the dog"
    (result, nothing, of_words) = ask(client, "tokens", [text, " ", ["the", "old cat"]])
    assert [text[word["start"] : word["end"]] for word in result["words"]] == text.split()
    assert [word["tag"] for word in result["words"]] == predictors["names"].tag([text.split()])[0]
    assert nothing == {"words": [], "spans": [], "num_cut": 0}
    assert [word["word"] for word in of_words["words"]] == ["the", "old cat"]
    assert [(word["start"], word["end"]) for word in of_words["words"]] == [(0, 3), (4, 11)]


def test_spans_of_tags_are_places_in_the_text(client: TestClient) -> None:
    text = "  😀 the old cat  sees a dog near\tthe river and the house"
    words = ["the old", "cat", "", "sees", "😀", "dog", "near", "the river"]
    of_text, of_words = ask(client, "tokens", [text, words])
    for result, read in ((of_text, text), (of_words, " ".join(words))):
        expected = find_spans([word["tag"] for word in result["words"]])
        assert expected
        assert len(result["spans"]) == len(expected)
        for span, (kind, first, last) in zip(result["spans"], expected, strict=True):
            inside = result["words"][first:last]
            assert (span["kind"], span["start"], span["end"]) == (kind, inside[0]["start"], inside[-1]["end"])
            assert read[span["start"] : span["end"]] == span["text"]
            assert span["score"] == pytest.approx(sum(word["probability"] for word in inside) / len(inside))


def test_an_answer_is_a_stretch_of_the_context(client: TestClient, predictors: dict[str, Predictor]) -> None:
    context = "The 😀 old cat sees the river. " * 12  # longer than a window
    (result,) = ask(client, "answer", [{"question": "who sees", "context": context}])
    expected = predictors["answers"].answer("who sees", context)
    for span in [result["answer"], *result["others"]]:
        assert context[span["start"] : span["end"]] == span["text"]
    assert (result["answer"]["start"], result["answer"]["end"]) == (expected.start, expected.end)
    assert result["answer"]["probability"] == pytest.approx(expected.probability, abs=1e-5)


def test_a_context_that_tokenizes_to_nothing_has_no_answer(client: TestClient) -> None:
    (nothing, something) = ask(
        client, "answer", [{"question": "who", "context": "\x00"}, {"question": "who", "context": "the cat"}]
    )
    assert (nothing["answer"], nothing["others"]) == (None, [])
    assert something["answer"]


def test_a_choice_is_the_most_probable_one(client: TestClient, predictors: dict[str, Predictor]) -> None:
    questions = [("the cat", "it sees _", ["a dog", "a bird", "trees"]), ("", "the", ["cat", "river"])]
    results = ask(client, "choose", [dict(zip(("context", "question", "choices"), q, strict=True)) for q in questions])
    for result, question in zip(results, questions, strict=True):
        expected = predictors["choices"].choose(*question)
        assert (result["number"], result["text"]) == (expected.number, expected.text)
        assert result["probabilities"] == pytest.approx(expected.probabilities, abs=1e-5)


def test_the_order_of_two_texts_is_judged_as_in_python(client: TestClient, predictors: dict[str, Predictor]) -> None:
    pairs = [("the cat", "a dog"), ("a dog near the old house and the river", "the cat"), ("", "a")]
    results = ask(client, "order", list(pairs))
    expected = [predictors["words"].order(*pair) for pair in pairs]
    assert [result["probability"] for result in results] == pytest.approx(expected, abs=1e-5)


def test_vectors_are_those_of_python(client: TestClient, predictors: dict[str, Predictor]) -> None:
    for normalize in (True, False):
        results = ask(client, "embed", TEXTS, normalize=normalize)
        vectors = np.array([result["vector"] for result in results])
        np.testing.assert_allclose(vectors, predictors["words"].embed(TEXTS, normalize=normalize), rtol=1e-4, atol=1e-6)


def test_each_model_says_what_it_can_do(client: TestClient) -> None:
    functions = {model["name"]: set(model["functions"]) for model in client.get("/v1/models").json()["models"]}
    always = {"embed", "embeddings", "read"}
    assert functions == {
        "words": {"fill-mask", "order", *always},
        "animals": {"classify", "rerank", *always},
        "pairs": {"classify", "rerank", *always},
        "early": {"classify", *always},
        "several": {"classify", "rerank", *always},
        "length": {"classify", "rerank", *always},
        "names": {"tokens", *always},
        "kinds": {"tokens", *always},
        "answers": {"answer", *always},
        "choices": {"choose", *always},
    }


def test_results_say_how_many_tokens_were_not_read(client: TestClient) -> None:
    long = "the " * 60  # the models read 48 tokens, the pre-trained one 64
    assert [one["num_cut"] for one in ask(client, "classify", ["the cat", long], model="animals")] == [0, 14]
    assert [one["num_cut"] for one in ask(client, "embed", ["the cat", long * 2], model="words")] == [0, 58]
    assert [one["num_cut"] for one in ask(client, "order", [["the", "cat"], [long, long]], model="words")] == [0, 59]
    asked = [{"question": question, "context": long} for question in ("who", "the " * 20)]
    assert [one["num_cut"] for one in ask(client, "answer", asked)] == [0, 4]
    chosen = [{"context": context, "choices": ["a", "the"]} for context in ("the", long)]
    assert [one["num_cut"] for one in ask(client, "choose", chosen)] == [0, 16]
    assert [one["num_cut"] for one in ask(client, "tokens", [long, ["the", "a" * 60]], model="names")] == [0, 14]
