"""Made-up sentences, enough for a vocabulary of 200 pieces, and the size that suits each kind of vocabulary."""

import random

WORDS = """
    the a of in and river mountain station village church builds grows walks slowly
    quickly early north south old children teacher engine water winter light music number station's
    café, 1,000 2010, 1999 42 (see below) famous unhappiness rebuilding walked walking builder growth
    numbers lights it was not never because although said
"""
SIZES = {"unigram": 200, "wordpiece": 200, "bpe": 400}


def make_sentences(count: int = 800) -> list[str]:
    rng = random.Random(3)
    stems = WORDS.split()

    def make_word() -> str:
        stem = rng.choice(stems)
        return (
            stem + rng.choice(["", "", "", "s", "ing", "ed", "er", "ly"]) if stem.isalpha() and len(stem) > 3 else stem
        )

    return [" ".join(make_word() for _ in range(rng.randint(4, 14))).capitalize() + "." for _ in range(count)]
