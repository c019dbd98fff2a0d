"""What a run of a study would do: which arms are finished or stale, how far the others are, how long they take."""

from collections.abc import Sequence
from dataclasses import dataclass

from litebert.corpus.shards import MANIFEST, read_manifest
from litebert.pretraining.recipe import build_recipe, list_changes, read_recipe_values
from litebert.study.arms import ArmRun
from litebert.study.estimate import Cost, estimate_arm, estimate_end, load_share
from litebert.study.grid import share_done
from litebert.study.identity import Texts, list_other_measures, list_staleness
from litebert.study.place import Place, is_finished, locate_corpora, read_arm_report, report_file
from litebert.study.run import StudyRequest
from litebert.training.kept_checkpoints import RECIPE_FILE


@dataclass(frozen=True)
class ArmPreview:
    """One arm and seed, before it is run."""

    run: ArmRun
    cost: Cost
    is_finished: bool = False  # it has a report
    changes: tuple[str, ...] = ()  # why its report is stale; empty if its training is current
    other_measures: tuple[str, ...] = ()  # what has to be measured again
    share_done: float | None = None  # of an arm that was begun and can be resumed

    @property
    def is_left(self) -> bool:
        return not self.is_finished or bool(self.changes)


@dataclass(frozen=True)
class Preview:
    """The arms of a run, and the hours until the last one ends."""

    device_name: str
    hardware: str  # the number of devices, and their title
    jobs: int
    arms: tuple[ArmPreview, ...]
    hours: float

    @property
    def left(self) -> list[ArmPreview]:
        return [arm for arm in self.arms if arm.is_left]


def preview_study(
    request: StudyRequest, runs: Sequence[ArmRun], jobs: int, device_name: str, num_devices: int
) -> Preview:
    """Price each arm on a device and look for its report; only corpora that exist here are compared."""
    device, place = load_share(device_name, jobs), Place(request.folder, {}, None)
    here = {name: path for name, path in locate_corpora(runs, request.corpora).items() if (path / MANIFEST).is_file()}
    texts = Texts({name: {"fingerprint": read_manifest(path).fingerprint} for name, path in here.items()}, {})
    arms = []
    for run in runs:
        cost = estimate_arm(run, device, num_devices)
        if is_finished(request.folder, run):
            report = read_arm_report(report_file(request.folder, run))
            changes, others = list_staleness(report, run, texts), list_other_measures(report, run)
            arms.append(ArmPreview(run, cost, True, tuple(changes), tuple(others)))
        else:
            is_begun = cost.train_hours is not None and _can_resume(run, place)
            arms.append(ArmPreview(run, cost, share_done=share_done(run, place, cost) if is_begun else None))
    left = [arm for arm in arms if arm.is_left]
    hours = {arm.run.name: arm.cost.hours * (1 - (arm.share_done or 0.0)) for arm in left}
    hardware = f"{num_devices} x {device.title}"
    return Preview(device_name, hardware, jobs, tuple(arms), estimate_end([arm.run for arm in left], hours, jobs))


def _can_resume(run: ArmRun, place: Place) -> bool:
    """Whether an arm was begun with today's recipe; corpora and checkpoints may have moved."""
    file = place.run_folder(run.name) / RECIPE_FILE
    if not file.is_file():
        return False
    changes = list_changes(build_recipe(read_recipe_values(file)), run.recipe)
    return all(change.startswith(("data.corpora: ", "init.from: ")) for change in changes)
