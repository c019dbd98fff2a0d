"""Convert a configuration file from elsewhere to our ModelConfig, with their library's defaults for missing keys."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from litebert.core.errors import ConfigError, DataError
from litebert.core.options import build_options
from litebert.interop.google_names import Groups, google_group
from litebert.interop.matching import Store
from litebert.interop.names import (
    CLASSIFIER_DROPOUT_KEY,
    CONFIG_KEYS,
    PROJECTION,
    ROBERTA_DEAD_ROWS,
    Family,
    rows_of_groups,
    their_group,
)
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.sharing import group_of

Dialect = Literal["huggingface", "google"]

_BERT = {
    "vocab_size": 30_522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3_072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}
DEFAULTS: dict[Family, dict[str, Any]] = {
    "albert": {
        **_BERT,
        "vocab_size": 30_000,
        "embedding_size": 128,
        "hidden_size": 4_096,
        "num_hidden_groups": 1,
        "inner_group_num": 1,
        "num_attention_heads": 64,
        "intermediate_size": 16_384,
        "hidden_act": "gelu_new",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "classifier_dropout_prob": 0.1,
    },
    "bert": _BERT,
    "roberta": {**_BERT, "vocab_size": 50_265, "pad_token_id": 1},
    "ernie": _BERT,
    "electra": {
        **_BERT,
        "embedding_size": 128,
        "hidden_size": 256,
        "num_attention_heads": 4,
        "intermediate_size": 1_024,
    },
    "distilbert": {**_BERT, "num_hidden_layers": 6},
}
# DistilBERT's keys -> those of all other families
DISTILBERT_KEYS = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "hidden_dim": "intermediate_size",
    "activation": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}
# "gelu" is the exact (erf) form at Hugging Face, and the tanh approximation in Google's code, BERT's included
ACTIVATIONS: dict[Dialect, dict[str, str]] = {
    "huggingface": {
        "gelu": "gelu",
        "gelu_python": "gelu",
        "gelu_new": "gelu_tanh",
        "gelu_pytorch_tanh": "gelu_tanh",
        "relu": "relu",
    },
    "google": {"gelu": "gelu_tanh", "relu": "relu"},
}
_COUNTS = ("num_hidden_layers", "num_hidden_groups", "inner_group_num")
_MOST_LAYERS = 10_000  # with more, listing all missing tensors would take too long
_FEW_LAYERS = 100  # few enough to list all missing tensors
_LARGEST = 1 << 24  # the largest accepted value: the product of two is still a valid tensor shape
_GOOGLE_DEFAULTS = {"hidden_act": "gelu"}


def read_their_config(values: Mapping[str, Any], family: Family, dialect: Dialect, where: Path) -> ModelConfig:
    """Our configuration for theirs, with a pooler and before looking at the weights."""
    if family == "distilbert":
        values = {DISTILBERT_KEYS.get(key, key): value for key, value in values.items()}
    given = {**DEFAULTS[family], **(_GOOGLE_DEFAULTS if dialect == "google" else {}), **values}
    _check_numbers(given, where)
    _check_expressible(given, family, where)
    activation = str(given["hidden_act"])
    if activation not in ACTIVATIONS[dialect]:
        raise DataError(
            "unsupported-config",
            f"{where}: hidden_act = '{activation}' is not supported ({', '.join(ACTIVATIONS[dialect])})",
        )
    dropout = given.get(CLASSIFIER_DROPOUT_KEY[family])
    fields = {ours: given[theirs] for ours, theirs in CONFIG_KEYS.items()}
    fields |= {
        "embedding_size": _read_embedding_size(given, family, dialect),
        "activation": ACTIVATIONS[dialect][activation],
        "classifier_dropout_rate": given["hidden_dropout_prob"] if dropout is None else dropout,
        **(_read_groups(given, dialect) if family == "albert" else {"sharing": "none"}),
    }
    if dialect == "google":
        fields["classifier_dropout_rate"] = 0.1  # hard-coded in their implementation
    if family == "roberta":
        fields["max_positions"] -= ROBERTA_DEAD_ROWS
    try:
        return build_options(ModelConfig, fields)
    except ConfigError as error:
        raise DataError("unsupported-config", f"{where}: {error}") from None


def _read_embedding_size(given: Mapping[str, Any], family: Family, dialect: Dialect) -> Any:
    """E if the family's code reads it, else H; Google-style BERTs have been trained with a projection too."""
    is_read = family in PROJECTION or dialect == "google"
    return given.get("embedding_size", given["hidden_size"]) if is_read else given["hidden_size"]


def read_google_groups(values: Mapping[str, Any]) -> Groups:
    """ALBERT's groups, as Google's code assigns them to layers."""
    given = {**DEFAULTS["albert"], **values}
    num_groups = int(given["num_hidden_groups"])
    return Groups(num_groups, tuple(sorted(set(_group_map(int(given["num_hidden_layers"]), num_groups, "google")))))


def _read_groups(given: Mapping[str, Any], dialect: Dialect) -> dict[str, Any]:
    num_layers, num_groups, num_inner = (given[key] for key in _COUNTS)
    theirs = _group_map(num_layers, num_groups, dialect)
    if list(theirs) != [group_of(layer, num_layers, num_groups) for layer in range(num_layers)]:
        rows = rows_of_groups(theirs, num_inner)
        return {"sharing": "map", "layer_map": rows, "num_inner": num_inner}
    if num_groups == 1:
        return {"sharing": "all", "num_inner": num_inner}
    if num_groups == num_layers:
        return {"sharing": "none", "num_inner": num_inner}
    return {"sharing": "groups", "num_groups": num_groups, "num_inner": num_inner}


def _group_map(num_layers: int, num_groups: int, dialect: Dialect) -> Sequence[int]:
    group = their_group if dialect == "huggingface" else google_group
    return [group(layer, num_layers, num_groups) for layer in range(num_layers)]


def check_size(config: ModelConfig, heads: Sequence[HeadSpec], store: Store, where: Path) -> None:
    """Raise if a model is so much larger than its file that even listing its tensors would take long."""
    num_blocks = config.layer_plan.num_attention_blocks
    if num_blocks > max(_FEW_LAYERS, len(store.tensors)):
        raise DataError(
            "implausible-config",
            f"{where}: {num_blocks:,} layers, but the weights have only {len(store.tensors):,} tensors",
        )
    for spec in heads:
        if spec.num_labels > _LARGEST:  # from the shape of a tensor without values
            raise DataError(
                "implausible-config", f"{where}: a head with {spec.num_labels:,} labels; the weights are corrupt"
            )


def _check_numbers(given: Mapping[str, Any], where: Path) -> None:
    """Raise if a value that should be a number is not; build_options checks the values themselves."""
    for key in CONFIG_KEYS.values():
        if isinstance(given[key], bool) or not isinstance(given[key], int | float):
            raise DataError("implausible-config", f"{where}: {key} = {given[key]!r} is not a number")
    for key in (*CONFIG_KEYS.values(), "embedding_size", *CLASSIFIER_DROPOUT_KEY.values()):
        number = given.get(key)
        if isinstance(number, int | float) and abs(number) > _LARGEST:
            raise DataError("implausible-config", f"{where}: {key} is over {_LARGEST:,}; no model is that large")
    for key in _COUNTS:
        number = given.get(key, 1)
        if isinstance(number, bool) or not isinstance(number, int) or not 0 < number <= _MOST_LAYERS:
            raise DataError(
                "implausible-config", f"{where}: {key} = {str(number)[:20]} is not a count from 1 to {_MOST_LAYERS}"
            )
    num_layers, num_groups, num_inner = (given.get(key, 1) for key in _COUNTS)
    if max(num_layers, num_groups) * num_inner > _MOST_LAYERS:
        counts = ", ".join(f"{key} = {given.get(key, 1)}" for key in _COUNTS)
        raise DataError(
            "implausible-config", f"{where}: {counts} are more than {_MOST_LAYERS:,} layers; no model is that deep"
        )


def _check_expressible(given: Mapping[str, Any], family: Family, where: Path) -> None:
    """Raise if litebert would silently compute something else."""
    for key, expected in (
        ("position_embedding_type", "absolute"),
        ("is_decoder", False),
        ("add_cross_attention", False),
        ("tie_word_embeddings", True),
    ):
        if given.get(key, expected) != expected:
            raise DataError("unsupported-config", f"{where}: {key} = {given[key]!r}; only {expected!r} is supported")
    if given.get("quantization_config") is not None:
        raise DataError(
            "unsupported-config",
            f"{where}: quantization_config: quantized weights are not supported; use the original model",
        )
    if family == "roberta" and given["pad_token_id"] != 1:
        raise DataError(
            "unsupported-config",
            f"{where}: pad_token_id = {given['pad_token_id']} is not supported: roberta's position ids assume 1",
        )
