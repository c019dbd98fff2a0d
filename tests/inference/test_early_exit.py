"""Answering early: the same after all layers, the same in every engine, learned by fine-tuning, refused elsewhere."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refuses
from small_tasks import invent_rows, tag_words, write_rows

import litebert
from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.cli.main import _run
from litebert.core.errors import ConfigError
from litebert.exporters.onnx_folder import export_onnx
from litebert.finetuning.finetune import finetune
from litebert.finetuning.recipe import build_finetune_recipe
from litebert.finetuning.run_folder import Job
from litebert.inference.engines.choosing import Build
from litebert.inference.engines.graphs import BatchEngine, EngineName
from litebert.interop.convert import ConvertOptions, convert
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.engine import HeadInputs
from litebert.model.model import build_model
from litebert.tasks.catalog import read_dataset
from litebert.tasks.group_batch import build_group_batch
from litebert.tasks.groups import Group, TokenSequence
from litebert.tasks.kinds.classification import Classification

DEEP = ModelConfig(
    vocab_size=60, embedding_size=16, hidden_size=32, ffn_size=48, num_layers=8, num_heads=4, initializer_range=0.15
)
TEXTS = [row["text"] for row in invent_rows(count=24)]


def invent_inputs(patience: int = 0) -> HeadInputs:
    token_ids = torch.randint(5, 60, (16, 11), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(token_ids, dtype=torch.bool)
    mask[3, 8:] = False
    return HeadInputs(token_ids, torch.zeros_like(token_ids), mask, patience=patience)


@pytest.mark.parametrize("sharing", ["all", "none"])
@pytest.mark.parametrize("num_labels", [3, 1])
def test_a_text_leaves_when_its_answer_has_stayed_the_same(num_labels: int, sharing: str) -> None:
    model = build_model(replace(DEEP, sharing=sharing), [HeadSpec("classification", num_labels)], seed=1).eval()  # type: ignore[arg-type]
    inputs = invent_inputs()
    with torch.no_grad():
        layers = model.encoder(*inputs[:3], return_layers=True).layers[1:]
        every = torch.stack([model.heads["classification"](model.encoder.pool(h[:, 0])) for h in layers])  # (L, S, C)
    guesses = every.argmax(-1) if num_labels > 1 else every.squeeze(-1)
    for patience in (1, 2, 4, 8):
        found = model.run("classification", inputs._replace(patience=patience))
        for row in range(len(inputs.token_ids)):
            said = guesses[:, row].tolist()
            same = [False, *(abs(a - b) < 0.1 for a, b in pairwise(said))]
            left = next((n for n in range(1, 9) if n > patience and all(same[n - patience : n])), 8)
            assert int(found["layers"][row]) == left
            torch.testing.assert_close(found["logits"][row], every[left - 1, row], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found["logits"], model.run("classification", inputs)["logits"], atol=1e-5, rtol=1e-5)


def test_learning_weighs_layers_by_their_number() -> None:
    model = build_model(
        replace(DEEP, num_layers=3, hidden_dropout_rate=0.0, attention_dropout_rate=0.0), ["classification"]
    )
    rng = np.random.default_rng(0)
    groups = [Group((TokenSequence(rng.integers(5, 60, 9).astype(np.int32), 9),), np.array(n % 2)) for n in range(4)]
    batch = build_group_batch(groups, 0)
    model.eval()
    task, totals = Classification("x", ("a", "b"), exits=True), {"groups": 4}
    truncated = [build_model(replace(model.config, num_layers=n), ["classification"]).eval() for n in (1, 2, 3)]
    for shorter in truncated:
        shorter.load_state_dict(model.state_dict())
    losses = [float(replace(task, exits=False).loss(shorter, batch, totals).loss.detach()) for shorter in truncated]
    assert float(task.loss(model, batch, totals).loss.detach()) == pytest.approx(np.average(losses, weights=[1, 2, 3]))


@pytest.fixture(scope="module")
def tuned(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of 6 passes that has learned to answer early."""
    folder = tmp_path_factory.mktemp("tuned")
    source = replace(load_checkpoint(tiny_checkpoint))
    source = replace(source, config=replace(source.config, num_layers=6))
    recipe = build_finetune_recipe(
        {
            "train": {"steps": 16, "evaluations": 1, "batch_size": 16},
            "optim": {"learning_rate": 3e-3},
            "exit": {"enabled": True},
        }
    )
    dataset = read_dataset("classification", write_rows(folder / "data", invent_rows(count=64)))
    finetune(Job(source, dataset, recipe), folder / "run")
    return folder


def test_engines_and_exports_leave_at_the_same_layers(tuned: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    export_onnx(load_checkpoint(tuned / "run" / "model"), tmp_path / "out")
    ours = litebert.load(tuned / "run", patience=2)
    for other in (
        litebert.load(tuned / "run", engine="onnx", threads=1, patience=2),
        litebert.load(tmp_path / "out", threads=1, patience=2),
        litebert.load(tmp_path / "out", threads=1).with_patience(2),
    ):
        for one, two in zip(ours.classify(TEXTS), other.classify(TEXTS), strict=True):
            assert list(one.probabilities.values()) == pytest.approx(list(two.probabilities.values()), abs=1e-4)
    whole, early = litebert.load(tuned / "run").classify(TEXTS), ours.classify(TEXTS)
    assert any(a.probabilities != b.probabilities for a, b in zip(whole, early, strict=True))
    unhurried = litebert.load(tmp_path / "out", threads=1).classify(TEXTS)
    for one, two in zip(whole, unhurried, strict=True):
        assert list(one.probabilities.values()) == pytest.approx(list(two.probabilities.values()), abs=1e-4)


def test_auto_measures_only_engines_that_can_leave_early(
    tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    export_onnx(load_checkpoint(tuned / "run" / "model"), tmp_path / "out")
    measured: list[tuple[str, ...]] = []

    def choose(wanted: str, possible: tuple[EngineName, ...], build: Build, *_: object) -> BatchEngine:
        measured.append(possible)
        assert wanted == "auto"
        return build("onnx")

    monkeypatch.setattr("litebert.inference.predictor.choose_engine", choose)
    for source in (tuned / "run", tmp_path / "out"):
        assert litebert.load(source, engine="auto", threads=1, patience=1).classify(["a cat"])
    assert measured == [("torch", "onnx"), ("onnx",)]


def test_a_model_that_has_not_learned_it_does_not_answer_early(tiny_checkpoint: Path, tmp_path: Path) -> None:
    with refuses(ConfigError, "unsupported-early-exit"):
        litebert.load(tiny_checkpoint, patience=1)
    dataset = read_dataset("tags", write_rows(tmp_path / "data", tag_words(invent_rows())))
    job = Job(load_checkpoint(tiny_checkpoint), dataset, build_finetune_recipe({"exit": {"enabled": True}}))
    with refuses(ConfigError, "unsupported-early-exit", at="exit.enabled"):
        finetune(job, tmp_path / "run")


def test_an_engine_that_cannot_leave_early_refuses_a_patience(tuned: Path) -> None:
    pytest.importorskip("openvino")
    predictor = litebert.load(tuned / "run", engine="openvino", threads=1)
    assert not predictor.has_exits
    with refuses(ConfigError, "unsupported-early-exit"):
        predictor.with_patience(1)


def test_patience_is_refused_where_layers_are_not_one_and_the_export_says_so(
    tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    source = load_checkpoint(tuned / "run" / "model")
    config = replace(source.config, sharing="none")
    content = CheckpointContent(step=0, task=source.task)
    save_checkpoint(tmp_path / "model", build_model(config, source.heads, seed=1), source.load_tokenizer(), content)
    assert litebert.load(tmp_path / "model", patience=1).classify(["a cat"])
    assert _run(["export", str(tmp_path / "model"), str(tmp_path / "out")], debug=False) == 0
    assert "it always computes all of them" in capsys.readouterr().out
    for way in ({"source": tmp_path / "out"}, {"source": tmp_path / "model", "engine": "onnx"}):
        assert litebert.load(**way, threads=1).classify(["a cat"])  # type: ignore[arg-type]
        with refuses(ConfigError, "unsupported-early-exit"):
            litebert.load(**way, threads=1, patience=1)  # type: ignore[arg-type]


def test_the_curve_has_a_point_for_every_patience_and_depth(
    tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    words = ["evaluate", str(tuned / "run"), "--task", "classification", "--data", str(tuned / "data"), "--exit-curve"]
    assert _run([*words, "--out", str(tmp_path / "curve.png")], debug=False) == 0
    shown = capsys.readouterr().out
    assert [shown.count(word) for word in ("all layers", "patience ", "depth ")] == [1, 4, 5]
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert _run([*words, "--json", "--out", str(tmp_path / "again.png")], debug=False) == 0
    points = json.loads(capsys.readouterr().out)  # and nothing else
    assert (tmp_path / "again.png").is_file()
    patient = [point["mean_layers"] for point in points if point["way"] == "patience"]
    assert patient == sorted(patient)
    assert 2 <= patient[0] < 6
    assert _run(["evaluate", str(tuned / "run"), *words[2:6], "--patience", "1"], debug=False) == 0
    first = next(point["score"] for point in points if (point["way"], point["value"]) == ("patience", 1))
    assert f"accuracy {first:.4f}" in capsys.readouterr().out


def test_the_curve_of_an_export_has_every_patience(
    tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("matplotlib")
    assert _run(["export", str(tuned / "run"), str(tmp_path / "out")], debug=False) == 0
    words = ["--task", "classification", "--data", str(tuned / "data"), "--exit-curve", "--threads", "1"]
    capsys.readouterr()
    assert _run(["evaluate", str(tmp_path / "out"), *words, "--out", str(tmp_path / "curve.png")], debug=False) == 0
    shown = capsys.readouterr().out
    assert [shown.count(word) for word in ("all layers", "patience ", "depth ")] == [1, 4, 0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--task", "classification", "--data", "x", "--exit-curve", "--patience", "2"], "leave --patience"),
        (["--intrinsic", "x", "--exit-curve"], "need --data"),
        (["--intrinsic", "x", "--layers", "2"], "need --data"),
    ],
)
def test_words_that_would_do_nothing_are_refused(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["evaluate", str(tmp_path), *words], debug=False) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "changes", [{"sharing": "all"}, {"sharing": "none"}, {"sharing": "groups", "num_groups": 2}, {"num_inner": 2}]
)
def test_a_truncated_model_is_its_first_layers(
    changes: dict[str, object], tmp_path: Path, tiny_checkpoint: Path
) -> None:
    config = replace(load_checkpoint(tiny_checkpoint).config, num_layers=4, **changes)  # type: ignore[arg-type]
    tokenizer = load_checkpoint(tiny_checkpoint).load_tokenizer()
    model = build_model(config, ["mlm"], seed=1).eval()
    save_checkpoint(tmp_path / "whole", model, tokenizer, CheckpointContent(step=0))
    convert(tmp_path / "whole", tmp_path / "cut", ConvertOptions(layers=3))
    cut = load_checkpoint(tmp_path / "cut").load_model().eval()
    token_ids = torch.arange(5, 15)[None]
    with torch.no_grad():
        layers = model.encoder(token_ids, return_layers=True).layers
        torch.testing.assert_close(cut.encoder(token_ids).hidden, layers[3 * config.num_inner], atol=1e-6, rtol=1e-5)
    np.testing.assert_allclose(
        litebert.load(tmp_path / "whole", layers=3).embed(TEXTS),
        litebert.load(tmp_path / "cut").embed(TEXTS),
        atol=1e-6,
    )
    with refuses(ConfigError, "out-of-range"):
        litebert.load(tmp_path / "whole", layers=5)
