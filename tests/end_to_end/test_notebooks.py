"""The notebooks run from top to bottom in a fresh kernel, and what is stored in them is what they print."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from shown_code import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
by_notebook = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)


def read_cells(notebook: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(notebook.read_text("utf-8"))["cells"]
    return cells


@by_notebook
def test_a_notebook_was_executed_in_order_and_shows_no_error(notebook: Path) -> None:
    code = [cell for cell in read_cells(notebook) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert not [output for cell in code for output in cell["outputs"] if output["output_type"] == "error"]
    assert not re.search(r"/(home|root|tmp|Users|work)/", notebook.read_text("utf-8")), (
        "a path of the machine it ran on"
    )


@by_notebook
def test_its_links_lead_to_files(notebook: Path) -> None:
    text = "\n".join("".join(cell["source"]) for cell in read_cells(notebook) if cell["cell_type"] == "markdown")
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert links
    assert [link for link in links if not (notebook.parent / link.partition("#")[0]).exists()] == []


@pytest.mark.slow
@by_notebook
def test_a_notebook_runs_from_top_to_bottom(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.syspath_prepend(notebook.parent)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    execute = __import__("execute").execute
    sys.modules.pop("execute")
    cells = execute(notebook, notebook.parent).cells
    stored = read_cells(notebook)
    assert [cell.cell_type for cell in cells] == [cell["cell_type"] for cell in stored]
    assert all(bool(cell.get("outputs")) == bool(old.get("outputs")) for cell, old in zip(cells, stored, strict=True))
