"""Many processes, one run: what they exchange, and how a model is spread over them.

DDP keeps the model whole in every process and adds up gradients; FSDP2 gives each process a shard. A model whose layers
share their weights is one group of FSDP: gathered once a step, it serves all its layers, where wrapping the layer by
itself would gather it at each of them. An unshared model is sharded block by block.
"""

import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from litebert.core.errors import ConfigError, TrainingError, in_one_line
from litebert.core.runtime import Runtime
from litebert.core.stopping import Stop
from litebert.model.model import Model
from litebert.tasks.task import Counts, Part, PartLoss, Task
from litebert.training.launcher import end_with_launcher, tell_launcher
from litebert.training.options import Parallel

_LAST_MESSAGE_SECONDS = 0.5
_TIMEOUT = "LITEBERT_PROCESS_TIMEOUT"  # seconds that a process waits for the others; 1800 without it


# how gloo says it
_GONE = re.compile(r"[Cc]onnection (closed|reset|refused)|[Tt]imed out|Broken pipe|gloo/transport|No route to host")


class TaskLoss(nn.Module):
    """The task's loss as a module: DDP and FSDP act where `forward` is called."""

    def __init__(self, model: Model, task: Task[Any]) -> None:
        super().__init__()
        self.model = model
        self.task = task

    def forward(self, part: Part, totals: Counts) -> PartLoss:
        return self.task.loss(self.model, part, totals)


@contextmanager
def process_group(runtime: Runtime) -> Iterator[None]:
    """Meet the other processes that torchrun started; nothing to do for one alone."""
    if runtime.ranks.world_size == 1:
        yield
        return
    end_with_launcher()
    is_cuda = runtime.device.type == "cuda"
    if is_cuda:
        torch.cuda.set_device(runtime.device)
    dist.init_process_group("cpu:gloo,cuda:nccl" if is_cuda else "gloo", timeout=read_timeout())
    try:
        yield
    except Exception as error:
        tell_launcher(error)  # before the others find this process gone
        if is_about_others(error):
            raise TrainingError(
                "process-lost",
                f"another process of this run ended or cannot be reached ({in_one_line(error)[:200]}); run the same "
                "command again on every host: it resumes from the last checkpoint",
            ) from error
        raise
    finally:
        leave_group()


def read_timeout() -> timedelta:
    """How long a process waits for the others before it ends: a host that disappears says no goodbye."""
    stated = os.environ.get(_TIMEOUT, "1800")
    if not stated.isdecimal() or int(stated) < 1:
        raise ConfigError("bad-value", f"{_TIMEOUT} = {stated!r:.40} must be an integer number of seconds, at least 1")
    return timedelta(seconds=int(stated))


def is_about_others(error: Exception) -> bool:
    """Whether an error of the exchange between processes says that one of the others is gone or silent."""
    return isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and bool(_GONE.search(str(error))))


def in_one_format(runtime: Runtime) -> Runtime:
    """The runtime in the number format of the first process: "auto" measures, and each may have measured otherwise."""
    if not dist.is_initialized():
        return runtime
    names = [runtime.dtype_name]
    dist.broadcast_object_list(names, src=0, device=torch.device("cpu"))
    return runtime.in_format(names[0])


def leave_group() -> None:
    """Part from the other processes.

    A thread of gloo lets go of its last message a moment after the message has arrived. If the interpreter ends within
    that moment, the process aborts, a finished run counts as failed, and nothing tells when the moment is over.
    """
    time.sleep(_LAST_MESSAGE_SECONDS)
    dist.destroy_process_group()


def spread(step: TaskLoss, parallel: Parallel, runtime: Runtime) -> nn.Module:
    """The step as it is called in a run of several processes; its model's parameters may become shards."""
    if runtime.ranks.world_size == 1:
        return step
    if parallel == "ddp":
        device_ids = [runtime.device] if runtime.device.type == "cuda" else None
        # gradients live in the messages themselves, where DDP would otherwise keep a second copy of them all
        return DistributedDataParallel(step, device_ids=device_ids, gradient_as_bucket_view=True)
    mesh = init_device_mesh(runtime.device.type, (runtime.ranks.world_size,))
    encoder = step.model.encoder
    if not encoder.is_shared:
        for block in (*encoder.attention, *encoder.ffn):
            fully_shard(block, mesh=mesh)
    fully_shard(step, mesh=mesh, reshard_after_forward=False)
    return step


def synchronizing(step: nn.Module, is_last: bool) -> AbstractContextManager[None]:
    """Around the computation of one part: gradients are exchanged only with the last part of a step.

    What FSDP has gathered for all layers serves all parts, too: no weight changes between them.
    """
    if isinstance(step, FSDPModule):
        step.set_requires_gradient_sync(is_last)
        step.set_reshard_after_backward(is_last, recurse=False)  # a block of its own would fill memory: gathered anew
    elif isinstance(step, DistributedDataParallel) and not is_last:
        return step.no_sync()
    return nullcontext()


def let_go(step: nn.Module) -> None:
    """Let parameters that FSDP has gathered be their shards again: what is written into them then stays."""
    if isinstance(step, FSDPModule):
        step.reshard()


def add_over_ranks(values: Mapping[str, float]) -> dict[str, float]:
    """Each value summed over all processes, in one message."""
    if not dist.is_initialized():
        return dict(values)
    message = torch.tensor(list(values.values()), dtype=torch.float64)
    dist.all_reduce(message)
    return dict(zip(values, message.tolist(), strict=True))


def mean_over_ranks(value: float) -> float:
    """The mean of a value over all processes."""
    world_size = dist.get_world_size() if dist.is_initialized() else 1
    return add_over_ranks({"value": value})["value"] / world_size


def agree_on_stop(stop: Stop) -> signal.Signals | None:
    """The signal that told any of the processes to stop: all of them have to save the same step."""
    if not dist.is_initialized():
        return stop.asked_by
    asked_by = torch.tensor(stop.asked_by or 0)
    dist.all_reduce(asked_by, dist.ReduceOp.MAX)
    return signal.Signals(int(asked_by)) if asked_by else None


def whole(tensor: Tensor) -> Tensor:
    """A tensor on the CPU, gathered from its shards; every process must ask for it."""
    full = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    return full.detach().cpu().contiguous()


def give(tensor: Tensor) -> Tensor:
    """Give one's shard of a tensor that another process asks for with `whole`, and keep nothing."""
    if isinstance(tensor, DTensor):
        tensor.full_tensor()
    return torch.empty(0)


def like_shard(tensor: Tensor, parameter: Tensor) -> Tensor:
    """A whole tensor cut as a parameter of its shape is."""
    if isinstance(parameter, DTensor) and tensor.shape == parameter.shape:
        return distribute_tensor(tensor.to(parameter.device), parameter.device_mesh, parameter.placements)
    return tensor


def wait_for_all() -> None:
    """Return when every process has come here."""
    if dist.is_initialized():
        dist.barrier()


@contextmanager
def main_process_first() -> Iterator[None]:
    """The first process runs the block before the others do. If it raises there, the launcher ends the others."""
    is_main = not dist.is_initialized() or dist.get_rank() == 0
    if not is_main:
        wait_for_all()
    yield
    if is_main:
        wait_for_all()
