"""Converts questions to groups: the windows of each question, their targets, and the mapping back to text."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from litebert.tasks.groups import Group, SequenceForm, TokenSequence
from litebert.tasks.squad.decoding import Passage
from litebert.tasks.squad.reading import Question
from litebert.tasks.squad.tokens import IntArray, SquadTokens, encode_squad
from litebert.tasks.squad.windows import (
    WindowOptions,
    Windows,
    find_gold,
    mark_max_context,
    plan_windows,
    write_sequences,
)
from litebert.text.tokenizer import Tokenizer


def build_groups(
    questions: Sequence[Question],
    tokenizer: Tokenizer,
    form: SequenceForm,
    options: WindowOptions,
    *,
    cache: Path | None = None,
) -> list[Group]:
    """One group of W windows per question; its `about` is the `Passage`.

    Targets are (W, 3): the first and the last column of the answer, and the first column of the paragraph.
    """
    tokens = encode_squad(questions, tokenizer, cache)
    windows = plan_windows(tokens, form, options)
    sequences = _cut_sequences(tokens, windows, form)
    targets = np.stack([*find_gold(questions, tokens, windows), windows.columns], axis=1)  # (W, 3)
    bounds = windows.bounds.tolist()
    return [
        Group(tuple(sequences[first:end]), None if question.answers is None else targets[first:end], passage)
        for question, passage, (first, end) in zip(
            questions, _list_passages(questions, tokens, windows), pairwise(bounds), strict=True
        )
    ]


def count_lost_answers(questions: Sequence[Question], groups: Sequence[Group]) -> int:
    """How many questions have an answer that no window contains completely."""
    return sum(
        question.has_answer and group.target is not None and not group.target[:, 0].any()
        for question, group in zip(questions, groups, strict=True)
    )


def _cut_sequences(tokens: SquadTokens, windows: Windows, form: SequenceForm) -> list[TokenSequence]:
    token_ids, bounds = write_sequences(tokens, windows, form)
    num_first: IntArray = windows.columns if form.num_segments > 1 else np.diff(bounds)
    num_cut = tokens.question_lengths[windows.questions] - windows.question_lengths  # paragraphs are never cut
    return [
        TokenSequence(token_ids[start:end], first, cut)
        for (start, end), first, cut in zip(
            pairwise(bounds.tolist()), num_first.tolist(), num_cut.tolist(), strict=True
        )
    ]


def _list_passages(questions: Sequence[Question], tokens: SquadTokens, windows: Windows) -> list[Passage]:
    marks, mark_bounds = mark_max_context(windows)
    places = list(pairwise(tokens.context_bounds.tolist()))
    marked = mark_bounds[windows.bounds].tolist()
    passages = []
    for index, (question, paragraph) in enumerate(zip(questions, tokens.paragraphs.tolist(), strict=True)):
        mine, place = slice(windows.bounds[index], windows.bounds[index + 1]), slice(*places[paragraph])
        passages.append(
            Passage(
                context=question.context,
                starts=tokens.context_starts[place],
                ends=tokens.context_ends[place],
                columns=windows.columns[mine],
                firsts=windows.firsts[mine],
                lengths=windows.lengths[mine],
                has_max_context=marks[marked[index] : marked[index + 1]],
            )
        )
    return passages
