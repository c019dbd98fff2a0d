"""The documentation agrees with the code: commands and options exist, Python imports resolve, links lead somewhere."""

import ast
import re
import shlex
import tomllib
import unicodedata
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from litebert.cli.main import app

ROOT = Path(__file__).parents[2]
ON_SITE = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/zh").glob("*.md")])
PAGES = [*sorted(ROOT.glob("*.md")), *ON_SITE, ROOT / "models/cpu-small-en/README.md"]
# By docs/hooks.py, when the site is built
GENERATED = ("cli.md", "error-codes.md", *(f"{path.stem}.md" for path in (ROOT / "notebooks").glob("*.ipynb")))
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


@by_page
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = BLOCK.sub("", page.read_text("utf-8"))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        target, _, anchor = link.partition("#")
        if "://" in link or target in GENERATED:
            continue
        there = (page.parent / target) if target else page
        assert there.exists(), link
        if anchor:
            assert anchor in {_slug(heading) for heading in re.findall(r"^#+ (.*)$", there.read_text("utf-8"), re.M)}, (
                link
            )


@by_page
def test_every_command_and_option_exists(page: Path) -> None:
    for command in _iter_commands(page):
        words = shlex.split(command, comments=True)
        known: Any = get_command(app)
        path = [words.pop(0)]
        while words and getattr(known, "commands", None) and not words[0].startswith("-"):
            assert words[0] in known.commands, command
            path.append(words[0])
            known = known.commands[words.pop(0)]
        options = {name for one in known.params for name in [*one.opts, *one.secondary_opts]} | {"--help"}
        for word in words:
            if word.startswith("--"):
                assert word.partition("=")[0] in options, f"{command}: {word}"


@by_page
def test_every_block_of_python_and_toml_can_be_read(page: Path) -> None:
    for language, block in BLOCK.findall(page.read_text("utf-8")):
        if language == "toml":
            tomllib.loads(block)
        if language == "python":
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("litebert"):
                    module = import_module(str(node.module))
                    assert all(hasattr(module, name.name) for name in node.names), ast.unparse(node)
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "litebert":
                    assert hasattr(import_module("litebert"), node.attr), ast.unparse(node)


@by_page
def test_every_file_that_is_named_exists(page: Path) -> None:
    for path in re.findall(
        r"`((?:litebert|tests|benchmarks|examples|notebooks|models)/[\w./*-]+)`", page.read_text("utf-8")
    ):
        assert list(ROOT.glob(path.removesuffix("/"))), path


@by_page
def test_lines_have_at_most_120_columns(page: Path) -> None:
    text = BLOCK.sub(lambda found: "\n" * found[0].count("\n"), page.read_text("utf-8"))
    lines = [line for line in text.splitlines() if not line.startswith(("|", "!["))]  # tables and images
    assert [line for line in lines if _count_columns(line) > 120] == []


def _count_columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)


@by_page
def test_the_code_that_the_site_shows_exists(page: Path) -> None:
    for path, name in re.findall(r"<!-- code: (\S+) (\S+) -->", page.read_text("utf-8")):
        found: Any = ast.parse((ROOT / path).read_text("utf-8"))
        for part in name.split("."):
            (found,) = [node for node in found.body if getattr(node, "name", "") == part]


def test_the_results_in_the_readmes_are_those_that_were_measured() -> None:
    """If not, run docs/readme_results.py."""
    spec = spec_from_file_location("readme_results", ROOT / "docs/readme_results.py")
    assert spec is not None
    assert spec.loader is not None
    written = module_from_spec(spec)
    spec.loader.exec_module(written)
    numbers = written.collect()
    for name, template in written.PAGES.items():
        page = (ROOT / name).read_text("utf-8")
        assert written.fill(page, template.format(**numbers)) == page


def test_every_page_is_on_the_site() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8")))
    assert listed == {page.relative_to(ROOT / "docs").as_posix() for page in ON_SITE} | set(GENERATED)


def _iter_commands(page: Path) -> list[str]:
    """`litebert ...` wherever a page shows it to be typed; what stands behind a pipe or a `...` is left out."""
    found = []
    for language, block in BLOCK.findall(page.read_text("utf-8")):
        if language in ("", "sh", "shell", "bash"):
            for line in block.replace("\\\n", " ").splitlines():
                found += [part.strip() for part in re.split(r" \| ", line) if part.strip().startswith("litebert ")]
    return found


def _slug(heading: str) -> str:
    """As GitHub and mkdocs make an anchor of a heading."""
    words = re.sub(r"[^\w\s-]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).strip()
    return re.sub(r"[\s]+", "-", words)
