"""Measurements of studies: laws that they must obey, whatever the model."""

import json
from pathlib import Path

import pytest
import torch

from litebert.batches.batch import Batch
from litebert.model.cost import activation_memory
from litebert.model.model import build_model
from litebert.pretraining.recipe import Recipe, load_recipe
from litebert.study import measures
from litebert.study.downstream import _summarize, average, name_scores
from litebert.study.measures import (
    Measured,
    Subject,
    build_engine,
    count,
    make_batch,
    measure_memory,
    measure_speed,
    summarize_curve,
    trace,
)
from litebert.study.spec import ScaleSpec, TaskSpec
from litebert.training.loop import Engine

SMALL = ("model.vocab_size=60", "model.hidden_size=16", "model.embedding_size=16", "model.ffn_size=32")


def small_recipe(*words: str) -> Recipe:
    return load_recipe("laptop", [*SMALL, "batch.sequences=4", "segments.max_length=16", *words])


def test_a_straight_way_has_no_roughness_and_a_jagged_one_has() -> None:
    assert summarize_curve("l2", [1.0, 2.0, 3.0, 4.0]) == {"l2_floor": 1.0, "l2_roughness": 0.0}
    assert summarize_curve("l2", [2.0, 4.0, 2.0, 4.0])["l2_roughness"] == pytest.approx(100 * 4 / 3)
    assert summarize_curve("l2", [2.0, 1.0]) == {"l2_floor": 1.0}  # two layers do not bend


def test_the_curve_of_training_is_the_mean_of_the_steps_since_its_last_point(tmp_path: Path) -> None:
    lines = [
        {"step": step, "mlm_loss": step % 2, **({"valid_loss": 5.0} if step == 400 else {})} for step in range(1, 401)
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    series = trace(
        Subject(load_recipe("nano"), ScaleSpec(recipe="nano", seeds=(1,), measures=("curves",)), tmp_path)
    ).series
    assert series["train_mlm_loss"] == {"x": [2.0 * n for n in range(1, 201)], "y": [0.5] * 200}
    assert series["loss"] == {"x": [400.0], "y": [5.0]}


def test_memory_is_what_arithmetic_says_and_dropout_takes_more() -> None:
    plain = small_recipe("segments.task=none", "model.num_layers=2")
    dropping = small_recipe("segments.task=none", "model.num_layers=2", "model.hidden_dropout_rate=0.1")
    measured = measure_memory(plain)
    expected = activation_memory(plain.model, batch_size=4, length=16, mlm_rate=2 / 16)
    assert measured == pytest.approx(expected, rel=0.03)
    assert measure_memory(dropping) > measured


def test_speed_counts_complete_updates_that_change_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Engine[Batch]] = []

    def build(recipe: Recipe) -> Engine[Batch]:
        built.append(build_engine(recipe))
        return built[-1]

    monkeypatch.setattr(measures, "build_engine", build)
    recipe = small_recipe("model.num_layers=1")
    measure_speed(recipe, num_steps=2)
    first = build_engine(recipe).model.state_dict()
    assert not any(torch.equal(tensor, first[name]) for name, tensor in built[0].model.state_dict().items())


def test_a_batch_of_random_ids_is_one_micro_batch_of_the_recipe() -> None:
    batch = make_batch(small_recipe("train.micro_batch=2"))
    assert batch.token_ids.shape == (2, 16)
    assert len(batch.mlm_labels) == 2 * 2  # 15 % of 16
    assert batch.sentence_labels is not None
    assert make_batch(small_recipe("segments.task=none")).sentence_labels is None


@pytest.mark.parametrize(("sharing", "has_pooler"), [("all", True), ("ffn", True), ("none", False)])
def test_parameters_are_counted_as_the_paper_counts_them(sharing: str, has_pooler: bool) -> None:
    spec = ScaleSpec(recipe="laptop", seeds=(1,), measures=("parameters",))
    recipe = small_recipe(f"model.sharing={sharing}")
    encoder = build_model(recipe.model, []).encoder
    number = sum(p.numel() for name, p in encoder.named_parameters() if has_pooler or not name.startswith("pooler"))
    assert count(Subject(recipe, spec)).values["parameters"] == pytest.approx(number / 1e6)


def test_the_median_of_seeds_counts_and_squad_has_two_numbers() -> None:
    def report(f1: float) -> dict[str, object]:
        dev = {
            "scores": {"f1": f1, "exact": f1 - 0.1},
            "chance": {"score": 0.2, "margin": 0.0},
            "num_examples": 10,
            "is_at_chance": False,
        }
        return {"metric": "f1", "dev": {"dev": dev}}

    measured = _summarize(TaskSpec(task="squad-v1", data=""), [report(0.5), report(0.9), report(0.6)])
    assert measured.values == pytest.approx({"squad-v1": 60.0, "squad-v1-em": 50.0})
    assert measured.levels == {"squad-v1": 20.0}


def test_the_average_has_the_intervals_of_its_tasks_and_counts_squad_once() -> None:
    measured = Measured(
        values={"mnli": 40.0, "squad-v1": 60.0, "squad-v1-em": 50.0},
        intervals={"mnli": (37.0, 43.0), "squad-v1": (56.0, 64.0)},
        levels={"mnli": 33.0, "squad-v1": 20.0},
    )
    mean = average(["mnli", "squad-v1"], measured)
    assert mean.values == {"avg": pytest.approx((40.0 + 55.0) / 2)}
    assert mean.intervals["avg"] == pytest.approx((47.5 - 2.5, 47.5 + 2.5))  # the root of 3 and 4 squared, halved
    assert mean.levels == {"avg": 26.5}
    assert average([], measured) == Measured()


def test_subsets_of_a_task_are_scored_by_the_same_run() -> None:
    scores = {"accuracy": 0.8, "accuracy_middle": 0.9, "accuracy_high": 0.75}
    assert name_scores("race", "accuracy", scores) == {"race": 0.8, "race-middle": 0.9, "race-high": 0.75}
