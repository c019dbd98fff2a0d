"""Recipes: read strictly, with overrides, and the official data as a shorthand."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

from litebert.batches.google import GOOGLE
from litebert.core.errors import ConfigError
from litebert.pretraining.recipe import Recipe, build_recipe, list_changes, load_recipe

RECIPES = Path(__file__).parents[2] / "litebert" / "pretraining" / "recipes"
SHIPPED = sorted(path.stem for path in RECIPES.glob("*.toml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_recipe_loads_by_name_and_states_its_source(name: str) -> None:
    assert isinstance(load_recipe(name), Recipe)
    header = (RECIPES / f"{name}.toml").read_text("utf-8")
    for word in ("Source:", "Cost:", "Expected:", "litebert pretrain"):
        assert word in header.split("\n\n")[0], word


def test_words_override_a_recipe() -> None:
    recipe = load_recipe("nano", ["batch.sequences=8", "model.sharing=ffn", "data.corpora=elsewhere", "seed=5"])
    assert (recipe.batch.sequences, recipe.model.sharing, recipe.seed) == (8, "ffn", 5)
    assert recipe.data.corpora == ("elsewhere",)
    assert recipe.model.hidden_size == 128  # the preset's


def test_compat_google_sets_every_switch_and_a_named_key_wins() -> None:
    recipe = load_recipe("nano", ["data.compat=google", "masking.max_predictions=77"])
    for section, switches in GOOGLE.items():
        for name, value in switches.items():
            expected = 77 if name == "max_predictions" else value
            assert getattr(getattr(recipe, section), name) == expected
            assert getattr(getattr(load_recipe("nano"), section), name) != value


def test_a_recipe_can_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[model]\npreset = "nano"\n[data]\ncorpora = ["a", "b"]\nweights = [1, 3]\n'
        "[batch]\ntokens = 9000\n[train]\nsteps = 9000\n"
    )
    assert load_recipe(path).data.weights == (1.0, 3.0)
    assert load_recipe(str(path)).batch.tokens == 9000


def test_a_recipe_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes("# für Elise\nseed = 1\n".encode("latin-1"))
    with refuses(ConfigError, "bad-encoding", at="mine.toml"):
        load_recipe(path)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["batch.sequnces=3"], "unknown-key"),
        (["data.compat=gogle"], "unknown-compat"),
        (["data.compat=[1]"], "unknown-compat"),
        (["data=5"], "not-a-section"),
        (["data.weights=[nan]"], "out-of-range"),
        (["stages=5"], "bad-stages"),
        (["stages=[1]"], "bad-stages"),
        (["masking.max_ngram=128"], "out-of-range"),
        (["masking.max_span=128"], "out-of-range"),
        (["batch.sequences=999999999"], "out-of-range"),
        (["model.preset=nanno"], "unknown-preset"),
        (["masking.rate=often"], "bad-value"),
        (["segments.format=full-sentences"], "conflicting-options"),
        (["segments.max_length=1000"], "conflicting-options"),
        (["model.num_segments=1"], "conflicting-options"),
        (["batch.tokens=500"], "conflicting-options"),
        (["seed=-1"], "out-of-range"),
        (["model.num_layers=0"], "out-of-range"),
        (
            ["stages=[{at = 3, model = {num_layers = 0}}]"],
            "out-of-range",
        ),
        (["stages=[{at = 3, masking = {rate = 2.0}}]"], "out-of-range"),
    ],
)
def test_wrong_words_are_refused_with_the_key_and_a_remedy(words: list[str], code: str) -> None:
    with refuses(ConfigError, code):
        load_recipe("nano", words)


def test_unknown_and_broken_recipes_are_refused(tmp_path: Path) -> None:
    with refuses(ConfigError, "unknown-recipe"):
        load_recipe("nanno")
    with refuses(ConfigError, "missing-file"):
        load_recipe(tmp_path / "absent.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[model\n")
    with refuses(ConfigError, "bad-toml", at="broken.toml"):
        load_recipe(broken)


def test_a_missing_section_without_a_default_is_an_error() -> None:
    values: dict[str, Any] = {"model": {"preset": "nano"}, "data": {"corpora": ["x"]}}
    with refuses(ConfigError, "missing-key"):
        build_recipe(values)


def test_a_shortened_run_leaves_out_the_stages_it_does_not_reach() -> None:
    assert [stage.at for stage in load_recipe("nano").stages] == [3000]
    short = load_recipe("nano", ["train.steps=3000"])
    assert short.stages == ()
    assert short.at(2999).model.num_layers == short.model.num_layers


@pytest.mark.parametrize("key", ["runtime.dtype", "init.from", "train.steps", "train.parallel", "train.keep_last"])
def test_a_stage_cannot_change_keys_that_are_fixed_for_the_run(key: str) -> None:
    with refuses(ConfigError, "bad-stages"):
        load_recipe("nano", [f"stages=[{{at = 5, seed = 2}}, {{at = 6, {key} = 1}}]"])


@pytest.mark.parametrize(
    "change", ['data.compat = "google"', 'model.preset = "albert-tiny"', "model = {num_layers = 3}"]
)
def test_stages_are_the_same_when_a_run_reads_its_recipe_again(change: str) -> None:
    recipe = load_recipe("nano", [f"stages=[{{at = 50, {change}}}, {{at = 60, masking.rate = 0.2}}]"])
    again = build_recipe(tomllib.loads(recipe.to_toml()))
    assert [again.at(step) for step in (0, 55, 65)] == [recipe.at(step) for step in (0, 55, 65)]
    assert again.at(55) != again.at(0)
    assert list_changes(recipe, again) == []
    assert again.fingerprint == recipe.fingerprint


def test_stages_are_in_order() -> None:
    with refuses(ConfigError, "bad-stages"):
        load_recipe("nano", ["stages=[{at = 5, seed = 2}, {at = 5, seed = 3}]"])
