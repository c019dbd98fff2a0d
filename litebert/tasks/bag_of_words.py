"""Bag-of-words baselines, reported next to every score of a fine-tuned model.

Labels use logistic regression on TF-IDF of words and bigrams; numbers use ridge regression. Pairs have each side's
words, the shared words, and how much of each text is in the other. Tags use the tags that a word had in training.
Choices use how much of a choice is in the passage and in the question. Span answers have no such baseline. A baseline
is trained within seconds on the training examples alone, without tuning.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from litebert.tasks.finetuning import Output
from litebert.tasks.kinds.choices import ChoiceExample, Choices
from litebert.tasks.kinds.classification import Classification, MultiLabel, Regression
from litebert.tasks.kinds.token_tags import TaggedWords, TokenTags
from litebert.tasks.texts import TextExample, to_floats

MAX_TERMS = 100_000
MAX_WEIGHTS = 2_000_000  # terms times labels
PENALTY = 0.1  # scikit-learn's C = 10; its default of 1 underfits short texts, whose TF-IDF values are small
RIDGE_PENALTY = 1.0
MAX_ITERATIONS = 100
# A word, or a single character in scripts that put no spaces between words (Thai to Khmer, kana, Chinese characters).
_WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|\w+?(?=[\u3040-\u9fff]|\b)")

Answer = Callable[[Sequence[Any]], list[Output]]


def split_words(text: str) -> list[str]:
    """The words of a text, lowercased."""
    return _WORD.findall(text.lower())


# ---- texts and pairs


class Bags(NamedTuple):
    """The terms of N texts as one list; text n has those from starts[n] to starts[n + 1], each with its value."""

    terms: Tensor
    values: Tensor
    starts: Tensor

    def project(self, weights: Tensor) -> Tensor:
        """The product of the texts with weights (V, C), as (N, C)."""
        return F.embedding_bag(self.terms, weights, self.starts, mode="sum", per_sample_weights=self.values)

    def transpose(self, num_columns: int) -> "Bags":
        """The texts of each term."""
        lengths = torch.diff(self.starts, append=torch.tensor([len(self.terms)]))
        order = torch.argsort(self.terms, stable=True)
        texts = torch.repeat_interleave(torch.arange(len(self.starts)), lengths)[order]
        counts = torch.bincount(self.terms, minlength=num_columns)
        return Bags(texts, self.values[order], counts.cumsum(0) - counts)


@dataclass(frozen=True)
class TfIdf:
    """The vocabulary with inverse document frequencies; for single texts equal to scikit-learn's with sublinear_tf."""

    columns: Mapping[str, int]
    rarity: NDArray[np.float64]

    @classmethod
    def of(cls, texts: Sequence[TextExample], max_terms: int) -> "TfIdf":
        frequency = Counter(term for text in texts for term in set(_list_terms(text)))
        common = sorted(frequency, key=lambda term: (-frequency[term], term))[:max_terms]
        counts = np.array([frequency[term] for term in common], dtype=np.float64)
        return cls({term: n for n, term in enumerate(common)}, np.log((1 + len(texts)) / (1 + counts)) + 1)

    @property
    def num_columns(self) -> int:
        return len(self.columns) + 2  # the last two: the overlap of each text of a pair with the other

    def weigh(self, texts: Sequence[TextExample]) -> Bags:
        """The TF-IDF vectors of texts, normalized to length one; the overlap of a pair is added after that."""
        terms: list[int] = []
        values: list[float] = []
        starts: list[int] = []
        for text in texts:
            starts.append(len(terms))
            counts = Counter(self.columns[term] for term in _list_terms(text) if term in self.columns)
            weights = np.array([1 + math.log(count) for count in counts.values()]) * self.rarity[list(counts)]
            terms += counts
            values += list(weights / (np.linalg.norm(weights) or 1.0))
            if text.text_b is not None:
                terms += [len(self.columns), len(self.columns) + 1]
                values += self._compare(set(split_words(text.text)), set(split_words(text.text_b)))
        return Bags(
            torch.tensor(terms, dtype=torch.long), torch.tensor(values, dtype=torch.float64), torch.tensor(starts)
        )

    def _compare(self, first: set[str], second: set[str]) -> list[float]:
        """How much of each text is in the other; rare words weigh more."""
        shared = self._sum_rarity(first & second)
        return [shared / (self._sum_rarity(first) or 1.0), shared / (self._sum_rarity(second) or 1.0)]

    def _sum_rarity(self, words: set[str]) -> float:
        """The total rarity of words; a word that no pair shared in training counts as the rarest."""
        rarest = float(self.rarity.max(initial=1.0))
        numbers = [self.columns.get(f"= {word}") for word in words]
        return float(sum(rarest if number is None else self.rarity[number] for number in numbers))


def _list_terms(text: TextExample) -> Iterable[str]:
    words = split_words(text.text)
    if text.text_b is None:
        return words + _join(words)
    others = split_words(text.text_b)
    sides = [f"{side} {term}" for side, many in (("1", words), ("2", others)) for term in many + _join(many)]
    return sides + [f"= {word}" for word in set(words) & set(others)]


def _join(words: Sequence[str]) -> list[str]:
    return [f"{first} {second}" for first, second in pairwise(words)]


def fit(bags: Bags, num_columns: int, num_outputs: int, loss: Callable[[Tensor], Tensor], penalty: float) -> Tensor:
    """The weights (V + 1, C), the last row being the bias, that minimize the loss with an L2 penalty (penalty / 2)."""
    weights, bias = (torch.zeros(n, num_outputs, dtype=torch.float64, requires_grad=True) for n in (num_columns, 1))
    optimizer = torch.optim.LBFGS(
        [weights, bias], max_iter=MAX_ITERATIONS, history_size=5, tolerance_grad=1e-5, line_search_fn="strong_wolfe"
    )
    num_texts, by_term = len(bags.starts), bags.transpose(num_columns)

    @torch.no_grad()
    def measure() -> Tensor:
        logits = bags.project(weights) + bias
        with torch.enable_grad():
            value = loss(logits.requires_grad_())
        [slope] = torch.autograd.grad(value, logits)
        # gradient computed by hand: ten times faster than the backward pass of embedding_bag
        weights.grad = (by_term.project(slope) + penalty * weights) / num_texts
        bias.grad = slope.sum(0, keepdim=True) / num_texts
        return (value + penalty / 2 * weights.square().sum()) / num_texts

    optimizer.step(measure)  # type: ignore[no-untyped-call]
    return torch.cat([weights, bias]).detach()


def learn_labels(task: Classification | MultiLabel, train: Sequence[TextExample]) -> Answer:
    tfidf = TfIdf.of(train, min(MAX_TERMS, MAX_WEIGHTS // len(task.labels)))
    numbers = {label: number for number, label in enumerate(task.labels)}
    if isinstance(task, MultiLabel):
        marks = torch.tensor([[label in e.label for label in task.labels] for e in train], dtype=torch.float64)
        loss = lambda logits: F.binary_cross_entropy_with_logits(logits, marks, reduction="sum")  # noqa: E731
        squash: Callable[[Tensor], Tensor] = torch.sigmoid
    else:
        targets = torch.tensor([numbers[example.label] for example in train])
        loss = lambda logits: F.cross_entropy(logits, targets, reduction="sum")  # noqa: E731
        squash = lambda logits: logits.softmax(-1)  # noqa: E731
    weights = fit(tfidf.weigh(train), tfidf.num_columns, len(task.labels), loss, PENALTY)
    return lambda texts: [to_floats(row) for row in squash(_apply(tfidf, weights, texts)).numpy()]


def learn_numbers(task: Regression, train: Sequence[TextExample]) -> Answer:
    tfidf = TfIdf.of(train, MAX_TERMS)
    truths = torch.tensor([[float(example.label)] for example in train], dtype=torch.float64)
    center, scale = truths.mean(), truths.std(correction=0).clamp(min=1e-12)
    loss = lambda guesses: (guesses - (truths - center) / scale).square().sum() / 2  # noqa: E731
    weights = fit(tfidf.weigh(train), tfidf.num_columns, 1, loss, RIDGE_PENALTY)
    return lambda texts: [
        task.combine([value]) for value in (_apply(tfidf, weights, texts)[:, 0] * scale + center).tolist()
    ]


def _apply(tfidf: TfIdf, weights: Tensor, texts: Sequence[TextExample]) -> Tensor:
    return tfidf.weigh(texts).project(weights[:-1]) + weights[-1]


# ---- tags


def learn_tags(task: TokenTags, train: Sequence[TaggedWords]) -> Answer:
    """Tag frequencies per word; unseen words get the distribution of words seen once.

    If the training file is from another data set than the model's, it may have a few tags that the model does not know.
    """
    numbers = {tag: number for number, tag in enumerate(task.labels)}
    counts: dict[str, NDArray[np.float64]] = {}
    for sentence in train:
        for word, tag in zip(sentence.words, sentence.label or (), strict=True):
            if tag in numbers:
                counts.setdefault(word, np.zeros(len(numbers)))[numbers[tag]] += 1
    once = [count for count in counts.values() if count.sum() == 1] or list(counts.values())
    unknown = np.sum(once, axis=0)
    known = {word: to_floats(count / count.sum()) for word, count in counts.items()}
    usual = to_floats(unknown / unknown.sum())
    return lambda sentences: [[known.get(word, usual) for word in sentence.words] for sentence in sentences]


# ---- choices


def learn_choices(task: Choices, train: Sequence[ChoiceExample]) -> Answer:
    """A logistic regression over the choices, with three features per choice."""
    del task
    contexts = {example.context for example in train}
    frequency = Counter(word for context in contexts for word in set(split_words(context)))

    def rarity(words: set[str]) -> float:
        return sum(math.log((1 + len(contexts)) / (1 + frequency[word])) + 1 for word in words)

    def describe(example: ChoiceExample) -> list[list[float]]:
        passage, question = set(split_words(example.context)), set(split_words(example.question))
        choices = [set(split_words(choice)) for choice in example.choices]
        longest = max(len(choice) for choice in choices) or 1
        return [
            [
                *(rarity(choice & other) / (rarity(choice) or 1.0) for other in (passage, question)),
                len(choice) / longest,
            ]
            for choice in choices
        ]

    def stack(examples: Sequence[ChoiceExample]) -> tuple[Tensor, Tensor]:
        """Features (N, C, 3), and a mask of the real choices (N, C)."""
        described = [describe(example) for example in examples]
        width = max(map(len, described))
        features = torch.tensor([rows + [[0.0] * 3] * (width - len(rows)) for rows in described], dtype=torch.float64)
        return features, torch.arange(width) < torch.tensor([len(rows) for rows in described])[:, None]

    features, is_real = stack(train)
    labels = torch.tensor([example.label for example in train])
    weights = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=100, line_search_fn="strong_wolfe")

    def measure() -> Tensor:
        optimizer.zero_grad()
        logits = (features @ weights).masked_fill(~is_real, -torch.inf)
        value = F.cross_entropy(logits, labels) + PENALTY / 2 * weights.square().sum() / len(labels)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(measure)  # type: ignore[no-untyped-call]

    def answer(examples: Sequence[ChoiceExample]) -> list[Output]:
        features, is_real = stack(examples)
        probabilities = (features @ weights.detach()).masked_fill(~is_real, -torch.inf).softmax(-1).numpy()
        return [to_floats(row[: len(example.choices)]) for row, example in zip(probabilities, examples, strict=True)]

    return answer
