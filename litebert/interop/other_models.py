"""The family of each supported model_type, and why well-known other model types are not supported."""

from pathlib import Path

from litebert.core.errors import DataError
from litebert.interop.names import Family

# model_type of a config.json -> whose names and computation it has
FAMILIES: dict[str, Family] = {
    "albert": "albert",
    "bert": "bert",
    "roberta": "roberta",
    "xlm-roberta": "roberta",
    "camembert": "roberta",
    "ernie": "ernie",
    "electra": "electra",
    "distilbert": "distilbert",
}
_RELATIVE = "other positions: they are relative and enter the attention scores"
_ROTARY = "other positions: queries and keys are rotated (RoPE)"
_SPARSE = "other attention: tokens see a window and a few global tokens"
_PRE_NORM = "other layers: LayerNorm comes before attention and feed-forward, not after"
_DECODER = "other attention: a decoder, where tokens see only what is before them"
_TWO_PARTS = "other attention: an encoder and a decoder"
_REASONS = {
    "deberta": "other attention: content and relative positions are scored apart (disentangled)",
    "deberta-v2": "other attention: content and relative positions are scored apart (disentangled)",
    "mpnet": _RELATIVE,
    "xlnet": "other attention: relative positions, and memory of the segment before",
    "transfo-xl": "other attention: relative positions, and memory of the segment before",
    "longformer": _SPARSE,
    "big_bird": _SPARSE,
    "roformer": _ROTARY,
    "modernbert": _ROTARY,
    "nomic_bert": _ROTARY,
    "eurobert": _ROTARY,
    "new": _ROTARY,  # Alibaba's gte
    "megatron-bert": _PRE_NORM,
    "roberta-prelayernorm": _PRE_NORM,
    "xlm-roberta-xl": _PRE_NORM,
    "mobilebert": "other layers: bottlenecks around attention and several feed-forward blocks",
    "squeezebert": "other layers: grouped convolutions",
    "convbert": "other attention: half of the heads are convolutions",
    "funnel": "other attention: the sequence is pooled between layers",
    "nystromformer": "other attention: an approximation by landmarks",
    "fnet": "other attention: Fourier transforms instead",
    "rembert": "other embeddings: input and output tables are not tied",
    "layoutlm": "other embeddings: places on a page",
    "gpt2": _DECODER,
    "llama": _DECODER,
    "t5": _TWO_PARTS,
    "bart": _TWO_PARTS,
}


def read_model_type(stated: object, where: Path) -> Family:
    """The family that a model_type is computed as; any other is refused with what is different about it."""
    model_type = str(stated)[:40]
    if model_type in FAMILIES:
        return FAMILIES[model_type]
    reason = _REASONS.get(model_type, "another kind of model")
    raise DataError(
        "unsupported-model-type",
        f"{where}: model_type = '{model_type}' is not supported ({reason}): use one of "
        f"{', '.join(FAMILIES)}, or run this model with transformers",
    )
