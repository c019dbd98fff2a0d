"""Recipes: read strictly, overridden by words, the official data as a shorthand."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from litebert.batches.google import GOOGLE
from litebert.core.errors import ConfigError
from litebert.pretraining.recipe import Recipe, build_recipe, list_changes, load_recipe

RECIPES = Path(__file__).parents[2] / "litebert" / "pretraining" / "recipes"
SHIPPED = sorted(path.stem for path in RECIPES.glob("*.toml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_recipe_loads_by_name_and_says_where_it_comes_from(name: str) -> None:
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
    with pytest.raises(ConfigError, match=r"mine\.toml: not UTF-8"):
        load_recipe(path)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["batch.sequnces=3"], r"unknown key 'batch.sequnces'; did you mean 'sequences'"),
        (["data.compat=gogle"], "did you mean 'google'"),
        (["data.compat=[1]"], "unknown data.compat"),
        (["data=5"], "data = 5 is a section"),
        (["data.weights=[nan]"], "^data.weights must be"),
        (["stages=5"], "stages = 5 is a list of tables"),
        (["stages=[1]"], r"stages = \[1\] is a list of tables"),
        (["masking.max_ngram=128"], "^masking.max_ngram .* 127"),
        (["masking.max_span=128"], "^masking.max_span .* 127"),
        (["batch.sequences=999999999"], "^batch.sequences must be between 0 and 1,048,576"),
        (["model.preset=nanno"], "did you mean 'nano'"),
        (["masking.rate=often"], "masking.rate = 'often'"),
        (["segments.format=full-sentences"], "^segments.task = .*segments.format"),
        (["segments.max_length=1000"], "does not fit model.max_positions = 512: lower the first"),
        (["model.num_segments=1"], "two segments"),
        (["batch.tokens=500"], "set one of them"),
        (["seed=-1"], "^seed must be at least 0, got -1"),
        (["model.num_layers=0"], "^model.num_layers must be at least 1, got 0"),
        (
            ["stages=[{at = 3, model = {num_layers = 0}}]"],
            "^stages: number 1: model.num_layers must be at least 1, got 0",
        ),
        (["stages=[{at = 3, masking = {rate = 2.0}}]"], "^stages: number 1: masking.rate must be"),
    ],
)
def test_wrong_words_are_refused_with_the_key_and_a_remedy(words: list[str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        load_recipe("nano", words)


def test_unknown_and_broken_recipes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'nano'"):
        load_recipe("nanno")
    with pytest.raises(ConfigError, match="no recipe file"):
        load_recipe(tmp_path / "absent.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[model\n")
    with pytest.raises(ConfigError, match=r"broken\.toml"):
        load_recipe(broken)


def test_a_section_that_has_no_default_is_asked_for() -> None:
    values: dict[str, Any] = {"model": {"preset": "nano"}, "data": {"corpora": ["x"]}}
    with pytest.raises(ConfigError, match="'batch' is missing"):
        build_recipe(values)


def test_a_shortened_run_leaves_out_the_stages_it_does_not_reach() -> None:
    assert [stage.at for stage in load_recipe("nano").stages] == [3000]
    short = load_recipe("nano", ["train.steps=3000"])
    assert short.stages == ()
    assert short.at(2999).model.num_layers == short.model.num_layers


@pytest.mark.parametrize("key", ["runtime.dtype", "init.from", "train.steps", "train.parallel", "train.keep_last"])
def test_what_is_settled_for_the_whole_run_is_refused_in_a_stage(key: str) -> None:
    with pytest.raises(ConfigError, match=f"stages: number 2 changes {key}, which is fixed for the whole run"):
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
    with pytest.raises(ConfigError, match=r"number 2 has at = 5; it is a step after 5"):
        load_recipe("nano", ["stages=[{at = 5, seed = 2}, {at = 5, seed = 3}]"])
