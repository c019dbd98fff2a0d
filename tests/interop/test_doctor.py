"""The doctor finds what is wrong, and nothing where nothing is."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_configs import NARROW

from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.cli.main import _run
from litebert.interop.convert import ConvertOptions, convert
from litebert.interop.doctor import Diagnosis, diagnose
from litebert.interop.statistics import is_initial, summarize
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.cost import count_parameters
from litebert.model.model import build_model
from litebert.model.presets import preset
from litebert.text.tokenizer import Tokenizer

CONFIG = replace(NARROW, hidden_size=128, num_layers=4, hidden_dropout_rate=0.0, attention_dropout_rate=0.0)
PRETRAINING = (HeadSpec("mlm"), HeadSpec("sentence"))
QUERY = "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight"


@pytest.fixture
def trained(tmp_path: Path, tiny_tokenizer: Tokenizer) -> Path:
    """A Hugging Face folder whose weights are not those of any initialization."""
    model = build_model(CONFIG, PRETRAINING)
    with torch.no_grad():
        generator = torch.Generator().manual_seed(1)
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.rand(parameter.shape, generator=generator))
    save_checkpoint(tmp_path / "ours", model, tiny_tokenizer, CheckpointContent(step=9))
    convert(tmp_path / "ours", tmp_path / "theirs", ConvertOptions(to="huggingface"))
    return tmp_path / "theirs"


def change_tensor(folder: Path, name: str, change: Callable[[torch.Tensor], torch.Tensor | None]) -> None:
    tensors = load_file(folder / "model.safetensors")
    changed = change(tensors.pop(name))
    save_file(tensors | ({} if changed is None else {name: changed}), folder / "model.safetensors")


def change_config(folder: Path, **values: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | values), "utf-8")


def told(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    return [(finding.level, finding.text) for finding in diagnosis.findings]


def test_a_sound_checkpoint_is_reported_as_sound_in_every_format(trained: Path) -> None:
    for folder in (trained, trained.parent / "ours"):
        diagnosis = diagnose(folder)
        assert told(diagnosis) == []
        assert (diagnosis.verdict, diagnosis.is_sound) == ("sound", True)
        assert diagnosis.facts["sharing"].startswith("all: 1 attention block and 1 feed-forward block for 4 layers")
        assert diagnosis.facts["heads"] == "mlm, sentence"
        assert diagnosis.facts["tokenizer"] == "wordpiece, 100 pieces, uncased"
        assert diagnosis.facts["dtype"].startswith("float32")


@pytest.mark.parametrize(
    ("change", "level", "message"),
    [
        (
            lambda f: change_tensor(f, QUERY, lambda t: t * torch.nan),
            "problem",
            "not finite: encoder.attention.0",
        ),
        (lambda f: change_tensor(f, QUERY, torch.zeros_like), "problem", "all zero: encoder.attention.0.query.weight"),
        (lambda f: change_tensor(f, QUERY, lambda _: None), "problem", "1 missing: albert.encoder"),
        (
            lambda f: change_tensor(f, QUERY, lambda t: t[:3].clone()),
            "problem",
            "1 with the wrong shape or type: albert.encoder",
        ),
        (
            lambda f: change_tensor(f, QUERY, lambda t: 0.02 * torch.randn(t.shape)),
            "problem",
            "apparently never trained (statistics of random initialization): encoder.attention.0.query.weight",
        ),
        (
            lambda f: change_tensor(f, "albert.pooler.weight", lambda t: 0.02 * torch.randn(t.shape)),
            "warning",
            "apparently never trained (statistics of random initialization): encoder.pooler.weight",
        ),
        (lambda f: change_config(f, pad_token_id=3), "warning", "pad_token_id = 3, but the tokenizer has 0"),
        (lambda f: (f / "tokenizer.json").unlink(), "problem", "has no tokenizer"),
        (lambda f: change_config(f, vocab_size=90), "problem", "wrong shape"),
        (lambda f: change_config(f, model_type="gpt2"), "problem", "model_type = 'gpt2'"),
        (lambda f: (f / "model.safetensors").write_bytes(b"123"), "problem", "cannot be read"),
    ],
)
def test_what_is_wrong_is_found(change: Callable[[Path], None], level: str, message: str, trained: Path) -> None:
    torch.manual_seed(5)
    change(trained)
    diagnosis = diagnose(trained)
    assert any(found == level and message in text for found, text in told(diagnosis)), told(diagnosis)
    assert diagnosis.is_sound == (level == "warning")


@pytest.mark.parametrize("folder", [".", "/"])
def test_a_folder_without_a_name_is_looked_into_like_any_other(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (finding,) = told(diagnose(Path(folder)))
    assert finding[0] == "problem"
    assert f"{folder} is not a model" in finding[1]


def test_a_model_that_was_only_drawn_is_found_untrained(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    save_checkpoint(tmp_path / "new", build_model(CONFIG, PRETRAINING), tiny_tokenizer, CheckpointContent(step=0))
    assert told(diagnose(tmp_path / "new")) == [
        ("problem", "never trained: every matrix still looks randomly initialized")
    ]


def test_a_pickle_is_called_unsafe(trained: Path) -> None:
    torch.save(load_file(trained / "model.safetensors"), trained / "pytorch_model.bin")
    (trained / "model.safetensors").unlink()
    assert any("unsafe format" in text for level, text in told(diagnose(trained)) if level == "warning")


@pytest.mark.parametrize("shape", [(1000, 8), (64, 64), (40, 32)])
def test_random_weights_are_distinguished_from_loaded_ones(shape: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(2)
    normal = 0.02 * torch.randn(shape, generator=generator)
    normal[0] = 0  # a padding token's row
    truncated = torch.nn.init.trunc_normal_(torch.empty(shape), std=0.02, a=-0.04, b=0.04, generator=generator)
    uniform = 0.02 * 3**0.5 * (2 * torch.rand(shape, generator=generator) - 1)
    heavy = 0.02 * torch.randn(shape, generator=generator) * torch.rand(shape, generator=generator).mul(2).exp() / 3
    drawn = [is_initial(summarize(t), {0.02}) for t in (normal, truncated)]
    others = [is_initial(summarize(t), {0.02}) for t in (uniform, heavy, normal + 0.01, normal * 1.5)]
    assert (drawn, others) == ([True, True], [False] * 4)


def describe(tmp_path: Path, tokenizer: Tokenizer, config: ModelConfig) -> Diagnosis:
    """The diagnosis of a published shape, but for the vocabulary."""
    model = build_model(replace(config, vocab_size=tokenizer.vocab_size, num_layers=config.num_layers), ())
    save_checkpoint(tmp_path / "model", model, tokenizer, CheckpointContent(step=0))
    return diagnose(tmp_path / "model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"num_heads": 6}, "6 heads, but albert-tiny has 12"),
        ({"hidden_dropout_rate": 0.3}, "dropout is 0.3, but the published albert-tiny uses 0"),
        ({"activation": "gelu"}, "the official ALBERT uses the tanh approximation"),
    ],
)
def test_a_published_shape_is_recognised_and_compared(
    changes: dict[str, Any], message: str | None, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    diagnosis = describe(tmp_path, tiny_tokenizer, replace(preset("albert-tiny"), **changes))
    assert "against albert-tiny" in diagnosis.facts["parameters"]
    warnings = [text for level, text in told(diagnosis) if level == "warning"]
    assert (message is None and not warnings) or any(message in text for text in warnings if message)


def test_the_command_ends_with_a_verdict_and_an_exit_code(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["doctor", str(trained)], debug=False) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "verdict: sound"
    assert _run(["doctor", str(trained / "nothing here")], debug=False) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "verdict: unfit: 1 problem, no warnings"


def test_convert_on_the_command_line(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert _run(["convert", str(trained), str(out)], debug=False) == 0
    assert (
        capsys.readouterr().out
        == f"done: {out} (litebert, {count_parameters(CONFIG, PRETRAINING).total:,} parameters)\n"
    )
    assert _run(["convert", str(trained), str(out)], debug=False) == 2
    assert "already exists" in capsys.readouterr().err
    words = ["convert", str(out), str(tmp_path / "hf"), "--to", "huggingface", "--heads", "mlm"]
    assert _run(words, debug=False) == 0
    shown = capsys.readouterr().out
    assert "note: dropped heads: sentence\n" in shown
    assert "AlbertForMaskedLM" in shown.splitlines()[-1]


def test_the_licence_travels_with_the_model(trained: Path, tmp_path: Path) -> None:
    (trained / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n", "utf-8")
    assert diagnose(trained).facts["licence"] == "apache-2.0"
    convert(trained, tmp_path / "out")
    assert diagnose(tmp_path / "out").facts["licence"] == "apache-2.0"


@pytest.mark.parametrize("pattern", ["*.data-*", "*.index"])
def test_a_damaged_tensorflow_file_gets_a_verdict(
    pattern: str, tmp_path: Path, real_data: Path, tiny_tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tf"
    shutil.copytree(real_data / "tf/toy_albert", folder)
    (file,) = folder.glob(pattern)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    tiny_tokenizer.save(tmp_path / "tokenizer")
    words = ["doctor", str(folder), "--tokenizer", str(tmp_path / "tokenizer")]
    assert _run(words, debug=False) == 1
    shown = capsys.readouterr().out
    assert "checksum does not match" in shown
    assert shown.splitlines()[-1].startswith("verdict: unfit")


def test_a_damaged_checkpoint_of_ours_gets_a_verdict(trained: Path) -> None:
    weights = trained.parent / "ours/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert not diagnose(trained.parent / "ours").is_sound


def test_a_card_that_somebody_has_written_in_is_no_damage(trained: Path) -> None:
    card = trained.parent / "ours/README.md"
    card.write_text(card.read_text("utf-8") + "Not for children.\n", "utf-8")
    assert "damaged" not in str(diagnose(trained.parent / "ours"))


def test_segments_may_be_zero_as_in_models_without_any(trained: Path) -> None:
    segments = "albert.embeddings.token_type_embeddings.weight"
    change_config(trained, type_vocab_size=1)
    change_tensor(trained, segments, lambda tensor: torch.zeros_like(tensor[:1]))
    assert diagnose(trained).is_sound
    change_tensor(trained, segments, lambda tensor: torch.zeros(2, tensor.shape[1]))
    change_config(trained, type_vocab_size=2)
    text = "all segment embeddings are zero: the model does not distinguish the two texts of a pair"
    assert told(diagnose(trained)) == [("warning", text)]


def test_a_small_table_is_not_called_untrained(trained: Path) -> None:
    torch.manual_seed(5)
    segments = "albert.embeddings.token_type_embeddings.weight"
    change_tensor(trained, segments, lambda tensor: 0.02 * torch.randn(tensor.shape))
    assert told(diagnose(trained)) == []


@pytest.mark.parametrize(("key", "value"), [("files", None), ("files", []), ("model", None), ("step", "one")])
def test_a_manifest_without_what_it_must_say_gets_a_verdict(trained: Path, key: str, value: Any) -> None:
    ours = trained.parent / "with-a-manifest"
    convert(trained, ours)
    facts = json.loads((ours / "litebert.json").read_text("utf-8"))
    facts = {name: fact for name, fact in facts.items() if name not in (key, "checksum")} | (
        {} if value is None else {key: value}
    )
    (ours / "litebert.json").write_text(json.dumps(facts), "utf-8")
    assert f'litebert.json is corrupt: "{key}": ' in str(diagnose(ours))
