"""Fine-tuning learns every kind of task, goes on as if it had never stopped, and says what cannot be meant."""

import json
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from refusals import refuses
from small_tasks import ANIMALS, PLACES, find, invent_rows, split_pairs, tag_words, write_rows

from litebert.checkpoint import list_checkpoints, load_checkpoint
from litebert.core.errors import ConfigError, DataError, TrainingError
from litebert.core.runlog import read_log
from litebert.core.view import View
from litebert.finetuning import finetune as story
from litebert.finetuning.finetune import finetune
from litebert.finetuning.recipe import (
    CHINESE,
    PAPER,
    FinetuneRecipe,
    build_finetune_recipe,
    choose_recipe,
    load_finetune_recipe,
    settle_length,
)
from litebert.finetuning.run_folder import Job, build_task_model
from litebert.tasks.catalog import list_readers, read_dataset, restore_task, task_facts
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.finetuning import Chance, Dataset
from litebert.tasks.kinds.choices import Choices
from litebert.tasks.kinds.classification import Classification
from litebert.tasks.predictions import read_predictions
from litebert.tasks.report import explain_chance, read_report
from litebert.training import loop

NO_DROPOUT = {"dropout_rate": 0.0, "classifier_dropout_rate": 0.0}

KINDS: dict[str, tuple[str, Callable[[], list[dict[str, Any]]], dict[str, float]]] = {
    "one text": ("classification", lambda: invent_rows(), {"accuracy": 1, "macro_f1": 1}),
    "two texts": (
        "classification",
        lambda: split_pairs(invent_rows(lambda w: find(w, PLACES))),
        {"accuracy": 1, "macro_f1": 1},
    ),
    # seconds since 1970: more digits than a float32 has
    "number": (
        "regression",
        lambda: invent_rows(lambda w: 1.7e9 + 2 * len(find(w, ANIMALS)) + len(find(w, PLACES))),
        {},
    ),
    "many labels": (
        "multi-label",
        lambda: invent_rows(lambda w: [word for word in w if word in ANIMALS or word in PLACES]),
        {"micro_f1": 1, "exact_match": 1},
    ),
    "tags": ("tags", lambda: tag_words(invent_rows(" ".join)), {"span_f1": 1, "accuracy": 1}),
}


def make_recipe(**changes: Any) -> FinetuneRecipe:
    values: dict[str, Any] = {
        "seed": 3,
        "train": {"batch_size": 8, "max_length": 32, "steps": 12, "evaluations": 3},
        "optim": {"learning_rate": 0.01},
    }
    for key, value in changes.items():
        section, _, name = key.partition("__")
        values[section] = {**values.get(section, {}), name: value} if name else value
    return build_finetune_recipe(values)


def make_job(checkpoint: Path, task: str, data: Path, **changes: Any) -> Job:
    return Job(load_checkpoint(checkpoint), read_dataset(task, data), make_recipe(**changes))


@pytest.mark.parametrize("kind", KINDS)
def test_a_tiny_model_learns_32_examples_by_heart(kind: str, tiny_checkpoint: Path, tmp_path: Path) -> None:
    task, invent, expected = KINDS[kind]
    data = write_rows(tmp_path / "data", invent())
    job = make_job(tiny_checkpoint, task, data, train__steps=150, train__evaluations=5, model=NO_DROPOUT)
    report = finetune(job, tmp_path / "run")
    scores = report["dev"]["dev"]["scores"]
    assert not report["dev"]["dev"]["is_at_chance"]
    if task == "regression":
        assert scores["pearson"] > 0.99
    else:
        assert scores == expected


class Interrupted(Exception):
    pass


@contextmanager
def dying_in(name: str, when: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The run dies when it calls a function of the story for the `when`th time."""
    calls = iter(range(1, 1000))
    called = getattr(story, name)

    def die(*arguments: Any, **options: Any) -> Any:
        if next(calls) == when:
            raise Interrupted
        return called(*arguments, **options)

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(story, name, die)
        yield


@pytest.mark.parametrize(
    "changes",
    [{}, {"train__micro_batch": 3, "optim__name": "lamb"}, {"train__patience": 1, "train__evaluations": 6}],
    ids=["plain", "parts", "patience"],
)
def test_an_interrupted_run_gives_the_same_report(
    changes: dict[str, Any], tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_rows(tmp_path / "data", invent_rows(count=20))
    job = make_job(tiny_checkpoint, "classification", data, **changes)
    finetune(job, tmp_path / "a" / "run")
    for name, when in (("show", 3), ("save", 2), ("show", 7), ("save_model", 1), ("write_report", 1)):
        with dying_in(name, when, monkeypatch):
            finetune(job, tmp_path / "b" / "run")
        if changes.get("train__patience"):
            break  # it may stop before the others come
    finetune(job, tmp_path / "b" / "run")
    for file in ("report.json", "metrics.jsonl", "predictions/dev.jsonl", "errors.md", "model/model.safetensors"):
        assert (tmp_path / "a" / "run" / file).read_bytes() == (tmp_path / "b" / "run" / file).read_bytes(), file


def test_a_terminated_run_saves_its_step_and_resumes_to_the_same_report(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_rows(tmp_path / "data", invent_rows(count=20))
    job = make_job(tiny_checkpoint, "classification", data)
    finetune(job, tmp_path / "a" / "run")
    show = story.show

    def show_and_stop(view: View, run: Any, report: Any) -> None:
        show(view, run, report)
        if run.progress.step == 6:  # evaluated and saved are 4, 8 and 12
            signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as patch, pytest.raises(SystemExit) as ending:
        patch.setattr(story, "show", show_and_stop)
        finetune(job, tmp_path / "b" / "run")
    assert ending.value.code == 128 + signal.SIGTERM
    assert list_checkpoints(tmp_path / "b" / "run" / "checkpoints")[-1].name == "step-00000006"
    finetune(job, tmp_path / "b" / "run")
    for file in ("report.json", "metrics.jsonl", "predictions/dev.jsonl", "model/model.safetensors"):
        assert (tmp_path / "a" / "run" / file).read_bytes() == (tmp_path / "b" / "run" / file).read_bytes(), file


def test_parts_of_any_size_give_the_same_losses_without_dropout(tiny_checkpoint: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "data", invent_rows())
    losses = {}
    for micro_batch in (0, 4):
        changes = {"train__micro_batch": micro_batch, "train__log_every": 1, "model": NO_DROPOUT}
        finetune(make_job(tiny_checkpoint, "classification", data, **changes), tmp_path / f"run-{micro_batch}")
        losses[micro_batch] = [record["loss"] for record in read_log(tmp_path / f"run-{micro_batch}" / "metrics.jsonl")]
    assert losses[4] == pytest.approx(losses[0], rel=1e-4)


def test_a_finished_run_is_left_as_it_is(tiny_checkpoint: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "data", invent_rows())
    job = make_job(tiny_checkpoint, "classification", data)
    report = finetune(job, tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert finetune(job, tmp_path / "run") == report
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_another_model_with_the_same_weights_is_another_job(tiny_checkpoint: Path, tmp_path: Path) -> None:
    job = make_job(tiny_checkpoint, "classification", write_rows(tmp_path / "data", invent_rows()))
    other = replace(job.source, config=replace(job.source.config, activation="relu"))
    finetune(job, tmp_path / "run")
    with refuses(ConfigError, "options-changed"):
        finetune(replace(job, source=other), tmp_path / "run")


def test_a_damaged_report_is_named(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text('{"task": ')
    with refuses(DataError, "bad-json", at="report.json"):
        read_report(tmp_path)


def test_the_best_checkpoint_is_the_model_and_knows_its_task(tiny_checkpoint: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "data", invent_rows())
    job = make_job(tiny_checkpoint, "classification", data)
    report = finetune(job, tmp_path / "run")
    history = {record["step"]: record["dev_accuracy"] for record in report["history"]}
    assert list(history) == [4, 8, 12]
    assert report["best_step"] == max(history, key=lambda step: (history[step], -step))
    assert report["dev"]["dev"]["scores"]["accuracy"] == max(history.values())
    model = load_checkpoint(tmp_path / "run" / "model")
    assert model.step == report["best_step"]
    assert model.task is not None
    assert restore_task(model.task, where="model") == job.dataset.task
    assert json.loads((model.path / "config.json").read_text())["id2label"] == {"0": "bird", "1": "cat", "2": "dog"}
    kept = [path.name for path in list_checkpoints(tmp_path / "run" / "checkpoints")]
    assert kept == [f"step-{step:08d}" for step in sorted({report["best_step"], 12})]


def test_a_finished_run_has_intervals_a_baseline_and_no_optimizer(tiny_checkpoint: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "data", invent_rows())
    job = make_job(tiny_checkpoint, "classification", data)
    split = finetune(job, tmp_path / "run")["dev"]["dev"]
    low, high = split["intervals"]["accuracy"]
    assert 0 <= low < split["scores"]["accuracy"] < high + 1e-6
    assert split["baseline"]["lead"] == split["scores"]["accuracy"] - split["baseline"]["scores"]["accuracy"]
    assert list(split["labels"]) == ["bird", "cat", "dog"]
    assert not list((tmp_path / "run").rglob("optimizer.safetensors"))
    for path in list_checkpoints(tmp_path / "run" / "checkpoints"):
        assert load_checkpoint(path).load_model()  # its manifest does not miss what was dropped


def test_transformers_gives_the_probabilities_of_our_predictions(tiny_checkpoint: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    data = write_rows(tmp_path / "data", split_pairs(invent_rows()))
    finetune(make_job(tiny_checkpoint, "classification", data), tmp_path / "run")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "run" / "model").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "run" / "model")
    rows = [json.loads(line) for line in (data / "dev.jsonl").read_text().splitlines()]
    for row, ours in zip(rows[:4], read_predictions(tmp_path / "run" / "predictions" / "dev.jsonl"), strict=False):
        inputs = tokenizer(row["text_a"], row["text_b"], return_tensors="pt")
        with torch.no_grad():
            theirs = model(**inputs).logits.softmax(-1)[0]
        torch.testing.assert_close(theirs, torch.tensor(ours.output), rtol=1e-4, atol=1e-5)
        assert model.config.id2label[int(theirs.argmax())] == ours.answer


def test_a_run_for_one_task_can_be_the_start_for_another(tiny_checkpoint: Path, tmp_path: Path) -> None:
    first = write_rows(tmp_path / "first", invent_rows())
    finetune(make_job(tiny_checkpoint, "classification", first), tmp_path / "run")
    second = write_rows(tmp_path / "second", invent_rows(lambda words: float(len(words))))
    job = make_job(tmp_path / "run" / "model", "regression", second)
    learned, start = load_checkpoint(tmp_path / "run" / "model").load_weights(), build_task_model(job).state_dict()
    encoder = [name for name in start if name.startswith("encoder.")]
    assert all(torch.equal(start[name], learned[name]) for name in encoder)
    assert start["heads.classification.output.weight"].shape == (1, 32)
    assert not any(
        torch.equal(start[n], build_task_model(replace(job, is_from_scratch=True)).state_dict()[n]) for n in encoder[:3]
    )


@pytest.mark.parametrize(("chance", "last_step"), [(0.0, 3), (0.9, 12)], ids=["above chance", "at chance"])
def test_patience_stops_a_run_that_no_longer_improves_unless_it_has_not_begun(
    chance: float, last_step: int, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Classification, "chance", lambda *_: Chance(chance, 0.0))
    data = write_rows(tmp_path / "data", invent_rows())
    job = make_job(
        tiny_checkpoint, "classification", data, train__patience=2, train__evaluations=12, optim__learning_rate=0.0
    )
    report = finetune(job, tmp_path / "run")
    assert (report["best_step"], report["last_step"], report["steps"]) == (1, last_step, 12)


def test_a_run_that_has_memorized_its_rows_stops_although_dev_is_at_chance(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Classification, "chance", lambda *_: Chance(1.0, 0.0))
    data = write_rows(tmp_path / "data", invent_rows())
    job = make_job(
        *(tiny_checkpoint, "classification", data),
        train__patience=2,
        train__steps=120,
        train__evaluations=30,
        train__log_every=1,
    )
    report = finetune(job, tmp_path / "run")
    losses = [record["loss"] for record in read_log(tmp_path / "run" / "metrics.jsonl")]
    assert report["last_step"] < 120
    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.parametrize(("word", "share"), [("\u4f60", "5"), ("", "")])
def test_texts_unknown_to_the_vocabulary_are_reported(
    word: str, share: str, tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{**row, "text": f"{row['text']} {' '.join([word] * 10)}".strip()} for row in invent_rows()]
    job = make_job(tiny_checkpoint, "classification", write_rows(tmp_path / "data", rows), train__steps=1)
    finetune(job, tmp_path / "run")
    shown = "".join(capsys.readouterr())
    assert bool(re.search(rf"{share}\d% of the training tokens are unknown to the vocabulary", shown)) is bool(word)


def test_a_dev_score_that_is_not_a_number_stops_before_anything_is_saved(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_rows(tmp_path / "data", invent_rows())
    job = make_job(tiny_checkpoint, "classification", data)
    monkeypatch.setattr(type(job.dataset.task), "score", lambda *_: {"accuracy": float("nan")})
    with refuses(TrainingError, "loss-not-finite"):
        finetune(job, tmp_path / "run")
    assert not list_checkpoints(tmp_path / "run" / "checkpoints")


def test_a_run_that_learned_nothing_is_marked(tiny_checkpoint: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "data", invent_rows())
    job = make_job(tiny_checkpoint, "classification", data, optim__learning_rate=0.0)
    assert finetune(job, tmp_path / "run")["dev"]["dev"]["is_at_chance"]


@pytest.mark.parametrize("trainable", ["head", "last-1"])
def test_frozen_layers_keep_their_weights(trainable: str, tiny_checkpoint: Path, tmp_path: Path) -> None:
    source = load_checkpoint(tiny_checkpoint)
    data = write_rows(tmp_path / "data", invent_rows())
    job = make_job(tiny_checkpoint, "classification", data, train__trainable=trainable)
    if trainable == "last-1":
        with refuses(ConfigError, "layers-shared"):
            finetune(job, tmp_path / "run")
        too_many = make_job(tiny_checkpoint, "classification", data, train__trainable="last-3")
        with refuses(ConfigError, "too-many-layers"):
            finetune(too_many, tmp_path / "run")
        job = replace(job, source=replace(source, config=replace(source.config, sharing="none")), is_from_scratch=True)
    finetune(job, tmp_path / "run")
    start, end = build_task_model(job).state_dict(), load_checkpoint(tmp_path / "run" / "model").load_weights()
    changed = {name for name in start if not torch.equal(start[name], end[name])}
    learned = ("encoder.pooler", "heads.") + (("encoder.attention.1", "encoder.ffn.1") if "last" in trainable else ())
    assert changed
    assert all(name.startswith(learned) for name in changed)


def test_class_weights_make_every_label_count_alike(tmp_path: Path) -> None:
    rows = [{"text": "a cat", "label": "rare"}] + [{"text": "a dog", "label": "usual"}] * 3
    task = read_dataset("classification", write_rows(tmp_path, rows), TableOptions(is_balanced=True)).task
    assert task_facts(task, max_length=8)["class_weights"] == (2.0, 2 / 3)


# ALBERT (camera-ready), Table 14, as printed: learning rate, batch, dropout of ALBERT and of the classifier, steps,
# warm-up steps, longest sequence.
TABLE_14 = {
    "cola": (1e-5, 16, 0.0, 0.1, 5336, 320, 512),
    "sts-b": (2e-5, 16, 0.0, 0.1, 3598, 214, 512),
    "sst-2": (1e-5, 32, 0.0, 0.1, 20935, 1256, 512),
    "mnli": (3e-5, 128, 0.0, 0.1, 10000, 1000, 512),
    "qnli": (1e-5, 32, 0.0, 0.1, 33112, 1986, 512),
    "qqp": (5e-5, 128, 0.1, 0.1, 14000, 1000, 512),
    "rte": (3e-5, 32, 0.1, 0.1, 800, 200, 512),
    "mrpc": (2e-5, 32, 0.0, 0.1, 800, 200, 512),
    "wnli": (2e-5, 16, 0.1, 0.1, 2000, 250, 512),
    "squad-v1": (5e-5, 48, 0.0, 0.1, 3649, 365, 384),
    "squad-v2": (3e-5, 48, 0.0, 0.1, 8144, 814, 512),
    "race": (2e-5, 32, 0.1, 0.1, 12000, 1000, 512),
}


@pytest.mark.parametrize("task", [*TABLE_14, "race-middle", "race-high"])
def test_every_recipe_is_the_papers_row(task: str, tiny_checkpoint: Path) -> None:
    recipe = load_finetune_recipe(task)
    length = settle_length(recipe, num_examples=1000)
    row = (
        recipe.optim.learning_rate,
        recipe.train.batch_size,
        recipe.model.dropout_rate,
        recipe.model.classifier_dropout_rate,
        length.options.steps,
        length.schedule.warmup_steps,
        recipe.train.max_length,
    )
    assert row == TABLE_14["race" if task.startswith("race") else task]
    assert recipe.optim.name == "adamw"
    assert load_finetune_recipe(task, "two-core").train.max_length <= 256
    config = build_task_model(Job(load_checkpoint(tiny_checkpoint), Dataset(Choices(task), (), {}), recipe)).config
    assert (config.hidden_dropout_rate, config.attention_dropout_rate, config.classifier_dropout_rate) == (
        *[row[2]] * 2,
        row[3],
    )


def test_the_paper_has_a_row_for_every_task_that_its_recipe_is_offered_for() -> None:
    assert {name.removesuffix("-middle").removesuffix("-high") for name in PAPER} == set(TABLE_14)


@pytest.mark.parametrize("task", CHINESE)
def test_a_chinese_task_has_the_recipe_of_its_published_baseline(task: str) -> None:
    assert task in list_readers()
    recipe, row = load_finetune_recipe(task, "paper"), CHINESE[task]
    found = (recipe.train.batch_size, recipe.train.epochs, recipe.train.max_length, recipe.train.warmup_share)
    assert found == (row.batch_size, row.epochs, row.max_length, row.warmup_share)
    assert (recipe.optim.learning_rate, recipe.model.dropout_rate, recipe.train.steps) == (row.learning_rate, 0.1, 0)


@pytest.mark.parametrize(
    ("num_examples", "epochs", "steps"), [(100, 3.0, 12), (33, 1.0, 2), (64, 3.0, 6), (64, 0.5, 1), (64, 0.1, 1)]
)
def test_an_epoch_is_all_its_batches_however_small_the_last(num_examples: int, epochs: float, steps: int) -> None:
    recipe = make_recipe(train__steps=0, train__epochs=epochs, train__batch_size=32)
    assert settle_length(recipe, num_examples).options.steps == steps


@pytest.mark.parametrize(("hidden_size", "rate"), [(32, 3e-4), (256, 3e-4), (768, 5.6e-5), (4096, 2e-6)])
def test_wider_models_take_smaller_steps(hidden_size: int, rate: float) -> None:
    recipe = load_finetune_recipe("classification", hidden_size=hidden_size)
    assert recipe.optim.learning_rate == pytest.approx(rate, rel=0.01)


def test_a_negative_seed_is_refused() -> None:
    with refuses(ConfigError, "out-of-range"):
        load_finetune_recipe("classification", overrides=["seed=-1"])


def test_a_run_begun_otherwise_is_not_gone_on_with(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_rows(tmp_path / "data", invent_rows())
    with dying_in("save", 2, monkeypatch):
        finetune(make_job(tiny_checkpoint, "classification", data), tmp_path / "run")
    with refuses(ConfigError, "options-changed", at="optim.learning_rate"):
        finetune(make_job(tiny_checkpoint, "classification", data, optim__learning_rate=0.02), tmp_path / "run")
    write_rows(data, invent_rows(seed=1))
    with refuses(ConfigError, "options-changed", at="job.examples"):
        finetune(make_job(tiny_checkpoint, "classification", data), tmp_path / "run")


def test_data_without_a_train_split_is_refused(tiny_checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\nfine\t1\n")
    with refuses(DataError, "empty-split"):
        finetune(make_job(tiny_checkpoint, "sst-2", tmp_path), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_padding_and_order_do_not_change_outputs(tiny_checkpoint: Path, tmp_path: Path) -> None:
    from litebert.core.runtime import RuntimeOptions, choose_runtime
    from litebert.inference.engines.torch_engine import TorchEngine
    from litebert.inference.session import Session

    data = write_rows(tmp_path / "data", invent_rows())
    job = make_job(tiny_checkpoint, "classification", data)
    model, task = build_task_model(job), job.dataset.task
    groups = task.encode(job.dataset.train, job.source.load_tokenizer(), job.form)
    runtime = choose_runtime(RuntimeOptions())
    together = Session(TorchEngine(model, runtime), pad_id=0).predict(task, groups)
    alone = Session(TorchEngine(model, runtime, batch_tokens=1), pad_id=0).predict(task, groups)
    torch.testing.assert_close(torch.tensor(together), torch.tensor(alone), rtol=1e-4, atol=1e-6)


def test_metrics_have_the_scores_of_each_evaluation(tiny_checkpoint: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "data", invent_rows())
    finetune(make_job(tiny_checkpoint, "classification", data), tmp_path / "run")
    measured = [r["step"] for r in read_log(tmp_path / "run" / "metrics.jsonl") if "dev_accuracy" in r]
    assert measured == [4, 8, 12]


def test_another_border_between_train_and_dev_is_another_job(tiny_checkpoint: Path, tmp_path: Path) -> None:
    examples = read_dataset("classification", write_rows(tmp_path / "data", invent_rows()))
    source, recipe = load_checkpoint(tiny_checkpoint), make_recipe(train__steps=2, train__evaluations=1)

    def hold_out(count: int) -> Job:
        rows = list(examples.train)
        return Job(source, replace(examples, train=rows[:-count], dev={"dev": rows[-count:]}), recipe)

    finetune(hold_out(4), tmp_path / "run")
    with refuses(ConfigError, "options-changed", at="job.num_train"):
        finetune(hold_out(12), tmp_path / "run")


def test_other_weights_of_labels_or_other_test_rows_are_another_job(tiny_checkpoint: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "data", invent_rows())
    source, recipe = load_checkpoint(tiny_checkpoint), make_recipe(train__steps=2, train__evaluations=1)
    finetune(Job(source, read_dataset("classification", data), recipe), tmp_path / "run")
    balanced = read_dataset("classification", data, TableOptions(is_balanced=True))
    with refuses(ConfigError, "options-changed"):
        finetune(Job(source, balanced, recipe), tmp_path / "run")
    (data / "test.jsonl").write_text('{"text": "a cat"}\n')
    with refuses(ConfigError, "options-changed", at="job.test"):
        finetune(Job(source, read_dataset("classification", data), recipe), tmp_path / "run")


def test_a_run_of_an_earlier_version_that_does_not_name_its_metric_is_still_known(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    job = make_job(tiny_checkpoint, "classification", write_rows(tmp_path / "data", invent_rows()))
    report = finetune(job, tmp_path / "run")
    file = tmp_path / "run" / "recipe.toml"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith(("metric =", "positive ="))))
    assert len(file.read_text().splitlines()) == len(lines) - 2
    assert finetune(job, tmp_path / "run") == report
    other = replace(job, dataset=replace(job.dataset, task=replace(job.dataset.task, metrics=("macro_f1",))))  # type: ignore[type-var]
    with refuses(ConfigError, "options-changed", at="job.metric"):
        finetune(other, tmp_path / "run")


@pytest.mark.parametrize(
    ("num_examples", "has_gpu", "steps"),
    [(270, False, 500), (40, False, 500), (9_000, False, 846), (67_349, False, 4000), (67_349, True, 6315)],
)
def test_an_adaptive_run_is_as_long_as_its_data_needs(num_examples: int, has_gpu: bool, steps: int) -> None:
    options: dict[str, Any] = {"num_examples": num_examples, "has_gpu": has_gpu}
    recipe = load_finetune_recipe("classification", "adaptive", **options)
    assert settle_length(recipe, num_examples).options.steps == pytest.approx(steps, abs=1)
    assert recipe.train.patience > 0
    for change, expected in (("train.steps=7", 7), ("train.epochs=1", -(-num_examples // 32))):
        recipe = load_finetune_recipe("classification", "adaptive", [change], **options)
        assert settle_length(recipe, num_examples).options.steps == expected


@pytest.mark.parametrize(
    ("task", "hidden_size", "has_gpu", "recipe"),
    [
        ("sst-2", 192, False, "adaptive"),
        ("sst-2", 768, False, "adaptive"),
        ("sst-2", 192, True, "adaptive"),
        ("sst-2", 768, True, "paper"),
        ("tnews", 768, True, "paper"),
        ("tnews", 312, True, "adaptive"),
        ("classification", 768, True, "adaptive"),
    ],
)
def test_the_papers_recipe_is_the_default_only_for_such_models_on_a_gpu(
    task: str, hidden_size: int, has_gpu: bool, recipe: str
) -> None:
    assert choose_recipe(task, hidden_size=hidden_size, has_gpu=has_gpu) == recipe


def test_recipe_steps_and_time_are_announced_before_the_first_step_and_change_nothing(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_rows(tmp_path / "data", invent_rows())
    job = replace(make_job(tiny_checkpoint, "classification", data, train__patience=2), recipe_name="adaptive")
    finetune(job, tmp_path / "a" / "run")
    said = capsys.readouterr().out
    line = "recipe adaptive: 12 steps of 8 examples (3 epochs of 32), length 32, adamw at 0.01, evaluated every"
    assert line in said
    assert "stops early after 2 evaluations without improvement" in said
    assert re.search(r"at most about \d+ s on this cpu", said)
    assert said.index(line) < said.index("step 1/12")
    monkeypatch.setattr(story, "announce", lambda *_: None)
    finetune(job, tmp_path / "b" / "run")
    for file in ("report.json", "metrics.jsonl", "model/model.safetensors"):
        assert (tmp_path / "a" / "run" / file).read_bytes() == (tmp_path / "b" / "run" / file).read_bytes(), file


FALLING, FLAT = [2.0, *[0.1] * 20], [2.0, *[1.95] * 20]


@pytest.mark.parametrize(
    ("losses", "changes", "cause"),
    [
        (FLAT[:5], {}, "the run had only 50 steps; train longer"),
        (FLAT, {}, "the training loss hardly fell; try another learning rate"),
        (FALLING, {"confusion": [[0, 150], [0, 50]]}, "the model always predicts the same label"),
        (FALLING, {"num_examples": 30}, "30 examples are few: only a score above 0.6000 is significant; hold out more"),
        (FALLING, {}, "the model memorized the 270 training examples"),
    ],
)
def test_a_run_at_chance_names_the_likely_cause(losses: list[float], changes: dict[str, Any], cause: str) -> None:
    facts = {"num_examples": 200, "chance": {"score": 0.5, "margin": 0.1}, "confusion": [[60, 40], [50, 50]], **changes}
    records = [{"step": 10 * number, "loss": loss} for number, loss in enumerate(losses, start=1)]
    assert explain_chance(facts, records, num_train=270).startswith(cause)


@pytest.mark.parametrize("fastest", ["fp32", "bf16"])
def test_auto_trains_in_the_format_in_which_a_batch_is_fastest(
    fastest: str, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "time_batch", lambda engine, _: 1.0 if engine.runtime.dtype_name == fastest else 2.0)
    data = write_rows(tmp_path / "data", invent_rows())
    for dtype in ("auto", fastest):
        job = make_job(tiny_checkpoint, "classification", data, runtime={"dtype": dtype}, train__steps=4)
        finetune(job, tmp_path / dtype)
    logs = [(tmp_path / dtype / "metrics.jsonl").read_bytes() for dtype in ("auto", fastest)]
    assert logs[0] == logs[1]
