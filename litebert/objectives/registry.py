"""The objectives that recipes can name. Loads torch only when one is built."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from litebert.core.errors import ConfigError, suggest

if TYPE_CHECKING:
    from litebert.objectives.objective import Objective
    from litebert.pretraining.recipe import Recipe

ENTRY_POINTS = "litebert.objectives"  # the group under which an installed package offers its own
_SHIPPED = {"mlm": "litebert.objectives.masked_lm:MaskedLM"}
_registered: dict[str, type["Objective"]] = {}


@dataclass(frozen=True, kw_only=True)
class ObjectiveOptions:
    """What is learned."""

    name: str = "mlm"  # masked words, with the sentence task of segments.task; or the name of an objective of your own

    def __post_init__(self) -> None:
        if self.name not in _SHIPPED and self.name not in list(_iter_names()):
            raise ConfigError(
                f"objective.name = '{self.name}' is unknown; {suggest(self.name, _iter_names())}; an objective of your "
                f"own is registered first, by register_objective or an entry point of the group '{ENTRY_POINTS}'"
            )


def register_objective(name: str, objective: type["Objective"]) -> None:
    """Make a subclass of `Objective` available to recipes under a name."""
    _registered[name] = objective


def build_objective(recipe: "Recipe") -> "Objective":
    """The objective that a recipe, or a stage of it, trains."""
    return _find_class(recipe.objective.name).from_recipe(recipe)


def _find_class(name: str) -> type["Objective"]:
    if name in _registered:
        return _registered[name]
    offered = {entry.name: entry.value for entry in entry_points(group=ENTRY_POINTS)} | _SHIPPED
    found: type[Objective] = EntryPoint(name, offered[name], ENTRY_POINTS).load()
    return found


def _iter_names() -> Iterator[str]:
    yield from _SHIPPED
    yield from _registered
    yield from entry_points(group=ENTRY_POINTS).names
