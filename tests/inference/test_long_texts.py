"""A text that is longer than the model reads is read in windows, all of it, and their outputs are pooled."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refuses

import litebert
from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.core.errors import ConfigError, TextsCutWarning
from litebert.inference.long_texts import encode_windows
from litebert.model.model import build_model
from litebert.tasks.catalog import task_facts
from litebert.tasks.kinds.classification import Classification, MultiLabel, Regression
from litebert.tasks.kinds.token_tags import TokenTags
from litebert.tasks.texts import TextExample
from litebert.text.tokenizer import Tokenizer

LENGTH = 16
SHORT, LONG = "the cat", " ".join(["the cat a dog"] * 12)
TASKS: dict[str, Any] = {
    "label": Classification("label", ("cat", "dog", "none")),
    "labels": MultiLabel("labels", ("cat", "dog")),
    "number": Regression("number"),
    "tags": TokenTags("tags", ("O", "B-CAT")),
}


@pytest.fixture
def load(tmp_path: Path, tiny_tokenizer: Tokenizer, tiny_checkpoint: Path) -> Callable[[str], litebert.Predictor]:
    config = load_checkpoint(tiny_checkpoint).config

    def load_model(name: str) -> litebert.Predictor:
        content = CheckpointContent(step=0, task=task_facts(TASKS[name], max_length=LENGTH))
        save_checkpoint(tmp_path / name, build_model(config, TASKS[name].heads), tiny_tokenizer, content)
        return litebert.load(tmp_path / name)

    return load_model


def list_windows(model: litebert.Predictor, text: str) -> list[list[int]]:
    (windows,) = encode_windows([TextExample("0", text)], model.tokenizer, model.form())
    return [group.sequences[0].token_ids.tolist() for group in windows]


@pytest.mark.parametrize("num_words", [1, 13, 14, 15, 16, 24, 25, 40, 77])
def test_every_token_is_in_a_window_and_windows_overlap(
    num_words: int, load: Callable[[str], litebert.Predictor]
) -> None:
    model = load("label")
    text = " ".join(["the", "cat", "a", "dog", "one"][n % 5] for n in range(num_words))
    ids = list(model.tokenizer.encode(text))
    windows = list_windows(model, text)
    assert all(len(window) <= LENGTH for window in windows)
    read = [window[1:-1] for window in windows]
    assert read[0] == ids[: LENGTH - 2]
    assert read[-1] == ids[-(LENGTH - 2) :]
    room = LENGTH - 2
    assert len(windows) >= -(-len(ids) // room)
    joined = read[0]  # by their overlaps, of a quarter at least, the text comes out again
    for window in read[1:]:
        overlap = next(
            n for n in range(room, 2, -1) if joined[-n:] == window[:n] and room - n <= len(ids) - len(joined)
        )
        joined = joined + window[overlap:]
    assert len(joined) <= len(ids)


@pytest.mark.parametrize("name", ["label", "labels", "number"])
def test_the_answers_of_windows_are_pooled(name: str, load: Callable[[str], litebert.Predictor]) -> None:
    model = load(name)
    examples = [TextExample("0", SHORT), TextExample("1", LONG)]
    with pytest.warns(TextsCutWarning):
        truncated = model.predict(examples)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is cut
        found = {how: model.with_long("windows", how).predict(examples) for how in ("mean", "max", "first")}
    for outputs in found.values():
        np.testing.assert_allclose(outputs[0], truncated[0], atol=1e-6)
    np.testing.assert_allclose(found["first"][1], truncated[1], atol=1e-6)
    (windows,) = encode_windows(examples[1:], model.tokenizer, model.form())
    each = np.array(model.session.predict(model.task, windows))
    np.testing.assert_allclose(found["mean"][1], each.mean(0), atol=1e-5)
    highest = each.max(0) / (each.max(0).sum() if name == "label" else 1)
    np.testing.assert_allclose(found["max"][1], highest, atol=1e-5)


def test_the_vector_of_a_long_text_is_that_of_its_windows(load: Callable[[str], litebert.Predictor]) -> None:
    model = load("label")
    reading = model.with_long("windows")
    windows = torch.tensor(list_windows(model, LONG))
    with torch.no_grad():
        expected = model.model.encoder(windows).hidden.mean(1).mean(0).numpy()
    np.testing.assert_allclose(reading.embed([LONG], normalize=False)[0], expected, atol=1e-5)
    assert float(np.linalg.norm(reading.embed([LONG])[0])) == pytest.approx(1)


def test_a_pair_is_truncated_with_a_warning(load: Callable[[str], litebert.Predictor]) -> None:
    model = load("label").with_long("windows")
    with pytest.warns(TextsCutWarning, match="1 of 2 texts"):
        model.classify([(SHORT, LONG), LONG])


def test_what_windows_cannot_do_is_refused(load: Callable[[str], litebert.Predictor]) -> None:
    with refuses(ConfigError, "unsupported-task", at="tags"):
        load("tags").with_long("windows")
    with refuses(ConfigError, "unknown-value", at="median"):
        load("label").with_long("windows", "median")  # type: ignore[arg-type]
