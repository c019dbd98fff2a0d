"""`litebert verify` reads everything that we write, and names what is not as it was written."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import refuses
from small_runs import make_recipe

import litebert
from litebert.cli.main import _run
from litebert.core.errors import ConfigError, DataError, LitebertError
from litebert.core.files import hash_file
from litebert.core.sealed import read_sealed, write_sealed
from litebert.exporters.onnx_folder import export_onnx
from litebert.inference.export_folder import open_export
from litebert.interop.opening import load_checkpoint
from litebert.pretraining.pretrain import pretrain
from litebert.tasks.report import read_report, write_report
from litebert.verify import verify
from tests.small_tasks import invent_rows, write_rows

REPORT = {"task": "sst-2", "metric": "accuracy", "facts": {}, "dev": {}, "test": {}}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, tiny_corpus: Path) -> Path:
    """One directory of each kind."""
    folder = tmp_path_factory.mktemp("written")
    shutil.copytree(tiny_corpus, folder / "corpus")
    last = pretrain(make_recipe(folder / "corpus", train__steps=2), folder / "run")
    export_onnx(load_checkpoint(last), folder / "export", head="mlm")
    (folder / "tuned" / "predictions").mkdir(parents=True)
    (folder / "tuned" / "predictions" / "dev.jsonl").write_text('{"id": "1", "answer": "no", "output": [1.0, 0.0]}\n')
    write_report(folder / "tuned", REPORT)
    (folder / "several" / "seed-1").mkdir(parents=True)
    write_sealed(folder / "several" / "trials.json", {"best_run": "seed-1", "runs": [{"score": 0.51}]})
    return folder


def test_all_that_we_write_is_verified(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["verify", str(written)], debug=False) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.endswith(": verified") for line in lines)
    kinds = {line.split(f" {written}")[0] for line in lines}
    assert kinds == {"corpus", "tokenizer", "run", "checkpoint", "export", "finished run", "summary of runs"}


@pytest.mark.parametrize(
    "name",
    [
        "corpus/manifest.json",
        "corpus/sources.jsonl",
        "corpus/shards/train-00000.safetensors",
        "corpus/tokenizer/tokenizer.json",
        "run/metrics.jsonl",
        "run/recipe.toml",
        "run/checkpoints/step-00000002/litebert.json",
        "run/checkpoints/step-00000002/model.safetensors",
        "run/checkpoints/step-00000002/recipe.toml",
        "export/export.json",
        "export/model.onnx",
        "tuned/report.json",
        "tuned/predictions/dev.jsonl",
        "several/trials.json",
    ],
)
def test_one_changed_digit_or_bit_is_found_and_its_file_named(
    name: str, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top = name.split("/")[0]
    copy = Path(shutil.copytree(written / top, tmp_path / top))
    file = tmp_path / name
    data = file.read_bytes()
    at = next(n for n in range(len(data) // 2, len(data)) if chr(data[n]).isdigit() or data[n] > 127)
    file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    assert _run(["verify", str(copy)], debug=False) == 2
    assert file.name in capsys.readouterr().err


def test_a_directory_of_an_earlier_version_is_verified_as_far_as_it_can_be(written: Path, tmp_path: Path) -> None:
    export = Path(shutil.copytree(written / "export", tmp_path / "export"))
    (export / "export.json").write_text(json.dumps(read_sealed(export / "export.json")))
    (found,) = [one for one in verify(export) if one.kind == "export"]
    assert not found.problems
    assert "was written by an earlier version and has no checksum" in found.notes[0]


def test_what_is_not_ours_is_refused(tmp_path: Path) -> None:
    with refuses(DataError, "nothing-to-verify"):
        verify(tmp_path)
    with refuses(ConfigError, "missing-folder"):
        verify(tmp_path / "nothing")


@pytest.mark.parametrize("content", [b"[model\n", b"\xff", b"[model]\nhidden = 3\n"])
def test_a_recipe_that_cannot_be_read_is_named(content: bytes, written: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(written / "run", tmp_path / "run"))
    (run / "recipe.toml").write_bytes(content)
    (found,) = [one for one in verify(run) if one.kind == "run"]
    assert str(run / "recipe.toml") in found.problems[0]


def test_every_digit_of_a_fine_tuning_run_is_verified(tiny_checkpoint: Path, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows", invent_rows())
    changes = {"train.steps": 2, "train.evaluations": 1, "train.batch_size": 8, "train.max_length": 24}
    run = litebert.finetune(tiny_checkpoint, "classification", rows, changes, out=tmp_path / "run").folder
    assert not [problem for found in verify(run) for problem in found.problems]
    for name, old, new in (
        ("recipe.toml", "weight_decay = 0.01", "weight_decay = 0.02"),
        ("recipe.toml", "num_train = 32", "num_train = 33"),
        ("data.json", '"checksum": "', '"checksum": "0'),
    ):
        content = (run / name).read_text()
        assert old in content
        (run / name).write_text(content.replace(old, new))
        assert any(str(run / name) in problem for found in verify(run) for problem in found.problems)
        (run / name).write_text(content)


def test_a_summary_of_runs_that_changed_chooses_no_model(written: Path, tmp_path: Path) -> None:
    several = Path(shutil.copytree(written / "several", tmp_path / "several"))
    (several / "trials.json").write_text((several / "trials.json").read_text().replace("seed-1", "seed-2"))
    with refuses(DataError, "corrupt-file", at="trials.json"):
        load_checkpoint(several)
    (several / "trials.json").write_text('{"best_run": ["seed-1"]}')  # without a checksum, as earlier versions wrote it
    with refuses(DataError, "corrupt-file", at="trials.json"):
        load_checkpoint(several)


@pytest.mark.parametrize(
    "lie",
    [
        {"state": {}},
        {"state": {"tokens": 1.5, "seconds": 1.0}},
        {"state": {"tokens": 800, "seconds": float("nan")}},
        {"begun_with": {"metrics": 5}},
        {"begun_with": {"corpora": ["text"]}},
        {"begun_with": {"dtype": "fp33"}},
        {"begun_with": {"weight": ""}},
    ],
    ids=str,
)
def test_a_checkpoint_that_lies_about_its_run_is_refused_by_its_name(
    lie: dict[str, object], written: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(written / "run", tmp_path / "run"))
    file = run / "checkpoints" / "step-00000002" / "litebert.json"
    write_sealed(file, read_sealed(file) | lie)
    with pytest.raises(LitebertError) as caught:
        pretrain(make_recipe(written / "corpus", train__steps=2), run)
    assert "litebert.json" in str(caught.value)


@pytest.mark.parametrize("kind", ["checkpoint", "export", "tuned"])
@pytest.mark.parametrize("name", ["/proc/kcore", "../secret", "a/../../secret", ""])
def test_a_root_file_cannot_name_files_outside_of_its_folder(
    kind: str, name: str, written: Path, tmp_path: Path
) -> None:
    source = written / "run" / "checkpoints" / "step-00000002" if kind == "checkpoint" else written / kind
    copy = Path(shutil.copytree(source, tmp_path / kind))
    (tmp_path / "secret").write_text("a secret")
    file = copy / {"checkpoint": "litebert.json", "export": "export.json", "tuned": "report.json"}[kind]
    facts = read_sealed(file)
    write_sealed(file, facts | {"files": facts["files"] | {name: hash_file(tmp_path / "secret")}})
    read: Callable[[Path], object] = {"checkpoint": load_checkpoint, "export": open_export, "tuned": read_report}[kind]
    with refuses(DataError, "corrupt-file", at="outside of it"):
        read(copy)
    assert any("outside of it" in problem for found in verify(copy) for problem in found.problems)
