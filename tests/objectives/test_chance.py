"""A head at chance on validation text is reported at the end, recorded in the checkpoint, and hidden on the page."""

from pathlib import Path

import pytest
from small_runs import make_recipe

from litebert import load_checkpoint
from litebert.core.runtime import RuntimeOptions, choose_runtime
from litebert.inference.predictor import Predictor
from litebert.interop.convert import ConvertOptions, convert
from litebert.objectives.masked_lm import MaskedLM
from litebert.pretraining.pretrain import pretrain
from litebert.pretraining.stage import draw_validation
from litebert.server.models import NamedModel


def test_a_head_is_at_chance_unless_it_is_clearly_better_than_one_answer(tiny_corpus: Path) -> None:
    recipe = make_recipe(tiny_corpus)
    batches = draw_validation(recipe, str(tiny_corpus))
    find_at_chance = MaskedLM.from_recipe(recipe).find_at_chance
    assert find_at_chance({"mlm_accuracy": 0.9, "sentence_accuracy": 0.9}, batches) == {}
    found = find_at_chance({"mlm_accuracy": 0.9, "sentence_accuracy": 0.5}, batches)
    assert found.keys() == {"sentence"}
    assert found["sentence"].startswith("the sentence task is not above chance: accuracy 0.500 on ")
    assert find_at_chance({"mlm_accuracy": 0.0}, batches).keys() == {"mlm"}


def test_a_run_ends_with_a_warning_about_heads_that_learned_nothing(
    tiny_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = pretrain(make_recipe(tiny_corpus), tmp_path / "run")
    shown = " ".join((captured := capsys.readouterr()).out.split() + captured.err.split())
    assert "the sentence task is not above chance" in shown
    assert "sentence" in load_checkpoint(last).at_chance
    convert(last, tmp_path / "ours")
    convert(last, tmp_path / "words", ConvertOptions(heads=("mlm",)))
    assert "sentence" in load_checkpoint(tmp_path / "ours").at_chance
    assert "sentence" not in load_checkpoint(tmp_path / "words").at_chance
    served = NamedModel.of("tiny", Predictor(load_checkpoint(last), choose_runtime(RuntimeOptions(device="cpu"))))
    assert "order" not in served.describe().functions
    assert "order" in served.functions
