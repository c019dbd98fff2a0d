"""A server starts with every kind of model that fine-tuning makes."""

from pathlib import Path

import pytest

from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.model.model import build_model
from litebert.serve.server import load_models
from litebert.tasks.catalog import task_facts
from litebert.tasks.classification import Classification
from litebert.text.tokenizer import Tokenizer


@pytest.mark.parametrize("num_texts", [0, 1, 2])
def test_models_of_single_texts_and_of_pairs_are_warmed_up(
    num_texts: int, tiny_checkpoint: Path, tiny_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    task = Classification("classification", ("no", "yes"), num_texts=num_texts)
    model = build_model(load_checkpoint(tiny_checkpoint).config, task.heads)
    content = CheckpointContent(step=1, task=task_facts(task, max_length=48))
    save_checkpoint(tmp_path / "model", model, tiny_tokenizer, content)
    (served,) = load_models([f"it={tmp_path / 'model'}"], device="cpu")
    assert "classify" in served.functions
