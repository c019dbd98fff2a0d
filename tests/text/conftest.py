"""Small tokenizers of each kind, trained on made-up sentences."""

from pathlib import Path

import pytest
from small_text import SIZES, make_sentences

from litebert.text.tokenizer import Tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    return make_sentences()


@pytest.fixture(scope="session")
def tokenizers_by_kind(sentences: list[str]) -> dict[str, Tokenizer]:
    return {kind: train_tokenizer(sentences, VocabularyOptions(kind, size)) for kind, size in SIZES.items()}


@pytest.fixture(params=SIZES)
def tokenizer(request: pytest.FixtureRequest, tokenizers_by_kind: dict[str, Tokenizer]) -> Tokenizer:
    return tokenizers_by_kind[request.param]


@pytest.fixture
def saved(tokenizer: Tokenizer, tmp_path: Path) -> Path:
    tokenizer.save(tmp_path / "tokenizer")
    return tmp_path / "tokenizer"
