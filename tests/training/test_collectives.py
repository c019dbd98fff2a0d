"""What two processes send each other in one step, counted, and compared with what `litebert plan` predicts.

Messages are seen where they pass torch's dispatcher: CommDebugMode, which counts them too, crashes on modules that are
used repeatedly, as shared layers are.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.distributed.utils import _to_kwargs
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from litebert.batches.batch import Batch
from litebert.core.runtime import Ranks, Runtime
from litebert.model.config import ModelConfig
from litebert.model.model import build_model
from litebert.model.sharing import Sharing
from litebert.objectives.masked_lm import MaskedLM
from litebert.plan.traffic import Message, Parameters, list_messages, list_parameters
from litebert.training.distributed import TaskLoss, leave_group, parallelize
from litebert.training.loop import Engine, build_scaler, update
from litebert.training.optimizers import build_optimizer
from litebert.training.options import OptimizerName, OptimOptions, Parallel

pytestmark = [pytest.mark.slow, pytest.mark.ranks]

WORLD_SIZE = 2
KINDS = {
    "allreduce_": "all-reduce",
    "all_reduce": "all-reduce",
    "_allgather_base_": "all-gather",
    "all_gather_into_tensor": "all-gather",
    "_reduce_scatter_base_": "reduce-scatter",
}
SILENT = {"wait_tensor", "_wrap_tensor_autograd"}


@dataclass(frozen=True)
class Case:
    parallel: Parallel
    sharing: Sharing
    num_parts: int = 1
    optimizer: OptimizerName = "lamb"
    num_labels: int = 2  # 0: no sentence task, so that the pooler is not trained
    recompute: bool = False
    hidden_size: int = 16

    @property
    def name(self) -> str:
        extras = [word for word, is_so in (("no-task", not self.num_labels), ("recompute", self.recompute)) if is_so]
        shape = [self.sharing, f"{self.hidden_size}-wide", f"{self.num_parts}-parts"]
        return "-".join([self.parallel, *shape, self.optimizer, *extras])


WIDE = Case("ddp", "all", hidden_size=512)  # more than DDP sends in one message
CASES = [
    WIDE,
    Case("ddp", "all"),
    Case("ddp", "all", num_parts=3, num_labels=0),
    Case("ddp", "none", num_parts=2),
    Case("fsdp", "all"),
    Case("fsdp", "all", num_parts=3),
    Case("fsdp", "all", num_parts=2, optimizer="adamw", num_labels=0),
    Case("fsdp", "all", recompute=True),
    Case("fsdp", "attention", num_parts=2),
    Case("fsdp", "none", optimizer="adamw"),
    Case("fsdp", "all", optimizer="muon"),
    Case("fsdp", "none", num_parts=2, optimizer="muon"),
    Case("fsdp", "none", num_parts=3),
    Case("fsdp", "none", num_parts=2, recompute=True),
]


class Sent(NamedTuple):
    """A message that passed: what of, and the bytes of the whole tensor."""

    kind: str
    num_bytes: int


class Listener(TorchDispatchMode):
    """Notes every collective."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Sent] = []

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented  # it sends what it has to through us again
        name = func._schema.name.split("::")[1]
        result = func(*args, **(kwargs or {}))
        if func.namespace in ("c10d", "_c10d_functional") and name not in SILENT:
            tensors = [leaf for leaf in tree_leaves((args, result)) if isinstance(leaf, Tensor)]
            self.sent.append(Sent(KINDS[name], max(tensor.nbytes for tensor in tensors)))
        return result


def build_config(sharing: Sharing, hidden_size: int = 16) -> ModelConfig:
    # 101, 3 and odd biases do not divide by two: FSDP pads them
    return ModelConfig(
        vocab_size=101,
        embedding_size=hidden_size if sharing == "none" else 9,
        hidden_size=hidden_size,
        ffn_size=25,
        num_layers=3,
        num_heads=2,
        max_positions=32,
        sharing=sharing,
    )


def make_batch(num_labels: int) -> Batch:
    token_ids = torch.arange(64).view(2, 32)
    return Batch(
        token_ids=token_ids,
        segment_ids=torch.zeros_like(token_ids),
        mask=torch.ones(2, 32, dtype=torch.bool),
        position_ids=None,
        sequence_ids=None,
        first_tokens=torch.tensor([0, 32]),
        mlm_positions=torch.tensor([3, 9, 40]),
        mlm_labels=torch.tensor([5, 6, 7]),
        sentence_labels=torch.tensor([0, 1]) if num_labels else None,
    )


def build_engine(case: Case, runtime: Runtime) -> Engine:
    task = MaskedLM(case.num_labels)
    model = build_model(build_config(case.sharing, case.hidden_size), task.heads)
    assert model.encoder.pooler is not None
    model.encoder.pooler.requires_grad_(case.num_labels > 0)
    model.encoder.recompute = case.recompute
    compute_loss = parallelize(TaskLoss(model, task), case.parallel, runtime)
    trained = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    optimizer = build_optimizer(trained, OptimOptions(name=case.optimizer))
    return Engine(model, compute_loss, optimizer, task, runtime, build_scaler(runtime), clip_norm=1.0, seed=1)


def listen(case: Case, runtime: Runtime) -> list[Sent]:
    """The messages of the third step: in the second, DDP agrees on the order of its own."""
    engine = build_engine(case, runtime)
    parts = [make_batch(case.num_labels)] * case.num_parts
    for step in range(2):
        update(engine, parts, step, 0.01)
    with Listener() as listener:
        update(engine, parts, 2, 0.01)
    return listener.sent


def run_rank(rank: int, folder: str) -> None:
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", meeting, timedelta(minutes=4), WORLD_SIZE, rank)
    runtime = Runtime(torch.device("cpu"), torch.float32, Ranks(rank, rank, WORLD_SIZE))
    heard = {case.name: listen(case, runtime) for case in CASES}
    (Path(folder) / f"heard-{rank}.json").write_text(json.dumps(heard))
    leave_group()


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], list[Sent]]:
    """What each process heard in each case."""
    folder = tmp_path_factory.mktemp("collectives")
    mp.spawn(run_rank, args=(str(folder),), nprocs=WORLD_SIZE)
    ranks = [json.loads((folder / f"heard-{rank}.json").read_text()) for rank in range(WORLD_SIZE)]
    assert ranks[0] == ranks[1]
    return lambda case: [Sent(*message) for message in ranks[0][case.name]]


def predict(case: Case) -> list[Message]:
    config, heads = build_config(case.sharing, case.hidden_size), MaskedLM(case.num_labels).heads
    parameters = list_parameters(config, heads, trains_pooler=case.num_labels > 0, optimizer=case.optimizer)
    return [
        *list_messages(parameters, case.parallel, WORLD_SIZE, num_parts=case.num_parts),
        *list_small_messages(parameters, case),
    ]


def list_small_messages(parameters: Parameters, case: Case) -> list[Message]:
    """The numbers that a step adds up: counts before it, sums after it, and over shards the norms."""
    messages = [
        Message("all-reduce", "counts", 1, 8 * 4),  # masked words, sequences, tokens, positions
        Message("all-reduce", "losses and correct answers", 1, 8 * (5 if case.num_labels else 3)),
    ]
    if case.parallel == "fsdp":
        messages.append(Message("all-reduce", "norms for clipping", 1, 4 * parameters.num_tensors))
    if case.parallel == "fsdp" and case.optimizer == "lamb":
        messages.append(Message("all-reduce", "norms for trust ratios", 1, 8 * 2 * parameters.num_tensors))
    return messages


def add_up(messages: Sequence[Sent | Message], quantity: str) -> dict[str, int]:
    """The sum of a quantity of messages (their number, their bytes) by kind."""
    totals: dict[str, int] = {}
    for message in messages:
        totals[message.kind] = totals.get(message.kind, 0) + getattr(message, quantity, 1)
    return totals


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_step_sends_what_the_plan_says(case: Case, heard: Callable[[Case], list[Sent]]) -> None:
    sent, predicted = heard(case), predict(case)
    assert add_up(sent, "num_bytes") == add_up(predicted, "num_bytes"), asdict(case)
    if case.parallel == "fsdp":
        assert add_up(sent, "number") == add_up(predicted, "number"), asdict(case)


@pytest.mark.parametrize("num_parts", [1, 3])
def test_a_shared_model_is_gathered_once_and_reduced_once_a_step(
    num_parts: int, heard: Callable[[Case], list[Sent]]
) -> None:
    kinds = [message.kind for message in heard(Case("fsdp", "all", num_parts=num_parts))]
    assert kinds.count("all-gather") == 1
    assert kinds.count("reduce-scatter") == 1
    # counts, losses, and the norms for clipping and for trust ratios
    assert kinds.count("all-reduce") == 4


def test_ddp_exchanges_gradients_with_the_last_part_only(heard: Callable[[Case], list[Sent]]) -> None:
    sizes = [message.num_bytes for message in heard(Case("ddp", "none", num_parts=2))]
    parameters = list_parameters(build_config("none"), MaskedLM(2).heads, trains_pooler=True)
    assert sorted(sizes) == [8 * 4, 8 * 5, 4 * parameters.num_trained]


def test_ddp_closes_its_first_message_at_one_mebibyte(heard: Callable[[Case], list[Sent]]) -> None:
    """Which is why a plan does not say how many it sends: whole tensors, in the order in which gradients come."""
    _, first, *others, _ = [message.num_bytes for message in heard(WIDE)]  # between counts and losses
    assert 1 << 20 <= first < 2 << 20
    assert others
    assert [message.number for message in predict(WIDE) if message.about == "gradients"] == [None]


@pytest.mark.parametrize("num_labels", [0, 2])
def test_the_arguments_of_a_loss_survive_the_way_to_a_gpu(num_labels: int) -> None:
    """On their way there DDP and FSDP make every mapping and tuple anew; a Counter came out as a count of its pairs."""
    runtime = Runtime(torch.device("cpu"), torch.float32, Ranks(0, 0, 1))
    case = replace(CASES[0], num_labels=num_labels)
    plain, moved = build_engine(case, runtime), build_engine(case, runtime)
    compute_loss = moved.compute_loss

    def move_and_compute(*arguments: Any) -> Any:
        (on_device,), _ = _to_kwargs(arguments, {}, torch.device("cpu"), False)
        return compute_loss(*on_device)

    moved = replace(moved, compute_loss=move_and_compute)  # type: ignore[arg-type]
    parts = [make_batch(num_labels)]
    assert update(moved, parts, 0, 0.01).metrics == update(plain, parts, 0, 0.01).metrics
