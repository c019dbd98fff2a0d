"""The cost of a recipe: sums over its stages, by steps or by tokens."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from litebert.batches.stream import open_stream
from litebert.plan.devices import Device, Peaks
from litebert.plan.plan import WAYS, plan_run
from litebert.plan.summary import count_run, summarize
from litebert.pretraining.recipe import Recipe, build_recipe, load_recipe


def make_recipe(corpus: Path | str, *, length: int = 32, **sections: Any) -> Recipe:
    shape = {"hidden_size": 16, "embedding_size": 8, "ffn_size": 32, "num_heads": 2, "num_layers": 2}
    values: dict[str, Any] = {
        "model": {"vocab_size": 100, "max_positions": 64, **shape},
        "data": {"corpora": [str(corpus)]},
        "batch": {"sequences": 4},
        "segments": {"max_length": length},
        "schedule": {"warmup_steps": 1},
    }
    return build_recipe({**values, "train": {"steps": 12, **sections.pop("train", {})}, **sections})


LONGER = {"segments": {"max_length": 32}, "model": {"num_layers": 4}}


def test_a_run_is_counted_stage_by_stage(tiny_corpus: Path) -> None:
    staged = count_run(make_recipe(tiny_corpus, length=16, stages=[{"at": 3, **LONGER}]))
    # batches of one epoch differ in width, so each part is what its own first batch says
    long = make_recipe(tiny_corpus)
    first, second = count_run(make_recipe(tiny_corpus, length=16)), open_stream(long.data, long.stream)[0]
    assert staged.tokens == first.tokens * 3 // 12 + 9 * int(second.batch(3).mask.sum())
    assert staged.epochs == pytest.approx(first.epochs * 3 / 12 + 9 / second.steps_per_epoch)
    assert staged.steps == 12


def test_a_stage_of_a_run_by_tokens_has_its_share_of_them(tiny_corpus: Path) -> None:
    size = count_run(make_recipe(tiny_corpus, length=16, train={"tokens": 100_000}, stages=[{"at": 3, **LONGER}]))
    assert size.tokens == pytest.approx(100_000, rel=0.01)


def test_without_a_corpus_every_row_is_full() -> None:
    recipe = make_recipe("nowhere", length=16, stages=[{"at": 3, **LONGER}])
    summary = summarize(recipe)
    assert summary.missing_corpora == ("nowhere",)
    assert summary.text is None
    assert summary.size is not None
    assert summary.size.tokens == 3 * 4 * 16 + 9 * 4 * 32


def test_memory_is_for_the_rows_that_a_batch_of_tokens_has() -> None:
    summary = summarize(make_recipe("nowhere", batch={"tokens": 1000}))
    assert (summary.micro_batch, summary.length) == (math.ceil(1000 / 32), 32)
    assert summary.memory.activations > 0


def test_memory_is_that_of_the_stage_that_needs_most() -> None:
    staged = summarize(make_recipe("nowhere", length=16, stages=[{"at": 3, **LONGER}]))
    alone = summarize(make_recipe("nowhere", model={**asdict(make_recipe("x").model), "num_layers": 4}))
    assert (staged.length, staged.memory) == (32, alone.memory)


@pytest.mark.parametrize(
    "words", [[], ["train.recompute=true"], ["runtime.dtype=bf16"], ["masking.rate=0.4"], ["runtime.device=cuda"]]
)
def test_memory_is_what_the_plan_says_of_such_a_device(words: list[str]) -> None:
    recipe = load_recipe("albert-base", ["runtime.device=cpu", "batch.sequences=32", *words])
    device = Device(
        title="roomy",
        memory_gb=1000.0,
        memory_gb_per_second=10.0,
        link_gb_per_second=1.0,
        network_gb_per_second=1.0,
        devices_per_node=1,
        tflops=Peaks(fp32=1.0, bf16=1.0),
        efficiency=0.5,
        fuses_dropout=recipe.runtime.device == "cuda",
    )
    way = WAYS.index(("ddp", recipe.train.recompute))
    assert summarize(recipe).memory == plan_run(recipe, device, 1).stages[0].ways[way].memory


def test_memory_is_for_no_more_rows_than_a_part_of_the_batch_has() -> None:
    for sequences, micro_batch, rows in ((8, 32, 8), (9, 8, 5), (64, 32, 32)):
        recipe = make_recipe("nowhere", batch={"sequences": sequences}, train={"micro_batch": micro_batch})
        assert summarize(recipe).micro_batch == rows
