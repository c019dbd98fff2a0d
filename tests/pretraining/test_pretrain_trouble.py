"""What stops a pre-training run is named, with a remedy, and destroys nothing."""

import json
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from other_corpora import change_text
from small_disk import small_disk
from small_runs import assert_same_run, interrupted_before_step, make_recipe
from torch import Tensor

from litebert import checkpoint
from litebert.checkpoint import list_checkpoints, load_checkpoint
from litebert.core import runtime
from litebert.core.errors import ConfigError, DataError, TrainingError
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
    assert f"{last / 'model.safetensors'} is damaged" in capsys.readouterr().out
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
def test_a_run_without_a_checkpoint_to_go_on_from_stops_and_is_left_as_it_is(
    is_damaged: bool, tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = make_recipe(tiny_corpus, train__steps=2, train__save_every=1)
    pretrain(recipe, tmp_path / "run")
    error, reason = (
        (DataError, "no checkpoint .* is complete .*model.safetensors is damaged.* move .* away to begin again")
        if is_damaged
        else (ConfigError, "litebert.json is of version 1, and this litebert reads 2; is a newer litebert needed")
    )
    if is_damaged:
        for path in list_checkpoints(tmp_path / "run" / "checkpoints"):
            spoil(path)
    else:
        monkeypatch.setattr(checkpoint, "FORMAT_VERSION", 2)
    before = all_files(tmp_path / "run")
    with pytest.raises(error, match=reason):
        pretrain(recipe, tmp_path / "run")
    assert all_files(tmp_path / "run") == before


def test_a_changed_recipe_is_refused_with_what_changed(tiny_corpus: Path, tmp_path: Path) -> None:
    pretrain(make_recipe(tiny_corpus, train__steps=2), tmp_path / "run")
    with pytest.raises(ConfigError, match=r"another recipe \(optim.learning_rate: 0.01 -> 0.02\)"):
        pretrain(make_recipe(tiny_corpus, train__steps=2, optim__learning_rate=0.02), tmp_path / "run")
    pretrain(make_recipe(tiny_corpus, train__steps=2, data__workers=0), tmp_path / "run")  # no result depends on it


@pytest.mark.parametrize(
    ("added", "reason"),
    [
        ('[job]\ntask = "sst-2"\n', "run is a fine-tuning run; choose another folder"),
        ("[passage]\nstride = 3\n", "recipe.toml: unknown key 'passage'"),
    ],
    ids=["fine-tuning", "other"],
)
def test_the_folder_of_a_run_of_another_kind_is_named(
    added: str, reason: str, tiny_corpus: Path, tmp_path: Path
) -> None:
    recipe = make_recipe(tiny_corpus, train__steps=2)
    pretrain(recipe, tmp_path / "run")
    file = tmp_path / "run" / "recipe.toml"
    file.write_text(file.read_text() + added)
    with pytest.raises(ConfigError, match=reason):
        pretrain(recipe, tmp_path / "run")


def test_a_run_goes_on_with_the_text_that_it_was_begun_with_and_no_other(
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
    with pytest.raises(ConfigError, match=r"corpus has another text than when .*: put the old corpus back"):
        pretrain(recipe, tmp_path / "run")
    last = list_checkpoints(tmp_path / "run" / "checkpoints")[-1]
    grown = make_recipe(corpus, train__steps=4, init={"from": str(last), "continues": True})
    assert load_checkpoint(pretrain(grown, tmp_path / "next")).step == 4  # a new run may go on with more text
    monkeypatch.chdir(tmp_path)
    spelled = make_recipe(Path("corpus"), train__steps=4, train__save_every=2)  # the same place in other words
    with pytest.raises(ConfigError, match="corpus has another text"):
        pretrain(spelled, tmp_path / "run")
    shutil.rmtree(corpus)
    kept.rename(corpus)
    pretrain(spelled, tmp_path / "run")
    pretrain(make_recipe(tiny_corpus, train__steps=4, train__save_every=2), tmp_path / "run")  # the same text
    change_text(corpus)
    corpus.rename(tmp_path / "other")
    with pytest.raises(ConfigError, match=r"another recipe \(data.corpora: .*other"):
        pretrain(make_recipe(tmp_path / "other", train__steps=4, train__save_every=2), tmp_path / "run")
    shutil.copytree(tiny_corpus, corpus)
    spelled = make_recipe(
        Path("corpus"), train__steps=4, init={"from": str(last.relative_to(tmp_path)), "continues": True}
    )
    pretrain(spelled, tmp_path / "next")
    with pytest.raises(ConfigError, match=r"another recipe .*init.from: '.*step-0.*' -> ''"):
        pretrain(make_recipe(Path("corpus"), train__steps=4), tmp_path / "next")


def test_a_checkpoint_that_does_not_say_what_it_was_begun_with_can_be_gone_on_from(
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
    with pytest.raises(ConfigError, match=r"another recipe \(seed: 3 -> 4"):
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
    with pytest.raises(DataError, match=r"metrics\.jsonl is corrupt: it does not begin with what was logged"):
        pretrain(recipe, tmp_path / "run")
    log.unlink()
    with pytest.raises(DataError, match=r"metrics\.jsonl is missing: it held what was logged .*; restore it"):
        pretrain(recipe, tmp_path / "run")
    log.write_bytes(kept)
    pretrain(recipe, tmp_path / "run")


def test_a_second_process_on_the_same_run_is_refused(tiny_corpus: Path, tmp_path: Path) -> None:
    with (
        story.exclusive_lock(tmp_path / "run", purpose="training"),
        pytest.raises(ConfigError, match="another process is training in"),
    ):
        pretrain(make_recipe(tiny_corpus), tmp_path / "run")


def test_a_corpus_of_another_tokenizer_is_refused(tiny_corpus: Path, tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    with pytest.raises(ConfigError, match=r"model.vocab_size = 200, but .* 100 pieces: set model.vocab_size=100"):
        pretrain(make_recipe(tiny_corpus, model__vocab_size=200), tmp_path / "run")
    pretrain(make_recipe(tiny_corpus, train__steps=2), tmp_path / "run")  # mended, in the same folder
    pretrain(make_recipe(tiny_corpus, train__steps=2), tmp_path / "begun")
    other = train_tokenizer(["some other words here"] * 20, VocabularyOptions(kind="wordpiece", vocab_size=30))
    assert other.fingerprint != tiny_tokenizer.fingerprint
    (tmp_path / "other.txt").write_text("Some other words.\nOther words.\n\nSome here.\nWords here.\n")
    build_corpus([tmp_path / "other.txt"], other, tmp_path / "other", BuildOptions(valid_share=0.0, is_quiet=True))
    source = list_checkpoints(tmp_path / "begun" / "checkpoints")[-1]
    with pytest.raises(ConfigError, match=r"init.from = .* has another tokenizer than"):
        pretrain(make_recipe(tmp_path / "other", model__vocab_size=30, init={"from": str(source)}), tmp_path / "next")


# losses in their order: two parts of each of four steps, one held-out batch, and two parts of each step after it
@pytest.mark.parametrize(
    ("first_bad", "reason"),
    [
        (13, r"the loss of step 6 is nan; the last checkpoint is .*step-00000004"),
        (9, r"the valid loss of step 4 is nan; the last checkpoint is none"),
    ],
    ids=["training", "held-out"],
)
def test_a_loss_that_is_not_a_number_stops_with_the_step_and_the_last_checkpoint(
    first_bad: int, reason: str, tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    with pytest.raises(TrainingError, match=reason):
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
        with pytest.raises(
            TrainingError, match=r"step-00000008: File too large; raise the limit on the size of a file"
        ):
            pretrain(recipe, tmp_path / "run")
    pretrain(recipe, tmp_path / "run")
    assert_same_run(tmp_path / "whole", tmp_path / "run")


def test_a_folder_of_other_files_is_refused_and_left_alone(tiny_corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("x")
    with pytest.raises(ConfigError, match="is not empty and not a run's folder; choose another folder"):
        pretrain(make_recipe(tiny_corpus), tmp_path / "letters")
    assert [path.name for path in (tmp_path / "letters").iterdir()] == ["dear.txt"]


def test_damaged_held_out_text_is_not_taken_for_none(tiny_corpus: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_corpus, tmp_path / "corpus")
    shard = next((tmp_path / "corpus" / "shards").glob("valid-*"))
    shard.write_bytes(shard.read_bytes()[:-50])
    with pytest.raises(DataError, match=shard.name):
        pretrain(make_recipe(tmp_path / "corpus"), tmp_path / "run")


def test_a_folder_that_cannot_be_written_is_refused(tiny_corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot write to"):
        pretrain(make_recipe(tiny_corpus), tmp_path / "file" / "run")


@pytest.mark.parametrize(
    ("changes", "error", "reason"),
    [
        ({"model": {"ffn_size": 48}}, ConfigError, r"the stage at = 2 changes the shape of weights \(ffn.0"),
        (
            {"model": {"has_pooler": False}, "segments": {"task": "none"}},
            ConfigError,
            r"changes the shape of weights \(pooler",
        ),
        ({"data": {"corpora": ["nowhere"]}}, DataError, "nowhere is not a finished corpus"),
        ({"data": {"corpora": "of another tokenizer"}}, ConfigError, "was built with another tokenizer than this run"),
    ],
    ids=["shapes", "pooler", "no-corpus", "tokenizer"],
)
def test_a_stage_that_cannot_be_is_refused_before_the_first_step(
    changes: dict[str, dict[str, object]],
    error: type[Exception],
    reason: str,
    tiny_corpus: Path,
    tmp_path: Path,
) -> None:
    if changes.get("data") == {"corpora": "of another tokenizer"}:
        other = train_tokenizer(["some other words here"] * 20, VocabularyOptions(kind="wordpiece", vocab_size=30))
        (tmp_path / "text").write_text("Some other words.\nOther words.\n\nSome here.\nWords here.\n")
        build_corpus([tmp_path / "text"], other, tmp_path / "other", BuildOptions(valid_share=0.0, is_quiet=True))
        changes = {"data": {"corpora": [str(tmp_path / "other")]}}
    with pytest.raises(error, match=reason):
        pretrain(make_recipe(tiny_corpus, stages=[{"at": 2, **changes}]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_stage_with_fewer_sequences_than_processes_is_refused_before_the_first_step(
    tiny_corpus: Path, tmp_path: Path
) -> None:
    recipe = make_recipe(tiny_corpus, stages=[{"at": 6, "batch": {"sequences": 3}}])
    four = replace(choose_runtime(recipe.runtime), ranks=runtime.Ranks(world_size=4))
    run = run_folder.open_run(tmp_path / "run", recipe, four, open_view("run"))
    with pytest.raises(ConfigError, match=r"batch.sequences = 3 cannot be divided among 4 processes: raise it"):
        story.check_stages(run)


def test_a_checkpoint_that_is_no_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is not a litebert checkpoint: it has no litebert.json"):
        load_checkpoint(tmp_path)
