"""Plan a run: memory, communication and time of each stage, for each way to distribute it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from litebert.core.errors import ConfigError
from litebert.model.config import ModelConfig
from litebert.model.cost import BYTES, ActivationStorage
from litebert.objectives.registry import build_objective
from litebert.plan.devices import BILLION, Device
from litebert.plan.memory import DeviceMemory, Distribution, Load, device_memory
from litebert.plan.traffic import Message, Parameters, list_messages, list_parameters
from litebert.pretraining.recipe import Recipe
from litebert.training.options import Parallel, TrainOptions

NUMBER_BYTES = {"fp32": BYTES, "bf16": 2, "fp16": 2}
RECOMPUTED = 4 / 3  # two thirds of a step are its backward pass; a second forward pass is another third
# numbers read and written per parameter in an update: AdamW reads weight, gradient and two moments, and writes all but
# the gradient; LAMB reads and writes three of them in two passes
ADAMW_TRAFFIC, LAMB_TRAFFIC = 7, 10
MUON_ITERATIONS = 5
CLIPPING_TRAFFIC = 3  # gradients are read for their norm, read again and written
MIN_SPEEDUP = 1.02  # a smaller gain does not justify a more complex way
MAX_MICRO_BATCH = 1 << 20
WAYS: tuple[tuple[Parallel, bool], ...] = (("ddp", False), ("ddp", True), ("fsdp", False), ("fsdp", True))
NO_LIMITS = (MAX_MICRO_BATCH,) * len(WAYS)


class StageSpan(NamedTuple):
    """A stage as a range of `train.steps`, which is the schedule's scale also for runs limited by tokens or hours."""

    recipe: Recipe  # in effect during the stage
    begin: int
    end: int

    def count_steps(self, train: TrainOptions, *, step_tokens: int, step_seconds: float) -> int:
        """The number of steps; for a run limited by tokens or hours, estimated from the stage's share of them."""
        share = (self.end - self.begin) / train.steps
        if train.tokens:
            return math.ceil(share * train.tokens / step_tokens)
        if train.hours:
            return math.ceil(share * train.hours * 3600 / step_seconds)
        return self.end - self.begin


@dataclass(frozen=True)
class Machine:
    """The devices to plan for, and the number format."""

    device: Device
    num_devices: int
    dtype: str

    @property
    def flops_per_second(self) -> float:
        """The training speed of one device."""
        return self.device.peak_flops(self.dtype) * self.device.efficiency


@dataclass(frozen=True)
class Batching:
    """A step's batch: how many rows of which length."""

    num_rows: int
    length: int
    num_tokens: int  # at most; real text leaves some rows shorter

    def rows_per_device(self, num_devices: int) -> int:
        return math.ceil(self.num_rows / num_devices)

    def cut(self, num_devices: int, micro_batch: int) -> tuple[int, int]:
        """The number and size of a device's micro-batches per step; a `micro_batch` of 0 means a single one."""
        rows = self.rows_per_device(num_devices)
        num_parts = math.ceil(rows / (micro_batch or rows))
        return num_parts, math.ceil(rows / num_parts)


@dataclass(frozen=True)
class Way:
    """One way to distribute a stage, with its memory, communication and time."""

    parallel: Parallel
    recompute: bool
    largest_micro_batch: int  # sequences that fit; 0: not even one
    micro_batch: int  # the size of equal micro-batches that fit in every stage
    num_parts: int
    memory: DeviceMemory
    messages: list[Message]
    sent_bytes: float  # by each device in a step
    computing_seconds: float  # forward and backward
    updating_seconds: float  # the optimizer
    communicating_seconds: float
    waiting_seconds: float  # communication that does not overlap with computation

    @property
    def fits(self) -> bool:
        return self.largest_micro_batch > 0

    @property
    def step_seconds(self) -> float:
        return self.computing_seconds + self.updating_seconds + self.waiting_seconds


@dataclass(frozen=True)
class StagePlan:
    """One stage of a recipe."""

    first_step: int
    num_steps: int
    model: ModelConfig
    batching: Batching
    num_parameters: int
    num_trained: int
    is_shared: bool
    flops_per_step: float
    ways: tuple[Way, ...]  # in the order of WAYS

    def hours(self, way: Way) -> float:
        return self.num_steps * way.step_seconds / 3600


@dataclass(frozen=True)
class Plan:
    """A recipe on some devices."""

    machine: Machine
    stages: tuple[StagePlan, ...]
    bert: StagePlan | None  # the first stage with a BERT of the same width; None if the model is that BERT

    @property
    def total_flops(self) -> float:
        return sum(stage.num_steps * stage.flops_per_step for stage in self.stages)

    @property
    def total_tokens(self) -> int:
        return sum(stage.num_steps * stage.batching.num_tokens for stage in self.stages)

    @property
    def best(self) -> int | None:
        """The index in WAYS of the simplest of the fastest ways that fit in every stage; None if none fits."""
        fitting = [index for index in range(len(WAYS)) if all(stage.ways[index].fits for stage in self.stages)]
        if not fitting:
            return None
        fastest = min(map(self.hours, fitting))
        return next(index for index in fitting if self.hours(index) <= MIN_SPEEDUP * fastest)

    def hours(self, way: int) -> float:
        return sum(stage.hours(stage.ways[way]) for stage in self.stages)

    def after(self, step: int) -> "Plan":
        """The rest of the plan after this many steps."""
        spans = [(stage, max(stage.first_step, step), stage.first_step + stage.num_steps) for stage in self.stages]
        left = [replace(stage, first_step=first, num_steps=end - first) for stage, first, end in spans if end > first]
        return replace(self, stages=tuple(left))

    def to_json(self) -> dict[str, Any]:
        """All fields, and what follows from them."""
        values = asdict(self)
        described = [*values["stages"], *([values["bert"]] if self.bert else [])]
        for stage, facts in zip([*self.stages, *([self.bert] if self.bert else [])], described, strict=True):
            for way, of_way in zip(stage.ways, facts["ways"], strict=True):
                of_way["messages"] = [message._asdict() for message in way.messages]
                of_way["memory"]["total"] = way.memory.total
                of_way |= {"fits": way.fits, "step_seconds": way.step_seconds, "hours": stage.hours(way)}
        return values | {"total_flops": self.total_flops, "total_tokens": self.total_tokens, "best": self.best}


def plan_run(recipe: Recipe, device: Device, num_devices: int, *, dtype: str | None = None) -> Plan:
    """Plan a recipe on a number of devices, in its own number format or another."""
    if num_devices < 1:
        raise ConfigError("out-of-range", f"the number of devices must be at least 1, got {num_devices}")
    machine = Machine(device, num_devices, dtype or device.choose_dtype(recipe.runtime.dtype))
    own = WAYS.index((recipe.train.parallel, recipe.train.recompute))
    spans = list_stage_spans(recipe)
    limits = find_limits([span.recipe for span in spans], machine)
    stages: list[StagePlan] = []
    for span in spans:
        first_step = sum(stage.num_steps for stage in stages)
        stage = plan_stage(span.recipe, machine, first_step=first_step, num_steps=0, limits=limits)
        step_tokens, step_seconds = stage.batching.num_tokens, stage.ways[own].step_seconds
        num_steps = span.count_steps(recipe.train, step_tokens=step_tokens, step_seconds=step_seconds)
        stages.append(replace(stage, num_steps=num_steps))
    first_recipe = recipe.at(0)
    bert = bert_of_same_width(first_recipe.model)
    if bert == first_recipe.model:
        return Plan(machine, tuple(stages), None)
    other = plan_stage(replace(first_recipe, model=bert), machine, first_step=0, num_steps=stages[0].num_steps)
    return Plan(machine, tuple(stages), other)


def list_stage_spans(recipe: Recipe) -> list[StageSpan]:
    """The stages of a recipe in order, including the one before the first change."""
    begins = [0, *(stage.at for stage in recipe.stages)]
    ends = [*begins[1:], recipe.train.steps]
    return [StageSpan(recipe.at(begin), begin, end) for begin, end in zip(begins, ends, strict=True)]


def find_limits(stages: Sequence[Recipe], machine: Machine) -> tuple[int, ...]:
    """For each of WAYS, the largest micro-batch that fits in every stage; `train.micro_batch` applies to all stages.

    A stage in which not even one sequence fits does not limit the others: that way is impossible anyway.
    """
    plans = [plan_stage(stage, machine, first_step=0, num_steps=0) for stage in stages]
    largest = [[plan.ways[way].largest_micro_batch for plan in plans] for way in range(len(WAYS))]
    return tuple(min((size for size in sizes if size), default=MAX_MICRO_BATCH) for sizes in largest)


def plan_stage(
    recipe: Recipe, machine: Machine, *, first_step: int, num_steps: int, limits: tuple[int, ...] = NO_LIMITS
) -> StagePlan:
    """One stage's plan, with micro-batches of at most `limits` (for each of WAYS); `recipe` has no other stages."""
    parameters = find_parameters(recipe)
    batching = describe_batch(recipe)
    per_token = build_objective(recipe).flops_per_token(recipe.model, batching.length)
    return StagePlan(
        first_step=first_step,
        num_steps=num_steps,
        model=recipe.model,
        batching=batching,
        num_parameters=parameters.num_stored,
        num_trained=parameters.num_trained,
        is_shared=not parameters.blocks,
        flops_per_step=batching.num_tokens * per_token,
        ways=tuple(
            _plan_way(recipe, machine, parameters, batching, way, limit)
            for way, limit in zip(WAYS, limits, strict=True)
        ),
    )


def find_parameters(recipe: Recipe) -> Parameters:
    """The parameters of a stage."""
    objective = build_objective(recipe)
    return list_parameters(
        recipe.model, objective.heads, trains_pooler=objective.reads_pooler, optimizer=recipe.optim.name
    )


def describe_batch(recipe: Recipe) -> Batching:
    """A step's rows and tokens, assuming full rows."""
    length, batch = recipe.segments.max_length, recipe.batch
    if batch.sequences:
        return Batching(batch.sequences, length, batch.sequences * length)
    return Batching(math.ceil(batch.tokens / length), length, batch.tokens)


def bert_of_same_width(config: ModelConfig) -> ModelConfig:
    """A model of the same depth and width, without factorized embeddings or shared layers."""
    return replace(
        config,
        embedding_size=config.hidden_size,
        projection="auto",
        num_layers=len(config.layer_plan.rows),
        num_inner=1,
        num_groups=1,
        layer_map=(),
        sharing="none",
    )


def _plan_way(
    recipe: Recipe,
    machine: Machine,
    parameters: Parameters,
    batching: Batching,
    way: tuple[Parallel, bool],
    limit: int,
) -> Way:
    parallel, recompute = way
    distribution = Distribution(parallel, machine.num_devices)
    storage = ActivationStorage(NUMBER_BYTES[machine.dtype], machine.device.fuses_dropout, recompute)

    vocabulary_rate = build_objective(recipe).vocabulary_rate

    def memory_of(micro_batch: int, *, accumulates: bool) -> DeviceMemory:
        load = Load(micro_batch, batching.length, vocabulary_rate, accumulates)
        return device_memory(recipe.model, parameters, distribution, load, storage)

    def fits(micro_batch: int) -> bool:
        return memory_of(micro_batch, accumulates=True).total <= machine.device.usable_bytes

    largest = _largest(fits)
    num_parts, micro_batch = batching.cut(machine.num_devices, max(1, min(largest, limit)))
    messages = list_messages(parameters, parallel, machine.num_devices, num_parts=num_parts)
    sent = sum(message.sent_bytes(machine.num_devices) for message in messages)
    computing = _computing_seconds(recipe, machine, batching, recompute=recompute)
    memory = memory_of(micro_batch, accumulates=num_parts > 1)
    communicating = sent / machine.device.ring_bytes_per_second(machine.num_devices)
    overlapped = _overlapped_seconds(parameters, parallel, computing, num_parts)
    return Way(
        parallel=parallel,
        recompute=recompute,
        largest_micro_batch=largest,
        micro_batch=micro_batch,
        num_parts=num_parts,
        memory=memory,
        messages=messages,
        sent_bytes=sent,
        computing_seconds=computing,
        updating_seconds=_updating_seconds(recipe, machine, parameters, memory),
        communicating_seconds=communicating,
        waiting_seconds=max(0.0, communicating - overlapped),
    )


def _computing_seconds(recipe: Recipe, machine: Machine, batching: Batching, *, recompute: bool) -> float:
    """The compute time of the device with the most rows."""
    share = batching.rows_per_device(machine.num_devices) / batching.num_rows
    per_token = build_objective(recipe).flops_per_token(recipe.model, batching.length)
    flops = share * batching.num_tokens * per_token * (RECOMPUTED if recompute else 1)
    return flops / machine.flops_per_second


def _updating_seconds(recipe: Recipe, machine: Machine, parameters: Parameters, memory: DeviceMemory) -> float:
    """The optimizer's time, limited by memory bandwidth, for this device's shard of the trained parameters.

    Every device orthogonalizes all of Muon's matrices, which is limited by arithmetic.
    """
    passed = CLIPPING_TRAFFIC + (ADAMW_TRAFFIC if recipe.optim.name in ("adamw", "muon") else LAMB_TRAFFIC)
    flops = sum(count_orthogonalizing_flops(*shape) for shape in parameters.matrices)
    seconds = passed * memory.gradients / (machine.device.memory_gb_per_second * BILLION)
    return seconds + flops / machine.flops_per_second


def count_orthogonalizing_flops(rows: int, columns: int) -> int:
    """Muon's iterations on one matrix: each multiplies it by its transpose, squares that, and multiplies by it."""
    short = min(rows, columns)
    return 2 * MUON_ITERATIONS * (2 * short * rows * columns + short**3)


def _overlapped_seconds(parameters: Parameters, parallel: Parallel, computing_seconds: float, num_parts: int) -> float:
    """How much communication overlaps with computation.

    None if layers share weights: the first layer already needs them, and their gradient is complete only at the end of
    the backward pass.
    """
    if not parameters.blocks:
        return 0.0
    if parallel == "ddp":
        return computing_seconds / num_parts * 2 / 3  # the backward pass of the last micro-batch
    return computing_seconds


def _largest(fits: Callable[[int], bool]) -> int:
    """The largest number that fits, by bisection; 0 if 1 does not."""
    low, high = 0, 1
    while high <= MAX_MICRO_BATCH and fits(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
