"""The family of each supported model_type, and why well-known other model types are not supported."""

from pathlib import Path

from litebert.core.errors import DataError
from litebert.interop.names import Family

# model_type of a config.json -> the family whose names and computation it uses
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
_RELATIVE = "other positions: relative, added to the attention scores"
_ROTARY = "other positions: rotary (RoPE)"
_SPARSE = "other attention: sliding window and global tokens"
_PRE_NORM = "other layers: pre-LayerNorm"
_DECODER = "other attention: causal, a decoder"
_TWO_PARTS = "other attention: encoder-decoder"
_REASONS = {
    "deberta": "other attention: disentangled",
    "deberta-v2": "other attention: disentangled",
    "mpnet": _RELATIVE,
    "xlnet": "other attention: relative positions and segment recurrence",
    "transfo-xl": "other attention: relative positions and segment recurrence",
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
    "mobilebert": "other layers: bottlenecks and stacked feed-forward blocks",
    "squeezebert": "other layers: grouped convolutions",
    "convbert": "other attention: convolutions replace half of the heads",
    "funnel": "other attention: sequence pooling between layers",
    "nystromformer": "other attention: Nyström approximation",
    "fnet": "other attention: Fourier transforms instead",
    "rembert": "other embeddings: untied input and output",
    "layoutlm": "other embeddings: 2-D page positions",
    "gpt2": _DECODER,
    "llama": _DECODER,
    "t5": _TWO_PARTS,
    "bart": _TWO_PARTS,
}


def read_model_type(stated: object, where: Path) -> Family:
    """The family that computes a model_type; an unsupported one raises an error that names the difference."""
    model_type = str(stated)[:40]
    if model_type in FAMILIES:
        return FAMILIES[model_type]
    reason = _REASONS.get(model_type, "unknown architecture")
    raise DataError(
        "unsupported-model-type",
        f"{where}: model_type = '{model_type}' is not supported ({reason}): use one of "
        f"{', '.join(FAMILIES)}, or run this model with transformers",
    )
