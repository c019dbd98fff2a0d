"""LAMB on parameters that FSDP2 shards over processes: the same weights as in one process."""

from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from litebert.training.distributed import leave_group
from litebert.training.optimizers import build_optimizer, clip_gradients
from litebert.training.options import OptimizerName, OptimOptions

WORLD_SIZE = 2


def build_model() -> nn.Module:
    torch.manual_seed(0)
    # 3 and 1 rows do not divide by two processes: one holds less, or nothing
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3), nn.Tanh(), nn.Linear(3, 1))
    nn.init.zeros_(model[2].weight)  # a norm of zero
    return model


def train(model: nn.Module, name: str) -> list[float]:
    optimizer = build_optimizer(model.named_parameters(), OptimOptions(name=name, learning_rate=0.05, clip_norm=0.1))
    norms = []
    for step in range(4):
        inputs = torch.randn(6, 5, generator=torch.Generator().manual_seed(step))
        model(inputs).square().mean().backward()
        norms.append(clip_gradients(model.parameters(), 0.1).item())
        optimizer.step()
        optimizer.zero_grad()
    return norms


def run_rank(rank: int, name: str, folder: str) -> None:
    # a file to meet at, since a free port may be taken by the time it is used; time enough to compile the kernels
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", meeting, timedelta(minutes=4), WORLD_SIZE, rank)
    model = build_model()
    fully_shard(model, mesh=init_device_mesh("cpu", (WORLD_SIZE,)), reshard_after_forward=False)
    norms = train(model, name)
    weights = {}
    for key, parameter in model.named_parameters():
        assert isinstance(parameter, DTensor)
        weights[key] = parameter.full_tensor().detach()
    if rank == 0:
        torch.save((norms, weights), Path(folder) / "result.pt")
    leave_group()


@pytest.mark.slow
@pytest.mark.ranks
@pytest.mark.parametrize("name", [name for name in get_args(OptimizerName) if name != "muon"])  # test_muon.py
def test_two_processes_with_sharded_parameters_do_as_one(name: str, tmp_path: Path) -> None:
    mp.spawn(run_rank, args=(name, str(tmp_path)), nprocs=WORLD_SIZE)
    norms, weights = torch.load(tmp_path / "result.pt", weights_only=True)

    model = build_model()
    assert norms == pytest.approx(train(model, name), rel=1e-5)
    for key, parameter in model.named_parameters():
        torch.testing.assert_close(weights[key], parameter.detach(), rtol=1e-5, atol=1e-6, msg=key)
