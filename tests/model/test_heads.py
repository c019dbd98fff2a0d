"""The start-conditioned span head against transformers' XLNet poolers, which are the same layers; and its masks."""

import pytest
import torch
from torch import Tensor
from transformers import XLNetConfig
from transformers.models.xlnet.modeling_xlnet import (
    XLNetPoolerAnswerClass,
    XLNetPoolerEndLogits,
    XLNetPoolerStartLogits,
)

from litebert.model.config import ModelConfig
from litebert.model.heads import FORBIDDEN, ConditionalSpanHead, forbid
from litebert.model.model import build_model

CONFIG = ModelConfig(
    vocab_size=50,
    embedding_size=6,
    hidden_size=12,
    ffn_size=20,
    num_layers=1,
    num_heads=2,
    initializer_range=0.5,
)


@pytest.fixture
def head() -> ConditionalSpanHead:
    head = build_model(CONFIG, ["conditional_span"]).heads["conditional_span"].eval()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3)))
    assert isinstance(head, ConditionalSpanHead)
    return head


@pytest.fixture
def hidden() -> Tensor:
    return torch.randn(3, 9, 12, generator=torch.Generator().manual_seed(4))


def their_poolers(
    head: ConditionalSpanHead,
) -> tuple[XLNetPoolerStartLogits, XLNetPoolerEndLogits, XLNetPoolerAnswerClass]:
    config = XLNetConfig(d_model=12, n_head=2, layer_norm_eps=CONFIG.norm_epsilon)
    start, end, answer = XLNetPoolerStartLogits(config), XLNetPoolerEndLogits(config), XLNetPoolerAnswerClass(config)
    for theirs, ours in (
        (start.dense, head.start),
        (end.dense_0, head.end_dense),
        (end.LayerNorm, head.end_norm),
        (end.dense_1, head.end),
        (answer.dense_0, head.answer_dense),
        (answer.dense_1, head.answer),
    ):
        theirs.load_state_dict(ours.state_dict())
    return start, end, answer


def test_start_end_and_answerability_agree_with_xlnets_poolers(head: ConditionalSpanHead, hidden: Tensor) -> None:
    start_pooler, end_pooler, answer_pooler = their_poolers(head)
    gold_start = torch.tensor([2, 0, 8])
    everywhere = torch.ones(3, 9, dtype=torch.bool)
    ours = head(hidden, everywhere, gold_start)
    their_start = start_pooler(hidden)
    torch.testing.assert_close(ours.start, their_start)
    torch.testing.assert_close(ours.end[:, 0], end_pooler(hidden, start_positions=gold_start))
    start_states = torch.einsum("bt,bth->bh", their_start.softmax(-1), hidden)
    first_token = torch.zeros(3, dtype=torch.long)
    theirs = answer_pooler(hidden, start_states=start_states, cls_index=first_token)
    torch.testing.assert_close(ours.unanswerable, theirs)


def test_without_a_gold_start_ends_are_computed_for_the_best_starts(head: ConditionalSpanHead, hidden: Tensor) -> None:
    everywhere = torch.ones(3, 9, dtype=torch.bool)
    ours = head(hidden, everywhere, num_starts=4)
    assert torch.equal(ours.starts, ours.start.argsort(descending=True)[:, :4])
    for rank in range(4):
        given = head(hidden, everywhere, ours.starts[:, rank])
        torch.testing.assert_close(ours.end[:, rank], given.end[:, 0])


def test_a_forbidden_position_is_neither_start_nor_end(head: ConditionalSpanHead, hidden: Tensor) -> None:
    allowed = torch.arange(9) > torch.tensor([[1], [5], [7]])
    ours = head(hidden, allowed)
    assert ours.start[~allowed].eq(FORBIDDEN).all()
    assert ours.end[~allowed[:, None].expand_as(ours.end)].eq(FORBIDDEN).all()
    assert ours.start[allowed].abs().max() < 1e3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_forbidden_logit_leaves_no_probability_in_any_precision(dtype: torch.dtype) -> None:
    logits = forbid(torch.tensor([1.0, 50.0, 2.0], dtype=dtype), torch.tensor([True, False, True]))
    assert logits.softmax(-1)[1] == 0
    assert logits.isfinite().all()
