"""LAMB as Google and NVIDIA implement it, AdamW as torch and Google do, Muon for the matrices of the layers.

The dialects of LAMB share one formula, so they are rows of a table rather than classes:

    m, v = moments of the gradient;  u = m / (sqrt(v) + epsilon) + weight_decay * w;  w -= lr * ratio * u

Biases and LayerNorms never decay. Google's code does not correct the bias, and adapts (ratio = ||w|| / ||u||, one per
parameter) all parameters whose names are not excluded. apex corrects the bias and adapts the parameters that decay.
Both first clip the gradients to a global norm of 1, which is `clip_gradients`.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.optim import AdamW, Optimizer

from litebert.training.lamb import Lamb, local_part
from litebert.training.muon import Muon
from litebert.training.options import OptimOptions


class Dialect(NamedTuple):
    """How the implementations of LAMB differ."""

    corrects_bias: bool
    adapts: Callable[[bool, float], bool]  # (is the name excluded, its weight decay) -> does it have a trust ratio


DIALECTS = {
    # google-research/albert: the optimizer that trained the released models
    "lamb": Dialect(corrects_bias=False, adapts=lambda is_excluded, _: not is_excluded),
    # apex FusedLAMB: a tensor without weight decay has no trust ratio either ...
    "lamb-apex": Dialect(corrects_bias=True, adapts=lambda _, weight_decay: weight_decay != 0),
    # ... and with use_nvlamb every tensor has one
    "lamb-nvlamb": Dialect(corrects_bias=True, adapts=lambda *_: True),
    # google-research/bert: the AdamW of the published BERTs has no bias correction
    "adamw-google": Dialect(corrects_bias=False, adapts=lambda *_: False),
}


def build_optimizer(named_parameters: Iterable[tuple[str, Tensor]], options: OptimOptions) -> Optimizer:
    """The optimizer of `options`. Parameters that do not decay, and Muon's matrices, are groups of their own."""
    groups = _plan_groups(named_parameters, options)
    betas = (options.beta1, options.beta2)
    if options.name == "adamw":
        return AdamW(groups, lr=options.learning_rate, betas=betas, eps=options.epsilon, fused=True)
    if options.name == "muon":
        return Muon(groups, lr=options.learning_rate, betas=betas, eps=options.epsilon)
    dialect = DIALECTS[options.name]
    for group in groups:
        group["adapts"] = dialect.adapts(group["is_excluded"], group["weight_decay"])
    return Lamb(groups, lr=options.learning_rate, betas=betas, eps=options.epsilon, corrects_bias=dialect.corrects_bias)


def is_excluded(name: str) -> bool:
    """Whether a parameter of this name does not decay and, in Google's LAMB, has no trust ratio."""
    parts = name.split(".")
    return parts[-1] == "bias" or any(part.endswith("norm") for part in parts)


def is_layer_matrix(name: str, tensor: Tensor) -> bool:
    """Whether Muon updates this parameter: a matrix of an attention or feed-forward block."""
    return tensor.ndim == 2 and bool({"attention", "ffn"} & set(name.split(".")))


def clip_gradients(parameters: Iterable[Tensor], max_norm: float) -> Tensor:
    """Scale all gradients so that their global norm is at most `max_norm`; returns the norm before."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    if isinstance(norm, DTensor):
        norm = norm.full_tensor()
    # Comparing is free on a CPU and saves a pass over memory; on other devices it would wait for the result.
    if norm.device.type != "cpu" or norm > max_norm:
        scale = (max_norm / norm).clamp(max=1.0)
        for gradient in gradients:
            local_part(gradient).mul_(scale)
    return norm


def _plan_groups(named_parameters: Iterable[tuple[str, Tensor]], options: OptimOptions) -> list[dict[str, Any]]:
    # A tensor with several names is one variable, with one state and one trust ratio: its first name counts.
    first_names: dict[int, tuple[str, Tensor]] = {}
    for name, tensor in named_parameters:
        first_names.setdefault(id(tensor), (name, tensor))
    alike: dict[tuple[bool, bool], list[Tensor]] = {}
    for name, tensor in first_names.values():
        is_muons = options.name == "muon" and is_layer_matrix(name, tensor)
        alike.setdefault((is_excluded(name), is_muons), []).append(tensor)
    return [
        {
            "params": tensors,
            "is_excluded": excluded,
            "is_orthogonalized": is_muons,
            "weight_decay": 0.0 if excluded else options.weight_decay,
        }
        for (excluded, is_muons), tensors in alike.items()
    ]
