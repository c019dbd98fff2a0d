"""An export stands alone: plain onnxruntime and tokenizer.json give our answers, and so does `litebert.load`."""

import json
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refuses
from shown_code import read_shown
from small_configs import TINY

import litebert
from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.cli.main import _run
from litebert.core.errors import ConfigError, DataError
from litebert.exporters.int8 import export_int8
from litebert.exporters.onnx_folder import export_onnx
from litebert.model.model import build_model
from litebert.tasks.catalog import task_facts
from litebert.tasks.kinds.classification import Classification
from litebert.text.tokenizer import Tokenizer

pytest.importorskip("onnxruntime")

# what a user without litebert writes
PLAIN = """
    import json, sys
    import numpy as np, onnxruntime, tokenizers
    folder, *texts = sys.argv[1:]
    tokenizer = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")
    session = onnxruntime.InferenceSession(folder + "/model.onnx", providers=["CPUExecutionProvider"])
    answers = []
    for text in texts:
        encoding = tokenizer.encode(text)
        feeds = {
            "input_ids": encoding.ids, "token_type_ids": encoding.type_ids, "attention_mask": encoding.attention_mask
        }
        outputs = session.run(None, {name: np.array([ids], dtype=np.int64) for name, ids in feeds.items()})
        answers.append(outputs[0].tolist())
    assert "litebert" not in sys.modules and "torch" not in sys.modules
    print(json.dumps(answers))
"""


def run_plain(folder: Path, *texts: str) -> list[list[list[float]]]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PLAIN), str(folder), *texts], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answers: list[list[list[float]]] = json.loads(done.stdout)
    return answers


def test_plain_onnxruntime_fills_masks_as_we_do(tiny_checkpoint: Path, tmp_path: Path) -> None:
    done = export_onnx(load_checkpoint(tiny_checkpoint), tmp_path / "out")
    assert done.head == "mlm"
    ((first, second),) = run_plain(tmp_path / "out", "the [MASK] sees a [MASK] near the river")
    predictor = litebert.load(tiny_checkpoint)
    guesses = predictor.fill_mask("the [MASK] sees a [MASK] near the river", top_k=1)
    for logits, (guess,) in zip((first, second), guesses, strict=True):
        allowed = [i for i in range(len(logits)) if i not in predictor.tokenizer.special_ids]
        assert predictor.tokenizer.pieces([max(allowed, key=lambda i: logits[i])]) == [guess.piece]


def test_the_code_of_the_documentation_gives_our_answers(
    tmp_path: Path, tiny_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cuts, pads, names labels, pools and normalizes, all from the files of the export."""
    config = replace(TINY, vocab_size=tiny_tokenizer.vocab_size, initializer_range=0.3)  # fmt: skip
    task = Classification("sst-2", ("dull", "fine", "odd"))
    content = CheckpointContent(step=0, task=task_facts(task, max_length=48))
    save_checkpoint(tmp_path / "model", build_model(config, task.heads, seed=3), tiny_tokenizer, content)
    export_int8(load_checkpoint(tmp_path / "model"), tmp_path / "sst2-int8")
    export_onnx(load_checkpoint(tmp_path / "model"), tmp_path / "embedder", head="embedding")
    page = Path(__file__).parents[2] / "docs" / "inference.md"
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for shown in read_shown(page):
        if shown.is_python and "onnxruntime" in shown.code:
            exec(shown.code, names)
    texts = names["texts"]
    assert names["answers"] == [one.label for one in litebert.load("sst2-int8").classify(texts)]
    assert len(names["encodings"][1].ids) == 48
    assert names["num_cut"] == 1
    np.testing.assert_allclose(names["vectors"], litebert.load("model").embed(texts), atol=1e-5)
    np.testing.assert_allclose(names["vectors"], litebert.load("embedder").embed(texts), atol=1e-5)


def test_an_export_is_loaded_as_a_checkpoint_is(tiny_checkpoint: Path, tmp_path: Path) -> None:
    export_onnx(load_checkpoint(tiny_checkpoint), tmp_path / "out", head="embedding")
    texts = ["a cat", "the dog near the river"]
    vectors = litebert.load(tiny_checkpoint).embed(texts)
    exported = litebert.load(tmp_path / "out", threads=1)
    np.testing.assert_allclose(exported.embed(texts), vectors, atol=1e-5)
    plain = np.array([answer[0] for answer in run_plain(tmp_path / "out", *texts)])
    np.testing.assert_allclose(plain / np.linalg.norm(plain, axis=1, keepdims=True), vectors, atol=1e-5)
    with refuses(ConfigError, "no-head"):
        exported.order("a", "b")
    with refuses(DataError, "export-has-no-weights"):
        exported.model  # noqa: B018
    with refuses(ConfigError, "unsupported-engine"):
        litebert.load(tmp_path / "out", engine="torch")


def test_a_damaged_export_is_refused(tiny_checkpoint: Path, tmp_path: Path) -> None:
    export_onnx(load_checkpoint(tiny_checkpoint), tmp_path / "out", head="sentence")
    with (tmp_path / "out" / "model.onnx").open("ab") as file:
        file.write(b"x")
    with refuses(DataError, "corrupt-file", at="model.onnx"):
        litebert.load(tmp_path / "out")


def test_the_command_says_what_it_wrote(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", str(tiny_checkpoint), "--out", str(tmp_path / "out"), "--head"]
    assert _run([*words, "tokens"], debug=False) == 2
    assert "the model has no head 'tokens'; it has mlm, sentence, embedding" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert _run([*words, "sentence"], debug=False) == 0
    assert "(sentence, 0.1 MB)" in capsys.readouterr().out
    assert _run([*words, "sentence"], debug=False) == 2
    assert "already exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (["--dev", "x.tsv"], "(--int8)"),
        (["--max-drop", "2"], "(--int8)"),
        (["--int8", "--max-drop", "2"], "(--dev)"),
        (["--runtime", "x"], "(--to)"),
    ],
)
def test_words_that_would_do_nothing_are_refused(
    words: list[str], flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["export", str(tmp_path), "--out", str(tmp_path / "out"), *words], debug=False) == 2
    assert capsys.readouterr().err.endswith(f"{flag}\n")


def test_an_export_is_no_checkpoint_to_convert(tiny_checkpoint: Path, tmp_path: Path) -> None:
    export_onnx(load_checkpoint(tiny_checkpoint), tmp_path / "out")
    with refuses(DataError, "export-has-no-weights"):
        litebert.load_checkpoint(tmp_path / "out")
