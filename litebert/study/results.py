"""Combines the reports of a study's finished arms: means and spreads, compared with the published numbers."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, variance
from typing import Any

from litebert.core.errors import ConfigError, DataError
from litebert.study.arms import MAIN_CORPUS, ArmRun, build_arm_recipe, title_of
from litebert.study.identity import Texts, check_current, list_other_measures
from litebert.study.measures import summarize_curve
from litebert.study.metrics import AVERAGE, EXACT, SPEEDUP, describe
from litebert.study.place import STUDY_FILE, Report, find_study, read_arm_report
from litebert.study.spec import TASK_SETS, Scale, Study
from litebert.study.spread import Spread, pool, pool_paired

REMARKS_FILE = "notes.md"
CONCLUSION_FILE = "conclusion.md"
_OWN_SEEDS = 3  # from this many seeds on, an arm has its own spread
_FEW_FILES = 3  # a command lists at most this many files of a corpus
_SHORT = 4  # characters of an abbreviated fingerprint
_RESULT_NAMES = frozenset({"results.json"})  # files written by reports, not arms


@dataclass(frozen=True)
class Cell:
    """One metric of one arm: one value per seed."""

    values: tuple[float, ...]
    seeds: tuple[int, ...]
    text_half: float = 0.0  # half of the mean 95 % interval due to the choice of text or examples; 0: unknown

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def deviation(self) -> float | None:
        """The standard deviation over seeds; None for a single seed."""
        return math.sqrt(variance(self.values)) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Curve:
    """A curve over all seeds of an arm."""

    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Results:
    """The results of a study at one scale, possibly partial."""

    study: Study
    scale: Scale
    reports: tuple[Report, ...]
    remarks: str = ""  # comments written by hand
    conclusion: str = ""  # what a reader may conclude and what not, written by hand
    is_own: bool = False  # a user's own study, in a file

    @cached_property
    def arms(self) -> list[str]:
        """Arms that were run or published, in the study's order."""
        run = {report["arm"] for report in self.reports}
        return [name for name, arm in self.study.arms.items() if name in run or (not arm.scales and arm.published)]

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the study at this scale."""
        return *self.study.notes, *self.study.at(self.scale).notes

    def title(self, arm: str) -> str:
        return title_of(self.study, arm, self.scale)

    def of_arm(self, arm: str) -> list[Report]:
        return [report for report in self.reports if report["arm"] == arm]

    def cell(self, arm: str, metric: str) -> Cell | None:
        """The measured values of an arm; None if not measured."""
        if metric == SPEEDUP:
            return self._speedup(arm)
        found = [r for r in self.of_arm(arm) if metric in r["values"] or metric in r["timed"]]
        if not found:
            return None
        intervals = [report["intervals"][metric] for report in found if metric in report["intervals"]]
        half = fmean((high - low) / 2 for low, high in intervals) if intervals else 0.0
        return Cell(tuple((r["values"] | r["timed"])[metric] for r in found), tuple(r["seed"] for r in found), half)

    def _speedup(self, arm: str) -> Cell | None:
        """The speed relative to the reference arm, per seed; if the reference lacks a seed, relative to its mean."""
        own, reference = (self.cell(name, "tokens_per_second") for name in (arm, self.study.reference))
        if not own or not reference:
            return None
        by_seed = dict(zip(reference.seeds, reference.values, strict=True))
        pairs = zip(own.seeds, own.values, strict=True)
        return Cell(tuple(value / by_seed.get(seed, reference.mean) for seed, value in pairs), own.seeds)

    def published(self, arm: str, metric: str) -> float | None:
        """The published value, or the last point of the published curve."""
        spec = self.study.arms[arm]
        if metric == AVERAGE:
            return self._published_average(spec.published)
        if metric in spec.published:
            return spec.published[metric]
        for name in ("l2", "degrees"):
            if name in spec.series:
                summary = summarize_curve(name, list(spec.series[name].y))
                if metric in summary:
                    return summary[metric]
        return None

    def _published_average(self, published: Mapping[str, float]) -> float | None:
        """The paper's average over the tasks measured at this scale; as printed if these are the paper's own tasks.

        SQuAD counts by the mean of F1 and exact match: if the paper has no exact match, averages are not comparable.
        """
        tasks = self.study.at(self.scale).tasks
        if AVERAGE in published and tasks == TASK_SETS["paper"]:
            return published[AVERAGE]
        measured = {name for report in self.reports for name in report["values"]}
        names = [[n for n in (t.metric, t.metric + EXACT) if n == t.metric or n in measured] for t in tasks]
        if not names or not all(name in published for of_task in names for name in of_task):
            return None
        return fmean(fmean(published[name] for name in of_task) for of_task in names)

    def level(self, metric: str) -> float | None:
        """The baseline, as the mean over all runs."""
        levels = [report["levels"][metric] for report in self.reports if metric in report["levels"]]
        return fmean(levels) if levels else None

    @cached_property
    def columns(self) -> list[str]:
        """The metrics of the table: the study's columns, or else all metrics, as far as they have numbers."""
        known = [name for report in self.reports for name in (*report["values"], *report["timed"])]
        wanted = self.study.columns or tuple(dict.fromkeys(known))
        return [name for name in wanted if any(self._has_number(arm, name) for arm in self.arms)]

    def _has_number(self, arm: str, metric: str) -> bool:
        """Whether an arm has a number in a column: our value or, at paper scale, a published one."""
        spec = self.study.arms[arm]
        is_theirs = self.scale == "paper" and not spec.scales and metric in spec.published
        return is_theirs or self.cell(arm, metric) is not None

    def difference(self, arm: str, metric: str) -> float | None:
        """The difference of an arm from the reference arm."""
        own, reference = self.cell(arm, metric), self.cell(self.study.reference, metric)
        return own.mean - reference.mean if own and reference else None

    def published_difference(self, arm: str, metric: str) -> float | None:
        own, reference = self.published(arm, metric), self.published(self.study.reference, metric)
        return own - reference if own is not None and reference is not None else None

    def half_width(self, metric: str, arm: str) -> float | None:
        """Half of the 95 % interval of an arm's mean; None for one seed.

        It combines the spread over seeds with the uncertainty from the choice of evaluation text. The spread is the
        arm's own if it has three seeds, because in some arms learning depends on luck; otherwise it is pooled.
        """
        cell = self.cell(arm, metric)
        spread = self._own_spread(metric, [cell]) if cell else None
        if cell is None or spread is None:
            return None
        return math.hypot(self._of_seeds(spread, metric, [cell]), cell.text_half)

    def half_width_between(self, metric: str, arm: str, other: str) -> float | None:
        """Half of the 95 % interval of the difference between two arms, on the same text.

        Arms with the same seeds have read the same text in the same order, so their differences are paired by seed.
        Metrics that vary in proportion to their size (speeds, perplexities) use the relative spread within arms.
        """
        cells = {name: cell for name in (arm, other) if (cell := self.cell(name, metric))}
        if len(cells) < 2:
            return None
        if cells[arm].seeds != cells[other].seeds or describe(metric).is_relative:
            unsure = [cell for name, cell in cells.items() if not self._is_one(name, metric)]
            spread = self._own_spread(metric, unsure)
            return self._of_seeds(spread, metric, unsure) if spread and spread.is_seen else None
        seeds = cells[arm].seeds
        alike = [cell.values for name in self.arms if (cell := self.cell(name, metric)) and cell.seeds == seeds]
        spread = pool_paired(alike)
        return spread.half * math.sqrt(2 / len(seeds)) if spread and spread.is_seen else None

    def _is_one(self, arm: str, metric: str) -> bool:
        """Whether this is the speed of the reference relative to itself, which is 1 for every seed."""
        return metric == SPEEDUP and arm == self.study.reference

    def _own_spread(self, metric: str, cells: Sequence[Cell]) -> Spread | None:
        """The spread within these arms if each has three seeds, otherwise within all arms of the study."""
        if metric == SPEEDUP or any(len(cell.values) < _OWN_SEEDS for cell in cells):
            return self._pool(metric)
        return pool([cell.values for cell in cells], is_relative=describe(metric).is_relative)

    def _pool(self, metric: str) -> Spread | None:
        arms = [arm for arm in self.arms if not self._is_one(arm, metric)]
        cells = [cell for arm in arms if (cell := self.cell(arm, metric))]
        return pool([cell.values for cell in cells], is_relative=describe(metric).is_relative)

    def _of_seeds(self, spread: Spread, metric: str, cells: Sequence[Cell]) -> float:
        scales = [cell.mean if describe(metric).is_relative else 1.0 for cell in cells]
        return spread.half * math.hypot(*(s / math.sqrt(len(c.values)) for s, c in zip(scales, cells, strict=True)))

    def is_above_level(self, arm: str, metric: str) -> bool | None:
        """Whether an arm is above the baseline by more than its interval; None: unknown."""
        return self._is_above(arm, metric, self.level(metric))

    def has_learned(self, arm: str, metric: str) -> bool | None:
        """Whether an arm is above the metric's chance level or, if it has none, above the baseline."""
        chance = describe(metric).chance
        return self._is_above(arm, metric, self.level(metric) if chance is None else chance)

    def _is_above(self, arm: str, metric: str, level: float | None) -> bool | None:
        cell = self.cell(arm, metric)
        if cell is None or level is None:
            return None
        half = self.half_width(metric, arm)
        return cell.mean - (cell.text_half if half is None else half) > level

    def curve(self, arm: str, name: str) -> Curve | None:
        """A curve's mean and range over seeds, at the points that all seeds have."""
        return _summarize(list(self._points(arm, name).values()))

    def curve_difference(self, arm: str, name: str) -> Curve | None:
        """The same for an arm's differences from the reference, per seed."""
        own, base = self._points(arm, name), self._points(self.study.reference, name)
        pairs = [(own[seed], base[seed]) for seed in own if seed in base]
        return _summarize([{x: y - other[x] for x, y in points.items() if x in other} for points, other in pairs])

    def _points(self, arm: str, name: str) -> dict[int, dict[float, float]]:
        """A curve's values by point, per seed."""
        reports = [report for report in self.of_arm(arm) if name in report["series"]]
        series = {report["seed"]: report["series"][name] for report in reports}
        return {seed: dict(zip(one["x"], one["y"], strict=True)) for seed, one in series.items()}

    def matrix(self, arm: str, name: str) -> list[list[float]] | None:
        """A matrix's mean over seeds."""
        found = [report["matrices"][name] for report in self.of_arm(arm) if name in report["matrices"]]
        if not found:
            return None
        size = range(len(found[0]))
        return [[fmean(matrix[row][column] for matrix in found) for column in size] for row in size]


def _summarize(curves: list[dict[float, float]]) -> Curve | None:
    """The mean and range of curves, at their common points."""
    places = [x for x in curves[0] if all(x in other for other in curves)] if curves else []
    if not places:
        return None
    columns = [[points[x] for points in curves] for x in places]
    return Curve(places, list(map(fmean, columns)), list(map(min, columns)), list(map(max, columns)))


def read_results(folder: Path) -> list[Results]:
    """Read the results in a folder, one per study and scale; raises if an arm is from another version of its study."""
    reports = _read_reports(folder)
    if not reports:
        raise DataError("no-finished-arm", f"{folder} has no finished arm (ARM-seed-1.json): is it a study's folder?")
    kinds = dict.fromkeys((report["study"], report["scale"]) for report in reports.values())
    results = []
    for name, scale in kinds:
        study = find_study(folder, name)
        mine = {p: r for p, r in reports.items() if (r["study"], r["scale"]) == (name, scale)}
        for path, report in mine.items():
            run = _run_of(study, path, report)
            check_current(path, report, run)
            if changes := list_other_measures(report, run):
                raise ConfigError(
                    "options-changed",
                    f"{path} was measured differently from what {study.name} specifies now ({'; '.join(changes[:4])}): "
                    "run the study again, which measures its finished arms without training them again",
                )
        _check_alike(mine)
        ordered = sorted(mine.values(), key=lambda report: report["seed"])
        remarks, conclusion = (
            (folder / name).read_text("utf-8").strip() if (folder / name).is_file() else ""
            for name in (REMARKS_FILE, CONCLUSION_FILE)
        )
        is_own = (folder / STUDY_FILE).is_file()
        results.append(Results(study, scale, tuple(ordered), remarks, conclusion, is_own=is_own))
    return results


def check_company(runs: Sequence[ArmRun], folder: Path, texts: Texts) -> None:
    """Raise before any arm starts if a folder has finished arms that are not comparable with these."""
    study, scale, words = runs[0].study, runs[0].scale, runs[0].words
    for path, report in _read_reports(folder).items():
        if (report["study"], report["scale"]) != (study.name, scale):
            continue
        if tuple(report["words"]) != words:
            raise ConfigError(
                "options-changed",
                f"{path} was run with other overrides ({_words(report)}; now {' '.join(words) or 'none'}), so the arms "
                "are not comparable: use another folder",
                option="out",
            )
        check_current(path, report, _run_of(study, path, report), texts)


def _read_reports(folder: Path) -> dict[Path, Report]:
    paths = sorted(path for path in folder.glob("*.json") if path.name not in _RESULT_NAMES)
    return {path: read_arm_report(path) for path in paths}


def _run_of(study: Study, path: Path, report: Report) -> ArmRun:
    scale, arm, seed, words = report["scale"], report["arm"], report["seed"], tuple(report["words"])
    if arm not in study.arms_at(scale):
        raise ConfigError(
            "unknown-arm", f"{path}: the study {study.name} no longer has an arm '{arm}'; delete the file"
        )
    return ArmRun(study, scale, arm, seed, build_arm_recipe(study, scale, arm, seed, words), words)


def _check_alike(reports: dict[Path, Report]) -> None:
    """Raise unless all arms have read the same texts and have the same overrides."""
    first_path, first = next(iter(reports.items()))
    seen: dict[str, tuple[Path, str]] = {}  # error message -> the first arm, and its hash
    for path, report in reports.items():
        if report["words"] != first["words"]:
            raise ConfigError(
                "options-changed",
                f"{path} and {first_path} were run with different overrides ({_words(report)}; {_words(first)})",
            )
        texts = {f"trained on other texts (corpus {name})": f["fingerprint"] for name, f in report["corpora"].items()}
        tasks = {f"tuned on other examples (task {name})": content for name, content in report["task_data"].items()}
        for complaint, content in (texts | tasks).items():
            other_path, other = seen.setdefault(complaint, (path, content))
            if other != content:
                raise ConfigError("options-changed", f"{path} and {other_path} were {complaint}")


def _words(report: Report) -> str:
    return " ".join(report["words"]) or "none"


def list_commands(results: Results) -> Sequence[str]:
    """The commands that produced these results. TEXT is the folder of the text, DATA that of the tasks' files.

    Tokenizers and corpora are named by the start of their fingerprints, so that each study finds its own.
    """
    reports, study = results.reports, results.study
    names = sorted({name for report in reports for name in report["corpora"]}, key=lambda n: (n != MAIN_CORPUS, n))
    facts = {name: next(r["corpora"][name] for r in reports if name in r["corpora"]) for name in names}
    corpora = [f"--corpus {'' if n == MAIN_CORPUS else f'{n}='}{_name_corpus(n, facts[n])}" for n in names]
    building = dict.fromkeys(command for name in names for command in _commands_of_corpus(name, facts[name]))
    data = ["--data DATA"] if study.at(results.scale).tasks else []
    name = f"{study.name}.toml" if results.is_own else study.name
    words = ["litebert study run", name, *map(shlex.quote, reports[0]["words"]), f"--scale {results.scale}"]
    return [*building, *(" ".join([*words, part, *corpora, *data]) for part in _list_parts(results))]


def _list_parts(results: Results) -> list[str]:
    """The arms and seeds of each command; arms with the same seeds share a command."""
    arms_of: dict[tuple[int, ...], list[str]] = {}
    for arm in results.study.arms_at(results.scale):
        seeds = tuple(report["seed"] for report in results.of_arm(arm))
        arms_of.setdefault(seeds, []).append(arm)
    parts = []
    for seeds, arms in arms_of.items():
        chosen = "" if len(arms_of) == 1 else f"--arms {','.join(arms)} "
        parts += [f"{chosen}--seeds {','.join(map(str, seeds))}"] if seeds else []
    return parts


def _name_corpus(name: str, facts: Mapping[str, Any]) -> str:
    return f"corpora/{name}-{facts['fingerprint'][:_SHORT]}"


def _commands_of_corpus(name: str, facts: Mapping[str, Any]) -> list[str]:
    """The command that built the corpus with this name, without its path."""
    first = f" --first-sentences {facts['first_sentences']}" if facts["first_sentences"] else ""
    share = f" --valid-share {facts['valid_share']:g}"
    few = [f"TEXT/{file}" for file in facts["file_names"]] if facts["files"] <= _FEW_FILES else ["TEXT"]
    tokenizer = f"tokenizer-{facts['tokenizer'][:_SHORT]}"
    options = f"--tokenizer {tokenizer}{share}{first} --out {_name_corpus(name, facts)}"
    return [
        f"litebert tokenizer train TEXT --vocab-size {facts['vocab_size']} --out {tokenizer}",
        f"litebert corpus build {' '.join(few)} {options}",
    ]
