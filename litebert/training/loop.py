"""The training loop. An update depends only on the weights, the optimizer state, the batch and the step.

The batch of a step is computed in micro-batches, in one or several processes. Their losses are divided by the counts of
the whole batch, so that they add up. Dropout depends on (seed, step, row), or, where kernels draw it (on accelerators,
or compiled), on (seed, step, micro-batch). So weights and optimizer state are enough to resume exactly.
"""

import math
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Literal, NamedTuple, Self

import torch
from torch import nn
from torch.amp import GradScaler
from torch.optim import Optimizer

from litebert.batches.batch import Batch
from litebert.checkpoint import MANIFEST, read_manifest
from litebert.core.errors import DataError, TrainingError, naming_shortages
from litebert.core.memory import describe_shortage
from litebert.core.runtime import Runtime
from litebert.core.view import View
from litebert.model.model import Model
from litebert.tasks.task import AnyBatch, MicroBatch, Task
from litebert.training.distributed import average_over_ranks, gradient_sync, sum_over_ranks
from litebert.training.optimizers import clip_gradients
from litebert.training.options import TrainOptions

CLEAR_GAIN = 1.1  # how many times as fast bf16 has to be to be chosen: float32 is the same on every machine
# what helps where memory is short, and no key of a batch does
SMALLER_MODEL = (
    "use a smaller model: lower model.hidden_size or model.num_layers (`litebert recipes plan` says what fits)"
)
SCALER = "scaler_"  # prefix of a loss scaler's numbers in a checkpoint's state
Clock = Callable[[], float]  # seconds since an arbitrary moment; measures train.hours


@dataclass
class Progress:
    """How far a run is; saved with each checkpoint."""

    step: int = 0  # updates made
    tokens: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, path: Path) -> Self:
        """How far a run was when it saved the checkpoint in this folder."""
        manifest = read_manifest(path)
        tokens, seconds = manifest.state.get("tokens", -1), manifest.state.get("seconds", -1.0)
        if not (isinstance(tokens, int) and tokens >= 0 and 0 <= seconds < math.inf):
            raise DataError(
                "corrupt-file",
                f'{path / MANIFEST} is corrupt: its "state" lacks the tokens and seconds of a run; restore it, or '
                "delete the checkpoint to resume from the one before",
            )
        return cls(manifest.step, tokens, float(seconds))

    def scheduled_step(self, options: TrainOptions) -> float:
        """The progress on the scale of `train.steps`: by steps, tokens or the clock."""
        if options.hours:
            return options.steps * min(self.seconds / (options.hours * 3600), 1)
        if options.tokens:
            return options.steps * min(self.tokens / options.tokens, 1)
        return self.step

    def is_finished(self, options: TrainOptions) -> bool:
        return self.scheduled_step(options) >= options.steps


@dataclass(frozen=True)
class Engine(Generic[AnyBatch]):
    """The model, its loss and its optimizer: all that an update reads and changes."""

    model: Model
    compute_loss: nn.Module  # TaskLoss, inside DDP or FSDP if there are several processes
    optimizer: Optimizer
    task: Task[AnyBatch]
    runtime: Runtime
    scaler: GradScaler
    clip_norm: float
    seed: int


class StepReport(NamedTuple):
    """What happened in one update."""

    metrics: dict[str, float]  # reproducible
    num_tokens: int
    seconds: float


def iter_updates(
    engine: Engine[AnyBatch],
    batches: Iterator[Sequence[AnyBatch]],
    progress: Progress,
    options: TrainOptions,
    rate_at: Callable[[float], float],
    clock: Clock = time.perf_counter,
) -> Iterator[StepReport]:
    """Update until the run is finished or the batches end; `progress` is kept up to date."""
    engine.model.train()
    started_at = clock()
    for micro_batches in batches:
        report = update(engine, micro_batches, progress.step, rate_at(progress.scheduled_step(options)))
        seconds = clock() - started_at
        # clocks differ, and processes that disagree on the end of a run or stage would wait for each other forever
        report = report._replace(seconds=average_over_ranks(seconds) if options.hours else seconds)
        progress.step += 1
        progress.tokens += report.num_tokens
        progress.seconds += report.seconds
        yield report
        if progress.is_finished(options):
            return
        engine.model.train()  # the caller may have evaluated
        started_at = clock()


def update(engine: Engine[AnyBatch], micro_batches: Sequence[AnyBatch], step: int, learning_rate: float) -> StepReport:
    """Update the weights once, from the micro-batches that this process computes of one batch."""
    optimizer, scaler = engine.optimizer, engine.scaler
    totals = {name: int(n) for name, n in sum_over_ranks(count_totals(engine.task, micro_batches)).items()}

    sums: Counter[str] = Counter()
    first_number = engine.runtime.ranks.rank * len(micro_batches)  # numbered over all processes
    for number, micro_batch in enumerate(micro_batches):
        torch.manual_seed(noise_seed(engine.seed, step, "part", first_number + number))
        is_last = number == len(micro_batches) - 1
        with gradient_sync(engine.compute_loss, is_last=is_last), _advising_on_memory(micro_batch, f"step {step + 1}"):
            sums.update(_backward(engine, micro_batch, totals))
    sums = Counter(sum_over_ranks(sums))
    if not math.isfinite(sums["loss"]):
        raise TrainingError("loss-not-finite", f"the loss of step {step + 1} is {sums['loss']}")

    scaler.unscale_(optimizer)
    norm = clip_gradients(engine.model.parameters(), engine.clip_norm)
    is_finite = bool(norm.isfinite())
    if not is_finite and not scaler.is_enabled():
        raise TrainingError("gradients-not-finite", f"the gradient norm of step {step + 1} is {float(norm)}")

    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    with naming_shortages(f"step {step + 1}, the optimizer's update", fix=SMALLER_MODEL):
        scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)

    metrics = engine.task.summarize(sums, totals) | {"learning_rate": learning_rate}
    if is_finite:  # otherwise the scaler found its scale too high, skipped the step and halved the scale
        metrics["gradient_norm"] = float(norm)
    return StepReport(metrics, totals["tokens"], 0.0)


def _backward(engine: Engine[AnyBatch], micro_batch: AnyBatch, totals: dict[str, int]) -> dict[str, float]:
    # `totals` is not a Counter: DDP and FSDP rebuild a mapping from its pairs, and a Counter would count the pairs
    with _autocast(engine.runtime):
        result = engine.compute_loss(micro_batch.to(engine.runtime.device), totals)
    # DDP and FSDP average over processes, but our losses are divided by the counts of all: they must be summed
    loss = result.loss * engine.runtime.ranks.world_size
    engine.scaler.scale(loss).backward()
    return {name: float(value) for name, value in result.sums.items()}


def _autocast(runtime: Runtime) -> torch.autocast:
    """Operations in the runtime's number format, chosen one by one; nothing where the encoder casts by itself."""
    is_needed = runtime.dtype != torch.float32 and encoder_dtype(runtime) is None
    return torch.autocast(runtime.device.type, dtype=runtime.dtype, enabled=is_needed)


@contextmanager
def _advising_on_memory(micro_batch: MicroBatch, where: str) -> Iterator[None]:
    """Turn an out-of-memory error into one that names the step, the amount requested and the key to lower."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        shortage = describe_shortage(error)
        if shortage is None:
            raise
        num_rows, length = getattr(micro_batch, "token_ids", torch.empty(1, 0)).shape
        fix = f"set train.micro_batch={num_rows // 2}" if num_rows > 1 else "use shorter sequences or a smaller model"
        raise TrainingError(
            "out-of-memory", f"{where}: {shortage}, with {num_rows:,} sequences of {length:,} tokens at once; {fix}"
        ) from error


def count_totals(task: Task[AnyBatch], micro_batches: Sequence[AnyBatch]) -> Counter[str]:
    """The counts that losses are divided by, over all micro-batches."""
    totals: Counter[str] = Counter()
    for micro_batch in micro_batches:
        totals.update(task.count(micro_batch))
    return totals


@torch.no_grad()
def measure(engine: Engine[AnyBatch], batches: Sequence[AnyBatch]) -> dict[str, float]:
    """The task's metrics on batches, without learning from them."""
    engine.model.eval()
    totals = count_totals(engine.task, batches)
    sums: Counter[str] = Counter()
    for batch in batches:
        with naming_shortages("validation", fix=SMALLER_MODEL), _autocast(engine.runtime):
            result = engine.compute_loss(batch.to(engine.runtime.device), dict(totals))
        sums.update({name: float(value) for name, value in result.sums.items()})
    return engine.task.summarize(sums, totals)


def check_finite(metrics: Mapping[str, float], step: int) -> None:
    """Raise if a metric is not finite, so that such weights are neither logged nor saved."""
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise TrainingError("loss-not-finite", f"the {name.replace('_', ' ')} of step {step} is {value}")


def noise_seed(seed: int, step: int, kind: Literal["part", "row"], number: int) -> int:
    """The dropout seed of one micro-batch ("part"), or one row, of one step; torch's CPU generator reads 32 bits."""
    return zlib.crc32(f"dropout {seed} {step} {kind} {number}".encode())


def seed_dropout(micro_batch: Batch, seed: int, step: int) -> Batch:
    """A micro-batch with a dropout seed for each row, the same however the batch of a step is cut."""
    rows = range(micro_batch.first_row, micro_batch.first_row + len(micro_batch.token_ids))
    return replace(micro_batch, dropout_seeds=tuple(noise_seed(seed, step, "row", row) for row in rows))


def encoder_dtype(runtime: Runtime) -> torch.dtype | None:
    """What `Encoder.training_dtype` has to be for the runtime's number format.

    In bf16 on a CPU the encoder casts weights itself: once per micro-batch, where autocast does it in every layer.
    Everywhere else autocast knows better which operations stay in float32.
    """
    return torch.bfloat16 if runtime.device.type == "cpu" and runtime.dtype == torch.bfloat16 else None


def with_dtype(engine: Engine[AnyBatch], name: str) -> Engine[AnyBatch]:
    """The engine with another number format, and the same weights and optimizer."""
    runtime = engine.runtime.in_format(name)
    engine.model.encoder.training_dtype = encoder_dtype(runtime)
    return replace(engine, runtime=runtime)


def with_fastest_dtype(engine: Engine[AnyBatch], micro_batch: AnyBatch, view: View) -> Engine[AnyBatch]:
    """The engine in the number format in which loss and gradients of this micro-batch take the least time.

    Several processes measure at the same time, as they will train, and agree on one format.
    """
    seconds: dict[str, float] = {}
    for name in ("fp32", "bf16") * 3:
        candidate = with_dtype(engine, name)
        seconds[name] = min(time_batch(candidate, [micro_batch]), seconds.get(name, math.inf))
    gain = average_over_ranks(seconds["fp32"] / seconds["bf16"])
    fastest = "bf16" if gain > CLEAR_GAIN else "fp32"
    view.say(f"number format {fastest}: in bf16 the first micro-batch is {gain:.2f} times as fast as in fp32")
    return with_dtype(engine, fastest)


def time_batch(engine: Engine[AnyBatch], micro_batches: Sequence[AnyBatch], clock: Clock = time.perf_counter) -> float:
    """The seconds that the loss and gradients of a batch take; no weight and no later dropout changes."""
    engine.model.train()
    totals = dict(count_totals(engine.task, micro_batches))
    started_at = clock()
    for micro_batch in micro_batches:
        with _advising_on_memory(micro_batch, "the first batch"):
            _backward(engine, micro_batch, totals)
    engine.optimizer.zero_grad(set_to_none=True)
    return clock() - started_at


def build_scaler(runtime: Runtime) -> GradScaler:
    """Loss scaling for fp16; does nothing in other formats."""
    return GradScaler(runtime.device.type, enabled=runtime.needs_loss_scaling)


def pack_scaler(scaler: GradScaler) -> dict[str, float | int]:
    """The scaler's numbers as a checkpoint's state has them; none where nothing is scaled."""
    return {f"{SCALER}{name}": value for name, value in scaler.state_dict().items()}


def unpack_scaler(state: Mapping[str, float | int]) -> dict[str, float | int]:
    """The numbers that `pack_scaler` put into a checkpoint's state, for `GradScaler.load_state_dict`."""
    return {name.removeprefix(SCALER): value for name, value in state.items() if name.startswith(SCALER)}
