"""Learning curves of runs in one figure: training and validation in one panel per metric, one colour per run."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.core.errors import ConfigError, DataError, suggest
from litebert.core.files import atomic_path
from litebert.core.runlog import METRICS_FILE, read_log

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colour-blind safe palette without yellow, which is faint on white; after the last colour, dashes are
# used
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", ":", "-.")
LINES = tuple(product(DASHES, COLORS))
_QUIET = "#666666"
_INCHES_A_LETTER, _INCHES_A_LINE = 0.085, 0.7  # of the legend
SMOOTH_FROM = 60  # points: a longer curve is drawn faintly, with its running mean on top


class Curve(NamedTuple):
    """One metric of one run."""

    steps: NDArray[np.float64]
    values: NDArray[np.float64]


Run = dict[str, Curve]  # by the name of the metric
Levels = Mapping[str, Mapping[str, float]]  # metric -> name of a baseline, such as chance -> its value

MAX_PANELS = 4  # unless metrics are named
# the panels to draw first; a run has only some of these metrics
PREFERRED = ("mlm_loss", "mlm_accuracy", "sentence_accuracy", "accuracy", "f1", "loss", "learning_rate")
_TITLES = {"mlm_loss": "masked-token loss", "mlm_accuracy": "masked-token accuracy"}
_EXACT = {"learning_rate", "tokens"}  # no noise to smooth
_TRAINING = "training (with points: validation)"
_PREFIXES = {"valid": "validation", "dev": "validation", "train": "training"}


def plot_runs(
    paths: Sequence[Path],
    output: Path,
    *,
    metrics: Sequence[str] = (),
    levels: Levels = MappingProxyType({}),
    stages: Sequence[int] = (),
) -> list[str]:
    """Draw the runs' curves into `output` (PNG) and return the panels drawn: the metrics named, or up to four.

    A panel has a metric's training and validation curves, its baselines (`levels`), and marks where `stages` begin.
    """
    if len(paths) > len(LINES):
        raise ConfigError("too-many-runs", f"cannot draw {len(paths)} runs in one figure: draw at most {len(LINES)}")
    runs = dict(zip(_name_runs(paths), map(read_run, paths), strict=True))
    known = list(dict.fromkeys(metric for run in runs.values() for metric in run))
    panels = list(dict.fromkeys(map(_base, known)))
    for metric in metrics:
        if metric not in (*known, *panels):
            raise ConfigError("unknown-metric", f"no run has the metric '{metric}'; {suggest(metric, panels)}")
    chosen = list(metrics) or _choose_panels(panels)
    figure = build_figure(runs, chosen, levels=levels, stages=stages)
    with atomic_path(output) as temporary:
        figure.savefig(temporary, format="png", dpi=150)
    return chosen


def _base(metric: str) -> str:
    """The panel of a metric: valid_loss is drawn with loss."""
    prefix, _, rest = metric.partition("_")
    return rest if prefix in _PREFIXES else metric


def _choose_panels(panels: Sequence[str]) -> list[str]:
    known = [name for name in PREFERRED if name in panels]
    if "mlm_loss" in known:
        known.remove("loss")  # the sum of mlm_loss and the sentence loss
    return [*known, *(name for name in panels if name not in PREFERRED)][:MAX_PANELS]


def read_run(path: Path) -> Run:
    """The curves of a run, given its folder or metrics file; a metric may be missing from some lines."""
    if not path.exists():
        raise DataError("missing-file", f"{path} does not exist: pass a run folder, or its {METRICS_FILE}")
    file = path / METRICS_FILE if path.is_dir() else path
    points: dict[str, list[tuple[float, float]]] = {}
    for record in read_log(file):
        for metric, value in record.items():
            if metric != "step" and isinstance(value, int | float):
                points.setdefault(metric, []).append((record["step"], value))
    if not points:
        raise DataError("nothing-to-draw", f"{file} has no metrics yet, so there is nothing to draw")
    return {metric: Curve(*np.array(pairs, dtype=np.float64).T) for metric, pairs in points.items()}


def smooth(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """The centered running mean over `window` values. A trailing mean would lag behind.

    At the start, where curves are steep, the window is narrower. At the end, where single values would be noisy, it is
    a linear fit through the last window.
    """
    sums = np.concatenate([[0.0], np.cumsum(values)])
    places = np.arange(len(values))
    half = np.minimum(window // 2, np.minimum(places, len(values) - 1 - places))
    means = np.asarray((sums[places + half + 1] - sums[places - half]) / (2 * half + 1))
    last = places[-(2 * (window // 2) + 1) :]
    if len(last) > 2:
        tail = last[len(last) // 2 :]
        means[tail] = np.polyval(np.polyfit(last - tail[0], values[last], 1), tail - tail[0])
    return means


def build_figure(
    runs: dict[str, Run],
    metrics: Sequence[str],
    *,
    levels: Levels = MappingProxyType({}),
    stages: Sequence[int] = (),
) -> "Figure":
    """The figure: panels in two columns, and a common legend of runs and kinds of lines."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("missing-package", "plotting needs matplotlib: pip install 'litebert[plots]'") from error
    num_columns = min(len(metrics), 2)
    num_rows = -(-len(metrics) // num_columns)
    figure = Figure(figsize=(6.4 * num_columns, 3.8 * num_rows), layout="constrained")
    for place, metric in enumerate(metrics, start=1):
        panel = figure.add_subplot(num_rows, num_columns, place)
        _draw_panel(panel, metric, runs)
        _draw_background(panel, levels.get(metric, {}), stages)
    handles, names = _legend_entries(figure.axes)
    width = max(map(len, names)) * _INCHES_A_LETTER + _INCHES_A_LINE
    legend_columns = max(1, min(len(names), 4, int(figure.get_figwidth() / width)))
    figure.legend(handles, names, loc="outside lower center", ncols=legend_columns, frameon=False)
    return figure


def _name_runs(paths: Sequence[Path]) -> list[str]:
    """The runs' folder names, with as many parent folders as needed to make them unique."""
    parts = [(path if path.is_dir() else path.parent).resolve().parts for path in paths]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-depth:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    raise ConfigError("repeated-value", "the same run is given twice")


def _draw_panel(panel: "Axes", metric: str, runs: dict[str, Run]) -> None:
    """Draw the training curve, smoothed if it has many points, and the validation curve on top, with markers."""
    for (dash, color), (name, run) in zip(LINES, runs.items(), strict=False):
        style: dict[str, Any] = {"color": color, "linestyle": dash}
        validation = next((run[key] for key in (f"valid_{metric}", f"dev_{metric}") if key in run), None)
        training = next((run[key] for key in (metric, f"train_{metric}") if key in run), None)
        if training is not None:
            steps, values = training
            if len(values) >= SMOOTH_FROM and metric not in _EXACT:
                panel.plot(steps, values, color=color, alpha=0.15, linewidth=0.8)
                values = smooth(values, len(values) // 30)
            label, alpha = (name, 1.0) if validation is None else (_TRAINING, 0.45)
            marker = "o" if len(values) < 3 else None  # a line of one point would be invisible
            panel.plot(steps, values, alpha=alpha, linewidth=1.8, marker=marker, label=label, **style)
        if validation is not None:
            panel.plot(*validation, linewidth=2, marker="o", markersize=3.5, label=name, **style)
    panel.set_title(_TITLES.get(metric, metric.replace("_", " ")))
    panel.set_xlabel("step")
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)
    panel.ticklabel_format(axis="x", style="plain")


def _draw_background(panel: "Axes", levels: Mapping[str, float], stages: Sequence[int]) -> None:
    """Draw dotted lines: horizontal for baselines, vertical where stages begin."""
    for name, value in levels.items():
        panel.axhline(value, color=_QUIET, linewidth=1.2, linestyle=":")
        panel.annotate(
            name,
            (1, value),
            (-3, 3),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            color=_QUIET,
        )
    for number, step in enumerate(stages, start=2):
        panel.axvline(step, color=_QUIET, linewidth=1, linestyle=":")
        panel.annotate(
            f"stage {number}",
            (step, 1),
            (3, -3),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            va="top",
            color=_QUIET,
        )


def _legend_entries(panels: Sequence["Axes"]) -> tuple[list["Artist"], list[str]]:
    """One entry per run, even if some panels lack it; then one that explains the faint lines."""
    entries: dict[str, Artist] = {}
    for panel in panels:
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(str(name), handle)
    if _TRAINING in entries:
        entries[_TRAINING] = entries.pop(_TRAINING)  # last
    return list(entries.values()), list(entries)
