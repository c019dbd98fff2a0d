"""Sparse attention: each token attends to its neighbours and to a few global tokens of its sequence.

"window": the tokens at most `attention_width` away on either side. "block": blocks of `attention_width` tokens, counted
from the start of the sequence; half of the heads attend to the query's own block, the others to blocks at fixed
distances, cyclically (BlockBERT). In both, the first `num_global_tokens` of a sequence attend to all of it, and all of
it to them.

Scores are computed for blocks of queries and the keys around them, so time and memory are linear in the length T, not
quadratic. On a CPU, PyTorch's fused kernel computes the blocks from views of the keys; the plain form is for dropout,
other devices and torch.compile.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from litebert.model.config import ModelConfig
from litebert.model.dropout import RowNoise

_fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_fused_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


class Span(NamedTuple):
    """Consecutive blocks of C queries, and the K keys that each block may attend to."""

    first_query: int
    num_blocks: int
    block_size: int  # C
    first_key: int  # of the first block; each next block's keys begin C tokens later
    num_keys: int  # K
    mask: Tensor  # (B or 1, blocks or 1, 1, C, K), added to the scores

    def queries(self, x: Tensor) -> Tensor:
        """A view (B, blocks, N, C, *) of x (B, T, N, *)."""
        tokens = x.narrow(1, self.first_query, self.num_blocks * self.block_size)
        return torch.unflatten(tokens, 1, (self.num_blocks, self.block_size)).transpose(2, 3)

    def keys(self, x: Tensor) -> Tensor:
        """A view (B, blocks, N, K, D) of x (B, T, N, D), in which the blocks overlap."""
        tokens = x.narrow(1, self.first_key, (self.num_blocks - 1) * self.block_size + self.num_keys)
        return tokens.unfold(1, self.num_keys, self.block_size).transpose(3, 4)

    def add_to_keys(self, x: Tensor, update: Tensor) -> None:
        """Add gradients (B, blocks, N, K, D) of keys to x (B, T, N, D), in which the blocks overlap."""
        for start in range(0, self.num_keys, self.block_size):
            part = update[:, :, :, start : start + self.block_size]  # at most C keys per block: these do not overlap
            shifted = self._replace(first_key=self.first_key + start, num_keys=part.shape[3])
            shifted.keys(x).add_(part)


@dataclass(frozen=True)
class Windows:
    """The local part of window attention: all queries of a row, in at most three spans."""

    spans: tuple[Span, ...]

    def parts(self, query: Tensor, key: Tensor, value: Tensor) -> Iterator["Part"]:
        for span in self.spans:
            yield Part(span.queries(query), span.keys(key), span.keys(value), span.mask)

    def queries(self, x: Tensor) -> Iterator[Tensor]:
        """The entries (..., N, C, *) of x (B, T, N, *) for the queries of each part."""
        return (span.queries(x) for span in self.spans)

    def restore(self, parts: list[Tensor]) -> Tensor:
        """The values (B, T, N, *) of all queries from those of the parts, (..., N, C, *)."""
        return torch.cat([part.transpose(2, 3).flatten(1, 2) for part in parts], dim=1)

    def add_gradients(self, gradients: tuple[Tensor, Tensor, Tensor], of_parts: list[tuple[Tensor, ...]]) -> None:
        """Add the gradients of each part's queries, keys and values to those of the states (B, T, N, D)."""
        query, key, value = gradients
        for span, (of_query, of_key, of_value) in zip(self.spans, of_parts, strict=True):
            span.queries(query).copy_(of_query)
            span.add_to_keys(key, of_key)
            span.add_to_keys(value, of_value)


@dataclass(frozen=True)
class Blocks:
    """The local part of block attention. There are M blocks of C slots; each sequence starts a new block."""

    token_at: Tensor  # (M * C,) the token in each slot, as an index into the flattened batch
    empty: Tensor  # the slots without a token, which are read as 0 and get no gradient
    slot_of: Tensor  # (B * T,) the slot of each token
    source: Tensor  # (M, N) the block that each head reads
    mask: Tensor  # (M, N, 1, C), added to the scores

    def parts(self, query: Tensor, key: Tensor, value: Tensor) -> Iterator["Part"]:
        (of_query,) = self.queries(query)
        yield Part(of_query, self._read(key), self._read(value), self.mask)

    def queries(self, x: Tensor) -> Iterator[Tensor]:
        num_blocks, block_size = len(self.source), self.mask.shape[-1]
        slots = x.flatten(0, 1)[self.token_at].index_fill(0, self.empty, 0)
        yield torch.unflatten(slots, 0, (num_blocks, block_size)).transpose(1, 2)

    def restore(self, parts: list[Tensor]) -> Tensor:
        (only,) = parts
        return only.transpose(1, 2).flatten(0, 1)[self.slot_of]  # (B * T, N, *)

    def add_gradients(self, gradients: tuple[Tensor, Tensor, Tensor], of_parts: list[tuple[Tensor, ...]]) -> None:
        ((of_query, *of_read),) = of_parts
        gradients[0].copy_(self.restore([of_query]).view_as(gradients[0]))
        for gradient, of_blocks in zip(gradients[1:], of_read, strict=True):
            # Each block is read once by each head, so there is nothing to sum.
            moved = torch.empty_like(of_blocks)
            moved[self.source, torch.arange(moved.shape[1], device=moved.device)] = of_blocks
            gradient.copy_(self.restore([moved]).view_as(gradient))

    def _read(self, x: Tensor) -> Tensor:
        """The states (M, N, C, D) of the block that each head reads."""
        (blocks,) = self.queries(x)
        return blocks[self.source, torch.arange(blocks.shape[1], device=x.device)]


class Part(NamedTuple):
    """Queries and keys in blocks, whose scores are computed together."""

    query: Tensor  # (..., N, C, D)
    key: Tensor  # (..., N, K, D)
    value: Tensor
    mask: Tensor  # added to the scores (..., N, C, K)


@dataclass(frozen=True)
class SparseMask:
    """The attention mask of the sparse layers, built once per pass for all of them."""

    config: ModelConfig
    sequence_ids: Tensor  # (B, T) from 1; 0 = padding
    local: Windows | Blocks
    globals_at: Tensor  # (B, G) positions of global tokens; rows with fewer are filled with other positions
    is_global: Tensor  # (B, G)
    columns: Tensor  # (B, T, 1, G), added to scores whose keys are global tokens
    rows: Tensor  # (B, 1, G, T), added to scores whose queries are global tokens

    def are_global(self, read_at: Tensor) -> bool:
        """Whether all of these positions (B, Q) are global tokens; False where checking would be expensive."""
        if torch.compiler.is_compiling() or read_at.device.type != "cpu" or read_at.shape[1] > self.globals_at.shape[1]:
            return False
        flags = torch.zeros_like(self.sequence_ids, dtype=torch.bool).scatter(1, self.globals_at, self.is_global)
        return bool(flags.gather(1, read_at).all())

    def see_sequences(self, read_at: Tensor) -> Tensor:
        """The additive mask (B, 1, Q, T) of queries that attend to their whole sequence."""
        ids = self.sequence_ids
        same = ids.gather(1, read_at)[:, None, :, None] == ids[:, None, None, :]
        return _to_scores(same & (ids > 0)[:, None, None, :], self.columns.dtype)

    def select(self, rows: Tensor) -> "SparseMask | Tensor | None":
        """The mask of some rows of the batch."""
        return build_sparse_mask(self.config, self.sequence_ids[rows], self.columns.dtype)


def build_sparse_mask(config: ModelConfig, sequence_ids: Tensor, dtype: torch.dtype) -> SparseMask | Tensor | None:
    """The mask of the sparse layers for tokens of these sequences (B, T), numbered from 1 in each row (0 = padding).

    For a text that is not much longer than a window, computing all scores is faster: it gets a dense additive mask, or
    None if every token attends to every other.
    """
    length, width = sequence_ids.shape[1], config.attention_width
    is_window = config.attention == "window"
    if length <= max(width + is_window, config.num_global_tokens):
        return _sees_all(sequence_ids, dtype)
    if length <= config.dense_length:
        return _to_scores(see_densely(config, sequence_ids)[:, 0], dtype)[:, None]
    is_first = _positions_in_sequences(sequence_ids) < config.num_global_tokens
    is_global = is_first & (sequence_ids > 0)  # (B, T)
    num_global = int(is_global.sum(1).max())
    chosen, globals_at = is_global.long().sort(dim=1, descending=True, stable=True)
    chosen, globals_at = chosen[:, :num_global] > 0, globals_at[:, :num_global]  # (B, G) each
    same = sequence_ids[:, :, None] == sequence_ids.gather(1, globals_at)[:, None, :]  # (B, T, G)
    seen = same & chosen[:, None, :]
    key_ids = sequence_ids.masked_fill(is_global | (sequence_ids == 0), -1)  # global keys have their own columns
    build = _build_windows if is_window else _build_blocks
    return SparseMask(
        config=config,
        sequence_ids=sequence_ids,
        local=build(config, sequence_ids, key_ids, dtype),
        globals_at=globals_at,
        is_global=chosen,
        columns=_to_scores(seen, dtype)[:, :, None],
        rows=_to_scores((same & (sequence_ids > 0)[:, :, None]).transpose(1, 2), dtype)[:, None],
    )


def see_densely(config: ModelConfig, sequence_ids: Tensor) -> Tensor:
    """Whether a token attends to another in a sparse layer: (B, 1, T, T), or (B, N, T, T) for block attention."""
    at = _positions_in_sequences(sequence_ids)  # (B, T)
    is_global = at < config.num_global_tokens
    of_query, of_key = at[:, None, :, None], at[:, None, None, :]
    if config.attention == "window":
        near = (of_query - of_key).abs() <= config.attention_width
    else:
        width = config.attention_width
        runs = _number_runs(sequence_ids)
        lengths = (runs[:, :, None] == runs[:, None, :]).sum(-1)[:, None, :, None]  # (B, 1, T, 1)
        distances = torch.tensor(block_distances(config.num_heads), device=at.device)[:, None, None]
        near = (of_query // width + distances) % -(-lengths // width) == of_key // width
    near = near | is_global[:, None, :, None] | is_global[:, None, None, :]
    same = sequence_ids[:, None, :, None] == sequence_ids[:, None, None, :]
    return near & same & (sequence_ids > 0)[:, None, None, :]


def block_distances(num_heads: int) -> list[int]:
    """Distance in blocks from each head's queries to its keys: 0 for half of the heads, then 1, -1, 2, -2, 4, -4 ..."""
    num_own = (num_heads + 1) // 2
    return [0] * num_own + [2 ** (n // 2) * (-1) ** n for n in range(num_heads - num_own)]


def attend_sparsely(
    projected: Tensor, mask: SparseMask, num_heads: int, *, rate: float = 0.0, noise: RowNoise | None = None
) -> Tensor:
    """The context (B, T, H) of queries, keys and values (B, T, 3 H), with attention dropout at this rate."""
    query, key, value = torch.unflatten(projected, 2, (3, num_heads, -1)).unbind(2)  # (B, T, N, D) each
    is_fused = rate == 0 and projected.device.type == "cpu" and not torch.compiler.is_compiling()
    if is_fused:
        context: Tensor = _SparseAttention.apply(projected, mask, num_heads)  # type: ignore[no-untyped-call]
    else:
        context = _attend_plainly(query, key, value, mask, rate, noise)
    if not mask.globals_at.shape[1]:
        return context.flatten(2)
    at = mask.globals_at[:, :, None, None].expand(-1, -1, *query.shape[2:])  # (B, G, N, D)
    of_rows = _attend_globally(query.gather(1, at), key, value, mask, rate, noise)  # (B, G, N, D)
    of_rows = torch.where(mask.is_global[:, :, None, None], of_rows.to(context.dtype), context.gather(1, at))
    return context.scatter(1, at, of_rows).flatten(2)


def _attend_globally(
    query: Tensor, key: Tensor, value: Tensor, mask: SparseMask, rate: float, noise: RowNoise | None
) -> Tensor:
    """The context (B, G, N, D) of global queries (B, G, N, D), which attend to their whole sequence."""
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))  # (B, N, G or T, D)
    added = mask.rows.to(query.dtype)
    if noise is None or rate == 0:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=added, dropout_p=rate).transpose(1, 2)
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1) + added  # (B, N, G, T)
    weights = noise.drop(scores.softmax(-1).transpose(1, 2), rate, "global probabilities")  # (B, G, N, T)
    return (weights.transpose(1, 2) @ value).transpose(1, 2)


def _attend_plainly(
    query: Tensor, key: Tensor, value: Tensor, mask: SparseMask, rate: float, noise: RowNoise | None
) -> Tensor:
    """The context (B, T, N, D) of local attention and global keys; global queries are computed separately."""
    local, (batch_size, length, num_heads, _) = mask.local, query.shape
    query = query * query.shape[-1] ** -0.5
    columns = _score_columns(query, key, mask)  # (B, T, N, G)
    of_columns = local.queries(columns)
    parts = list(local.parts(query, key, value))
    kept: Iterator[Tensor | None] = iter([None] * len(parts))
    if noise is not None and rate > 0:
        num_keys = max(part.key.shape[-2] for part in parts) + columns.shape[-1]
        ones = columns.new_ones(batch_size, length, num_heads, num_keys)
        # drawn per position, so that a row gets the same mask in every batch
        kept = local.queries(noise.drop(ones, rate, "probabilities"))
    contexts, weights_of_columns = [], []
    for part, scores_of_columns, kept_of_part in zip(parts, of_columns, kept, strict=True):
        scores = part.query @ part.key.transpose(-2, -1) + part.mask.to(query.dtype)  # (..., N, C, K)
        weights = torch.cat([scores_of_columns, scores], -1).softmax(-1)  # (..., N, C, G + K)
        kept_here = None if kept_of_part is None else kept_of_part[..., : weights.shape[-1]]
        weights = F.dropout(weights, rate) if kept_here is None else weights * kept_here
        contexts.append(weights[..., columns.shape[-1] :] @ part.value)
        weights_of_columns.append(weights[..., : columns.shape[-1]])
    context = local.restore(contexts).view(batch_size, length, num_heads, -1)
    if not columns.shape[-1]:
        return context
    in_order = local.restore(weights_of_columns).view_as(columns)
    return context + _weigh_columns(in_order, value, mask)


class _SparseAttention(torch.autograd.Function):
    """`_attend_plainly` with PyTorch's fused kernel, which stores no scores; the backward pass recomputes them.

    The kernel computes only a block's local keys; global keys are added here. `total` is the log-sum-exp over both
    kinds, with which the kernel's backward pass gives the local part of the gradients.
    """

    @staticmethod
    def forward(ctx: Any, projected: Tensor, mask: SparseMask, num_heads: int) -> Tensor:
        query, key, value = torch.unflatten(projected, 2, (3, num_heads, -1)).unbind(2)  # (B, T, N, D) each
        outputs = [_run(part) for part in mask.local.parts(query, key, value)]
        context = mask.local.restore([of_part for of_part, _ in outputs]).view(query.shape)
        total = mask.local.restore([sums[..., None] for _, sums in outputs]).view(query.shape[:3])  # (B, T, N)
        if mask.globals_at.shape[1]:
            scores = _score_columns(query * query.shape[-1] ** -0.5, key, mask).to(total.dtype)  # (B, T, N, G)
            local, total = total, torch.logaddexp(total, scores.logsumexp(-1))
            share, weights = (local - total).exp(), (scores - total[..., None]).exp()
            context = context * share[..., None].to(context.dtype)
            context += _weigh_columns(weights.to(context.dtype), value, mask)
        ctx.save_for_backward(projected, context, total)
        ctx.mask, ctx.num_heads = mask, num_heads
        return context

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        projected, context, total = ctx.saved_tensors
        mask, split = ctx.mask, (3, ctx.num_heads, -1)
        query, key, value = torch.unflatten(projected, 2, split).unbind(2)  # (B, T, N, D) each
        of_projected = torch.zeros_like(projected)
        of_states = torch.unflatten(of_projected, 2, split).unbind(2)
        along = (mask.local.queries(x) for x in (gradient, context, total[..., None]))
        of_parts = [
            _run_backward(part, of_part, output, sums[..., 0])
            for part, of_part, output, sums in zip(mask.local.parts(query, key, value), *along, strict=True)
        ]
        mask.local.add_gradients(of_states, of_parts)
        if mask.globals_at.shape[1]:
            scale = query.shape[-1] ** -0.5
            weights = (_score_columns(query * scale, key, mask).to(total.dtype) - total[..., None]).exp()
            keys, values = _take(key, mask), _take(value, mask)  # (B, G, N, D)
            moved = torch.einsum("btnd,bgnd->btng", gradient, values) - (gradient * context).sum(-1, keepdim=True)
            of_scores = (weights * moved).to(query.dtype) * scale  # (B, T, N, G)
            of_states[0].add_(torch.einsum("btng,bgnd->btnd", of_scores, keys))
            at = mask.globals_at[:, :, None, None].expand_as(keys)
            of_states[1].scatter_add_(1, at, torch.einsum("btng,btnd->bgnd", of_scores, query))
            of_states[2].scatter_add_(1, at, torch.einsum("btng,btnd->bgnd", weights.to(query.dtype), gradient))
        return of_projected, None, None


def _run(part: Part) -> tuple[Tensor, Tensor]:
    """The context (..., N, C, D) of a part's queries, and the log-sum-exps (..., N, C) of their scores."""
    outputs = [_fused(*inputs, attn_mask=added) for *inputs, added in _rows(*part)]
    contexts, sums = zip(*outputs, strict=True)
    shape = part.query.shape
    return torch.stack(contexts).view(shape), torch.stack(sums).view(shape[:-1])


def _run_backward(part: Part, gradient: Tensor, context: Tensor, sums: Tensor) -> tuple[Tensor, ...]:
    """The gradients of a part's queries, keys and values."""
    each = [
        _fused_backward(of_row, query, key, value, output, of_sums, 0.0, False, attn_mask=added)
        for query, key, value, of_row, output, of_sums, added in _rows(*part[:3], gradient, context, sums, part.mask)
    ]
    stacked = (torch.stack(of_rows) for of_rows in zip(*each, strict=True))
    return tuple(x.view(like.shape) for x, like in zip(stacked, part[:3], strict=True))


def _rows(*inputs: Tensor) -> Iterator[list[Tensor]]:
    """Split inputs (B, blocks, N, ...), of which the last is a mask, into the four dimensions that the kernel takes."""
    first, mask = inputs[0], inputs[-1]
    if first.dim() == 4:
        yield list(inputs)
    elif first.shape[1] == 1:
        yield [x.squeeze(1) for x in inputs]
    else:
        for row in range(len(first)):
            yield [*(x[row] for x in inputs[:-1]), mask[row if len(mask) > 1 else 0]]


def _score_columns(query: Tensor, key: Tensor, mask: SparseMask) -> Tensor:
    """The scores (B, T, N, G) of global tokens as keys, for queries (B, T, N, D) that are already scaled."""
    scores = torch.einsum("btnd,bgnd->btng", query, _take(key, mask))
    return scores + mask.columns.to(scores.dtype)


def _weigh_columns(weights: Tensor, value: Tensor, mask: SparseMask) -> Tensor:
    """The sum (B, T, N, D) of the global tokens' values, weighted by (B, T, N, G)."""
    return torch.einsum("btng,bgnd->btnd", weights, _take(value, mask))


def _take(x: Tensor, mask: SparseMask) -> Tensor:
    """The states (B, G, N, D) of global tokens."""
    return x.gather(1, mask.globals_at[:, :, None, None].expand(-1, -1, *x.shape[2:]))


def _build_windows(config: ModelConfig, ids: Tensor, key_ids: Tensor, dtype: torch.dtype) -> Windows:
    length, width = ids.shape[1], config.attention_width
    block_size = config.query_block
    is_uniform = bool((ids == 1).all())  # all rows have the same mask, and so do all blocks after the global tokens
    if is_uniform:
        ids, key_ids = ids[:1], key_ids[:1]
    begin = -(-(width + config.num_global_tokens) // block_size) * block_size
    num_blocks = max(0, (length - width - begin) // block_size)
    end = begin + num_blocks * block_size
    layout = [(0, 1, begin, 0, begin + width)] if num_blocks else []
    layout += [(begin, num_blocks, block_size, begin - width, block_size + 2 * width)] if num_blocks else []
    last = end if num_blocks else 0
    layout += [(last, 1, length - last, max(0, last - width), length - max(0, last - width))]
    spans = []
    for place in layout:
        span = Span(*place, ids)
        offset = torch.arange(span.num_keys) + span.first_key - span.first_query
        near = (torch.arange(span.block_size)[:, None] - offset).abs() <= width  # (C, K)
        of_queries = span.queries(ids[:, :, None, None])  # (B, blocks, 1, C, 1)
        of_keys = span.keys(key_ids[:, :, None, None]).transpose(3, 4)  # (B, blocks, 1, 1, K)
        if is_uniform and span.num_blocks > 1:
            of_queries, of_keys = of_queries[:, :1], of_keys[:, :1]
        seen = (of_queries == of_keys) & near.to(ids.device)
        spans.append(span._replace(mask=_to_scores(seen, dtype)))
    return Windows(tuple(spans))


def _build_blocks(config: ModelConfig, ids: Tensor, key_ids: Tensor, dtype: torch.dtype) -> Blocks:
    width, device = config.attention_width, ids.device
    runs = _number_runs(ids).flatten()  # (B * T,)
    at = _positions_in_sequences(ids).flatten()
    counts = -(-runs.bincount() // width)  # blocks of each run
    first = counts.cumsum(0) - counts
    slot_of = first[runs] * width + at
    token_at = slot_of.new_zeros(int(counts.sum()) * width)
    token_at[slot_of] = torch.arange(len(slot_of), device=device)
    empty = torch.ones_like(token_at).index_fill(0, slot_of, 0).nonzero().squeeze(1)
    of_slots = torch.full_like(token_at, -1)
    of_slots[slot_of] = key_ids.flatten()  # (M * C,) -1: not a local key
    run_of_block = torch.arange(len(counts), device=device).repeat_interleave(counts)  # (M,)
    number = torch.arange(len(run_of_block), device=device) - first[run_of_block]
    distances = torch.tensor(block_distances(config.num_heads), device=device)
    source = (number[:, None] + distances) % counts[run_of_block, None] + first[run_of_block, None]  # (M, N)
    seen = (of_slots >= 0).view(-1, width)[source][:, :, None]  # (M, N, 1, C)
    return Blocks(token_at, empty, slot_of, source, _to_scores(seen, dtype))


def _number_runs(sequence_ids: Tensor) -> Tensor:
    """The number (B, T) of each token's run of equal ids, counted across all rows."""
    starts = torch.ones_like(sequence_ids)
    starts[:, 1:] = sequence_ids[:, 1:] != sequence_ids[:, :-1]
    return starts.flatten().cumsum(0).view_as(sequence_ids) - 1


def _positions_in_sequences(sequence_ids: Tensor) -> Tensor:
    """The position (B, T) of each token in its sequence."""
    at = torch.arange(sequence_ids.shape[1], device=sequence_ids.device).expand_as(sequence_ids)
    is_start = torch.ones_like(sequence_ids, dtype=torch.bool)
    is_start[:, 1:] = sequence_ids[:, 1:] != sequence_ids[:, :-1]
    return at - at.masked_fill(~is_start, 0).cummax(1).values


def _sees_all(sequence_ids: Tensor, dtype: torch.dtype) -> Tensor | None:
    """The additive mask of full attention within each sequence; None if there is only one, without padding."""
    if bool((sequence_ids == 1).all()):
        return None
    same = sequence_ids[:, None, :, None] == sequence_ids[:, None, None, :]
    return _to_scores(same & (sequence_ids > 0)[:, None, None, :], dtype)


def _to_scores(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """The additive mask: 0 where seen, else a number so low that a softmax gives 0.

    Not -inf: a query without any key (padding, or one with only global keys) would give NaN.
    """
    lowest = max(-1e30, torch.finfo(dtype).min / 2)
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill(~seen, lowest)
