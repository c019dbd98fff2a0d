"""Graphs compute what torch does, for every head, sharing and precision, and store what is shared once."""

from collections import Counter
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import onnx
import pytest
import torch

from litebert.graph.model import build_graph
from litebert.graph.parts import TOKENS
from litebert.graph.precision import Precision, quantize_columns, quantize_rows
from litebert.inference.engines.graphs import to_feeds
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.engine import HeadInputs, HeadName
from litebert.model.model import Model, build_model
from litebert.model.presets import preset

onnxruntime = pytest.importorskip("onnxruntime")

MASK_ID = 4
SMALL = ModelConfig(
    vocab_size=60, embedding_size=16, hidden_size=32, ffn_size=48, num_layers=4, num_heads=4, initializer_range=0.1
)
HEADS: tuple[HeadName, ...] = (
    "mlm", "sentence", "classification", "tokens", "span", "conditional_span", "choice", "embedding"
)  # fmt: skip


def build(config: ModelConfig, head: str) -> Model:
    labels = {"classification": 3, "tokens": 5}.get(head, 2)
    model = build_model(config, [] if head == "embedding" else [HeadSpec(head, labels)], seed=1)  # type: ignore[arg-type]
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):  # which begin as zeros, and would hide a bias that is left out
            torch.nn.init.normal_(parameter, std=0.1, generator=torch.Generator().manual_seed(len(name)))
    return model


def invent_inputs(batch_size: int, length: int) -> HeadInputs:
    generator = torch.Generator().manual_seed(length)
    token_ids = torch.randint(5, 60, (batch_size, length), generator=generator)
    token_ids[0, 3] = token_ids[-1, 1] = token_ids[-1, 5] = MASK_ID
    segment_ids = (torch.arange(length) >= length // 2).long().expand(batch_size, -1).contiguous()
    mask = torch.ones(batch_size, length, dtype=torch.bool)
    mask[1:2, -2:] = False
    allowed = (segment_ids == 1) & mask
    allowed[:, 0] = True
    return HeadInputs(token_ids, segment_ids, mask, allowed, MASK_ID)


def graph_of(model: Model, head: HeadName, precision: Precision = Precision()) -> Any:
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    return build_graph(model.config, weights, head, mask_id=MASK_ID, precision=precision)


def run(graph: Any, head: HeadName, inputs: HeadInputs) -> dict[str, np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_outputs()]
    return dict(zip(names, session.run(names, to_feeds(head, inputs, 512)), strict=True))


@pytest.mark.parametrize(
    "changes",
    [
        {"sharing": "all"},
        {"sharing": "none"},
        {"sharing": "groups", "num_groups": 2},
        {"sharing": "attention", "activation": "gelu"},
        {"sharing": "all", "embedding_size": 32, "activation": "relu"},
        {"sharing": "all", "embedding_size": 32, "projection": "always", "num_segments": 2},
    ],
    ids=lambda changes: "-".join(map(str, changes.values())),
)
@pytest.mark.parametrize("head", HEADS)
def test_a_graph_gives_what_torch_gives(head: HeadName, changes: dict[str, Any]) -> None:
    model = build(replace(SMALL, **changes), head)
    graph = graph_of(model, head)
    for inputs in (invent_inputs(3, 16), invent_inputs(1, 24)):  # sizes are free
        expected = model.run(head, inputs)
        found = run(graph, head, inputs)
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values.numpy(), atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    "changes",
    [
        {"attention": "window", "attention_width": 5, "num_global_tokens": 2},
        {"attention": "window", "attention_width": 90, "full_attention_every": 2},
        {"attention": "window", "attention_width": 17, "num_global_tokens": 0},
        {"attention": "block", "attention_width": 8, "num_global_tokens": 2},
        {"attention": "block", "attention_width": 5, "num_global_tokens": 0, "full_attention_every": 3},
    ],
    ids=lambda changes: "-".join(map(str, changes.values())),
)
@pytest.mark.parametrize("head", ["classification", "tokens"])
def test_a_graph_of_sparse_attention_gives_what_torch_gives(head: HeadName, changes: dict[str, Any]) -> None:
    model = build(replace(SMALL, **changes), head)
    graph = graph_of(model, head)
    for length, padding in ((300, 60), (6, 2), (160, 7), (33, 16)):
        inputs = invent_inputs(3, length)
        inputs.mask[1:2, -padding:] = False
        expected, found = model.run(head, inputs)["logits"].numpy(), run(graph, head, inputs)["logits"]
        is_real = inputs.mask.numpy() if head == "tokens" else slice(None)
        np.testing.assert_allclose(found[is_real], expected[is_real], atol=2e-5, err_msg=str(length))


def test_no_tensor_in_a_graph_of_sparse_attention_has_the_square_of_the_length() -> None:
    config = replace(SMALL, attention="window", attention_width=16, max_positions=2048)
    graph = graph_of(build(config, "tokens"), "tokens")
    graph.graph.output.extend(onnx.ValueInfoProto(name=name) for node in graph.graph.node for name in node.output)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = session.run(None, to_feeds("tokens", invent_inputs(1, 2048), 2048))
    assert max(values.size for values in outputs) <= 2048 * config.num_heads * (3 * 16 + 1)


def test_every_head_of_ours_has_a_graph() -> None:
    assert set(HEADS) == set(get_args(HeadName))


@pytest.mark.parametrize("precision", [Precision(), Precision(is_int8=True)], ids=["float", "int8"])
def test_what_is_shared_or_tied_is_stored_once(precision: Precision) -> None:
    model = build(SMALL, "mlm")
    graph = graph_of(model, "mlm", precision)
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor).size for tensor in graph.graph.initializer}
    readers = Counter(name for node in graph.graph.node for name in node.input)
    assert readers["ffn.0.up"] == readers["attention.0.query+key+value"] == SMALL.num_layers
    assert readers[TOKENS] == 2  # looked up, and compared with
    left_out = ("encoder.pooler", "encoder.embeddings.segment")  # not read by this head; too small to tell
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and not name.startswith(left_out)]
    assert sum(size for size in stored.values() if size > 200) == sum(p.numel() for p in matrices)


@pytest.mark.parametrize(("head", "float_limit", "int8_limit"), [("classification", 48e6, 13e6), ("mlm", 48e6, 13e6)])
def test_albert_base_is_as_small_as_its_parameters(head: HeadName, float_limit: float, int8_limit: float) -> None:
    config = preset("albert-base-v2")
    shapes = build_model(config, [head], device="meta").state_dict()  # type: ignore[list-item]
    weights = {name: np.zeros(tensor.shape, dtype=np.float32) for name, tensor in shapes.items()}
    for precision, limit in ((Precision(), float_limit), (Precision(is_int8=True), int8_limit)):
        graph = build_graph(config, weights, head, mask_id=MASK_ID, precision=precision)
        assert len(graph.SerializeToString()) < limit


@pytest.mark.parametrize("head", HEADS)
def test_eight_bits_are_near(head: HeadName) -> None:
    model, inputs = build(SMALL, head), invent_inputs(3, 16)
    found, expected = run(graph_of(model, head, Precision(is_int8=True)), head, inputs), model.run(head, inputs)
    name = next(iter(expected))
    allowed = expected[name].numpy() > -1e20
    difference = found[name][allowed] - expected[name].numpy()[allowed]
    assert 0 < np.abs(difference).max() < 0.4
    assert np.sqrt(np.mean(difference**2)) < 0.1 * np.std(expected[name].numpy()[allowed]) + 0.05


def test_matrices_that_are_named_stay_in_float() -> None:
    model = build(SMALL, "classification")
    kept = frozenset({"ffn.0.down", TOKENS})
    graph = graph_of(model, "classification", Precision(is_int8=True, in_float=kept))
    kinds = {tensor.name: tensor.data_type for tensor in graph.graph.initializer}
    assert kinds["ffn.0.down"] == kinds[TOKENS] == onnx.TensorProto.FLOAT
    assert kinds["ffn.0.up"] == onnx.TensorProto.INT8


def test_bytes_never_overflow_sixteen_bits_and_are_near() -> None:
    matrix = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32) * np.logspace(
        -3, 3, 8, dtype=np.float32
    )
    values, scales = quantize_columns(matrix)
    assert 2 * 255 * int(np.abs(values.astype(int)).max()) <= 32767
    error = np.abs(values * scales - matrix).mean(0) / np.abs(matrix).mean(0)
    assert error.max() < 0.02
    table, of_rows = quantize_rows(matrix.T.copy())
    np.testing.assert_allclose((table.astype(int) - 128) * of_rows[:, None], matrix.T, atol=float(of_rows.max()))
