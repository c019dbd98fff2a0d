"""The corpus on disk: token ids, word starts, sentence and document offsets, memory-mapped from shard files.

A corpus directory is written by data/build.py and described in docs/formats.md:

    manifest.json                     what is in it: counts, hashes, options, tokenizer; only ever written complete
    tokenizer/                        the tokenizer that made the ids
    shards/train-00000.safetensors    one split of one stretch of the input; documents never span shards

A shard file is a safetensors file, so that it can be opened without litebert. We map it ourselves, because the
library's numpy reader copies.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import LOCK_FILE, atomic_path, hash_file, write_json

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
SHARDS = "shards"
TOKENIZER = "tokenizer"

Split = Literal["train", "valid"]
SPLITS: tuple[Split, ...] = get_args(Split)

_DTYPES = {"I64": np.int64, "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8}
_DTYPE_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
_ALIGNMENT = 64  # the header is padded to it: int64 sections come first, so that every section lies aligned

assert sys.byteorder == "little", "shards are little-endian and mapped as they are"


class ShardContent(NamedTuple):
    """A shard in memory: D documents of S sentences of N tokens."""

    token_ids: npt.NDArray[Any]  # (N,) uint16 or uint32
    word_starts: npt.NDArray[np.bool_]  # (N,) True where a token begins a word
    sentence_offsets: npt.NDArray[np.int64]  # (S + 1,) token offset of each sentence
    document_offsets: npt.NDArray[np.int64]  # (D + 1,) sentence index of each document
    document_hashes: npt.NDArray[np.uint64]  # (D,) of the text: decides the split, finds duplicates


@dataclass(frozen=True)
class ShardRecord:
    """What the manifest says of one shard file."""

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
    """What a corpus must remember of the tokenizer that made its ids."""

    kind: str
    fingerprint: str
    words: str  # how words were found: the word starts depend on it, the ids do not
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
    counts: dict[str, int]  # what was dropped or mended on the way, by kind
    problems: list[str]  # the first of the bad inputs, with file and line
    shards: tuple[ShardRecord, ...]

    @property
    def fingerprint(self) -> str:
        """What tells the text of a corpus, held-out text too, from any other, wherever it lies."""
        return hashlib.sha256("".join(record.sha256 for record in self.shards).encode()).hexdigest()


class Shard:
    """One shard file, mapped when first looked at; pickles as its path, so that it travels to other processes."""

    def __init__(self, path: Path, record: ShardRecord) -> None:
        self.path = path
        self.record = record

    def __reduce__(self) -> tuple[type["Shard"], tuple[Path, ShardRecord]]:
        return Shard, (self.path, self.record)

    @cached_property
    def _sections(self) -> dict[str, npt.NDArray[Any]]:
        return map_sections(self.path)

    @property
    def token_ids(self) -> npt.NDArray[Any]:
        return self._sections["token_ids"]

    @property
    def word_starts(self) -> npt.NDArray[np.uint8]:
        """Packed bits, one a token, the first in the lowest bit."""
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
    """Open one split of a finished corpus; the shards are mapped, not read."""
    if split not in SPLITS:
        raise ConfigError(f"a corpus has no split '{split}'; valid: {', '.join(SPLITS)}")
    manifest = read_manifest(directory)
    records = [record for record in manifest.shards if record.split == split]
    check_shards(directory, records)
    shards = tuple(Shard(shard_path(directory, record.name), record) for record in records)
    return Corpus(directory, split, manifest, shards)


def read_manifest(directory: Path) -> Manifest:
    """What a finished corpus says of itself."""
    path = directory / MANIFEST
    if not path.is_file():
        is_begun = (directory / LOCK_FILE).exists()
        remedy = "run the same `litebert corpus build` again" if is_begun else "is the path right?"
        raise DataError(f"{directory} is not a finished corpus (it has no {MANIFEST}); {remedy}")
    try:
        return manifest_from_json(json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path} cannot be read ({error}); build the corpus again") from error


def manifest_from_json(value: dict[str, Any]) -> Manifest:
    if value["format_version"] != FORMAT_VERSION:
        raise ValueError(f"format version {value['format_version']}, this litebert reads {FORMAT_VERSION}")
    records = tuple(ShardRecord(**record) for record in value.pop("shards"))
    return Manifest(**value | {"tokenizer": TokenizerFacts(**value["tokenizer"]), "shards": records})


def write_manifest(path: Path, manifest: Manifest) -> None:
    write_json(path, asdict(manifest))


def shard_path(directory: Path, name: str) -> Path:
    return directory / SHARDS / name


def shard_name(split: Split, number: int) -> str:
    return f"{split}-{number:05d}.safetensors"


def check_shards(directory: Path, records: Iterable[ShardRecord]) -> None:
    """Refuse shard files that are missing or cut short, without reading them."""
    for record in records:
        if problem := find_damage(directory, record, is_thorough=False):
            raise DataError(f"{problem}; see `litebert corpus check {directory}`")


def find_damage(directory: Path, record: ShardRecord, *, is_thorough: bool) -> str | None:
    """What is wrong with a shard file, by its size and, if thorough, its hash; None if nothing is."""
    path = shard_path(directory, record.name)
    if not path.is_file():
        return f"{path} is missing"
    if (size := path.stat().st_size) != record.num_bytes:
        return f"{path} is damaged: it has {size:,} bytes, the manifest says {record.num_bytes:,}"
    if is_thorough and hash_file(path) != record.sha256:
        return f"{path} is damaged: its hash is not the manifest's"
    return None


def id_dtype(vocab_size: int) -> npt.DTypeLike:
    """The narrowest type that holds every id."""
    return np.uint16 if vocab_size <= 2**16 else np.uint32


def offsets(lengths: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where each of consecutive stretches begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def write_shard(path: Path, content: ShardContent, *, split: Split, unk_id: int) -> ShardRecord:
    """Write a shard file under a temporary name, rename it, and say what the manifest has to know of it."""
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
    """The arrays of a shard as they lie in its file: the widest first, so that each is aligned."""
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


def write_sections(path: Path, sections: dict[str, npt.NDArray[Any]], note: str = "") -> tuple[int, str]:
    """Write named arrays as a safetensors file with our own byte order of sections; gives its size and SHA-256.

    The same arrays always give the same bytes, which the library does not promise.
    """
    header: dict[str, Any] = {"__metadata__": {"litebert": note}} if note else {}
    position = 0
    for name, array in sections.items():
        header[name] = {
            "dtype": _DTYPE_NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [position, position + array.nbytes],
        }
        position += array.nbytes
    text = json.dumps(header, ensure_ascii=True, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % _ALIGNMENT)
    blocks: list[bytes | memoryview] = [len(text).to_bytes(8, "little"), text]
    blocks += [array.data for array in sections.values()]
    digest = hashlib.sha256()
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        for block in blocks:
            file.write(block)
            digest.update(block)
    return len(text) + 8 + position, digest.hexdigest()


def map_sections(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The named arrays of a file that write_sections wrote, memory-mapped."""
    whole = np.memmap(path, dtype=np.uint8, mode="r")
    start, header = _read_header(path, whole)
    header.pop("__metadata__", None)
    sections = {}
    for name, entry in header.items():
        first, end = entry["data_offsets"]
        sections[name] = whole[start + first : start + end].view(_DTYPES[entry["dtype"]])
    return sections


def read_note(path: Path) -> str:
    """The text that was written beside the arrays."""
    _, header = _read_header(path, np.memmap(path, dtype=np.uint8, mode="r"))
    note: str = header.get("__metadata__", {}).get("litebert", "")
    return note


def _read_header(path: Path, whole: npt.NDArray[np.uint8]) -> tuple[int, dict[str, Any]]:
    try:
        length = int.from_bytes(whole[:8].tobytes(), "little")
        return 8 + length, json.loads(whole[8 : 8 + length].tobytes())
    except ValueError as error:
        raise DataError(f"{path} is not a shard: its header cannot be read; see `litebert corpus check`") from error
