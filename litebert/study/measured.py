"""The measurements of one arm, as plain values."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Measured:
    """Values by metric, in the units of study/metrics.py, with their intervals, counts and baselines."""

    values: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)  # 95 %, over the choice of text or examples
    counts: dict[str, int] = field(default_factory=dict)  # tokens, pairs or examples behind a value
    levels: dict[str, float] = field(default_factory=dict)  # baselines by metric
    series: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # by name: x and y
    matrices: dict[str, list[list[float]]] = field(default_factory=dict)
    timed: dict[str, float] = field(default_factory=dict)  # values that are not reproducible

    def __or__(self, other: "Measured") -> "Measured":
        return Measured(**{name: getattr(self, name) | getattr(other, name) for name in self.__dataclass_fields__})
