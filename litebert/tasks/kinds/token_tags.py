"""Tagging words: named entities, parts of speech. The first piece of a word is labelled with its tag."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from litebert.model.config import HeadSpec
from litebert.model.engine import Engine
from litebert.model.model import Model
from litebert.tasks import metrics
from litebert.tasks.finetuning import ONE_SIDED, Chance, Output, Tally
from litebert.tasks.group_batch import GroupBatch
from litebert.tasks.groups import Group, SequenceForm, TokenSequence
from litebert.tasks.task import BatchLoss, Counts
from litebert.tasks.texts import to_floats
from litebert.tasks.words import Cut
from litebert.text.tokenizer import Tokenizer

IGNORED = -100  # the target of pieces without a tag; torch's cross-entropy ignores it
OUTSIDE = "O"
_SPAN_TAG = re.compile("[BIESLUM][-_].+")  # BIO, BIOES, BILOU and BMES, as B-PER or B_PER


@dataclass(frozen=True)
class TaggedWords:
    """The words of one sentence, with their tags if known."""

    id: str
    words: tuple[str, ...]
    label: tuple[str, ...] | None = None
    where: str = ""
    group: str = field(default="", repr=False, metadata={"is_shown": False})  # held out together; not part of the text
    # where each word stands in the plain text that it was cut from; empty where it came as a list of words
    offsets: tuple[tuple[int, int], ...] = field(default=(), repr=False, metadata={"is_shown": False})

    def to_input(self) -> list[str]:
        """The example as server input."""
        return list(self.words)


class Span(NamedTuple):
    """One entity of a kind: words start to end (exclusive)."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class TokenTags:
    """Tagging words; the output is tag probabilities per word. Tags such as B-PER and I-PER are scored as spans."""

    name: str
    labels: tuple[str, ...]
    splits_words: Cut = False  # trained on words split by `find_words`, or on characters, not at spaces
    scoring: Literal["spans", "names"] = "spans"  # names: as CLUENER's script, see `names_f1`

    @property
    def has_spans(self) -> bool:
        return OUTSIDE in self.labels and all(tag == OUTSIDE or _SPAN_TAG.fullmatch(tag) for tag in self.labels)

    def describe_scoring(self) -> str:
        """A note to the user on how answers are scored and why."""
        if self.has_spans:
            return "scored by entity spans (precision, recall and F1), because the tags are like B-PER and I-PER"
        other = next((tag for tag in self.labels if tag != OUTSIDE and not _SPAN_TAG.fullmatch(tag)), None)
        reason = (
            "no tag is O"
            if other is None or OUTSIDE not in self.labels
            else f"'{other}' has no prefix such as B- or I-"
        )
        return f"scored per word (accuracy), not by entity spans: {reason}"

    @property
    def metric(self) -> str:
        if self.scoring == "names":
            return "names_f1"
        return "span_f1" if self.has_spans else "accuracy"

    @property
    def heads(self) -> tuple[HeadSpec, ...]:
        return (HeadSpec("tokens", len(self.labels)),)

    def encode(self, examples: Sequence[TaggedWords], tokenizer: Tokenizer, form: SequenceForm) -> list[Group]:
        # in a byte-level vocabulary a word starts with the space before it
        space = " " if tokenizer.kind == "bpe" else ""
        pieces = iter(tokenizer.encode_batch([space + word for example in examples for word in example.words]))
        return [
            self._build_group(example, [next(pieces) or [tokenizer.unk_id] for _ in example.words], form)
            for example in examples
        ]

    def _build_group(self, example: TaggedWords, pieces: Sequence[Sequence[int]], form: SequenceForm) -> Group:
        """A sentence that is too long is split into several sequences; no word is dropped."""
        number_of = {tag: number for number, tag in enumerate(self.labels)}
        # a tag that is not in training has no target here, but is scored, by its name
        numbers = [number_of.get(tag, IGNORED) for tag in example.label or [OUTSIDE] * len(pieces)]
        sequences: list[TokenSequence] = []
        targets: list[int] = []
        firsts: list[bool] = []  # which tokens are the first of a word
        for start, end in _cut_words(pieces, form.max_length - form.num_special(is_pair=False)):
            sequence = form.join([piece for word in pieces[start:end] for piece in word])
            tags = [tag for n in range(start, end) for tag in [numbers[n], *[IGNORED] * (len(pieces[n]) - 1)]]
            begins = [is_first for n in range(start, end) for is_first in [True, *[False] * (len(pieces[n]) - 1)]]
            targets += [IGNORED, *tags[: len(sequence.token_ids) - 2], IGNORED]
            firsts += [False, *begins[: len(sequence.token_ids) - 2], False]
            sequences.append(sequence)
        target = None if example.label is None else np.array(targets)
        return Group(tuple(sequences), target, about=np.array(firsts))

    def count(self, part: GroupBatch) -> dict[str, int]:
        tagged = 0 if part.targets is None else int((part.targets != IGNORED).sum())
        tokens, positions = int(part.mask.sum()), part.mask.numel()
        return {"groups": part.num_groups, "tagged": tagged, "tokens": tokens, "positions": positions}

    def loss(self, model: Model, part: GroupBatch, totals: Counts) -> BatchLoss:
        assert part.targets is not None, "nothing to learn from"
        hidden = model.encoder(part.token_ids, part.segment_ids, part.mask).hidden  # (S, T, H)
        logits: Tensor = model.heads["tokens"](hidden[part.mask])  # (real tokens, labels)
        loss = F.cross_entropy(logits, part.targets, reduction="sum", ignore_index=IGNORED) / max(totals["tagged"], 1)
        return BatchLoss(loss, {"loss": loss.detach(), "correct": (logits.argmax(-1) == part.targets).sum()})

    def summarize(self, sums: Mapping[str, float], totals: Counts) -> dict[str, float]:
        return {"loss": sums["loss"], "train_accuracy": sums["correct"] / max(totals["tagged"], 1)}

    def predict(self, engine: Engine, batch: GroupBatch, groups: Sequence[Group]) -> list[Output]:
        logits = engine.run("tokens", batch.to_inputs())["logits"][batch.mask]  # (real tokens, labels)
        probabilities = logits.float().softmax(-1).cpu().numpy()
        ends = np.cumsum([group.num_tokens for group in groups])[:-1]
        return [
            [to_floats(word) for word in rows[group.about]]
            for group, rows in zip(groups, np.split(probabilities, ends), strict=True)
        ]

    def combine(self, outputs: Sequence[Output]) -> Output:
        return [to_floats(word) for word in np.mean(outputs, axis=0)]

    def decide(self, output: Output) -> list[str]:
        return [self.labels[int(np.argmax(word))] for word in output]

    def score(self, outputs: Sequence[Output], examples: Sequence[TaggedWords]) -> dict[str, float]:
        guesses = [self.decide(output) for output in outputs]
        truths = [list(example.label or ()) for example in examples]
        scores = {"accuracy": metrics.accuracy(_flatten(guesses), _flatten(truths))}
        if self.scoring == "names":
            counts = [self._count_names(*pair) for pair in zip(guesses, examples, strict=True)]
            return {"names_f1": _mean_f1(np.array(counts)), "span_f1": span_f1(guesses, truths), **scores}
        return {"span_f1": span_f1(guesses, truths), **scores} if self.has_spans else scores

    def tally(self, outputs: Sequence[Output], examples: Sequence[TaggedWords]) -> Tally:
        rows = []
        for output, example in zip(outputs, examples, strict=True):
            answer, truth = self.decide(output), example.label or ()
            num_right = sum(guess == tag for guess, tag in zip(answer, truth, strict=True))
            found = metrics.count_matches(set(find_spans(answer)), set(find_spans(truth)))
            names = self._count_names(answer, example) if self.scoring == "names" else []
            rows.append([*(found if self.has_spans else [0, 0, 0]), num_right, len(answer), *names])
        scores = {"accuracy": lambda rows: float(rows[:, 3].sum() / rows[:, 4].sum())}
        scores = {"span_f1": metrics.f1_of_matches, **scores} if self.has_spans else scores
        if self.scoring == "names":
            scores = {"names_f1": lambda rows: _mean_f1(rows[:, 5:]), **scores}
        return Tally(np.array(rows, dtype=np.float64), scores)

    def _count_names(self, answer: Sequence[str], example: TaggedWords) -> list[int]:
        """For each kind the matches of the names in one text; its places do not count, as in CLUENER's script."""
        counts: list[int] = []
        kinds = sorted({tag[2:] for tag in self.labels if tag != OUTSIDE})
        guessed, true = (_find_names(tags, example.words) for tags in (answer, example.label or ()))
        for kind in kinds:
            counts += metrics.count_matches(guessed.get(kind, set()), true.get(kind, set()))
        return counts

    def describe(self, outputs: Sequence[Output], examples: Sequence[TaggedWords]) -> dict[str, Any]:
        """Precision, recall and F1 per kind of span, and the score of tagging every word O."""
        if not self.has_spans:
            return {}
        tags = [list(example.label or ()) for example in examples]
        return {
            "labels": score_kinds([self.decide(output) for output in outputs], tags),
            # a tagger below this score does more harm than good
            "outside_accuracy": sum(sentence.count(OUTSIDE) for sentence in tags) / sum(map(len, tags)),
        }

    def wrongness(self, output: Output, example: TaggedWords) -> float:
        return float(sum(guess != tag for guess, tag in zip(self.decide(output), example.label or (), strict=True)))

    def chance(self, examples: Sequence[TaggedWords]) -> Chance:
        """The score of the most frequent tag; for spans, of every word as a span of the best-scoring kind."""
        tags = Counter(tag for example in examples for tag in example.label or ())
        if not self.has_spans:
            share = max(tags.values()) / tags.total()
            return Chance(share, ONE_SIDED * math.sqrt(share * (1 - share) / tags.total()))
        truths = [list(example.label or ()) for example in examples]
        num_spans = sum(len(find_spans(tags)) for tags in truths)
        kinds = {tag[2:] for tag in tags if tag != OUTSIDE}
        best = max((span_f1([[f"B-{kind}"] * len(tags) for tags in truths], truths) for kind in kinds), default=0.0)
        return Chance(best, ONE_SIDED * math.sqrt(best * (1 - best) / max(num_spans, 1)))


def span_f1(guesses: Sequence[Sequence[str]], truths: Sequence[Sequence[str]]) -> float:
    """F1 of exact spans (kind, start and end), as in conlleval and seqeval."""
    guessed = {(number, span) for number, tags in enumerate(guesses) for span in find_spans(tags)}
    true = {(number, span) for number, tags in enumerate(truths) for span in find_spans(tags)}
    total = len(guessed) + len(true)
    return 2 * len(guessed & true) / total if total else 0.0


def _find_names(tags: Sequence[str], words: Sequence[str]) -> dict[str, set[str]]:
    """The different names of each kind."""
    names: dict[str, set[str]] = {}
    for span in find_spans(tags):
        names.setdefault(span.kind, set()).add("".join(words[span.start : span.end]))
    return names


def _mean_f1(rows: NDArray[Any]) -> float:
    """The mean F1 of all kinds, each with three columns of matches; 0 for a kind that never occurs."""
    kinds = np.split(rows, rows.shape[1] // 3, axis=1)
    return float(np.mean([metrics.f1_of_matches(counts) for counts in kinds]))


def score_kinds(guesses: Sequence[Sequence[str]], truths: Sequence[Sequence[str]]) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of spans, per kind."""
    guessed = [(number, span) for number, tags in enumerate(guesses) for span in find_spans(tags)]
    true = [(number, span) for number, tags in enumerate(truths) for span in find_spans(tags)]
    right = Counter(one[1].kind for one in set(guessed) & set(true))
    num_guessed, num_true = (Counter(span.kind for _, span in spans) for spans in (guessed, true))
    kinds = sorted({*num_guessed, *num_true})
    return {kind: metrics.precision_recall(right[kind], num_guessed[kind], num_true[kind]) for kind in kinds}


def find_spans(tags: Sequence[str]) -> list[Span]:
    """The spans of BIO or BIOES tags; an I- without a preceding tag of its kind starts a span, as in conlleval."""
    spans: list[Span] = []
    kind, start = "", 0
    for number, tag in enumerate([*tags, OUTSIDE]):
        prefix, current = tag[:1], tag[2:]
        begins = prefix in "BSU" or current != kind or (number > 0 and tags[number - 1][:1] in "ESL")
        if kind and (prefix == OUTSIDE or begins):
            spans.append(Span(kind, start, number))
            kind = ""
        if prefix != OUTSIDE and not kind:
            kind, start = current, number
    return spans


def _cut_words(pieces: Sequence[Sequence[int]], room: int) -> Iterator[tuple[int, int]]:
    """Runs of words whose pieces fit into `room`; a longer word is a run by itself and truncated later."""
    start, used = 0, 0
    for number, word in enumerate(pieces):
        if used and used + len(word) > room:
            yield start, number
            start, used = number, 0
        used += len(word)
    yield start, len(pieces)


def _flatten(tags: Sequence[Sequence[str]]) -> NDArray[np.str_]:
    return np.array([tag for sentence in tags for tag in sentence])


def describe_tag_errors(task: TokenTags, answer: Sequence[str], example: TaggedWords) -> list[str]:
    """A wrong answer as Markdown: the sentence with its gold spans marked, and the missed and spurious spans."""
    truth = example.label or ()
    if task.has_spans:
        guessed, true = find_spans(answer), find_spans(truth)
        errors = [
            *(f"- missed {_name_span(span, example)}" for span in true if span not in guessed),
            *(f"- wrongly found {_name_span(span, example)}" for span in guessed if span not in true),
        ] or ["- the spans are right but the tags inside them are not"]
        shown = _mark_spans(true, example)
    else:
        triples = zip(example.words, answer, truth, strict=True)
        errors = [f"- {word}: {guess} instead of {tag}" for word, guess, tag in triples if guess != tag]
        shown = " ".join(example.words)
    return [f"## {example.id}: {len(errors)} errors", "", shown, "", *errors, f"- {example.where}", ""]


def _name_span(span: Span, example: TaggedWords) -> str:
    return f"{span.kind}: {' '.join(example.words[span.start : span.end])}"


def _mark_spans(spans: Sequence[Span], example: TaggedWords) -> str:
    """The sentence with its gold spans in brackets: [Ada](PER) lived in [London](LOC)."""
    words = list(example.words)
    for span in spans:
        words[span.start] = f"[{words[span.start]}"
        words[span.end - 1] = f"{words[span.end - 1]}]({span.kind})"
    return " ".join(words)
