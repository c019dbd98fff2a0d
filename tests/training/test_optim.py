"""The optimizers against hand calculations and plain numpy; their groups, their state, their behaviour on shards."""

import math
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from refusals import refuses
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import Parameter

from litebert.core.errors import ConfigError
from litebert.model.model import build_model
from litebert.model.presets import preset
from litebert.training import lamb
from litebert.training.lamb import Lamb
from litebert.training.lamb_kernels import BLOCK_SIZE, PIECE_SIZE
from litebert.training.optimizers import (
    build_optimizer,
    clip_gradients,
    is_excluded,
)
from litebert.training.options import OptimizerName, OptimOptions

SHAPES = {
    "embeddings.word.weight": (50, 8),
    "ffn.inner.weight": (16, 8),
    "ffn.inner.bias": (16,),
    "ffn.norm.weight": (8,),
}


@pytest.fixture(name="passes", params=["on_cpu", "plain"])
def _passes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test over the CPU kernels and over the plain torch operations that other devices use."""
    if request.param == "plain":
        monkeypatch.setattr(lamb, "_accumulate_on_cpu", lamb._accumulate)


def build_parameters(shapes: dict[str, tuple[int, ...]] = SHAPES, seed: int = 0) -> dict[str, Parameter]:
    generator = torch.Generator().manual_seed(seed)
    return {name: Parameter(torch.randn(shape, generator=generator)) for name, shape in shapes.items()}


def draw_gradients(parameters: dict[str, Parameter], step: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1_000 + step)
    return {name: torch.randn(tensor.shape, generator=generator) for name, tensor in parameters.items()}


def train(optimizer: torch.optim.Optimizer, parameters: dict[str, Parameter], steps: range) -> None:
    for step in steps:
        for name, gradient in draw_gradients(parameters, step).items():
            parameters[name].grad = gradient
        for group in optimizer.param_groups:
            group["lr"] = 0.01 / (step + 1)
        optimizer.step()


class Reference:
    """The published formulas in float64, one tensor at a time; says what each dialect does in its own words."""

    def __init__(self, weights: dict[str, np.ndarray], dialect: str, *, weight_decay: float = 0.01) -> None:
        self.weights, self.dialect, self.weight_decay = weights, dialect, weight_decay
        self.m = {name: np.zeros_like(weight) for name, weight in weights.items()}
        self.v = {name: np.zeros_like(weight) for name, weight in weights.items()}
        self.steps = 0

    def step(self, gradients: dict[str, np.ndarray], rate: float) -> None:
        self.steps += 1
        if self.dialect in ("lamb-apex", "lamb-nvlamb"):  # FusedLAMB's max_grad_norm, 1.0
            norm = math.sqrt(sum((g**2).sum() for g in gradients.values()))
            gradients = {name: g / norm if norm > 1 else g for name, g in gradients.items()}
        for name, gradient in gradients.items():
            self.m[name] = 0.9 * self.m[name] + 0.1 * gradient
            self.v[name] = 0.999 * self.v[name] + 0.001 * gradient**2
            self.weights[name] = self.weights[name] - rate * self.scaled_update(name)

    def scaled_update(self, name: str) -> np.ndarray:
        weight, m, v = self.weights[name], self.m[name], self.v[name]
        decay = 0.0 if "norm" in name or "bias" in name else self.weight_decay
        if self.dialect in ("lamb", "adamw-google"):
            update = m / (np.sqrt(v) + 1e-6) + decay * weight
        else:
            m, v = m / (1 - 0.9**self.steps), v / (1 - 0.999**self.steps)
            update = m / (np.sqrt(v) + 1e-6) + decay * weight
        has_ratio = {
            "lamb": not ("norm" in name or "bias" in name),
            "lamb-apex": decay != 0,
            "lamb-nvlamb": True,
            "adamw-google": False,
            "adamw": False,
        }[self.dialect]
        norms = np.linalg.norm(weight), np.linalg.norm(update)
        return update * (norms[0] / norms[1]) if has_ratio and min(norms) > 0 else update


@pytest.mark.usefixtures("passes")
@pytest.mark.parametrize("weight_decay", [0.01, 0.0])
@pytest.mark.parametrize("name", [name for name in get_args(OptimizerName) if name != "muon"])  # test_muon.py
def test_ten_steps_follow_the_published_formulas(name: str, weight_decay: float) -> None:
    parameters = build_parameters()
    reference = Reference(
        {key: tensor.detach().numpy().astype(np.float64) for key, tensor in parameters.items()},
        name,
        weight_decay=weight_decay,
    )
    optimizer = build_optimizer(parameters.items(), OptimOptions(name=name, weight_decay=weight_decay))
    for step in range(10):
        gradients = draw_gradients(parameters, step)
        for key, gradient in gradients.items():
            parameters[key].grad = gradient.clone()
        if name in ("lamb-apex", "lamb-nvlamb"):
            clip_gradients(parameters.values(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = 0.02
        optimizer.step()
        reference.step({key: gradient.numpy().astype(np.float64) for key, gradient in gradients.items()}, 0.02)
    for key, tensor in parameters.items():
        np.testing.assert_allclose(tensor.detach().numpy(), reference.weights[key], rtol=2e-5, atol=2e-6, err_msg=key)


@pytest.mark.usefixtures("passes")
def test_one_step_by_hand() -> None:
    weight, bias = Parameter(torch.tensor([3.0, 4.0])), Parameter(torch.tensor([2.0]))
    weight.grad, bias.grad = torch.tensor([1.0, -1.0]), torch.tensor([1.0])
    build_optimizer({"a.weight": weight, "a.bias": bias}.items(), OptimOptions(learning_rate=0.1)).step()
    # m / sqrt(v) = 0.1 / sqrt(0.001) = 3.1622777 (minus 1e-4 for epsilon); plus 0.01 w; norm of w is 5
    slope = 0.1 / (math.sqrt(0.001) + 1e-6)
    update = (slope + 0.03, -slope + 0.04)
    ratio = 5 / math.hypot(*update)
    assert weight.tolist() == pytest.approx([3 - 0.1 * ratio * update[0], 4 - 0.1 * ratio * update[1]], rel=1e-6)
    assert bias.item() == pytest.approx(2 - 0.1 * slope, rel=1e-6)  # neither decay nor ratio


@pytest.mark.usefixtures("passes")
def test_a_zero_weight_moves_with_ratio_one() -> None:
    weight = Parameter(torch.zeros(4))
    weight.grad = torch.ones(4)
    build_optimizer({"a.weight": weight}.items(), OptimOptions(learning_rate=0.1)).step()
    torch.testing.assert_close(weight.detach(), torch.full((4,), -0.1 * 0.1 / (math.sqrt(0.001) + 1e-6)))


@pytest.mark.usefixtures("passes")
def test_a_zero_update_leaves_the_weight_alone() -> None:
    weight = Parameter(torch.ones(4))
    weight.grad = torch.zeros(4)
    build_optimizer({"a.weight": weight}.items(), OptimOptions(weight_decay=0.0)).step()
    assert weight.tolist() == [1, 1, 1, 1]


@pytest.mark.usefixtures("passes")
def test_the_ratio_is_not_clamped() -> None:
    weight = Parameter(torch.full((4,), 1e4))
    weight.grad = torch.ones(4)
    build_optimizer({"a.weight": weight}.items(), OptimOptions(learning_rate=0.5, weight_decay=0.0)).step()
    torch.testing.assert_close(weight.detach(), torch.full((4,), 5e3))  # a step of lr * ||w||, whatever the gradient


@pytest.mark.usefixtures("passes")
def test_a_shared_tensor_is_one_variable() -> None:
    shared, alone = Parameter(torch.tensor([3.0, 4.0])), Parameter(torch.tensor([3.0, 4.0]))
    shared.grad, alone.grad = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0])
    names = [("encoder.word.weight", shared), ("heads.mlm.weight", shared), ("heads.mlm.bias", shared)]
    optimizer = build_optimizer(names, OptimOptions())
    optimizer.step()
    build_optimizer([("encoder.word.weight", alone)], OptimOptions()).step()
    assert len(optimizer.state) == 1
    assert torch.equal(shared, alone)


@pytest.mark.parametrize(
    ("name", "excluded"),
    [
        ("encoder.embeddings.word.weight", False),
        ("encoder.embeddings.norm.weight", True),
        ("encoder.attention.0.norm.bias", True),
        ("encoder.attention.0.query.bias", True),
        ("heads.mlm.bias", True),
        ("heads.mlm.transform.weight", False),
        ("encoder.normalizer.weight", False),
        ("bias", True),
    ],
)
def test_biases_and_layer_norms_are_excluded(name: str, excluded: bool) -> None:
    assert is_excluded(name) == excluded


def test_both_ways_of_computing_agree_on_large_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    # sizes around the block and piece boundaries; more than one piece
    shapes = {f"{size}.weight": (size,) for size in (1, BLOCK_SIZE, BLOCK_SIZE + 1, PIECE_SIZE - 1, PIECE_SIZE + 3)}
    fused, plain = build_parameters(shapes), build_parameters(shapes)
    train(build_optimizer(fused.items(), OptimOptions()), fused, range(3))
    monkeypatch.setattr(lamb, "_accumulate_on_cpu", lamb._accumulate)
    train(build_optimizer(plain.items(), OptimOptions()), plain, range(3))
    for name in shapes:
        torch.testing.assert_close(fused[name], plain[name], rtol=1e-5, atol=1e-6)


def test_the_number_of_threads_does_not_change_a_bit() -> None:
    shapes = {"a.weight": (PIECE_SIZE + 17,), "b.weight": (300, 70), "b.bias": (70,)}
    before = torch.get_num_threads()
    results = []
    try:
        for num_threads in (1, 3):
            torch.set_num_threads(num_threads)
            parameters = build_parameters(shapes)
            train(build_optimizer(parameters.items(), OptimOptions()), parameters, range(2))
            results.append(parameters)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(results[0][name], results[1][name]) for name in shapes)


@pytest.mark.parametrize("name", get_args(OptimizerName))
def test_resuming_from_saved_tensors_is_bit_identical(name: str, tmp_path: Path) -> None:
    options = OptimOptions(name=name)
    straight, stopped = build_parameters(), build_parameters()
    train(build_optimizer(straight.items(), options), straight, range(6))

    first = build_optimizer(stopped.items(), options)
    train(first, stopped, range(3))
    saved = first.state_dict()
    tensors = {f"{index}.{key}": value for index, state in saved["state"].items() for key, value in state.items()}
    save_file(tensors, tmp_path / "optimizer.safetensors")

    second = build_optimizer(stopped.items(), options)
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in load_file(tmp_path / "optimizer.safetensors").items():
        index, _, kind = key.partition(".")
        state.setdefault(int(index), {})[kind] = value
    second.load_state_dict({"state": state, "param_groups": second.state_dict()["param_groups"]})
    train(second, stopped, range(3, 6))

    assert {kind for values in state.values() for kind in values} == {"step", "exp_avg", "exp_avg_sq"}
    assert all(torch.equal(straight[key], stopped[key]) for key in straight)


def test_parameters_without_a_gradient_stay() -> None:
    parameters = build_parameters()
    before = {name: tensor.detach().clone() for name, tensor in parameters.items()}
    optimizer = build_optimizer(parameters.items(), OptimOptions())
    optimizer.step()
    parameters["ffn.inner.weight"].grad = torch.ones(16, 8)
    optimizer.step()
    moved = [name for name in before if not torch.equal(before[name], parameters[name])]
    assert moved == ["ffn.inner.weight"]


def test_a_weight_that_is_not_contiguous_is_updated_in_place() -> None:
    base = torch.randn(4, 6)
    weight, copy = Parameter(base.T), Parameter(base.T.contiguous())
    weight.grad = torch.ones(6, 4)
    copy.grad = torch.ones(6, 4)
    for parameter in (weight, copy):
        build_optimizer([("a.weight", parameter)], OptimOptions(learning_rate=0.1)).step()
    torch.testing.assert_close(weight, copy)


def test_a_closure_returns_its_loss() -> None:
    weight = Parameter(torch.ones(2))
    optimizer = build_optimizer([("a.weight", weight)], OptimOptions())
    assert isinstance(optimizer, Lamb)

    def closure() -> float:
        loss = (weight**2).sum()
        loss.backward()
        return loss.item()

    assert optimizer.step(closure) == 2.0
    assert weight.grad is not None


@pytest.mark.parametrize("max_norm", [1.0, 7.0, 100.0, math.inf])
def test_clipping_brings_the_global_norm_down_and_never_up(max_norm: float) -> None:
    weight, bias = Parameter(torch.zeros(2)), Parameter(torch.zeros(1))
    weight.grad, bias.grad = torch.tensor([4.0, 4.0]), torch.tensor([7.0])
    norm = clip_gradients([weight, bias], max_norm)
    assert norm.item() == pytest.approx(9.0)
    factor = min(1.0, max_norm / 9)
    assert [*weight.grad.tolist(), *bias.grad.tolist()] == pytest.approx([4 * factor, 4 * factor, 7 * factor])


@pytest.mark.parametrize(
    "options",
    [
        {"name": "lamp"},
        {"beta2": 1.0},
        {"learning_rate": -0.1},
        {"learning_rate": math.nan},
        {"weight_decay": math.inf},
        {"clip_norm": 0.0},
    ],
)
def test_impossible_options_are_refused_by_name(options: dict[str, object]) -> None:
    (key,) = options
    with refuses(ConfigError, "unknown-value" if key == "name" else "out-of-range", at=key):
        OptimOptions(**options)  # type: ignore[arg-type]


def test_in_our_models_exactly_the_vectors_are_excluded() -> None:
    model = build_model(preset("nano"), ["mlm", "sentence"], device="meta")
    for name, parameter in model.named_parameters():
        assert is_excluded(name) == (parameter.ndim == 1), name


@pytest.mark.usefixtures("passes")
def test_a_loss_scaler_skips_the_step_that_overflows_and_no_other() -> None:
    weight = Parameter(torch.tensor([3.0, 4.0]))
    optimizer = build_optimizer([("a.weight", weight)], OptimOptions(learning_rate=0.1))
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for factor, should_move in ((1.0, True), (math.inf, False), (1.0, True)):
        before = weight.detach().clone()
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.unscale_(optimizer)
        clip_gradients([weight], 1.0)
        scaler.step(optimizer)
        scaler.update()
        assert torch.equal(before, weight) != should_move
    assert optimizer.state[weight]["step"].item() == 2
