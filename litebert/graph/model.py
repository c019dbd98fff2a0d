"""The whole ONNX graph of a model, from its configuration and weights."""

from collections.abc import Mapping
from typing import Any

from litebert.graph.early_exit import write_early_exit
from litebert.graph.heads import write_head
from litebert.graph.parts import Parts
from litebert.graph.precision import FloatArray, Precision
from litebert.graph.writer import GraphWriter
from litebert.model.config import ATTENTION_FIELDS, TRAINING_FIELDS, ModelConfig, Pooling, check_fields
from litebert.model.engine import HeadName

# The configuration fields that a graph implements, or may ignore.
FIELDS = (
    TRAINING_FIELDS
    | ATTENTION_FIELDS
    | {
        "vocab_size",
        "embedding_size",
        "hidden_size",
        "ffn_size",
        "num_layers",
        "num_heads",
        "max_positions",
        "num_segments",
        "activation",
        "norm_epsilon",
        "sharing",
        "num_groups",
        "num_inner",
        "layer_map",
        "projection",
        "has_pooler",
    }
)


def build_graph(
    config: ModelConfig,
    weights: Mapping[str, FloatArray],
    head: HeadName,
    *,
    mask_id: int,
    pooling: Pooling = "mean",
    precision: Precision = Precision(),
    has_exits: bool = False,
) -> Any:
    """The ONNX model of one head; with `has_exits`, a classifier with early exit."""
    check_fields(config, FIELDS, writer="the ONNX graph")
    graph = GraphWriter()
    parts = Parts(graph, config, weights, precision)
    if has_exits:
        assert head == "classification", head
        write_early_exit(parts)
    else:
        write_head(parts, head, mask_id=mask_id, pooling=pooling)
    return graph.to_model({"head": head})
