"""Int8 export within an accuracy limit, measured on a dev file: sensitive matrices stay in float, else it fails."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from litebert.checkpoint import Checkpoint
from litebert.core.errors import DataError, naming_shortages
from litebert.exporters.dev_accuracy import Judge, Verdict, build_judge
from litebert.exporters.onnx_folder import (
    Exported,
    build_head_graph,
    check_is_new,
    choose_head,
    has_exits,
    write_export,
)
from litebert.graph.precision import Precision
from litebert.inference.engines.graphs import BatchEngine, OneGraph
from litebert.inference.engines.onnx_engine import OnnxEngine
from litebert.inference.engines.threads import count_cores
from litebert.inference.export_folder import PER_TOKEN
from litebert.model.engine import HeadName

MAX_FLOAT_SHARE = 1 / 3  # of a model's matrices; with more of them in float, it is not an int8 model
Say = Callable[[str], None]


@dataclass(frozen=True)
class Accuracy:
    """The accuracy that int8 costs on a dev file."""

    metric: str
    num_examples: int
    float_score: float  # in points
    int8_score: float
    num_changed: int  # the number of answers that differ from float's

    @property
    def drop(self) -> float:
        return self.float_score - self.int8_score

    def __str__(self) -> str:
        return (
            f"{self.metric.replace('_', ' ')} {self.float_score:.2f} in float, {self.int8_score:.2f} in int8 "
            f"({0.0 - self.drop:+.2f} points); {self.num_changed:,} of {self.num_examples:,} answers differ"
        )


@dataclass(frozen=True)
class Int8Options:
    """How to measure int8, and how much accuracy it may cost."""

    dev: Path | None = None  # None: nothing is measured
    max_drop: float = 1.0  # points
    say: Say = lambda _: None  # receives messages: how the file was read, and each measurement


@dataclass(frozen=True)
class Int8Graph:
    """An int8 graph, its accuracy (None without a dev file), and the matrices that stay in float."""

    content: bytes
    accuracy: Accuracy | None
    in_float: tuple[str, ...]


@dataclass(frozen=True)
class Int8Export:
    """The files that were written, and the accuracy (None without a dev file)."""

    exported: Exported
    accuracy: Accuracy | None
    in_float: tuple[str, ...]


@naming_shortages("exporting the model", fix="close other programs, or use a machine with more memory")
def export_int8(
    checkpoint: Checkpoint, out: Path, options: Int8Options = Int8Options(), *, head: str = ""
) -> Int8Export:
    """Write a checkpoint in int8; raises an error if that loses more than `max_drop` points on the dev file."""
    check_is_new(out)
    chosen = choose_head(checkpoint, head)
    graph = fit_int8(checkpoint, chosen, options)
    facts: dict[str, Any] = {"precision": "int8", "activations": PER_TOKEN, "in_float": graph.in_float}
    facts["accuracy"] = None if graph.accuracy is None else asdict(graph.accuracy)
    exported = write_export(checkpoint, out, chosen, graph.content, facts)
    return Int8Export(exported, graph.accuracy, graph.in_float)


def fit_int8(checkpoint: Checkpoint, head: HeadName, options: Int8Options) -> Int8Graph:
    """The int8 graph with the fewest matrices in float that loses no more than `max_drop` points."""
    choice, accuracy, precision = _Choice(checkpoint, head), None, Precision(is_int8=True)
    if options.dev is not None:
        accuracy, precision = _fit(choice, build_judge(checkpoint, head, options.dev), options)
    return Int8Graph(choice.build(precision), accuracy, tuple(sorted(precision.in_float)))


class _Choice:
    """A model and a head, for which the precision is chosen."""

    def __init__(self, checkpoint: Checkpoint, head: HeadName) -> None:
        self.checkpoint = checkpoint
        self.head = head
        self._tokenizer = checkpoint.load_tokenizer()

    def build(self, precision: Precision) -> bytes:
        return build_head_graph(self.checkpoint, self.head, self._tokenizer, precision)

    def open(self, precision: Precision) -> BatchEngine:
        is_loop = has_exits(self.checkpoint, self.head)
        graph = OneGraph(self.build(precision), self.head, self.checkpoint.config.max_positions, is_loop)
        return OnnxEngine(graph, count_cores())


def _fit(choice: _Choice, judge: Judge, options: Int8Options) -> tuple[Accuracy, Precision]:
    """The precision with the fewest matrices in float that loses no more than `max_drop` points."""
    for note in judge.notes:
        options.say(note)
    expected = judge.judge(choice.open(Precision()))
    precision = Precision(is_int8=True)
    accuracy = _compare(judge, expected, judge.judge(choice.open(precision)))
    options.say(str(accuracy))
    if accuracy.drop <= options.max_drop:
        return accuracy, precision
    sizes = list_matrices(choice)
    for name in _rank_matrices(choice, judge, expected, list(sizes)):
        tried = replace(precision, in_float=precision.in_float | {name})
        if sum(sizes[one] for one in tried.in_float) > MAX_FLOAT_SHARE * sum(sizes.values()):
            continue  # above MAX_FLOAT_SHARE; a smaller matrix may still fit
        precision = tried
        accuracy = _compare(judge, expected, judge.judge(choice.open(precision)))
        options.say(f"{name} left in float: {accuracy}")
        if accuracy.drop <= options.max_drop:
            return accuracy, precision
    raise DataError(
        "int8-loses-too-much",
        f"int8 loses {accuracy.drop:.2f} points of {judge.metric}, more than the allowed {options.max_drop:g}, even "
        "with a third of the weights kept in float: export in float, or allow a larger drop",
        option="max_drop",
    )


def _compare(judge: Judge, expected: Verdict, found: Verdict) -> Accuracy:
    return Accuracy(judge.metric, judge.num_examples, expected.score, found.score, expected.count_changes(found))


def _rank_matrices(choice: _Choice, judge: Judge, expected: Verdict, names: Sequence[str]) -> list[str]:
    """The matrices that change answers when only they are in int8: largest loss first, then most changed answers."""
    costs: dict[str, tuple[float, float]] = {}
    for name in names:
        alone = Precision(is_int8=True, in_float=frozenset(names) - {name})
        found = judge.judge(choice.open(alone))
        costs[name] = (expected.score - found.score, expected.distance(found))
    return [name for name in sorted(names, key=costs.__getitem__, reverse=True) if costs[name][1]]


def list_matrices(choice: _Choice) -> dict[str, int]:
    """All matrices that int8 quantizes, with their number of values."""
    model = onnx.load_from_string(choice.build(Precision(is_int8=True)))
    kinds = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)
    in_bytes = [tensor for tensor in model.graph.initializer if tensor.data_type in kinds]
    return {
        tensor.name: math.prod(tensor.dims) for tensor in in_bytes if len(tensor.dims) == 2
    }  # the other entries are zero points
