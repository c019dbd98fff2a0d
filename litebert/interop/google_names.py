"""Tensor names in Google's TensorFlow code: two-way tables as pure data, and known variants of the names.

The kernel of a linear map is stored as [in, out], the transpose of ours; `output_weights` is [out, in], as ours.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from litebert.interop.names import FIELDS
from litebert.model.config import HeadKind, HeadSpec, ModelConfig, check_attention, check_fields

GoogleFamily = Literal["albert", "bert"]


class Variable(NamedTuple):
    """A variable's name, and whether its two dimensions are transposed with respect to ours."""

    name: str
    is_transposed: bool = False


# Each leaf of one of our modules -> of theirs.
LINEAR = {"weight": Variable("kernel", is_transposed=True), "bias": Variable("bias")}
NORM = {"weight": Variable("gamma"), "bias": Variable("beta")}

EMBEDDINGS = {
    "encoder.embeddings.token.weight": "bert/embeddings/word_embeddings",
    "encoder.embeddings.segment.weight": "bert/embeddings/token_type_embeddings",
    "encoder.embeddings.position.weight": "bert/embeddings/position_embeddings",
}
ATTENTION: dict[GoogleFamily, dict[str, str]] = {
    "albert": {
        "query": "attention_1/self/query",
        "key": "attention_1/self/key",
        "value": "attention_1/self/value",
        "output": "attention_1/output/dense",
        "norm": "LayerNorm",
    },
    "bert": {
        "query": "attention/self/query",
        "key": "attention/self/key",
        "value": "attention/self/value",
        "output": "attention/output/dense",
        "norm": "attention/output/LayerNorm",
    },
}
FFN: dict[GoogleFamily, dict[str, str]] = {
    "albert": {"up": "ffn_1/intermediate/dense", "down": "ffn_1/intermediate/output/dense", "norm": "LayerNorm_1"},
    "bert": {"up": "intermediate/dense", "down": "output/dense", "norm": "output/LayerNorm"},
}
# Heads by tensor: some have no bias, some are stored transposed.
_SIMPLE = {"weight": "output_weights", "bias": "output_bias"}
HEADS: dict[HeadKind, dict[str, Variable]] = {
    "mlm": {
        "dense.weight": Variable("cls/predictions/transform/dense/kernel", is_transposed=True),
        "dense.bias": Variable("cls/predictions/transform/dense/bias"),
        "norm.weight": Variable("cls/predictions/transform/LayerNorm/gamma"),
        "norm.bias": Variable("cls/predictions/transform/LayerNorm/beta"),
        "bias": Variable("cls/predictions/output_bias"),
    },
    "sentence": {f"output.{ours}": Variable(f"cls/seq_relationship/{theirs}") for ours, theirs in _SIMPLE.items()},
    "classification": {f"output.{ours}": Variable(theirs) for ours, theirs in _SIMPLE.items()},
    "choice": {f"output.{ours}": Variable(theirs) for ours, theirs in _SIMPLE.items()},
    "span": {f"output.{ours}": Variable(f"cls/squad/{theirs}") for ours, theirs in _SIMPLE.items()},
    "conditional_span": {
        "start.weight": Variable("start_logits/dense/kernel", is_transposed=True),
        "start.bias": Variable("start_logits/dense/bias"),
        "end_dense.weight": Variable("end_logits/dense_0/kernel", is_transposed=True),
        "end_dense.bias": Variable("end_logits/dense_0/bias"),
        "end_norm.weight": Variable("end_logits/LayerNorm/gamma"),
        "end_norm.bias": Variable("end_logits/LayerNorm/beta"),
        "end.weight": Variable("end_logits/dense_1/kernel", is_transposed=True),
        "end.bias": Variable("end_logits/dense_1/bias"),
        "answer_dense.weight": Variable("answer_class/dense_0/kernel", is_transposed=True),
        "answer_dense.bias": Variable("answer_class/dense_0/bias"),
        "answer.weight": Variable("answer_class/dense_1/kernel", is_transposed=True),
    },
}
# The tensor whose first dimension is the number of labels.
LABELS_AT: dict[HeadKind, str] = {"sentence": "cls/seq_relationship/output_weights", "classification": "output_weights"}

# Optimizer moments are stored under the variable's name with one of these suffixes -> our name of the moment.
SLOTS = {
    "adam_m": "exp_avg",
    "adam_v": "exp_avg_sq",
    "lamb_m": "exp_avg",
    "lamb_v": "exp_avg_sq",
    "Adam": "exp_avg",
    "Adam_1": "exp_avg_sq",
    "AdamWeightDecayOptimizer": "exp_avg",
    "AdamWeightDecayOptimizer_1": "exp_avg_sq",
    "LAMBOptimizer": "exp_avg",
    "LAMBOptimizer_1": "exp_avg_sq",
}
STEP = "global_step"
# Counters of optimizers and of loss scaling, which are not part of a model.
COUNTERS = frozenset({STEP, "beta1_power", "beta2_power", "loss_scale", "good_steps", "current_loss_scale"})
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"  # in TensorFlow 2's object checkpoints, named by attribute


def name_table(
    family: GoogleFamily, config: ModelConfig, heads: Sequence[HeadSpec] = (), groups: "Groups | None" = None
) -> dict[str, Variable]:
    """Our tensor names -> theirs, for a model of this family; `groups` if no layer reads some of ALBERT's groups."""
    check_fields(config, FIELDS, writer="Google's checkpoint")
    check_attention(config, writer="Google's checkpoint")
    table = {ours: Variable(theirs) for ours, theirs in EMBEDDINGS.items()}
    table |= _module("encoder.embeddings.norm", "bert/embeddings/LayerNorm")
    if config.has_projection:
        table |= _module("encoder.embeddings.projection", "bert/encoder/embedding_hidden_mapping_in")
    for block, scope in enumerate(_scopes(family, config, groups)):
        table |= _modules(f"encoder.attention.{block}", scope, ATTENTION[family])
        table |= _modules(f"encoder.ffn.{block}", scope, FFN[family])
    if config.has_pooler:
        table |= _module("encoder.pooler", "bert/pooler/dense")
    for spec in heads:
        table |= {f"heads.{spec.kind}.{ours}": theirs for ours, theirs in HEADS[spec.kind].items()}
    assert len({variable.name for variable in table.values()}) == len(table), "two of our tensors have one name there"
    return table


class Groups(NamedTuple):
    """ALBERT's groups: the stated number, and the groups that some layer actually reads, in the order of our blocks."""

    num_groups: int
    used: tuple[int, ...]


def dead_names(config: ModelConfig, groups: Groups) -> frozenset[str]:
    """The variables of ALBERT's groups that no layer reads."""
    scopes = [
        f"{_ALBERT}/group_{dead}/inner_group_{inner}"
        for dead in sorted(set(range(groups.num_groups)) - set(groups.used))
        for inner in range(config.num_inner)
    ]
    tables = [_modules("", scope, rows["albert"]) for scope in scopes for rows in (ATTENTION, FFN)]
    return frozenset(variable.name for table in tables for variable in table.values())


def google_group(layer: int, num_layers: int, num_groups: int) -> int:
    """The group of a layer in Google's code. Float rounding can make it off by one, as for L = G = 22."""
    return int(layer / num_layers * num_groups)


def canonical_name(name: str) -> str:
    """The name of a variable in the official code, for any known variant."""
    name = re.sub(r":0$", "", name).removeprefix("module/")
    name = re.sub(r"layer_normalization(_\d+)?(?=/|$)", r"LayerNorm\1", name)
    if name.startswith(_SHARED):
        name = name.removeprefix(_SHARED)
        theirs = next((theirs for theirs in SHARED_LAYER if name.startswith(theirs)), "")
        name = f"{_ALBERT}/group_0/inner_group_0/{SHARED_LAYER.get(theirs, '')}{name.removeprefix(theirs)}"
    return name


_ALBERT = "bert/encoder/transformer"
# The layout of brightmart/albert_zh, older than Google's code: the parts of its layer; the first match wins
_SHARED = "bert/encoder/layer_shared/"
SHARED_LAYER = {
    "attention/output/LayerNorm": "LayerNorm",
    "attention": "attention_1",
    "intermediate/dense": "ffn_1/intermediate/dense",
    "output/dense": "ffn_1/intermediate/output/dense",
    "output/LayerNorm": "LayerNorm_1",
}
# There, a token's vector is projected before positions and segments are added: [V, E] and [E, H]
TOKENS, FACTOR = "bert/embeddings/word_embeddings", "bert/embeddings/word_embeddings_2"


def _scopes(family: GoogleFamily, config: ModelConfig, groups: Groups | None) -> list[str]:
    num_blocks = config.layer_plan.num_attention_blocks
    if family == "bert":
        return [f"bert/encoder/layer_{block}" for block in range(num_blocks)]
    used = groups.used if groups else range(num_blocks)
    return [
        f"{_ALBERT}/group_{used[block // config.num_inner]}/inner_group_{block % config.num_inner}"
        for block in range(num_blocks)
    ]


def _modules(ours: str, scope: str, rows: Mapping[str, str]) -> dict[str, Variable]:
    table: dict[str, Variable] = {}
    for our_module, their_module in rows.items():
        table |= _module(f"{ours}.{our_module}", f"{scope}/{their_module}")
    return table


def _module(ours: str, theirs: str) -> dict[str, Variable]:
    leaves = NORM if ours.endswith("norm") else LINEAR
    return {f"{ours}.{leaf}": Variable(f"{theirs}/{there}", flag) for leaf, (there, flag) in leaves.items()}
