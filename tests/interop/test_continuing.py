"""Pre-training goes on from other people's checkpoints."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small_runs
import torch
from bundles import write_bundle
from refusals import refuses
from safetensors.torch import load_file, save_file
from small_checkpoints import PRETRAINING, save
from small_text import SIZES, make_sentences
from test_google_checkpoints import write_config
from torch import Tensor

from litebert.checkpoint import Checkpoint, list_checkpoints, load_checkpoint
from litebert.core.errors import ConfigError, DataError, LitebertError
from litebert.corpus.build import BuildOptions, build_corpus
from litebert.interop.convert import ConvertOptions, convert
from litebert.interop.google_names import name_table
from litebert.pretraining.pretrain import pretrain
from litebert.pretraining.recipe import Recipe, build_recipe
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

SMALL = small_runs.make_recipe(Path("unread")).model


def make_recipe(corpus: Path, **init: Any) -> Recipe:
    """Six steps, of which the moments of half are found again."""
    train = {"steps": 6, "save_every": 3, "evaluate_batches": 1}
    return small_runs.make_recipe(corpus, train=train, schedule={"warmup_steps": 0}, init=init)


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
def test_a_run_continued_from_a_checkpoint_ends_as_if_it_had_never_stopped(
    way: str, begun: Path, tiny_corpus: Path, tmp_path: Path
) -> None:
    middle = begun / "checkpoints/step-00000003"
    if way != "ours":
        google = write_as_google(load_checkpoint(middle), tmp_path / "google")
        tokenizer = middle / "tokenizer"
        from litebert.interop.source import LoadOptions

        convert(google, tmp_path / "kept", ConvertOptions(keeps_slots=True), LoadOptions(tokenizer=tokenizer))
        middle = tmp_path / "kept"
    pretrain(make_recipe(tiny_corpus, **{"from": str(middle), "continues": True}), tmp_path / "next")
    end, expected = last_checkpoint(tmp_path / "next"), last_checkpoint(begun)
    assert end.step == expected.step == 6
    for name, tensor in expected.load_weights().items():
        assert torch.equal(end.load_weights()[name], tensor), name
    for name, tensor in expected.load_optimizer().items():
        assert torch.equal(end.load_optimizer()[name], tensor), name


@pytest.mark.parametrize("kind", ["unigram", "wordpiece", "bpe"])
def test_pretraining_starts_from_the_weights_of_a_hugging_face_folder(kind: Any, tmp_path: Path) -> None:
    sentences = make_sentences()
    tokenizer = train_tokenizer(sentences, VocabularyOptions(kind, SIZES[kind]))
    (tmp_path / "text.txt").write_text("\n".join(sentences[:600]), "utf-8")
    corpus = tmp_path / "corpus"
    build_corpus([tmp_path / "text.txt"], tokenizer, corpus, BuildOptions(valid_share=0.1, is_quiet=True))
    save(tmp_path / "ours", replace(SMALL, vocab_size=tokenizer.vocab_size), PRETRAINING, tokenizer)
    convert(tmp_path / "ours", tmp_path / "theirs", ConvertOptions(to="huggingface"))
    for source in ("ours", "theirs"):
        values = make_recipe(corpus, **{"from": str(tmp_path / source)}).values
        values["model"] |= {"vocab_size": tokenizer.vocab_size}
        pretrain(build_recipe(values), tmp_path / f"{source}-run")
    ends = [last_checkpoint(tmp_path / name).load_weights() for name in ("ours-run", "theirs-run")]
    assert all(torch.equal(tensor, ends[1][name]) for name, tensor in ends[0].items())


def without(folder: Path, *beginnings: str) -> Path:
    """A Hugging Face folder that has lost the tensors whose names begin so."""
    file = folder / "model.safetensors"
    save_file({name: t for name, t in load_file(file).items() if not name.startswith(beginnings)}, file)
    return folder


def test_heads_that_a_source_lacks_are_initialized_and_reported(
    begun: Path, tiny_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    convert(last_checkpoint(begun).path, tmp_path / "theirs", ConvertOptions(to="huggingface"))
    recipe = make_recipe(tiny_corpus, **{"from": str(tmp_path / "theirs")})
    pretrain(recipe, tmp_path / "all-heads")
    assert "newly initialized heads" not in capsys.readouterr().out
    without(tmp_path / "theirs", "sop_classifier.")
    pretrain(recipe, tmp_path / "one-head")
    assert "newly initialized heads: sentence\n" in capsys.readouterr().out
    without(tmp_path / "theirs", "predictions.")
    pretrain(recipe, tmp_path / "no-head")
    assert "newly initialized heads: mlm, sentence\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("beginning", "code", "place"),
    [
        ("predictions.dense.bias", "tensors-mismatch", "1 missing: predictions.dense.bias"),
        ("albert.pooler.", "no-pooler", "theirs"),
    ],
)
def test_an_incomplete_source_starts_no_pretraining(
    beginning: str, code: str, place: str, begun: Path, tiny_corpus: Path, tmp_path: Path
) -> None:
    convert(last_checkpoint(begun).path, tmp_path / "theirs", ConvertOptions(to="huggingface"))
    without(tmp_path / "theirs", beginning, *(["sop_classifier."] if "pooler" in beginning else []))
    with refuses(LitebertError, code, at=place):
        pretrain(make_recipe(tiny_corpus, **{"from": str(tmp_path / "theirs")}), tmp_path / "next")


def test_a_source_without_pooler_starts_a_run_without_one(begun: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    convert(last_checkpoint(begun).path, tmp_path / "theirs", ConvertOptions(to="huggingface", heads=("mlm",)))
    values = make_recipe(tiny_corpus, **{"from": str(tmp_path / "theirs")}).values
    values["model"] |= {"has_pooler": False}
    values["segments"] |= {"task": "none"}
    pretrain(build_recipe(values), tmp_path / "next")
    assert [spec.kind for spec in last_checkpoint(tmp_path / "next").heads] == ["mlm"]


@pytest.mark.parametrize(
    ("changes", "init", "code"),
    [
        ({}, {"continues": True}, "conflicting-options"),
        ({"train.steps": 6}, {"from": "last", "continues": True}, "nothing-to-train"),
        ({"model.num_heads": 4}, {"from": "last"}, "config-mismatch"),
        ({"model.activation": "relu"}, {"from": "last"}, "config-mismatch"),
    ],
)
def test_a_source_that_cannot_be_continued_is_refused(
    changes: dict[str, Any], init: dict[str, Any], code: str, begun: Path, tiny_corpus: Path, tmp_path: Path
) -> None:
    if "from" in init:
        init = init | {"from": str(last_checkpoint(begun).path)}
    values = make_recipe(tiny_corpus).values
    for key, value in changes.items():
        section, _, name = key.partition(".")
        values[section] = values[section] | {name: value}
    with refuses(ConfigError, code):
        pretrain(build_recipe(values | {"init": init}), tmp_path / "next")


def test_a_checkpoint_without_moments_cannot_be_continued(begun: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    middle = load_checkpoint(begun / "checkpoints/step-00000003")
    convert(middle.path, tmp_path / "without")
    recipe = make_recipe(tiny_corpus, **{"from": str(tmp_path / "without"), "continues": True})
    with refuses(DataError, "no-optimizer"):
        pretrain(recipe, tmp_path / "next")
