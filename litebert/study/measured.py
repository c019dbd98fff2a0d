"""What was measured of one arm, as plain values."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Measured:
    """Values by metric, in the units of study/metrics.py, and what belongs to them."""

    values: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)  # 95 %, of the text or examples measured on
    counts: dict[str, int] = field(default_factory=dict)  # of the words, pairs or examples that a value rests on
    levels: dict[str, float] = field(default_factory=dict)  # by metric: what needs no learning
    series: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # by name: x and y
    matrices: dict[str, list[list[float]]] = field(default_factory=dict)
    timed: dict[str, float] = field(default_factory=dict)  # values that differ from run to run

    def __or__(self, other: "Measured") -> "Measured":
        return Measured(**{name: getattr(self, name) | getattr(other, name) for name in self.__dataclass_fields__})
