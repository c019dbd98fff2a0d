"""The commands of fine-tuning: from a file to answers, and one line for each slip."""

import json
from pathlib import Path

import pytest
from small_tasks import invent_rows, write_rows

from litebert.cli.main import _run

SHORT = ["train.steps=4", "train.evaluations=1", "train.batch_size=8"]


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = _run([str(word) for word in words], debug=False)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "data", invent_rows())


def test_a_file_becomes_a_model_that_is_scored_and_asked(
    tiny_checkpoint: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = ["--task", "classification", "--data", data]
    code, printed, _ = run(capsys, "finetune", tiny_checkpoint, *words, "--out", out, *SHORT)
    assert code == 0
    assert "labels: bird (12), cat (8), dog (12)" in printed
    assert (out / "confusion.png").stat().st_size > 1000
    score = json.loads((out / "report.json").read_text())["dev"]["dev"]["scores"]["accuracy"]
    assert f"dev (32 examples): accuracy {score:.4f}" in printed
    code, printed, _ = run(capsys, "evaluate", out, *words, "--out", tmp_path / "answers.jsonl")
    assert f"32 examples: accuracy {score:.4f}" in printed
    assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == 32
    (tmp_path / "texts.txt").write_text("a cat\n\nthe dog sees\n")
    code, printed, _ = run(capsys, "predict", out, tmp_path / "texts.txt")
    first, second = (json.loads(line) for line in printed.splitlines())
    assert (first["id"], second["id"]) == ("1", "3")
    assert sum(first["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    code, printed, _ = run(capsys, "predict", out, data / "dev.jsonl", "--table")
    assert printed.splitlines()[0].endswith(invent_rows()[0]["text"])


def test_several_seeds_are_summarized(
    tiny_checkpoint: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--task", "classification", "--data", data, "--seeds", 2, "--out", tmp_path / "run"]
    code, printed, _ = run(capsys, "finetune", tiny_checkpoint, *words, *SHORT)
    assert code == 0
    assert printed.count("seed-1") >= 1
    assert "median" in printed


def test_ensembles_and_submissions_are_made_of_runs(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{row['text']}\t{int(row['label'] == 'cat')}\n" for row in invent_rows())
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text(f"sentence\tlabel\n{rows}")
    (tmp_path / "test.tsv").write_text("index\tsentence\n0\ta cat\n1\ta dog\n")
    words = ["--task", "sst-2", "--data", tmp_path]
    for name in "ab":
        seed = f"seed={ord(name)}"
        run(capsys, "finetune", tiny_checkpoint, *words, "--recipe", "two-core", *SHORT, seed, "--out", tmp_path / name)
    code, printed, _ = run(
        capsys, "ensemble", tmp_path / "a", tmp_path / "b", *words, "--out", tmp_path / "both", "--all"
    )
    assert (code, "ensemble: accuracy" in printed) == (0, True)
    code, printed, _ = run(capsys, "submission", tmp_path / "both", "--out", tmp_path / "glue.zip")
    assert code == 0
    assert "SST-2.tsv: 2 rows, but the test set has 1,821" in printed
    assert "RTE.tsv is missing" in printed
    assert run(capsys, "submission", "--check", tmp_path / "glue.zip")[0] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["finetune", "CKPT", "--task", "sst2", "--data", "DATA"], "did you mean 'sst-2'?"),
        (["finetune", "CKPT", "--task", "classification", "--data", "DATA/none.csv"], "no such file"),
        (["finetune", "DATA", "--task", "classification", "--data", "DATA"], "is no model"),
        (["finetune", "CKPT", "--task", "rte", "--data", "DATA", "train.epoch=2"], "no column"),
        (
            ["finetune", "CKPT", "--task", "classification", "--data", "DATA", "train.epoch=2"],
            "unknown key 'train.epoch'",
        ),
        (["finetune", "CKPT", "--task", "classification", "--data", "DATA", "--recipe", "paper"], "the paper has none"),
        (["finetune", "CKPT", "--task", "classification", "--data", "DATA", "train.trainable=some"], "last-2"),
        (["finetune", "CKPT", "--task", "classification", "--data", "DATA", "train.warmup_steps=999"], "shorten it"),
        (["predict", "CKPT", "DATA/dev.jsonl"], "was not fine-tuned"),
        (["evaluate", "CKPT", "--task", "classification", "--data", "DATA"], "was not fine-tuned"),
        (["submission", "DATA"], "has no report.json"),
        (["submission", "--check", "DATA/dev.jsonl"], "not a zip"),
    ],
)
def test_a_slip_is_one_line_and_leaves_nothing(
    words: list[str],
    message: str,
    tiny_checkpoint: Path,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = {"CKPT": str(tiny_checkpoint), "DATA": str(data)}
    resolved = [names.get(word, word.replace("DATA/", f"{data}/")) for word in words]
    if words[0] == "finetune":
        resolved += ["--out", str(tmp_path / "run")]
    code, _, errors = run(capsys, *resolved)
    assert code == 2
    assert len(errors.splitlines()) == 1
    assert message in errors
    assert not list((tmp_path / "run").rglob("*.safetensors"))
