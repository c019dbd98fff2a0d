"""Eight bits are measured against float on the user's own file; what spoils answers stays in float or is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from refusals import refuses
from small_tasks import invent_rows

import litebert
from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.cli.main import _run
from litebert.core.errors import DataError
from litebert.exporters import int8
from litebert.exporters.dev_accuracy import Judge, Verdict
from litebert.exporters.int8 import Int8Options, export_int8
from litebert.graph.precision import Precision
from litebert.model.config import ModelConfig
from litebert.model.model import Model, build_model
from litebert.tasks.catalog import read_dataset, task_facts
from litebert.tasks.files.glue import GLUE, build_glue_task
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.finetuning import FinetuneTask
from litebert.tasks.kinds.classification import Classification, Regression
from litebert.tasks.seen_texts import write_seen_texts
from litebert.text.tokenizer import Tokenizer

pytest.importorskip("onnxruntime")

TASK = Classification("classification", ("cat", "dog", "bird"))


def build_classifier(
    folder: Path, tokenizer: Tokenizer, ffn_size: int, change: Callable[[Model], None], task: FinetuneTask = TASK
) -> Path:
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, embedding_size=32, hidden_size=32, ffn_size=ffn_size, num_layers=3,
        num_heads=2, max_positions=64, initializer_range=0.3, activation="relu",
    )  # fmt: skip
    model = build_model(config, task.heads, seed=5)
    change(model)
    content = CheckpointContent(step=0, task=task_facts(task, max_length=48))
    save_checkpoint(folder / "model", model, tokenizer, content)
    return folder / "model"


def write_own_answers(folder: Path, checkpoint: Path) -> Path:
    """A dev file on which the model in float is always right."""
    texts = [row["text"] for row in invent_rows(count=200)]
    rows = zip(texts, litebert.load(checkpoint).classify(texts), strict=True)
    (folder / "dev.jsonl").write_text("".join(json.dumps({"text": t, "label": a.label}) + "\n" for t, a in rows))
    return folder / "dev.jsonl"


@torch.no_grad()
def add_outlier(model: Model) -> None:
    """The same function with one feed-forward unit a thousand times as large: bytes for all lose the others."""
    ffn = model.encoder.ffn[0]
    ffn.up.weight[3] *= 1000  # type: ignore[union-attr, operator]
    ffn.down.weight[:, 3] /= 1000  # type: ignore[union-attr, operator]


def test_what_int8_costs_is_measured_and_written_down(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    model = build_classifier(tmp_path, tiny_tokenizer, 64, lambda _: None)
    dev = write_own_answers(tmp_path, model)
    done = export_int8(load_checkpoint(model), tmp_path / "out", Int8Options(dev, max_drop=5.0))
    assert done.accuracy is not None
    assert (done.accuracy.metric, done.accuracy.num_examples, done.accuracy.float_score) == ("accuracy", 200, 100.0)
    assert done.accuracy.int8_score == pytest.approx(100 * (1 - done.accuracy.num_changed / 200))
    facts = json.loads((tmp_path / "out" / "export.json").read_text())
    assert facts["accuracy"]["int8_score"] == done.accuracy.int8_score >= 95
    texts = [row["text"] for row in invent_rows(count=200)]
    answers = [a.label for a in litebert.load(tmp_path / "out", threads=1).classify(texts)]
    expected = [a.label for a in litebert.load(model).classify(texts)]
    assert sum(a != b for a, b in zip(answers, expected, strict=True)) == done.accuracy.num_changed


def test_a_sensitive_matrix_stays_in_float(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    model = build_classifier(tmp_path, tiny_tokenizer, 64, add_outlier)
    dev = write_own_answers(tmp_path, model)
    said: list[str] = []
    done = export_int8(load_checkpoint(model), tmp_path / "out", Int8Options(dev, 5.0, said.append))
    assert done.in_float == ("ffn.0.down",)
    columns, first_row, *measurements = said
    assert columns == "columns of dev.jsonl: text = 'text', label = 'label'"
    assert first_row.startswith("first row: ")
    assert len(measurements) == 2
    assert done.accuracy is not None
    assert done.accuracy.drop <= 5


def test_of_the_training_file_the_held_out_rows_are_measured(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    model = build_classifier(tmp_path, tiny_tokenizer, 64, lambda _: None)
    dev = write_own_answers(tmp_path, model)
    dataset = read_dataset("classification", dev, TableOptions(dev_share=0.2))
    write_seen_texts(model, dataset)
    said: list[str] = []
    done = export_int8(load_checkpoint(model), tmp_path / "out", Int8Options(dev, 5.0, said.append))
    assert done.accuracy is not None
    assert done.accuracy.num_examples == len(dataset.dev["dev"])
    assert any("only the" in line and "rows of its dev split are scored" in line for line in said)


def test_a_loss_above_what_is_allowed_is_refused(
    tmp_path: Path, tiny_tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    model = build_classifier(tmp_path, tiny_tokenizer, 2000, add_outlier)  # half of it would be in float
    dev = write_own_answers(tmp_path, model)
    words = ["export", str(model), str(tmp_path / "out"), "--int8", "--max-drop", "2"]
    assert _run([*words, "--dev", str(dev)], debug=False) == 2
    shown = capsys.readouterr()
    assert "answers differ" in shown.out
    assert "error[int8-loses-too-much]" in shown.err
    assert not (tmp_path / "out").exists()
    assert _run(words, debug=False) == 2  # nothing to measure on
    assert "is measured on labelled examples: name a file of them (--dev)" in capsys.readouterr().err
    assert _run(words[:4], debug=False) == 0
    assert "was not measured" in capsys.readouterr().out


@pytest.mark.parametrize("head", ["mlm", "sentence", "embedding"])
def test_a_pretrained_model_is_measured_on_lines_of_text(head: str, tiny_checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("\n".join(row["text"] for row in invent_rows(count=40)))
    done = export_int8(
        load_checkpoint(tiny_checkpoint), tmp_path / "out", Int8Options(tmp_path / "lines.txt", 20.0), head=head
    )
    assert done.accuracy is not None
    assert done.accuracy.num_examples >= 40
    assert abs(done.accuracy.drop) <= 20


def test_a_file_without_labels_cannot_measure(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    model = build_classifier(tmp_path, tiny_tokenizer, 64, lambda _: None)
    (tmp_path / "dev.jsonl").write_text('{"text": "a cat"}\n')
    with pytest.raises(DataError):
        export_int8(load_checkpoint(model), tmp_path / "out", Int8Options(tmp_path / "dev.jsonl"))


@pytest.mark.parametrize("name", [name for name in GLUE if name != "ax"])
def test_a_file_of_a_glue_task_is_scored_as_that_task_is(name: str, tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    task = build_glue_task(name)
    model = build_classifier(tmp_path, tiny_tokenizer, 64, lambda _: None, task)
    texts = [row["text"] for row in invent_rows(count=40)]
    labels = getattr(task, "labels", ("0.5", "2.5", "4"))
    rows = [
        {"text_a": text, "label": labels[n % len(labels)]} | ({"text_b": texts[n - 1]} if task.num_texts == 2 else {})  # type: ignore[attr-defined]
        for n, text in enumerate(texts)
    ]
    (tmp_path / "dev.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = export_int8(load_checkpoint(model), tmp_path / "out", Int8Options(tmp_path / "dev.jsonl", max_drop=100.0))
    assert done.accuracy is not None
    assert (done.accuracy.metric, done.accuracy.num_examples) == (task.metric, 40)
    # numbers are never quite the same in eight bits: those that nearly are do not count as changed
    assert done.accuracy.num_changed < 20


def test_matrices_of_a_regression_are_ranked_by_what_they_cost(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    task = Regression("regression")
    model = build_classifier(tmp_path, tiny_tokenizer, 64, add_outlier, task)
    texts = [row["text"] for row in invent_rows(count=100)]
    rows = zip(texts, litebert.load(model).classify(texts), strict=True)
    (tmp_path / "dev.jsonl").write_text("".join(json.dumps({"text": t, "label": a.label}) + "\n" for t, a in rows))
    said: list[str] = []
    options = Int8Options(tmp_path / "dev.jsonl", 0.5, said.append)
    done = export_int8(load_checkpoint(model), tmp_path / "out", options)
    assert done.in_float == ("ffn.0.down",)


def test_a_matrix_that_is_too_large_for_float_does_not_hide_smaller_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"large": 100, "small": 10, "other": 90}
    monkeypatch.setattr(int8, "list_matrices", lambda _: sizes)
    # in eight bits: the large one costs 3 points, the small one 2
    lost = {"large": 3.0, "small": 2.0, "other": 0.0}

    class Choice:
        def open(self, precision: Precision) -> Precision:
            return precision

    def judge(precision: Precision) -> Verdict:
        drop = sum(lost[name] for name in sizes if precision.quantizes(name))
        return Verdict(100 - drop, [drop])

    options = Int8Options(max_drop=3.5)
    accuracy, precision = int8._fit(Choice(), Judge("points", 1, judge), options)  # type: ignore[arg-type]
    assert precision.in_float == {"small"}
    assert accuracy.drop == 3


def test_lines_too_short_to_hide_a_word_in_cannot_measure(tiny_checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("cat\ndog\nold\n")
    with refuses(DataError, "too-few-examples"):
        export_int8(load_checkpoint(tiny_checkpoint), tmp_path / "out", Int8Options(tmp_path / "lines.txt"), head="mlm")
