"""Pairs of titles and articles from a file of WikiExtractor, to measure how well a model finds the article of a title.

    python benchmarks/title_search.py $LITEBERT_DATA/corpora/enwiki/wiki_08.gz --out titles.jsonl
    litebert evaluate MODEL --task embedding --data titles.jsonl

An article is its text without the title and without the first paragraph, which repeats it: the title has to be found by
what the article is about. The file must not be in the corpus that the model was trained on.
"""

import argparse
import gzip
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

WORDS = 200  # of an article
FEWEST = 50
_ARTICLE = re.compile(r'<doc [^>]*title="([^"]*)">\n(.*?)</doc>', re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    pairs = list(iter_pairs(gzip.decompress(options.file.read_bytes()).decode("utf-8")))
    chosen = random.Random(0).sample(pairs, min(options.count, len(pairs)))
    rows = ({"title": title, "article": article} for title, article in chosen)
    options.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    print(f"{options.out}: {len(chosen):,} of {len(pairs):,} articles")


def iter_pairs(text: str) -> Iterator[tuple[str, str]]:
    for title, body in _ARTICLE.findall(text):
        paragraphs = [line for line in body.splitlines() if line.strip() and line.strip() != title]
        words = " ".join(paragraphs[1:]).split()[:WORDS]
        if len(words) >= FEWEST:
            yield title, " ".join(words)


if __name__ == "__main__":
    main()
