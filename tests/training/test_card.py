"""The card of a fine-tuned model: scores next to a baseline and chance."""

import pytest

from litebert.training.card import write_task_card


@pytest.mark.parametrize("is_at_chance", [False, True])
def test_the_card_says_whether_a_score_is_above_chance(is_at_chance: bool) -> None:
    facts = {
        "num_examples": 30,
        "metric": "macro_f1",
        "scores": {"macro_f1": 0.6, "accuracy": 0.7},
        "intervals": {"accuracy": [0.5, 0.8]},
        "chance": {"score": 0.4, "margin": 0.15},
        "is_at_chance": is_at_chance,
        "baseline": {"name": "bag of words", "scores": {"macro_f1": 0.65}},
    }
    card = write_task_card(model="run", task="classification", source="tiny", facts=facts, recipe_toml="seed = 1\n")
    for row in ("| macro f1 | 0.6 |", "| macro f1 of bag of words | 0.65 |", "| macro f1 of chance | 0.4 |"):
        assert row in card
    assert "| accuracy | 0.7 (0.5 to 0.8) |" in card
    assert ("Not above chance**: a macro f1 up to 0.55 may be luck" in card) is is_at_chance
