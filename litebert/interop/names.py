"""What others call our tensors: two-way tables, pure data. Each of our tensors has exactly one name there, and back.

A row maps one of our modules to theirs; a module stands for its weight and bias unless the row says otherwise.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from litebert.core.errors import ConfigError
from litebert.model.config import HeadKind, HeadSpec, ModelConfig

Family = Literal["albert", "bert", "roberta"]

EMBEDDINGS = {
    "encoder.embeddings.token.weight": "embeddings.word_embeddings.weight",
    "encoder.embeddings.segment.weight": "embeddings.token_type_embeddings.weight",
    "encoder.embeddings.position.weight": "embeddings.position_embeddings.weight",
    "encoder.embeddings.norm": "embeddings.LayerNorm",
}
PROJECTION = {"encoder.embeddings.projection": "encoder.embedding_hidden_mapping_in"}
ATTENTION: dict[Family, dict[str, str]] = {
    "albert": {
        "query": "attention.query",
        "key": "attention.key",
        "value": "attention.value",
        "output": "attention.dense",
        "norm": "attention.LayerNorm",
    },
    "bert": {
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "output": "attention.output.dense",
        "norm": "attention.output.LayerNorm",
    },
}
FFN: dict[Family, dict[str, str]] = {
    "albert": {"up": "ffn", "down": "ffn_output", "norm": "full_layer_layer_norm"},
    "bert": {"up": "intermediate.dense", "down": "output.dense", "norm": "output.LayerNorm"},
}
ATTENTION["roberta"], FFN["roberta"] = ATTENTION["bert"], FFN["bert"]
POOLER: dict[Family, str] = {"albert": "albert.pooler", "bert": "bert.pooler.dense", "roberta": "roberta.pooler.dense"}

_CLASSIFIER = {"output": "classifier"}
_SPAN = {"output": "qa_outputs"}
# The start-conditioned span head is nobody else's in this shape, so no family has a row for it.
HEADS: dict[Family, dict[HeadKind, dict[str, str]]] = {
    "albert": {
        "mlm": {"dense": "predictions.dense", "norm": "predictions.LayerNorm", "bias": "predictions.bias"},
        "sentence": {"output": "sop_classifier.classifier"},
        "classification": _CLASSIFIER,
        "tokens": _CLASSIFIER,
        "choice": _CLASSIFIER,
        "span": _SPAN,
    },
    "bert": {
        "mlm": {
            "dense": "cls.predictions.transform.dense",
            "norm": "cls.predictions.transform.LayerNorm",
            "bias": "cls.predictions.bias",
        },
        "sentence": {"output": "cls.seq_relationship"},
        "classification": _CLASSIFIER,
        "tokens": _CLASSIFIER,
        "choice": _CLASSIFIER,
        "span": _SPAN,
    },
    "roberta": {
        "mlm": {"dense": "lm_head.dense", "norm": "lm_head.layer_norm", "bias": "lm_head.bias"},
        "classification": {"output": "classifier.out_proj"},
        "tokens": _CLASSIFIER,
        "choice": _CLASSIFIER,
        "span": _SPAN,
    },
}


def name_table(family: Family, config: ModelConfig, heads: Sequence[HeadSpec] = ()) -> dict[str, str]:
    """Our tensor names -> Hugging Face's, for a model of this family; what they cannot express is refused."""
    modules = {ours: f"{family}.{theirs}" for ours, theirs in EMBEDDINGS.items()}
    if config.has_projection:
        if family != "albert":
            raise ConfigError(
                f"{family} has no projection from E = {config.embedding_size} to H = {config.hidden_size}"
            )
        modules |= {ours: f"{family}.{theirs}" for ours, theirs in PROJECTION.items()}
    for index, theirs in enumerate(_layer_names(family, config)):
        modules |= _under(f"encoder.attention.{index}", theirs, ATTENTION[family])
        modules |= _under(f"encoder.ffn.{index}", theirs, FFN[family])
    if config.has_pooler:
        modules["encoder.pooler"] = _pooler_name(family, heads)
    for spec in heads:
        if spec.kind not in HEADS[family]:
            raise ConfigError(f"{family} has no name for the head '{spec.kind}'")
        modules |= _under(f"heads.{spec.kind}", "", HEADS[family][spec.kind])
    return _expand(modules)


def _layer_names(family: Family, config: ModelConfig) -> list[str]:
    """Their name of each of our blocks; attention and feed-forward have to be shared alike."""
    plan = config.layer_plan
    num_blocks = plan.num_attention_blocks
    if family == "albert":
        num_groups, remainder = divmod(num_blocks, config.num_inner)
        # what Hugging Face's ALBERT computes for that many groups
        as_groups = replace(config, sharing="groups", num_groups=min(num_groups, config.num_layers), layer_map=())
        if remainder or plan != as_groups.layer_plan:
            raise ConfigError(f"albert shares whole layers in equal groups; sharing = '{config.sharing}' is not that")
        return [
            f"albert.encoder.albert_layer_groups.{block // config.num_inner}.albert_layers.{block % config.num_inner}"
            for block in range(num_blocks)
        ]
    if plan.rows != tuple((layer, layer) for layer in range(num_blocks)):
        raise ConfigError(f"{family} shares nothing, but sharing = '{config.sharing}'")
    return [f"{family}.encoder.layer.{block}" for block in range(num_blocks)]


def _pooler_name(family: Family, heads: Iterable[HeadSpec]) -> str:
    # RoBERTa's classifier has no pooler; the dense layer and tanh of its own are the same thing under another name
    if family == "roberta" and any(spec.kind == "classification" for spec in heads):
        return "classifier.dense"
    return POOLER[family]


def _under(ours: str, theirs: str, rows: Mapping[str, str]) -> dict[str, str]:
    return {f"{ours}.{a}": f"{theirs}.{b}".removeprefix(".") for a, b in rows.items()}


def _expand(modules: Mapping[str, str]) -> dict[str, str]:
    tensors: dict[str, str] = {}
    for ours, theirs in modules.items():
        if ours.endswith((".weight", ".bias")):
            tensors[ours] = theirs
        else:
            tensors |= {f"{ours}.{leaf}": f"{theirs}.{leaf}" for leaf in ("weight", "bias")}
    assert len(set(tensors.values())) == len(tensors), "two of our tensors have one name there"
    return tensors
