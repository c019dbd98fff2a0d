"""Embeddings: one vector per text, close for texts that belong together.

Four forms of examples train the same model: pairs (every other text of the batch is a negative), triplets with a
negative of their own, pairs with a score, and texts with the vector that another model gave them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from litebert.model.config import HeadSpec, Pooling
from litebert.model.engine import Engine
from litebert.model.heads import forbid
from litebert.model.model import Model
from litebert.model.pooling import EmbeddingSpec, pool
from litebert.tasks import metrics
from litebert.tasks.files.reading import ScoreLoss
from litebert.tasks.finetuning import ONE_SIDED, Chance, Output, Rows, Tally
from litebert.tasks.group_batch import GroupBatch
from litebert.tasks.groups import Group, SequenceForm
from litebert.tasks.retrieval import Side, compare_each, find_ranks
from litebert.tasks.task import BatchLoss, Counts
from litebert.tasks.texts import TextExample, to_floats
from litebert.text.tokenizer import Tokenizer

Form = Literal["pairs", "triplets", "scored", "vectors"]
TOP = 10  # how many of the nearest texts the retrieval scores look at
# the scores of each form; the first one selects the model
METRICS: dict[Form, tuple[str, ...]] = {
    "pairs": ("mrr@10", "ndcg@10", "recall@1", "recall@10"),
    "triplets": ("accuracy", "mrr@10", "ndcg@10", "recall@1", "recall@10"),
    "scored": ("spearman", "pearson"),
    "vectors": ("cosine",),
}


@dataclass(frozen=True)
class EmbeddedText(TextExample):
    """A text, a pair, or a triplet whose third text belongs to neither of the others.

    The label is the pair's score, or 1 if it is only known that the texts belong together.
    """

    negative: str | None = None
    taught: "Taught | None" = field(default=None, metadata={"is_shown": False})  # the vector a text should have

    @property
    def texts(self) -> list[str]:
        return [text for text in (self.text, self.text_b, self.negative) if text is not None]


class Taught:
    """The vector that a teacher gave a text; shown, hashed and compared by its bytes."""

    def __init__(self, vector: NDArray[np.float32]) -> None:
        self.vector = vector

    def __repr__(self) -> str:
        return blake2b(self.vector.tobytes(), digest_size=16).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Taught) and self.vector.tobytes() == other.vector.tobytes()

    def __hash__(self) -> int:
        return hash(self.vector.tobytes())


@dataclass(frozen=True)
class Embedding:
    """Vectors of texts; the output is one vector per text of the example."""

    name: str = "embedding"
    form: Form = "pairs"
    metric: str = "mrr@10"
    pooling: Pooling = "mean"
    normalize: bool = True
    sizes: tuple[int, ...] = ()  # shorter vectors that are trained too: the first numbers of the whole one (Matryoshka)
    temperature: float = 0.05
    loss_of_scores: ScoreLoss = "cosent"
    low: float = 0.0  # the scores of training pairs are between these
    high: float = 1.0

    @property
    def heads(self) -> tuple[HeadSpec, ...]:
        return ()

    def spec(self, max_length: int) -> EmbeddingSpec:
        """How a checkpoint states that its vectors are made."""
        return EmbeddingSpec(self.pooling, self.normalize, max_length)

    def encode(self, examples: Sequence[TextExample], tokenizer: Tokenizer, form: SequenceForm) -> list[Group]:
        texts = [_texts_of(example) for example in examples]
        ids = iter(tokenizer.encode_batch([text for some in texts for text in some]))
        return [
            Group(tuple(form.join(next(ids)) for _ in some), self._target(example, some))
            for example, some in zip(examples, texts, strict=True)
        ]

    def _target(self, example: TextExample, texts: Sequence[str]) -> NDArray[Any] | None:
        """The score, the vector, or a number for each text, by which equal texts are recognized."""
        if example.label is None:
            return None
        if self.form == "vectors":
            return _taught_of(example)[None]  # (1, H)
        if self.form == "scored":
            return np.array([example.label], dtype=np.float32)
        return np.array([int.from_bytes(blake2b(t.encode(), digest_size=7).digest()) for t in texts], dtype=np.int64)

    def count(self, part: GroupBatch) -> dict[str, int]:
        return {"groups": part.num_groups, "tokens": int(part.mask.sum()), "positions": part.mask.numel()}

    def loss(self, model: Model, part: GroupBatch, totals: Counts) -> BatchLoss:
        assert part.targets is not None, "nothing to learn from"
        hidden = model.encoder(part.token_ids, part.segment_ids, part.mask).hidden  # (S, T, H)
        vectors = pool(hidden, part.mask, self.pooling)  # (S, H)
        width = vectors.shape[1]
        losses = [self._loss_of(vectors[:, :size], part.targets) for size in (width, *self.sizes)]
        loss = torch.stack(losses).mean() * part.num_groups / totals["groups"]
        return BatchLoss(loss, {"loss": loss.detach()})

    def _loss_of(self, vectors: Tensor, targets: Tensor) -> Tensor:
        """The mean loss of the groups, from vectors (S, H) of any length."""
        vectors = F.normalize(vectors.float(), dim=-1)
        if self.form == "vectors":
            return vector_loss(vectors, targets[:, : vectors.shape[1]])
        if self.form == "scored":
            cosines = (vectors[0::2] * vectors[1::2]).sum(-1)
            if self.loss_of_scores == "cosine":
                return F.mse_loss(cosines, (targets - self.low) / max(self.high - self.low, 1e-9))
            return cosent_loss(cosines, targets, self.temperature)
        size = 2 if self.form == "pairs" else 3
        return contrastive_loss(vectors.view(-1, size, vectors.shape[1]), targets.view(-1, size), self.temperature)

    def summarize(self, sums: Mapping[str, float], totals: Counts) -> dict[str, float]:
        del totals
        return {"loss": sums["loss"]}

    def predict(self, engine: Engine, batch: GroupBatch, groups: Sequence[Group]) -> list[Output]:
        inputs = batch.to_inputs()._replace(pooling=self.pooling)
        vectors = engine.run("embedding", inputs)["embedding"].float()  # (S, H)
        if self.normalize:
            vectors = F.normalize(vectors, dim=-1)
        rows = iter(vectors.cpu().numpy())
        return [[to_floats(next(rows)) for _ in group.sequences] for group in groups]

    def combine(self, outputs: Sequence[Output]) -> Output:
        """The members' vectors end to end, so that a cosine is the mean of theirs."""
        return [
            to_floats(np.concatenate([np.array(vector) for vector in vectors]) / math.sqrt(len(vectors)))
            for vectors in zip(*outputs, strict=True)
        ]

    def decide(self, output: Output) -> Any:
        """A text's vector; of a pair the cosine, of a triplet how much closer the second text is than the third."""
        if len(output) == 1:
            return output[0]
        cosines = [float(compare_each([output[0]], [other])[0]) for other in output[1:]]
        return round(cosines[0] - sum(cosines[1:]), 6)

    def score(self, outputs: Sequence[Output], examples: Sequence[TextExample]) -> dict[str, float]:
        tally = self.tally(outputs, examples)
        return {name: score(tally.rows) for name, score in tally.scores.items()}

    def tally(self, outputs: Sequence[Output], examples: Sequence[TextExample]) -> Tally:
        first = [output[0] for output in outputs]
        if self.form == "vectors":
            taught = [_taught_of(example).tolist() for example in examples]
            return Tally(compare_each(first, taught)[:, None], {"cosine": lambda rows: float(rows.mean())})
        second = [output[1] for output in outputs]
        if self.form == "scored":
            rows = np.stack([compare_each(first, second), [float(example.label) for example in examples]], axis=1)
            return Tally(
                rows,
                {
                    "spearman": lambda rows: metrics.spearman(rows[:, 0], rows[:, 1]),
                    "pearson": lambda rows: metrics.pearson(rows[:, 0], rows[:, 1]),
                },
            )
        return self._tally_retrieval(first, second, outputs, examples)

    def _tally_retrieval(
        self, first: Sequence[Side], second: Sequence[Side], outputs: Sequence[Output], examples: Sequence[TextExample]
    ) -> Tally:
        """Every first text searches all second and third texts for its own second text."""
        texts = [(example.text, str(example.text_b)) for example in examples]
        scores: dict[str, Callable[[Rows], float]] = {name: partial(_measure, name) for name in METRICS["pairs"]}
        if self.form == "pairs":
            ranks = find_ranks(first, second, texts)
            return Tally(ranks[:, None].astype(np.float64), scores)
        others = {
            getattr(example, "negative", None): output[2] for example, output in zip(examples, outputs, strict=True)
        }
        ranks = find_ranks(first, second, texts, {str(text): vector for text, vector in others.items()})
        third = [output[2] for output in outputs]
        is_closer = compare_each(first, second) > compare_each(first, third)
        accuracy: dict[str, Callable[[Rows], float]] = {"accuracy": lambda rows: float(rows[:, 1].mean())}
        return Tally(np.stack([ranks, is_closer], axis=1).astype(np.float64), accuracy | scores)

    def wrongness(self, output: Output, example: TextExample) -> float:
        if self.form == "vectors":
            return float(1 - compare_each([output[0]], [_taught_of(example).tolist()])[0])
        answer = float(self.decide(output))
        if self.form == "triplets":
            return max(0.0, -answer)
        wanted = 1.0 if self.form == "pairs" else (float(example.label) - self.low) / max(self.high - self.low, 1e-9)
        return abs(answer - wanted)

    def chance(self, examples: Sequence[TextExample]) -> Chance:
        """The score of random vectors."""
        count = len(examples)
        if self.metric == "accuracy":
            return Chance(0.5, ONE_SIDED * 0.5 / math.sqrt(count))
        if self.form in ("scored", "vectors"):
            return Chance(0.0, ONE_SIDED / math.sqrt(count))
        num_texts = len({text for example in examples for text in _texts_of(example)[1:]})
        values = np.array([_measure(self.metric, np.array([[float(rank)]])) for rank in range(1, num_texts + 1)])
        return Chance(float(values.mean()), ONE_SIDED * float(values.std()) / math.sqrt(count))


def contrastive_loss(vectors: Tensor, texts: Tensor, temperature: float) -> Tensor:
    """The mean cross-entropy of finding each text's partner among all texts of the batch, in both directions (InfoNCE).

    `vectors` (G, 2 or 3, H) have length one. `texts` numbers the texts: an equal text, or the partner of an equal text,
    is no negative.
    """
    first, second = vectors[:, 0], vectors[:, 1]  # (G, H)
    targets = torch.arange(len(first), device=first.device)
    is_same = texts[:, None, 0] == texts[None, :, 0]  # (G, G)
    is_same |= texts[:, None, 1] == texts[None, :, 1]
    others = ~is_same | torch.eye(len(first), dtype=torch.bool, device=first.device)
    scores = forbid(first @ second.T / temperature, others & _differ(texts[:, 0], texts[:, 1]))
    back = forbid(second @ first.T / temperature, others & _differ(texts[:, 1], texts[:, 0]))
    if vectors.shape[1] == 3:
        third = first @ vectors[:, 2].T / temperature  # (G, G)
        allowed = (texts[:, None, 0] != texts[None, :, 2]) & (texts[:, None, 1] != texts[None, :, 2])
        scores = torch.cat([scores, forbid(third, allowed)], dim=1)  # (G, 2 G)
    return (F.cross_entropy(scores, targets) + F.cross_entropy(back, targets)) / 2


def _differ(asking: Tensor, found: Tensor) -> Tensor:
    """Whether a text may be compared with another one (G, G): not with itself, unless it is its own partner."""
    return (asking[:, None] != found[None]) | torch.eye(len(asking), dtype=torch.bool, device=asking.device)


def cosent_loss(cosines: Tensor, scores: Tensor, temperature: float) -> Tensor:
    """How many pairs of the batch are closer than others with a higher score, softly: CoSENT (Su, 2022)."""
    differences = (cosines[None] - cosines[:, None]) / temperature  # (G, G): how much j is closer than i
    wrong = differences[scores[:, None] > scores[None]]  # i has the higher score
    return torch.logsumexp(torch.cat([wrong.new_zeros(1), wrong]), dim=0)


def vector_loss(vectors: Tensor, wanted: Tensor) -> Tensor:
    """One minus the cosine of each vector (G, H) with the one it should have; both may have any length."""
    return (1 - F.cosine_similarity(vectors, wanted.float(), dim=-1)).mean()


def _measure(name: str, rows: Rows) -> float:
    """A retrieval score from the ranks of the right texts, in the first column."""
    ranks = rows[:, 0]
    kind, _, top = name.partition("@")
    is_found = ranks <= int(top)
    if kind == "recall":
        return float(is_found.mean())
    gains = 1 / ranks if kind == "mrr" else 1 / np.log2(1 + ranks)
    return float(np.where(is_found, gains, 0.0).mean())


def _texts_of(example: TextExample) -> list[str]:
    if isinstance(example, EmbeddedText):
        return example.texts
    return [example.text] if example.text_b is None else [example.text, example.text_b]


def _taught_of(example: TextExample) -> NDArray[np.float32]:
    assert isinstance(example, EmbeddedText), example
    assert example.taught is not None, "this text has no vector to learn"
    return example.taught.vector
