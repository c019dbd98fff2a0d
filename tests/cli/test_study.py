"""`litebert study` as a person meets it."""

import json
import re
import shlex
from pathlib import Path

import pytest

from litebert.cli.main import _run
from litebert.core.runlog import RunLog
from litebert.corpus.shards import read_manifest
from litebert.study.arms import plan_arms
from litebert.study.spec import list_studies, load_study
from tests.study.invented import invent_everything, write_invented
from tests.study.miniatures import make_task_data

STUDIES_PAGE = Path(__file__).parents[2] / "docs" / "studies.md"
SHAPE = "vocab_size = 100, hidden_size = 8, embedding_size = 8, ffn_size = 8, num_heads = 2, num_layers = 1"
LENGTH = "steps = 2, save_every = 2, evaluate_every = 0, evaluate_batches = 1"
SMALL = f"{{ model = {{ {SHAPE} }}, train = {{ {LENGTH} }}, schedule.warmup_steps = 0, batch.sequences = 8 }}"


def study(*words: str) -> int:
    return _run(["study", *words], debug=False)


def test_all_studies_are_listed_with_their_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert study("list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [one.name for one in list_studies()]
    assert any("paper scale only" in line for line in lines if line.startswith("table-9"))


def test_a_study_is_shown_with_its_arms_and_claims(capsys: pytest.CaptureFixture[str]) -> None:
    assert study("show", "table-4", "--scale", "laptop") == 0
    shown = capsys.readouterr().out
    assert "What layers share (ALBERT, Table 4)" in shown
    assert "Sharing everything costs accuracy" in shown
    assert "e768-ffn: FFN shared, E = H: model.sharing=ffn model.embedding_size=128" in shown
    assert "At paper scale" not in shown


def test_a_dry_run_counts_arms_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    totals = []
    for jobs in ("1", "2"):
        assert study("run", "table-5", "--dry-run", "--hardware", "a100-80g", "--jobs", jobs) == 0
        line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("total"))
        totals.append(float(line.split()[1]))
    assert totals[1] == pytest.approx(totals[0] / 2, abs=0.02)


@pytest.mark.parametrize("scale", ["laptop", "paper"])
def test_a_dry_run_says_what_would_run_and_how_long(scale: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--scale", scale, "--dry-run", "--hardware", "a100-80g", "--devices", "8"]
    assert study("run", "table-5", *words) == 0
    shown = capsys.readouterr().out
    assert "on 8 x NVIDIA A100 80 GB" in shown
    assert "sop-seed-1" in shown
    assert "unfinished" in shown


def test_a_dry_run_knows_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # where there is no corpora/main
    run = plan_arms(load_study("table-5"), "laptop")[0]
    write_invented(tmp_path, run, {"mlm": 1.0})
    assert study("run", "table-5", "--dry-run", "--hardware", "a100-80g", "--out", str(tmp_path)) == 0
    shown = capsys.readouterr().out
    assert "for 8 unfinished" in shown
    assert "none-seed-1" in next(line for line in shown.splitlines() if "finished  " in line)


def test_a_dry_run_counts_what_is_left_of_an_unfinished_arm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "figure-1", "--scale", "paper", "--arms", "bert", "--out", str(tmp_path)]
    totals = []
    (run,) = plan_arms(load_study("figure-1"), "paper", arms=["bert"])
    begun = run.recipe_with({"main": tmp_path / "corpus"}, None).to_toml()
    for recipe in ("", begun, begun.replace("rate = 0.15", "rate = 0.2")):
        if recipe:
            with RunLog(tmp_path / "runs" / run.name) as log:
                log.write(run.recipe.train.steps // 4, metrics={"tokens": 1}, timing={"seconds": 1.0})
            (tmp_path / "runs" / run.name / "recipe.toml").write_text(recipe)
        assert study(*words, "--dry-run", "--hardware", "a100-80g", "--devices", "8") == 0
        _, line, total, *_ = capsys.readouterr().out.splitlines()
        totals.append(float(total.split()[1].replace(",", "")))
        assert line.endswith("25% done  BERT-large") == (recipe == begun)
    assert totals[1] == pytest.approx(0.75 * totals[0], abs=0.02)
    assert totals[2] == totals[0]  # a run of another recipe would be refused


def test_a_dry_run_distinguishes_refused_and_finished_arms(
    tiny_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = read_manifest(tiny_corpus).fingerprint
    changed, other_text = plan_arms(load_study("table-5"), "laptop", seeds=[1])[:2]
    path = write_invented(tmp_path, changed, {"mlm": 1.0}, corpora={"main": {"fingerprint": now}})
    path.write_text(path.read_text().replace("learning_rate = 0.001", "learning_rate = 0.002"))
    write_invented(tmp_path, other_text, {"mlm": 1.0})
    words = ["--dry-run", "--hardware", "a100-80g", "--out", str(tmp_path), "--corpus", str(tiny_corpus)]
    assert study("run", "table-5", *words, "--seeds", "1") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("none-seed-1")
    assert lines[1].endswith("stale (optim.learning_rate: 0.002 -> 0.001)  None")
    assert lines[2].endswith("stale (corpus main: another text)  NSP")
    assert "for 3 unfinished" in lines[4]
    assert lines[5].startswith("2 of them stale: ")
    assert "choose another --out, or delete" in lines[5]


def test_a_dry_run_shows_an_arm_that_would_be_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = plan_arms(load_study("table-5"), "laptop")[0]
    path = write_invented(tmp_path, run, {"mlm": 1.0})
    report = json.loads(path.read_text())
    report["measures"]["pairs"] += 1
    path.write_text(json.dumps(report))
    assert study("run", "table-5", "--dry-run", "--hardware", "a100-80g", "--out", str(tmp_path)) == 0
    shown = capsys.readouterr().out
    pairs = run.at_scale.pairs
    assert f"measure again (pairs: {pairs + 1} -> {pairs})  None" in shown
    assert "for 8 unfinished" in shown
    assert "not counted: measuring 1 arms and seeds again" in shown


@pytest.mark.parametrize("name", ["table-1", "table-2-speed"])
def test_a_dry_run_estimates_nothing_of_a_study_that_trains_nothing(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert study("run", name, "--dry-run", "--hardware", "a100-80g") == 0
    shown = capsys.readouterr().out
    assert "0.00 h" not in shown
    assert "albert-base-seed-1     not counted  ALBERT-base\n" in shown
    assert "not counted: evaluation; this study trains nothing\n" in shown


def test_the_list_has_one_command_an_arm_that_says_all_again(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train.steps=90000", "--scale", "paper", "--corpus", "text", "--data", "tasks", "--out", "here", "--list"]
    assert study("run", "table-11", *words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[1].endswith("# after depth-1-seed-1")
    command = shlex.split(lines[1], comments=True)
    assert command[:5] == ["litebert", "study", "run", "table-11", "train.steps=90000"]
    assert command[5:] == shlex.split("--scale paper --arms depth-3 --seeds 1 --out here --corpus text --data tasks")


def test_the_worked_example_of_the_docs_runs_by_command(
    tiny_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two axes: each arm's name goes through the command that its process is started with."""
    text = re.findall(r"```toml\n(# masking-rate.toml\n.*?)```", STUDIES_PAGE.read_text("utf-8"), re.DOTALL)[0]
    assert len(re.findall(r'"\S+" = \[', text)) == 2
    for before, after in {
        "[64, 128]": "[16, 32]",
        "max_length=64": "max_length=16",
        '["intrinsic", "curves"]': '["parameters", "curves"]',
        "{ train.steps = 4000 }": SMALL,
        "train.steps=1000": "train.steps=2",
    }.items():
        assert before in text
        text = text.replace(before, after)
    (tmp_path / "masking-rate.toml").write_text(text)
    words = [
        "--corpus",
        str(tiny_corpus),
        "--data",
        str(make_task_data(tmp_path / "data")),
        "--out",
        str(tmp_path / "out"),
    ]
    assert study("run", str(tmp_path / "masking-rate.toml"), *words, "--arms", "rate=0.3+*", "--seeds", "1") == 0
    names = {path.name for path in (tmp_path / "out").glob("*.json")}
    assert names == {"rate=0.3+max_length=16-seed-1.json", "rate=0.3+max_length=32-seed-1.json"}
    assert study("report", str(tmp_path / "out")) == 0
    assert "not measured: Twice the masked words are better" in capsys.readouterr().out  # its other arm was not run


def test_a_report_is_written_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run in plan_arms(load_study("figure-2b"), "laptop"):
        write_invented(tmp_path / "fig", run, **invent_everything(run))
    assert study("report", str(tmp_path / "fig")) == 0
    shown = capsys.readouterr().out
    assert "Removing dropout raises masked-token accuracy on held-out text" in shown
    assert (tmp_path / "fig" / "report" / "index.html").is_file()
    assert json.loads((tmp_path / "fig" / "report" / "results.json").read_text())[0]["study"] == "figure-2b"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["run", "table-5", "--scale", "lap"], "'lap' is not one of 'laptop', 'paper'"),
        (["run", "table-5", "--seeds", "one"], "whole numbers"),
        (["run", "table-5", "--arms", "sopp", "--dry-run"], "did you mean 'sop'"),
        (["run", "table-9", "--dry-run"], "has no scale 'laptop', only paper"),
        (["show", "tabel-5"], "did you mean 'table-5'"),
        (["run", "table-5", "train.stps=3", "--dry-run"], "unknown key 'train.stps'"),
    ],
)
def test_a_wrong_word_is_one_line(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert study(*words) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1
