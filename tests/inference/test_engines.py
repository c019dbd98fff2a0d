"""Engines give the same answers, send nothing, and are chosen by measuring."""

import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refuses
from small_configs import TINY
from small_tasks import invent_rows, tag_words, write_rows
from torch import Tensor

import litebert
from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.core.errors import ConfigError, DataError
from litebert.inference.engines.choosing import Trial, choose_engine
from litebert.inference.engines.graphs import EngineName
from litebert.inference.engines.threads import choose_threads, count_cores
from litebert.model.engine import HeadInputs, HeadName
from litebert.model.model import build_model
from litebert.tasks.catalog import read_dataset, task_facts
from litebert.tasks.finetuning import FinetuneTask
from litebert.tasks.kinds.choices import Choices
from litebert.tasks.squad.task import SpanTask
from litebert.text.tokenizer import Tokenizer

TEXTS = ["a cat", "the dog near the river and the house", ("the bird", "a tree"), "the old house below a large tree"]
SINGLES = [text for text in TEXTS if isinstance(text, str)]
PASSAGE = "the cat sees a dog near the river. " * 8
OTHERS = ("onnx", "openvino")


def untrained(folder: Path, task: FinetuneTask, tokenizer: Tokenizer) -> Path:
    """A model that was never trained for its task: its answers are as good as any to compare."""
    config = replace(TINY, vocab_size=tokenizer.vocab_size, num_layers=3, initializer_range=0.3)  # fmt: skip
    content = CheckpointContent(step=0, task=task_facts(task, max_length=48))
    save_checkpoint(folder, build_model(config, task.heads, seed=2), tokenizer, content)
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: Tokenizer) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    rows = {"classification": invent_rows(), "tags": tag_words(invent_rows())}
    tasks: dict[str, FinetuneTask] = {
        name: read_dataset(name, write_rows(folder / name / "data", some)).task for name, some in rows.items()
    }
    tasks["spans"] = SpanTask("squad-v1", max_question_length=8, stride=8)
    tasks["conditional"] = SpanTask("squad-v2", "2.0", "conditional_span", max_question_length=8, stride=8)
    tasks["choices"] = Choices("choice", max_choice_length=8)
    return {name: untrained(folder / name / "model", task, tiny_tokenizer) for name, task in tasks.items()}


@pytest.mark.parametrize("engine", OTHERS)
def test_engines_agree_on_every_kind_of_answer(engine: str, models: dict[str, Path]) -> None:
    pytest.importorskip({"onnx": "onnxruntime"}.get(engine, engine))

    def both(name: str) -> tuple[litebert.Predictor, litebert.Predictor]:
        return litebert.load(models[name]), litebert.load(models[name], engine=engine, threads=1)  # type: ignore[arg-type]

    ours, theirs = both("classification")
    assert (ours.engine.name, theirs.engine.name) == ("torch", engine)
    for one, other in zip(ours.classify(SINGLES), theirs.classify(SINGLES), strict=True):
        assert one.label == other.label
        assert list(one.probabilities.values()) == pytest.approx(list(other.probabilities.values()), abs=1e-4)
    ours, theirs = both("tags")
    sentences = [["a", "cat"], ["the", "old", "dog", "sees"] * 15]
    assert ours.tag(sentences) == theirs.tag(sentences)
    for name in ("spans", "conditional"):
        ours, theirs = both(name)
        one, other = (p.answer("who sees the dog", PASSAGE) for p in (ours, theirs))
        assert one[:3] == other[:3]
        assert one[3:] == pytest.approx(other[3:], abs=1e-4)
    ours, theirs = both("choices")
    one, other = (p.choose(PASSAGE, "the cat sees _", ["a dog", "the old house", "a tree"]) for p in (ours, theirs))
    assert one.number == other.number
    assert one.probabilities == pytest.approx(other.probabilities, abs=1e-4)


@pytest.mark.parametrize("engine", OTHERS)
def test_engines_agree_on_a_pretrained_model(engine: str, tiny_checkpoint: Path) -> None:
    pytest.importorskip({"onnx": "onnxruntime"}.get(engine, engine))
    ours, theirs = litebert.load(tiny_checkpoint), litebert.load(tiny_checkpoint, engine=engine, threads=1)  # type: ignore[arg-type]
    np.testing.assert_allclose(ours.embed(TEXTS), theirs.embed(TEXTS), atol=1e-5)
    assert ours.order("the cat", "a dog") == pytest.approx(theirs.order("the cat", "a dog"), abs=1e-5)
    text = "the [MASK] sees a [MASK] near the river"
    for one, other in zip(ours.fill_mask(text), theirs.fill_mask(text), strict=True):
        assert [guess.piece for guess in one] == [guess.piece for guess in other]
        assert [guess.probability for guess in one] == pytest.approx([guess.probability for guess in other], abs=1e-5)
    with refuses(DataError, "text-too-long"):
        theirs.fill_mask("the [MASK] " * 40)


class Clockwork:
    """An engine that takes a known time."""

    def __init__(self, name: EngineName, seconds: float, clock: list[float]) -> None:
        self.name, self.seconds, self.clock = name, seconds, clock

    def run(self, head: HeadName, inputs: HeadInputs) -> Mapping[str, Tensor]:
        assert head == "mlm"
        assert inputs.token_ids.shape[1] <= 20
        self.clock[0] += self.seconds
        return {}


def test_auto_takes_the_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    monkeypatch.setattr("litebert.inference.engines.choosing.is_installed", lambda name: name != "openvino")
    seconds = {"torch": 0.3, "onnx": 0.2, "openvino": 0.1}
    build = lambda name: Clockwork(name, seconds[name], clock)  # noqa: E731
    assert choose_engine("auto", ("torch", "onnx", "openvino"), build, Trial("mlm", 20)).name == "onnx"
    monkeypatch.setattr("litebert.inference.engines.choosing.is_installed", lambda _: True)
    assert choose_engine("auto", ("torch", "onnx", "openvino"), build, Trial("mlm", 20)).name == "openvino"


def test_an_unknown_engine_is_refused_with_the_nearest(tiny_checkpoint: Path) -> None:
    with refuses(ConfigError, "unknown-value"):
        litebert.load(tiny_checkpoint, engine="onx")  # type: ignore[arg-type]
    with refuses(ConfigError, "out-of-range"):
        litebert.load(tiny_checkpoint, threads=-1)


def test_other_engines_than_torch_compute_on_the_cpu(tiny_checkpoint: Path) -> None:
    with refuses(ConfigError, "unsupported-device"):
        litebert.load(tiny_checkpoint, engine="auto", device="cuda")


def test_threads_are_as_many_as_one_says_else_as_the_environment_says_else_as_cores() -> None:
    assert choose_threads(3, {"OMP_NUM_THREADS": "2"}) == 3
    assert choose_threads(0, {"OMP_NUM_THREADS": "2"}) == 2
    assert choose_threads(0, {}) == count_cores()


def test_two_threads_of_a_core_count_once_and_a_container_has_its_share(tmp_path: Path) -> None:
    for number, siblings in enumerate(["0,2", "1,3", "0,2", "1,3"]):
        (tmp_path / f"cpu{number}" / "topology").mkdir(parents=True)
        (tmp_path / f"cpu{number}" / "topology" / "thread_siblings_list").write_text(f"{siblings}\n")
    quota = tmp_path / "cpu.max"
    count = lambda cpus: count_cores(tmp_path, quota, lambda: cpus)  # noqa: E731
    assert count({0, 1, 2, 3}) == 2
    assert count({0, 2}) == 1
    quota.write_text("max 100000\n")
    assert count({0, 1, 2, 3}) == 2
    quota.write_text("50000 100000\n")
    assert count({0, 1, 2, 3}) == 1
    assert count_cores(tmp_path / "none", tmp_path / "none", lambda: {0, 1}) == 2


@pytest.mark.parametrize(
    ("package", "code"),
    [
        ("torch", "litebert.load(source).embed(['a cat'])"),
        ("onnxruntime", "litebert.load(source, engine='onnx', threads=1).embed(['a cat'])"),
        ("openvino", "litebert.load(source, engine='openvino', threads=1).embed(['a cat'])"),
        ("onnxruntime", "litebert.load(source, engine='auto', threads=1).embed(['a cat'])"),
        ("fastapi", "from litebert.server.server import load_models; load_models([source])"),
    ],
)
def test_nothing_is_sent(package: str, code: str, tiny_checkpoint: Path) -> None:
    """Neither by us nor by OpenVINO, whose telemetry would report that it was imported."""
    _skip_without(package)
    program = f"""
        import socket, sys
        def refuse(*arguments, **options):
            print("SENT", arguments, flush=True)
            raise OSError("no network in this test")
        socket.socket.connect = socket.socket.connect_ex = socket.socket.sendto = refuse
        socket.getaddrinfo = socket.create_connection = refuse
        import litebert
        source = {str(tiny_checkpoint)!r}
        {code}
        assert not [name for name in sys.modules if name.startswith("openvino_telemetry")]
        print("answered")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    assert done.stdout == "answered\n", done.stdout + done.stderr


def _skip_without(package: str) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def test_a_predictor_of_another_engine_still_has_its_model(tiny_checkpoint: Path) -> None:
    pytest.importorskip("onnxruntime")
    model = litebert.load(tiny_checkpoint, engine="onnx", threads=1).model
    expected = load_checkpoint(tiny_checkpoint).load_weights()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in model.state_dict().items())
