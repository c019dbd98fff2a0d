"""Every study that comes with litebert runs from its file to its report, in shapes of a few numbers."""

from pathlib import Path

import pytest

from litebert.study.arm import run_arm
from litebert.study.arms import corpora_of, plan_arms
from litebert.study.place import open_place
from litebert.study.report import build_page, build_section
from litebert.study.results import Results
from litebert.study.spec import list_studies, load_study
from tests.study.miniatures import make_task_data, scale_of, shrink

NAMES = [study.name for study in list_studies()]


@pytest.fixture(scope="module")
def task_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_task_data(tmp_path_factory.mktemp("task-data"))


@pytest.mark.parametrize("name", NAMES)
def test_every_study_runs_from_its_file_to_its_report(
    name: str, tiny_corpus: Path, task_data: Path, tmp_path: Path
) -> None:
    scale = scale_of(load_study(name))
    study = shrink(load_study(name), scale)
    runs = plan_arms(study, scale)
    corpora = [f"{corpus}={tiny_corpus}" for corpus in corpora_of(runs)]
    place = open_place(runs, tmp_path / name, corpora, task_data)
    reports = tuple(run_arm(run, place, say=lambda _: None) for run in runs)
    section = build_section(Results(study, scale, reports))
    assert section.results.columns, "nothing was measured"
    assert {report["arm"] for report in reports} == set(study.arms_at(scale))
    told = [verdict for verdict in section.verdicts if verdict.outcome != "missing"]
    assert told, "no claim could be judged by what was measured"
    page = build_page([section])
    for arm in study.arms_at(scale):
        assert section.results.title(arm).replace("&", "&amp;") in page
