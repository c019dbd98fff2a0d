"""Fine-tuning steps: ours compared with transformers' Trainer, with run_glue.py's default padding and at its best.

    python benchmarks/finetune.py [--preset albert-base-v2] [--steps 16] [--rounds 3] [--only sst-2] [--json out.json]

Sequences of SST-2's lengths with a classification head, and of SQuAD's (dev paragraphs with their questions, truncated
to 384) with a head over all tokens. Lengths come from $LITEBERT_DATA, or are sampled from similar distributions
without it. Batch 32 (SQuAD: 8), fp32, AdamW, clipping, no dropout, the same weights. "default": padded to the maximum
length; "best": sorted by length and padded to the longest of each batch. In each round, all contenders train one epoch
on the same few hundred examples: the Trainer begins with the longest ones, so part of an epoch would be misleading.
Contenders take turns; ratios are of median examples per second, in wall-clock and processor time: on a busy machine
trust the latter. Needs `accelerate`, which the Trainer requires.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np
import torch
import transformers

from litebert.core.runtime import RuntimeOptions, choose_runtime
from litebert.model.model import Model, build_model
from litebert.model.presets import preset
from litebert.tasks.group_batch import build_group_batch
from litebert.tasks.groups import Group, TokenSequence, TuningPlan
from litebert.tasks.kinds.classification import Classification
from litebert.tasks.kinds.token_tags import TokenTags
from litebert.text.tokenizer import load_tokenizer
from litebert.training.distributed import TaskLoss
from litebert.training.loop import Engine, build_scaler, update
from litebert.training.optimizers import build_optimizer
from litebert.training.options import OptimOptions

RATE = 1e-5


class Speed(NamedTuple):
    """Examples per second, in wall-clock and in processor time."""

    by_clock: float
    by_processor: float


@dataclass(frozen=True)
class Case:
    """Sequences of realistic lengths, and the head that reads them."""

    name: str
    max_length: int
    batch_size: int
    task: Classification | TokenTags
    their_class: str


CASES = (
    Case("sst-2", 128, 32, Classification("sst-2", ("0", "1")), "AutoModelForSequenceClassification"),
    Case("squad", 384, 8, TokenTags("squad", ("no", "yes")), "AutoModelForTokenClassification"),
)


def read_lengths(case: Case) -> list[int]:
    """The number of tokens of each example, special tokens included."""
    folder = os.environ.get("LITEBERT_DATA")
    if not folder:  # log-normal, with the means and spreads of the real lengths
        mean, spread = (2.5, 0.6) if case.name == "sst-2" else (5.1, 0.4)
        drawn = np.random.default_rng(0).lognormal(mean, spread, 4000)
        return [int(n) for n in np.clip(drawn + 3, 5, case.max_length)]
    tokenizer = load_tokenizer(Path(folder) / "vocab" / "albert-30k.model")
    if case.name == "sst-2":
        lines = (Path(folder) / "glue" / "SST-2" / "train.tsv").read_text("utf-8").split("\n")[1:4001]
        return [min(len(ids) + 2, case.max_length) for ids in tokenizer.encode_batch(lines)]
    articles = json.loads((Path(folder) / "squad" / "dev-v1.1.json").read_text("utf-8"))["data"][:8]
    paragraphs = [p for article in articles for p in article["paragraphs"]]
    contexts = tokenizer.encode_batch([p["context"] for p in paragraphs])
    return [
        min(len(context) + len(question) + 3, case.max_length)
        for p, context in zip(paragraphs, contexts, strict=True)
        for question in tokenizer.encode_batch([qa["question"] for qa in p["qas"]])
    ]


def invent_groups(case: Case, lengths: Sequence[int], vocab_size: int) -> list[Group]:
    """Groups of these lengths with arbitrary tokens, which do not affect speed."""
    rng = np.random.default_rng(1)
    groups = []
    for length in lengths:
        ids = rng.integers(5, vocab_size, length).astype(np.int32)
        size = length if isinstance(case.task, TokenTags) else ()
        groups.append(Group((TokenSequence(ids, length),), rng.integers(0, 2, size)))
    return groups


def prepare_ours(case: Case, model: Model, groups: Sequence[Group], num_steps: int) -> Callable[[int], Speed]:
    """A function that runs some of our training steps; each round begins a new epoch."""
    runtime = choose_runtime(RuntimeOptions(device="cpu"))
    optimizer = build_optimizer(model.named_parameters(), OptimOptions(name="adamw", learning_rate=RATE))
    loss = TaskLoss(model, case.task)
    engine = Engine(model, loss, optimizer, case.task, runtime, build_scaler(runtime), 1.0, seed=1)
    plan = TuningPlan.of(groups, case.batch_size, 1, 16)

    def run(round_number: int) -> Speed:
        model.train()
        with timed(num_steps * case.batch_size) as result:
            for step, numbers in enumerate(plan.batches(round_number)):
                update(engine, [build_group_batch([groups[n] for n in numbers], 0)], step, RATE)
        return result()

    return run


class timed:
    """Measures a block; called afterwards, it returns the speed."""

    def __init__(self, num_examples: int) -> None:
        self.num_examples = num_examples

    def __enter__(self) -> Callable[[], Speed]:
        self.started = time.perf_counter(), time.process_time()
        return lambda: Speed(*(self.num_examples / seconds for seconds in self.seconds))

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self.started[0], time.process_time() - self.started[1]


class StepClock(transformers.TrainerCallback):
    """Time from the beginning of the first step to the end of the last, without the Trainer's setup and teardown."""

    def __init__(self) -> None:
        self.began: tuple[float, float] | None = None

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.began = self.began or (time.perf_counter(), time.process_time())

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.ended = time.perf_counter(), time.process_time()


def prepare_theirs(
    case: Case, folder: Path, groups: Sequence[Group], num_steps: int, *, is_best: bool
) -> Callable[[int], Speed]:
    """A function that runs some training steps of the Trainer."""
    model = getattr(transformers, case.their_class).from_pretrained(folder)
    rows = [
        {
            "input_ids": group.sequences[0].token_ids.tolist(),
            "labels": group.target.tolist(),  # type: ignore[union-attr]
            "length": group.width,
        }
        for group in groups
    ]
    sampling = {"train_sampling_strategy": "group_by_length", "length_column_name": "length"} if is_best else {}
    pad = lambda items: collate(items, None if is_best else case.max_length)  # noqa: E731

    def run(round_number: int) -> Speed:
        clock = StepClock()
        with tempfile.TemporaryDirectory() as out:
            arguments = transformers.TrainingArguments(
                out,
                max_steps=num_steps,
                per_device_train_batch_size=case.batch_size,
                learning_rate=RATE,
                use_cpu=True,
                report_to="none",
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
                remove_unused_columns=False,
                seed=round_number + 1,
                **sampling,
            )
            transformers.Trainer(model, arguments, train_dataset=rows, data_collator=pad, callbacks=[clock]).train()
        assert clock.began is not None
        seconds = [end - start for start, end in zip(clock.began, clock.ended, strict=True)]
        return Speed(*(num_steps * case.batch_size / second for second in seconds))

    return run


def collate(items: Sequence[dict[str, Any]], width: int | None) -> dict[str, torch.Tensor]:
    """A batch for the Trainer, padded to a width or to its longest sequence."""
    width = width or max(len(item["input_ids"]) for item in items)
    padded = [item["input_ids"] + [0] * (width - len(item["input_ids"])) for item in items]
    mask = [[1] * len(item["input_ids"]) + [0] * (width - len(item["input_ids"])) for item in items]
    labels = [
        item["labels"] if isinstance(item["labels"], int) else item["labels"] + [-100] * (width - len(item["labels"]))
        for item in items
    ]
    return {
        "input_ids": torch.tensor(padded),
        "attention_mask": torch.tensor(mask),
        "labels": torch.tensor(labels),
    }


def measure(case: Case, preset_name: str, num_steps: int, num_rounds: int) -> Iterator[tuple[str, Speed]]:
    config = replace(preset(preset_name), hidden_dropout_rate=0.0, attention_dropout_rate=0.0)
    config = replace(config, classifier_dropout_rate=0.0)
    lengths = np.random.default_rng(2).choice(read_lengths(case), num_steps * case.batch_size)
    groups = invent_groups(case, [int(length) for length in lengths], config.vocab_size)
    model = build_model(config, case.task.heads, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        save_theirs(Path(folder) / "model", model)
        contenders = {
            "ours": prepare_ours(case, model, groups, num_steps),
            "default": prepare_theirs(case, Path(folder) / "model", groups, num_steps, is_best=False),
            "best": prepare_theirs(case, Path(folder) / "model", groups, num_steps, is_best=True),
        }
        for round_number in range(num_rounds + 1):  # the first round is a warm-up
            for name, run in contenders.items():
                speed = run(round_number)
                if round_number:
                    yield name, speed


def save_theirs(path: Path, model: Model) -> None:
    """Save the weights for transformers; a checkpoint needs a tokenizer, and any of this size will do."""
    from safetensors.torch import save_file

    from litebert.interop.layout import to_theirs
    from litebert.interop.names import find_family, their_config

    family = find_family(model.config, model.head_specs)
    assert family is not None, "transformers has no class for this shape"
    path.mkdir()
    save_file(to_theirs(family, model.config, model.head_specs, model.state_dict()), path / "model.safetensors")
    ids = {"pad": 0, "cls": 2, "sep": 3}
    (path / "config.json").write_text(json.dumps(their_config(family, model.config, model.head_specs, ids)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="albert-base-v2")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=[case.name for case in CASES])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    for case in CASES:
        if options.only in (None, case.name):
            speeds: dict[str, list[Speed]] = {}
            for name, speed in measure(case, options.preset, options.steps, options.rounds):
                speeds.setdefault(name, []).append(speed)
            results.append(report(case, speeds))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


def report(case: Case, speeds: dict[str, list[Speed]]) -> dict[str, Any]:
    medians = {name: Speed(*map(statistics.median, zip(*values, strict=True))) for name, values in speeds.items()}
    for name, speed in medians.items():
        ratios = [ours / theirs for ours, theirs in zip(medians["ours"], speed, strict=True)]
        print(
            f"{case.name:6} {name:8} {speed.by_clock:8.2f} examples/s, {speed.by_processor:8.2f} a processor second; "
            f"ours is {ratios[0]:.2f} times that by the clock, {ratios[1]:.2f} by processor time",
            flush=True,
        )
    return {"case": case.name, **{name: speed._asdict() for name, speed in medians.items()}}


if __name__ == "__main__":
    main()
