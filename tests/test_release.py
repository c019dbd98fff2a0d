"""Versions agree, and the Dockerfile, the workflow and the Makefile name what exists."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")


def test_one_version_everywhere() -> None:
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    newest = re.search(r"^## (\d.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)  # below Unreleased
    assert cited is not None
    assert newest is not None
    assert cited[1] == PROJECT["version"]
    assert newest[1] == PROJECT["version"]


def test_the_readmes_name_only_extras_that_exist() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*.py")]:
        for named in re.findall(r'"?\.\[([\w,]+)\]', page.read_text("utf-8")):
            assert set(named.split(",")) <= set(PROJECT["optional-dependencies"]), f"{page.name}: {named}"


def test_the_workflow_runs_make_targets_on_every_supported_python() -> None:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    called = {target for command in commands for target in re.findall(r"\bmake ([\w-]+)", command)}
    assert called >= {"check", "test", "test-slow", "docs", "package", "demo", "coverage"}
    assert called <= TARGETS
    tested = jobs["test"]["strategy"]["matrix"]
    supported = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", name)]
    assert tested["python"] == supported
    assert {system.partition("-")[0] for system in tested["os"]} == {"ubuntu", "macos"}


def test_the_phony_targets_are_those_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) <= TARGETS | {"broken"}


def test_the_image_runs_without_privileges_and_is_asked_whether_it_is_well() -> None:
    build, run = re.split(r"^FROM .*$", DOCKERFILE, flags=re.MULTILINE)[1:]
    assert re.search(r"^USER \d+:\d+$", run, re.MULTILINE)
    assert "/health" in re.findall(r"^HEALTHCHECK .*$", run, re.MULTILINE)[0]
    assert 'ENTRYPOINT ["litebert", "serve"]' in run
    assert "--constraint constraints.txt" in build
    assert set(re.findall(r"\.\[([\w,]+)\]", build)[0].split(",")) <= set(PROJECT["optional-dependencies"])
    tags = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert tags
    assert all(re.search(r":\d", tag) for tag in tags), "an image without a version changes under us"


def test_the_image_is_built_from_files_that_its_context_has() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE):
        *sources, _ = line.split()
        for source in sources:
            assert (ROOT / source).exists(), source
            assert f"!{Path(source).name}" in ignored, source
