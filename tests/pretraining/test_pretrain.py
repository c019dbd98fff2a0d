"""Pre-training: an interrupted run equals an uninterrupted one; stages, clocks, number formats and micro-batches."""

import itertools
import json
import os
import shutil
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refuses
from small_runs import assert_same_run, interrupted_before_step, make_recipe

from litebert.batches.batch import Batch
from litebert.batches.stream import open_stream
from litebert.checkpoint import list_checkpoints, load_checkpoint
from litebert.core.errors import ConfigError
from litebert.core.runlog import read_log
from litebert.core.runtime import RuntimeOptions, choose_runtime
from litebert.core.view import open_view
from litebert.corpus.shards import open_corpus
from litebert.model.model import build_model
from litebert.model.positions import continue_positions
from litebert.objectives.masked_lm import MaskedLM
from litebert.objectives.registry import build_objective
from litebert.pretraining import pretrain as story
from litebert.pretraining import run_folder, stage
from litebert.pretraining.initialization import State
from litebert.pretraining.pretrain import pretrain
from litebert.pretraining.recipe import Recipe, load_recipe
from litebert.pretraining.stage import build_engine, draw_validation
from litebert.training import loop
from litebert.training.distributed import TaskLoss, agree_on_dtype, process_group
from litebert.training.kept_checkpoints import delete_old_checkpoints
from litebert.training.loop import Engine, Progress, build_scaler, seed_dropout, update
from litebert.training.optimizers import build_optimizer
from litebert.training.options import OptimOptions

LONGER = {"at": 6, "segments": {"max_length": 32}}


@pytest.mark.parametrize(("sent", "raised"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)])
@pytest.mark.parametrize("step", [6, 10, 12])  # in the middle; near the end; the last, after which a study goes on
def test_a_run_that_receives_a_stop_signal_saves_its_step_and_resumes_to_the_same_end(
    sent: signal.Signals, raised: type[BaseException], step: int, tiny_corpus: Path, tmp_path: Path
) -> None:
    recipe = make_recipe(tiny_corpus)
    pretrain(recipe, tmp_path / "whole")
    calls = itertools.count()

    def clock() -> float:
        now = next(calls)
        if now == 2 * (step - 1):  # two calls a step: at its beginning
            signal.raise_signal(sent)
        return float(now)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(raised):
            pretrain(recipe, tmp_path / "stopped", clock=clock)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert [path.name for path in list_checkpoints(tmp_path / "stopped" / "checkpoints")][-1] == f"step-{step:08}"
    pretrain(recipe, tmp_path / "stopped")
    assert_same_run(tmp_path / "whole", tmp_path / "stopped")
    kept = [[path.name for path in list_checkpoints(tmp_path / run / "checkpoints")] for run in ("whole", "stopped")]
    assert kept[0] == kept[1]


def test_all_stages_are_measured_on_held_out_text_of_the_first_ones_first_corpus(
    tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    shutil.copytree(tiny_corpus, other)
    drawn: list[list[Batch]] = []

    def draw(recipe: Recipe, corpus: str) -> list[Batch]:
        drawn.append(draw_validation(recipe, corpus))
        assert corpus == str(tiny_corpus)
        return drawn[-1]

    monkeypatch.setattr(stage, "draw_validation", draw)
    joined = [{"at": 6, "data": {"corpora": [str(other), str(tiny_corpus)]}}]
    pretrain(make_recipe(tiny_corpus, stages=joined), tmp_path / "run")
    assert len(drawn) == 2
    assert all(torch.equal(a.token_ids, b.token_ids) for a, b in zip(*drawn, strict=True))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"batch": {"tokens": 160, "is_packed": True}, "train__micro_batch": 2},
        {"stages": [{"at": 5, "segments": {"max_length": 16}}, {"at": 7, "model": {"hidden_dropout_rate": 0.0}}]},
        {"stages": [{"at": 6, "model": {"num_layers": 4}}], "optim__name": "adamw"},
        {
            "stages": [{"at": 6, "optim": {"name": "adamw"}}, {"at": 8, "optim": {"name": "muon"}}],
            "optim__name": "muon",
            "runtime": {"dtype": "bf16"},
        },
        {"segments__max_length": 16, "stages": [LONGER], "init__new_positions": "continued"},
        {"stages": [{"at": 4, "segments": {"task": "none"}}, {"at": 7, "segments": {"task": "three-way"}}]},
        {"stages": [{"at": 500, "segments": {"max_length": 16}}], "train__steps": 1000, "train__tokens": 2000},
        {"masking": {"copies": 2}, "segments__task": "three-way"},
        {"segments": {"max_length": 32, "format": "doc-sentences", "task": "none"}},
        {"train__recompute": True, "train__log_every": 3},
        {"data__weights": [1.0, 2.0], "data__corpora": "twice"},
        {"runtime": {"dtype": "bf16"}, "batch": {"tokens": 160, "is_packed": True}, "train__recompute": True},
    ],
    ids=[
        "plain",
        "packed",
        "stages",
        "grown",
        "muon",
        "longer",
        "other-tasks",
        "stages-by-tokens",
        "static",
        "no-task",
        "recompute",
        "mixed",
        "bf16",
    ],
)
def test_an_interrupted_run_equals_an_uninterrupted_one(
    changes: dict[str, object], tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if changes.get("data__corpora") == "twice":
        changes = changes | {"data__corpora": [str(tiny_corpus), str(tiny_corpus)]}
    recipe = make_recipe(tiny_corpus, **changes)
    pretrain(recipe, tmp_path / "whole")
    logged = {record["step"] for record in read_log(tmp_path / "whole" / "metrics.jsonl")}
    for step in sorted({3, 6, 9, 12} & logged):
        with interrupted_before_step(step, monkeypatch):
            pretrain(recipe, tmp_path / "broken")
    pretrain(recipe, tmp_path / "broken")
    assert_same_run(tmp_path / "whole", tmp_path / "broken")


@pytest.mark.parametrize("new_positions", ["drawn", "continued"])
def test_new_positions_of_a_stage_can_be_extrapolated_from_those_before_them(
    new_positions: str, tiny_corpus: Path, tmp_path: Path
) -> None:
    recipe = make_recipe(
        tiny_corpus, segments__max_length=16, stages=[LONGER], init__new_positions=new_positions, train__keep_last=9
    )
    last = pretrain(recipe, tmp_path / "run")
    name = "encoder.embeddings.position.weight"
    drawn = build_model(recipe.model, ["mlm"], seed=recipe.seed).state_dict()[name]
    before = load_checkpoint(last.parent / "step-00000004").load_weights()[name]
    between = load_checkpoint(last.parent / "step-00000006").load_weights()[name]
    end = load_checkpoint(last).load_weights()[name]
    assert torch.allclose(before[16:], drawn[16:], rtol=0.01)  # nothing but decay has touched them
    if new_positions == "drawn":
        assert torch.allclose(between[16:], drawn[16:], rtol=0.01)
    else:
        assert torch.equal(between, continue_positions(between, 16))
        assert not torch.allclose(between[16:], drawn[16:], rtol=0.1)
    assert not torch.allclose(end[16:], continue_positions(end, 16)[16:], rtol=0.01)  # learned, and left so at the end


def test_a_finished_run_is_left_as_it_is(tiny_corpus: Path, tmp_path: Path) -> None:
    recipe = make_recipe(tiny_corpus)
    last = pretrain(recipe, tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert pretrain(recipe, tmp_path / "run") == last
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_the_loss_falls(tiny_corpus: Path, tmp_path: Path) -> None:
    pretrain(make_recipe(tiny_corpus, train__steps=60, optim__name="adamw"), tmp_path / "run")
    losses = [record["mlm_loss"] for record in read_log(tmp_path / "run" / "metrics.jsonl")]
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])


def test_the_last_checkpoints_and_the_best_one_are_kept(tiny_corpus: Path, tmp_path: Path) -> None:
    recipe = make_recipe(tiny_corpus, train__steps=20, train__save_every=2, train__keep_last=2)
    pretrain(recipe, tmp_path / "run")
    records = read_log(tmp_path / "run" / "metrics.jsonl")
    best = min((r for r in records if "valid_loss" in r), key=lambda r: r["valid_loss"])["step"]
    kept = [int(path.name.removeprefix("step-")) for path in list_checkpoints(tmp_path / "run" / "checkpoints")]
    assert kept == sorted({18, 20, best})
    copy = tmp_path / "run" / "checkpoints" / "step-00000002-good"  # somebody's own: not ours to count or delete
    copy.mkdir()
    delete_old_checkpoints(tmp_path / "run", records, keep_last=1)
    assert [path.name for path in list_checkpoints(copy.parent)] == sorted({f"step-{best:08}", "step-00000020"})
    assert copy.is_dir()


def test_validation_runs_every_evaluate_every_steps(tiny_corpus: Path, tmp_path: Path) -> None:
    pretrain(make_recipe(tiny_corpus, train__evaluate_every=3), tmp_path / "run")
    measured = [r["step"] for r in read_log(tmp_path / "run" / "metrics.jsonl") if "valid_loss" in r]
    assert measured == [3, 4, 6, 8, 9, 12]


def test_words_can_begin_with_their_frequencies(tiny_corpus: Path, tmp_path: Path) -> None:
    recipe = make_recipe(tiny_corpus, init={"word_bias": "frequencies"}, train__steps=2)
    run = run_folder.open_run(tmp_path / "run", recipe, choose_runtime(recipe.runtime), open_view("run"))
    model = build_engine(run, recipe, build_objective(recipe)).model
    drawn = build_model(recipe.model, ["mlm", "sentence"], seed=recipe.seed)
    differing = {
        name for name, tensor in drawn.state_dict().items() if not torch.equal(tensor, model.state_dict()[name])
    }
    assert differing == {"heads.mlm.bias"}
    shares = model.heads["mlm"].bias.detach().exp()  # type: ignore[operator, union-attr]
    token_ids = np.concatenate([shard.token_ids for shard in open_corpus(tiny_corpus, "train").shards])
    assert float(shares.sum()) == pytest.approx(1, rel=1e-5)
    assert int(shares.argmax()) == int(np.bincount(token_ids).argmax())
    pretrain(recipe, tmp_path / "run")  # and its stored recipe says so
    assert load_recipe(tmp_path / "run" / "recipe.toml") == recipe


def test_weights_of_another_depth_and_dropout_start_a_run(tiny_corpus: Path, tmp_path: Path) -> None:
    source = pretrain(make_recipe(tiny_corpus, train__steps=2), tmp_path / "two")
    deeper = make_recipe(
        tiny_corpus, init={"from": str(source)}, model__num_layers=4, schedule__warmup_steps=4, train__steps=4
    )
    first = run_folder.open_run(tmp_path / "four", deeper, choose_runtime(deeper.runtime), open_view("four"))
    engine = build_engine(first, deeper, build_objective(deeper))
    assert torch.equal(
        engine.model.encoder.attention[0].query.weight,
        load_checkpoint(source).load_weights()["encoder.attention.0.query.weight"],
    )
    with refuses(ConfigError, "weights-mismatch"):
        pretrain(make_recipe(tiny_corpus, init={"from": str(source)}, model__ffn_size=32), tmp_path / "wider")


@pytest.mark.parametrize("stop", [{"tokens": 900}, {"hours": 0.4 / 3600}], ids=["tokens", "hours"])
def test_a_run_stops_by_tokens_or_hours_with_the_rate_run_down(
    stop: dict[str, float], tiny_corpus: Path, tmp_path: Path
) -> None:
    train = {"steps": 1000, "save_every": 1000, **stop}
    pretrain(make_recipe(tiny_corpus, train=train, schedule={"warmup_steps": 0}), tmp_path / "run")
    records = read_log(tmp_path / "run" / "metrics.jsonl")
    assert records[0]["learning_rate"] == 0.01
    rates = [record["learning_rate"] for record in records]
    assert rates == sorted(rates, reverse=True)
    if "tokens" in stop:
        assert records[-2]["tokens"] < 900 <= records[-1]["tokens"]


def ticking(seconds: float) -> Callable[[], float]:
    """A clock by which every step takes so many seconds."""
    ticks = itertools.count()
    return lambda: next(ticks) * seconds


def test_the_time_left_follows_from_the_steps_that_were_made_here(
    tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = pretrain(make_recipe(tiny_corpus, train__steps=8), tmp_path / "source")
    shown: list[float | None] = []
    monkeypatch.setattr(story.NoView, "show", lambda _, status: shown.append(status.seconds_left))
    monkeypatch.setattr(story.NoView, "is_due", lambda *_: True)
    monkeypatch.setattr(run_folder, "open_view", lambda _: story.NoView())
    recipe = make_recipe(tiny_corpus, init={"from": str(source), "continues": True})
    pretrain(recipe, tmp_path / "run", clock=ticking(10))
    assert shown == [30, 20, 10, 0]


def test_stages_of_a_run_by_the_clock_begin_at_their_share_of_its_hours(tiny_corpus: Path, tmp_path: Path) -> None:
    stages = [{"at": 500, "segments": {"max_length": 16}}, {"at": 750, "model": {"num_layers": 4}}]
    train = {"steps": 1000, "hours": 1.0, "save_every": 1000, "keep_last": 9, "evaluate_batches": 1}
    recipe = make_recipe(tiny_corpus, train=train, stages=stages)
    pretrain(recipe, tmp_path / "run", clock=ticking(180))
    tokens = [record["tokens"] for record in read_log(tmp_path / "run" / "metrics.jsonl")]
    assert len(tokens) == 20
    per_step = np.diff([0, *tokens])
    assert per_step[10:].max() <= 8 * 16 < per_step[:10].mean()
    saved = [load_checkpoint(path) for path in list_checkpoints(tmp_path / "run" / "checkpoints")]
    assert [(checkpoint.step, checkpoint.config.num_layers) for checkpoint in saved] == [(10, 2), (15, 2), (20, 4)]


def test_a_run_limited_by_hours_resumes_in_the_stage_where_it_stopped(
    tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = [{"at": 500, "segments": {"max_length": 16}}]
    train = {"steps": 1000, "hours": 1.0, "save_every": 3, "evaluate_batches": 1}
    recipe = make_recipe(tiny_corpus, train=train, stages=stages)
    pretrain(recipe, tmp_path / "whole", clock=ticking(180))
    for step in (8, 14):
        with interrupted_before_step(step, monkeypatch):
            pretrain(recipe, tmp_path / "broken", clock=ticking(180))
    pretrain(recipe, tmp_path / "broken", clock=ticking(180))
    assert_same_run(tmp_path / "whole", tmp_path / "broken")


def train_by_own_clock(rank: int, corpus: str, folder: str) -> None:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="localhost")
    os.environ.update(MASTER_PORT=(Path(folder) / "port").read_text())
    train = {"steps": 1000, "hours": 1.0, "save_every": 1000, "evaluate_batches": 1}
    recipe = make_recipe(Path(corpus), train=train, stages=[{"at": 500, "segments": {"max_length": 16}}])
    pretrain(recipe, Path(folder) / "run", clock=ticking(120 * (rank + 1)))


@pytest.mark.slow
@pytest.mark.ranks
def test_processes_whose_clocks_differ_change_stages_and_stop_together(tiny_corpus: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        (tmp_path / "port").write_text(str(taken.getsockname()[1]))
    torch.multiprocessing.spawn(train_by_own_clock, args=(str(tiny_corpus), str(tmp_path)), nprocs=2)
    assert len(read_log(tmp_path / "run" / "metrics.jsonl")) == 20  # 180 seconds a step, on average


def make_engine(recipe: Recipe, dropout: float) -> Engine:
    task = MaskedLM(2)
    config = replace(recipe.model, hidden_dropout_rate=dropout, attention_dropout_rate=dropout)
    model = build_model(config, task.heads).double()
    optimizer = build_optimizer(model.named_parameters(), OptimOptions(name="adamw"))  # takes fp64
    here = choose_runtime(RuntimeOptions(device="cpu"))
    return Engine(model, TaskLoss(model, task), optimizer, task, here, build_scaler(here), 1.0, recipe.seed)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("is_packed", [False, True])
def test_four_micro_batches_of_two_equal_one_batch_of_eight(dropout: float, is_packed: bool, tiny_corpus: Path) -> None:
    recipe = make_recipe(tiny_corpus, batch={"sequences": 24 if is_packed else 8, "is_packed": is_packed})
    stream, _ = open_stream(recipe.data, recipe.stream)
    results = []
    for micro_rows in (2, 0, 3):
        engine = make_engine(recipe, dropout)
        engine.model.encoder.recompute = micro_rows == 3  # computed again, a layer meets the same noise
        parts = next(stream.iter_micro_batches(5, 6, micro_rows=micro_rows, workers=0))
        assert is_packed or len(parts) == {2: 4, 0: 1, 3: 3}[micro_rows]
        assert len(parts) > 1 or micro_rows == 0
        parts = [seed_dropout(part, recipe.seed, step=5) for part in parts]
        report = update(engine, parts, step=5, learning_rate=0.1)
        results.append((report.metrics, engine.model.state_dict()))
    for metrics, weights in results[1:]:
        assert metrics == pytest.approx(results[0][0])
        for name, tensor in weights.items():
            torch.testing.assert_close(tensor, results[0][1][name], atol=1e-9, rtol=0)


def test_dropout_noise_depends_on_step_and_row_and_not_on_what_was_computed_before(tiny_corpus: Path) -> None:
    recipe = make_recipe(tiny_corpus)
    stream, _ = open_stream(recipe.data, recipe.stream)
    parts = next(stream.iter_micro_batches(5, 6, micro_rows=2, workers=0))
    same, later = ([seed_dropout(part, recipe.seed, step) for part in parts] for step in (5, 6))
    results = []
    for num_draws in (0, 7):
        engine = make_engine(recipe, dropout=0.5)
        torch.rand(num_draws)  # what another rank, or an evaluation, may have drawn
        update(engine, same, step=5, learning_rate=0.1)
        results.append(engine.model.state_dict())
    other = make_engine(recipe, dropout=0.5)
    update(other, later, step=6, learning_rate=0.1)
    assert all(torch.equal(tensor, results[1][name]) for name, tensor in results[0].items())
    assert not all(torch.equal(tensor, results[0][name]) for name, tensor in other.model.state_dict().items())


@pytest.mark.parametrize("task", ["sop", "none"])
def test_gradients_reach_every_parameter_that_the_loss_uses(task: str, tiny_corpus: Path) -> None:
    form = "segment-pair" if task == "sop" else "full-sentences"
    recipe = make_recipe(tiny_corpus, segments={"max_length": 32, "task": task, "format": form})
    stream, _ = open_stream(recipe.data, recipe.stream)
    run = run_folder.Run(Path(), recipe, choose_runtime(recipe.runtime), None, Progress(), State())  # type: ignore[arg-type]
    engine = build_engine(run, recipe, build_objective(recipe))
    batch = stream.batch(0)
    engine.task.loss(engine.model, batch, engine.task.count(batch)).loss.backward()  # type: ignore[no-untyped-call]
    for name, parameter in engine.model.named_parameters():
        assert parameter.requires_grad == (parameter.grad is not None), name
        assert parameter.grad is None or bool(parameter.grad.any()) or name.endswith("key.bias"), name


def test_the_card_and_the_recipe_are_in_the_checkpoint(tiny_corpus: Path, tmp_path: Path) -> None:
    last = pretrain(make_recipe(tiny_corpus, train__steps=2), tmp_path / "run")
    card = (last / "README.md").read_text()
    assert "mlm accuracy" in card
    assert "Limitations" in card
    assert (last / "recipe.toml").read_text() == (tmp_path / "run" / "recipe.toml").read_text()
    assert json.loads((last / "litebert.json").read_text())["step"] == 2


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_half_precision_trains_resumes_exactly_and_stays_near_fp32(
    dtype: str, tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = make_recipe(tiny_corpus, runtime={"dtype": dtype})
    pretrain(recipe, tmp_path / "whole")
    with interrupted_before_step(6, monkeypatch):
        pretrain(recipe, tmp_path / "broken")
    pretrain(recipe, tmp_path / "broken")
    assert_same_run(tmp_path / "whole", tmp_path / "broken")
    pretrain(make_recipe(tiny_corpus), tmp_path / "fp32")
    half, full = (read_log(tmp_path / name / "metrics.jsonl")[-1]["valid_loss"] for name in ("whole", "fp32"))
    assert half == pytest.approx(full, abs=0.1)
    assert half != full


def timed(fastest: str) -> Callable[..., float]:
    """A machine on which a micro-batch takes the least time in this format."""
    return lambda engine, _: 1.0 if engine.runtime.dtype_name == fastest else 2.0


def test_a_number_format_that_was_measured_is_kept_when_a_busy_machine_measures_another(
    tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = make_recipe(tiny_corpus, train__steps=6, runtime={"dtype": "auto"})
    monkeypatch.setattr(loop, "time_batch", timed("bf16"))
    pretrain(recipe, tmp_path / "whole")
    with interrupted_before_step(6, monkeypatch):
        pretrain(recipe, tmp_path / "broken")
    monkeypatch.setattr(loop, "time_batch", timed("fp32"))
    pretrain(recipe, tmp_path / "broken")
    assert_same_run(tmp_path / "whole", tmp_path / "broken")
    last = load_checkpoint(list_checkpoints(tmp_path / "broken" / "checkpoints")[-1])
    assert last.begun_with["dtype"] == "bf16"


@pytest.mark.parametrize("fastest", ["fp32", "bf16"])
def test_measuring_formats_leaves_no_trace_in_the_run(
    fastest: str, tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_timed = loop.time_batch

    def time_batch(engine: Engine[Batch], parts: Sequence[Batch]) -> float:
        really_timed(engine, parts)
        return timed(fastest)(engine, parts)

    monkeypatch.setattr(loop, "time_batch", time_batch)
    for dtype in ("auto", fastest):
        pretrain(make_recipe(tiny_corpus, train__steps=4, runtime={"dtype": dtype}), tmp_path / dtype)
    logs = [(tmp_path / dtype / "metrics.jsonl").read_bytes() for dtype in ("auto", fastest)]
    assert logs[0] == logs[1]


def note_format(rank: int, port: str, folder: str) -> None:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="localhost", MASTER_PORT=port)
    own = choose_runtime(RuntimeOptions(device="cpu", dtype=("bf16", "fp32")[rank]))
    with process_group(own):
        (Path(folder) / str(rank)).write_text(agree_on_dtype(own).dtype_name)


@pytest.mark.slow
@pytest.mark.ranks
def test_processes_that_measure_differently_compute_in_the_format_of_the_first(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        port = str(taken.getsockname()[1])
    torch.multiprocessing.spawn(note_format, args=(port, str(tmp_path)), nprocs=2)
    assert [(tmp_path / str(rank)).read_text() for rank in range(2)] == ["bf16", "bf16"]


def test_a_step_that_overflows_in_fp16_is_skipped_and_the_run_continues(tiny_corpus: Path, tmp_path: Path) -> None:
    # gradients of large weights do not fit fp16 at the first scale, which the scaler finds out by trying
    recipe = make_recipe(tiny_corpus, runtime={"dtype": "fp16"}, model__initializer_range=1.0, train__steps=4)
    pretrain(recipe, tmp_path / "run")
    records = read_log(tmp_path / "run" / "metrics.jsonl")
    assert len(records) == 4
    assert "gradient_norm" not in records[0]


@pytest.mark.slow
def test_compiled_blocks_learn_what_eager_ones_learn(tiny_corpus: Path, tmp_path: Path) -> None:
    for name, is_compiled in (("eager", False), ("compiled", True)):
        changes = {
            "model__hidden_dropout_rate": 0.0,
            "model__attention_dropout_rate": 0.0,
        }  # its noise is drawn otherwise
        pretrain(make_recipe(tiny_corpus, train__compile=is_compiled, **changes), tmp_path / name)
    eager, compiled = (read_log(tmp_path / name / "metrics.jsonl")[-1] for name in ("eager", "compiled"))
    assert compiled == pytest.approx(eager, rel=1e-3)
