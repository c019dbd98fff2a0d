"""Pre-training goes on from other people's checkpoints."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from bundles import write_bundle
from test_google_checkpoints import write_config
from torch import Tensor

from litebert.checkpoint import Checkpoint, list_checkpoints, load_checkpoint
from litebert.core.errors import ConfigError, DataError
from litebert.interop.convert import ConvertOptions, convert
from litebert.interop.google_names import name_table
from litebert.pretrain import pretrain
from litebert.recipe import Recipe, build_recipe

MODEL = {
    "vocab_size": 100,
    "embedding_size": 8,
    "hidden_size": 16,
    "ffn_size": 24,
    "num_layers": 2,
    "num_heads": 2,
    "max_positions": 32,
}


def make_recipe(corpus: Path, **init: Any) -> Recipe:
    return build_recipe(
        {
            "seed": 3,
            "model": MODEL,
            "data": {"corpora": [str(corpus)]},
            "segments": {"max_length": 32},
            "batch": {"sequences": 8},
            "train": {"steps": 6, "save_every": 3, "evaluate_batches": 1},
            "optim": {"learning_rate": 0.01},
            "schedule": {"warmup_steps": 0},
            "init": init,
        }
    )


def last_checkpoint(run: Path) -> Checkpoint:
    return load_checkpoint(list_checkpoints(run / "checkpoints")[-1])


def write_as_google(checkpoint: Checkpoint, folder: Path) -> Path:
    """The checkpoint as Google's training would have saved it: moments and step included."""
    moments = checkpoint.load_optimizer()
    variables: dict[str, Tensor] = {"global_step": torch.tensor(checkpoint.step)}
    for ours, variable in name_table("albert", checkpoint.config, checkpoint.heads).items():
        tensors = {
            variable.name: checkpoint.load_weights()[ours],
            f"{variable.name}/adam_m": moments[f"{ours}/exp_avg"],
            f"{variable.name}/adam_v": moments[f"{ours}/exp_avg_sq"],
        }
        variables |= {name: t.t().contiguous() if variable.is_transposed else t for name, t in tensors.items()}
    write_bundle(folder / "model.ckpt-3", variables)
    write_config(folder, "albert", replace(checkpoint.config, initializer_range=0.02))
    tokenizer = checkpoint.load_tokenizer()
    (folder / "vocab.txt").write_text("\n".join(tokenizer.pieces(range(tokenizer.vocab_size))) + "\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def begun(tiny_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six steps, with a checkpoint in the middle."""
    folder = tmp_path_factory.mktemp("begun") / "run"
    pretrain(make_recipe(tiny_corpus), folder)
    return folder


@pytest.mark.parametrize("way", ["ours", "converted with its moments"])
def test_a_run_that_goes_on_from_a_checkpoint_ends_as_if_it_had_never_stopped(
    way: str, begun: Path, tiny_corpus: Path, tmp_path: Path
) -> None:
    middle = begun / "checkpoints/step-00000003"
    if way != "ours":
        google = write_as_google(load_checkpoint(middle), tmp_path / "google")
        tokenizer = middle / "tokenizer"
        from litebert.interop.source import Wishes

        convert(google, tmp_path / "kept", ConvertOptions(keeps_slots=True), Wishes(tokenizer=tokenizer))
        middle = tmp_path / "kept"
    pretrain(make_recipe(tiny_corpus, **{"from": str(middle), "continues": True}), tmp_path / "next")
    end, expected = last_checkpoint(tmp_path / "next"), last_checkpoint(begun)
    assert end.step == expected.step == 6
    for name, tensor in expected.load_weights().items():
        assert torch.equal(end.load_weights()[name], tensor), name
    for name, tensor in expected.load_optimizer().items():
        assert torch.equal(end.load_optimizer()[name], tensor), name


def test_pretraining_starts_from_the_weights_of_a_hugging_face_folder(
    begun: Path, tiny_corpus: Path, tmp_path: Path
) -> None:
    source = last_checkpoint(begun)
    convert(source.path, tmp_path / "theirs", ConvertOptions(to="huggingface"))
    (tmp_path / "theirs/tokenizer.json").unlink()
    (tmp_path / "theirs/manifest.json").write_bytes((source.path / "tokenizer/manifest.json").read_bytes())
    (tmp_path / "theirs/tokenizer.json").write_bytes((source.path / "tokenizer/tokenizer.json").read_bytes())
    pretrain(make_recipe(tiny_corpus, **{"from": str(source.path)}), tmp_path / "ours-run")
    pretrain(make_recipe(tiny_corpus, **{"from": str(tmp_path / "theirs")}), tmp_path / "theirs-run")
    ends = [last_checkpoint(tmp_path / name).load_weights() for name in ("ours-run", "theirs-run")]
    assert all(torch.equal(tensor, ends[1][name]) for name, tensor in ends[0].items())


@pytest.mark.parametrize(
    ("changes", "init", "message"),
    [
        ({}, {"continues": True}, "init.from says of nothing"),
        ({"train.steps": 6}, {"from": "last", "continues": True}, "nothing is left to train"),
        ({"model.num_heads": 4}, {"from": "last"}, "model.num_heads = 4, but init.from"),
        ({"model.activation": "relu"}, {"from": "last"}, "model.activation = relu, but init.from"),
    ],
)
def test_what_cannot_go_on_is_refused(
    changes: dict[str, Any], init: dict[str, Any], message: str, begun: Path, tiny_corpus: Path, tmp_path: Path
) -> None:
    if "from" in init:
        init = init | {"from": str(last_checkpoint(begun).path)}
    values = make_recipe(tiny_corpus).values
    for key, value in changes.items():
        section, _, name = key.partition(".")
        values[section] = values[section] | {name: value}
    with pytest.raises(ConfigError, match=message):
        pretrain(build_recipe(values | {"init": init}), tmp_path / "next")


def test_a_checkpoint_without_moments_cannot_go_on(begun: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    middle = load_checkpoint(begun / "checkpoints/step-00000003")
    convert(middle.path, tmp_path / "without")
    recipe = make_recipe(tiny_corpus, **{"from": str(tmp_path / "without"), "continues": True})
    with pytest.raises(DataError, match="training cannot go on from it"):
        pretrain(recipe, tmp_path / "next")
