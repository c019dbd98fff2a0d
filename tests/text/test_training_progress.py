"""The progress of training is read from the libraries' logs."""

import os
import sys

import pytest

from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer
from litebert.text.training_progress import UnigramProgress, progress_reported_to, read_merging_progress


def make_sentences() -> list[str]:
    return [f"the {k % 97} cats of street {k % 89} saw {k % 13} birds by tree {k}" for k in range(2000)]


@pytest.mark.parametrize(("kind", "vocab_size"), [("unigram", 200), ("wordpiece", 200), ("bpe", 400)])
def test_shares_rise_to_the_end_and_the_vocabulary_is_the_same(kind, vocab_size, capfd) -> None:  # type: ignore[no-untyped-def]
    options = VocabularyOptions(kind, vocab_size)
    shares: list[float] = []
    watched = train_tokenizer(make_sentences(), options, shares.append)
    assert watched.fingerprint == train_tokenizer(make_sentences(), options).fingerprint
    assert len(shares) > 3
    assert shares == sorted(shares)
    assert shares[0] < 0.2
    assert 0.9 < shares[-1] <= 1
    assert capfd.readouterr().err == ""


def test_python_keeps_its_stderr_and_the_descriptor_is_restored(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_reported_to(read_merging_progress, print):
        os.write(2, b"a library\n")
        print("ourselves", file=sys.stderr)
    os.write(2, b"afterwards\n")
    assert capfd.readouterr().err == "ourselves\nafterwards\n"


def test_the_descriptor_comes_back_after_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="broken"), progress_reported_to(read_merging_progress, print):
        raise ValueError("broken")
    os.write(2, b"afterwards\n")
    assert capfd.readouterr().err == "afterwards\n"


def test_pruning_is_counted_in_rounds() -> None:
    log = UnigramProgress(vocab_size=1000)
    assert log("EM sub_iter=0 size=8000 obj=1") == pytest.approx(0.38)
    halfway = log("EM sub_iter=1 size=2967 obj=1")
    assert halfway is not None
    assert 0.65 < halfway < 0.78
    assert log("EM sub_iter=1 size=1100 obj=1") == 1
    assert log("anything else") is None


def test_a_line_that_is_no_report_is_none() -> None:
    assert read_merging_progress("warning: something\n") is None
    assert read_merging_progress('{"stage":"Compute merges","current":50,"total":100}') == pytest.approx(0.55)
    assert read_merging_progress('{"stage":"A new one","current":50,"total":100}') == 0
