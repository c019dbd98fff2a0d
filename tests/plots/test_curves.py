"""Curves of runs: what is read, what is drawn, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses

from litebert.core.errors import ConfigError, DataError
from litebert.core.runlog import METRICS_FILE
from litebert.plots.curves import build_figure, plot_runs, read_run, smooth

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def write_run(folder: Path, num_steps: int = 100) -> Path:
    folder.mkdir(parents=True)
    lines = []
    for step in range(1, num_steps + 1):
        record = {"step": step, "loss": 9 / step, "note": "text"}
        if step % 50 == 0:
            record["valid_loss"] = 10 / step
        lines.append(json.dumps(record) + "\n")
    (folder / METRICS_FILE).write_text("".join(lines))
    return folder


def test_a_metric_need_not_be_on_every_line(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run"))
    assert list(run) == ["loss", "valid_loss"]
    assert run["valid_loss"].steps.tolist() == [50, 100]
    assert run["valid_loss"].values.tolist() == [0.2, 0.1]


def test_runs_of_one_name_are_drawn_into_one_png(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a" / "nano"), write_run(tmp_path / "b" / "nano", 5)]
    assert plot_runs([runs[0], runs[1] / METRICS_FILE], tmp_path / "new" / "curves.png") == ["loss"]
    assert (tmp_path / "new" / "curves.png").read_bytes().startswith(PNG_SIGNATURE)


def test_each_metric_has_a_panel_and_each_run_one_line_in_the_legend(tmp_path: Path) -> None:
    runs = {name: read_run(write_run(tmp_path / name)) for name in ("first", "second")}
    del runs["second"]["valid_loss"]
    runs["second"]["only_here"] = runs["second"]["loss"]
    figure = build_figure(runs, ["loss", "valid_loss", "only_here"])
    assert [panel.get_title() for panel in figure.axes] == ["loss", "valid loss", "only here"]
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == ["first", "second", "training (with points: validation)"]


def test_training_and_validation_share_a_panel_with_baselines_and_stages(tmp_path: Path) -> None:
    runs = {"first": read_run(write_run(tmp_path / "first"))}
    [panel] = build_figure(runs, ["loss"], levels={"loss": {"unigram": 5.0}}, stages=[40]).axes
    training, smoothed, validation, level, stage = panel.lines
    assert len(training.get_xdata()) == len(smoothed.get_xdata()) == 100
    assert list(validation.get_xdata()) == [50, 100]
    assert list(level.get_ydata()) == [5.0, 5.0]
    assert list(stage.get_xdata()) == [40, 40]
    assert [text.get_text() for text in panel.texts] == ["unigram", "stage 2"]


def test_at_most_four_panels_are_drawn_unless_metrics_are_named(tmp_path: Path) -> None:
    names = ["loss", "mlm_loss", "mlm_accuracy", "sentence_loss", "sentence_accuracy", "learning_rate", "tokens"]
    record = json.dumps({"step": 1, **dict.fromkeys(names, 1), "valid_mlm_loss": 1})
    (tmp_path / METRICS_FILE).write_text(record + "\n")
    drawn = plot_runs([tmp_path], tmp_path / "x.png")
    assert drawn == ["mlm_loss", "mlm_accuracy", "sentence_accuracy", "learning_rate"]
    assert plot_runs([tmp_path], tmp_path / "x.png", metrics=names) == names


@pytest.mark.parametrize("metrics", [["loss"], ["loss", "valid_loss"]])
@pytest.mark.parametrize("length", [5, 30, 50])
def test_the_legend_is_no_wider_than_the_picture(metrics: list[str], length: int, tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run"))
    figure = build_figure({letter * length: run for letter in "aceu"}, metrics)
    figure.savefig(tmp_path / "curves.png")  # as places are settled by drawing
    place = figure.legends[0].get_window_extent()
    assert place.x0 >= 0
    assert place.x1 <= figure.bbox.width


def test_only_the_metrics_asked_for_are_drawn(tmp_path: Path) -> None:
    assert plot_runs([write_run(tmp_path / "run")], tmp_path / "x.png", metrics=["valid_loss"]) == ["valid_loss"]


def test_an_unknown_metric_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with refuses(ConfigError, "unknown-metric"):
        plot_runs([write_run(tmp_path / "run")], tmp_path / "x.png", metrics=["los"])
    assert not (tmp_path / "x.png").exists()


def test_the_same_run_twice_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    with refuses(ConfigError, "repeated-value"):
        plot_runs([run, run], tmp_path / "x.png")


def test_a_run_without_steps_is_named(tmp_path: Path) -> None:
    with refuses(DataError, "nothing-to-draw"):
        plot_runs([write_run(tmp_path / "run", 0)], tmp_path / "x.png")


def test_smoothing_is_the_mean_of_the_values_around() -> None:
    np.testing.assert_allclose(smooth(np.array([4.0, 2.0, 6.0, 1.0]), 3), [4, 4, 3, 2.5])


def test_the_last_value_does_not_throw_the_curve_off() -> None:
    noise = np.random.default_rng(0).normal(size=600)
    assert abs(smooth(noise, 101)[-1]) < 0.5
    assert abs(smooth(np.append(noise, 9.0), 101)[-1]) < 0.8


def test_smoothing_does_not_bend_a_straight_line() -> None:
    line = np.linspace(5, 1, 200)
    np.testing.assert_allclose(smooth(line, 25), line)
