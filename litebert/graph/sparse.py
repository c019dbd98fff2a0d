"""Sparse attention as a graph: the same computation as model/sparse.py, in blocks, without any T x T tensor."""

import numpy as np

from litebert.graph.parts import Parts
from litebert.graph.writer import INT64
from litebert.model.sparse import block_distances

HIDDEN = -1e9  # added to the scores of padding, and of keys outside a token's attention pattern
_END = 2**62


def attend_in_blocks(parts: Parts, query: str, key: str, value: str, visible: str) -> str:
    """Write the context (B, T, H) from local and global keys; queries are already scaled.

    `visible` (B, 1, 1, T) is added to the scores. The context of global queries is not written here.
    """
    graph, config = parts.graph, parts.config
    size, num_heads, head_size = config.query_block, config.num_heads, config.head_size
    length = graph.call("Shape", query, start=1, end=2)  # (1,)
    missing = graph.call("Mod", graph.call("Neg", length), graph.integers(size))  # to a multiple of the block size
    split = graph.integers(0, -1, size, num_heads, head_size)
    blocks = graph.call("Reshape", _pad(parts, query, graph.integers(0), missing), split)
    blocks = graph.call("Transpose", blocks, perm=[0, 1, 3, 2, 4])  # (B, blocks, N, C, D)
    flat = graph.call("Reshape", visible, graph.integers(0, -1))  # (B, T)
    places = graph.call("Range", graph.integer(0), graph.call("Squeeze", length), graph.integer(1))
    is_global = graph.call("Less", places, graph.integer(config.num_global_tokens))
    local = graph.call("Add", flat, graph.call("Where", is_global, graph.number(HIDDEN), graph.number(0.0)))
    read = _read_windows if config.attention == "window" else _read_blocks
    keys, values, added = read(parts, key, value, local, missing)
    num_blocks = graph.call("Shape", blocks, start=1, end=2)
    one = graph.integers(1)
    per_block = graph.call("Concat", one, num_blocks, one, one, one, axis=0)
    if config.num_global_tokens:
        keys, values = (
            graph.call("Concat", local_part, graph.call("Expand", _global(parts, states), per_block), axis=3)
            for local_part, states in ((keys, key), (values, value))
        )
        columns = graph.call("Unsqueeze", _first(parts, flat), graph.integers(1, 2, 3))  # (B, 1, 1, 1, G)
        like = graph.call("Concat", graph.call("Shape", added, start=0, end=4), one, axis=0)
        added = graph.call("Concat", added, graph.call("Expand", columns, like), axis=4)
    scores = graph.call("MatMul", blocks, graph.call("Transpose", keys, perm=[0, 1, 2, 4, 3]))
    weights = graph.call("Softmax", graph.call("Add", scores, added), axis=-1)  # (B, blocks, N, C, K + G)
    context = graph.call("Transpose", graph.call("MatMul", weights, values), perm=[0, 1, 3, 2, 4])
    context = graph.call("Reshape", context, graph.integers(0, -1, config.hidden_size))
    return graph.call("Slice", context, graph.integers(0), length, graph.integers(1))


def _read_windows(parts: Parts, key: str, value: str, visible: str, missing: str) -> tuple[str, str, str]:
    """Keys of each block and its neighbours (B, blocks, N, K, D), their values, and the added mask (..., C, K)."""
    graph, config = parts.graph, parts.config
    size, width = config.query_block, config.attention_width
    num_near = -(-width // size)  # neighbours on each side
    ahead = graph.integers(num_near * size)
    behind = graph.call("Add", missing, ahead)
    shape = graph.integers(0, -1, size, config.num_heads, config.head_size)
    near = []
    for states, fill, split in ((key, 0.0, shape), (value, 0.0, shape), (visible, HIDDEN, graph.integers(0, -1, size))):
        padded = _pad(parts, states, ahead, behind, fill)
        shifted = []
        for number in range(2 * num_near + 1):
            start, end = number * size, (number - 2 * num_near) * size or _END
            part = graph.call("Slice", padded, graph.integers(start), graph.integers(end), graph.integers(1))
            shifted.append(graph.call("Reshape", part, split))
        near.append(graph.call("Concat", *shifted, axis=2))
    keys, values = (graph.call("Transpose", states, perm=[0, 1, 3, 2, 4]) for states in near[:2])
    distance = np.arange((2 * num_near + 1) * size) - num_near * size - np.arange(size)[:, None]
    band = graph.store("window", np.where(np.abs(distance) <= width, 0, HIDDEN).astype(np.float32))
    added = graph.call("Add", graph.call("Unsqueeze", near[2], graph.integers(2, 3)), band)  # (B, blocks, 1, C, K)
    return keys, values, added


def _read_blocks(parts: Parts, key: str, value: str, visible: str, missing: str) -> tuple[str, str, str]:
    """The keys of the block that each head reads (B, blocks, N, C, D), their values, and the added mask (..., 1, C)."""
    graph, config = parts.graph, parts.config
    size, num_heads, head_size = config.query_block, config.num_heads, config.head_size
    zero, one = graph.integer(0), graph.integer(1)
    padded = _pad(parts, visible, graph.integers(0), missing, HIDDEN)  # (B, blocks * C)
    of_blocks = graph.call("Reshape", padded, graph.integers(0, -1, size))  # (B, blocks, C)
    is_seen = graph.call("Cast", graph.call("Greater", visible, graph.number(HIDDEN / 2)), to=INT64)
    num_seen = graph.call("ReduceSum", is_seen, graph.integers(1), keepdims=1)  # (B, 1) without global tokens
    total = graph.call("Add", num_seen, graph.integer(config.num_global_tokens + size - 1))
    count = graph.call("Max", graph.call("Div", total, graph.integer(size)), one)  # (B, 1) blocks of each text
    num_blocks = graph.call("Shape", of_blocks, start=1, end=2)
    rows = graph.call("Range", zero, graph.call("Squeeze", graph.call("Shape", visible, start=0, end=1)), one)
    numbers = graph.call("Range", zero, graph.call("Squeeze", num_blocks), one)
    moved = graph.call(
        "Add",
        graph.call("Unsqueeze", numbers, graph.integers(0, 2)),
        graph.store("distances", np.array(block_distances(num_heads), dtype=np.int64)),
    )
    source = graph.call("Mod", moved, graph.call("Unsqueeze", count, graph.integers(2)))  # (B, blocks, N)
    first = graph.call("Mul", graph.call("Unsqueeze", rows, graph.integers(1, 2)), num_blocks)
    source = graph.call("Add", source, first)  # as an index over the rows of all texts
    of_heads = graph.call("Mul", source, graph.integer(num_heads))
    of_heads = graph.call("Add", of_heads, graph.store("heads", np.arange(num_heads, dtype=np.int64)))
    read = []
    for states in (key, value):
        blocks = _pad(parts, states, graph.integers(0), missing)
        blocks = graph.call("Reshape", blocks, graph.integers(-1, size, num_heads, head_size))
        blocks = graph.call("Transpose", blocks, perm=[0, 2, 1, 3])  # (B * blocks, N, C, D)
        blocks = graph.call("Reshape", blocks, graph.integers(-1, size, head_size))
        read.append(graph.call("Gather", blocks, of_heads, axis=0))  # (B, blocks, N, C, D)
    added = graph.call("Gather", graph.call("Reshape", of_blocks, graph.integers(-1, size)), source, axis=0)
    return read[0], read[1], graph.call("Unsqueeze", added, graph.integers(3))


def _pad(parts: Parts, x: str, before: str, after: str, fill: float = 0.0) -> str:
    """x padded by this many tokens before and after, along axis 1."""
    graph = parts.graph
    return graph.call("Pad", x, graph.call("Concat", before, after, axis=0), graph.number(fill), graph.integers(1))


def _first(parts: Parts, x: str) -> str:
    """The first G tokens of x along axis 1, or all of a shorter text."""
    graph = parts.graph
    return graph.call("Slice", x, graph.integers(0), graph.integers(parts.config.num_global_tokens), graph.integers(1))


def _global(parts: Parts, states: str) -> str:
    """The states (B, 1, N, G, D) of the global tokens."""
    graph, config = parts.graph, parts.config
    split = graph.call("Reshape", _first(parts, states), graph.integers(0, 0, config.num_heads, config.head_size))
    return graph.call("Unsqueeze", graph.call("Transpose", split, perm=[0, 2, 1, 3]), graph.integers(1))
