"""Two-way tables of tensor names in other libraries, as pure data. Each of our tensors has exactly one name there.

A row maps one of our modules to theirs; a module stands for its weight and bias unless the row says otherwise.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from litebert.core.errors import ConfigError
from litebert.model.config import ATTENTION_FIELDS, HeadKind, HeadSpec, ModelConfig, check_attention, check_fields

# The first three can also be written; the others are read-only. XLM-RoBERTa and CamemBERT use RoBERTa's names.
Family = Literal["albert", "bert", "roberta", "ernie", "electra", "distilbert"]

POSITIONS = "encoder.embeddings.position.weight"
SEGMENTS = "encoder.embeddings.segment.weight"
EMBEDDINGS = {
    "encoder.embeddings.token.weight": "embeddings.word_embeddings.weight",
    SEGMENTS: "embeddings.token_type_embeddings.weight",
    POSITIONS: "embeddings.position_embeddings.weight",
    "encoder.embeddings.norm": "embeddings.LayerNorm",
}
PROJECTION: dict[Family, str] = {
    "albert": "albert.encoder.embedding_hidden_mapping_in",
    "electra": "electra.embeddings_project",
}
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
    "distilbert": {
        "query": "attention.q_lin",
        "key": "attention.k_lin",
        "value": "attention.v_lin",
        "output": "attention.out_lin",
        "norm": "sa_layer_norm",
    },
}
FFN: dict[Family, dict[str, str]] = {
    "albert": {"up": "ffn", "down": "ffn_output", "norm": "full_layer_layer_norm"},
    "bert": {"up": "intermediate.dense", "down": "output.dense", "norm": "output.LayerNorm"},
    "distilbert": {"up": "ffn.lin1", "down": "ffn.lin2", "norm": "output_layer_norm"},
}
ATTENTION["roberta"] = ATTENTION["ernie"] = ATTENTION["electra"] = ATTENTION["bert"]
FFN["roberta"] = FFN["ernie"] = FFN["electra"] = FFN["bert"]
LAYERS: dict[Family, str] = {
    "bert": "bert.encoder.layer",
    "roberta": "roberta.encoder.layer",
    "ernie": "ernie.encoder.layer",
    "electra": "electra.encoder.layer",
    "distilbert": "distilbert.transformer.layer",
}
POOLER: dict[Family, str] = {  # ELECTRA and DistilBERT have none
    "albert": "albert.pooler",
    "bert": "bert.pooler.dense",
    "roberta": "roberta.pooler.dense",
    "ernie": "ernie.pooler.dense",
}

_CLASSIFIER = {"output": "classifier"}
_SPAN = {"output": "qa_outputs"}
# No other library has a start-conditioned span head of this shape, so no family has a row for it.
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
    "electra": {
        "mlm": {
            "dense": "generator_predictions.dense",
            "norm": "generator_predictions.LayerNorm",
            "bias": "generator_lm_head.bias",
        },
        "tokens": _CLASSIFIER,
        "span": _SPAN,
    },
    "distilbert": {
        "mlm": {"dense": "vocab_transform", "norm": "vocab_layer_norm", "bias": "vocab_projector.bias"},
        "tokens": _CLASSIFIER,
        "span": _SPAN,
    },
}
HEADS["ernie"] = HEADS["bert"]


def name_table(family: Family, config: ModelConfig, heads: Sequence[HeadSpec] = ()) -> dict[str, str]:
    """Our tensor names -> Hugging Face's, for a model of this family; an error if it cannot express the model."""
    check_fields(config, FIELDS, writer="transformers")
    check_attention(config, writer="transformers")
    modules = {ours: f"{family}.{theirs}" for ours, theirs in EMBEDDINGS.items()}
    if config.has_projection:
        if family not in PROJECTION:
            raise ConfigError(
                "unsupported-projection",
                f"{family} has no projection from E = {config.embedding_size} to H = {config.hidden_size}",
            )
        modules["encoder.embeddings.projection"] = PROJECTION[family]
    for index, theirs in enumerate(_layer_names(family, config)):
        modules |= _under(f"encoder.attention.{index}", theirs, ATTENTION[family])
        modules |= _under(f"encoder.ffn.{index}", theirs, FFN[family])
    if config.has_pooler:
        modules["encoder.pooler"] = _pooler_name(family, heads)
    for spec in heads:
        if spec.kind not in HEADS[family]:
            raise ConfigError("no-head", f"{family} has no name for the head '{spec.kind}'")
        if (family, spec.kind) == ("bert", "sentence") and spec.num_labels != 2:
            raise ConfigError(
                "unsupported-config", f"bert's next-sentence head has two labels, but this one has {spec.num_labels}"
            )
        modules |= _under(f"heads.{spec.kind}", "", HEADS[family][spec.kind])
    return _expand(modules)


def their_group(layer: int, num_layers: int, num_groups: int) -> int:
    """The group of a layer in transformers' ALBERT. Float rounding can make it off by one, as for L = 18, G = 14."""
    return int(layer / (num_layers / num_groups))


def count_groups(config: ModelConfig) -> int:
    """The number of groups with which transformers' ALBERT computes this model; raises an error if there is none."""
    num_groups = max(1, min(config.layer_plan.num_attention_blocks // config.num_inner, config.num_layers))
    group_map = [their_group(layer, config.num_layers, num_groups) for layer in range(config.num_layers)]
    if config.layer_plan.rows == rows_of_groups(group_map, config.num_inner):
        return num_groups
    raise ConfigError(
        "unsupported-sharing", f"albert only shares whole layers in equal groups, not sharing = '{config.sharing}'"
    )


def rows_of_groups(group_map: Sequence[int], num_inner: int) -> tuple[tuple[int, int], ...]:
    """The rows of a layer plan for these groups, renumbered without gaps for unused groups."""
    numbers = {group: number for number, group in enumerate(sorted(set(group_map)))}
    blocks = (numbers[group] * num_inner + inner for group in group_map for inner in range(num_inner))
    return tuple((block, block) for block in blocks)


def _layer_names(family: Family, config: ModelConfig) -> list[str]:
    """Their name of each of our blocks; attention and feed-forward must be shared in the same way."""
    plan = config.layer_plan
    num_blocks = plan.num_attention_blocks
    if family == "albert":
        count_groups(config)
        return [
            f"albert.encoder.albert_layer_groups.{block // config.num_inner}.albert_layers.{block % config.num_inner}"
            for block in range(num_blocks)
        ]
    if plan.rows != tuple((layer, layer) for layer in range(num_blocks)):
        raise ConfigError("unsupported-sharing", f"{family} has no parameter sharing, but sharing = '{config.sharing}'")
    return [f"{LAYERS[family]}.{block}" for block in range(num_blocks)]


def _pooler_name(family: Family, heads: Iterable[HeadSpec]) -> str:
    # RoBERTa's classifier has no pooler; its own dense layer and tanh are the same thing under another name
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


# Our configuration fields -> Hugging Face's keys, for values that carry over unchanged.
CONFIG_KEYS = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "ffn_size": "intermediate_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "max_positions": "max_position_embeddings",
    "num_segments": "type_vocab_size",
    "hidden_dropout_rate": "hidden_dropout_prob",
    "attention_dropout_rate": "attention_probs_dropout_prob",
    "initializer_range": "initializer_range",
    "norm_epsilon": "layer_norm_eps",
}
# Fields expressed by other keys, by the class or the tensors, or not at all (initializer).
FIELDS = (
    frozenset(CONFIG_KEYS)
    | ATTENTION_FIELDS
    | {
        "embedding_size",
        "classifier_dropout_rate",
        "activation",
        "initializer",
        "sharing",
        "num_groups",
        "num_inner",
        "layer_map",
        "projection",
        "has_pooler",
    }
)
CLASSIFIER_DROPOUT_KEY: dict[Family, str] = {
    "albert": "classifier_dropout_prob",
    "bert": "classifier_dropout",
    "roberta": "classifier_dropout",
    "ernie": "classifier_dropout",
    "electra": "classifier_dropout",
    "distilbert": "seq_classif_dropout",
}
ACTIVATION_NAMES = {"gelu_tanh": "gelu_new", "gelu": "gelu", "relu": "relu"}
CLASS_PREFIX: dict[Family, str] = {
    "albert": "Albert",
    "bert": "Bert",
    "roberta": "Roberta",
    "ernie": "Ernie",
    "electra": "Electra",
    "distilbert": "DistilBert",
}
CLASS_SUFFIX: dict[frozenset[HeadKind], str] = {
    frozenset(): "Model",
    frozenset({"mlm", "sentence"}): "ForPreTraining",
    frozenset({"mlm"}): "ForMaskedLM",
    frozenset({"classification"}): "ForSequenceClassification",
    frozenset({"tokens"}): "ForTokenClassification",
    frozenset({"span"}): "ForQuestionAnswering",
    frozenset({"choice"}): "ForMultipleChoice",
}
LABELLED_KINDS: frozenset[HeadKind] = frozenset({"sentence", "classification", "tokens"})
ROBERTA_DEAD_ROWS = 2  # its position table begins with unused rows


def find_family(
    config: ModelConfig, heads: Sequence[HeadSpec], *, pad_id: int = 0, prefers: Family | None = None
) -> Family | None:
    """The Hugging Face family that computes exactly this model, the preferred one first; None if there is none."""
    # RoBERTa counts positions from its padding id, which is 1
    families: list[Family] = ["roberta"] if pad_id == 1 and config.num_segments == 1 else ["bert", "albert"]
    families.sort(key=lambda family: family != prefers)
    kinds = frozenset(spec.kind for spec in heads)
    for family in families:
        try:
            name_table(family, config, heads)
        except ConfigError:
            continue
        # RoBERTa's masked-LM head always uses gelu, whatever its config.json says
        is_exact = family != "roberta" or "mlm" not in kinds or config.activation == "gelu"
        if is_exact and kinds in CLASS_SUFFIX:
            return family
    return None


def their_config(
    family: Family, config: ModelConfig, heads: Sequence[HeadSpec], special_ids: Mapping[str, int | None]
) -> dict[str, object]:
    """The content of a Hugging Face config.json for this model; `special_ids` has pad, cls and sep."""
    check_fields(config, FIELDS, writer="transformers")
    check_attention(config, writer="transformers")
    values: dict[str, object] = {theirs: getattr(config, ours) for ours, theirs in CONFIG_KEYS.items()}
    suffix = CLASS_SUFFIX[frozenset(spec.kind for spec in heads)]
    values |= {
        "architectures": [CLASS_PREFIX[family] + suffix],
        "model_type": family,
        "hidden_act": ACTIVATION_NAMES[config.activation],
        CLASSIFIER_DROPOUT_KEY[family]: config.classifier_dropout_rate,
        "pad_token_id": special_ids["pad"],
        "bos_token_id": special_ids["cls"],
        "eos_token_id": special_ids["sep"],
    }
    if family == "albert":
        values |= {
            "embedding_size": config.embedding_size,
            "num_hidden_groups": count_groups(config),
            "inner_group_num": config.num_inner,
        }
    else:
        values["num_hidden_layers"] = len(config.layer_plan.rows)
    if family == "roberta":
        values["max_position_embeddings"] = config.max_positions + ROBERTA_DEAD_ROWS
    labels = next((spec.num_labels for spec in heads if spec.kind in LABELLED_KINDS), 2)
    if labels != 2:  # their default
        values |= {
            "id2label": {str(number): f"LABEL_{number}" for number in range(labels)},
            "label2id": {f"LABEL_{number}": number for number in range(labels)},
        }
    return values


PROBLEM_TYPES = {
    "classification": "single_label_classification",
    "regression": "regression",
    "multi-label": "multi_label_classification",
}


def their_labels(task: Mapping[str, Any]) -> dict[str, object]:
    """The label keys of a fine-tuned model's config.json; `task` is the checkpoint's."""
    labels = task.get("labels", ())
    values: dict[str, object] = {}
    if labels:
        values |= {
            "id2label": {str(number): label for number, label in enumerate(labels)},
            "label2id": {label: number for number, label in enumerate(labels)},
        }
    elif task.get("kind") == "regression":
        values["num_labels"] = 1
    if task.get("kind") in PROBLEM_TYPES:
        values["problem_type"] = PROBLEM_TYPES[task["kind"]]
    return values
