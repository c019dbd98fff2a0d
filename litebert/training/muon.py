"""Muon for the matrices of the layers, AdamW for everything else, in one optimizer; parameters may be sharded.

Muon (Keller Jordan, 2024) replaces the momentum U S V^T of a matrix by about U V^T: every direction moves by the same
amount. The update is scaled by 0.2 sqrt(max(rows, columns)) to the usual size of AdamW's (arXiv 2502.16982), so that
both share a learning rate and a weight decay. A matrix that several layers share is one matrix.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.optim import Optimizer
from torch.optim.adamw import adamw

from litebert.training.distributed import sum_over_ranks
from litebert.training.lamb import local_part

MOMENTUM = 0.95
NUM_ITERATIONS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # Jordan's: steep at 0, and singular values end between about 0.7 and 1.2
UPDATE_SIZE = 0.2
MAX_STACKED = 1 << 22  # numbers in a stack of matrices: more are not faster, and take memory


class Muon(Optimizer):
    """Muon for the groups with `is_orthogonalized`, which hold matrices only, and AdamW for the others."""

    def __init__(self, groups: list[dict[str, Any]], *, lr: float, betas: tuple[float, float], eps: float) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0, "is_orthogonalized": False}
        super().__init__(groups, {**defaults, "fused": True})  # torch restores the step to where fused AdamW needs it
        self.iterating_dtype = agree_on_iterating_dtype(self.param_groups[0]["params"][0].device)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            moving = [parameter for parameter in group["params"] if parameter.grad is not None]
            if group["is_orthogonalized"]:
                self._move_matrices(moving, group)
            elif moving:
                self._move_others(moving, group)
        return loss

    def _move_matrices(self, matrices: Sequence[Tensor], group: dict[str, Any]) -> None:
        for stack in _iter_stacks(matrices):
            momenta = torch.stack([_wide(_whole(self._momentum(matrix))) for matrix in stack])  # (N, rows, columns)
            rate = group["lr"] * UPDATE_SIZE * math.sqrt(momenta.shape[2])
            for matrix, update in zip(stack, orthogonalize(momenta, self.iterating_dtype), strict=True):
                update = update if matrix.shape == update.shape else update.mT
                weight = local_part(matrix).mul_(1 - group["lr"] * group["weight_decay"])
                weight.sub_(_shard_like(update, matrix), alpha=rate)

    def _momentum(self, matrix: Tensor) -> Tensor:
        """The mean of the gradients so far, and one step ahead of it as in Nesterov's method."""
        assert matrix.grad is not None
        state = self.state[matrix]
        if not state:
            state["exp_avg"] = torch.zeros_like(matrix)
        mean = state["exp_avg"].lerp_(matrix.grad, 1 - MOMENTUM)
        return matrix.grad.lerp(mean, MOMENTUM)

    def _move_others(self, parameters: Sequence[Tensor], group: dict[str, Any]) -> None:
        states = [self.state[parameter] for parameter in parameters]
        for parameter, state in zip(parameters, states, strict=True):
            if not state:
                state["step"] = torch.zeros((), device=parameter.device)
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)
        adamw(
            [local_part(parameter) for parameter in parameters],
            [local_part(parameter.grad) for parameter in parameters],  # type: ignore[arg-type]
            [local_part(state["exp_avg"]) for state in states],
            [local_part(state["exp_avg_sq"]) for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )


def orthogonalize(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    """Wide matrices (N, rows, columns) with all singular values brought near 1, by Newton-Schulz iterations in `dtype`.

    They correct themselves, so that bfloat16 is precise enough.
    """
    a, b, c = COEFFICIENTS
    norms = torch.linalg.matrix_norm(matrices, keepdim=True).clamp(min=1e-7)  # at least the largest singular value
    x: Tensor = (matrices / norms).to(dtype)
    for _ in range(NUM_ITERATIONS):
        gram = x @ x.mT  # (N, rows, rows)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.to(matrices.dtype)


def agree_on_iterating_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 if all processes have instructions for it, which are four times as fast as float32.

    All must choose the same: else the copies of a model would drift apart.
    """
    has_bf16 = device.type == "cuda" or torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    num_without = sum_over_ranks({"processes": float(not has_bf16)})["processes"]
    return torch.float32 if num_without else torch.bfloat16


def _iter_stacks(matrices: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """The matrices in groups of one shape, upright or turned, that are orthogonalized together."""
    by_shape: dict[tuple[int, ...], list[Tensor]] = {}
    for matrix in matrices:
        by_shape.setdefault(tuple(sorted(matrix.shape)), []).append(matrix)
    for shape, alike in by_shape.items():
        size = max(1, MAX_STACKED // math.prod(shape))
        yield from (alike[first : first + size] for first in range(0, len(alike), size))


def _wide(matrix: Tensor) -> Tensor:
    return matrix.mT if matrix.shape[0] > matrix.shape[1] else matrix


def _whole(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _shard_like(whole: Tensor, parameter: Tensor) -> Tensor:
    """This process's shard of a tensor that every process has."""
    if not isinstance(parameter, DTensor):
        return whole
    return distribute_tensor(whole, parameter.device_mesh, parameter.placements, src_data_rank=None).to_local()
