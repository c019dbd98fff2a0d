"""The commands of fine-tuning: from a file to answers, and one line for each slip."""

import io
import json
from pathlib import Path

import pytest
from small_tasks import invent_rows, write_rows

from litebert.cli.main import _run
from litebert.inference.fill_mask import show_guess
from litebert.inference.predictor import load

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
    run(capsys, "evaluate", out, *words, "--out", tmp_path / "answers.json")
    answers = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert json.loads((tmp_path / "answers.json").read_text()) == {one["id"]: one["answer"] for one in answers}
    (tmp_path / "texts.txt").write_text("a cat\n\nthe dog sees\n")
    code, printed, _ = run(capsys, "predict", out, tmp_path / "texts.txt")
    first, second = (json.loads(line) for line in printed.splitlines())
    assert (first["id"], second["id"]) == ("1", "3")
    assert sum(first["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    code, printed, _ = run(capsys, "predict", out, data / "dev.jsonl", "--table")
    assert printed.splitlines()[0].endswith(invent_rows()[0]["text"])


def test_json_of_a_new_run_is_all_that_is_printed(
    tiny_checkpoint: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--task", "classification", "--data", data, "--out", tmp_path / "run", "--json"]
    code, printed, notes = run(capsys, "finetune", tiny_checkpoint, *words, *SHORT)
    assert code == 0
    assert json.loads(printed)["steps"] == 4
    assert "labels: bird (12), cat (8), dog (12)" in notes


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
    assert (code, "ensemble of 2, dev: accuracy" in printed) == (0, True)
    code, printed, _ = run(capsys, "submission", tmp_path / "both", "--out", tmp_path / "glue.zip")
    assert code == 1
    assert "SST-2.tsv: 2 rows, but the test set has 1,821" in printed
    assert "RTE.tsv is missing" in printed
    assert run(capsys, "submission", "--check", tmp_path / "glue.zip")[0] == 1


@pytest.fixture
def classifier(tiny_checkpoint: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    words = ["--task", "classification", "--data", data, "--out", tmp_path / "classifier"]
    run(capsys, "finetune", tiny_checkpoint, *words, *SHORT)
    return tmp_path / "classifier"


def speak(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))


def test_standard_input_is_read_as_files_are(
    classifier: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    speak(monkeypatch, "\ufeffa cat\r\n".encode())
    code, printed, _ = run(capsys, "predict", classifier, "--table")
    assert (code, printed.split("\t")[-1]) == (0, "a cat\n")
    speak(monkeypatch, "fine\ncaf\u00e9\n".encode("latin-1"))
    code, _, errors = run(capsys, "predict", classifier)
    assert code == 2
    assert errors.startswith("error[bad-encoding]: standard input:2: byte 0xe9 is not valid utf-8")
    assert "cp1252" in errors


def test_a_model_that_was_only_pretrained_guesses_hidden_words(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    speak(monkeypatch, b"the old [MASK] sees\n\n[MASK] likes a [MASK]\n")
    code, printed, _ = run(capsys, "predict", tiny_checkpoint)
    answers = [json.loads(line) for line in printed.splitlines()]
    assert (code, [(answer["id"], len(answer["gaps"])) for answer in answers]) == (0, [("1", 1), ("3", 2)])
    predictor = load(tiny_checkpoint)
    (expected,) = predictor.fill_mask("the old [MASK] sees")
    first = answers[0]["gaps"][0]
    assert [(guess["piece"], guess["probability"]) for guess in first] == [
        (guess.piece, pytest.approx(guess.probability)) for guess in expected
    ]
    assert [guess["word"] for guess in first] == [show_guess(predictor.tokenizer, guess) for guess in expected]
    (tmp_path / "gaps.csv").write_text("text\na [MASK]\n")
    code, printed, _ = run(capsys, "predict", tiny_checkpoint, tmp_path / "gaps.csv", "--table")
    assert (code, printed.split("\t")[1]) == (0, "a [MASK]\n")
    (tmp_path / "long.txt").write_text(f"a [MASK]\n{'the cat ' * 500}[MASK]\n")
    code, printed, errors = run(capsys, "predict", tiny_checkpoint, tmp_path / "long.txt")
    assert (code, printed) == (2, "")
    assert "long.txt:2: the text has" in errors


def test_a_pair_is_no_text_of_a_model_for_single_texts(
    classifier: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    speak(monkeypatch, b"a cat\nthe dog\tsees\n")
    code, _, errors = run(capsys, "predict", classifier)
    assert code == 2
    assert "standard input:2: 'the dog' is a pair of texts, but the model takes single texts" in errors


def test_a_tsv_is_a_table_when_asked_as_when_learned(
    classifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test.tsv").write_text("index\tsentence\n7\ta cat\n8\ta dog\n")
    code, printed, errors = run(capsys, "predict", classifier, tmp_path / "test.tsv", "--table")
    assert (code, [line.split("\t")[-1] for line in printed.splitlines()]) == (0, ["a cat", "a dog"])
    assert "text = 'sentence'" in errors


def test_labels_of_a_fasttext_file_are_no_part_of_its_texts(
    classifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test.txt").write_text("__label__cat a cat\n__label__dog a dog\n")
    code, printed, _ = run(capsys, "predict", classifier, tmp_path / "test.txt", "--table")
    assert (code, [line.split("\t")[-1] for line in printed.splitlines()]) == (0, ["a cat", "a dog"])


def test_an_ending_in_capitals_is_the_same_ending(
    classifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "DATA.CSV").write_text("text,stars\na cat,1\na dog,2\n")
    code, printed, _ = run(capsys, "predict", classifier, tmp_path / "DATA.CSV", "--table")
    assert (code, [line.split("\t")[-1] for line in printed.splitlines()]) == (0, ["a cat", "a dog"])


@pytest.mark.parametrize(
    ("row", "message"),
    [('{"text": "a \\ud800 b"}', "not JSON"), ("[" * 100_000, "nested too deeply")],
    ids=["half a character", "too deep"],
)
def test_json_that_no_program_could_write_is_refused(
    row: str, message: str, classifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "odd.jsonl").write_text(row)
    code, printed, errors = run(capsys, "predict", classifier, tmp_path / "odd.jsonl", "--table")
    assert (code, printed) == (2, "")
    assert message in errors


def test_answers_to_several_files_say_where_each_text_stands(
    classifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for file in files:
        file.write_text("a cat\na dog\n")
    _, printed, _ = run(capsys, "predict", classifier, *files)
    answers = [json.loads(line) for line in printed.splitlines()]
    assert [answer["where"] for answer in answers] == [f"{file}:{line}" for file in files for line in (1, 2)]


def test_a_spreadsheet_is_no_text(classifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "texts.xlsx").write_bytes(b"PK\x03\x04 and so on")
    code, printed, errors = run(capsys, "predict", classifier, tmp_path / "texts.xlsx")
    assert (code, printed) == (2, "")
    assert "texts.xlsx: an Office document or a zip, not text; save it as CSV" in errors


def test_tagged_files_are_answered_sentence_by_sentence(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.conll").write_text("the O\ncat B-ANIMAL\n\na O\ndog B-ANIMAL\n\n" * 8)
    out = tmp_path / "tagger"
    run(capsys, "finetune", tiny_checkpoint, "--task", "tags", "--data", tmp_path, "--out", out, *SHORT)
    code, printed, _ = run(capsys, "predict", out, tmp_path / "train.conll")
    answers = [json.loads(line)["answer"] for line in printed.splitlines()]
    assert (code, len(answers), {len(answer) for answer in answers}) == (0, 16, {2})
    (tmp_path / "train.txt").write_text("the/O cat/B-ANIMAL\na/O dog/B-ANIMAL\n")
    code, printed, _ = run(capsys, "predict", out, tmp_path / "train.txt")
    assert [json.loads(line)["words"] for line in printed.splitlines()] == [["the", "cat"], ["a", "dog"]]
    # what other columns say is not asked: tags of another kind, or of some sentences only
    (tmp_path / "other.conll").write_text("the DT B-NP\ncat NN I-NP\n\na\ndog\n")
    code, printed, _ = run(capsys, "predict", out, tmp_path / "other.conll")
    assert (code, len(printed.splitlines())) == (0, 2)


def test_texts_are_cut_into_words_as_in_training_wherever_they_are_written(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"text": f"the cat, a {n}.", "entities": [{"start": 4, "end": 7, "label": "PET"}]} for n in range(16)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "new.jsonl").write_text(json.dumps({"text": "a dog, (old)."}))
    (tmp_path / "new.csv").write_text('text\n"a dog, (old)."\n')
    (tmp_path / "new.txt").write_text("a dog, (old).\n")
    out, data = tmp_path / "tagger", tmp_path / "train.jsonl"
    run(capsys, "finetune", tiny_checkpoint, "--task", "tags", "--data", data, "--out", out, *SHORT)
    for name in ("new.jsonl", "new.csv", "new.txt"):
        code, printed, errors = run(capsys, "predict", out, tmp_path / name)
        record = json.loads(printed)
        assert (code, record["words"]) == (0, ["a", "dog", ",", "(", "old", ")", "."]), errors
        assert len(record["answer"]) == 7


def test_a_labelled_test_file_is_scored_with_the_run(
    tiny_checkpoint: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "test.jsonl").write_text((data / "dev.jsonl").read_text())
    out = tmp_path / "run"
    words = ["--task", "classification", "--data", data]
    _, printed, _ = run(capsys, "finetune", tiny_checkpoint, *words, "--out", out, *SHORT)
    report = json.loads((out / "report.json").read_text())
    assert report["test"]["test"]["scores"] == report["dev"]["dev"]["scores"]
    assert "test (32 examples): accuracy" in printed
    _, printed, _ = run(capsys, "evaluate", out, *words, "--split", "test")
    assert f"32 examples: accuracy {report['test']['test']['scores']['accuracy']:.4f}" in printed


def test_an_ensemble_of_ones_own_files_takes_the_words_of_fine_tuning(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{row['text']},{row['label']}\n" for row in invent_rows())
    (tmp_path / "rows.csv").write_text(f"review,animal,other\n{rows}".replace("\n", ",x\n").replace("other,x", "other"))
    words = ["--task", "classification", "--data", tmp_path / "rows.csv", "--text", "review", "--label", "animal"]
    for name in "ab":
        seed = f"seed={ord(name)}"
        run(capsys, "finetune", tiny_checkpoint, *words, "--dev-share", 0.5, *SHORT, seed, "--out", tmp_path / name)
    both = [tmp_path / "a", tmp_path / "b"]
    code, printed, _ = run(capsys, "ensemble", *both, *words, "--dev-share", 0.5, "--out", tmp_path / "both")
    assert (code, "dev: accuracy" in printed) == (0, True)
    code, _, errors = run(capsys, "ensemble", *both, *words, "--out", tmp_path / "other")
    assert (code, "use the data options of its fine-tuning" in errors) == (2, True)


def test_a_model_of_a_known_task_is_scored_on_ones_own_file(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{row['text']}\t{int(row['label'] == 'cat')}\n" for row in invent_rows())
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text(f"sentence\tlabel\n{rows}")
    words = ["--task", "sst-2", "--data", tmp_path, "--recipe", "two-core"]
    run(capsys, "finetune", tiny_checkpoint, *words, *SHORT, "--out", tmp_path / "run")
    (tmp_path / "own.csv").write_text("text,label\na cat,1\na dog,0\n")
    own = ["--task", "classification", "--data", tmp_path / "own.csv"]
    assert run(capsys, "evaluate", tmp_path / "run", *own)[1].startswith("all, 2 examples: accuracy")
    code, _, errors = run(capsys, "evaluate", tmp_path / "run", "--task", "cola", "--data", tmp_path)
    assert code == 2, errors


def test_every_run_of_a_grid_has_its_picture_and_lr_is_understood(
    tiny_checkpoint: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--task", "classification", "--data", data, "--out", tmp_path / "run", "lr=0.001,0.01"]
    code, _, _ = run(capsys, "finetune", tiny_checkpoint, *words, *SHORT)
    assert code == 0
    for rate in ("0.001", "0.01"):
        folder = tmp_path / "run" / f"lr={rate}" / "seed-1"
        assert (folder / "confusion.png").is_file()
        report = json.loads((folder / "report.json").read_text())
        assert report["values"]["optim"]["learning_rate"] == float(rate)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["finetune", "CKPT", "--task", "sst2", "--data", "DATA"], "did you mean 'sst-2'?"),
        (["finetune", "CKPT", "--task", "classification", "--data", "DATA/none.csv"], "no such file"),
        (["finetune", "DATA", "--task", "classification", "--data", "DATA"], "not-a-model"),
        (["finetune", "CKPT", "--task", "rte", "--data", "DATA", "train.epoch=2"], "no column"),
        (
            ["finetune", "CKPT", "--task", "classification", "--data", "DATA", "train.epoch=2"],
            "unknown key 'train.epoch'",
        ),
        (
            ["finetune", "CKPT", "--task", "classification", "--data", "DATA", "--recipe", "paper"],
            "recipe 'paper' has no settings",
        ),
        (["finetune", "CKPT", "--task", "classification", "--data", "DATA", "train.trainable=some"], "last-2"),
        (
            ["finetune", "CKPT", "--task", "classification", "--data", "DATA", "train.warmup_steps=999"],
            "exceeds the 500 steps",
        ),
        (
            ["predict", "CKPT", "DATA/dev.jsonl", "--text", "text"],
            "dev.jsonl:1: the text has no [MASK]",
        ),
        (["evaluate", "CKPT", "--task", "classification", "--data", "DATA"], "was not fine-tuned"),
        (
            ["finetune", "CKPT", "--task", "classification", "--data", "DATA", "epochs=2"],
            "did you mean 'train.epochs'?",
        ),
        (["finetune", "CKPT", "--task", "regression", "--data", "DATA", "--balanced"], "balanced does not apply to"),
        (
            ["finetune", "CKPT", "--task", "classification", "--data", "DATA/dev.jsonl", "--dev-share", "0"],
            "no dev split",
        ),
        (["submission"], "name the runs"),
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
    assert not (tmp_path / "run").exists()


def test_the_metric_and_the_group_that_are_named_decide_the_run(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{**row, "author": number // 4} for number, row in enumerate(invent_rows(count=40))]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["--task", "classification", "--data", tmp_path / "rows.jsonl", "--out", tmp_path / "run", *SHORT]
    options = ["--positive", "cat", "--group", "author"]
    code, printed, errors = run(capsys, "finetune", tiny_checkpoint, *words, *options)
    assert (code, "training rows are held out for dev, grouped by 'author'" in printed) == (0, True), errors
    assert "recipe adaptive: 4 steps of 8 examples" in printed
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert (report["metric"], list(report["dev"]["dev"]["scores"])) == ("f1", ["f1", "accuracy"])
    assert report["values"]["job"]["positive"] == "cat"
    code, printed, _ = run(capsys, "evaluate", tmp_path / "run", "--data", tmp_path / "rows.jsonl")
    assert (code, printed.startswith("dev, ")) == (0, True)
    assert f"examples: f1 {report['dev']['dev']['scores']['f1']:.4f}" in printed


def test_truncation_is_reported_for_every_split(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"text": "the " * (4 + 20 * (n == 0)), "label": "ab"[n % 2]} for n in range(8)]
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["--task", "classification", "--data", tmp_path, "--out", tmp_path / "run", "train.max_length=16", *SHORT]
    code, printed, errors = run(capsys, "finetune", tiny_checkpoint, *words)
    told = " ".join((printed + errors).split())
    for name in ("train", "dev", "test"):
        expected = f"{name}: 1 of 8 texts were truncated to the model's 16 tokens (special tokens included); 10 tokens"
        assert (code, expected in told) == (0, True), told
