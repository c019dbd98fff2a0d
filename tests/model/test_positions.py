"""Learned positions, extrapolated beyond the trained length."""

import torch

from litebert.model.positions import continue_positions, extend_positions, sinusoids, wave_numbers


def a_curve(num_positions: int, width: int) -> torch.Tensor:
    """Positions that a rotation leads from one to the next, as a model that sees only distances would learn them."""
    fast = wave_numbers(width // 4)[: width // 8 - 1]
    mixed = torch.randn(2 * len(fast), width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return (sinusoids(num_positions, fast) @ mixed + 3).float()


def error(guessed: torch.Tensor, true: torch.Tensor) -> float:
    return float((guessed - true).square().mean() / (true - true.mean(0)).square().mean())


def test_one_further_is_a_rotation() -> None:
    waves = wave_numbers(4)
    places = torch.view_as_complex(sinusoids(300, waves).view(300, 4, 2))
    turns = torch.polar(torch.ones(4, dtype=torch.float64), -waves)
    assert torch.allclose(places[1:], places[:-1] * turns)


def test_a_sum_of_waves_is_extrapolated() -> None:
    curve = a_curve(200, 32)
    table = curve.clone()
    table[128:] = 0
    continued = continue_positions(table, 128)
    assert error(table[128:], curve[128:]) > 1
    assert error(continued[128:], curve[128:]) < 0.01


def test_what_was_learned_stays_as_it_is_and_what_was_not_is_not_read() -> None:
    table = torch.randn(96, 8, generator=torch.Generator().manual_seed(0))
    other = torch.cat([table[:40], torch.full((56, 8), 100.0)])
    continued = continue_positions(table, 40)
    assert torch.equal(continued[:40], table[:40])
    assert torch.equal(continue_positions(other, 40), continued)
    assert continued.dtype == table.dtype
    assert continued.shape == table.shape


def test_the_first_positions_are_not_used_for_extrapolation() -> None:
    curve = a_curve(200, 32)
    table = curve.clone()
    table[:4] += 50
    assert torch.equal(continue_positions(table, 128)[128:], continue_positions(curve, 128)[128:])


def test_an_extended_table_begins_with_the_learned_one() -> None:
    table = a_curve(200, 32)
    for how in ("tiled", "continued"):
        extended = extend_positions(table, 1000, how)  # type: ignore[arg-type]
        assert extended.shape == (1000, 32)
        assert torch.equal(extended[:200], table)
        assert torch.equal(extend_positions(table, 200, how), table)  # type: ignore[arg-type]
    tiled = extend_positions(table, 1000, "tiled")
    assert torch.equal(tiled[200:384], table[16:])  # the special first positions are not repeated
    assert torch.equal(tiled[384:568], table[16:])
