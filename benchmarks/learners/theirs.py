"""The other side: `transformers`' AlbertForPreTraining, trained by a plain script on the same pairs of segments.

Everything is what its users would choose: the library's model and initialization, its collator (15 % of the tokens,
80/10/10), torch's AdamW without decay on biases and norms, linear warm-up and decay. It gets two advantages over a
plain script: pairs come from our stream (fast, and with lengths that do not reveal their order), and the schedule ends
exactly with the budget.
"""

import tempfile
import time
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from learners.budget import Machine, Watch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from litebert.batches.options import BatchOptions, DataOptions, MaskingOptions, SegmentOptions, StreamOptions
from litebert.batches.stream import Stream, open_stream
from litebert.checkpoint import (
    Checkpoint,
    CheckpointContent,
    list_checkpoints,
    load_checkpoint,
    optimizer_tensors,
    restore_optimizer,
    save_checkpoint,
)
from litebert.core.options import dump_toml
from litebert.core.runtime import Ranks, RuntimeOptions, choose_runtime
from litebert.interop.layout import from_theirs
from litebert.interop.names import their_config
from litebert.interop.tokenizer_files import write_tokenizer_files
from litebert.model.config import ModelConfig
from litebert.model.model import build_model
from litebert.model.presets import preset
from litebert.objectives.masked_lm import MaskedLM
from litebert.text.tokenizer import Tokenizer, load_tokenizer
from litebert.training.distributed import process_group, sum_over_ranks
from litebert.training.kept_checkpoints import CHECKPOINTS, checkpoint_path

_TIED = ("predictions.decoder.weight", "predictions.decoder.bias")
_CHECKPOINTS = 12  # per run
_SAY_STEPS = 200
_COMPILED_STEPS = 100  # compile the shapes of this many steps before the start
_WIDTHS = 16  # when compiled, batch widths are multiples of this, so that there are few shapes to compile
_HEADS = MaskedLM(2).heads


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The user's choices; the shape is fixed."""

    learning_rate: float = 1e-3
    initializer_range: float = 0.02
    batch: int = 32
    length: int = 64
    shape: str = "cpu-small"
    warmup_share: float = 0.06
    weight_decay: float = 0.01
    is_compiled: bool = False

    @property
    def name(self) -> str:
        compiled = "-compiled" if self.is_compiled else ""
        return f"lr{self.learning_rate:g}-std{self.initializer_range:g}-batch{self.batch}{compiled}"

    @property
    def config(self) -> ModelConfig:
        return replace(preset(self.shape), initializer_range=self.initializer_range)


@dataclass
class Progress:
    """The progress of a run."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0  # processor time, averaged over processes


def train_theirs(
    folder: Path, corpus: Path, *, seed: int, cpu_minutes: float, machine: Machine, setting: Setting
) -> None:
    """Train, or resume training, until the budget is used up."""
    facts = {"who": "transformers", "seed": seed, "cpu_minutes": cpu_minutes, "machine": vars(machine)}
    runtime = choose_runtime(RuntimeOptions(device="cpu", num_threads=machine.threads))
    with process_group(runtime), Watch(folder, {**facts, "setting": asdict(setting)}):
        saved = list_checkpoints(folder / CHECKPOINTS)
        last = load_checkpoint(saved[-1]) if saved else None
        batches = Batches(corpus, setting, seed, runtime.ranks)
        model = build_theirs(setting, batches.tokenizer, seed, last)
        optimizer = build_adamw(model, setting, last)
        if setting.is_compiled:
            compile_first_shapes(model, batches)
        forward: Any = DistributedDataParallel(model) if machine.processes > 1 else model
        budget_seconds = cpu_minutes * 60 / machine.processes
        progress = Progress(last.step, int(last.state["tokens"]), float(last.state["seconds"])) if last else Progress()
        while progress.seconds < budget_seconds:
            share = progress.seconds / budget_seconds
            loss = update(forward, optimizer, batches, progress, rate_at(share, setting))
            is_due = int(_CHECKPOINTS * progress.seconds / budget_seconds) > int(_CHECKPOINTS * share)
            if is_due and runtime.ranks.is_main:
                save(folder, model, optimizer, batches.tokenizer, setting, progress)
            if progress.step % _SAY_STEPS == 0 and runtime.ranks.is_main:
                say(progress, loss, budget_seconds)


def compile_first_shapes(model: Any, batches: "Batches") -> None:
    """Compile every shape of the first batches before the budget starts to count."""
    model.compile(dynamic=False)
    seen = set()
    for step in range(_COMPILED_STEPS):
        batch = batches.make(step)
        if batch["input_ids"].shape not in seen:
            seen.add(batch["input_ids"].shape)
            model(**batch).loss.backward()
    model.zero_grad()


def rate_at(share: float, setting: Setting) -> float:
    """The usual learning rate at a share of the budget: linear warm-up and linear decay to zero."""
    if share < setting.warmup_share:
        return setting.learning_rate * share / setting.warmup_share
    return setting.learning_rate * max(0.0, 1 - share) / (1 - setting.warmup_share)


def update(
    forward: Any, optimizer: torch.optim.Optimizer, batches: "Batches", progress: Progress, rate: float
) -> float:
    """One step; returns its loss."""
    started_at = time.process_time()
    batch = batches.make(progress.step)
    for group in optimizer.param_groups:
        group["lr"] = rate
    loss = forward(**batch).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], 1.0)
    optimizer.step()
    optimizer.zero_grad()
    spent = {"seconds": time.process_time() - started_at, "ranks": 1, "loss": loss.item()}
    total = sum_over_ranks({**spent, "tokens": int(batch["attention_mask"].sum())})
    progress.step += 1
    progress.tokens += int(total["tokens"])
    progress.seconds += total["seconds"] / total["ranks"]
    return total["loss"] / total["ranks"]


def build_theirs(setting: Setting, tokenizer: Tokenizer, seed: int, last: Checkpoint | None) -> Any:
    """The library's model with its own initialization, or with the weights of the last checkpoint."""
    torch.manual_seed(seed)
    if last is not None:
        return transformers.AlbertForPreTraining.from_pretrained(last.path).train()
    special_ids = {"pad": tokenizer.pad_id, "cls": tokenizer.cls_id, "sep": tokenizer.sep_id}
    config = their_config("albert", setting.config, _HEADS, special_ids)
    return transformers.AlbertForPreTraining(transformers.AlbertConfig(**config)).train()


def build_adamw(model: Any, setting: Setting, last: Checkpoint | None) -> torch.optim.Optimizer:
    """AdamW without weight decay on biases and norms."""
    named = list(model.named_parameters())
    groups = [
        {"params": [p for _, p in named if p.ndim > 1], "weight_decay": setting.weight_decay},
        {"params": [p for _, p in named if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=setting.learning_rate, fused=True)
    if last is not None:
        restore_optimizer(model, optimizer, last.load_optimizer())
    return optimizer


class Batches:
    """Pairs of our stream by step, masked by the library's own collator."""

    def __init__(self, corpus: Path, setting: Setting, seed: int, ranks: Ranks) -> None:
        options = StreamOptions(
            segments=SegmentOptions(max_length=setting.length),
            masking=MaskingOptions(),  # undone later, because the library masks
            batch=BatchOptions(sequences=setting.batch),
            seed=seed,
        )
        self.stream, _ = open_stream(DataOptions(corpora=(str(corpus),)), options)
        self.tokenizer = load_tokenizer(corpus / "tokenizer")
        self.seed, self.ranks = seed, ranks
        self.collate = transformers.DataCollatorForLanguageModeling(
            build_fast_tokenizer(self.tokenizer),
            mlm_probability=0.15,
            pad_to_multiple_of=_WIDTHS if setting.is_compiled else None,
        )

    def make(self, step: int) -> dict[str, Tensor]:
        """This process's part of a step's batch, as arguments of the model."""
        # the collator uses torch's generator, which reads 32 bits of its seed
        torch.manual_seed(zlib.crc32(f"{self.seed} {step} {self.ranks.rank}".encode()))
        batch = dict(self.collate(read_examples(self.stream, step, self.ranks)))
        batch.pop("special_tokens_mask", None)
        return batch


def read_examples(stream: Stream, step: int, ranks: Ranks) -> list[dict[str, Any]]:
    """A batch of our stream before masking, in a tokenizer's output format."""
    rows = stream.rows(step, rank=ranks.rank, world_size=ranks.world_size)
    token_ids = rows.token_ids.copy()
    token_ids.reshape(-1)[rows.targets.positions] = rows.targets.labels
    special = np.isin(token_ids, list(stream.special))
    return [
        {
            "input_ids": token_ids[row, :length].tolist(),
            "token_type_ids": rows.segment_ids[row, :length].tolist(),
            "attention_mask": [1] * length,
            "special_tokens_mask": special[row, :length].astype(int).tolist(),
            "sentence_order_label": int(label),
        }
        for row, (length, label) in enumerate(
            zip(rows.plan.sequences.lengths.tolist(), rows.plan.sequences.labels, strict=True)
        )
    ]


def build_fast_tokenizer(tokenizer: Tokenizer) -> Any:
    """Our tokenizer as a fast tokenizer of the library."""
    with tempfile.TemporaryDirectory() as folder:
        write_tokenizer_files(tokenizer, Path(folder))
        return transformers.PreTrainedTokenizerFast.from_pretrained(folder)


def save(
    folder: Path,
    model: Any,
    optimizer: torch.optim.Optimizer,
    tokenizer: Tokenizer,
    setting: Setting,
    progress: Progress,
) -> None:
    """Write a folder that `transformers` and our tools can read, with everything needed to resume."""
    tensors = {name: tensor for name, tensor in model.state_dict().items() if name not in _TIED}
    ours = build_model(setting.config, _HEADS)
    ours.load_state_dict(from_theirs("albert", setting.config, _HEADS, tensors))
    content = CheckpointContent(
        step=progress.step,
        recipe_toml=dump_toml({"segments": {"max_length": setting.length, "task": "sop"}}),
        state={"tokens": progress.tokens, "seconds": progress.seconds},
        optimizer=optimizer_tensors(model, optimizer),
    )
    save_checkpoint(checkpoint_path(folder, progress.step), ours, tokenizer, content)


def say(progress: Progress, loss: float, budget_seconds: float) -> None:
    tokens_per_second = progress.tokens / progress.seconds
    print(
        f"step {progress.step:,}, {progress.seconds / budget_seconds:.1%} of the budget, loss {loss:.3f}, "
        f"{tokens_per_second:,.0f} tokens a CPU second of each process",
        flush=True,
    )
