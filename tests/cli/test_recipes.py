"""`litebert recipes`: what there is to train by."""

from pathlib import Path

import pytest

import litebert
from litebert.cli.main import _run

SHIPPED = sorted(path.stem for path in (Path(litebert.__file__).parent / "recipes").glob("*.toml"))


def test_every_shipped_recipe_is_listed_with_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["recipes"], debug=False) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert list(rows) == SHIPPED
    assert rows["nano"].startswith("the smallest ALBERT that trains")
