"""ONNX export: a folder with the tokenizer and a graph that plain onnxruntime runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.checkpoint import TOKENIZER, Checkpoint
from litebert.core.errors import ConfigError, naming_shortages
from litebert.core.files import atomic_directory, write_json
from litebert.graph.heads import check_head
from litebert.graph.model import build_graph
from litebert.graph.precision import Precision
from litebert.inference.engines.graphs import load_arrays
from litebert.inference.export_folder import GRAPH_FILE, describe_export, write_facts
from litebert.interop.foreign_task import OUR_KEY
from litebert.interop.huggingface import CONFIG_FILE
from litebert.interop.names import find_family, their_config, their_labels
from litebert.interop.tokenizer_files import write_tokenizer_files
from litebert.model.engine import HeadName
from litebert.tasks.catalog import find_head, restore_task
from litebert.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Exported:
    """The files that were written."""

    path: Path
    head: HeadName
    num_bytes: int  # of the graph


@naming_shortages("exporting the model", fix="close other programs, or use a machine with more memory")
def export_onnx(checkpoint: Checkpoint, out: Path, *, head: str = "", facts: dict[str, Any] | None = None) -> Exported:
    """Write a checkpoint in float; `out` appears when it is complete, or not at all."""
    chosen = choose_head(checkpoint, head)
    graph = build_head_graph(checkpoint, chosen, checkpoint.load_tokenizer(), Precision())
    return write_export(checkpoint, out, chosen, graph, {"precision": "float32", **(facts or {})})


def choose_head(checkpoint: Checkpoint, wanted: str = "") -> HeadName:
    """The head of this name; by default the fine-tuned head, else the first one, else embeddings."""
    has = tuple(spec.kind for spec in checkpoint.heads)
    if wanted:
        check_head(wanted, has)
        return wanted  # type: ignore[return-value]
    if checkpoint.task is not None:
        return find_head(restore_task(checkpoint.task, where=str(checkpoint.path)))
    return has[0] if has else "embedding"


def build_head_graph(checkpoint: Checkpoint, head: HeadName, tokenizer: Tokenizer, precision: Precision) -> bytes:
    """The serialized graph."""
    model = build_graph(
        checkpoint.config,
        load_arrays(checkpoint),
        head,
        mask_id=tokenizer.mask_id,
        pooling=checkpoint.embedding_spec.pooling,
        precision=precision,
        has_exits=has_exits(checkpoint, head),
    )
    content: bytes = model.SerializeToString()
    return content


def has_exits(checkpoint: Checkpoint, head: HeadName) -> bool:
    """Whether the export supports early exit: the model was trained for it and has one shared layer to loop over."""
    return learned_exits(checkpoint, head) and checkpoint.config.layer_plan.is_one_layer


def learned_exits(checkpoint: Checkpoint, head: HeadName) -> bool:
    return head == "classification" and bool((checkpoint.task or {}).get("exits", False))


def write_export(checkpoint: Checkpoint, out: Path, head: HeadName, graph: bytes, facts: dict[str, Any]) -> Exported:
    """Write a folder with a graph and everything needed to use it."""
    check_is_new(out)
    tokenizer = checkpoint.load_tokenizer()
    with atomic_directory(out) as temporary:
        (temporary / GRAPH_FILE).write_bytes(graph)
        write_tokenizer_files(
            tokenizer,
            temporary,
            has_segments=checkpoint.config.num_segments > 1,
            max_length=checkpoint.find_max_length(head),
            cuts_itself=True,
        )
        write_json(temporary / CONFIG_FILE, _describe_for_others(checkpoint, head, tokenizer))
        tokenizer.save(temporary / TOKENIZER)
        write_facts(temporary, checkpoint, head, {**facts, "exits": has_exits(checkpoint, head)})
    return Exported(out, head, len(graph))


def _describe_for_others(checkpoint: Checkpoint, head: HeadName, tokenizer: Tokenizer) -> dict[str, Any]:
    """config.json for users without litebert: labels, length, pooling, and the keys that transformers uses."""
    config, heads = checkpoint.config, [spec for spec in checkpoint.heads if spec.kind == head]
    family = find_family(config, heads, pad_id=tokenizer.pad_id, prefers=checkpoint.layout)
    special_ids = {"pad": tokenizer.pad_id, "cls": tokenizer.cls_id, "sep": tokenizer.sep_id}
    facts = describe_export(checkpoint, head)
    return {
        **({} if family is None else their_config(family, config, heads, special_ids)),
        **their_labels(facts["task"] or {}),
        OUR_KEY: {**facts, "max_length": checkpoint.find_max_length(head)},
    }


def check_is_new(out: Path) -> None:
    if out.exists():
        raise ConfigError(
            "output-exists", f"{out} already exists: choose another name, or overwrite it", option="overwrite"
        )
