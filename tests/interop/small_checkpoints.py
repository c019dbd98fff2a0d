"""Checkpoints of a few kilobytes, and what they are compared by."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import transformers
from small_configs import NARROW
from torch import Tensor

from litebert import load_checkpoint
from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.interop.convert import ConvertOptions
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.model import Model, build_model
from litebert.text.tokenizer import Tokenizer

TO_HUGGINGFACE = ConvertOptions(to="huggingface")
ALBERT = replace(NARROW, num_layers=4, max_positions=64, initializer_range=0.3)
PRETRAINING = (HeadSpec("mlm"), HeadSpec("sentence"))


def save(path: Path, config: ModelConfig, heads: tuple[HeadSpec, ...], tokenizer: Tokenizer) -> Model:
    model = build_model(config, heads).eval()
    with torch.no_grad():
        generator = torch.Generator().manual_seed(4)
        for parameter in model.parameters():  # no bias is zero, or a missing one would not show
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    save_checkpoint(path, model, tokenizer, CheckpointContent(7, "seed = 1\n", "# ours\n"))
    return model


def load_theirs(folder: Path, name: str) -> Any:
    model, report = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report
    return model.eval()


def masked_lm_logits(model: Model, token_ids: Tensor) -> Tensor:
    with torch.no_grad():
        return model.masked_lm_logits(model.encoder(token_ids).hidden)


def weights_equal(first: Path, second: Path) -> bool:
    a, b = load_checkpoint(first).load_weights(), load_checkpoint(second).load_weights()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
