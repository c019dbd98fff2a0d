"""Files that rot or lie: seeded mutants of bytes and of JSON, and the one law that every reader must obey.

A reader may read a mutant as it read the original, refuse it by an exception of ours, or, where the format holds no
hash, give another legitimate result. It never raises anybody else's exception, and never changes in silence what a
hash protects. Hangs and deaths show as a test's time limit and as the end of its process.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from litebert.core.errors import LitebertError

_NUMBERS = (0, 1, -1, 5, 2**31, 2**63, -(2**63), 2**64, 10**30, 0.5, 1e308)
# as they stand in a file: what no writer writes, and what has stopped parsers, or reached a terminal
_RAW = (
    "[" * 100_000 + "]" * 100_000,
    '{"a":' * 3_000 + "1" + "}" * 3_000,
    "9" * 5_000,
    "1e999",
    "NaN",
    '"\\ud800"',
    '"a\\nb\\u001b[31m"',
)
_MARK = "where the raw text goes"
_EXTREMES: tuple[Any, ...] = (None, True, False, *_NUMBERS, "", "x", "../..", "\x00", [], [[]], {})


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """One of the things that happen to files: a bit flips, a stretch is lost, doubled, zeroed, or from elsewhere."""
    if not data:
        return rng.randbytes(rng.randint(1, 8))
    kind = rng.randrange(8)
    at = rng.randrange(len(data))
    stop = min(len(data), at + rng.choice((1, 2, 8, 64, 512)))
    if kind <= 1:
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    if kind == 2:
        return data[:at]  # cut short
    if kind == 3:
        return data[:at] + data[stop:]
    if kind == 4:
        return data[:stop] + data[at:]
    if kind == 5:
        return data[:at] + bytes(stop - at) + data[stop:]
    if kind == 6:
        return data[:at] + rng.randbytes(stop - at) + data[stop:]
    other = rng.randrange(len(data))
    piece = data[other : other + stop - at]
    return data[:at] + piece + data[at + len(piece) :]


def mutate_json(data: bytes, rng: random.Random) -> bytes:
    """The JSON with one value that is missing, renamed, of another kind, extreme, reversed, nested, or unwritable."""
    value = json.loads(data)
    places = list(_places(value))
    if not places:
        return rng.choice((b"[]", b"null", b"{", b"[" * 100_000))
    container, key = rng.choice(places)
    kind = rng.randrange(7)
    if kind == 6:
        container[key] = _MARK
        return json.dumps(value).replace(json.dumps(_MARK), rng.choice(_RAW)).encode()
    if kind == 0 and isinstance(container, dict):
        del container[key]
    elif kind == 1 and isinstance(container, dict):
        container[f"{key}x"] = container.pop(key)
    elif kind == 2 and isinstance(container[key], list):
        container[key].reverse()
    elif kind == 3:
        container[key] = json.loads("[" * 500 + "]" * 500)
    elif kind == 4 and isinstance(container[key], int):
        container[key] += rng.choice((-1, 1))
    else:
        container[key] = rng.choice(_EXTREMES)
    return json.dumps(value).encode()


def iter_mutants(data: bytes, *, seed: int, count: int, is_json: bool = False) -> Iterator[bytes]:
    """So many mutants of a file's content, the same for the same seed; half of JSON's are still JSON."""
    for number in range(count):
        rng = random.Random(seed * 1_000_003 + number)
        mutate = mutate_json if is_json and rng.random() < 0.5 else mutate_bytes
        yield mutate(data, rng)


def mutate_text(data: bytes, rng: random.Random) -> bytes:
    """The text with one word or number replaced: by an extreme, by another one of it, or by a mark of its format."""
    words = list(re.finditer(rb"[\w.+-]+", data))
    if not words:
        return mutate_bytes(data, rng)
    word, other = rng.choice(words), rng.choice(words)[0]
    extreme = rng.choice((str(rng.choice(_EXTREMES)), rng.choice(_RAW))).encode()
    mark = rng.choice((b'"', b"'", b"\t", b",", b"\n", b"\r", b"\0", b"\xff", b"{", b"]", b"=", b"\xe2\x80\xa8"))
    return data[: word.start()] + rng.choice((extreme, other, mark)) + data[word.end() :]


def mutate_header(data: bytes, rng: random.Random) -> bytes:
    """A safetensors file whose JSON header is another one, with a length that fits."""
    length = int.from_bytes(data[:8], "little")
    header = mutate_json(data[8 : 8 + length], rng)
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


def mutate_for(file: Path, data: bytes, seed: int, number: int) -> bytes:
    """Mutant `number` of a file's content, by what its name says of its format; half of them change bytes at random."""
    rng = random.Random(f"{seed} {file.name} {number}")
    if rng.random() < 0.5:
        return mutate_bytes(data, rng)
    if file.suffix == ".json":
        return mutate_json(data, rng)
    if data[8:10] == b'{"':
        return mutate_header(data, rng)
    return mutate_text(data, rng) if b"\0" not in data else mutate_bytes(data, rng)


def read_mutants(
    file: Path, read: Callable[[], object], *, seed: int, count: int, is_json: bool = False
) -> dict[str, list[int]]:
    """Put each mutant in the place of a file and read it; the numbers of those read `alike`, `refused` and `otherwise`.

    `read` gives something to compare by equality. Another exception than ours comes through, with the mutant's number.
    """
    original = file.read_bytes()
    expected = read()
    found: dict[str, list[int]] = {"alike": [], "refused": [], "otherwise": []}
    try:
        for number, mutant in enumerate(iter_mutants(original, seed=seed, count=count, is_json=is_json)):
            file.write_bytes(mutant)
            try:
                outcome = "alike" if read() == expected else "otherwise"
            except LitebertError:
                outcome = "refused"
            except BaseException as error:
                error.add_note(f"mutant {number} of {file}, seed {seed}")
                raise
            found[outcome].append(number)
    finally:
        file.write_bytes(original)
    return found


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in nested JSON, as a container and a key or index of it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield value, key
            yield from _places(item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield value, index
            yield from _places(item)
