"""The heads as graphs. Outputs are named as in `Engine.run` (model/engine.py)."""

from collections.abc import Callable
from typing import get_args

import numpy as np

from litebert.core.errors import ConfigError
from litebert.graph.encoder import add_inputs, write_encoder, write_pooled
from litebert.graph.parts import Parts
from litebert.graph.writer import BOOL, FLOAT, INT64
from litebert.model.config import HeadKind, Pooling
from litebert.model.engine import NUM_STARTS, HeadName
from litebert.model.heads import FORBIDDEN, NEEDS_POOLER

ALLOWED = "answer_mask"  # input of the start-conditioned head: 1 for tokens that an answer may contain


def write_head(parts: Parts, head: HeadName, *, mask_id: int, pooling: Pooling = "mean") -> None:
    """Write the whole graph of a model with one head."""
    inputs = add_inputs(parts)
    if head in NEEDS_POOLER:
        pooled = write_pooled(parts, write_encoder(parts, inputs, reads_first=True))
        _give_logits(parts, write_output(parts, pooled, head), "batch", num_labels(parts, head))
        return
    hidden = write_encoder(parts, inputs)
    if head == "mlm":
        _write_masked_words(parts, inputs[0], hidden, mask_id)
    elif head == "embedding":
        _write_embedding(parts, inputs[2], hidden, pooling)
    else:
        _WRITERS[head](parts, inputs[2], hidden)


def write_output(parts: Parts, states: str, head: str) -> str:
    """Write the last linear map of a head."""
    return parts.exact_linear(states, f"heads.{head}.output")


def num_labels(parts: Parts, head: str) -> int:
    return len(parts.weights[f"heads.{head}.output.bias"])


def _give_logits(parts: Parts, logits: str, *shape: str | int) -> None:
    parts.graph.add_output(logits, "logits", FLOAT, shape)


def _write_masked_words(parts: Parts, token_ids: str, hidden: str, mask_id: int) -> None:
    """Logits (M, V), one row per mask in reading order; the graph finds the masks and computes no other positions."""
    graph = parts.graph
    is_mask = graph.call("Equal", token_ids, graph.integer(mask_id))
    places = graph.call("Transpose", graph.call("NonZero", is_mask), perm=[1, 0])  # (M, 2)
    states = graph.call("GatherND", hidden, places)  # (M, H)
    states = parts.norm(parts.activate(parts.linear(states, "heads.mlm.dense")), "heads.mlm.norm")
    logits = parts.compare_with_tokens(states, parts.weights["heads.mlm.bias"])
    _give_logits(parts, logits, "masks", parts.config.vocab_size)


def _write_tokens(parts: Parts, mask: str, hidden: str) -> None:
    del mask
    _give_logits(parts, write_output(parts, hidden, "tokens"), "batch", "length", num_labels(parts, "tokens"))


def _write_spans(parts: Parts, mask: str, hidden: str) -> None:
    del mask
    graph = parts.graph
    both = graph.call_many("Split", write_output(parts, hidden, "span"), count=2, num_outputs=2, axis=-1)
    for logits, name in zip(both, ("start", "end"), strict=True):
        graph.add_output(graph.call("Squeeze", logits, graph.integers(-1)), name, FLOAT, ("batch", "length"))


def _write_embedding(parts: Parts, mask: str, hidden: str, pooling: Pooling) -> None:
    """Write the pooled embeddings (B, H), as in `model/pooling.py`."""
    graph = parts.graph
    if pooling == "cls":
        vectors = graph.call("Gather", hidden, graph.integer(0), axis=1)
    elif pooling == "max":
        real = graph.call("Unsqueeze", graph.call("Cast", mask, to=BOOL), graph.integers(-1))  # (B, T, 1)
        vectors = graph.call("ReduceMax", _forbid(parts, hidden, real), graph.integers(1), keepdims=0)
    else:
        weights = graph.call("Unsqueeze", graph.call("Cast", mask, to=FLOAT), graph.integers(-1))  # (B, T, 1)
        total = graph.call("ReduceSum", graph.call("Mul", hidden, weights), graph.integers(1), keepdims=0)
        vectors = graph.call("Div", total, graph.call("ReduceSum", weights, graph.integers(1), keepdims=0))
    graph.add_output(vectors, "embedding", FLOAT, ("batch", parts.config.hidden_size))


def _write_conditional_spans(parts: Parts, mask: str, hidden: str) -> None:
    del mask
    graph, name = parts.graph, "heads.conditional_span"
    given = graph.add_input(ALLOWED, INT64, ("batch", "length"))
    allowed = graph.call("Cast", given, to=BOOL)
    start = graph.call("Squeeze", parts.exact_linear(hidden, f"{name}.start"), graph.integers(-1))
    start = _forbid(parts, start, allowed)  # (B, T)
    length = graph.call("Shape", given, start=1, end=2)
    num_starts = graph.call("Min", length, graph.integers(NUM_STARTS))
    _, starts = graph.call_many("TopK", start, num_starts, count=2, axis=-1)  # (B, K)
    end = _forbid(parts, _write_ends(parts, hidden, starts), graph.call("Unsqueeze", allowed, graph.integers(1)))
    likely = graph.call("Unsqueeze", graph.call("Softmax", start, axis=-1), graph.integers(1))  # (B, 1, T)
    likely = graph.call("Squeeze", graph.call("MatMul", likely, hidden), graph.integers(1))  # (B, H)
    first = graph.call("Gather", hidden, graph.integer(0), axis=1)
    features = graph.call("Concat", likely, first, axis=-1)
    features = graph.call("Tanh", parts.exact_linear(features, f"{name}.answer_dense"))
    unanswerable = graph.call("Squeeze", parts.exact_linear(features, f"{name}.answer"), graph.integers(-1))
    graph.add_output(start, "start", FLOAT, ("batch", "length"))
    graph.add_output(starts, "starts", INT64, ("batch", "starts"))
    graph.add_output(end, "end", FLOAT, ("batch", "starts", "length"))
    graph.add_output(unanswerable, "unanswerable", FLOAT, ("batch",))


def _write_ends(parts: Parts, hidden: str, starts: str) -> str:
    """Logits (B, K, T) of the end positions for each start (B, K)."""
    graph, name = parts.graph, "heads.conditional_span"
    weight = parts.weights[f"{name}.end_dense.weight"]  # (H, 2 H): of the token, then of the start
    of_token, of_start = np.split(weight, 2, axis=1)
    start_states = graph.call("GatherND", hidden, graph.call("Unsqueeze", starts, graph.integers(-1)), batch_dims=1)
    from_tokens = graph.call("MatMul", hidden, graph.store(f"{name}.of_token", of_token.T))
    from_starts = graph.call("MatMul", start_states, graph.store(f"{name}.of_start", of_start.T))
    bias = graph.store(f"{name}.end_dense.bias", parts.weights[f"{name}.end_dense.bias"])
    from_starts = graph.call("Add", from_starts, bias)
    summed = graph.call(
        "Add",
        graph.call("Unsqueeze", from_tokens, graph.integers(1)),
        graph.call("Unsqueeze", from_starts, graph.integers(2)),
    )  # (B, K, T, H)
    states = parts.norm(graph.call("Tanh", summed), f"{name}.end_norm")
    return graph.call("Squeeze", parts.exact_linear(states, f"{name}.end"), graph.integers(-1))


def _forbid(parts: Parts, logits: str, allowed: str) -> str:
    return parts.graph.call("Where", allowed, logits, parts.graph.number(FORBIDDEN))


_WRITERS: dict[str, Callable[[Parts, str, str], None]] = {
    "tokens": _write_tokens,
    "span": _write_spans,
    "conditional_span": _write_conditional_spans,
}


def check_head(head: str, has: tuple[str, ...]) -> None:
    """Raise if a model does not have a head; every encoder has embeddings."""
    if head not in (*get_args(HeadKind), "embedding") or head not in (*has, "embedding"):
        raise ConfigError("no-such-head", f"the model has no head '{head}'; it has {', '.join((*has, 'embedding'))}")
