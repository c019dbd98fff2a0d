"""Muon: its law (singular values near 1), torch's Muon as a reference, stacks, shards and resumed moments."""

from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn import Parameter
from torch.nn.parallel import DistributedDataParallel

from litebert.model.model import build_model
from litebert.model.presets import preset
from litebert.training import muon
from litebert.training.distributed import leave_group
from litebert.training.muon import orthogonalize
from litebert.training.optimizers import build_optimizer, is_layer_matrix
from litebert.training.options import OptimOptions

SHAPES = {
    "encoder.embeddings.token.weight": (50, 8),
    "encoder.attention.0.query.weight": (8, 8),
    "encoder.attention.0.query.bias": (8,),
    "encoder.ffn.0.up.weight": (24, 8),
    "encoder.ffn.0.down.weight": (8, 24),
    "encoder.ffn.0.norm.weight": (8,),
}


@pytest.fixture(name="exact")
def _exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Iterations in float32 everywhere: bfloat16 rounds away what a test compares."""
    monkeypatch.setattr(muon, "agree_on_iterating_dtype", lambda _: torch.float32)


def build_parameters(seed: int = 0) -> dict[str, Parameter]:
    generator = torch.Generator().manual_seed(seed)
    return {name: Parameter(torch.randn(shape, generator=generator)) for name, shape in SHAPES.items()}


def draw_gradients(parameters: dict[str, Parameter], step: int) -> None:
    generator = torch.Generator().manual_seed(1_000 + step)
    for parameter in parameters.values():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 16, 48), (1, 1, 5)])
def test_all_singular_values_come_near_one_and_directions_stay(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    update = orthogonalize(matrices, dtype)
    assert ((singular := torch.linalg.svdvals(update)) > 0.6).all(), singular
    assert (singular < 1.3).all(), singular
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    aligned = left.mT @ update @ right.mT  # diagonal if the singular vectors are the same
    torch.testing.assert_close(aligned, aligned.diagonal(dim1=1, dim2=2).diag_embed(), atol=0.03, rtol=0)


def test_the_size_of_a_gradient_does_not_matter_and_none_moves_nothing() -> None:
    matrices = torch.randn(2, 8, 24, generator=torch.Generator().manual_seed(1))
    assert torch.equal(orthogonalize(matrices, torch.bfloat16), orthogonalize(matrices * 1024, torch.bfloat16))
    assert not orthogonalize(torch.zeros(2, 8, 24), torch.bfloat16).any()


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_it_is_torchs_muon_for_matrices_and_torchs_adamw_for_the_rest(weight_decay: float) -> None:
    ours, theirs = build_parameters(), build_parameters()
    optimizer = build_optimizer(ours.items(), OptimOptions(name="muon", weight_decay=weight_decay, learning_rate=0.02))
    matrices = [theirs[name] for name in SHAPES if is_layer_matrix(name, theirs[name])]
    assert len(matrices) == 3
    decay = {"lr": 0.02, "weight_decay": weight_decay}
    others = [
        {"params": [theirs["encoder.embeddings.token.weight"]], **decay},
        {"params": [theirs[name] for name in SHAPES if theirs[name].ndim == 1], **decay, "weight_decay": 0.0},
    ]
    references = [
        torch.optim.Muon(matrices, **decay, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=0.02, eps=1e-6, fused=True),
    ]
    for step in range(10):
        for parameters in (ours, theirs):
            draw_gradients(parameters, step)
        for each in (optimizer, *references):
            each.step()
    for name, parameter in ours.items():
        # torch's iterations are in bfloat16: a hundredth of ten updates of 0.02 * 0.2 * sqrt(24)
        tolerance = 4e-3 if is_layer_matrix(name, parameter) else 0.0
        torch.testing.assert_close(parameter, theirs[name], atol=tolerance, rtol=0, msg=name)


@pytest.mark.usefixtures("exact")
def test_matrices_stacked_or_one_by_one_move_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    stacked, alone = build_parameters(), build_parameters()
    train(stacked, OptimOptions(name="muon"), range(3))
    monkeypatch.setattr(muon, "MAX_STACKED", 1)
    train(alone, OptimOptions(name="muon"), range(3))
    for name in SHAPES:
        torch.testing.assert_close(stacked[name], alone[name])


def train(parameters: dict[str, Parameter], options: OptimOptions, steps: range) -> None:
    optimizer = build_optimizer(parameters.items(), options)
    for step in steps:
        draw_gradients(parameters, step)
        optimizer.step()


def test_in_our_models_the_matrices_are_those_of_the_layers() -> None:
    model = build_model(preset("nano"), ["mlm", "sentence"], device="meta")
    matrices = {name for name, parameter in model.named_parameters() if is_layer_matrix(name, parameter)}
    attention = {f"encoder.attention.0.{part}.weight" for part in ("query", "key", "value", "output")}
    assert matrices == attention | {"encoder.ffn.0.up.weight", "encoder.ffn.0.down.weight"}


class Small(nn.Module):
    """A model whose matrices have names and shapes of both kinds; 3 rows do not divide by two processes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.projection = nn.Linear(5, 8)
        self.ffn = nn.ModuleList([nn.Linear(8, 3), nn.Linear(3, 8), nn.Linear(8, 1)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.projection(x)
        for linear in self.ffn:
            x = linear(x).tanh()
        return x


def train_small(model: nn.Module, network: nn.Module) -> None:
    optimizer = build_optimizer(model.named_parameters(), OptimOptions(name="muon", learning_rate=0.05))
    for step in range(4):
        inputs = torch.randn(6, 5, generator=torch.Generator().manual_seed(step))
        network(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def run_rank(rank: int, folder: str) -> None:
    dist.init_process_group("gloo", f"file://{folder}/meeting", timedelta(minutes=4), 2, rank)
    # only the second process has bfloat16, so both have to iterate in float32
    torch.cpu._is_avx512_bf16_supported = lambda: rank == 1  # type: ignore[assignment]
    torch.cpu._is_amx_tile_supported = lambda: False  # type: ignore[assignment]
    results = {}
    for parallel in ("ddp", "fsdp"):
        model = Small()
        if parallel == "ddp":
            train_small(model, DistributedDataParallel(model))
        else:
            train_small(model, fully_shard(model, mesh=init_device_mesh("cpu", (2,)), reshard_after_forward=False))
        results[parallel] = {
            name: (p.full_tensor() if isinstance(p, DTensor) else p).detach() for name, p in model.named_parameters()
        }
    torch.save(results, Path(folder) / f"result-{rank}.pt")
    leave_group()


@pytest.mark.slow
@pytest.mark.ranks
@pytest.mark.usefixtures("exact")
def test_two_processes_with_copies_or_shards_do_as_one(tmp_path: Path) -> None:
    mp.spawn(run_rank, args=(str(tmp_path),), nprocs=2)
    model = Small()
    train_small(model, model)
    results = [torch.load(tmp_path / f"result-{rank}.pt", weights_only=True) for rank in range(2)]
    for parallel in ("ddp", "fsdp"):
        for name, parameter in model.named_parameters():
            first, second = (result[parallel][name] for result in results)
            assert torch.equal(first, second), name
            torch.testing.assert_close(first, parameter.detach(), rtol=1e-5, atol=1e-6, msg=name)
