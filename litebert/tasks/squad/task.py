"""Extractive question answering as a fine-tuning task: SQuAD 1.1, 2.0 and the like."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from litebert.model.config import HeadSpec
from litebert.model.engine import Engine
from litebert.model.heads import forbid
from litebert.model.model import Model
from litebert.tasks.finetuning import ONE_SIDED, Chance, Output, Tally
from litebert.tasks.group_batch import GroupBatch
from litebert.tasks.groups import Group, SequenceForm
from litebert.tasks.squad import decoding
from litebert.tasks.squad.decoding import Passage, Reply, Span
from litebert.tasks.squad.features import build_groups, count_lost_answers
from litebert.tasks.squad.metrics import Threshold, Units, Version, score_questions, summarize_scores, tune_threshold
from litebert.tasks.squad.reading import Question
from litebert.tasks.squad.windows import WindowOptions
from litebert.tasks.task import BatchLoss, Counts
from litebert.text.tokenizer import Tokenizer

SpanHeadKind = Literal["span", "conditional_span"]

NUM_ENDS = 5  # ends per start of the start-conditioned head; the official value


@dataclass(frozen=True)
class SpanTask:
    """The answer is a span of the paragraph, or none; the output is the best spans and the null odds."""

    name: str
    version: Version = "1.1"  # of the metric; in 1.1 every question is answered
    head: SpanHeadKind = "span"
    max_question_length: int = 64
    stride: int = 128
    max_answer_length: int = 30  # in tokens
    num_best: int = 20
    threshold: float | None = None  # of the null odds; None: not tuned yet
    units: Units = "words"  # by which F1 compares answers

    @property
    def metric(self) -> str:
        return "f1"

    @property
    def heads(self) -> tuple[HeadSpec, ...]:
        return (HeadSpec(self.head),)

    def encode(self, examples: Sequence[Question], tokenizer: Tokenizer, form: SequenceForm) -> list[Group]:
        return build_groups(examples, tokenizer, form, WindowOptions(self.max_question_length, self.stride))

    def count(self, part: GroupBatch) -> dict[str, int]:
        return {
            "groups": part.num_groups,
            "windows": len(part.token_ids),
            "tokens": int(part.mask.sum()),
            "positions": part.mask.numel(),
        }

    def loss(self, model: Model, part: GroupBatch, totals: Counts) -> BatchLoss:
        assert part.targets is not None, "nothing to learn from"
        gold_start, gold_end, columns = part.targets.unbind(1)  # (S,) each
        hidden: Tensor = model.encoder(part.token_ids, part.segment_ids, part.mask).hidden  # (S, T, H)
        if self.head == "span":
            # softmax over all real tokens, including the question, as in the official 1.1 head
            start, end = (forbid(logits, part.mask) for logits in model.heads["span"](hidden))
            no_answer = hidden.new_zeros(())
        else:
            logits = model.heads["conditional_span"](hidden, _allow(part, columns), gold_start)
            start, end = logits.start, logits.end[:, 0]
            is_impossible = (gold_start == 0).to(logits.unanswerable.dtype)
            no_answer = F.binary_cross_entropy_with_logits(logits.unanswerable, is_impossible, reduction="sum")
        located = F.cross_entropy(start, gold_start, reduction="sum") + F.cross_entropy(end, gold_end, reduction="sum")
        loss = 0.5 * (located + no_answer) / totals["windows"]
        correct = ((start.argmax(-1) == gold_start) & (end.argmax(-1) == gold_end)).sum()
        return BatchLoss(loss, {"loss": loss.detach(), "correct": correct})

    def summarize(self, sums: Mapping[str, float], totals: Counts) -> dict[str, float]:
        return {"loss": sums["loss"], "train_accuracy": sums["correct"] / totals["windows"]}

    def predict(self, engine: Engine, batch: GroupBatch, groups: Sequence[Group]) -> list[Output]:
        propose = self._propose_pairs if self.head == "span" else self._propose_conditioned
        return propose(engine, batch, groups)

    def combine(self, outputs: Sequence[Output]) -> Output:
        return _to_output(decoding.combine_replies([to_reply(output) for output in outputs], self.num_best))

    def decide(self, output: Output) -> str:
        """The answer's text; empty for no answer."""
        reply = to_reply(output)
        return "" if self._is_silent(reply) or not reply.spans else reply.spans[0].text

    def score(self, outputs: Sequence[Output], examples: Sequence[Question]) -> dict[str, float]:
        """The official EM and F1 with the task's threshold, or, without one, with the best one for these questions."""
        tuned = self._tune(outputs, examples) if self.version == "2.0" else {}
        task = self if not tuned or self.threshold is not None else replace(self, threshold=tuned["f1"].value)
        scores = score_questions([task.decide(output) for output in outputs], examples, self.version, self.units)
        best = {f"best_{metric}": threshold.score / len(examples) for metric, threshold in tuned.items()}
        thresholds = {"threshold": task.threshold} if task.threshold is not None else {}
        return summarize_scores(scores, examples, self.version) | best | thresholds

    def tally(self, outputs: Sequence[Output], examples: Sequence[Question]) -> Tally:
        rows = score_questions([self.decide(output) for output in outputs], examples, self.version, self.units)
        scores = {"exact": lambda rows: float(rows[:, 0].mean()), "f1": lambda rows: float(rows[:, 1].mean())}
        return Tally(np.array(rows).astype(np.float64), scores)

    def describe_lost(self, examples: Sequence[Question], groups: Sequence[Group]) -> str:
        """A note if some answers are not contained in any window; otherwise empty."""
        num_lost = count_lost_answers(examples, groups)
        if not num_lost:
            return ""
        return (
            f"{num_lost:,} of {len(groups):,} questions have no window that contains their whole answer and "
            f"are trained as unanswerable; lower passage.stride or raise train.max_length"
        )

    def wrongness(self, output: Output, example: Question) -> float:
        """What F1 lacks, weighed by how sure the model is of the span."""
        [score] = score_questions([self.decide(output)], [example], self.version, self.units)
        sureness = output["spans"][0][3] if output["spans"] else 1.0
        return 0.0 if score.exact else (1.0 - score.f1) * sureness + 1e-9

    def chance(self, examples: Sequence[Question]) -> Chance:
        """The score of no answer, if that can be right; else of the answer to another question about the paragraph."""
        guesses = [""] * len(examples) if self.version == "2.0" else _answer_the_question_before(examples)
        scores = [score.f1 for score in score_questions(guesses, examples, self.version, self.units)]
        return Chance(float(np.mean(scores)), ONE_SIDED * float(np.std(scores)) / math.sqrt(len(scores)))

    def finish(self, outputs: Sequence[Output], examples: Sequence[Question]) -> "tuple[SpanTask, dict[str, Any]]":
        """The task with its threshold tuned if the answers are known, and the files that the official scripts read."""
        is_known = all(example.answers is not None for example in examples)
        task = self
        if self.version == "2.0" and self.threshold is None and is_known:
            task = replace(self, threshold=self._tune(outputs, examples)["f1"].value)
        return task, task.files(outputs, examples)

    def files(self, outputs: Sequence[Output], examples: Sequence[Question]) -> dict[str, Any]:
        """predictions.json for the leaderboard, the n-best lists, and, for 2.0, the null odds and their threshold."""
        ids = [example.id for example in examples]
        nbest = [[span._asdict() for span in to_reply(output).spans] for output in outputs]
        files = {
            "predictions.json": dict(zip(ids, map(self.decide, outputs), strict=True)),
            "nbest_predictions.json": dict(zip(ids, nbest, strict=True)),
        }
        if self.version == "2.0":
            files["null_odds.json"] = dict(zip(ids, [output["null_odds"] for output in outputs], strict=True))
            # the official script's default of 1.0 would drop answers to questions with larger odds
            files["null_odds_threshold.json"] = self._silent_above
        return files

    def _is_silent(self, reply: Reply) -> bool:
        return self.version == "2.0" and reply.null_odds > self._silent_above

    @property
    def _silent_above(self) -> float:
        return self.threshold or 0.0

    def _tune(self, outputs: Sequence[Output], examples: Sequence[Question]) -> dict[str, Threshold]:
        replies = [to_reply(output) for output in outputs]
        texts = [reply.spans[0].text if reply.spans else "" for reply in replies]
        odds = [reply.null_odds for reply in replies]
        tuned = tune_threshold(
            score_questions(texts, examples, self.version, self.units), odds, examples, [bool(text) for text in texts]
        )
        nothing = sum(not example.has_answer for example in examples)
        return {
            metric: best._replace(value=_settle(best.value, odds, answers_any=best.score > nothing))
            for metric, best in tuned.items()
        }

    def _propose_pairs(self, engine: Engine, batch: GroupBatch, groups: Sequence[Group]) -> list[Output]:
        logits = engine.run("span", batch.to_inputs())
        start, end = (forbid(logits[name].float(), batch.mask).cpu().numpy() for name in ("start", "end"))
        outputs, row = [], 0
        for group in groups:
            rows = slice(row, row := row + len(group.sequences))
            spans = self._list_spans(decoding.propose_pairs(start[rows], end[rows], self.num_best), group.about)
            if not spans and self.version == "1.1":  # the best starts and ends are outside the paragraph, or reversed
                everything = decoding.propose_all(start[rows], end[rows], self.max_answer_length)
                spans = self._list_spans(everything, group.about)
            reply = Reply(spans, float((start[rows, 0] + end[rows, 0]).min()))
            outputs.append(_to_output(reply._replace(null_odds=reply.null_odds - reply.best_score)))
        return outputs

    def _propose_conditioned(self, engine: Engine, batch: GroupBatch, groups: Sequence[Group]) -> list[Output]:
        columns = torch.from_numpy(np.concatenate([group.about.columns for group in groups])).to(batch.mask.device)
        logits = engine.run("conditional_span", batch.to_inputs(_allow(batch, columns)))
        starts = logits["starts"].cpu().numpy()
        start_scores = logits["start"].float().log_softmax(-1).gather(1, logits["starts"]).cpu().numpy()
        end_scores = logits["end"].float().log_softmax(-1).cpu().numpy()
        unanswerable = logits["unanswerable"].float().cpu().numpy()
        outputs, row = [], 0
        for group in groups:
            rows = slice(row, row := row + len(group.sequences))
            candidates = decoding.propose_conditioned(starts[rows], start_scores[rows], end_scores[rows], NUM_ENDS)
            spans = self._list_spans(candidates, group.about)
            outputs.append(_to_output(Reply(spans, float(unanswerable[rows].min()))))
        return outputs

    def _list_spans(self, candidates: decoding.Candidates, passage: Passage) -> tuple[Span, ...]:
        possible = decoding.keep_possible(candidates, passage, self.max_answer_length)
        return decoding.list_spans(possible, passage, self.num_best)


def _settle(best: float, odds: Sequence[float], *, answers_any: bool) -> float:
    """A threshold with the same decisions as the official one, but halfway between the odds of two questions.

    The official one equals the odds of the last question that is answered, so that rounding would decide, or is 0 if
    no question should be answered.
    """
    if not answers_any:
        return min(odds) - 1.0
    above = [value for value in odds if value > best]
    return (best + min(above)) / 2 if above else best + 1.0


def to_reply(output: Output) -> Reply:
    """A reply from its JSON value."""
    return Reply(tuple(Span(*span) for span in output["spans"]), output["null_odds"])


def _to_output(reply: Reply) -> Output:
    spans = [[*span[:3], *(float(f"{value:.7g}") for value in span[3:])] for span in reply.spans]
    return {"spans": spans, "null_odds": float(f"{reply.null_odds:.7g}")}


def _allow(batch: GroupBatch, columns: Tensor) -> Tensor:
    """A mask (S, T) of the allowed answer tokens: the paragraph, and [CLS] for no answer."""
    numbers = torch.arange(batch.mask.shape[1], device=batch.mask.device)
    lengths = batch.mask.sum(1, keepdim=True)
    allowed = (numbers >= columns[:, None]) & (numbers < lengths - 1)  # excludes the last separator
    allowed[:, 0] = True
    return allowed


def _answer_the_question_before(questions: Sequence[Question]) -> list[str]:
    """For each question, the answer to the previous one about its paragraph; for the first, to the last one."""
    last = {question.context: question for question in questions}
    guesses = []
    for question in questions:
        other = last[question.context]
        guesses.append(other.answers[0].text if other.answers and other.id != question.id else "")
        last[question.context] = question
    return guesses
