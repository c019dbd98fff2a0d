"""Planning sequences of one segment: whole sentences in a row, up to the room, as RoBERTa's two formats have them."""

import numpy as np
from numpy.typing import NDArray

from litebert.batches.pair_kernels import Starts
from litebert.batches.randomness import State, combine, draw_below, draw_unit
from litebert.core.compiled import compiled


@compiled
def plan_runs(
    sentences: Starts,
    documents: Starts,
    room: int,
    short_rate: float,
    may_cross: bool,
    key: np.uint64,
    ranges: NDArray[np.int64],
    lengths: NDArray[np.int32],
    is_lead: NDArray[np.bool_],
) -> int:
    """Fill the token range, length and lead of each run of one pass; returns how many there are.

    A run that crosses documents (`may_cross`) has a [SEP] more at each border. A sentence longer than the room is
    cut into windows: nothing is lost.
    """
    state = np.zeros(1, np.uint64)
    state[0] = key
    target = _draw_run_target(room, short_rate, state)
    count = 0
    begin = end = separators = 0  # the open run: tokens begin..end
    begins_document = True
    for document in range(len(documents) - 1):
        if not may_cross:
            state[0] = combine(key, np.uint64(document))
        for sentence in range(documents[document], documents[document + 1]):
            is_first = sentence == documents[document]
            border = 1 if may_cross and is_first and end > begin else 0
            stop = sentences[sentence + 1]
            fits = stop - begin + separators + border <= target and (may_cross or not is_first)
            if end > begin and not fits:
                count = _write_run(begin, end, separators, begins_document, count, ranges, lengths, is_lead)
                target = _draw_run_target(room, short_rate, state)
                begin, separators, border, begins_document = end, 0, 0, is_first
            while stop - begin > room:  # only ever a sentence that stands alone
                count = _write_run(begin, begin + room, 0, begins_document, count, ranges, lengths, is_lead)
                begin, begins_document = begin + room, False
            end = stop
            separators += border
    if end > begin:
        count = _write_run(begin, end, separators, begins_document, count, ranges, lengths, is_lead)
    return count


@compiled
def _draw_run_target(room: int, short_rate: float, state: State) -> int:
    return 2 + draw_below(state, room - 1) if draw_unit(state) < short_rate else room


@compiled
def _write_run(
    begin: int,
    end: int,
    separators: int,
    begins_document: bool,
    count: int,
    ranges: NDArray[np.int64],
    lengths: NDArray[np.int32],
    is_lead: NDArray[np.bool_],
) -> int:
    ranges[count, 0], ranges[count, 1] = begin, end
    lengths[count] = end - begin + separators + 2
    is_lead[count] = begins_document
    return count + 1
