"""Input text: files, folders, globs and standard input, decompressed while they are read.

A source is identified by the hash of its bytes, not by its name: a folder that was moved is not built twice, and a file
that changed is noticed. How a file is packed is detected from its first bytes, not from its name.
"""

import glob
import gzip
import json
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import zstandard

from litebert.core.errors import ConfigError, DataError, in_one_line
from litebert.core.files import hash_file

Packing = Literal["plain", "gzip", "zstd", "parquet", "parquet in gzip", "parquet in zstd"]
_MAGIC: dict[bytes, Packing] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PAR1": "parquet"}
_SUFFIXES: dict[str, Packing] = {".gz": "gzip", ".zst": "zstd", ".parquet": "parquet"}

STDIN = "-"
_SPOOLED = {
    "standard input": re.compile(r"litebert-stdin-[0-9a-f]{16}"),
    "the given texts": re.compile(r"litebert-texts-[0-9a-f]{16}"),
}
_BLOCK_BYTES = 1 << 20
# A zstd block of 4 bytes can unpack to 128 KB: fed in slices of this size, the output of one step stays under 64 MB
_ZSTD_SLICE_BYTES = 2048
_PARQUET_ROWS = 256


class TruncatedError(Exception):
    """A compressed file that is cut off or corrupt."""


@dataclass(frozen=True, slots=True)
class Source:
    """One input file as it was when it was planned."""

    path: Path
    num_bytes: int
    modified_ns: int
    sha256: str
    packing: Packing
    format: str
    field: str  # of a record, the field with its text

    @property
    def name(self) -> str:
        """Its name in messages."""
        return name_of(self.path)


class Block(NamedTuple):
    """Some text of a source, and the position in the file on disk up to which it was read (for progress)."""

    data: bytes
    raw_position: int


def name_of(path: Path) -> str:
    """The name in messages of a file, which may have been spooled from standard input or Python."""
    return next((name for name, spooled in _SPOOLED.items() if spooled.fullmatch(path.name)), str(path))


def find_files(patterns: Sequence[str], *, except_in: Path | None = None) -> list[Path]:
    """The files that paths, folders and globs refer to, each once, in order; no hidden ones, none in `except_in`."""
    found: dict[Path, None] = {}
    for pattern in patterns:
        for path in _expand(pattern):
            resolved = path.resolve()
            try:
                str(resolved).encode()  # a corpus stores names as text
            except UnicodeEncodeError:
                shown = str(resolved).encode("utf-8", "backslashreplace").decode()
                raise ConfigError("bad-name", f"{shown}: the name of this file is not UTF-8; rename it") from None
            if except_in is None or not resolved.is_relative_to(except_in.resolve()):
                found.setdefault(resolved)
    if not found:
        raise DataError("no-file", f"no file found in {', '.join(patterns)}")
    return list(found)


def _expand(pattern: str) -> list[Path]:
    if not pattern.strip():
        raise ConfigError("no-file", "an empty path names no file; use . for the whole current folder")
    path = Path(pattern)
    if path.is_file():
        return [path]
    if path.is_dir():
        inside = (file for file in sorted(path.rglob("*")) if file.is_file())
        return [file for file in inside if not any(part.startswith(".") for part in file.relative_to(path).parts)]
    if path.exists():
        raise ConfigError(
            "not-a-file", f"{pattern} is a pipe or device, which cannot be read twice; use - for standard input"
        )
    if path.is_symlink():
        raise ConfigError("not-a-file", f"{pattern} is a broken link; fix it, or leave it out")
    # Path.glob takes no absolute patterns
    matches = [Path(match) for match in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207
    files = [file for match in matches for file in _expand(str(match))]
    if not files:
        raise ConfigError("no-file", f"'{pattern}' is not a file or a folder with files, and matches nothing")
    return files


def spool_stdin(folder: Path) -> Path:
    """Copy standard input to a compressed file, so that it can be hashed, detected and read again after a kill."""
    folder = folder.resolve()  # the plan stores this path, and the next call may come from another working directory
    folder.mkdir(parents=True, exist_ok=True)
    start = sys.stdin.buffer.read(4)
    with tempfile.NamedTemporaryFile(prefix=".stdin.", dir=folder, delete=False) as file:
        temporary = Path(file.name)
        if _packing_of(start) == "plain":
            with zstandard.ZstdCompressor(level=1).stream_writer(file, closefd=False) as packed:
                packed.write(start)
                shutil.copyfileobj(sys.stdin.buffer, packed, _BLOCK_BYTES)
        else:
            file.write(start)
            shutil.copyfileobj(sys.stdin.buffer, file, _BLOCK_BYTES)
    return temporary.rename(folder / f"litebert-stdin-{hash_file(temporary)[:16]}")


def spool_texts(texts: Iterable[str], folder: Path) -> Path:
    """Texts from Python as a file of one JSON object per text, so that they are read as any other file is."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix=".texts.", dir=folder, delete=False) as file:
        for text in texts:
            file.write(json.dumps({"text": text}) + "\n")  # in ASCII: a lone surrogate is reported where it is read
    return Path(file.name).rename(folder / f"litebert-texts-{hash_file(Path(file.name))[:16]}")


def detect_packing(path: Path) -> Packing:
    """How a file is compressed or stored."""
    with path.open("rb") as file:
        start = file.read(4)
    packing = _packing_of(start)
    named = _SUFFIXES.get(path.suffix.lower())
    is_cut_off = bool(start) and any(m.startswith(start) for m, kind in _MAGIC.items() if kind == named)
    if packing == "plain" and named and is_cut_off:
        packing = named  # cut off inside its first bytes: not text, but a truncated file
    if packing in ("gzip", "zstd") and _packing_of(read_head(path, packing, num_bytes=4)) == "parquet":
        return "parquet in gzip" if packing == "gzip" else "parquet in zstd"
    return packing


def _packing_of(start: bytes) -> Packing:
    return next((packing for magic, packing in _MAGIC.items() if start.startswith(magic)), "plain")


def iter_blocks(path: Path, packing: Packing, *, start: int = 0, field: str = "text") -> Iterator[Block]:
    """The text of a file in bounded blocks, from byte `start` of the unpacked text on.

    A plain file is read from there; a packed one is unpacked from its beginning and the text before is skipped.
    """
    if packing == "parquet":
        yield from _skip(_parquet_blocks(path, field), start)
        return
    if packing in ("parquet in gzip", "parquet in zstd"):
        # a table is read from its end, which a stream does not have: unpack it to disk first
        with tempfile.NamedTemporaryFile(prefix="litebert-parquet-") as unpacked:
            for block in iter_blocks(path, "gzip" if packing == "parquet in gzip" else "zstd"):
                unpacked.write(block.data)
            unpacked.flush()
            yield from _skip(_parquet_blocks(path, field, unpacked=Path(unpacked.name)), start)
        return
    with path.open("rb") as file:
        if packing == "plain":
            file.seek(start)
            start = 0
            blocks = _plain_blocks(file)
        else:
            blocks = _gzip_blocks(file) if packing == "gzip" else _zstd_blocks(file)
        yield from _skip(blocks, start)


def read_head(path: Path, packing: Packing, *, num_bytes: int, field: str = "text") -> bytes:
    """The first bytes of a file's text, as far as it can be read."""
    head = b""
    try:
        for block in iter_blocks(path, packing, field=field):
            head += block.data
            if len(head) >= num_bytes:
                break
    except TruncatedError:
        pass  # reported with its line when the file is read for good
    return head[:num_bytes]


def _skip(blocks: Iterator[Block], num_bytes: int) -> Iterator[Block]:
    for data, position in blocks:
        if num_bytes < len(data):
            yield Block(data[num_bytes:], position)
        num_bytes = max(0, num_bytes - len(data))


def _plain_blocks(file: IO[bytes]) -> Iterator[Block]:
    while data := file.read(_BLOCK_BYTES):
        yield Block(data, file.tell())


def _gzip_blocks(file: IO[bytes]) -> Iterator[Block]:
    pieces: list[bytes] = []
    with gzip.GzipFile(fileobj=file) as unpacked:
        try:
            while piece := unpacked.read1(_BLOCK_BYTES):  # read() would lose what precedes a break
                pieces.append(piece)
                if sum(map(len, pieces)) >= _BLOCK_BYTES:
                    yield Block(b"".join(pieces), file.tell())
                    pieces = []
        except (EOFError, OSError, zlib.error) as error:
            yield Block(b"".join(pieces), file.tell())
            raise TruncatedError(f"the gzip stream breaks off ({error})") from error
    yield Block(b"".join(pieces), file.tell())


def _zstd_blocks(file: IO[bytes]) -> Iterator[Block]:
    # The library's stream reader takes a truncated file for a short one: this loop sees the end of each frame.
    decoder = zstandard.ZstdDecompressor()
    frame = None
    pieces: list[bytes] = []
    num_bytes = 0
    while data := file.read(_ZSTD_SLICE_BYTES):
        while data:
            frame = frame or decoder.decompressobj()
            try:
                pieces.append(frame.decompress(data))
            except zstandard.ZstdError as error:
                yield Block(b"".join(pieces), file.tell())
                raise TruncatedError(f"the zstd stream breaks off ({error})") from error
            num_bytes += len(pieces[-1])
            data = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
        if num_bytes >= _BLOCK_BYTES:
            yield Block(b"".join(pieces), file.tell())
            pieces, num_bytes = [], 0
    if pieces:
        yield Block(b"".join(pieces), file.tell())
    if frame is not None:
        raise TruncatedError("the zstd stream breaks off (the file ends inside a frame)")


def _parquet_blocks(path: Path, field: str, *, unpacked: Path | None = None) -> Iterator[Block]:
    """The rows of a Parquet file as JSON lines, so that only one table format has to be parsed."""
    parquet = _import_parquet(path)
    try:
        with parquet.ParquetFile(unpacked or path) as table:
            names = table.schema_arrow.names
            if field not in names:
                raise ConfigError(
                    "unknown-field",
                    f"{path} has no column '{field}'; choose a column among: {', '.join(names)}",
                    option="field",
                )
            position, step = 0, path.stat().st_size / max(1, table.metadata.num_rows)
            for batch in table.iter_batches(batch_size=_PARQUET_ROWS, columns=[field]):
                column = batch.column(0)
                column.validate(full=not str(column.type).endswith("string"))  # text is checked row by row
                if str(column.type).endswith("string"):
                    column = column.cast(f"{'large_' if str(column.type).startswith('large') else ''}binary")
                values = column.to_pylist()
                rows = [json.dumps({field: value}, ensure_ascii=False, default=_as_text) for value in values]
                position += len(rows)
                yield Block("".join(f"{row}\n" for row in rows).encode("utf-8", "surrogatepass"), int(position * step))
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        raise TruncatedError(f"the Parquet file breaks off ({in_one_line(error)})") from error


def _as_text(value: Any) -> str:
    """A value that JSON does not have; bytes are taken for UTF-8 text."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _import_parquet(path: Path) -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigError(
            "missing-package", f"{path} is a Parquet file, which needs pyarrow: pip install 'litebert[parquet]'"
        ) from error
    return pyarrow.parquet
