"""The values that an option may have, declared on its dataclass field.

    @dataclass(frozen=True, kw_only=True)
    class TrainOptions:
        steps: PositiveInt
        efficiency: Annotated[float, Range(above=0, most=1)] = 0.5
        parallel: Literal["ddp", "fsdp"] = "ddp"

        def __post_init__(self) -> None:
            check_values(self)

Messages name keys as the dataclass does; `core.options.build_options` adds the section.
"""

import math
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from litebert.core.errors import ConfigError, suggest

_MAX_DIGITS = 18  # Python refuses to convert more than 4,300; no count of anything has more than these


def read_whole_number(text: str) -> int | None:
    """The number that decimal digits stand for; None for any other text, and for more digits than a count has."""
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else None


class Range(NamedTuple):
    """Finite numbers from `least` to `most`, or strictly `above` and `below` a bound."""

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf
    allows_inf: bool = False

    def __contains__(self, value: object) -> bool:
        assert isinstance(value, int | float)
        if value == math.inf:
            return self.allows_inf
        return self.least <= value <= self.most and self.above < value < self.below  # false for nan

    def __str__(self) -> str:
        if math.isfinite(self.least) and math.isfinite(self.most):
            return f"between {self.least:,} and {self.most:,}"
        bounds = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        return " and ".join(f"{name} {bound:,}" for name, bound in bounds.items() if math.isfinite(bound))


PositiveInt = Annotated[int, Range(1)]
NonNegativeInt = Annotated[int, Range(0)]
PositiveFloat = Annotated[float, Range(above=0)]
NonNegativeFloat = Annotated[float, Range(0)]
Probability = Annotated[float, Range(0, 1)]
DropRate = Annotated[float, Range(0, below=1)]


def check_values(options: Any) -> None:
    """Raise if a value of a dataclass is outside the range or the choices that its field declares."""
    for name, rule in _list_rules(type(options)):  # type: ignore[arg-type]
        value = getattr(options, name)
        if not isinstance(rule, Range):
            if value not in rule:
                raise ConfigError("unknown-value", f"{name} = {value!r} is unknown; {suggest(str(value), rule)}")
            continue
        for number in value if isinstance(value, tuple) else (value,):
            if number is not None and number not in rule:
                finite = " and finite" if number == math.inf else ""
                raise ConfigError("out-of-range", f"{name} must be {rule}{finite}, got {number}")


@cache
def _list_rules(kind: type[Any]) -> list[tuple[str, Range | tuple[str, ...]]]:
    hints = get_type_hints(kind, include_extras=True)
    rules: list[tuple[str, Range | tuple[str, ...]]] = []
    for field in fields(kind):
        hint = hints[field.name]
        if get_origin(hint) is Literal:
            rules.append((field.name, get_args(hint)))
        for part in (hint, *get_args(hint)):  # also `PositiveInt | None`, where None is allowed
            if get_origin(part) is Annotated:
                rules += [(field.name, rule) for rule in part.__metadata__ if isinstance(rule, tuple)]
    return rules
