"""A student that starts from its teacher's layers, where their shapes allow it.

Blocks of the student are the average of the teacher's blocks at the same depth: of all of them for a shared block.
A narrower embedding table is the truncated singular value decomposition of the teacher's, the best table of its rank.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from litebert.checkpoint import Checkpoint
from litebert.core.errors import ConfigError
from litebert.interop.resharing import BLOCK_NAME, unroll_weights
from litebert.model.config import ModelConfig

_EQUAL = ("hidden_size", "num_heads", "ffn_size", "activation")  # what the blocks of both must have in common
_TABLES = ("token", "segment", "position")
_EMBEDDINGS = "encoder.embeddings"


def start_from_teacher(
    student: ModelConfig, weights: Mapping[str, Tensor], teacher: Checkpoint, *, has_same_tokens: bool
) -> tuple[dict[str, Tensor], str]:
    """The student's weights taken from the teacher's, and a sentence that says how closely."""
    for name in _EQUAL:
        ours, theirs = getattr(student, name), getattr(teacher.config, name)
        if ours != theirs:
            raise ConfigError(
                "conflicting-options",
                f"a student that starts from its teacher's layers needs {name} = {theirs}, but it has {ours}",
                option="start",
            )
    theirs = teacher.load_weights()
    started = dict(weights) | _average_blocks(student, theirs, teacher.config)
    if not has_same_tokens:
        return started, "its blocks are averages of the teacher's; its embeddings are random, as its tokens are others"
    tables, error = _shorten_tables(student, weights, theirs)
    told = (
        f"its token table keeps the teacher's but for an error of {error:.1%}" if error else "its embeddings are equal"
    )
    return started | tables, f"its blocks are averages of the teacher's, {told}"


def _average_blocks(student: ModelConfig, theirs: Mapping[str, Tensor], teacher: ModelConfig) -> dict[str, Tensor]:
    """Each block of the student: the mean of the teacher's layers that lie where the student's layers with it do."""
    unrolled = unroll_weights(teacher, theirs)
    rows, num_theirs = student.layer_plan.rows, len(teacher.layer_plan.rows)
    averaged: dict[str, Tensor] = {}
    leaves = {(found[1], found[3]) for name in unrolled if (found := BLOCK_NAME.fullmatch(name))}
    for bank, leaf in sorted(leaves):
        for block in {row[bank == "ffn"] for row in rows}:
            using = [layer for layer, row in enumerate(rows) if row[bank == "ffn"] == block]
            layers = sorted({n for layer in using for n in _list_layers(layer, len(rows), num_theirs)})
            parts = [unrolled[f"encoder.{bank}.{n}.{leaf}"] for n in layers]
            averaged[f"encoder.{bank}.{block}.{leaf}"] = torch.stack(parts).mean(0)
    return averaged


def _list_layers(layer: int, num_layers: int, num_theirs: int) -> list[int]:
    """The teacher's layers at the depth of one of the student's; at least one."""
    first = layer * num_theirs // num_layers
    return list(range(first, max(first + 1, (layer + 1) * num_theirs // num_layers)))


def _shorten_tables(
    student: ModelConfig, weights: Mapping[str, Tensor], theirs: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], float]:
    """The embeddings at the student's width, and the token table's error: the share of its length that is lost."""
    names = [name for name in weights if name.startswith(_EMBEDDINGS)]
    _check_tables(student, weights, theirs)
    if all(name in theirs for name in names) and student.embedding_size == theirs[names[0]].shape[1]:
        return {name: theirs[name][: len(weights[name])].clone() for name in names}, 0.0
    width, hidden = student.embedding_size, student.hidden_size
    _, values, directions = torch.linalg.svd(theirs[f"{_EMBEDDINGS}.token.weight"].float(), full_matrices=False)
    kept = directions[:width]  # (E, H)
    tables = {}
    for table in _TABLES:
        name = f"{_EMBEDDINGS}.{table}.weight"
        tables[name] = theirs[name][: len(weights[name])].float() @ kept.T
    # The student normalizes before the projection, the teacher after: a normalized vector of width E has length sqrt(E)
    gain, bias = (theirs[f"{_EMBEDDINGS}.norm.{name}"].float() for name in ("weight", "bias"))
    tables[f"{_EMBEDDINGS}.projection.weight"] = gain[:, None] * kept.T * (hidden / width) ** 0.5
    tables[f"{_EMBEDDINGS}.projection.bias"] = bias.clone()
    return tables, float(values[width:].square().sum().sqrt() / values.square().sum().sqrt())


def _check_tables(student: ModelConfig, weights: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> None:
    """Raise unless the tables are no longer than the teacher's, and as wide or to be factorized."""
    for table in _TABLES:
        ours, rows = (len(tensors[f"{_EMBEDDINGS}.{table}.weight"]) for tensors in (weights, theirs))
        if ours > rows:
            raise ConfigError(
                "conflicting-options",
                f"a student that starts from its teacher's layers has at most its {rows} {table}s, not {ours}",
                option="start",
            )
    width = theirs[f"{_EMBEDDINGS}.token.weight"].shape[1]
    if student.embedding_size != width and (not student.has_projection or width != student.hidden_size):
        raise ConfigError(
            "conflicting-options",
            f"a student that starts from its teacher's layers needs embedding_size = {width}, or less if the teacher "
            f"has no projection, but it has {student.embedding_size}",
            option="start",
        )
