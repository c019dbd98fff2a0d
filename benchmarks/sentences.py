"""Our sentence splitter compared with pysbd: agreement on boundaries, and speed. Needs $LITEBERT_DATA and pysbd.

    LITEBERT_DATA=... python benchmarks/sentences.py [--show 40]

A boundary is a position in the text without its white space, so that trimming does not matter. pysbd is not ground
truth: docs/sentences.md discusses which one is right where they differ.
"""

import argparse
import gzip
import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

import pysbd

from litebert.text.sentences import split_sentences

PARAGRAPHS = {"enwiki": 1500, "gutenberg": 1500}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--show", type=int, default=0, help="print so many differences of each corpus")
    show = parser.parse_args().show
    folder = os.environ.get("LITEBERT_DATA")
    if not folder:
        sys.exit(print("LITEBERT_DATA is not set: nothing to measure on"))
    peer = pysbd.Segmenter(language="en", clean=False)
    for corpus, count in PARAGRAPHS.items():
        paragraphs = sample_paragraphs(Path(folder) / "corpora" / corpus, count)
        # pysbd never ends a sentence inside a quotation, ours does: also compare on prose without quotations
        plain = [paragraph for paragraph in paragraphs if not re.search(r"[\"“”‘’«»]|\B'|'\B", paragraph)]
        compare(corpus, paragraphs, peer.segment, show)
        compare(f"{corpus} without quotations", plain, peer.segment, show)


def compare(corpus: str, paragraphs: list[str], peer: Callable[[str], list[str]], show: int) -> None:
    megabytes = sum(len(paragraph.encode()) for paragraph in paragraphs) / 1e6
    started = time.perf_counter()
    ours = [split_sentences(paragraph) for paragraph in paragraphs]
    our_seconds = time.perf_counter() - started
    started = time.perf_counter()
    theirs = [peer(paragraph) for paragraph in paragraphs]
    peer_seconds = time.perf_counter() - started

    found = [boundaries(sentences) for sentences in ours]
    wanted = [boundaries(sentences) for sentences in theirs]
    both = sum(len(a & b) for a, b in zip(found, wanted, strict=True))
    precision, recall = both / sum(map(len, found)), both / sum(map(len, wanted))
    f1 = 2 * precision * recall / (precision + recall)
    print(
        f"{corpus}: {len(paragraphs)} paragraphs, {sum(map(len, ours))} sentences of ours, {sum(map(len, theirs))} of "
        f"pysbd's; precision {precision:.3f} recall {recall:.3f} F1 {f1:.3f}; "
        f"{megabytes / our_seconds:.1f} MB/s against {megabytes / peer_seconds:.3f}"
    )
    for sign, left, right in (("only ours ", found, wanted), ("only pysbd", wanted, found)):
        places = [(text, place) for text, a, b in zip(paragraphs, left, right, strict=True) for place in sorted(a - b)]
        print(f"  {sign} {len(places)}")
        for text, place in random.Random(0).sample(places, min(show, len(places))):
            print(f"    {show_place(text, place)}")


def boundaries(sentences: list[str]) -> set[int]:
    lengths = [len("".join(sentence.split())) for sentence in sentences]
    return set(accumulate(lengths[:-1])) - {0, sum(lengths)}


def show_place(text: str, place: int) -> str:
    positions = [index for index, character in enumerate(text) if not character.isspace()]
    cut = positions[place]
    return f"{text[max(0, cut - 50) : cut]}|{text[cut : cut + 40]}"


def sample_paragraphs(folder: Path, count: int) -> list[str]:
    files = sorted(folder.glob("*.gz"))
    chosen = random.Random(1).sample(files, min(6, len(files)))
    paragraphs = [paragraph for file in chosen for paragraph in iter_paragraphs(file)]
    return random.Random(2).sample(paragraphs, min(count, len(paragraphs)))


def iter_paragraphs(file: Path) -> Iterator[str]:
    """Paragraphs of prose: one per line in Wikipedia, hard-wrapped and separated by empty lines in the books."""
    with gzip.open(file, "rt", encoding="utf-8", errors="replace") as stream:
        text = stream.read()
    blocks = text.split("\n") if "<doc " in text else re.split(r"\n\s*\n", text)
    for block in blocks:
        if len(block) > 80 and not block.startswith("<doc "):
            yield " ".join(block.split())


if __name__ == "__main__":
    main()
