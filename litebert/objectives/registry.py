"""The objectives that a recipe can name. Loads torch only when one is built."""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from litebert.core.errors import ConfigError, suggest

if TYPE_CHECKING:
    from litebert.objectives.objective import Objective
    from litebert.pretraining.recipe import Recipe

OBJECTIVES = {"mlm": "litebert.objectives.masked_lm:MaskedLM"}


@dataclass(frozen=True, kw_only=True)
class ObjectiveOptions:
    """What pre-training learns: a name in OBJECTIVES, or an `Objective` of your own as "package.module:Class"."""

    name: str = "mlm"  # masked tokens, with the sentence task of segments.task

    def __post_init__(self) -> None:
        if self.name not in OBJECTIVES and ":" not in self.name:
            raise ConfigError(
                "unknown-objective",
                f"name = '{self.name}' is unknown; "
                f"{suggest(self.name, OBJECTIVES, 'your own as package.module:Class')}",
            )


def build_objective(recipe: "Recipe") -> "Objective":
    """The objective that a recipe, or a stage of it, trains."""
    name = recipe.objective.name
    module, _, attribute = OBJECTIVES.get(name, name).partition(":")
    try:
        kind: type[Objective] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            "unknown-objective",
            f"objective.name = '{name}' cannot be imported ({error}): install its package, or put it on PYTHONPATH",
        ) from None
    return kind.from_recipe(recipe)
