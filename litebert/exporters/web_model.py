"""A model's description for the exported page: how to query it and how to display its answers."""

from typing import Any

from litebert.checkpoint import Checkpoint
from litebert.core.errors import ConfigError
from litebert.exporters.onnx_folder import has_exits
from litebert.inference.naming import describe_model, name_model
from litebert.model.engine import HeadName
from litebert.tasks.catalog import name_kind, restore_task, task_facts

# Each head's function in page/functions.js, which is also the name of its view.
FUNCTIONS: dict[HeadName, str] = {
    "mlm": "fill-mask",
    "classification": "classify",
    "tokens": "tokens",
    "span": "answer",
    "conditional_span": "answer",
    "choice": "choose",
    "sentence": "order",
    "embedding": "embed",
}
KINDS_OF_PAGE = ("classification", "regression", "multi-label", "tags", "spans", "choices")
NEEDS_NO_TASK: tuple[HeadName, ...] = ("mlm", "sentence", "embedding")


def describe_for_page(checkpoint: Checkpoint, head: HeadName) -> dict[str, Any]:
    """The content of facts.json: the model as the server lists it, and its task."""
    asked = None if head == "embedding" else checkpoint.task  # vectors need no task
    task = None if asked is None else restore_task(asked, where=str(checkpoint.path))
    if head not in NEEDS_NO_TASK and (task is None or head not in {spec.kind for spec in task.heads}):
        raise ConfigError(
            "no-task",
            f"{checkpoint.path} has a '{head}' head, but no task that says what its outputs mean: fine-tune it first",
        )
    if task is not None and name_kind(task) not in KINDS_OF_PAGE:
        raise ConfigError(
            "no-page", f"{checkpoint.path}: the page does not know the task {task.name}: export it with format onnx"
        )
    length = checkpoint.find_max_length(head)
    facts = describe_model(
        checkpoint, checkpoint.load_tokenizer(), max_length=length, has_exits=has_exits(checkpoint, head)
    )
    model = {"name": name_model(checkpoint.path), "functions": [FUNCTIONS[head]], **facts}
    return {"model": model, "task": None if task is None else task_facts(task, max_length=length)}
