"""The progress of training a vocabulary, read from what the libraries write to standard error while they work."""

import json
import math
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

# SentencePiece's log messages, and roughly which share of its work is then done; the rounds of pruning follow.
_UNIGRAM_MARKS = {"Normalizing": 0.01, "Making suffix array": 0.05, "Extracting": 0.1, "Tokenizing input": 0.35}
_PRUNING_STARTS = 0.38
_KEPT_PER_ROUND = 0.75  # SentencePiece's shrinking_factor
# The stages of `tokenizers`, each with where it starts and ends.
_MERGING_STAGES = {"Tokenize words": (0.0, 0.05), "Count pairs": (0.05, 0.1), "Compute merges": (0.1, 1.0)}

Report = Callable[[float], None]
Reader = Callable[[str], float | None]


class UnigramProgress:
    """Reads SentencePiece's log. Each round of pruning drops a quarter of the pieces, down to the vocabulary's size."""

    def __init__(self, vocab_size: int) -> None:
        self._goal = 1.1 * vocab_size
        self._num_rounds = 0.0
        self._share = 0.0

    def __call__(self, line: str) -> float | None:
        for mark, share in _UNIGRAM_MARKS.items():
            if mark in line:
                return share
        size = re.search(r"EM sub_iter=(\d) size=(\d+)", line)
        if not size:
            return None
        rounds_left = max(0.0, math.log(int(size[2]) / self._goal, 1 / _KEPT_PER_ROUND)) + (size[1] == "0") * 0.5
        self._num_rounds = self._num_rounds or rounds_left
        share = _PRUNING_STARTS + (1 - _PRUNING_STARTS) * max(0.0, 1 - rounds_left / self._num_rounds)
        self._share = max(self._share, share)
        return self._share


def read_merging_progress(line: str) -> float | None:
    """Reads the JSON lines that `tokenizers` writes."""
    if not line.startswith('{"stage"'):
        return None
    entry: dict[str, Any] = json.loads(line)
    first, last = _MERGING_STAGES.get(entry["stage"], (0.0, 0.0))
    return first + (last - first) * float(entry["current"]) / max(1, int(entry["total"]))


@contextmanager
def progress_reported_to(read: Reader, report: Report | None) -> Iterator[None]:
    """Within the block, pass the progress that `read` finds in the library's log to `report`; other lines are dropped.

    The libraries write to file descriptor 2 from native code, so the descriptor is redirected. Python's `sys.stderr`
    keeps writing to where it did.
    """
    if report is None:
        yield
        return
    sys.stderr.flush()
    terminal, (output, input_) = os.dup(2), os.pipe()
    python_stderr = sys.stderr
    writes_to_terminal = _has_descriptor_2(python_stderr)
    os.dup2(input_, 2)
    os.close(input_)
    if writes_to_terminal:
        sys.stderr = os.fdopen(os.dup(terminal), "w", buffering=1, encoding=python_stderr.encoding)
    reader = threading.Thread(target=_read_lines, args=(output, read, report), daemon=True)
    reader.start()
    try:
        yield
    finally:
        os.dup2(terminal, 2)  # the last writer of the pipe is gone: the reader ends
        os.close(terminal)
        reader.join()
        if writes_to_terminal:
            sys.stderr.close()
            sys.stderr = python_stderr


def _has_descriptor_2(stream: IO[str]) -> bool:
    try:
        return stream.fileno() == 2
    except (OSError, ValueError):  # the stream of a test or a notebook is not a file
        return False


def _read_lines(output: int, read: Reader, report: Report) -> None:
    with os.fdopen(output, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            share = read(line)
            if share is not None:
                report(share)
