"""What every test may ask for: the real data where it is, a tiny corpus, and quiet hypothesis settings."""

import os
import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings

from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.core.caches import cache_directory
from litebert.corpus.build import BuildOptions, build_corpus
from litebert.model.model import build_model
from litebert.text.tokenizer import Tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer
from tests.small_configs import TINY

settings.register_profile("litebert", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("litebert")

_WORDS = "the a small large old new cat dog bird house tree river sees likes finds leaves follows and or but near below"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what can be recognized: tests that drive a browser, and tests of hypothesis."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("fuzz")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what tests compute out of the user's cache folder, except machine code, which takes a minute to compile."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_directory()))
    os.environ["LITEBERT_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_interrupts() -> Iterator[None]:
    """A shell's background jobs ignore SIGINT, and so would what they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real text and task data; tests that need it skip where $LITEBERT_DATA is unset."""
    folder = os.environ.get("LITEBERT_DATA")
    if not folder:
        pytest.skip("LITEBERT_DATA is not set")
    return Path(folder)


def invent_documents(num_documents: int, seed: int) -> list[list[str]]:
    """Documents of a few sentences of common words; the same for the same seed."""
    rng = random.Random(seed)
    return [
        [
            " ".join(rng.choices(_WORDS.split(), k=rng.randint(3, 9))).capitalize() + "."
            for _ in range(rng.randint(2, 9))
        ]
        for _ in range(num_documents)
    ]


@pytest.fixture(scope="session")
def tiny_tokenizer() -> Tokenizer:
    """A WordPiece vocabulary of 100 pieces."""
    sentences = [sentence for document in invent_documents(100, seed=1) for sentence in document]
    return train_tokenizer(sentences, VocabularyOptions(kind="wordpiece", vocab_size=100))


@pytest.fixture(scope="session")
def tiny_corpus(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: Tokenizer) -> Path:
    """Some 300 invented documents, a tenth of them held out."""
    folder = tmp_path_factory.mktemp("tiny")
    text = "\n\n".join("\n".join(document) for document in invent_documents(300, seed=2))
    (folder / "text.txt").write_text(text, "utf-8")
    build_corpus([folder / "text.txt"], tiny_tokenizer, folder / "corpus", BuildOptions(valid_share=0.1, is_quiet=True))
    return folder / "corpus"


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: Tokenizer) -> Path:
    """A checkpoint of an untrained model of 2 layers, as if it were pre-trained."""
    path = tmp_path_factory.mktemp("tiny-checkpoint") / "checkpoint"
    save_checkpoint(path, build_model(TINY, ["mlm", "sentence"]), tiny_tokenizer, CheckpointContent(step=0))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium, driven by playwright; tests that need it skip where either is missing."""
    playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("there is no chromium on this machine")
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()
