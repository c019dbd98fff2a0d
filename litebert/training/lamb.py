"""LAMB as a torch optimizer: two passes over memory on a CPU, plain torch elsewhere; parameters may be sharded.

A step first updates the moments of all parameters and measures ||w|| and ||u||, then applies all updates. In between,
the squares of sharded parameters (DTensors) are summed over processes, in one small all-reduce for the whole model.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, Partial, Replicate
from torch.optim import Optimizer

from litebert.core.threads import run_threads
from litebert.training import lamb_kernels
from litebert.training.lamb_kernels import Coefficients, Piece


class Update(NamedTuple):
    """The tensors and numbers to update one parameter: this process's shard of it and of its state."""

    weight: Tensor
    gradient: Tensor
    exp_avg: Tensor
    exp_avg_sq: Tensor
    betas: tuple[float, float]
    corrections: tuple[float, float]  # factors of m and v
    epsilon: float
    weight_decay: float


class Lamb(Optimizer):
    """LAMB. Its dialects differ in which groups have trust ratios (`adapts`) and in `corrects_bias`."""

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        lr: float,
        betas: tuple[float, float],
        eps: float,
        corrects_bias: bool,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0, "adapts": True}
        super().__init__(groups, {**defaults, "corrects_bias": corrects_bias})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        moving = [(p, group) for group in self.param_groups for p in group["params"] if p.grad is not None]
        if moving:
            updates = [self._begin(parameter, group) for parameter, group in moving]
            tensors = [tensor for update in updates for tensor in update[:4]]
            is_simple = all(t.device.type == "cpu" and t.dtype == torch.float32 and t.is_contiguous() for t in tensors)
            squares, apply = (_accumulate_on_cpu if is_simple else _accumulate)(updates)
            squares = _sum_over_shards(squares, [parameter for parameter, _ in moving])
            # ||w|| / ||u||, or 1 where either norm is 0
            ratios = torch.where((squares > 0).all(1), (squares[:, 0] / squares[:, 1]).sqrt(), 1.0)
            # numbers on the CPU are ready to use; reading them from a GPU would wait for it
            numbers = ratios.tolist() if ratios.device.type == "cpu" else ratios.unbind()
            adapted = zip(numbers, (group for _, group in moving), strict=True)
            apply([group["lr"] * (ratio if group["adapts"] else 1.0) for ratio, group in adapted])
        return loss

    def _begin(self, parameter: Tensor, group: dict[str, Any]) -> Update:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        step = state["step"].item()
        corrections = [1 / (1 - beta**step) if group["corrects_bias"] else 1.0 for beta in group["betas"]]
        assert parameter.grad is not None
        return Update(
            weight=local_part(parameter),
            gradient=local_part(parameter.grad),
            exp_avg=local_part(state["exp_avg"]),
            exp_avg_sq=local_part(state["exp_avg_sq"]),
            betas=group["betas"],
            corrections=(corrections[0], corrections[1]),
            epsilon=group["eps"],
            weight_decay=group["weight_decay"],
        )


def local_part(tensor: Tensor) -> Tensor:
    """This process's shard of a DTensor; any other tensor unchanged."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _sum_over_shards(squares: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    first = parameters[0]
    if not isinstance(first, DTensor):
        return squares
    is_sharded = [placement.is_shard() for placement in first.placements]
    for other in parameters:
        assert isinstance(other, DTensor), "sharded and whole parameters in one optimizer"
        assert other.device_mesh == first.device_mesh, (other.device_mesh, first.device_mesh)
        assert [placement.is_shard() for placement in other.placements] == is_sharded, other.placements
    placements = [Partial() if sharded else Replicate() for sharded in is_sharded]
    return DTensor.from_local(squares, first.device_mesh, placements).full_tensor()


# The second pass: w -= rate * u, given every parameter's rate.
Apply = Callable[[Sequence[Tensor | float]], None]


def _accumulate(updates: Sequence[Update]) -> tuple[Tensor, Apply]:
    """Update the moments; returns ||w||^2 and ||u||^2 of each parameter (one row each), and the second pass."""
    squares = []
    for update in updates:
        update.exp_avg.lerp_(update.gradient, 1 - update.betas[0])
        update.exp_avg_sq.mul_(update.betas[1]).addcmul_(update.gradient, update.gradient, value=1 - update.betas[1])
        squares += [_square(update.weight), _square(_direction(update))]

    def apply(rates: Sequence[Tensor | float]) -> None:
        for update, rate in zip(updates, rates, strict=True):
            update.weight.sub_(_direction(update).mul_(rate))

    return torch.stack(squares).view(-1, 2), apply


def _direction(update: Update) -> Tensor:
    denominator = (update.exp_avg_sq * update.corrections[1]).sqrt_().add_(update.epsilon)
    direction = (update.exp_avg * update.corrections[0]).div_(denominator)
    return direction.add_(update.weight, alpha=update.weight_decay)


def _square(tensor: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(tensor, dtype=torch.float32)
    return norm.square()


def _accumulate_on_cpu(updates: Sequence[Update]) -> tuple[Tensor, Apply]:
    """The same with the compiled loops of lamb_kernels."""
    wholes, coefficients = [], []
    for update in updates:
        weight, gradient, exp_avg, exp_avg_sq = (tensor.detach().numpy().reshape(-1) for tensor in update[:4])
        squares = np.empty((-(-len(weight) // lamb_kernels.BLOCK_SIZE), 2), np.float32)
        wholes.append(Piece(weight, gradient, exp_avg, exp_avg_sq, squares))
        gains = (1 - update.betas[0], 1 - update.betas[1])
        numbers = (*update.betas, *gains, *update.corrections, update.epsilon, update.weight_decay)
        coefficients.append(Coefficients(*map(np.float32, numbers)))
    pieces = [(index, piece) for index, whole in enumerate(wholes) for piece in lamb_kernels.cut(whole)]
    num_threads = torch.get_num_threads()
    run_threads(lamb_kernels.accumulate, [(piece, coefficients[index]) for index, piece in pieces], num_threads)

    def apply(rates: Sequence[Tensor | float]) -> None:
        numbers = [np.float32(float(rate)) for rate in rates]
        # backwards, since the tensors that the first pass read last are still in the cache
        calls = [(piece, coefficients[index], numbers[index]) for index, piece in reversed(pieces)]
        run_threads(lamb_kernels.apply, calls, num_threads)

    return torch.from_numpy(np.stack([whole.squares.sum(0, dtype=np.float64) for whole in wholes])), apply
