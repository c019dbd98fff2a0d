"""A model's whole graph, from its configuration and weights."""

from collections.abc import Mapping
from typing import Any

from litebert.graph.heads import write_head
from litebert.graph.parts import Parts
from litebert.graph.precision import FloatArray, Precision
from litebert.graph.writer import GraphWriter
from litebert.model.config import ModelConfig
from litebert.model.reading import ReadHead


def build_graph(
    config: ModelConfig,
    weights: Mapping[str, FloatArray],
    head: ReadHead,
    *,
    mask_id: int,
    precision: Precision = Precision(),
) -> Any:
    """The ONNX model that answers through a head."""
    graph = GraphWriter()
    write_head(Parts(graph, config, weights, precision), head, mask_id=mask_id)
    return graph.to_model({"head": head})
