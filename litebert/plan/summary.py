"""The cost of a recipe before it runs, counted and measured on its first batches: see `litebert recipes check`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from litebert.model.cost import ActivationStorage, ParameterCount, count_parameters
from litebert.objectives.registry import build_objective
from litebert.plan.devices import CPU_EFFICIENCY
from litebert.plan.memory import DeviceMemory, Distribution, Load, device_memory
from litebert.plan.plan import NUMBER_BYTES, describe_batch, find_parameters, list_stage_spans
from litebert.pretraining.recipe import Recipe

if TYPE_CHECKING:
    from litebert.batches.batch import Batch


class RunSize(NamedTuple):
    """The size of a run, or of one stage."""

    steps: int
    tokens: int
    flops: float
    epochs: float


@dataclass(frozen=True)
class TextSummary:
    """The text that a run reads."""

    num_tokens: int  # of its corpora
    steps_per_epoch: int
    first_batch: "Batch"
    notes: tuple[str, ...] = ()  # about the weights to start from


@dataclass(frozen=True)
class Summary:
    """The cost of a recipe."""

    parameters: ParameterCount
    memory: DeviceMemory  # of one device, as `litebert recipes plan` counts it
    micro_batch: int  # sequences; in the stage that needs the most memory
    length: int  # tokens of these sequences
    missing_corpora: tuple[str, ...]
    text: TextSummary | None  # None: a corpus is missing, or none is named
    size: RunSize | None  # an upper bound if a corpus is missing; None: limited by train.hours


def summarize(recipe: Recipe) -> Summary:
    """Count a recipe's parameters, memory and FLOPs, and measure its text if the corpora exist."""
    stages = [span.recipe for span in list_stage_spans(recipe)]
    largest = max(stages, key=lambda stage: count_memory(stage).total)
    missing = list_missing_corpora(stages)
    reads_text = bool(recipe.data.corpora) and not missing
    return Summary(
        parameters=count_parameters(recipe.model, build_objective(recipe).heads),
        memory=count_memory(largest),
        micro_batch=describe_batch(largest).cut(1, largest.train.micro_batch)[1],
        length=largest.segments.max_length,
        missing_corpora=missing,
        text=measure_text(recipe) if reads_text else None,
        size=None if recipe.train.hours else count_run(recipe, reads_text=reads_text),
    )


def announce_run(name: str, recipe: Recipe) -> str:
    """One line before a run: recipe, model, parameters, corpus, tokens, and how long it may take on this machine."""
    from litebert.batches.stream import open_corpora
    from litebert.core.runtime import choose_runtime, measure_peak_flops

    corpus_tokens = sum(corpus.num_tokens for corpus in open_corpora(recipe.data))
    runtime = choose_runtime(recipe.runtime)
    if recipe.train.hours:
        length, seconds = "as many steps as fit", 3600 * recipe.train.hours
    else:
        size = count_run(recipe, reads_text=False)
        length = f"{size.steps:,} steps, at most {size.tokens:,} tokens"
        peak = runtime.ranks.world_size * measure_peak_flops(runtime.device, runtime.dtype)
        seconds = size.flops / (CPU_EFFICIENCY * peak)
    model = list_stage_spans(recipe)[-1].recipe.model
    layers = f"{model.num_layers} layer{'' if model.num_layers == 1 else 's'}"
    parameters = count_parameters(recipe.model, build_objective(recipe).heads).total
    return (
        f"recipe {name}: {layers} (sharing {model.sharing}) of width {model.hidden_size}, "
        f"{parameters:,} parameters; corpus {', '.join(recipe.data.corpora)}, {corpus_tokens:,} tokens; "
        f"{length}, about {describe_seconds(seconds)}"
    )


def describe_seconds(seconds: float) -> str:
    """A duration as text: 40 seconds, 12 minutes, 3.5 hours, 9 days."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 1.5 * size:
            number = seconds / size
            return f"{number:,.0f} {unit}" if number >= 10 or unit == "minutes" else f"{number:.1f} {unit}"
    return f"{max(1, round(seconds))} second{'' if seconds < 1.5 else 's'}"


def count_memory(stage: Recipe) -> DeviceMemory:
    """The training memory of a stage on one device of the recipe's kind."""
    num_parts, micro_batch = describe_batch(stage).cut(1, stage.train.micro_batch)
    load = Load(
        micro_batch, stage.segments.max_length, build_objective(stage).vocabulary_rate, accumulates=num_parts > 1
    )
    alone = Distribution(stage.train.parallel, num_devices=1)
    return device_memory(stage.model, find_parameters(stage), alone, load, describe_storage(stage))


def describe_storage(stage: Recipe) -> ActivationStorage:
    """How activations are stored on the recipe's device, or on the best device of this machine."""
    from litebert.core.runtime import choose_device

    runtime = stage.runtime
    device = choose_device("auto").type if runtime.device == "auto" else runtime.device
    # "auto" is resolved by measuring; fp32 takes the most memory
    number_bytes = NUMBER_BYTES["fp32" if runtime.dtype == "auto" else runtime.dtype]
    return ActivationStorage(number_bytes, fuses_dropout=device == "cuda", recompute=stage.train.recompute)


def list_missing_corpora(stages: Sequence[Recipe]) -> tuple[str, ...]:
    """The corpora that do not exist; incomplete ones are an error elsewhere."""
    named = [path for stage in stages for path in stage.data.corpora]
    return tuple(path for path in dict.fromkeys(named) if not Path(path).exists())


def measure_text(recipe: Recipe) -> TextSummary:
    """The corpora of the first stage and their first batch."""
    from litebert.batches.stream import open_stream
    from litebert.pretraining.initialization import describe_source, load_source
    from litebert.pretraining.run_folder import check_vocabulary
    from litebert.text.tokenizer import load_tokenizer

    stream, corpora = open_stream(recipe.data, recipe.stream)
    tokenizer = load_tokenizer(corpora[0].tokenizer_path)
    source = load_source(recipe, tokenizer)
    check_vocabulary(recipe, tokenizer)
    notes = () if source is None else tuple(describe_source(source, recipe))
    num_tokens = sum(corpus.num_tokens for corpus in corpora)
    return TextSummary(num_tokens, stream.steps_per_epoch, stream.batch(0), notes)


def count_run(recipe: Recipe, *, reads_text: bool = True) -> RunSize:
    """The totals over the stages, each measured on its first batch; without text, assuming full rows."""
    sizes: list[RunSize] = []
    for span in list_stage_spans(recipe):
        stage, first_step = span.recipe, sum(size.steps for size in sizes)
        if reads_text:
            step_tokens, steps_per_epoch = _measure_step(stage, first_step)
        else:
            step_tokens, steps_per_epoch = describe_batch(stage).num_tokens, math.inf
        steps = span.count_steps(recipe.train, step_tokens=step_tokens, step_seconds=math.inf)
        flops = build_objective(stage).flops_per_token(stage.model, stage.segments.max_length, step=first_step)
        sizes.append(RunSize(steps, steps * step_tokens, steps * step_tokens * flops, steps / steps_per_epoch))
    return RunSize(*map(sum, zip(*sizes, strict=True)))


def _measure_step(stage: Recipe, step: int) -> tuple[int, float]:
    """The tokens of a step, and the steps of an epoch."""
    from litebert.batches.stream import open_stream

    stream, _ = open_stream(stage.data, stage.stream)
    return int(stream.batch(step).mask.sum()), stream.steps_per_epoch
