"""The corpus on disk: token ids, word starts, sentence and document offsets, memory-mapped from shard files.

A corpus directory is written by corpus/build.py and described in docs/formats.md:

    manifest.json                     its contents: counts, hashes, options, tokenizer; only ever written complete
    tokenizer/                        the tokenizer that made the ids
    shards/train-00000.safetensors    one split of one stretch of the input; documents never span shards

A shard is mapped as it is on disk (corpus/sections.py), and compiled loops follow its offsets. Its hash is therefore
compared once for each state of the file, and its counts and offsets are checked whenever it is mapped.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import LOCK_FILE, hash_file
from litebert.core.progress import ProgressBar
from litebert.core.sealed import build_record, read_sealed, write_sealed
from litebert.core.verified import describe_state, is_verified, remember_verified
from litebert.corpus.sections import map_sections, write_sections

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
SHARDS = "shards"
TOKENIZER = "tokenizer"

Split = Literal["train", "valid"]
SPLITS: tuple[Split, ...] = get_args(Split)

_SECTION_KINDS: dict[str, Any] = {
    "document_hashes": np.dtype(np.uint64),
    "document_offsets": np.dtype(np.int64),
    "sentence_offsets": np.dtype(np.int64),
    "word_starts": np.dtype(np.uint8),
}
_SHARD_NAME = re.compile(r"(train|valid)-\d{5,}\.safetensors")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class ShardContent(NamedTuple):
    """A shard in memory: D documents of S sentences of N tokens."""

    token_ids: npt.NDArray[Any]  # (N,) uint16 or uint32
    word_starts: npt.NDArray[np.bool_]  # (N,) True where a token begins a word
    sentence_offsets: npt.NDArray[np.int64]  # (S + 1,) token offset of each sentence
    document_offsets: npt.NDArray[np.int64]  # (D + 1,) sentence index of each document
    document_hashes: npt.NDArray[np.uint64]  # (D,) of the text: decides the split, finds duplicates


@dataclass(frozen=True)
class ShardRecord:
    """The manifest's record of one shard file."""

    name: str
    split: Split
    num_documents: int
    num_sentences: int
    num_tokens: int
    num_unknown: int
    num_bytes: int
    sha256: str


@dataclass(frozen=True)
class TokenizerFacts:
    """The facts about its tokenizer that a corpus records."""

    kind: str
    fingerprint: str
    words: str  # how words were found: word starts depend on it, ids do not
    vocab_size: int
    unk_id: int


@dataclass(frozen=True)
class Manifest:
    """The content of manifest.json."""

    format_version: int
    tokenizer: TokenizerFacts
    options: dict[str, Any]
    num_sources: int
    text_bytes: int
    counts: dict[str, int]  # what was dropped or repaired, by kind
    problems: list[str]  # the first of the bad inputs, with file and line
    shards: tuple[ShardRecord, ...]

    @property
    def fingerprint(self) -> str:
        """Identifies the text of a corpus, including its validation split, wherever it is stored."""
        return hashlib.sha256("".join(record.sha256 for record in self.shards).encode()).hexdigest()


class Shard:
    """One shard file, mapped when first read; pickled as its path, so that it can be sent to other processes."""

    def __init__(self, path: Path, record: ShardRecord) -> None:
        self.path = path
        self.record = record

    def __reduce__(self) -> tuple[type["Shard"], tuple[Path, ShardRecord]]:
        return Shard, (self.path, self.record)

    @cached_property
    def _sections(self) -> dict[str, npt.NDArray[Any]]:
        sections = map_sections(self.path)
        check_sections(self.path, sections, self.record)
        return sections

    @property
    def token_ids(self) -> npt.NDArray[Any]:
        return self._sections["token_ids"]

    @property
    def word_starts(self) -> npt.NDArray[np.uint8]:
        """Packed bits, one per token, the first in the lowest bit."""
        return self._sections["word_starts"]

    @property
    def sentence_offsets(self) -> npt.NDArray[np.int64]:
        return self._sections["sentence_offsets"]

    @property
    def document_offsets(self) -> npt.NDArray[np.int64]:
        return self._sections["document_offsets"]

    @property
    def document_hashes(self) -> npt.NDArray[np.uint64]:
        return self._sections["document_hashes"]

    @property
    def num_documents(self) -> int:
        return self.record.num_documents

    @property
    def num_sentences(self) -> int:
        return self.record.num_sentences

    @property
    def num_tokens(self) -> int:
        return self.record.num_tokens

    def sentences(self, document: int) -> list[npt.NDArray[Any]]:
        """The token ids of each sentence of one document."""
        first, end = self.document_offsets[document : document + 2]
        bounds = self.sentence_offsets[first : end + 1]
        return [self.token_ids[a:b] for a, b in pairwise(bounds)]

    def content(self) -> ShardContent:
        """The whole shard, word starts unpacked."""
        return content_from_sections(self._sections)


@dataclass(frozen=True)
class Corpus:
    """One split of a corpus, opened for reading."""

    path: Path
    split: Split
    manifest: Manifest
    shards: tuple[Shard, ...]

    @property
    def tokenizer_path(self) -> Path:
        return self.path / TOKENIZER

    @property
    def tokenizer_fingerprint(self) -> str:
        return self.manifest.tokenizer.fingerprint

    @property
    def vocab_size(self) -> int:
        return self.manifest.tokenizer.vocab_size

    @property
    def num_documents(self) -> int:
        return sum(shard.num_documents for shard in self.shards)

    @property
    def num_sentences(self) -> int:
        return sum(shard.num_sentences for shard in self.shards)

    @property
    def num_tokens(self) -> int:
        return sum(shard.num_tokens for shard in self.shards)


def open_corpus(directory: Path, split: Split = "train") -> Corpus:
    """Open one split of a finished corpus; shards that changed since they were last verified are verified now."""
    if split not in SPLITS:
        raise ConfigError("unknown-split", f"a corpus has no split '{split}'; valid: {', '.join(SPLITS)}")
    manifest = read_manifest(directory)
    records = [record for record in manifest.shards if record.split == split]
    check_shards(directory, records, manifest.tokenizer.vocab_size)
    shards = tuple(Shard(shard_path(directory, record.name), record) for record in records)
    return Corpus(directory, split, manifest, shards)


def read_manifest(directory: Path) -> Manifest:
    """The manifest of a finished corpus."""
    path = directory / MANIFEST
    if not path.is_file():
        is_begun = (directory / LOCK_FILE).exists()
        fix = "run the same `litebert corpus build` again" if is_begun else "is the path right?"
        raise DataError("not-a-corpus", f"{directory} is not a finished corpus (it has no {MANIFEST}); {fix}")
    fix = "restore it, or build the corpus again"
    value = read_sealed(path, fix=fix)
    if value.get("format_version") != FORMAT_VERSION:
        stated = repr(value.get("format_version"))[:20]
        raise DataError(
            "format-version", f"{path} has format version {stated}, but this litebert reads {FORMAT_VERSION}"
        )
    manifest = build_record(Manifest, value, where=str(path), fix=fix)
    check_manifest(manifest, where=str(path))
    return manifest


def check_manifest(manifest: Manifest, *, where: str) -> None:
    """Fail for a manifest whose values have the right types, but cannot be those of a corpus."""
    names = [record.name for record in manifest.shards]
    wrong = [
        *(f"shards: {name[:40]!r}" for name in names if not _SHARD_NAME.fullmatch(name)),
        *(["shards: a name is there twice"] if len(set(names)) < len(names) else []),
        *(f"{r.name}: sha256" for r in manifest.shards if not _SHA256.fullmatch(r.sha256)),
        *(
            f"{record.name}: {key}"
            for record in manifest.shards
            for key, value in vars(record).items()
            if isinstance(value, int) and value < 0
        ),
        *(key for key in ("num_sources", "text_bytes") if getattr(manifest, key) < 0),
        *(f"counts.{key[:40]}" for key, value in manifest.counts.items() if value < 0),
    ]
    if not 0 <= manifest.tokenizer.unk_id < manifest.tokenizer.vocab_size <= 2**32:
        wrong.append("tokenizer.vocab_size")
    if wrong:
        raise DataError(
            "corrupt-manifest", f"{where} is corrupt: {wrong[0]} cannot be right; restore it, or build the corpus again"
        )


def write_manifest(path: Path, manifest: Manifest) -> None:
    write_sealed(path, asdict(manifest))


def shard_path(directory: Path, name: str) -> Path:
    return directory / SHARDS / name


def shard_name(split: Split, number: int) -> str:
    return f"{split}-{number:05d}.safetensors"


def check_shards(directory: Path, records: Sequence[ShardRecord], vocab_size: int) -> None:
    """Fail if a shard file differs from what was written. Files verified before and unchanged since are not read."""
    for record in records:
        if problem := find_missing(directory, record):
            raise DataError("corrupt-shard", f"{problem}; see `litebert verify {directory}`")
    states = {
        record: describe_state(shard_path(directory, record.name), f"shard of {vocab_size} pieces {record}")
        for record in records
    }
    new = [record for record, state in states.items() if not is_verified(state)]
    is_quiet = os.environ.get("RANK", "0") != "0"
    total, position = sum(record.num_bytes for record in new), 0
    with ProgressBar("verifying the corpus", total=total, is_quiet=is_quiet) as progress:
        for record in new:
            if problem := find_damage(directory, record, vocab_size):
                raise DataError("corrupt-shard", f"{problem}; see `litebert verify {directory}`")
            remember_verified(states[record])
            position += record.num_bytes
            progress.move_to(position)


def find_missing(directory: Path, record: ShardRecord) -> str | None:
    """The problem with a shard file that is visible without reading it; None if there is none."""
    path = shard_path(directory, record.name)
    if not path.is_file():
        return f"{path} is missing"
    if (size := path.stat().st_size) != record.num_bytes:
        return f"{path} is corrupt: it has {size:,} bytes, the manifest says {record.num_bytes:,}"
    return None


def find_damage(directory: Path, record: ShardRecord, vocab_size: int) -> str | None:
    """The problem with a shard file after reading all of it; None if there is none."""
    if problem := find_missing(directory, record):
        return problem
    path = shard_path(directory, record.name)
    if hash_file(path) != record.sha256:
        return f"{path} is corrupt: its hash is not the manifest's"
    try:
        token_ids = Shard(path, record).token_ids
    except DataError as error:
        return str(error)
    # a corpus from elsewhere may have matching hashes and wrong ids
    if len(token_ids) and int(token_ids.max()) >= vocab_size:
        return f"{path} is corrupt: it has the id {int(token_ids.max())}, and the vocabulary ends at {vocab_size - 1}"
    return None


def check_sections(path: Path, sections: dict[str, npt.NDArray[Any]], record: ShardRecord) -> None:
    """Fail if arrays do not have a shard's recorded counts, or if their offsets would make a loop read elsewhere."""
    problem = find_misfit(sections)
    if problem is None:
        sizes = {
            "document_offsets": record.num_documents + 1,
            "sentence_offsets": record.num_sentences + 1,
            "token_ids": record.num_tokens,
        }
        wrong = [name for name, size in sizes.items() if len(sections[name]) != size]
        problem = f'"{wrong[0]}" is not as long as the manifest says' if wrong else None
    if problem is not None:
        raise DataError("corrupt-shard", f"{path} is corrupt: {problem}; restore it, or build the corpus again")


def find_misfit(sections: dict[str, npt.NDArray[Any]]) -> str | None:
    """Why arrays are not those of a shard; None if they are: documents of sentences of tokens, none of them empty."""
    kinds = {name: array.dtype for name, array in sections.items()}
    if kinds.pop("token_ids", None) not in (np.uint16, np.uint32) or kinds != _SECTION_KINDS:
        return "its arrays are not those of a shard"
    num_tokens = len(sections["token_ids"])
    if len(sections["word_starts"]) != -(-num_tokens // 8):
        return '"word_starts" does not have one bit per token'
    if len(sections["document_hashes"]) != len(sections["document_offsets"]) - 1:
        return '"document_hashes" does not have one number per document'
    num_sentences = len(sections["sentence_offsets"]) - 1
    for name, end in (("sentence_offsets", num_tokens), ("document_offsets", num_sentences)):
        bounds = sections[name]
        if not len(bounds) or bounds[0] != 0 or bounds[-1] != end or not (bounds[1:] > bounds[:-1]).all():
            return f'"{name}" does not rise from 0 to {end:,}'
    return None


def id_dtype(vocab_size: int) -> npt.DTypeLike:
    """The narrowest type that holds every id."""
    return np.uint16 if vocab_size <= 2**16 else np.uint32


def offsets(lengths: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where each of consecutive runs of these lengths begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def write_shard(path: Path, content: ShardContent, *, split: Split, unk_id: int) -> ShardRecord:
    """Write a shard file under a temporary name and rename it; returns its record for the manifest."""
    num_bytes, sha256 = write_sections(path, sections_of(content))
    return ShardRecord(
        name=path.name,
        split=split,
        num_documents=len(content.document_offsets) - 1,
        num_sentences=len(content.sentence_offsets) - 1,
        num_tokens=len(content.token_ids),
        num_unknown=int(np.count_nonzero(content.token_ids == unk_id)),
        num_bytes=num_bytes,
        sha256=sha256,
    )


def sections_of(content: ShardContent) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a shard in the order of its file: the widest first, so that each is aligned."""
    return {
        "document_hashes": content.document_hashes,
        "document_offsets": content.document_offsets,
        "sentence_offsets": content.sentence_offsets,
        "token_ids": content.token_ids,
        "word_starts": np.packbits(content.word_starts, bitorder="little"),
    }


def content_from_sections(sections: dict[str, npt.NDArray[Any]]) -> ShardContent:
    bits = np.unpackbits(sections["word_starts"], count=len(sections["token_ids"]), bitorder="little")
    return ShardContent(**sections | {"word_starts": bits.view(np.bool_)})
