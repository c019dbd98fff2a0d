"""The learning rate compared with the official schedule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from litebert.core.errors import ConfigError
from litebert.training.loop import Progress
from litebert.training.options import TrainOptions
from litebert.training.schedule import ScheduleOptions, check_schedule, learning_rate

PAPER = ScheduleOptions(warmup_steps=3125)


@pytest.mark.parametrize(
    ("step", "share_of_peak"),
    [(0, 0), (1, 1 / 3125), (3124, 3124 / 3125), (3125, 0.975), (62_500, 0.5), (125_000, 0), (130_000, 0)],
)
def test_the_paper_run_follows_the_official_clock(step: int, share_of_peak: float) -> None:
    rate = learning_rate(step, peak=0.00176, total_steps=125_000, options=PAPER)
    assert rate == pytest.approx(0.00176 * share_of_peak, rel=1e-12)


def test_without_warm_up_the_first_step_has_the_peak() -> None:
    assert learning_rate(0, peak=0.5, total_steps=10, options=ScheduleOptions(warmup_steps=0)) == 0.5


def test_who_starts_late_and_without_a_warm_up_waits() -> None:
    options = ScheduleOptions(warmup_steps=0, start_warmup_step=5)
    assert [learning_rate(step, peak=1.0, total_steps=10, options=options) for step in (0, 4, 5)] == [0.0, 0.0, 0.5]


@pytest.mark.parametrize(("step", "share_of_peak"), [(0, 0), (99, 0), (100, 0), (105, 0.5), (110, 0.89), (1000, 0)])
def test_a_warm_up_that_starts_late_is_zero_before_it(step: int, share_of_peak: float) -> None:
    options = ScheduleOptions(warmup_steps=10, start_warmup_step=100)
    assert learning_rate(step, peak=2.0, total_steps=1000, options=options) == pytest.approx(2 * share_of_peak)


def test_power_and_end_shape_the_decay() -> None:
    options = ScheduleOptions(warmup_steps=0, power=2.0, end_learning_rate=0.1)
    rates = [learning_rate(step, peak=1.1, total_steps=4, options=options) for step in (0, 2, 4, 5)]
    assert rates == pytest.approx([1.1, 0.35, 0.1, 0.1])


@given(step=st.floats(0, 2000), warmup=st.integers(0, 1000), power=st.floats(0.1, 4), end=st.floats(0, 1))
def test_the_rate_stays_between_zero_and_the_peak(step: float, warmup: int, power: float, end: float) -> None:
    options = ScheduleOptions(warmup_steps=warmup, power=power, end_learning_rate=end)
    assert 0 <= learning_rate(step, peak=1.0, total_steps=1000, options=options) <= 1 + 1e-12


def test_by_the_clock_half_the_time_is_half_the_schedule() -> None:
    train = TrainOptions(steps=125_000, hours=1.5)
    step = Progress(seconds=2700).scheduled_step(train)
    assert learning_rate(step, peak=1.0, total_steps=125_000, options=PAPER) == pytest.approx(0.5)
    late = Progress(seconds=9999).scheduled_step(train)
    assert learning_rate(late, peak=1.0, total_steps=125_000, options=PAPER) == 0


@pytest.mark.parametrize(
    "options", [{"warmup_steps": -1}, {"start_warmup_step": -1}, {"power": -1.0}, {"end_learning_rate": float("nan")}]
)
def test_impossible_options_are_refused_by_name(options: dict[str, float]) -> None:
    with refuses(ConfigError, "out-of-range"):
        ScheduleOptions(**options)  # type: ignore[arg-type]


def test_a_warm_up_longer_than_the_run_is_refused() -> None:
    check_schedule(PAPER, 3125)
    with refuses(ConfigError, "warm-up-too-long"):
        check_schedule(PAPER, 3000)
