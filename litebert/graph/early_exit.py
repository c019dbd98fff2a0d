"""A classifier with early exit, as a graph: a loop whose body is the one shared layer.

As in model/early_exit.py, texts that have exited leave the batch, so that later layers compute fewer.
"""

import numpy as np

from litebert.core.errors import ConfigError
from litebert.graph.encoder import add_inputs, write_embeddings, write_layer, write_mask, write_pooled
from litebert.graph.parts import Parts
from litebert.graph.writer import BOOL, FLOAT, INT64, GraphWriter
from litebert.model.early_exit import TOLERANCE

PATIENCE = "patience"  # a scalar: layers in a row with the same answer before exit; num_layers or more: no early exit


def write_early_exit(parts: Parts) -> None:
    """Write the whole graph: logits (B, labels), and the layer (B,) at which each text exited."""
    graph, rows = parts.graph, parts.config.layer_plan.rows
    if not parts.config.layer_plan.is_one_layer:
        raise ConfigError(
            "early-exit-needs-one-layer",
            "a graph can answer early only if all layers are the same one: use the engine torch, or no patience",
        )
    if parts.config.attention != "full" and parts.config.full_attention_every:
        raise ConfigError(
            "early-exit-needs-one-layer",
            "a graph can answer early only if all layers attend alike, but full_attention_every = "
            f"{parts.config.full_attention_every}: use the engine torch, or no patience",
        )
    num_labels = len(parts.weights["heads.classification.output.bias"])
    token_ids, segment_ids, mask = add_inputs(parts)
    patience = graph.add_input(PATIENCE, INT64, ())
    hidden = write_embeddings(parts, token_ids, segment_ids)
    size = graph.call("Shape", token_ids, start=0, end=1)  # (1,)
    size_by_labels = graph.call("Concat", size, graph.integers(num_labels), axis=0)
    state = [
        hidden,
        write_mask(parts, mask),
        graph.call("Range", graph.integer(0), graph.call("Squeeze", size), graph.integer(1)),  # the text of each row
        _fill(graph, size, np.int64(-1) if num_labels > 1 else np.float32(np.inf)),  # the answer of the layer before
        _fill(graph, size, np.int64(0)),  # how many times in a row it was the same
        _fill(graph, size_by_labels, np.float32(0)),
        _fill(graph, size, np.int64(0)),
    ]
    body = _write_body(parts, patience, num_labels, len(rows))
    yes = graph.store("yes", np.array(True))
    *_, logits, layers = graph.call_many("Loop", graph.integer(len(rows)), yes, *state, count=len(state), body=body)
    graph.add_output(logits, "logits", FLOAT, ("batch", num_labels))
    graph.add_output(layers, "layers", INT64, ("batch",))


def _write_body(parts: Parts, patience: str, num_labels: int, num_layers: int) -> GraphWriter:
    body = parts.graph.open_body()
    inner = Parts(body, parts.config, parts.weights, parts.precision)
    number = body.add_input("layer", INT64, ())
    body.add_input("is_running", BOOL, ())
    guess_kind = INT64 if num_labels > 1 else FLOAT
    shapes = {
        "hidden": (FLOAT, ("left", "length", parts.config.hidden_size)),
        "visible": (FLOAT, ("left", 1, 1, "length")),
        "rows": (INT64, ("left",)),
        "last": (guess_kind, ("left",)),
        "repeats": (INT64, ("left",)),
        "answers": (FLOAT, ("batch", num_labels)),
        "layers": (INT64, ("batch",)),
    }
    hidden, visible, rows, last, repeats, answers, layers = (body.add_input(n, *shapes[n]) for n in shapes)
    hidden = write_layer(inner, hidden, visible, (0, 0), is_sparse=parts.config.attention != "full")
    logits = inner.exact_linear(write_pooled(inner, hidden), "heads.classification.output")
    guess, is_same = _compare(body, logits, last, num_labels)
    repeats = body.call("Where", is_same, body.call("Add", repeats, body.integer(1)), body.integer(0))
    is_last = body.call("Equal", number, body.integer(num_layers - 1))
    leaves = body.call("Or", body.call("GreaterOrEqual", repeats, patience), is_last)
    stays = body.call("Not", leaves)
    places = body.call("Unsqueeze", body.call("Compress", rows, leaves, axis=0), body.integers(-1))  # (leaving, 1)
    answers = body.call("ScatterND", answers, places, body.call("Compress", logits, leaves, axis=0))
    numbers = body.call("Expand", body.call("Add", number, body.integer(1)), body.call("Shape", places, start=0, end=1))
    layers = body.call("ScatterND", layers, places, numbers)
    staying = [body.call("Compress", values, stays, axis=0) for values in (hidden, visible, rows, guess, repeats)]
    anyone = body.call("ReduceMax", body.call("Cast", stays, to=INT64), keepdims=0)
    body.add_output(body.call("Greater", anyone, body.integer(0)), "is_running_next", BOOL, ())
    for name, value in zip(shapes, (*staying, answers, layers), strict=True):
        kind, shape = shapes[name]
        body.add_output(value, f"{name}_next", kind, [word if word != "left" else "staying" for word in shape])
    return body


def _compare(body: GraphWriter, logits: str, last: str, num_labels: int) -> tuple[str, str]:
    """The answer (B,), and whether it equals that of the previous layer (B,)."""
    if num_labels > 1:
        guess = body.call("ArgMax", logits, axis=-1, keepdims=0)
        return guess, body.call("Equal", guess, last)
    guess = body.call("Squeeze", logits, body.integers(-1))
    distance = body.call("Abs", body.call("Sub", guess, last))
    return guess, body.call("Less", distance, body.number(TOLERANCE))


def _fill(graph: GraphWriter, shape: str, value: np.int64 | np.float32) -> str:
    return graph.call("Expand", graph.store(f"fill {value.dtype} {value}", np.array([value])), shape)
