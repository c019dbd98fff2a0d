"""A model's whole graph, from its configuration and weights."""

from collections.abc import Mapping
from typing import Any

from litebert.graph.early_exit import write_early_exit
from litebert.graph.heads import write_head
from litebert.graph.parts import Parts
from litebert.graph.precision import FloatArray, Precision
from litebert.graph.writer import GraphWriter
from litebert.model.config import ModelConfig
from litebert.model.engine import HeadName
from litebert.model.pooling import Pooling


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
    """The ONNX model that answers through a head; `has_exits`: one of classification that may answer early."""
    graph = GraphWriter()
    parts = Parts(graph, config, weights, precision)
    if has_exits:
        assert head == "classification", head
        write_early_exit(parts)
    else:
        write_head(parts, head, mask_id=mask_id, pooling=pooling)
    return graph.to_model({"head": head})
