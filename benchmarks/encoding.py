"""Encoding speed, compared with the underlying libraries. Needs $LITEBERT_DATA.

    LITEBERT_DATA=... python benchmarks/encoding.py

Distinct Wikipedia sentences in batches of 2,000; processor time of one thread; the libraries take turns with ours.
"""

import gzip
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # read when the library first encodes

import sentencepiece
import tokenizers

from litebert.text.normalize import Normalization, normalize
from litebert.text.sentences import split_sentences
from litebert.text.tokenizer import load_tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

Encode = Callable[[list[str]], object]
BATCH = 2000


def main() -> None:
    folder = os.environ.get("LITEBERT_DATA")
    if not folder:
        sys.exit(print("LITEBERT_DATA is not set: nothing to measure on"))
    data = Path(folder)
    english = read_sentences(data / "corpora/enwiki/wiki_01.gz")
    chinese = read_sentences(data / "corpora/zhwiki/zhwiki_00.gz")[:60_000]

    albert = load_tokenizer(data / "vocab")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(data / "vocab/albert-30k.model"))
    plain = [normalize(sentence, Normalization()) for sentence in english]
    compare(
        "unigram, English", albert.encode_batch, lambda texts: processor.encode(texts, num_threads=1), english, plain
    )

    bert_file = data / "tf/google_albert_base_zh/vocab_chinese.txt"
    library = tokenizers.BertWordPieceTokenizer(str(bert_file))
    for language, sentences in (("English", english), ("Chinese", chinese)):
        compare(f"WordPiece, {language}", load_tokenizer(bert_file).encode_batch, library.encode_batch, sentences)

    with tempfile.TemporaryDirectory() as temporary:
        bpe = train_tokenizer(english[:20_000], VocabularyOptions("bpe", 20_000))
        bpe.save(Path(temporary) / "bpe")
        backend = tokenizers.Tokenizer.from_file(str(Path(temporary) / "bpe" / "tokenizer.json"))
    compare("byte-level BPE, English", bpe.encode_batch, backend.encode_batch, english)
    compare(
        "with offsets, unigram",
        lambda texts: [albert.encode_with_offsets(text) for text in texts],
        None,
        english[:9000],
    )


def compare(
    name: str, ours: Encode, theirs: Encode | None, texts: list[str], their_texts: list[str] | None = None
) -> None:
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    our_seconds = their_seconds = 0.0
    for start in range(0, len(texts), BATCH):
        our_seconds += measure(ours, texts[start : start + BATCH])
        if theirs:
            their_seconds += measure(theirs, (their_texts or texts)[start : start + BATCH])
    line = f"{name:24} {megabytes / our_seconds:6.1f} MB/s"
    print(
        f"{line}, the library {megabytes / their_seconds:5.1f}: {their_seconds / our_seconds:.2f} times"
        if theirs
        else line
    )


def measure(encode: Encode, texts: list[str]) -> float:
    started = time.process_time()
    encode(texts)
    return time.process_time() - started


def read_sentences(file: Path) -> list[str]:
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        paragraphs = [line.strip() for line in stream if len(line) > 20 and not line.startswith("<")]
    return [sentence for paragraph in paragraphs for sentence in split_sentences(paragraph)]


if __name__ == "__main__":
    main()
