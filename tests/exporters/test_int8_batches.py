"""In eight bits, too, an answer does not depend on the other texts of its batch."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_configs import TINY

import litebert
from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.exporters.int8 import export_int8
from litebert.graph.parts import Parts
from litebert.graph.precision import FloatArray, quantize_columns
from litebert.graph.writer import FLOAT
from litebert.inference.engines.graphs import EngineName
from litebert.inference.export_folder import EXPORT_FILE
from litebert.model.model import build_model
from litebert.tasks.catalog import task_facts
from litebert.tasks.finetuning import FinetuneTask
from litebert.tasks.kinds.choices import ChoiceExample, Choices
from litebert.tasks.kinds.classification import Classification, MultiLabel, Regression
from litebert.tasks.kinds.token_tags import TaggedWords, TokenTags
from litebert.tasks.squad.reading import Question
from litebert.tasks.squad.task import SpanTask
from litebert.tasks.texts import TextExample
from litebert.text.tokenizer import Tokenizer

pytest.importorskip("onnxruntime")

TEXTS = ["a cat", "the dog near the river and the house", "tree", "the old house below a large tree " * 5, "a new cat"]
LABELS = ("cat", "dog", "bird")
TASKS: dict[str, tuple[FinetuneTask, Callable[[str], Any]]] = {
    "classification": (Classification("classification", LABELS), lambda text: TextExample("", text)),
    "exits": (Classification("classification", LABELS, exits=True), lambda text: TextExample("", text)),
    "multi-label": (MultiLabel("multi-label", LABELS), lambda text: TextExample("", text)),
    "regression": (Regression("regression"), lambda text: TextExample("", text)),
    "tags": (TokenTags("tags", ("O", "B-CAT", "I-CAT")), lambda text: TaggedWords("", tuple(text.split()))),
    "spans": (
        SpanTask("squad-v1", max_question_length=8, stride=8),
        lambda text: Question("", "who sees the dog", text),
    ),
    "conditional": (
        SpanTask("squad-v2", "2.0", "conditional_span", max_question_length=8, stride=8),
        lambda text: Question("", "who sees the dog", text),
    ),
    "choices": (
        Choices("choice", max_choice_length=8),
        lambda text: ChoiceExample("", text, "the cat sees _", ("a dog", "the old house", text)),
    ),
}  # fmt: skip


def save_untrained(folder: Path, task: FinetuneTask, tokenizer: Tokenizer) -> Path:
    config = replace(TINY, vocab_size=tokenizer.vocab_size, num_layers=3, initializer_range=0.3)  # fmt: skip
    content = CheckpointContent(step=0, task=task_facts(task, max_length=48))
    save_checkpoint(folder, build_model(config, task.heads, seed=2), tokenizer, content)
    return folder


def list_numbers(output: Any) -> list[float]:
    """All numbers of an output, in order; texts are compared by where they stand."""
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, list | tuple | np.ndarray):
        return [number for one in output for number in list_numbers(one)]
    return [] if isinstance(output, str) else [float(output)]


def check_alone_as_together(
    export: Path, ask: Callable[[litebert.Predictor, list[str]], Any], engine: EngineName = "onnx"
) -> None:
    predictor = litebert.load(export, engine=engine, threads=1)
    together = ask(predictor, TEXTS)
    for text, output in zip(TEXTS, together, strict=True):
        [alone] = ask(predictor, [text])
        assert list_numbers(alone) == pytest.approx(list_numbers(output), abs=1e-5)


@pytest.mark.parametrize("name", TASKS)
def test_int8_answers_a_text_alone_as_in_a_batch(name: str, tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    task, build_example = TASKS[name]
    model = save_untrained(tmp_path / "model", task, tiny_tokenizer)
    export_int8(load_checkpoint(model), tmp_path / "out")
    check_alone_as_together(tmp_path / "out", lambda model, texts: model.predict([build_example(t) for t in texts]))


@pytest.mark.parametrize(
    ("head", "ask"),
    [
        ("mlm", lambda model, texts: model.fill_mask_batch([f"the [MASK] {text}" for text in texts])),
        ("sentence", lambda model, texts: model.order_batch([("a dog", text) for text in texts])),
        ("embedding", lambda model, texts: model.embed(texts)),
    ],
)
def test_int8_of_a_pretrained_model_answers_a_text_alone_as_in_a_batch(
    head: str, ask: Callable[[litebert.Predictor, list[str]], Any], tiny_checkpoint: Path, tmp_path: Path
) -> None:
    export_int8(load_checkpoint(tiny_checkpoint), tmp_path / "out", head=head)
    check_alone_as_together(tmp_path / "out", ask)


def test_openvino_answers_a_text_in_int8_alone_as_in_a_batch(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    pytest.importorskip("openvino")
    task, build_example = TASKS["classification"]
    export_int8(load_checkpoint(save_untrained(tmp_path / "model", task, tiny_tokenizer)), tmp_path / "out")
    ask = lambda model, texts: model.predict([build_example(t) for t in texts])  # noqa: E731
    check_alone_as_together(tmp_path / "out", ask, "openvino")


def multiply_as_before(parts: Parts, x: str, name: str, matrix: FloatArray, zero: int) -> str:
    """How litebert 0.1.0 wrote a matrix in eight bits: the whole batch is rounded by one scale."""
    del zero
    graph = parts.graph
    if not graph.has(name):
        values, scales = quantize_columns(matrix)
        graph.store(name, values)
        graph.store(f"{name}.scale", scales)
        graph.store(f"{name}.zero", np.zeros(len(scales), dtype=np.int8))
    rounded, scale, stored_zero = graph.call_many("DynamicQuantizeLinear", x, count=3)
    product = graph.call("MatMulInteger", rounded, name, stored_zero, f"{name}.zero")
    scale = graph.call("Mul", scale, f"{name}.scale")
    return graph.call("Mul", graph.call("Cast", product, to=FLOAT), scale)


@pytest.mark.parametrize("name", ["classification", "tags", "choices"])
def test_an_int8_export_of_before_answers_each_text_alone(
    name: str, tmp_path: Path, tiny_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, build_example = TASKS[name]
    model = save_untrained(tmp_path / "model", task, tiny_tokenizer)
    monkeypatch.setattr(Parts, "_multiply_bytes", multiply_as_before)
    export_int8(load_checkpoint(model), tmp_path / "out")
    facts = json.loads((tmp_path / "out" / EXPORT_FILE).read_text())
    del facts["activations"], facts["checksum"]
    (tmp_path / "out" / EXPORT_FILE).write_text(json.dumps(facts))
    check_alone_as_together(tmp_path / "out", lambda model, texts: model.predict([build_example(t) for t in texts]))
