"""`litebert study`: reproduce the papers' tables and figures, or run your own studies."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from litebert import api
from litebert.cli import completion
from litebert.cli.printing import print_json
from litebert.cli.words import AsJson, Hardware, NumDevices

if TYPE_CHECKING:
    from litebert.study.arms import ArmRun
    from litebert.study.estimate import Cost
    from litebert.study.run import StudyRequest
    from litebert.study.spec import Study

Scale = Literal["laptop", "paper"]
STUDIES = Path("runs") / "studies"
_UNCOUNTED = "not counted"
_FIX_STALE = (
    "the study, its overrides or its corpora have changed since; run it as before, choose another --out, or delete "
    "ARM.json, runs/ARM and runs/ARM-* to run them again"
)
StudyName = Annotated[
    str,
    typer.Argument(
        metavar="STUDY",
        help="Study name, such as table-5, or a .toml file.",
        autocompletion=completion.list_studies,
    ),
]
_SCALE = typer.Option("--scale", help="Scale: laptop (two cores) or paper (the full configuration).")


def show_list(as_json: AsJson = False) -> None:
    """List the studies that come with litebert.

    Examples:
      litebert study list
    """
    from litebert.study.spec import list_studies

    studies = list_studies()
    if as_json:
        print_json(
            [
                {"name": study.name, "source": study.source, "title": study.title, "scales": list(study.scales)}
                for study in studies
            ]
        )
        return
    width = max(len(study.name) for study in studies)
    source_width = max(len(study.source) for study in studies)
    for study in studies:
        scales = "" if "laptop" in study.scales else " (paper scale only)"
        print(f"{study.name:{width}}  {study.source:{source_width}}  {study.title}{scales}")


def show_study(name: StudyName, scale: Annotated[Scale | None, _SCALE] = None, as_json: AsJson = False) -> None:
    """Show a study: its arms, metrics, claims and cost.

    Examples:
      litebert study show table-5
      litebert study show table-5 --scale laptop
    """
    from litebert.study.spec import load_study

    study = load_study(name)
    scales = [scale] if scale else list(study.scales)
    if as_json:
        print_json(_describe_study(study, scales))
        return
    print(f"{study.title} ({study.source})\n{study.about}")
    if study.claims:
        print("\nClaims")
    for claim in study.claims:
        print(f"  {claim.text}")
    for one in scales:
        _print_scale(study, one)
    for note in study.notes:
        print(f"\n{note}")


def _describe_study(study: "Study", scales: list[Scale]) -> dict[str, Any]:
    from litebert.core.options import flatten
    from litebert.study.arms import title_of

    at_scales = {}
    for scale in scales:
        spec = study.at(scale)
        arms = {
            name: {"title": title_of(study, name, scale), "change": flatten(arm.change) | flatten(arm.at(scale).change)}
            for name, arm in study.arms_at(scale).items()
        }
        at_scales[scale] = {
            "recipe": spec.recipe,
            "seeds": list(spec.seeds),
            "measures": list(spec.measures),
            "tasks": [task.metric for task in spec.tasks],
            "change": flatten(spec.change),
            "corpora": spec.corpora,
            "cost": spec.cost,
            "arms": arms,
        }
    return {
        "name": study.name,
        "title": study.title,
        "source": study.source,
        "about": study.about,
        "claims": [claim.text for claim in study.claims],
        "scales": at_scales,
    }


def _print_scale(study: "Study", scale: Scale) -> None:
    from litebert.core.options import flatten
    from litebert.study.arms import title_of
    from litebert.study.metrics import describe

    spec = study.at(scale)
    print(f"\nAt {scale} scale: the recipe {spec.recipe}, seeds {', '.join(map(str, spec.seeds))}")
    print(
        f"  measured: {', '.join([*spec.measures, *(f'{describe(t.metric).title} (fine-tuned)' for t in spec.tasks)])}"
    )
    for key, value in flatten(spec.change).items():
        print(f"  {key} = {value}")
    for corpus, description in spec.corpora.items():
        print(f"  corpus '{corpus}': {description}")
    if spec.cost:
        print(f"  cost: {spec.cost}")
    for name, arm in study.arms_at(scale).items():
        changes = flatten({**arm.change}) | flatten(arm.at(scale).change)
        words = " ".join(f"{key}={value}" for key, value in changes.items())
        at = f", step {arm.at(scale).starts_at:,}" if arm.at(scale).starts_at else ""
        start = f" (starts from {arm.starts_from}{at})" if arm.starts_from else ""
        print(f"  {name}: {title_of(study, name, scale)}{start}{f': {words}' if words else ''}")
    for note in spec.notes:
        print(f"  {note}")


def run_study(
    name: StudyName,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Recipe keys to override in every arm, such as train.steps=500."),
    ] = None,
    scale: Annotated[Scale, _SCALE] = "laptop",
    arms: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="Run only these arms: names or patterns, such as 'e768-*,e128-all'. Default: all."
        ),
    ] = "",
    seeds: Annotated[
        str, typer.Option(metavar="LIST", help="Run these seeds, such as 1,2,3. Default: the study's.")
    ] = "",
    corpus: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FOLDER",
            help="Corpus folder; NAME=FOLDER for each if the study has several. Default: corpora/NAME.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Task data: the folder of glue/, squad/, ... Default: $LITEBERT_DATA."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Study folder; an interrupted study is resumed. Default: runs/studies/STUDY-SCALE.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of arms to run in parallel, sharing the cores.")] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would run and its estimated hours; run nothing.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="Print one command per arm, for a scheduler.")] = False,
    hardware: Hardware = "this-cpu",
    devices: NumDevices = 1,
) -> None:
    """Run a study. To resume an interrupted study, repeat the command; finished arms are not run again.

    --hardware and --devices are for --dry-run.

    Examples:
      litebert study run table-1 --scale paper
      litebert study run table-5 --corpus corpora/en --dry-run
      litebert study run table-5 --corpus corpora/en --arms sop --seeds 1 train.steps=500
    """
    from litebert.core.runtime import read_ranks
    from litebert.study.arms import plan_arms
    from litebert.study.run import StudyRequest
    from litebert.study.spec import load_study

    study = load_study(name)
    folder = out or STUDIES / f"{study.name}-{scale}"
    if not (list_ or dry_run):
        result = api.run_study(
            name,
            overrides or [],
            scale=scale,
            arms=_split(arms),
            seeds=_whole_numbers(seeds),
            corpora=corpus or (),
            data=data,
            out=folder,
            jobs=jobs,
        )
        elsewhere = result.report.get("elsewhere")
        if elsewhere:
            print(f"other processes are running {', '.join(elsewhere)}; when they have finished:")
        if read_ranks().is_main:
            print(f"{'' if elsewhere else 'done: '}litebert study report {folder}")
        return
    words = tuple(overrides or [])
    runs = plan_arms(study, scale, words=words, arms=_split(arms), seeds=_whole_numbers(seeds))
    request = StudyRequest(name, folder, tuple(corpus or ()), data)
    if list_:
        _print_commands(request, runs)
    else:
        _print_costs(request, runs, jobs, (hardware, devices))


def _split(words: str) -> list[str]:
    return [word for word in words.split(",") if word]


def _whole_numbers(words: str) -> list[int]:
    from litebert.core.errors import ConfigError
    from litebert.core.ranges import read_whole_number

    numbers = [read_whole_number(word) for word in _split(words)]
    if None in numbers:
        raise ConfigError("bad-number", f"--seeds {words}: expected whole numbers separated by commas, such as 1,2,3")
    return [number for number in numbers if number is not None]


def _command(request: "StudyRequest", run: "ArmRun") -> list[str]:
    words = ["litebert", "study", "run", request.study, *run.words, "--scale", run.scale, "--arms", run.arm]
    words += ["--seeds", str(run.seed), "--out", str(request.folder)]
    for corpus in request.corpora:
        words += ["--corpus", corpus]
    return [*words, *(["--data", str(request.data)] if request.data else [])]


def _print_commands(request: "StudyRequest", runs: "list[ArmRun]") -> None:
    """Print one command per arm; an arm that starts from another comes after it, with a comment."""
    for run in runs:
        words = shlex.join(_command(request, run))
        print(f"{words}  # after {run.starts_from}" if run.starts_from else words)


def _print_costs(request: "StudyRequest", runs: "list[ArmRun]", jobs: int, on: tuple[str, int]) -> None:
    from litebert.study.arms import title_of
    from litebert.study.estimate import estimate_arm, estimate_end, load_share

    device_name, num_devices = on
    found = _find_reports(request, runs)
    device = load_share(device_name, jobs)
    width = max(len(run.name) for run in runs)
    costs = {run.name: estimate_arm(run, device, num_devices) for run in runs}
    shares = _shares_done(request, [run for run in runs if run.name not in found], costs)
    at_a_time = "one after another" if jobs == 1 else f"{jobs} at a time"
    print(f"{len(runs)} arms and seeds on {num_devices} x {device.title}, {at_a_time}:")
    for run in runs:
        done = "trained" if costs[run.name].num_uncounted else "done"
        share = f"{shares[run.name]:.0%} {done}  " if run.name in shares else ""
        words = f"{found[run.name].words if run.name in found else share}{title_of(run.study, run.arm, run.scale)}"
        print(f"{run.name:{width}}  {_hours(run, costs[run.name])}  {words}")
    left = [run for run in runs if run.name not in found or found[run.name].changes]
    hours_left = {run.name: costs[run.name].hours * (1 - shares.get(run.name, 0.0)) for run in left}
    hours = estimate_end(left, hours_left, jobs)
    is_counted = runs[0].at_scale.is_trained
    total = f"{hours:9,.2f} h" if is_counted else _UNCOUNTED
    print(f"{'total':{width}}  {total}  for {len(left)} unfinished")
    num_stale = sum(run.name in found for run in left)
    if num_stale:
        print(f"{num_stale} of them stale: {_FIX_STALE}")
    num_measured_otherwise = sum(bool(one.other_measures and not one.changes) for one in found.values())
    if num_measured_otherwise:
        print(f"not counted: measuring {num_measured_otherwise} arms and seeds again")
    _print_uncounted(left, costs)
    if device_name == "this-cpu" and is_counted:
        print("speed is measured now: close other programs for an accurate estimate")
    if runs[0].at_scale.cost:
        print(f"cost stated by the study: {runs[0].at_scale.cost}")


def _shares_done(request: "StudyRequest", runs: "list[ArmRun]", costs: "dict[str, Cost]") -> dict[str, float]:
    """The finished share of each started arm without a report whose recipe is still current."""
    from litebert.pretraining.recipe import build_recipe, list_changes, read_recipe_values
    from litebert.study.grid import share_done
    from litebert.study.place import Place
    from litebert.training.kept_checkpoints import RECIPE_FILE

    place, shares = Place(request.folder, {}, None), {}
    for run in runs:
        file = place.run_folder(run.name) / RECIPE_FILE
        if not file.is_file() or costs[run.name].train_hours is None:
            continue
        changes = list_changes(build_recipe(read_recipe_values(file)), run.recipe)
        if all(
            change.startswith(("data.corpora: ", "init.from: ")) for change in changes
        ):  # corpora and checkpoints may have moved
            shares[run.name] = share_done(run, place, costs[run.name])
    return shares


@dataclass(frozen=True)
class _Found:
    """Whether the report of an arm is current."""

    changes: list[str]  # why it is stale; empty if its training is current
    other_measures: list[str]  # what has to be measured again

    @property
    def words(self) -> str:
        if self.changes:
            return f"stale ({'; '.join(self.changes[:4])})  "
        if self.other_measures:
            return f"measure again ({'; '.join(self.other_measures[:4])})  "
        return "finished  "


def _find_reports(request: "StudyRequest", runs: "list[ArmRun]") -> dict[str, _Found]:
    """Find the arms that have a report, and what is stale about each.

    Only corpora that exist here are compared: a dry run needs none.
    """
    from litebert.corpus.shards import MANIFEST, read_manifest
    from litebert.study.identity import Texts, list_other_measures, list_staleness
    from litebert.study.place import is_finished, locate_corpora, read_arm_report, report_file

    here = {name: path for name, path in locate_corpora(runs, request.corpora).items() if (path / MANIFEST).is_file()}
    texts = Texts({name: {"fingerprint": read_manifest(path).fingerprint} for name, path in here.items()}, {})
    found = {}
    for run in runs:
        if is_finished(request.folder, run):
            report = read_arm_report(report_file(request.folder, run))
            found[run.name] = _Found(list_staleness(report, run, texts), list_other_measures(report, run))
    return found


def _hours(run: "ArmRun", cost: "Cost") -> str:
    if not run.at_scale.is_trained:
        return _UNCOUNTED
    return "does not fit" if cost.train_hours is None else f"{cost.hours:9,.2f} h"


def _print_uncounted(left: "list[ArmRun]", costs: "dict[str, Cost]") -> None:
    """Print what the hours do not include."""
    not_fitting = sum(costs[run.name].train_hours is None for run in left)
    if not_fitting:
        print(f"not counted: the training of {not_fitting} arms and seeds that do not fit on the device")
    num_tasks = max((cost.num_uncounted for cost in costs.values()), default=0)
    if num_tasks:
        print(f"not counted: {num_tasks} tasks of each arm, whose time depends on their data")
    if left and not left[0].at_scale.is_trained:
        print("not counted: evaluation; this study trains nothing")


def report_studies(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FOLDERS", help="Study folders, or folders of their reports. Default: all in runs/studies."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Folder to write; a report is replaced. Default: FOLDER/report, or runs/studies/report for several.",
        ),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Markdown file to write. Default: results.md in the report folder."),
    ] = None,
) -> None:
    """Write a report of studies with finished arms.

    It consists of an HTML page, Markdown, CSV, JSON and figures.

    Examples:
      litebert study report runs/studies/table-1-paper
      litebert study report --out report
    """
    from litebert.study.place import list_places
    from litebert.study.report import PAGE, write_report
    from litebert.study.tables import count_outcomes

    folders = folders or list_places(STUDIES)
    target = out or (folders[0] / "report" if len(folders) == 1 else STUDIES / "report")
    for section in write_report(folders, target, markdown):
        print(f"{section.results.study.title}: {count_outcomes(section.verdicts)}")
        for verdict in section.verdicts:
            numbers = "; ".join(words for words in (verdict.ours, verdict.paper and f"paper {verdict.paper}") if words)
            print(f"  {verdict.words}: {verdict.claim.text}{f' ({numbers})' if numbers else ''}")
    print(f"report: {target / PAGE}")
