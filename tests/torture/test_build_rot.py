"""What an interrupted build left behind is verified before it enters the corpus."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from mutants import iter_mutants
from refusals import refuses

from litebert.core.errors import DataError, LitebertError
from litebert.corpus.build import BuildOptions, build_corpus
from litebert.corpus.chunks import Limits
from litebert.corpus.documents import ReadOptions
from litebert.text.tokenizer import Tokenizer

LIMITS = Limits(chunk=2000, shard=6000, line=4000, whole_file=4000)
OPTIONS = BuildOptions(read=ReadOptions(format="lines", limits=LIMITS), valid_share=0.2, is_quiet=True)
SKIPPING = replace(OPTIONS, read=replace(OPTIONS.read, on_error="skip"))
TEXT = "".join(f"a small cat near the house {n}.\nit follows the bird {n}.\n\n" for n in range(320)).encode()


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: Tokenizer) -> Path:
    """A folder with a text, a corpus whose building stopped at bad input, and the corpus as it should become."""
    folder = tmp_path_factory.mktemp("stopped")
    (folder / "text.txt").write_bytes(TEXT + b"the \xff dog.\n\n")
    with refuses(DataError, "bad-text"):
        build_corpus([folder / "text.txt"], tiny_tokenizer, folder / "corpus", OPTIONS)
    build_corpus([folder / "text.txt"], tiny_tokenizer, folder / "whole", SKIPPING)
    return folder


def files_of(corpus: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (corpus / "manifest.json", *(corpus / "shards").iterdir())}


@pytest.mark.parametrize("name", ["part", "progress.json", "plan.json", "shard"])
def test_no_mutant_of_an_interrupted_build_enters_the_corpus(
    name: str, stopped: Path, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    patterns = {"part": "unfinished/part-*.safetensors", "shard": "shards/*.safetensors"}
    file = sorted((stopped / "corpus").glob(patterns.get(name, f"unfinished/{name}")))[-1]
    mutants = iter_mutants(file.read_bytes(), seed=3, count=8, is_json=file.suffix == ".json")
    for number, mutant in enumerate(mutants):
        corpus = Path(shutil.copytree(stopped / "corpus", tmp_path / f"corpus-{number}"))
        (corpus / file.relative_to(stopped / "corpus")).write_bytes(mutant)
        try:
            build_corpus([stopped / "text.txt"], tiny_tokenizer, corpus, SKIPPING)
        except LitebertError:
            assert name != "part", "a part is encoded again"
        else:
            assert files_of(corpus) == files_of(stopped / "whole"), number
