"""`litebert study`: reproduce the papers' tables and figures, or run your own studies."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from litebert import api
from litebert.cli import completion
from litebert.cli.printing import print_json
from litebert.cli.words import AsJson, Hardware, NumDevices

if TYPE_CHECKING:
    from litebert.study.preview import ArmPreview, Preview
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
    from litebert.study.arms import describe_study
    from litebert.study.spec import load_study

    study = load_study(name)
    scales = [scale] if scale else list(study.scales)
    if as_json:
        print_json(describe_study(study, scales))
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
    from litebert.study.preview import preview_study
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
        for run in runs:  # an arm that starts from another comes after it
            after = f"  # after {run.starts_from}" if run.starts_from else ""
            print(f"{shlex.join(request.command_line(run))}{after}")
    else:
        _print_preview(preview_study(request, runs, jobs, hardware, devices))


def _split(words: str) -> list[str]:
    return [word for word in words.split(",") if word]


def _whole_numbers(words: str) -> list[int]:
    from litebert.core.errors import ConfigError
    from litebert.core.ranges import read_whole_number

    numbers = [read_whole_number(word) for word in _split(words)]
    if None in numbers:
        raise ConfigError("bad-number", f"--seeds {words}: expected whole numbers separated by commas, such as 1,2,3")
    return [number for number in numbers if number is not None]


def _print_preview(preview: "Preview") -> None:
    from litebert.plan.devices import THIS_CPU
    from litebert.study.arms import title_of

    arms, left = preview.arms, preview.left
    width = max(len(arm.run.name) for arm in arms)
    at_a_time = "one after another" if preview.jobs == 1 else f"{preview.jobs} at a time"
    print(f"{len(arms)} arms and seeds on {preview.hardware}, {at_a_time}:")
    for arm in arms:
        title = title_of(arm.run.study, arm.run.arm, arm.run.scale)
        print(f"{arm.run.name:{width}}  {_describe_hours(arm)}  {_describe_state(arm)}{title}")
    scale = arms[0].run.at_scale
    total = f"{preview.hours:9,.2f} h" if scale.is_trained else _UNCOUNTED
    print(f"{'total':{width}}  {total}  for {len(left)} unfinished")
    if num_stale := sum(arm.is_finished for arm in left):
        print(f"{num_stale} of them stale: {_FIX_STALE}")
    if num_measured_again := sum(bool(arm.other_measures and not arm.changes) for arm in arms):
        print(f"not counted: measuring {num_measured_again} arms and seeds again")
    if not_fitting := sum(arm.cost.train_hours is None for arm in left):
        print(f"not counted: the training of {not_fitting} arms and seeds that do not fit on the device")
    if num_tasks := max(arm.cost.num_uncounted for arm in arms):
        print(f"not counted: {num_tasks} tasks of each arm, whose time depends on their data")
    if left and not scale.is_trained:
        print("not counted: evaluation; this study trains nothing")
    if preview.device_name == THIS_CPU and scale.is_trained:
        print("speed is measured now: close other programs for an accurate estimate")
    if scale.cost:
        print(f"cost stated by the study: {scale.cost}")


def _describe_hours(arm: "ArmPreview") -> str:
    if not arm.run.at_scale.is_trained:
        return _UNCOUNTED
    return "does not fit" if arm.cost.train_hours is None else f"{arm.cost.hours:9,.2f} h"


def _describe_state(arm: "ArmPreview") -> str:
    if arm.changes:
        return f"stale ({'; '.join(arm.changes[:4])})  "
    if arm.other_measures:
        return f"measure again ({'; '.join(arm.other_measures[:4])})  "
    if arm.is_finished:
        return "finished  "
    if arm.share_done is None:
        return ""
    return f"{arm.share_done:.0%} {'trained' if arm.cost.num_uncounted else 'done'}  "


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
