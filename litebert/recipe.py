"""Recipe: the sections of one run, read strictly from TOML, with overrides from the command line."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, suggest
from litebert.core.options import build_options, merge, parse_assignments
from litebert.data.epoch import BatchOptions, DataOptions, StreamOptions
from litebert.data.google import expand_compat
from litebert.data.masking import MaskingOptions
from litebert.data.segments import SegmentOptions
from litebert.model.config import ModelConfig
from litebert.model.presets import preset

_SHIPPED = files("litebert") / "recipes"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All that decides a run."""

    model: ModelConfig
    data: DataOptions
    batch: BatchOptions
    segments: SegmentOptions = field(default_factory=SegmentOptions)
    masking: MaskingOptions = field(default_factory=MaskingOptions)
    seed: int = 1

    def __post_init__(self) -> None:
        if self.segments.max_length > self.model.max_positions:
            raise ConfigError(
                f"segments.max_length = {self.segments.max_length} does not fit model.max_positions = "
                f"{self.model.max_positions}"
            )
        if self.segments.is_pair and self.model.num_segments < 2:
            raise ConfigError(
                f"segments.format = '{self.segments.format}' has two segments and model.num_segments is "
                f"{self.model.num_segments}; use full-sentences or doc-sentences"
            )
        self.stream  # noqa: B018 (checks batch against segments)

    @property
    def stream(self) -> StreamOptions:
        return StreamOptions(segments=self.segments, masking=self.masking, batch=self.batch, seed=self.seed)


def load_recipe(source: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """A recipe from a file, or by the name of one that comes with litebert; overrides such as `batch.sequences=8`."""
    return build_recipe(merge(_read_toml(source), parse_assignments(overrides)))


def build_recipe(values: Mapping[str, Any]) -> Recipe:
    """A recipe from nested values as TOML gives them."""
    expanded = expand_compat(values)
    model = expanded.get("model")
    if isinstance(model, Mapping):
        expanded["model"] = _expand_preset(model)
    data = expanded.get("data")
    if isinstance(data, Mapping) and isinstance(data.get("corpora"), str):
        expanded["data"] = {**data, "corpora": [data["corpora"]]}  # data.corpora=corpus/ on the command line
    return build_options(Recipe, expanded)


def _expand_preset(model: Mapping[str, Any]) -> dict[str, Any]:
    if "preset" not in model:
        return dict(model)
    changes = {name: value for name, value in model.items() if name != "preset"}
    return {**asdict(preset(str(model["preset"]))), **changes}


def _read_toml(source: str | Path) -> dict[str, Any]:
    path = Path(source)
    if path.suffix == ".toml" or path.is_file():
        if not path.is_file():
            raise ConfigError(f"there is no recipe file {path}")
        text = path.read_text("utf-8")
    else:
        shipped = {Path(item.name).stem: item for item in _SHIPPED.iterdir() if item.name.endswith(".toml")}
        if str(source) not in shipped:
            raise ConfigError(
                f"unknown recipe '{source}'; {suggest(str(source), shipped)}; or the path of a .toml file"
            )
        text = shipped[str(source)].read_text("utf-8")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source}: {error}") from None
