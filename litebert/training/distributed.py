"""Training in several processes: DDP, FSDP2, and the few values that processes exchange.

With DDP each process has a copy of the model and gradients are summed; FSDP2 gives each process a shard. A model with
shared layers is a single FSDP group, gathered once per step; a group per layer would be gathered at each application.
An unshared model is sharded block by block.
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
from litebert.core.ranges import read_whole_number
from litebert.core.runtime import Runtime
from litebert.core.signals import Stop
from litebert.model.model import Model
from litebert.tasks.task import BatchLoss, Counts, MicroBatch, Task
from litebert.training.launcher import exit_with_launcher, report_to_launcher
from litebert.training.options import Parallel

_LAST_MESSAGE_SECONDS = 0.5
_TIMEOUT = "LITEBERT_PROCESS_TIMEOUT"  # environment variable: seconds that a process waits for the others

# gloo's messages about a process that is gone
_GONE = re.compile(r"[Cc]onnection (closed|reset|refused)|[Tt]imed out|Broken pipe|gloo/transport|No route to host")


class TaskLoss(nn.Module):
    """A task's loss as a module: DDP and FSDP hook into `forward`."""

    def __init__(self, model: Model, task: Task[Any]) -> None:
        super().__init__()
        self.model = model
        self.task = task

    def forward(self, micro_batch: MicroBatch, totals: Counts) -> BatchLoss:
        return self.task.loss(self.model, micro_batch, totals)


@contextmanager
def process_group(runtime: Runtime) -> Iterator[None]:
    """Join the processes that torchrun started; a no-op for a single process."""
    if runtime.ranks.world_size == 1:
        yield
        return
    exit_with_launcher()
    is_cuda = runtime.device.type == "cuda"
    if is_cuda:
        torch.cuda.set_device(runtime.device)
    dist.init_process_group("cpu:gloo,cuda:nccl" if is_cuda else "gloo", timeout=read_timeout())
    try:
        yield
    except Exception as error:
        report_to_launcher(error)  # before the others notice that this process is gone
        if isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and _GONE.search(str(error))):
            raise TrainingError(
                "process-lost",
                f"another process of this run ended or cannot be reached ({in_one_line(error)[:200]}); run the same "
                "command again on every host: it resumes from the last checkpoint",
            ) from error
        raise
    finally:
        leave_group()


def leave_group() -> None:
    """Leave the process group.

    A gloo thread releases its last message shortly after it was delivered. If the interpreter exits before that, the
    process aborts and a finished run counts as failed; gloo has no way to wait for it, so we sleep.
    """
    time.sleep(_LAST_MESSAGE_SECONDS)
    dist.destroy_process_group()


def read_timeout() -> timedelta:
    """How long a process waits for the others before it fails: a host may disappear without closing its connections."""
    stated = os.environ.get(_TIMEOUT, "1800")
    seconds = read_whole_number(stated)
    if not seconds or seconds > 10**9:
        raise ConfigError("bad-value", f"{_TIMEOUT} = {stated!r:.40} must be an integer number of seconds, at least 1")
    return timedelta(seconds=seconds)


def agree_on_dtype(runtime: Runtime) -> Runtime:
    """The runtime in the number format of the first process: "auto" measures, and results may differ by process."""
    if not dist.is_initialized():
        return runtime
    names = [runtime.dtype_name]
    dist.broadcast_object_list(names, src=0, device=torch.device("cpu"))
    return runtime.in_format(names[0])


def parallelize(step: TaskLoss, parallel: Parallel, runtime: Runtime) -> nn.Module:
    """The loss wrapped in DDP or FSDP if there are several processes; with FSDP, its parameters become shards."""
    if runtime.ranks.world_size == 1:
        return step
    if parallel == "ddp":
        device_ids = [runtime.device] if runtime.device.type == "cuda" else None
        # gradients are views of the communication buffers; otherwise DDP keeps a second copy of all of them
        return DistributedDataParallel(step, device_ids=device_ids, gradient_as_bucket_view=True)
    mesh = init_device_mesh(runtime.device.type, (runtime.ranks.world_size,))
    encoder = step.model.encoder
    if not encoder.is_shared:
        for block in (*encoder.attention, *encoder.ffn):
            fully_shard(block, mesh=mesh)
    fully_shard(step, mesh=mesh, reshard_after_forward=False)
    return step


def gradient_sync(step: nn.Module, is_last: bool) -> AbstractContextManager[None]:
    """Around the computation of a micro-batch: gradients are exchanged only with the last one of a step.

    Parameters that FSDP has gathered are kept for all micro-batches, since no weight changes between them.
    """
    if isinstance(step, FSDPModule):
        step.set_requires_gradient_sync(is_last)
        step.set_reshard_after_backward(is_last, recurse=False)  # not for single blocks, which would fill the memory
    elif isinstance(step, DistributedDataParallel) and not is_last:
        return step.no_sync()
    return nullcontext()


def reshard(step: nn.Module) -> None:
    """Turn parameters that FSDP has gathered into shards again, so that values written into them are kept."""
    if isinstance(step, FSDPModule):
        step.reshard()


def sum_over_ranks(values: Mapping[str, float]) -> dict[str, float]:
    """Each value summed over all processes, in one all-reduce."""
    if not dist.is_initialized():
        return dict(values)
    sums = torch.tensor(list(values.values()), dtype=torch.float64)
    dist.all_reduce(sums)
    return dict(zip(values, sums.tolist(), strict=True))


def average_over_ranks(value: float) -> float:
    """The mean of a value over all processes."""
    world_size = dist.get_world_size() if dist.is_initialized() else 1
    return sum_over_ranks({"value": value})["value"] / world_size


def agree_on_stop(stop: Stop) -> signal.Signals | None:
    """The stop signal that any of the processes has received: all of them must save the same step."""
    if not dist.is_initialized():
        return stop.received
    received = torch.tensor(stop.received or 0)
    dist.all_reduce(received, dist.ReduceOp.MAX)
    return signal.Signals(int(received)) if received else None


def gather_tensor(tensor: Tensor) -> Tensor:
    """A full tensor on the CPU, gathered from its shards; every process must call this or `send_shard`."""
    full = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    return full.detach().cpu().contiguous()


def send_shard(tensor: Tensor) -> Tensor:
    """Take part in another process's `gather_tensor` without keeping the result."""
    if isinstance(tensor, DTensor):
        tensor.full_tensor()
    return torch.empty(0)


def shard_like(tensor: Tensor, parameter: Tensor) -> Tensor:
    """A full tensor, sharded like a parameter of the same shape."""
    if isinstance(parameter, DTensor) and tensor.shape == parameter.shape:
        return distribute_tensor(tensor.to(parameter.device), parameter.device_mesh, parameter.placements)
    return tensor


def wait_for_all() -> None:
    """Return when every process has called this."""
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
