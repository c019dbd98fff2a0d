"""BM25, the baseline of embeddings: texts are close if they share rare words (Robertson and Zaragoza, 2009).

It learns nothing: the frequencies of words are those of the texts that are searched.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from litebert.tasks.bag_of_words import Answer, split_words
from litebert.tasks.finetuning import Output
from litebert.tasks.kinds.embedding import EmbeddedText, Embedding

SATURATION, LENGTH_SHARE = 1.2, 0.75  # k1 and b, at their usual values


def learn_bm25(task: Embedding, examples: Sequence[Any]) -> Answer | None:
    """The vectors of words, for pairs and triplets as BM25 weighs them; None for texts alone.

    For pairs with a score, both texts are weighed as documents and compared by their cosine.
    """
    del examples
    if task.form == "vectors":
        return None
    return _answer_scored if task.form == "scored" else _answer_retrieval


def _answer_retrieval(examples: Sequence[Any]) -> list[Output]:
    documents = list(dict.fromkeys(text for example in examples for text in _texts(example)[1:]))
    bags = dict(zip(documents, weigh_words(documents), strict=True))
    return [
        [dict(Counter(split_words(example.text))), *(bags[text] for text in _texts(example)[1:])]
        for example in examples
    ]


def _answer_scored(examples: Sequence[Any]) -> list[Output]:
    texts = list(dict.fromkeys(text for example in examples for text in _texts(example)))
    bags = {text: _normalize(bag) for text, bag in zip(texts, weigh_words(texts), strict=True)}
    return [[bags[text] for text in _texts(example)] for example in examples]


def weigh_words(documents: Sequence[str]) -> list[dict[str, float]]:
    """The weight of each word of each document: the score is their sum over the words of a question."""
    counted = [Counter(split_words(document)) for document in documents]
    frequency = Counter(word for counts in counted for word in counts)
    rarity = {word: math.log(1 + (len(counted) - n + 0.5) / (n + 0.5)) for word, n in frequency.items()}
    lengths = [counts.total() for counts in counted]
    mean_length = max(sum(lengths) / max(1, len(lengths)), 1e-9)
    weighed = []
    for counts, length in zip(counted, lengths, strict=True):
        norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length / mean_length)
        weighed.append({word: rarity[word] * n * (SATURATION + 1) / (n + norm) for word, n in counts.items()})
    return weighed


def _normalize(bag: dict[str, float]) -> dict[str, float]:
    length = math.sqrt(sum(weight * weight for weight in bag.values())) or 1.0
    return {word: weight / length for word, weight in bag.items()}


def _texts(example: Any) -> list[str]:
    return example.texts if isinstance(example, EmbeddedText) else [example.text, example.text_b]
