"""What a recipe comes to before it runs, as `litebert check` shows it: counted, and measured by its first batches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from litebert.model.cost import Keeping, ParameterCount, count_parameters, training_flops_per_token
from litebert.plan.memory import DeviceMemory, Load, Spreading, device_memory
from litebert.plan.plan import NUMBER_BYTES, describe_batch, find_parameters, list_heads
from litebert.plan.stages import list_stretches
from litebert.recipe import Recipe

if TYPE_CHECKING:
    from litebert.data.batch import Batch


class RunSize(NamedTuple):
    """What a run comes to, or one stage of it."""

    steps: int
    tokens: int
    flops: float
    epochs: float


@dataclass(frozen=True)
class TextSummary:
    """What a run reads."""

    num_tokens: int  # of its corpora
    steps_per_epoch: int
    first_batch: "Batch"


@dataclass(frozen=True)
class Summary:
    """What a recipe comes to."""

    parameters: ParameterCount
    memory: DeviceMemory  # of one device, as litebert plan counts it
    micro_batch: int  # that the memory is for, in sequences: of the stage that needs most
    length: int  # of these
    missing_corpora: tuple[str, ...]
    text: TextSummary | None  # None: a corpus is missing
    size: RunSize | None  # at most, where a corpus is missing; None: by the clock, and the machine decides


def summarize(recipe: Recipe) -> Summary:
    """Count what can be counted of a recipe, and look at its text where that is there."""
    stages = [stretch.recipe for stretch in list_stretches(recipe)]
    largest = max(stages, key=lambda stage: count_memory(stage).total)
    missing = list_missing_corpora(stages)
    return Summary(
        parameters=count_parameters(recipe.model, list_heads(recipe)),
        memory=count_memory(largest),
        micro_batch=describe_batch(largest).cut(1, largest.train.micro_batch)[1],
        length=largest.segments.max_length,
        missing_corpora=missing,
        text=None if missing else look_at_text(recipe),
        size=None if recipe.train.hours else count_run(recipe, reads_text=not missing),
    )


def count_memory(stage: Recipe) -> DeviceMemory:
    """What a stage holds at once on one device of the recipe's kind."""
    num_parts, micro_batch = describe_batch(stage).cut(1, stage.train.micro_batch)
    load = Load(micro_batch, stage.segments.max_length, stage.masking.rate, accumulates=num_parts > 1)
    alone = Spreading(stage.train.parallel, num_devices=1)
    return device_memory(stage.model, find_parameters(stage), alone, load, describe_keeping(stage))


def describe_keeping(stage: Recipe) -> Keeping:
    """How activations are kept where the recipe would run: on the device that it names, or the best one here."""
    from litebert.core.runtime import choose_device

    runtime = stage.runtime
    device = choose_device("auto").type if runtime.device == "auto" else runtime.device
    # which format "auto" is comes out by measuring; fp32 is the one that takes most
    number_bytes = NUMBER_BYTES["fp32" if runtime.dtype == "auto" else runtime.dtype]
    return Keeping(number_bytes, fuses_dropout=device == "cuda", recompute=stage.train.recompute)


def list_missing_corpora(stages: Sequence[Recipe]) -> tuple[str, ...]:
    """The corpora that are not there at all; those that are there must be whole."""
    named = [path for stage in stages for path in stage.data.corpora]
    return tuple(path for path in dict.fromkeys(named) if not Path(path).exists())


def look_at_text(recipe: Recipe) -> TextSummary:
    """The corpora of the first stage and the first batch of them."""
    from litebert.data.stream import open_stream
    from litebert.pretrain_run import check_vocabulary
    from litebert.text.tokenizer import load_tokenizer

    stream, corpora = open_stream(recipe.data, recipe.stream)
    check_vocabulary(recipe, load_tokenizer(corpora[0].tokenizer_path))
    return TextSummary(sum(corpus.num_tokens for corpus in corpora), stream.steps_per_epoch, stream.batch(0))


def count_run(recipe: Recipe, *, reads_text: bool = True) -> RunSize:
    """The sums over the stages, each measured by its first batch; without text, as if every row were full."""
    sizes: list[RunSize] = []
    for stretch in list_stretches(recipe):
        stage, first_step = stretch.recipe, sum(size.steps for size in sizes)
        step_tokens, steps_per_epoch = _measure_step(stage, first_step) if reads_text else _imagine_step(stage)
        steps = stretch.count_steps(recipe.train, step_tokens=step_tokens, step_seconds=math.inf)
        rate = stage.masking.rate_at(first_step)
        flops = training_flops_per_token(stage.model, stage.segments.max_length, mlm_rate=rate)
        sizes.append(RunSize(steps, steps * step_tokens, steps * step_tokens * flops, steps / steps_per_epoch))
    return _add(sizes)


def _measure_step(stage: Recipe, step: int) -> tuple[int, float]:
    """The tokens of a step, and the steps of an epoch."""
    from litebert.data.stream import open_stream

    stream, _ = open_stream(stage.data, stage.stream)
    return int(stream.batch(step).mask.sum()), stream.steps_per_epoch


def _imagine_step(stage: Recipe) -> tuple[int, float]:
    return describe_batch(stage).num_tokens, math.inf  # no text, no epoch


def _add(sizes: Sequence[RunSize]) -> RunSize:
    return RunSize(*map(sum, zip(*sizes, strict=True)))
