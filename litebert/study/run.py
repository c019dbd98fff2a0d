"""Runs a study's arms: one in this process, several in a process each (`python -m litebert.study.run REQUEST`)."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from litebert.core.errors import ConfigError, LitebertError, describe_refusal
from litebert.core.runtime import read_ranks
from litebert.study.arm import find_report, help_arm, run_arm
from litebert.study.arms import ArmRun, plan_arms
from litebert.study.estimate import estimate_arm, load_share
from litebert.study.grid import Grid, run_grid
from litebert.study.identity import describe_texts
from litebert.study.place import is_finished, keep_study_file, open_place, read_arm_report, report_file
from litebert.study.results import check_company
from litebert.study.spec import load_study
from litebert.study.view import GridView
from litebert.training.launcher import exit_with_launcher


@dataclass(frozen=True)
class StudyRequest:
    """A study to run, with its input and output paths."""

    study: str
    folder: Path
    corpora: tuple[str, ...] = ()
    data: Path | None = None

    def command(self, run: ArmRun) -> list[str]:
        """The module and the argument with which Python runs one arm."""
        facts = {
            "study": self.study,
            "folder": str(self.folder),
            "corpora": self.corpora,
            "data": str(self.data) if self.data else None,
            "scale": run.scale,
            "arm": run.arm,
            "seed": run.seed,
            "words": run.words,
        }
        return ["litebert.study.run", json.dumps(facts)]

    def command_line(self, run: ArmRun) -> list[str]:
        """The command that runs one arm elsewhere, for a scheduler."""
        words = ["litebert", "study", "run", self.study, *run.words, "--scale", run.scale, "--arms", run.arm]
        words += ["--seeds", str(run.seed), "--out", str(self.folder)]
        for corpus in self.corpora:
            words += ["--corpus", corpus]
        return [*words, *(["--data", str(self.data)] if self.data else [])]


class Ended(NamedTuple):
    """The reports of finished arms, and the arms that other processes are still running."""

    reports: dict[str, dict[str, Any]]
    elsewhere: list[str]


def run_arms(request: StudyRequest, runs: Sequence[ArmRun], jobs: int = 1) -> Ended:
    """Run the unfinished arms, `jobs` at a time; raises on a report from another version of the study."""
    place, ranks = open_place(runs, request.folder, request.corpora, request.data), read_ranks()
    if ranks.world_size > 1 and len(runs) > 1:
        raise ConfigError("one-arm", f"torchrun runs a single arm, but {len(runs)} are selected: run them one by one")
    if not ranks.is_main:
        help_arm(runs[0], place)
        return Ended({}, [])
    texts = describe_texts(runs, place)
    check_company(runs, request.folder, texts)

    def is_done(run: ArmRun) -> bool:
        return find_report(run, place, texts) is not None

    left = [run for run in runs if not is_done(run)]
    keep_study_file(request.study, runs[0].study, request.folder)
    print(f"{len(runs) - len(left)} of {len(runs)} arms are finished" if len(left) < len(runs) else f"{len(runs)} arms")
    elsewhere: list[str] = []
    if len(runs) == 1:
        run_arm(runs[0], place)
    elif left:
        device = load_share("this-cpu", jobs)
        costs = {run.name: estimate_arm(run, device) for run in runs}
        grid = Grid(place, costs, request.command, is_done, list(runs))
        elsewhere = run_grid(grid, jobs=jobs, view=GridView(runs[0].study.name))
    finished = [run for run in runs if is_finished(request.folder, run)]
    return Ended({run.name: read_arm_report(report_file(request.folder, run)) for run in finished}, elsewhere)


def main() -> None:
    """Run the arm of a JSON request; one of our errors becomes one line on stderr and its exit code."""
    exit_with_launcher()
    facts = json.loads(sys.argv[1])
    data = Path(facts["data"]) if facts["data"] else None
    request = StudyRequest(facts["study"], Path(facts["folder"]), tuple(facts["corpora"]), data)
    try:
        chosen = {"arms": [facts["arm"]], "seeds": [facts["seed"]], "words": facts["words"]}
        run_arms(request, plan_arms(load_study(request.study), facts["scale"], **chosen))
    except (LitebertError, OSError) as error:
        refusal = describe_refusal(error)
        if refusal is None:
            raise
        print(refusal.line, file=sys.stderr)
        sys.exit(refusal.exit_code)


if __name__ == "__main__":
    main()
