"""Errors of a pre-training run name the cause and the fix, and destroy nothing."""

import json
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from other_corpora import change_text
from refusals import refuses
from small_disk import small_disk
from small_runs import assert_same_run, interrupted_before_step, make_recipe
from torch import Tensor

from litebert import checkpoint
from litebert.checkpoint import list_checkpoints, load_checkpoint
from litebert.core import runtime
from litebert.core.errors import ConfigError, DataError, LitebertError, TrainingError
from litebert.core.runtime import choose_runtime
from litebert.core.view import open_view
from litebert.corpus.build import BuildOptions, build_corpus
from litebert.objectives.masked_lm import MaskedLM
from litebert.pretraining import pretrain as story
from litebert.pretraining import run_folder
from litebert.pretraining.pretrain import pretrain
from litebert.text.tokenizer import Tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer


def spoil(checkpoint: Path) -> None:
    """Change a bit of a checkpoint's weights."""
    weights = checkpoint / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)


def all_files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_taken(
    tiny_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = make_recipe(tiny_corpus)
    pretrain(recipe, tmp_path / "whole")
    pretrain(recipe, tmp_path / "run")
    last = list_checkpoints(tmp_path / "run" / "checkpoints")[-1]
    spoil(last)
    pretrain(recipe, tmp_path / "run")
    assert f"{last / 'model.safetensors'} is corrupt" in capsys.readouterr().out
    assert_same_run(tmp_path / "whole", tmp_path / "run")
    assert (tmp_path / "run" / "checkpoints" / "damaged-step-00000012").is_dir(), "nothing is destroyed"


def test_a_checkpoint_that_is_damaged_twice_is_put_aside_twice(tiny_corpus: Path, tmp_path: Path) -> None:
    recipe = make_recipe(tiny_corpus, train__steps=2, train__save_every=1)
    for _ in range(2):
        spoil(pretrain(recipe, tmp_path / "run"))
    pretrain(recipe, tmp_path / "run")
    names = {path.name for path in (tmp_path / "run" / "checkpoints").iterdir()}
    assert names == {"step-00000001", "step-00000002", "damaged-step-00000002", "damaged-step-00000002-2"}


@pytest.mark.parametrize("is_damaged", [True, False], ids=["damaged", "of-another-version"])
def test_a_run_without_a_checkpoint_to_resume_from_stops_and_is_left_as_it_is(
    is_damaged: bool, tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = make_recipe(tiny_corpus, train__steps=2, train__save_every=1)
    pretrain(recipe, tmp_path / "run")
    if is_damaged:
        for path in list_checkpoints(tmp_path / "run" / "checkpoints"):
            spoil(path)
    else:
        monkeypatch.setattr(checkpoint, "FORMAT_VERSION", 2)
    before = all_files(tmp_path / "run")
    error, code, place = (
        (DataError, "no-complete-checkpoint", "model.safetensors")
        if is_damaged
        else (ConfigError, "newer-version", "litebert.json")
    )
    with refuses(error, code, at=place):
        pretrain(recipe, tmp_path / "run")
    assert all_files(tmp_path / "run") == before


def test_a_changed_recipe_is_refused_with_what_changed(tiny_corpus: Path, tmp_path: Path) -> None:
    pretrain(make_recipe(tiny_corpus, train__steps=2), tmp_path / "run")
    with refuses(ConfigError, "recipe-changed", at="optim.learning_rate"):
        pretrain(make_recipe(tiny_corpus, train__steps=2, optim__learning_rate=0.02), tmp_path / "run")
    pretrain(make_recipe(tiny_corpus, train__steps=2, data__workers=0), tmp_path / "run")  # no result depends on it


@pytest.mark.parametrize(
    ("added", "code"),
    [
        ('[job]\ntask = "sst-2"\n', "other-run"),
        ("[passage]\nstride = 3\n", "unreadable-run"),
    ],
    ids=["fine-tuning", "other"],
)
def test_the_folder_of_a_run_of_another_kind_is_named(added: str, code: str, tiny_corpus: Path, tmp_path: Path) -> None:
    recipe = make_recipe(tiny_corpus, train__steps=2)
    pretrain(recipe, tmp_path / "run")
    file = tmp_path / "run" / "recipe.toml"
    file.write_text(file.read_text() + added)
    with refuses(ConfigError, code):
        pretrain(recipe, tmp_path / "run")


def test_a_run_resumes_only_with_the_text_that_it_was_started_with(
    tiny_corpus: Path, tiny_tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, kept = tmp_path / "corpus", tmp_path / "kept"
    shutil.copytree(tiny_corpus, corpus)
    shutil.copytree(tiny_corpus, kept)
    recipe = make_recipe(corpus, train__steps=4, train__save_every=2)
    with interrupted_before_step(4, monkeypatch):
        pretrain(recipe, tmp_path / "run")
    (tmp_path / "more.txt").write_text("The small bird sees a new tree.\nA dog follows.\n")
    build_corpus([tmp_path / "more.txt"], tiny_tokenizer, corpus, BuildOptions(valid_share=0.1, is_quiet=True))
    with refuses(ConfigError, "corpus-changed"):
        pretrain(recipe, tmp_path / "run")
    last = list_checkpoints(tmp_path / "run" / "checkpoints")[-1]
    grown = make_recipe(corpus, train__steps=4, init={"from": str(last), "continues": True})
    assert load_checkpoint(pretrain(grown, tmp_path / "next")).step == 4  # a new run may go on with more text
    monkeypatch.chdir(tmp_path)
    spelled = make_recipe(Path("corpus"), train__steps=4, train__save_every=2)  # the same place in other words
    with refuses(ConfigError, "corpus-changed"):
        pretrain(spelled, tmp_path / "run")
    shutil.rmtree(corpus)
    kept.rename(corpus)
    pretrain(spelled, tmp_path / "run")
    pretrain(make_recipe(tiny_corpus, train__steps=4, train__save_every=2), tmp_path / "run")  # the same text
    change_text(corpus)
    corpus.rename(tmp_path / "other")
    with refuses(ConfigError, "recipe-changed", at="data.corpora"):
        pretrain(make_recipe(tmp_path / "other", train__steps=4, train__save_every=2), tmp_path / "run")
    shutil.copytree(tiny_corpus, corpus)
    spelled = make_recipe(
        Path("corpus"), train__steps=4, init={"from": str(last.relative_to(tmp_path)), "continues": True}
    )
    pretrain(spelled, tmp_path / "next")
    with refuses(ConfigError, "recipe-changed", at="init.from"):
        pretrain(make_recipe(Path("corpus"), train__steps=4), tmp_path / "next")


def test_a_checkpoint_without_facts_about_its_beginning_can_be_resumed(
    tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = make_recipe(tiny_corpus, train__steps=4, train__save_every=2)
    pretrain(recipe, tmp_path / "whole")
    with interrupted_before_step(4, monkeypatch):
        pretrain(recipe, tmp_path / "broken")
    manifest = list_checkpoints(tmp_path / "broken" / "checkpoints")[-1] / "litebert.json"
    facts = json.loads(manifest.read_text())
    del facts["begun_with"], facts["checksum"]  # checkpoints of before have none
    manifest.write_text(json.dumps(facts))
    pretrain(recipe, tmp_path / "broken")
    assert_same_run(tmp_path / "whole", tmp_path / "broken")


def test_a_run_continues_where_its_corpus_and_its_first_weights_moved_to(
    tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "elsewhere").mkdir()
    shutil.copytree(tiny_corpus, tmp_path / "here" / "corpus")
    monkeypatch.chdir(tmp_path / "here")
    first = pretrain(make_recipe(Path("corpus"), train__steps=2), tmp_path / "first")
    shutil.copytree(first, tmp_path / "here" / "start")
    options = {"train__steps": 4, "train__save_every": 2}
    recipe = make_recipe(Path("corpus"), init={"from": "start"}, **options)
    pretrain(recipe, tmp_path / "whole")
    with interrupted_before_step(4, monkeypatch):
        pretrain(recipe, tmp_path / "run")
    monkeypatch.chdir(tmp_path / "elsewhere")
    shutil.move(tmp_path / "here" / "corpus", tmp_path / "elsewhere" / "text")
    shutil.move(tmp_path / "here" / "start", tmp_path / "elsewhere" / "begin")
    other = make_recipe(Path("text"), init={"from": str(first.parent.parent)}, **options)
    with refuses(ConfigError, "recipe-changed"):
        pretrain(make_recipe(Path("text"), seed=4, init={"from": "begin"}, **options), tmp_path / "run")
    pretrain(make_recipe(Path("text"), init={"from": "begin"}, **options), tmp_path / "run")
    assert_same_run(tmp_path / "whole", tmp_path / "run")
    pretrain(other, tmp_path / "run")  # the very weights under a third name


def test_a_run_does_not_continue_without_its_log(
    tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = make_recipe(tiny_corpus, train__steps=4, train__save_every=2)
    with interrupted_before_step(4, monkeypatch):
        pretrain(recipe, tmp_path / "run")
    log = tmp_path / "run" / "metrics.jsonl"
    kept = log.read_bytes()
    log.write_bytes(kept.replace(b'"loss": ', b'"loss": 1', 1))
    with refuses(DataError, "log-truncated", at="metrics.jsonl"):
        pretrain(recipe, tmp_path / "run")
    log.unlink()
    with refuses(DataError, "log-truncated", at="metrics.jsonl"):
        pretrain(recipe, tmp_path / "run")
    log.write_bytes(kept)
    pretrain(recipe, tmp_path / "run")


def test_a_second_process_on_the_same_run_is_refused(tiny_corpus: Path, tmp_path: Path) -> None:
    with (
        story.exclusive_lock(tmp_path / "run", purpose="training"),
        refuses(ConfigError, "busy"),
    ):
        pretrain(make_recipe(tiny_corpus), tmp_path / "run")


def test_a_corpus_of_another_tokenizer_is_refused(tiny_corpus: Path, tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    with refuses(ConfigError, "vocabulary-mismatch", at="model.vocab_size"):
        pretrain(make_recipe(tiny_corpus, model__vocab_size=200), tmp_path / "run")
    pretrain(make_recipe(tiny_corpus, train__steps=2), tmp_path / "run")  # mended, in the same folder
    pretrain(make_recipe(tiny_corpus, train__steps=2), tmp_path / "begun")
    other = train_tokenizer(["some other words here"] * 20, VocabularyOptions(kind="wordpiece", vocab_size=30))
    assert other.fingerprint != tiny_tokenizer.fingerprint
    (tmp_path / "other.txt").write_text("Some other words.\nOther words.\n\nSome here.\nWords here.\n")
    build_corpus([tmp_path / "other.txt"], other, tmp_path / "other", BuildOptions(valid_share=0.0, is_quiet=True))
    source = list_checkpoints(tmp_path / "begun" / "checkpoints")[-1]
    with refuses(ConfigError, "tokenizer-mismatch", at="init.from"):
        pretrain(make_recipe(tmp_path / "other", model__vocab_size=30, init={"from": str(source)}), tmp_path / "next")


# losses in their order: two parts of each of four steps, one held-out batch, and two parts of each step after it
@pytest.mark.parametrize(
    ("first_bad", "code"),
    [
        (13, "loss-not-finite"),
        (9, "loss-not-finite"),
    ],
    ids=["training", "held-out"],
)
def test_a_loss_that_is_not_a_number_stops_with_the_step_and_the_last_checkpoint(
    first_bad: int, code: str, tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summed = MaskedLM.loss

    def poison(self: MaskedLM, *arguments: object) -> object:
        result = summed(self, *arguments)  # type: ignore[arg-type]
        poison.calls += 1  # type: ignore[attr-defined]
        return (
            result
            if poison.calls < first_bad
            else result._replace(sums={**result.sums, "loss": torch.tensor(float("nan"))})
        )  # type: ignore[attr-defined]

    poison.calls = 0  # type: ignore[attr-defined]
    monkeypatch.setattr(MaskedLM, "loss", poison)
    with refuses(TrainingError, code):
        pretrain(make_recipe(tiny_corpus, train__evaluate_batches=1), tmp_path / "run")


def test_a_full_disk_while_saving_loses_no_finished_checkpoint(
    tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = make_recipe(tiny_corpus)
    pretrain(recipe, tmp_path / "whole")

    def write_without_room(tensors: dict[str, Tensor], path: Path) -> None:
        is_full = "00000008" in path.parent.name
        with small_disk(1000) if is_full else nullcontext():
            written(tensors, path)

    written = checkpoint.write_tensors
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_tensors", write_without_room)
        with refuses(TrainingError, "cannot-save"):
            pretrain(recipe, tmp_path / "run")
    pretrain(recipe, tmp_path / "run")
    assert_same_run(tmp_path / "whole", tmp_path / "run")


def test_a_folder_of_other_files_is_refused_and_left_alone(tiny_corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("x")
    with refuses(ConfigError, "folder-not-empty"):
        pretrain(make_recipe(tiny_corpus), tmp_path / "letters")
    assert [path.name for path in (tmp_path / "letters").iterdir()] == ["dear.txt"]


def test_damaged_held_out_text_is_not_taken_for_none(tiny_corpus: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_corpus, tmp_path / "corpus")
    shard = next((tmp_path / "corpus" / "shards").glob("valid-*"))
    shard.write_bytes(shard.read_bytes()[:-50])
    with refuses(DataError, "corrupt-shard", at="valid-00000.safetensors"):
        pretrain(make_recipe(tmp_path / "corpus"), tmp_path / "run")


def test_a_folder_that_cannot_be_written_is_refused(tiny_corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with refuses(ConfigError, "cannot-write"):
        pretrain(make_recipe(tiny_corpus), tmp_path / "file" / "run")


@pytest.mark.parametrize(
    ("changes", "error", "code", "place"),
    [
        ({"model": {"ffn_size": 48}}, ConfigError, "stage-changes-shapes", "(ffn.0"),
        (
            *({"model": {"has_pooler": False}, "segments": {"task": "none"}}, ConfigError),
            *("stage-changes-shapes", "(pooler"),
        ),
        ({"data": {"corpora": ["nowhere"]}}, DataError, "not-a-corpus", "nowhere"),
        ({"data": {"corpora": "of another tokenizer"}}, ConfigError, "tokenizer-mismatch", "other"),
    ],
    ids=["shapes", "pooler", "no-corpus", "tokenizer"],
)
def test_a_stage_that_cannot_be_is_refused_before_the_first_step(
    changes: dict[str, dict[str, object]],
    error: type[LitebertError],
    code: str,
    place: str,
    tiny_corpus: Path,
    tmp_path: Path,
) -> None:
    if changes.get("data") == {"corpora": "of another tokenizer"}:
        other = train_tokenizer(["some other words here"] * 20, VocabularyOptions(kind="wordpiece", vocab_size=30))
        (tmp_path / "text").write_text("Some other words.\nOther words.\n\nSome here.\nWords here.\n")
        build_corpus([tmp_path / "text"], other, tmp_path / "other", BuildOptions(valid_share=0.0, is_quiet=True))
        changes = {"data": {"corpora": [str(tmp_path / "other")]}}
    with refuses(error, code, at=place):
        pretrain(make_recipe(tiny_corpus, stages=[{"at": 2, **changes}]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_stage_with_fewer_sequences_than_processes_is_refused_before_the_first_step(
    tiny_corpus: Path, tmp_path: Path
) -> None:
    recipe = make_recipe(tiny_corpus, stages=[{"at": 6, "batch": {"sequences": 3}}])
    four = replace(choose_runtime(recipe.runtime), ranks=runtime.Ranks(world_size=4))
    run = run_folder.open_run(tmp_path / "run", recipe, four, open_view("run"))
    with refuses(ConfigError, "too-few-sequences", at="batch.sequences"):
        story.check_stages(run)


def test_a_checkpoint_that_is_no_checkpoint_is_named(tmp_path: Path) -> None:
    with refuses(DataError, "not-a-checkpoint", at="litebert.json"):
        load_checkpoint(tmp_path)
