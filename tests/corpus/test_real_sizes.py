"""Text of realistic size and line length."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from litebert.corpus.build import BuildOptions, BuildResult, build_corpus
from litebert.corpus.shards import open_corpus
from litebert.text.tokenizer import load_tokenizer


@pytest.mark.slow
def test_a_gigabyte_on_one_line_needs_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.txt.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(b"the cat sat " * (1 << 20))  # never a newline
    code = (
        "import psutil, sys; from litebert.corpus.documents import *; from litebert.corpus.notes import Notes\n"
        "notes = Notes('skip'); n = peak = 0\n"
        "for d in iter_documents([sys.argv[1]], ReadOptions(on_error='skip'), notes=notes):\n"
        "    n += len(d.sentences)\n"
        # not ru_maxrss, which counts the process that started this one too
        "    peak = max(peak, psutil.Process().memory_info().rss)\n"
        "print(n, notes.counts['long_line'], peak >> 20)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    num_sentences, num_cuts, megabytes = map(int, done.stdout.split())
    assert num_sentences > 90_000
    assert num_cuts > 40
    assert megabytes < 600


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["enwiki", "zhwiki", "gutenberg"])
def test_the_real_corpora_build_without_markup_or_licence(real_data: Path, tmp_path: Path, folder: str) -> None:
    tokenizer = load_tokenizer(real_data / "vocab" / "albert-30k.model")
    options = BuildOptions(processes=2, is_quiet=True)
    result: BuildResult = build_corpus([real_data / "corpora" / folder], tokenizer, tmp_path / "corpus", options)
    assert result.manifest.problems == []
    assert open_corpus(tmp_path / "corpus").num_documents > 100
    if folder == "zhwiki":  # the English vocabulary does not know the characters
        return
    for shard in open_corpus(tmp_path / "corpus", "valid").shards:
        for i in range(shard.num_documents):
            for sentence in shard.sentences(i):
                text = tokenizer.decode(sentence)
                assert not any(mark in text for mark in ("<doc", "</", "[[", "&lt;", "project gutenberg")), text
