"""A teacher's vectors of a corpus: computed once, and kept in shards from which any student learns.

vectors-00000.safetensors    float16 vectors of 4,096 passages, with a checksum and the hash of what they are of

A shard is complete or does not exist. One that belongs to other texts or another teacher is computed again.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from litebert.core.files import make_directories
from litebert.corpus.sections import read_noted_sections, write_sections
from litebert.inference.predictor import Predictor

SHARD = 4096  # passages
_SECTION = "vectors"


def name_teacher(teacher: Predictor) -> str:
    """Identifies the vectors of a teacher: its weights, its tokenizer, and how it pools."""
    facts = (teacher.checkpoint.fingerprint, teacher.tokenizer.fingerprint, str(teacher.checkpoint.embedding_spec))
    return hashlib.sha256(" ".join(facts).encode()).hexdigest()[:16]


def embed_passages(
    teacher: Predictor, texts: Sequence[str], folder: Path, report: Callable[[int], object] = lambda _: None
) -> NDArray[np.float16]:
    """The vectors (N, H) of the texts, of length one; shards that exist are read, the others computed and written.

    `report` is called with the number of texts that are done.
    """
    make_directories(folder)
    key, parts = name_teacher(teacher), []
    for number, shard in enumerate(_cut(texts)):
        path = folder / f"vectors-{number:05d}.safetensors"
        digest = hashlib.sha256("\0".join([key, *shard]).encode("utf-8", "surrogatepass")).hexdigest()
        vectors = _read(path, digest, len(shard))
        if vectors is None:
            vectors = teacher.embed(shard, normalize=True, report_cut=lambda _: None).astype(np.float16)
            write_sections(path, {_SECTION: vectors.view(np.uint16).ravel()}, note=digest)
        parts.append(vectors)
        report(number * SHARD + len(shard))
    return np.concatenate(parts)


def _cut(texts: Sequence[str]) -> list[Sequence[str]]:
    return [texts[start : start + SHARD] for start in range(0, len(texts), SHARD)]


def _read(path: Path, digest: str, count: int) -> NDArray[np.float16] | None:
    """A shard's vectors (count, H); None if it does not exist or has other vectors."""
    if not path.is_file():
        return None
    note, sections = read_noted_sections(path)
    return sections[_SECTION].view(np.float16).reshape(count, -1) if note == digest else None


def fit_projection(vectors: NDArray[np.float16], size: int) -> tuple[NDArray[np.float32], float]:
    """A map (H, size) to shorter vectors that keeps products of vectors best, and the share of their length it keeps.

    Its columns are the directions in which the vectors are longest: their principal components, without centring.
    """
    known = vectors.astype(np.float64)
    values, directions = np.linalg.eigh(known.T @ known)  # in ascending order
    chosen = directions[:, ::-1][:, :size]
    signs = np.sign(chosen[np.abs(chosen).argmax(0), np.arange(size)])  # an eigenvector has no sign of its own
    return (chosen * signs).astype(np.float32), float(values[::-1][:size].sum() / values.sum())
