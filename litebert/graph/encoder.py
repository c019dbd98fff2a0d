"""The encoder as a graph: `Encoder.forward` in ONNX nodes. Layers that share a block share its stored tensors."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from litebert.graph.parts import Parts
from litebert.graph.precision import MOSTLY_POSITIVE, FloatArray
from litebert.graph.sparse import HIDDEN, attend_in_blocks
from litebert.graph.writer import FLOAT, INT64
from litebert.model.config import ModelConfig

INPUTS = ("input_ids", "token_type_ids", "attention_mask")  # named as in transformers


def add_inputs(parts: Parts) -> tuple[str, str, str]:
    """Add the three usual inputs, each (B, T)."""
    token_ids, segment_ids, mask = (parts.graph.add_input(name, INT64, ("batch", "length")) for name in INPUTS)
    return token_ids, segment_ids, mask


def write_encoder(parts: Parts, inputs: tuple[str, str, str], *, reads_first: bool = False) -> str:
    """Write the last hidden states (B, T, H); with `reads_first`, only those of the first token, (B, 1, H)."""
    token_ids, segment_ids, mask = inputs
    hidden = write_embeddings(parts, token_ids, segment_ids)
    visible = write_mask(parts, mask)
    rows = parts.config.layer_plan.rows
    for number, row in enumerate(rows, start=1):
        is_sparse, is_last = parts.config.is_sparse(number), number == len(rows)
        hidden = write_layer(parts, hidden, visible, row, is_sparse=is_sparse, reads_first=reads_first and is_last)
    return hidden


def write_embeddings(parts: Parts, token_ids: str, segment_ids: str) -> str:
    """Write the input of the first layer (B, T, H), as `Embeddings.forward` computes it."""
    graph, weights = parts.graph, parts.weights
    segments = graph.store("embeddings.segment", weights["encoder.embeddings.segment.weight"])
    positions = graph.store("embeddings.position", weights["encoder.embeddings.position.weight"])
    length = graph.call("Shape", token_ids, start=1, end=2)
    positions = graph.call("Slice", positions, graph.integers(0), length, graph.integers(0))  # (T, E)
    embedded = graph.call("Add", parts.look_up_tokens(token_ids), graph.call("Gather", segments, segment_ids))
    embedded = parts.norm(graph.call("Add", embedded, positions), "encoder.embeddings.norm")
    return parts.linear(embedded, "encoder.embeddings.projection") if parts.config.has_projection else embedded


def write_mask(parts: Parts, mask: str) -> str:
    """Write the mask added to attention scores (B, 1, 1, T)."""
    graph = parts.graph
    hidden = graph.call("Sub", graph.number(1.0), graph.call("Cast", mask, to=FLOAT))
    return graph.call("Unsqueeze", graph.call("Mul", hidden, graph.number(HIDDEN)), graph.integers(1, 2))


def write_layer(
    parts: Parts,
    hidden: str,
    visible: str,
    row: tuple[int, int],
    *,
    is_sparse: bool = False,
    reads_first: bool = False,
) -> str:
    """Write one layer with these blocks (attention, feed-forward), as `Layer` computes it."""
    attention, ffn = f"encoder.attention.{row[0]}", f"encoder.ffn.{row[1]}"
    graph, read = parts.graph, hidden
    projections = [f"{attention}.{name}" for name in ("query", "key", "value")]
    # The scale of queries is folded into their weights, which saves a pass over all scores.
    parts = replace(parts, weights=_scale_queries(parts.weights, projections[0], parts.config))
    query, key, value = graph.call_many("Split", parts.linear(hidden, *projections), count=3, num_outputs=3, axis=-1)
    if reads_first and not (is_sparse and not parts.config.num_global_tokens):
        query, read = (take_first(parts, states) for states in (query, hidden))
        context = _attend(parts, query, key, value, visible)  # the first token alone, which attends to all tokens
    elif is_sparse:
        context = _attend_sparsely(parts, query, key, value, visible)
        if reads_first:
            context, read = (take_first(parts, states) for states in (context, hidden))
    else:
        context = _attend(parts, query, key, value, visible)
    hidden = parts.norm(graph.call("Add", read, parts.linear(context, f"{attention}.output")), f"{attention}.norm")
    inner = parts.activate(parts.linear(hidden, f"{ffn}.up"))
    update = parts.linear(inner, f"{ffn}.down", zero=MOSTLY_POSITIVE)
    return parts.norm(graph.call("Add", hidden, update), f"{ffn}.norm")


def take_first(parts: Parts, states: str) -> str:
    """Write the hidden states of the first token (B, 1, H)."""
    graph = parts.graph
    return graph.call("Slice", states, graph.integers(0), graph.integers(1), graph.integers(1))


def write_pooled(parts: Parts, hidden: str) -> str:
    """Write the sequence vectors (B, H)."""
    graph = parts.graph
    first = graph.call("Gather", hidden, graph.integer(0), axis=1)
    return graph.call("Tanh", parts.linear(first, "encoder.pooler"))


def _attend(parts: Parts, query: str, key: str, value: str, visible: str) -> str:
    graph, config = parts.graph, parts.config
    shape = graph.integers(0, 0, config.num_heads, config.head_size)  # 0: keep this size
    query, key, value = (
        graph.call("Transpose", graph.call("Reshape", states, shape), perm=order)
        for states, order in ((query, [0, 2, 1, 3]), (key, [0, 2, 3, 1]), (value, [0, 2, 1, 3]))
    )
    scores = graph.call("Add", graph.call("MatMul", query, key), visible)  # (B, N, Q, T)
    context = graph.call("MatMul", graph.call("Softmax", scores, axis=-1), value)  # (B, N, Q, D)
    context = graph.call("Transpose", context, perm=[0, 2, 1, 3])
    return graph.call("Reshape", context, graph.integers(0, 0, config.hidden_size))


def _attend_sparsely(parts: Parts, query: str, key: str, value: str, visible: str) -> str:
    graph, num_global = parts.graph, parts.config.num_global_tokens
    context = attend_in_blocks(parts, query, key, value, visible)
    if not num_global:
        return context
    start, end, axis = graph.integers(0), graph.integers(num_global), graph.integers(1)
    of_rows = _attend(parts, graph.call("Slice", query, start, end, axis), key, value, visible)  # attend to all
    length = graph.call("Shape", query, start=1, end=2)
    return graph.call("Concat", of_rows, graph.call("Slice", context, end, length, axis), axis=1)


def _scale_queries(weights: Mapping[str, FloatArray], name: str, config: ModelConfig) -> dict[str, FloatArray]:
    factor = np.float32(config.head_size**-0.5)
    return {**weights, **{f"{name}.{leaf}": weights[f"{name}.{leaf}"] * factor for leaf in ("weight", "bias")}}
