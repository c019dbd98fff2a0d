"""constraints.txt names one version of all that `make` installs, so that no release elsewhere changes our tests."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
OURS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
INSTALLED_BY_MAKE = ("plots", "chinese", "parquet", "tensorboard", "export", "openvino", "serve", "test", "dev", "docs")


def test_every_dependency_has_one_pin_that_it_allows() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    pins = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    assert len(pins) == len(lines)
    extras = [text for extra in INSTALLED_BY_MAKE for text in OURS["optional-dependencies"][extra]]
    for needed in map(Requirement, [*OURS["dependencies"], *extras]):
        if needed.name != OURS["name"]:
            assert needed.specifier.contains(pins[canonicalize_name(needed.name)]), needed
