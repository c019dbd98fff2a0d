"""Every study that comes with litebert runs from its file to its report, in shapes of a few numbers."""

from pathlib import Path

import pytest

from litebert.study.arm import run_arm
from litebert.study.arms import corpora_of, plan_arms
from litebert.study.place import open_place
from litebert.study.report import Section, build_page, build_section
from litebert.study.results import Results
from litebert.study.spec import list_studies, load_study
from tests.study.miniatures import make_task_data, scale_of, shrink, spec_of

NAMES = [study.name for study in list_studies()]


@pytest.fixture(scope="module")
def task_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_task_data(tmp_path_factory.mktemp("task-data"))


def run_miniature(name: str, tiny_corpus: Path, task_data: Path, folder: Path, *, most_arms: int = 99) -> Section:
    """The finished section of a study, or of its first arms."""
    scale = scale_of(load_study(name))
    study = shrink(load_study(name), scale)
    runs = plan_arms(study, scale)[:most_arms]
    corpora = [f"{corpus}={tiny_corpus}" for corpus in corpora_of(runs)]
    place = open_place(runs, folder, corpora, task_data)
    reports = tuple(run_arm(run, place, say=lambda _: None) for run in runs)
    return build_section(Results(study, scale, reports))


@pytest.mark.parametrize("name", NAMES)
def test_the_first_arms_of_every_study_run_from_its_file_to_its_report(
    name: str, tiny_corpus: Path, task_data: Path, tmp_path: Path
) -> None:
    most_arms = 2 if len(spec_of(load_study(name)).tasks) < 4 else 1  # GLUE's eight tasks take their time
    section = run_miniature(name, tiny_corpus, task_data, tmp_path / name, most_arms=most_arms)
    results = section.results
    assert len(results.reports) == most_arms
    assert results.columns, "nothing was measured"
    if name in ("table-2-speed", "figure-1"):  # one of the figures of dots, one of lines
        page = build_page([section])
        assert all(results.title(report["arm"]) in page for report in results.reports)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_arms_of_every_study_run_and_some_claim_can_be_judged(
    name: str, tiny_corpus: Path, task_data: Path, tmp_path: Path
) -> None:
    section = run_miniature(name, tiny_corpus, task_data, tmp_path / name)
    results = section.results
    assert {report["arm"] for report in results.reports} == set(results.study.arms_at(results.scale))
    assert [verdict for verdict in section.verdicts if verdict.outcome != "missing"]
    page = build_page([section])
    for arm in results.arms:
        assert results.title(arm) in page
