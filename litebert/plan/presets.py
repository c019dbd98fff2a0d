"""The size and cost of presets, and the paper's parameter tables next to our counts."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from litebert.core.errors import ConfigError
from litebert.core.options import build_options, merge, parse_assignments
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.cost import count_parameters, forward_flops_per_token, training_flops_per_token, training_memory
from litebert.model.presets import PAPER_TABLES, PRESETS, preset


def describe_presets(*, batch_size: int, length: int) -> list[dict[str, Any]]:
    """Parameters, FLOPs and training memory of every preset."""
    return [describe_preset(name, batch_size=batch_size, length=length) for name in PRESETS]


def describe_preset(name: str, overrides: Sequence[str] = (), *, batch_size: int, length: int) -> dict[str, Any]:
    """Parameters, FLOPs and training memory of a preset with some keys changed."""
    config = build_options(ModelConfig, merge(asdict(preset(name)), parse_assignments(overrides)))
    title = " ".join([name, *overrides])
    if length > config.max_positions:
        raise ConfigError(
            "text-too-long",
            f"length = {length} is more than the {config.max_positions} positions of {title}",
            option="length",
        )
    heads = _list_heads(config)
    count = count_parameters(config, heads)
    memory = training_memory(config, heads, batch_size=batch_size, length=length)
    return {
        "name": title,
        "config": asdict(config),
        "printed": None if overrides else PRESETS[name].printed,
        "source": None if overrides else PRESETS[name].source,
        "parameters": {
            **asdict(count),
            "without_pooler": count.without_pooler,
            "with_pooler": count.with_pooler,
            "with_heads": count.total,
            "unrolled": count.unrolled,
        },
        "length": length,
        "batch_size": batch_size,
        "forward_flops_per_token": forward_flops_per_token(config, length),
        "training_flops_per_token": training_flops_per_token(config, length),
        "memory_bytes": {**asdict(memory), "total": memory.total},
    }


def compare_with_paper(table: int) -> list[dict[str, Any]]:
    """The rows of a table of the ALBERT paper, with our counts of the same models."""
    if table not in PAPER_TABLES:
        raise ConfigError(
            "unknown-value",
            f"table {table} is not available; choose {', '.join(map(str, PAPER_TABLES))}",
            option="paper_table",
        )
    rows = []
    for row in PAPER_TABLES[table]:
        count = count_parameters(row.config, _list_heads(row.config))
        counted = count.with_pooler if row.counts_pooler else count.without_pooler
        rows.append(
            {
                "name": row.name,
                "embedding_size": row.config.embedding_size,
                "hidden_size": row.config.hidden_size,
                "num_layers": row.config.num_layers,
                "sharing": row.config.sharing,
                "printed_millions": row.printed_millions,
                "ours_millions": round(counted / 1e6, 2),
                "without_pooler": count.without_pooler,
                "with_pooler": count.with_pooler,
                "with_heads": count.total,
                "counts_pooler": row.counts_pooler,
                "note": row.note,
            }
        )
    return rows


def _list_heads(config: ModelConfig) -> list[HeadSpec]:
    """The heads of pre-training."""
    pairs_sentences = config.num_segments > 1 and config.has_pooler
    return [HeadSpec("mlm"), *([HeadSpec("sentence")] if pairs_sentences else [])]
