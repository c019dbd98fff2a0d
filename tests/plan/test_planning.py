"""The laws of planning: what shards add up to, what is sent, what fits, and the published facts."""

import itertools
import math
import re
from dataclasses import replace

import pytest
from refusals import refuses

from litebert.core.errors import ConfigError
from litebert.model.config import HeadSpec
from litebert.model.cost import count_parameters
from litebert.model.presets import preset
from litebert.plan.advice import advise
from litebert.plan.devices import Device, Peaks, load_device
from litebert.plan.memory import Distribution, count_shard
from litebert.plan.plan import WAYS, bert_of_same_width, plan_run
from litebert.plan.traffic import Message, list_messages, list_parameters
from litebert.pretraining.recipe import Recipe, load_recipe

HEADS = (HeadSpec("mlm"), HeadSpec("sentence"))
DEVICES = ("a100-80g", "a100-40g", "h100-80g", "v100-32g", "tpu-v3")
RECIPES = ("albert-base", "albert-xxlarge", "bert-base", "bert-large-lamb", "nano", "roberta-large")
DDP, DDP_RECOMPUTE, FSDP, FSDP_RECOMPUTE = range(len(WAYS))


def make_device(**changes: object) -> Device:
    facts: dict[str, object] = {
        "title": "a device",
        "memory_gb": 10.0,
        "memory_gb_per_second": 1000.0,
        "link_gb_per_second": 100.0,
        "network_gb_per_second": 10.0,
        "devices_per_node": 4,
        "tflops": Peaks(fp32=10.0, bf16=100.0),
        "efficiency": 0.5,
    }
    return Device(**(facts | changes))  # type: ignore[arg-type]


def a_recipe(name: str = "albert-base", *overrides: str) -> Recipe:
    return load_recipe(name, overrides)


@pytest.mark.parametrize("name", ["albert-base", "bert-base", "nano"])
def test_the_parameters_that_are_spread_are_all_of_the_models(name: str) -> None:
    parameters = list_parameters(preset(name), HEADS, trains_pooler=True)
    assert parameters.num_stored == parameters.num_trained == count_parameters(preset(name), HEADS).total


def test_a_pooler_that_nothing_reads_is_stored_and_not_trained() -> None:
    config = preset("roberta-base")
    parameters = list_parameters(config, HEADS[:1], trains_pooler=False)
    assert parameters.num_stored - parameters.num_trained == 768 * 768 + 768


def test_only_what_is_not_shared_is_sharded_block_by_block() -> None:
    assert not list_parameters(preset("albert-base"), HEADS, trains_pooler=True).blocks
    assert len(list_parameters(preset("bert-base"), HEADS, trains_pooler=True).blocks) == 24


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("num_devices", [2, 8, 64])
def test_the_shards_of_all_devices_are_one_model(name: str, num_devices: int) -> None:
    stage = plan_run(load_recipe(name), load_device("a100-80g"), num_devices).stages[0]
    whole, shard = stage.ways[DDP].memory.states, stage.ways[FSDP].memory.states
    assert whole <= shard * num_devices <= 1.1 * whole + 100_000  # FSDP fills up the last shards


def test_shards_are_padded_to_equal_rows() -> None:
    parameters = list_parameters(preset("nano"), HEADS, trains_pooler=True)
    ddp, fsdp = (count_shard(parameters.root.trained, Distribution(kind, 3)) for kind in ("ddp", "fsdp"))
    assert ddp == parameters.num_trained
    assert 3 * fsdp > ddp


def test_an_all_reduce_in_a_ring_sends_nearly_twice_the_gradients() -> None:
    message = Message("all-reduce", "gradients", 1, 1000)
    assert message.sent_bytes(1) == 0
    assert message.sent_bytes(2) == 1000
    assert message.sent_bytes(1000) == pytest.approx(1998)


def test_gathering_and_reducing_shards_sends_as_much_as_one_all_reduce() -> None:
    parameters = list_parameters(preset("nano"), HEADS, trains_pooler=True)
    sent = {
        parallel: sum(message.sent_bytes(2) for message in list_messages(parameters, parallel, 2, num_parts=num_parts))
        for parallel, num_parts in (("ddp", 1), ("fsdp", 5))
    }
    assert sent["fsdp"] == pytest.approx(sent["ddp"], rel=0.001)


def test_parts_cost_messages_only_where_blocks_are_gathered_anew() -> None:
    for name, grows in (("albert-base", False), ("bert-base", True)):
        parameters = list_parameters(preset(name), HEADS, trains_pooler=True)
        for parallel in ("ddp", "fsdp"):
            one, four = (
                sum(message.num_bytes for message in list_messages(parameters, parallel, 8, num_parts=num_parts))
                for num_parts in (1, 4)
            )
            assert (four > one) == (grows and parallel == "fsdp")


def test_albert_large_has_18_times_fewer_parameters_to_send_than_bert_large() -> None:
    plan = plan_run(a_recipe("albert-large"), load_device("a100-80g"), 64)
    assert plan.bert is not None
    assert round(plan.bert.num_parameters / plan.stages[0].num_parameters, 1) == 18.8  # the paper counts no heads: 18
    assert plan.bert.ways[DDP].sent_bytes > 18 * plan.stages[0].ways[DDP].sent_bytes
    bert_large = replace(preset("bert-large"), vocab_size=30_000)
    assert bert_of_same_width(preset("albert-large")) == bert_large
    assert bert_of_same_width(bert_large) == bert_large


def test_a_bert_has_no_other_bert_to_be_compared_with() -> None:
    assert plan_run(a_recipe("bert-base"), load_device("a100-80g"), 8).bert is None


def test_the_shared_and_the_unshared_model_compute_alike() -> None:
    plan = plan_run(a_recipe("albert-base"), load_device("a100-80g"), 64)
    assert plan.bert is not None
    assert plan.bert.flops_per_step == pytest.approx(plan.stages[0].flops_per_step, rel=0.05)


def test_electras_estimate_of_albert_xxlarge_is_met() -> None:
    """ELECTRA puts the released xxlarge (1.5M steps, which is 12 times the recipe's) at 3.1e22 FLOPs."""
    plan = plan_run(a_recipe("albert-xxlarge", "train.steps=1500000"), load_device("tpu-v3"), 512)
    # ELECTRA counts the backward pass as one forward pass, we as two: two thirds of ours are theirs
    assert plan.total_flops * 2 / 3 == pytest.approx(3.1e22, rel=0.02)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("device", DEVICES)
def test_every_kind_of_recipe_can_be_planned_for_every_device(name: str, device: str) -> None:
    recipe = load_recipe(name)
    for num_devices in (1, 64):
        plan = plan_run(recipe, load_device(device), num_devices)
        assert plan.best is not None
        assert sum(stage.num_steps for stage in plan.stages) == recipe.train.steps
        assert len(plan.stages) == len(recipe.stages) + 1
        assert advise(recipe, plan)
        for way in (way for stage in plan.stages for way in stage.ways):
            assert way.memory.total <= plan.machine.device.usable_bytes
            assert way.num_parts * way.micro_batch * num_devices >= plan.stages[0].batching.num_rows


def test_the_rest_of_a_run_and_what_came_before_add_up() -> None:
    plan = plan_run(load_recipe("cpu-small"), make_device(), 1)
    ends = [stage.first_step + stage.num_steps for stage in plan.stages]
    for step in (0, ends[0] - 100, ends[0], ends[1] + 100):
        left = plan.after(step)
        assert sum(stage.num_steps for stage in left.stages) == ends[-1] - step
        came_before = [
            stage.hours(stage.ways[DDP]) * max(0, min(stage.num_steps, step - stage.first_step)) / stage.num_steps
            for stage in plan.stages
        ]
        assert left.hours(DDP) == pytest.approx(plan.hours(DDP) - sum(came_before))


def test_the_largest_micro_batch_fits_and_one_more_does_not() -> None:
    recipe = a_recipe("albert-base", "batch.sequences=1000000")
    way = plan_run(recipe, make_device(), 1).stages[0].ways[DDP]
    for extra, fits in ((0, True), (1, False)):
        size = way.largest_micro_batch + extra
        needed = plan_run(a_recipe("albert-base", f"batch.sequences={size}"), make_device(memory_gb=99.0), 1)
        assert (needed.stages[0].ways[DDP].memory.total <= make_device().usable_bytes) == fits


def test_computing_again_takes_a_third_longer_and_less_memory() -> None:
    ways = plan_run(a_recipe("bert-base"), make_device(memory_gb=40.0), 8).stages[1].ways
    assert ways[DDP_RECOMPUTE].computing_seconds == pytest.approx(ways[DDP].computing_seconds * 4 / 3)
    assert ways[DDP_RECOMPUTE].memory.activations < ways[DDP].memory.activations / 3
    assert ways[DDP_RECOMPUTE].largest_micro_batch > 3 * ways[DDP].largest_micro_batch


def test_hours_follow_from_flops_peak_and_efficiency() -> None:
    plan = plan_run(a_recipe("albert-base"), make_device(efficiency=0.25), 1)
    assert plan.hours(DDP) == pytest.approx(plan.total_flops / (10e12 * 0.25) / 3600, rel=1e-3)
    twice = plan_run(a_recipe("albert-base"), make_device(), 1)
    assert twice.hours(DDP) == pytest.approx(plan.hours(DDP) / 2, rel=1e-3)


def test_the_optimizer_is_as_fast_as_memory_and_shards_share_its_work() -> None:
    for name, passed in (("adamw", 10), ("lamb", 13)):
        stage = plan_run(a_recipe("bert-base", f"optim.name={name}"), make_device(), 8).stages[0]
        assert stage.ways[DDP].updating_seconds == pytest.approx(passed * 4 * stage.num_trained / 1000e9)
        assert stage.ways[FSDP].updating_seconds == pytest.approx(stage.ways[DDP].updating_seconds / 8, rel=0.01)


def test_muon_keeps_one_moment_of_a_matrix_and_iterates_once_for_each_that_is_stored() -> None:
    iterations = 5 * 2 * (4 * 3 * 768**3 + 2 * (2 * 768 * 768 * 3072 + 768**3))  # of one layer
    matrices = 4 * 768 * 768 + 2 * 768 * 3072
    for name, num_stored in (("bert-base", 12), ("albert-base", 1)):
        adamw, muon = (
            plan_run(a_recipe(name, f"optim.name={optimizer}"), make_device(), 8).stages[0].ways[DDP]
            for optimizer in ("adamw", "muon")
        )
        assert adamw.memory.optimizer - muon.memory.optimizer == 4 * num_stored * matrices
        extra_seconds = num_stored * iterations / (10e12 * make_device().efficiency)
        assert muon.updating_seconds - adamw.updating_seconds == pytest.approx(extra_seconds)


def test_twice_the_devices_take_half_the_hours_where_messages_are_small() -> None:
    few, many = (plan_run(a_recipe("albert-base"), make_device(), n) for n in (2, 4))
    assert many.hours(DDP) == pytest.approx(few.hours(DDP) / 2, rel=0.01)


def test_nodes_talk_at_the_speed_of_the_network() -> None:
    device = make_device()
    assert device.ring_bytes_per_second(4) == 100e9
    assert device.ring_bytes_per_second(5) == 10e9


def test_shared_weights_are_waited_for_and_unshared_ones_hide_behind_the_backward_pass() -> None:
    albert, bert = (
        plan_run(a_recipe(name), make_device(), 4).stages[0].ways[DDP] for name in ("albert-base", "bert-base-lamb")
    )
    assert albert.waiting_seconds == albert.communicating_seconds > 0
    assert bert.waiting_seconds == 0 < bert.communicating_seconds


def test_one_device_sends_nothing() -> None:
    for way in plan_run(a_recipe("bert-base"), make_device(), 1).stages[0].ways:
        assert way.sent_bytes == way.waiting_seconds == way.memory.gathered == 0


def test_fewer_bytes_a_number_keep_less_and_multiply_faster() -> None:
    full, half = (
        plan_run(a_recipe("bert-base", f"runtime.dtype={dtype}"), make_device(memory_gb=40.0), 4)
        for dtype in ("fp32", "auto")
    )
    assert half.machine.dtype == "bf16"
    assert half.hours(DDP) < full.hours(DDP) / 5
    assert half.stages[1].ways[DDP].memory.activations < 0.75 * full.stages[1].ways[DDP].memory.activations
    # gradients are exchanged in fp32 all the same
    assert half.stages[0].ways[DDP].sent_bytes == full.stages[0].ways[DDP].sent_bytes


def test_a_run_that_does_not_fit_is_reported_with_a_fix() -> None:
    recipe = a_recipe("albert-xxlarge")
    plan = plan_run(recipe, make_device(memory_gb=2.0), 8)
    assert plan.best is None
    assert advise(recipe, plan) == [
        "The recipe does not fit: a single sequence needs 2.8 GB and 1.8 GB are usable; "
        "try a device with more memory, or "
        "runtime.dtype=bf16, or a shorter segments.max_length."
    ]


def test_a_way_that_fits_is_named_where_the_recipes_own_does_not() -> None:
    recipe = a_recipe("albert-base")
    for memory_gb, remedy in ((0.467, "train.parallel=fsdp"), (0.378, "train.recompute=true")):
        plan = plan_run(recipe, make_device(memory_gb=memory_gb), 8)
        assert not plan.stages[0].ways[DDP].fits
        assert advise(recipe, plan)[0].startswith(f"Add {remedy} train.micro_batch=")
        assert "the recipe's own settings do not fit" in advise(recipe, plan)[0]


@pytest.mark.parametrize("name", ["bert-large", "bert-base", "roberta-large", "albert-xxlarge", "cpu-small", "nano"])
@pytest.mark.parametrize("micro_batch", ["train.micro_batch=0", "train.micro_batch=16"])
@pytest.mark.parametrize("num_devices", [1, 4])
def test_the_micro_batch_that_is_advised_fits_in_every_stage(name: str, micro_batch: str, num_devices: int) -> None:
    recipe = a_recipe(name, micro_batch)
    for device in (*map(load_device, ("v100-32g", "h100-80g")), make_device(memory_gb=8.0)):
        plan = plan_run(recipe, device, num_devices)
        assert plan.best is not None
        advised = re.search(r"train\.micro_batch=(\d+)", advise(recipe, plan)[0])
        size = int(advised[1]) if advised else recipe.train.micro_batch
        ways = [stage.ways[plan.best] for stage in plan.stages]
        if advised:
            assert size <= min(way.largest_micro_batch for way in ways)
        for stage, way in zip(plan.stages, ways, strict=True):
            rows = stage.batching.rows_per_device(num_devices)
            num_parts = math.ceil(rows / (size or rows))
            assert math.ceil(rows / num_parts) <= way.largest_micro_batch
            assert num_parts == way.num_parts  # and the hours are those of this micro-batch


def test_a_recipe_is_not_right_where_a_later_stage_does_not_fit() -> None:
    recipe = a_recipe("bert-large", "train.micro_batch=0")
    advice = advise(recipe, plan_run(recipe, load_device("v100-32g"), 4))
    assert advice[0].startswith("Add train.micro_batch=32 (the recipe's micro-batch of 64 does not fit)")


def test_a_later_stage_must_have_a_sequence_for_each_device() -> None:
    recipe = a_recipe("cpu-small")  # 32 sequences at first, 6 at the end
    few, uneven = (advise(recipe, plan_run(recipe, make_device(), num_devices)) for num_devices in (8, 4))
    assert "A batch of 6 sequences cannot be split across 8 devices: training would not start." in few
    assert "6 sequences do not divide evenly across 4 devices: some devices will idle." in uneven


def test_a_negligible_gain_is_no_reason_to_shard() -> None:
    plan = plan_run(a_recipe("albert-large"), load_device("a100-80g"), 64)
    assert plan.hours(FSDP) < plan.hours(DDP)  # shards share the optimizer's work
    assert plan.best == DDP


def test_more_devices_than_sequences_are_pointed_out() -> None:
    recipe = a_recipe("nano", "batch.sequences=64")
    assert any(
        "64 sequences cannot be split across 100 devices" in sentence
        for sentence in advise(recipe, plan_run(recipe, make_device(), 100))
    )


def test_a_run_by_tokens_or_by_the_clock_is_planned_to_its_end() -> None:
    tokens = plan_run(a_recipe("albert-base", "train.tokens=1000000000"), make_device(), 8)
    assert tokens.stages[0].num_steps == -(-1_000_000_000 // (4096 * 512))
    hours = plan_run(a_recipe("albert-base", "train.hours=10"), make_device(), 8)
    assert hours.hours(DDP) == pytest.approx(10, rel=0.01)


def test_a_stage_of_a_run_by_tokens_or_by_the_clock_has_its_share_of_them() -> None:
    # its stages begin after so many of the recipe's steps: here that is a share, and no number of steps
    by_steps = plan_run(a_recipe("cpu-small"), make_device(), 1)
    shares = [stage.num_steps / a_recipe("cpu-small").train.steps for stage in by_steps.stages]
    hours = plan_run(a_recipe("cpu-small", "train.hours=1"), make_device(), 1)
    assert [stage.hours(stage.ways[DDP]) for stage in hours.stages] == pytest.approx(shares, rel=0.01)
    assert [stage.first_step for stage in hours.stages[1:]] == list(
        itertools.accumulate(stage.num_steps for stage in hours.stages[:-1])
    )
    tokens = plan_run(a_recipe("cpu-small", "train.tokens=10000000"), make_device(), 1)
    assert tokens.total_tokens == pytest.approx(1e7, rel=0.01)


def test_a_format_that_the_device_lacks_is_refused() -> None:
    with refuses(ConfigError, "unsupported-device"):
        plan_run(a_recipe("albert-base", "runtime.dtype=bf16"), load_device("v100-32g"), 8)


def test_messages_are_waited_for_at_small_batches_of_short_sequences_in_bf16() -> None:
    """The example of docs/planning.md."""
    for dtype, is_waiting in (("bf16", [True, False]), ("fp32", [False, False])):
        recipe = a_recipe("bert-large", "batch.sequences=32", f"runtime.dtype={dtype}")
        ways = [stage.ways[DDP] for stage in plan_run(recipe, load_device("h100-80g"), 8).stages]
        assert [way.waiting_seconds > way.computing_seconds for way in ways] == is_waiting
        assert [way.waiting_seconds > 0 for way in ways] == is_waiting
