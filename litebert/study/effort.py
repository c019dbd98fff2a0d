"""Speed and memory of a training step, measured on random token ids."""

import time

import torch
from torch import Tensor

from litebert.batches.batch import Batch
from litebert.core.runtime import choose_runtime
from litebert.objectives.registry import build_objective
from litebert.plan.plan import describe_batch
from litebert.pretraining.recipe import Recipe
from litebert.training.distributed import TaskLoss
from litebert.training.loop import Engine, build_scaler, update
from litebert.training.optimizers import build_optimizer

_WARM_UP_STEPS = 1  # the first step builds the optimizer's state


def measure_speed(recipe: Recipe, *, num_steps: int) -> float:
    """Tokens per second of updates of one micro-batch: the fastest of several, because others may have been delayed."""
    engine, batch = build_engine(recipe), make_batch(recipe)
    engine.model.train()
    seconds = []
    for step in range(_WARM_UP_STEPS + num_steps):
        started_at = time.perf_counter()
        update(engine, [batch], step, recipe.optim.learning_rate / 100)
        seconds.append(time.perf_counter() - started_at)
    return batch.token_ids.numel() / min(seconds[_WARM_UP_STEPS:])


def measure_memory(recipe: Recipe) -> int:
    """The bytes that autograd saves between forward and backward of one micro-batch, without parameters."""
    model = build_objective(recipe).build_model(recipe.model, seed=recipe.seed)
    batch = make_batch(recipe)
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: list[Tensor] = []  # references keep the tensors alive and their addresses distinct

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        build_objective(recipe).batch_loss(model.train(), batch)
    sizes = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in kept}
    return sum(size for address, size in sizes.items() if address not in parameters)


def build_engine(recipe: Recipe) -> Engine[Batch]:
    """A model with its optimizer, ready for a step of a recipe."""
    runtime = choose_runtime(recipe.runtime)
    objective = build_objective(recipe)
    model = objective.build_model(recipe.model, seed=recipe.seed).to(runtime.device)
    optimizer = build_optimizer([(n, p) for n, p in model.named_parameters() if p.requires_grad], recipe.optim)
    loss = TaskLoss(model, objective)
    scaler = build_scaler(runtime)
    return Engine(model, loss, optimizer, objective, runtime, scaler, recipe.optim.clip_norm, recipe.seed)


def make_batch(recipe: Recipe) -> Batch:
    """One micro-batch of a recipe, with random ids and no padding."""
    batching = describe_batch(recipe)
    num_rows, length = recipe.train.micro_batch or batching.num_rows, batching.length
    generator = torch.Generator().manual_seed(recipe.seed)
    token_ids = torch.randint(recipe.model.vocab_size, (num_rows, length), generator=generator)
    segment_ids = (torch.arange(length) >= length // 2).long() * int(recipe.model.num_segments > 1)
    num_masked = max(1, round(recipe.masking.rate * length))
    starts = torch.arange(num_rows) * length
    positions = (starts[:, None] + torch.arange(1, 1 + num_masked)).flatten()
    return Batch(
        token_ids=token_ids,
        segment_ids=segment_ids.expand(num_rows, length).contiguous(),
        mask=torch.ones(num_rows, length, dtype=torch.bool),
        position_ids=None,
        sequence_ids=None,
        first_tokens=starts,
        mlm_positions=positions,
        mlm_labels=token_ids.flatten()[positions],
        sentence_labels=torch.arange(num_rows) % 2 if recipe.segments.num_labels else None,
    )
