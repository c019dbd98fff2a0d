"""Values and overrides become options, or an error with one line on how to fix it."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from refusals import refuses

from litebert.core.errors import ConfigError
from litebert.core.options import build_options, merge, parse_assignments, parse_toml


@dataclass(frozen=True)
class Inner:
    rate: float = 0.1
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outer:
    steps: int
    inner: Inner = Inner()
    name: str = "x"
    words: tuple[str, ...] = ()


def test_values_become_the_dataclass_with_its_sections() -> None:
    values = merge({"steps": 1, "inner": {"rate": 0.5}}, parse_assignments(["steps=3", "inner.shape=[1,2]", "name=ab"]))
    assert build_options(Outer, values) == Outer(3, Inner(0.5, (1, 2)), "ab")


def test_one_word_is_a_list_of_words() -> None:
    assert build_options(Outer, parse_assignments(["steps=1", "words=ab"])).words == ("ab",)
    assert build_options(Outer, parse_assignments(["steps=1", 'words=["a", "b"]'])).words == ("a", "b")


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"stps": 1}, "unknown-key"),
        ({"steps": 1, "inner": {"rat": 1}}, "unknown-key"),
        ({}, "missing-key"),
        ({"steps": 1.5}, "bad-value"),
        ({"steps": "1"}, "bad-value"),
        ({"steps": True}, "bad-value"),
        ({"steps": 1, "inner": 3}, "not-a-section"),
    ],
)
def test_a_slip_is_named_with_its_full_key(values: dict[str, Any], code: str) -> None:
    with refuses(ConfigError, code):
        build_options(Outer, values, where="run")


@pytest.mark.parametrize("word", ["1e3", "1000", "1_000", "1000.0"])
def test_an_integer_may_be_written_with_an_exponent(word: str) -> None:
    steps = build_options(Outer, parse_assignments([f"steps={word}"])).steps
    assert (steps, type(steps)) == (1000, int)


@pytest.mark.parametrize(("word", "key"), [("optim.lr=1", "optim.learning_rate"), ("lr=1", "optim.learning_rate")])
def test_another_programs_name_of_a_key_is_answered_with_ours(word: str, key: str) -> None:
    @dataclass(frozen=True)
    class Optim:
        learning_rate: float = 0.1

    @dataclass(frozen=True)
    class Recipe:
        optim: Optim = Optim()

    with pytest.raises(ConfigError, match=f"did you mean '{key}'"):
        build_options(Recipe, parse_assignments([word]))


@pytest.mark.parametrize("word", ["steps", "=3", "a..b=1", "3a=1"])
def test_an_override_must_be_an_assignment(word: str) -> None:
    with refuses(ConfigError, "bad-override"):
        parse_assignments([word])


def test_a_section_and_a_value_of_one_name_do_not_go_together() -> None:
    with refuses(ConfigError, "bad-override", at="train.steps"):
        parse_assignments(["train=1", "train.steps=2"])


@pytest.mark.parametrize("value", ["[" * 10_000, "9" * 5_000, "x y"])
def test_every_toml_is_read_or_refused(value: str) -> None:
    with refuses(ConfigError, "bad-toml", at="a.toml"):
        parse_toml(f"steps = {value}", where="a.toml")
    assert parse_assignments([f"name={value}"]) == {"name": value}  # an override that is not TOML is text


@dataclass(frozen=True, kw_only=True)
class Room:
    size: int


@dataclass(frozen=True, kw_only=True)
class House:
    rooms: dict[str, Room] = field(default_factory=dict)
    sheds: tuple[Room, ...] = ()


def test_sections_by_name_and_lists_of_sections_are_built_too() -> None:
    built = build_options(House, {"rooms": {"hall": {"size": 3}}, "sheds": [{"size": 1}, {"size": 2}]})
    assert built == House(rooms={"hall": Room(size=3)}, sheds=(Room(size=1), Room(size=2)))
    for values, code, place in (
        ({"rooms": [{"size": 3}]}, "not-a-section", "rooms"),
        ({"sheds": {"size": 3}}, "not-a-section", "sheds"),
        ({"rooms": {"hall": {"size": "x"}}}, "bad-value", "rooms.hall.size"),
        ({"sheds": [{"size": 1}, {"sise": 2}]}, "unknown-key", "sheds 2.sise"),
    ):
        with refuses(ConfigError, code, at=place):
            build_options(House, values)
