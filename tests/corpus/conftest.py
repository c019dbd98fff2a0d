"""A small WordPiece tokenizer over letters, which needs no file."""

import gzip
import string
from pathlib import Path

import pytest
from small_builds import text_of

from litebert.text.tokenizer import Tokenizer, load_tokenizer


def write_tokenizer(folder: Path, *, extra: str = "") -> Path:
    letters = string.ascii_lowercase + string.digits + ".,!?'-" + extra
    words = ["the", "a", "of", "and", "in", "to", "cat", "dog", "sat", "ran", "mat", "house"]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters), *words]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "vocab.txt"
    path.write_text("\n".join(pieces) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokenizer(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="session")
def tokenizer(vocabulary: Path) -> Tokenizer:
    return load_tokenizer(vocabulary)


@pytest.fixture(scope="session")
def other_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return load_tokenizer(write_tokenizer(tmp_path_factory.mktemp("other"), extra="ü"))


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    """Five files of which two are packed."""
    paths = []
    for seed in range(5):
        path = tmp_path / "texts" / f"{seed}.txt"
        path.parent.mkdir(exist_ok=True)
        data = text_of(seed).encode()
        path.write_bytes(gzip.compress(data, mtime=0) if seed % 2 else data)
        paths.append(path)
    return paths
