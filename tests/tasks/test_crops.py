"""Crops: pairs of whole words from one document, the same in every reading, from which a model learns to search."""

from pathlib import Path

import numpy as np
import pytest
from refusals import refuses

import litebert
from litebert.core.errors import ConfigError
from litebert.corpus.shards import open_corpus
from litebert.tasks.bag_of_words import split_words
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.crops import LONGEST, draw_crop
from litebert.tasks.files.reading import TableOptions
from litebert.text.tokenizer import load_tokenizer


def read_documents(corpus: Path, split: str) -> list[str]:
    opened = open_corpus(corpus, split)  # type: ignore[arg-type]
    tokenizer = load_tokenizer(opened.tokenizer_path)
    return [
        tokenizer.decode(np.concatenate(shard.sentences(number)).tolist())
        for shard in opened.shards
        for number in range(shard.num_documents)
    ]


def test_crops_are_whole_words_of_their_document(tiny_corpus: Path) -> None:
    dataset = read_dataset("embedding", tiny_corpus)
    documents = {split: read_documents(tiny_corpus, split) for split in ("train", "valid")}
    for split, examples in (("train", dataset.train), ("valid", dataset.dev["dev"])):
        assert len(examples) > 10
        for example in examples:
            document = split_words(documents[split][int(example.group.partition("-")[2])])
            for crop in map(split_words, (example.text, example.text_b)):
                assert any(document[n : n + len(crop)] == crop for n in range(len(document)))


def test_crops_are_a_function_of_the_corpus(tiny_corpus: Path) -> None:
    one, other = (read_dataset("embedding", tiny_corpus) for _ in range(2))
    assert one.train == other.train
    assert len({example.id for example in one.train}) == len(one.train)


def test_short_crops_are_as_likely_as_long_ones() -> None:
    words, rng = np.arange(0, 1000, 2), np.random.default_rng(0)
    lengths = np.array([(end - start) // 2 for start, end in (draw_crop(words, rng) for _ in range(4000))])
    assert lengths.min() == 4
    assert lengths.max() == LONGEST
    assert np.mean(lengths <= 20) == pytest.approx(0.5, abs=0.04)  # the middle of 4 and 96 in proportion


def test_a_model_learns_from_a_corpus_alone(tiny_corpus: Path, tiny_checkpoint: Path, tmp_path: Path) -> None:
    changes = {"train.steps": 120, "train.batch_size": 32, "optim.learning_rate": 3e-3, "train.evaluations": 2}
    before = litebert.evaluate(tiny_checkpoint, tiny_corpus, task="embedding").metrics
    run = litebert.finetune(tiny_checkpoint, "embedding", tiny_corpus, changes, out=tmp_path / "run")
    assert run.metrics["recall@10"] > before["recall@10"]


def test_columns_are_refused_for_a_corpus(tiny_corpus: Path) -> None:
    with refuses(ConfigError, "conflicting-options"):
        read_dataset("embedding", tiny_corpus, TableOptions(text="text"))
