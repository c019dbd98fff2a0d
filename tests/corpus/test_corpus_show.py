"""`litebert corpus show` and `litebert recipes batches`, from built corpora to what a person sees."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses
from scipy import stats

from litebert.batches.inspection import measure_batches
from litebert.batches.options import BatchOptions, DataOptions, MaskingOptions, SegmentOptions, StreamOptions
from litebert.batches.stream import open_stream
from litebert.cli.main import _run
from litebert.core import progress
from litebert.core.errors import DataError
from litebert.corpus.build import BuildOptions, build_corpus
from litebert.corpus.documents import ReadOptions
from litebert.text.tokenizer import Tokenizer, load_tokenizer

WORDS = ["the", "a", "of", "and", "in", "to", "cat", "dog", "sat", "ran", "mat", "house", "cats", "dogs"]
Command = Callable[..., tuple[int, str, str]]


def build(folder: Path, tokenizer: Tokenizer) -> Path:
    rng = random.Random(0)
    documents = [
        "\n".join(" ".join(rng.choices(WORDS, k=rng.randint(3, 12))) + "." for _ in range(rng.randint(2, 8)))
        for _ in range(120)
    ]
    text = folder / "text.txt"
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    options = BuildOptions(read=ReadOptions(format="lines"), valid_share=0.2, is_quiet=True)
    build_corpus([str(text)], tokenizer, folder / "corpus", options)
    return folder / "corpus"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    return build(tmp_path_factory.mktemp("looking"), tokenizer)


@pytest.fixture
def litebert(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str | Path) -> tuple[int, str, str]:
        code = _run([*map(str, words)], debug=False)
        return code, *capsys.readouterr()

    return run


def test_show_prints_each_example_with_its_label_and_the_reason_for_each_mask(corpus: Path, litebert: Command) -> None:
    code, shown, _ = litebert("corpus", "show", corpus, "-n", "3", "segments.max_length=64")
    assert code == 0
    assert re.findall(r"Example (\d)", shown) == ["1", "2", "3"]
    assert re.search(r"label [01]: (in order|swapped)", shown)
    for example in re.split(r"Example \d", shown)[1:]:
        text, reasons = example.split("\n", 1)[1].split("[SEP] \n")
        assert text.count("[SEP]") == 1  # the second one has just been split off
        promised = int(re.search(r"to predict in (\d+) groups", example).group(1))  # type: ignore[union-attr]
        assert len(re.findall(r"^ +\d+  \d words? +'", reasons, re.MULTILINE)) == promised
        assert reasons.count("[MASK]") + reasons.count("random '") + reasons.count("kept") >= promised


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["segments.format=doc-sentences", "segments.task=none"], "no sentence task"),
        (["segments.task=three-way", "masking.kind=span"], "three-way|in order|swapped|from another document"),
        (["data.compat=google"], "segment-pair"),
        (["--split", "valid"], "Example 2"),
    ],
)
def test_show_follows_its_words(corpus: Path, litebert: Command, words: list[str], expected: str) -> None:
    code, shown, _ = litebert("corpus", "show", corpus, "-n", "2", *words)
    assert code == 0
    assert re.search(expected, shown)


def test_stats_of_batches_count_labels_masks_groups_and_padding(corpus: Path, litebert: Command) -> None:
    words = (f"data.corpora={corpus}", "batch.sequences=8", "masking.rate=0.15")
    code, shown, _ = litebert("recipes", "batches", "-n", "20", "nano", *words)
    assert code == 0
    for row in ("label 0: in order", "masked share", "groups of 3 words", "padding efficiency", "sequences/s"):
        assert row in shown
    share = float(re.search(r"masked share of the text.*?([\d.]+)%", shown).group(1))  # type: ignore[union-attr]
    assert share == pytest.approx(15, abs=2)


def test_stats_of_batches_can_be_json(corpus: Path, litebert: Command) -> None:
    words = (f"data.corpora={corpus}", "batch.sequences=8")
    code, shown, _ = litebert("recipes", "batches", "-n", "3", "nano", *words, "--json")
    assert code == 0
    found = json.loads(shown)
    assert (found["num_batches"], found["num_sequences"]) == (3, 24)
    assert sum(found["label_counts"]) == 24
    assert found["steps_per_epoch"] > 0


def test_long_looking_says_how_far_it_has_come(
    corpus: Path, litebert: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_FIRST_SECONDS", 0.0)
    assert re.search(r"counting: .*million sentences/s, .* left", litebert("corpus", "stats", corpus)[2])
    _, _, shown = litebert("recipes", "batches", "-n", "2", "nano", f"data.corpora={corpus}", "batch.sequences=2")
    assert re.search(r"making batches: 50% \(1 of 2 batches\), .* left", shown)


def test_a_plot_is_a_png_whatever_its_name(corpus: Path, litebert: Command, tmp_path: Path) -> None:
    assert litebert("corpus", "stats", corpus, "--plot", tmp_path / "lengths.what")[0] == 0
    assert (tmp_path / "lengths.what").read_bytes().startswith(b"\x89PNG")
    code, _, error = litebert("corpus", "stats", corpus, "--plot", tmp_path)
    assert (code, error.count("\n")) == (2, 1)
    assert "is a folder; name a PNG file" in error


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("recipes", "batches", "-n", "0", "nano"), "greater than or equal to 1"),
        (("corpus", "build", "x", "-t", "y", "--out", "z", "--processes", "0"), "greater than or equal to 1"),
        (("recipes", "batches", "-n", "2", "nano", "batch.sequnces=2"), "did you mean 'sequences'"),
        (("recipes", "batches", "-n", "2", "nano", "data.corpora=absent"), "not a finished corpus"),
        (("corpus", "stats", "absent", "batch.sequences=2"), "unexpected extra argument"),
        (("corpus", "show", "absent", "-n", "100000"), "less than or equal to 1000"),
        (("corpus", "show", "absent", "data=3"), "unknown key 'data'"),
        (("corpus", "show", "absent"), "not a finished corpus"),
        (("corpus", "show", "absent", "segments.fromat=x"), "did you mean 'format'"),
    ],
)
def test_wrong_words_are_one_line_and_exit_code_two(litebert: Command, words: tuple[str, ...], complaint: str) -> None:
    code, _, error = litebert(*words)
    assert code == 2
    assert complaint in error
    assert error.count("\n") == 1


def test_an_empty_split_is_named_with_what_would_fill_it(tmp_path: Path, tokenizer: Tokenizer) -> None:
    options = StreamOptions(
        segments=SegmentOptions(), masking=MaskingOptions(), batch=BatchOptions(sequences=2), seed=1
    )
    (tmp_path / "text.txt").write_text("The cat sat. It ran.\n")
    for share, empty, remedy in ((0.999999, "train", "smaller"), (0.0, "valid", "larger")):
        built = BuildOptions(valid_share=share, is_quiet=True)
        build_corpus([tmp_path / "text.txt"], tokenizer, tmp_path / empty, built)
        with refuses(DataError, "empty-split", at=remedy):
            open_stream(DataOptions(corpora=(str(tmp_path / empty),)), options, split=empty)  # type: ignore[arg-type]


def test_corpora_of_different_tokenizers_are_not_mixed(
    corpus: Path, tmp_path: Path, other_tokenizer: Tokenizer
) -> None:
    options = StreamOptions(
        segments=SegmentOptions(), masking=MaskingOptions(), batch=BatchOptions(sequences=2), seed=1
    )
    other = build(tmp_path, other_tokenizer)
    with refuses(DataError, "tokenizer-mismatch"):
        open_stream(DataOptions(corpora=(str(corpus), str(other))), options)


def test_real_text_has_the_promised_statistics(real_data: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(real_data / "vocab" / "albert-30k.model")
    source = sorted((real_data / "corpora" / "gutenberg").glob("*.gz"))[:2]
    build_corpus(list(map(str, source)), tokenizer, tmp_path / "corpus", BuildOptions(is_quiet=True, valid_share=0.0))
    options = StreamOptions(
        segments=SegmentOptions(max_length=128), masking=MaskingOptions(), batch=BatchOptions(sequences=32), seed=1
    )
    stream, _ = open_stream(DataOptions(corpora=(str(tmp_path / "corpus"),)), options)
    found = measure_batches(stream, 60)
    assert found.masked_share == pytest.approx(0.15, abs=0.004)
    shares = np.array([6, 3, 2]) / 11
    assert stats.chisquare(found.group_counts, shares * sum(found.group_counts)).pvalue > 1e-4
    assert stats.binomtest(found.label_counts[1], found.num_sequences, 0.5).pvalue > 1e-4
    assert found.padding_efficiency > 0.85
