"""Intrinsic evaluation from a checkpoint and a corpus to a report; what cannot be evaluated is said."""

import json
import random
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from refusals import refuses
from small_configs import NARROW
from small_runs import make_recipe
from small_tasks import invent_rows, write_rows

from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.cli.main import _run
from litebert.core.errors import ConfigError, DataError
from litebert.corpus.build import BuildOptions, build_corpus
from litebert.evaluation.evaluate_intrinsic import IntrinsicOptions, evaluate_intrinsic
from litebert.evaluation.intrinsic.report import Training
from litebert.finetuning.finetune import finetune
from litebert.finetuning.recipe import build_finetune_recipe
from litebert.finetuning.run_folder import Job
from litebert.interop.convert import ConvertOptions, Target, convert
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.model import build_model
from litebert.pretraining.pretrain import pretrain
from litebert.tasks.catalog import read_dataset
from litebert.text.tokenizer import Tokenizer, load_tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer
from tests.conftest import invent_documents

CONFIG = NARROW
HEADS = (HeadSpec("mlm"), HeadSpec("sentence", 2))
OPTIONS = IntrinsicOptions(pairs=64)


def save_model(
    path: Path,
    tokenizer: Tokenizer,
    heads: tuple[HeadSpec, ...] = HEADS,
    config: ModelConfig = CONFIG,
    recipe_toml: str = "",
) -> Path:
    config = replace(config, vocab_size=tokenizer.vocab_size)
    save_checkpoint(path, build_model(config, heads, seed=1), tokenizer, CheckpointContent(7, recipe_toml=recipe_toml))
    return path


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: Tokenizer) -> Path:
    return save_model(tmp_path_factory.mktemp("model") / "checkpoint", tiny_tokenizer)


def test_the_same_seed_gives_the_same_report_and_another_seed_another(checkpoint: Path, tiny_corpus: Path) -> None:
    reports = [evaluate_intrinsic(checkpoint, tiny_corpus, replace(OPTIONS, seed=seed)).to_json() for seed in (1, 1, 2)]
    assert reports[0] == reports[1]  # dropout is on in training: it must not be here
    assert reports[0]["sop"] != reports[2]["sop"]
    assert json.loads(json.dumps(reports[0])) == reports[0]


def test_the_report_says_what_was_measured_on_what(checkpoint: Path, tiny_corpus: Path) -> None:
    report = evaluate_intrinsic(checkpoint, tiny_corpus, OPTIONS)
    assert (report.step, report.length, report.seed) == (7, 32, 1)
    assert (report.tested_on, report.learned_from) == ("the valid split", "the train split")
    assert report.mlm is not None
    assert report.sop.head is not None
    assert report.mlm.hidden.total == report.mlm.usual.total == report.mlm.frequent.total
    for scores in (report.sop, report.nsp):
        assert scores.head is not None
        for column in ("any", "lead", "inner"):
            totals = {getattr(part, column).total for part in (scores.head, scores.probe, scores.baseline)}
            assert len(totals) == 1  # the same pairs
    assert 2 < report.mlm.hidden_loss < 7  # an untrained model: about log 100


def test_a_head_of_three_classes_and_a_model_without_heads_can_be_evaluated(
    tiny_tokenizer: Tokenizer, tiny_corpus: Path, tmp_path: Path
) -> None:
    three = save_model(tmp_path / "three", tiny_tokenizer, (HeadSpec("mlm"), HeadSpec("sentence", 3)))
    bare = save_model(tmp_path / "bare", tiny_tokenizer, (), replace(CONFIG, num_segments=1, has_pooler=False))
    assert evaluate_intrinsic(three, tiny_corpus, OPTIONS).nsp.head is not None
    report = evaluate_intrinsic(bare, tiny_corpus, OPTIONS)
    assert report.mlm is None
    assert report.sop.head is None
    assert report.sop.probe.any.total > 30


def test_a_run_is_evaluated_by_its_last_checkpoint(tiny_corpus: Path, tmp_path: Path) -> None:
    recipe = make_recipe(
        tiny_corpus,
        train={"steps": 4, "save_every": 2, "evaluate_batches": 1},
        segments={"max_length": 16},
        stages=[{"at": 2, "segments": {"max_length": 24, "task": "nsp"}}, {"at": 3, "segments": {"max_length": 20}}],
    )
    pretrain(recipe, tmp_path / "run")
    report = evaluate_intrinsic(tmp_path / "run", tiny_corpus, OPTIONS)
    assert report.checkpoint.endswith("step-00000004")
    assert report.training == Training(24, "nsp")
    assert report.length == 24  # positions beyond were never trained
    assert evaluate_intrinsic(tmp_path / "run", tiny_corpus, replace(OPTIONS, length=32)).length == 32


def test_stages_of_a_run_by_tokens_count_as_begun_at_their_share_of_it(tiny_corpus: Path, tmp_path: Path) -> None:
    recipe = make_recipe(
        tiny_corpus,
        train={"steps": 1000, "tokens": 600, "save_every": 1000, "evaluate_batches": 1},
        segments={"max_length": 16},
        stages=[{"at": 500, "segments": {"max_length": 24}}],
    )
    last = pretrain(recipe, tmp_path / "run")
    assert load_checkpoint(last).step < 500
    assert evaluate_intrinsic(last, tiny_corpus, OPTIONS).training == Training(24, "sop")


def test_a_fine_tuned_run_is_evaluated_by_its_model(tiny_checkpoint: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    dataset = read_dataset("classification", write_rows(tmp_path / "data", invent_rows()))
    recipe = build_finetune_recipe({"train": {"epochs": 1.0, "max_length": 32, "evaluations": 1}})
    finetune(Job(load_checkpoint(tiny_checkpoint), dataset, recipe), tmp_path / "run")
    options = replace(OPTIONS, length=32)
    report = evaluate_intrinsic(tmp_path / "run", tiny_corpus, options)
    assert report == evaluate_intrinsic(tmp_path / "run" / "model", tiny_corpus, options)
    assert report.checkpoint == str(tmp_path / "run" / "model")
    assert report.training == Training(64, None)


def test_a_head_that_has_learned_order_is_right_about_order(tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    """From the labels of training to those of evaluation: both mean the same by class 1."""
    rng = random.Random(1)
    early, late = ["cat", "dog", "bird"], ["house", "tree", "river"]
    documents = {f"the {' '.join(rng.choices(early, k=4))}.\na {' '.join(rng.choices(late, k=4))}." for _ in range(400)}
    (tmp_path / "text.txt").write_text("\n\n".join(sorted(documents)), "utf-8")
    options = BuildOptions(valid_share=0.3, is_quiet=True)
    build_corpus([tmp_path / "text.txt"], tiny_tokenizer, tmp_path / "corpus", options)
    recipe = make_recipe(
        tmp_path / "corpus",
        train={"steps": 150, "save_every": 150, "evaluate_batches": 1},
        batch={"sequences": 16},
        optim={"name": "adamw", "learning_rate": 0.01, "epsilon": 1e-8},
        model={**asdict(CONFIG), "initializer_range": 0.2, "hidden_dropout_rate": 0.0, "attention_dropout_rate": 0.0},
    )
    pretrain(recipe, tmp_path / "run")
    report = evaluate_intrinsic(tmp_path / "run", tmp_path / "corpus", IntrinsicOptions(pairs=128))
    assert report.sop.head is not None
    assert report.sop.head.any.value > 0.95
    assert report.sop.probe.any.value > 0.95
    assert report.sop.baseline.any.value > 0.99
    assert report.sop.head.lead.total == report.sop.head.any.total  # a document is one pair


def test_a_stage_that_has_not_begun_does_not_count_as_training(
    tiny_tokenizer: Tokenizer, tiny_corpus: Path, tmp_path: Path
) -> None:
    recipe = "[segments]\nmax_length = 16\ntask = 'sop'\n[[stages]]\nat = 7\nsegments.max_length = 32\n"
    saved = save_model(tmp_path / "saved", tiny_tokenizer, recipe_toml=recipe)  # at step 7: no update of that stage
    assert evaluate_intrinsic(saved, tiny_corpus, OPTIONS).training == Training(16, "sop")


def test_a_run_without_a_checkpoint_is_reported(tiny_corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    with refuses(DataError, "no-checkpoint"):
        evaluate_intrinsic(tmp_path / "run", tiny_corpus)


@pytest.mark.parametrize("source", ["litebert", "huggingface"])
def test_another_tokenizer_is_refused_with_the_one_to_use(source: Target, checkpoint: Path, tmp_path: Path) -> None:
    sentences = [sentence for document in invent_documents(50, seed=4) for sentence in document]
    other = train_tokenizer(sentences, VocabularyOptions(kind="wordpiece", vocab_size=80))
    (tmp_path / "text.txt").write_text("\n".join(sentences), "utf-8")
    build_corpus([tmp_path / "text.txt"], other, tmp_path / "other", BuildOptions(is_quiet=True))
    convert(checkpoint, tmp_path / "model", ConvertOptions(to=source))
    with refuses(ConfigError, "tokenizer-mismatch") as refused:
        evaluate_intrinsic(tmp_path / "model", tmp_path / "other")
    named = str(refused.value).partition("rebuild it with the tokenizer in ")[2]
    assert load_tokenizer(Path(named)).has_fingerprint(load_checkpoint(checkpoint).load_tokenizer().fingerprint)


def test_one_table_that_is_impossible_does_not_take_the_others_with_it(
    checkpoint: Path, tiny_tokenizer: Tokenizer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = [[sentence for document in invent_documents(80, seed=seed) for sentence in document] for seed in (1, 3)]
    (tmp_path / "text.txt").write_text("\n\n".join("\n".join(document) for document in documents), "utf-8")
    options = BuildOptions(valid_share=0.5, is_quiet=True)  # of each split one document
    build_corpus([tmp_path / "text.txt"], tiny_tokenizer, tmp_path / "corpus", options)
    report = evaluate_intrinsic(checkpoint, tmp_path / "corpus", OPTIONS)
    assert report.mlm
    assert report.sop
    assert report.nsp is None
    assert report.skipped.keys() == {"nsp"}
    assert _run(["evaluate", str(checkpoint), "--corpus", str(tmp_path / "corpus"), "--pairs", "64"], debug=False) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "NSP was not measured: " in shown
    assert "too few documents to draw random next segments" in shown


def test_a_length_beyond_the_positions_is_refused(checkpoint: Path, tiny_corpus: Path) -> None:
    with refuses(ConfigError, "out-of-range"):
        evaluate_intrinsic(checkpoint, tiny_corpus, IntrinsicOptions(length=64))


def test_the_papers_dev_set_can_be_built_and_evaluated_on(real_data: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(real_data / "vocab" / "albert-30k.model")
    texts = [real_data / "squad" / "xquad.en.json", real_data / "race" / "RACE" / "dev"]
    build_corpus(texts, tokenizer, tmp_path / "dev", BuildOptions(valid_share=1.0, is_quiet=True))
    report = evaluate_intrinsic(
        save_model(tmp_path / "model", tokenizer), tmp_path / "dev", IntrinsicOptions(pairs=200)
    )
    assert report.learned_from == "half of the valid documents"
    assert report.nsp.baseline.any.low > 0.5  # articles have words of their own
    assert report.sop.probe.any.low < 0.5 < report.sop.probe.any.high  # an untrained model knows nothing


def test_the_command_prints_tables_and_writes_json(
    checkpoint: Path, tiny_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["evaluate", str(checkpoint), "--corpus", str(tiny_corpus), "--pairs", "64"]
    assert _run([*words, "--out", str(tmp_path / "report.json")], debug=False) == 0
    tables = capsys.readouterr().out
    for expected in ("Masked tokens (MLM)", "[MASK]", "trained head", "linear probe", "bag of words", "word overlap"):
        assert expected in tables
    assert _run([*words, "--json"], debug=False) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "report.json").read_text())
    value = printed["sop"]["probe"]["lead"]["value"]
    assert f"{value:.1%}" in tables


def test_the_table_says_what_a_checkpoint_has_not(
    tiny_tokenizer: Tokenizer, tiny_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = "[segments]\nmax_length = 16\n"
    bare = save_model(tmp_path / "[bare]", tiny_tokenizer, (), recipe_toml=recipe)
    words = ["evaluate", str(bare), "--corpus", str(tiny_corpus), "--pairs", "32", "--length", "32"]
    assert _run(words, debug=False) == 0
    tables = capsys.readouterr().out
    assert "[bare] (step 7)" in tables.replace("\n", "")
    assert "has no MLM head" in tables
    assert "has none" in tables
    assert "trained on 16 tokens" in tables


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--corpus FOLDER or --data PATH"),
        (("--corpus", "nowhere"), "nowhere is not a finished corpus"),
        (("--corpus", "CORPUS", "--split", "test"), "a corpus has no split 'test'; valid: train, valid"),
        (("--corpus", "CORPUS", "--pairs", "3"), "Invalid value for '--pairs'"),
        (("--corpus", "CORPUS", "--out", "FOLDER"), "is a folder; name a file in it"),
        (("--corpus", "FEW"), "too few to score"),
        (("--corpus", "ONE"), "too few to score"),
    ],
)
def test_bad_input_is_one_line(
    words: tuple[str, ...],
    message: str,
    checkpoint: Path,
    tiny_corpus: Path,
    tiny_tokenizer: Tokenizer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, count in (("few", 4), ("one", 1)):  # of one document, a half has none
        file = tmp_path / f"{name}.txt"
        file.write_text("\n\n".join("\n".join(d) for d in invent_documents(count, seed=3)), "utf-8")
        build_corpus([file], tiny_tokenizer, tmp_path / name, BuildOptions(valid_share=1.0, is_quiet=True))
    folders = {"FEW": str(tmp_path / "few"), "ONE": str(tmp_path / "one")}
    names = {"CORPUS": str(tiny_corpus), "FOLDER": str(tmp_path), **folders}
    assert _run(["evaluate", str(checkpoint), *(names.get(word, word) for word in words)], debug=False) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_damaged_checkpoint_is_named(checkpoint: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    shutil.copytree(checkpoint, tmp_path / "copy")
    (tmp_path / "copy" / "model.safetensors").write_bytes(b"nothing")
    with refuses(DataError, "corrupt-file"):
        evaluate_intrinsic(tmp_path / "copy", tiny_corpus)
