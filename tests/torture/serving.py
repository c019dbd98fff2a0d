"""The server under attack, and at saturation: `python -m tests.torture.serving attacks` and `... saturation`.

docs/serving.md has the last figures. Attacks that the ledger lists are not tried again.

A real `litebert serve` of its own process, on 127.0.0.1 only, with an untrained head for every function on the shipped
model. While each attack runs, a polite client asks on: what counts is how long it had to wait, how much memory the
server took, and whether every refusal has the documented form. At saturation every answer is compared with the one
that the same server gave when it was idle.
"""

import argparse
import asyncio
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.interop.opening import load_checkpoint
from litebert.model.model import build_model
from litebert.tasks.catalog import task_facts
from litebert.tasks.kinds.choices import Choices
from litebert.tasks.kinds.classification import Classification
from litebert.tasks.kinds.token_tags import TokenTags
from litebert.tasks.squad.task import SpanTask
from tests.torture.ledger import Ledger, read_records, summarize

SHIPPED = Path(__file__).parents[2] / "models" / "cpu-small-en"
TASKS: dict[str, Any] = {
    "labels": Classification("classification", ("bird", "cat", "dog")),
    "names": TokenTags("tags", ("O", "B-PER", "I-PER")),
    "spans": SpanTask("squad-v1"),
    "choices": Choices("choice"),
}
TEXT = (  # noqa: SIM905  # it is to be read
    "the river runs past an old house where a small dog sleeps and nobody has seen the cat since the bridge was built "
    "in the year of the great flood that took the mill and left the church standing alone on its hill"
).split()
MAX_FILES = 1024  # that the server may open: the usual limit


# The server, and clients for it.


@dataclass
class Server:
    """A running server, what the system says of it, and its log."""

    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    @property
    def megabytes(self) -> float:
        return float(psutil.Process(self.process.pid).memory_info().rss) / 1e6

    @property
    def num_files(self) -> int:
        return int(psutil.Process(self.process.pid).num_fds())

    @property
    def num_threads(self) -> int:
        return int(psutil.Process(self.process.pid).num_threads())

    @property
    def processor_seconds(self) -> float:
        used = psutil.Process(self.process.pid).cpu_times()
        return float(used.user + used.system)

    def count_lines(self) -> int:
        return self.log.read_bytes().count(b"\n")


def write_models(folder: Path) -> list[str]:
    """The shipped model, and one with an untrained head for each task, as `litebert serve` takes them."""
    shipped = load_checkpoint(SHIPPED)
    for name, task in TASKS.items():
        if not (folder / name).exists():
            facts = task_facts(task, max_length=shipped.config.max_positions)
            model = build_model(shipped.config, task.heads, seed=len(name))
            save_checkpoint(folder / name, model, shipped.load_tokenizer(), CheckpointContent(step=1, task=facts))
    return [f"words={SHIPPED}", *(f"{name}={folder / name}" for name in TASKS)]


@contextmanager
def start_server(folder: Path, *options: str) -> Iterator[Server]:
    """A server of all models; on leaving it is told to stop, and must do so in order."""
    models, log = write_models(folder), folder / "server.log"
    command = [sys.executable, "-m", "litebert", "serve", *models, "--port", "0", "--threads", "1", *options]
    limits = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (MAX_FILES, MAX_FILES))
    with log.open("wb") as lines:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=lines, preexec_fn=limits)
    try:
        deadline = time.monotonic() + 300
        while not (found := re.search(rb'"url": "http://127.0.0.1:(\d+)"', log.read_bytes())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield Server(process, int(found[1]), log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0, "it did not stop in order"
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


class Answer(NamedTuple):
    """What the server said: status 0 if it closed the connection without a word."""

    status: int
    body: bytes

    @property
    def code(self) -> str:
        """The status, and of a refusal the code; "undocumented" where it has not the documented form."""
        if self.status in (0, 200):
            return str(self.status or "closed")
        try:
            return f"{self.status} {json.loads(self.body)['error']['code']}"
        except (ValueError, KeyError, TypeError):
            return f"{self.status} undocumented"


@dataclass
class Client:
    """One connection, kept open and made again where the server closed it."""

    port: int
    seconds: float = 120.0
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, function: str, body: bytes | dict[str, Any]) -> Answer:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.send(make_head(function, len(content)) + content)

    async def get(self, path: str) -> Answer:
        return await self.send(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())

    async def send(self, request: bytes) -> Answer:
        try:
            async with asyncio.timeout(self.seconds):
                reader, writer = self.streams or await asyncio.open_connection("127.0.0.1", self.port)
                self.streams = reader, writer
                with suppress(ConnectionError):  # it may have been refused before its end: then there is an answer
                    writer.write(request)
                    await writer.drain()
                return await self._read(reader)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            await self.close()
            return Answer(0, b"")

    async def _read(self, reader: asyncio.StreamReader) -> Answer:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = re.search(rb"\r\ncontent-length: (\d+)", head)
        body = await reader.readexactly(int(length[1]) if length else 0)
        if b"\r\nconnection: close" in head:
            await self.close()
        return Answer(int(head.split()[1]), body)

    async def close(self) -> None:
        streams, self.streams = self.streams, None
        if streams:
            streams[1].close()


def make_head(function: str, length: int) -> bytes:
    head = f"POST /v1/{function} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {length}\r\n\r\n".encode()


@dataclass
class Polite:
    """A client that asks one short question after another, and `/health`; what it had to wait for each."""

    server: Server
    client: Client
    answers: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    # the server's processor time meanwhile: on a busy machine, only that is its fault
    work: list[float] = field(default_factory=list)
    health_work: list[float] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)

    async def run(self) -> None:
        while True:
            for path, seconds, work in (
                ("embed", self.answers, self.work),
                ("/health", self.health, self.health_work),
            ):
                began_at, worked = time.monotonic(), self.server.processor_seconds
                got = await (self.client.get(path) if path[0] == "/" else self.client.ask(path, {"inputs": ["a cat"]}))
                seconds.append(time.monotonic() - began_at)
                work.append(self.server.processor_seconds - worked)
                self.codes[got.code] += 1
            await asyncio.sleep(0.02)


@asynccontextmanager
async def watching(server: Server) -> AsyncIterator[Polite]:
    """The polite client, asking in the background; what it asked last is answered before it ends."""
    polite = Polite(server, Client(server.port))
    task = asyncio.ensure_future(polite.run())
    await asyncio.sleep(0.5)
    try:
        yield polite
        num_rounds = len(polite.health)
        async with asyncio.timeout(120):
            while len(polite.health) == num_rounds:
                await asyncio.sleep(0.1)
    finally:
        task.cancel()
        await asyncio.wait([task])
        await polite.client.close()


# The attacks: each sends something that hurts, and returns what the server said of it.

Attack = Callable[[int, random.Random], Awaitable[Counter[str]]]


def in_full(inputs: Any, **settings: Any) -> bytes:
    """A body as long as the server takes at most, in UTF-8 as a client would send it."""
    return json.dumps({"inputs": inputs, **settings}, ensure_ascii=False, separators=(",", ":")).encode()


async def send_all(port: int, requests: Sequence[tuple[str, bytes]]) -> Counter[str]:
    """All at once, each on a connection of its own."""

    async def send(function: str, body: bytes) -> str:
        client = Client(port)
        answer = await client.ask(function, body)
        await client.close()
        return answer.code

    return Counter(await asyncio.gather(*[send(function, body) for function, body in requests]))


MARKS = "\u0300\u0327"  # of two combining classes: to put many in order takes quadratic time
PASSAGE = " ".join(TEXT)
# Bodies that are valid JSON and meant to cost far more than they look like: name, function, body.
BODIES: list[tuple[str, str, bytes]] = [
    ("490,000 integers for inputs", "embed", b'{"inputs":[' + b"1," * 489_999 + b"1]}"),
    ("400,000 integers in an input", "tokens", b'{"inputs":[[' + b"1," * 400_000 + b"1]]}"),
    ("60,000 unknown keys", "embed", json.dumps({f"key-{n}": 1 for n in range(60_000)}).encode()),
    ("450,000 nested lists", "embed", b'{"inputs":' + b"[" * 450_000 + b"]" * 450_000 + b"}"),
    ("300,000 empty lists", "embed", b'{"inputs":[' + b"[]," * 300_000 + b"[]]}"),
    ("a number of 900,000 digits", "embed", b'{"inputs":[' + b"9" * 900_000 + b"]}"),
    ("60 KB of U+FDFA", "answer", in_full([{"question": "who", "context": "\ufdfa" * 20_000}])),
    ("480,000 combining marks", "embed", in_full(["a" + MARKS * 240_000])),
    ("24 texts of 19,998 combining marks", "embed", in_full(["a" + MARKS * 9_999] * 24)),
    ("words of 19,998 combining marks", "tokens", in_full([["a" + MARKS * 4_999] * 2] * 20)),
    ("300,000 Tibetan vowels", "classify", in_full(["a" + "\u0f73" * 300_000])),
    ("a word of 20,000 letters, 48 times", "embed", in_full(["x" * 20_000] * 48)),
    ("a word of 9,999 letters of 4 bytes, 24 times", "embed", in_full(["\U0001d400" * 9_999] * 24)),
    ("64 full texts", "embed", in_full([(PASSAGE * 100)[:15_000]] * 64)),
    ("64 full pairs", "order", in_full([[(PASSAGE * 40)[:7_000], (PASSAGE * 40)[500:7_500]]] * 64)),
    ("60 long passages", "answer", in_full([{"question": "who", "context": (PASSAGE * 100)[:16_000]}] * 60)),
    ("a question of 19,000 letters", "answer", in_full([{"question": (PASSAGE * 100)[:19_000], "context": "a"}] * 50)),
    ("60 long sentences for tags", "tokens", in_full([(PASSAGE * 100)[:16_000]] * 60)),
    ("64 lists of 4,000 words", "tokens", in_full([["a"] * 3_800] * 64)),
    ("19,000 empty words", "tokens", in_full([[""] * 10_000] * 30)),
    ("16 long choices, 48 times", "choose", in_full([{"context": "a" * 2_000, "choices": ["b" * 1_000] * 16}] * 48)),
    ("16 gaps in 64 texts", "fill-mask", in_full(["[MASK] " * 16] * 64, top_k=50)),
    ("what a model reads", "read", in_full([(PASSAGE * 100)[:19_000]])),
    ("490,000 token ids for embeddings", "embeddings", b'{"input":[' + b"1," * 489_999 + b"1]}"),
    ("a text and 480,000 token ids", "embeddings", b'{"input":["a",' + b"1," * 479_999 + b"1]}"),
    ("64 full texts for embeddings", "embeddings", json.dumps({"input": [(PASSAGE * 100)[:15_000]] * 64}).encode()),
    ("300,000 documents", "rerank", b'{"query":"a","label":"cat","documents":[' + b'"",' * 300_000 + b'""]}'),
    (
        "a query of 19,000 letters for 64 documents",
        "rerank",
        json.dumps({"query": (PASSAGE * 100)[:19_000], "label": "cat", "documents": ["a dog"] * 64}).encode(),
    ),
    ("a model of 900,000 letters", "embed", json.dumps({"inputs": ["a"], "model": "words" * 180_000}).encode()),
]


def attack_with(function: str, body: bytes) -> Attack:
    assert len(body) <= 1_000_000, f"{function}: {len(body):,} bytes"

    async def attack(port: int, _: random.Random) -> Counter[str]:
        return await send_all(port, [(function, body)] * 3)

    return attack


async def leave_bodies_unfinished(port: int, _: random.Random) -> Counter[str]:
    """800 connections, each with all but the last bytes of a megabyte."""
    return await _hold(port, 700, make_head("embed", 999_000) + b" " * 990_000, seconds=5.0)


async def open_ten_thousand(port: int, rng: random.Random) -> Counter[str]:
    """10,000 connections, 500 at a time; in the first half, idle ones take all of the server's descriptors."""
    codes: Counter[str] = Counter()

    async def connect() -> None:
        client = Client(port, seconds=20.0)
        codes[(await client.get("/health")).code] += 1
        await asyncio.sleep(rng.random())
        await client.close()

    held = await _open(port, MAX_FILES)  # as many as the server has descriptors
    for rounds in range(20):
        if rounds == 10:
            _close(held)
            await asyncio.sleep(1.0)
        await asyncio.gather(*[connect() for _ in range(500)])
    return codes


async def drip(port: int, rng: random.Random) -> Counter[str]:
    """300 clients that send a head or a body byte by byte."""
    codes: Counter[str] = Counter()

    async def send() -> None:
        body = b'{"inputs":["a"]}'
        request = make_head("embed", len(body)) + body
        sent = rng.randrange(1, len(request))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with suppress(OSError):
            writer.write(request[:sent])
            for byte in request[sent : sent + 20]:
                await asyncio.sleep(0.2)
                writer.write(bytes([byte]))
                await writer.drain()
        writer.close()
        codes["left"] += 1
        del reader

    await asyncio.gather(*[send() for _ in range(300)])
    return codes


async def read_nothing(port: int, _: random.Random) -> Counter[str]:
    """60 clients that ask for long answers, one after another on one connection, and read none of them."""
    body = in_full([PASSAGE])
    return await _hold(port, 60, (make_head("read", len(body)) + body) * 40, seconds=5.0)


async def leave(port: int, rng: random.Random) -> Counter[str]:
    """400 clients that ask and close the connection before the answer."""
    body = in_full([{"question": "who", "context": (PASSAGE * 100)[:8_000]}] * 8)
    for _ in range(40):
        streams = await _open(port, 10)
        for _, writer in streams:
            writer.write(make_head("answer", len(body)) + body)
        await asyncio.sleep(0.05 * rng.random())
        _close(streams)
    return Counter({"left": 400})


async def send_tiny_chunks(port: int, _: random.Random) -> Counter[str]:
    """Bodies in chunks of one byte."""
    head = make_head("embed", 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    clients = [Client(port) for _ in range(3)]
    request = head + b"1\r\n \r\n" * 900_000 + b"0\r\n\r\n"
    return Counter(answer.code for answer in await asyncio.gather(*[client.send(request) for client in clients]))


async def pipeline(port: int, _: random.Random) -> Counter[str]:
    """20,000 requests sent before the first answer is read."""
    return await _hold(port, 4, b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20_000, seconds=3.0)


NOISE = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
    b"\xff\xfe{\x00METHOD / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"POST /v1/embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
    b"POST /v1/embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: " + b"9" * 300 + b"\r\n\r\n",
    b"POST /v1/embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
    b"PROPFIND / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /page/%2e%2e/%2e%2e/app.py HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
]


async def make_noise(port: int, _: random.Random) -> Counter[str]:
    """What is not HTTP, or not quite; for other hosts; of other methods; for other files."""
    clients = [Client(port, seconds=10.0) for _ in NOISE]
    codes = Counter([(await client.send(noise)).code for client, noise in zip(clients, NOISE, strict=True)])
    for client in clients:
        await client.close()
    return codes


async def _open(port: int, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    return [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]


def _close(streams: Sequence[tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> None:
    for _, writer in streams:
        writer.transport.abort()


async def _hold(port: int, count: int, request: bytes, *, seconds: float) -> Counter[str]:
    """Send this on so many connections without reading, hold them for some seconds, and see which were answered."""
    streams = await _open(port, count)
    for _, writer in streams:
        with suppress(OSError):
            writer.write(request)
    await asyncio.sleep(seconds)
    codes: Counter[str] = Counter()
    for reader, _ in streams:
        try:
            async with asyncio.timeout(0.01):
                codes[(await reader.readexactly(12)).decode().split()[1]] += 1
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            codes["no answer"] += 1
    _close(streams)
    return codes


ATTACKS: dict[str, Attack] = {name: attack_with(function, body) for name, function, body in BODIES} | {
    "700 unfinished bodies": leave_bodies_unfinished,
    "10,000 connections": open_ten_thousand,
    "300 dripping clients": drip,
    "60 clients that read nothing": read_nothing,
    "400 clients that leave": leave,
    "900,000 chunks of a byte": send_tiny_chunks,
    "20,000 requests in a pipeline": pipeline,
    "noise": make_noise,
}
MAX_WAIT = 5.0  # seconds that an attack may keep the polite client waiting
MAX_P99 = 31.0  # seconds at saturation: an answer comes within the server's time limit, or a refusal does
MAX_GROWTH = 150.0  # megabytes that an attack may leave the server larger by
# Where connections are taken, the polite client, too, is told to try again.
CROWDED = ("10,000 connections", "700 unfinished bodies")


async def attack_all(server: Server, ledger: Ledger, chosen: str) -> None:
    """Every attack once, in turn."""
    for name, attack in ATTACKS.items():
        if ledger.is_tried(name) or not re.search(chosen, name):
            continue
        before, began_at = server.megabytes, time.monotonic()
        async with watching(server) as polite:
            codes = await attack(server.port, ledger.random(name))
            seconds = time.monotonic() - began_at - 0.5
        worst, worst_health = max(polite.answers), max(polite.health)
        worst_work = max(map(min, polite.answers, polite.work))
        worst_health_work = max(map(min, polite.health, polite.health_work))
        grown = server.megabytes - before
        problems = [
            f"a polite client waited {worst:.1f} s" if worst_work > MAX_WAIT else "",
            f"/health took {worst_health:.1f} s" if worst_health_work > MAX_WAIT / 2 else "",
            f"{grown:.0f} MB more" if grown > MAX_GROWTH else "",
            *(f"answered {code}" for code in codes if code.startswith("500") or "undocumented" in code),
            *(f"polite client: {code}" for code in polite.codes if code != "200" and name not in CROWDED),
            "it is not ready" if (await Client(server.port).get("/ready")).status != 200 else "",
        ]
        facts = {
            "answers": dict(codes), "seconds": round(seconds, 2), "worst_wait": round(worst, 3),
            "worst_work": round(worst_work, 3), "worst_health": round(worst_health, 3),
            "megabytes_grown": round(grown, 1), "polite": dict(polite.codes),
        }  # fmt: skip
        print(f"{name}: {facts}", flush=True)
        ledger.write(name, problem="; ".join(filter(None, problems)), **facts)


# Saturation.


class Question(NamedTuple):
    """A request whose answer is known."""

    function: str
    body: bytes
    answer: Any


async def ask_when_idle(server: Server, rng: random.Random, count: int) -> list[Question]:
    """Questions to every function, and what the server answers to each of them alone."""
    client, questions = Client(server.port), []
    for number in range(count):
        one, other = _invent(rng, 40), _invent(rng, 40)
        passage = {"question": f"who {_invent(rng, 5)}", "context": f"{one} {other} {_invent(rng, 200)}"}
        choice = {"context": one, "question": "where", "choices": [_invent(rng, 5) for _ in range(4)]}
        bodies: dict[str, dict[str, Any]] = {
            "embed": {"inputs": [one, other]},
            "order": {"inputs": [[one, other]]},
            "fill-mask": {"inputs": [f"{one} [MASK] {other}"]},
            "classify": {"inputs": [one, [one, other]]},
            "tokens": {"inputs": [one]},
            "answer": {"inputs": [passage]},
            "choose": {"inputs": [choice]},
            "embeddings": {"input": [one, other]},
            "rerank": {"query": one, "documents": [other], "label": "cat"},
        }
        function = list(bodies)[number % len(bodies)]
        body = json.dumps(bodies[function]).encode()
        answer = await client.ask(function, body)
        assert answer.status == 200, answer
        questions.append(Question(function, body, json.loads(answer.body)))
    await client.close()
    return questions


def _invent(rng: random.Random, most: int) -> str:
    return " ".join(rng.choices(TEXT, k=rng.randint(1, most)))


def is_same(a: Any, b: Any) -> bool:
    """Equal but for rounding: numbers differ by the batch that they were computed in."""
    if isinstance(a, float | int) and isinstance(b, float | int) and not isinstance(a, bool):
        return abs(a - b) <= 2e-3 + 1e-3 * abs(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(is_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(is_same, a, b))
    return bool(a == b)


@dataclass
class Traffic:
    """What happened since the last look."""

    seconds: list[float] = field(default_factory=list)  # of each answer
    codes: Counter[str] = field(default_factory=Counter)
    bad_codes: Counter[str] = field(default_factory=Counter)
    num_wrong: int = 0


async def keep_asking(port: int, questions: Sequence[Question], traffic: Traffic, rng: random.Random) -> None:
    client = Client(port)
    while True:
        question = rng.choice(questions)
        began_at = time.monotonic()
        answer = await client.ask(question.function, question.body)
        traffic.codes[answer.code] += 1
        if answer.status == 200:
            traffic.seconds.append(time.monotonic() - began_at)
            if not is_same(json.loads(answer.body), question.answer):
                traffic.num_wrong += 1
                print(f"WRONG: {question.function} {question.body!r} {answer.body[:500]!r}", flush=True)
        else:
            await asyncio.sleep(0.2 * rng.random())


async def keep_attacking(port: int, traffic: Traffic, rng: random.Random) -> None:
    """One attack after another, without those that take all connections: others could only be refused."""
    names = [name for name in ATTACKS if name not in CROWDED]
    while True:
        traffic.bad_codes.update(await ATTACKS[rng.choice(names)](port, rng))
        await asyncio.sleep(rng.random())


async def saturate(server: Server, seconds: float, connections: int, rng: random.Random) -> list[dict[str, Any]]:
    """Good and bad traffic at once for so long; a record every half minute."""
    questions = await ask_when_idle(server, rng, 210)
    traffic, records, began_at = Traffic(), list[dict[str, Any]](), time.monotonic()
    tasks = [
        asyncio.ensure_future(keep_asking(server.port, questions, traffic, random.Random(rng.random())))
        for _ in range(connections)
    ]
    tasks += [
        asyncio.ensure_future(keep_attacking(server.port, traffic, random.Random(rng.random()))) for _ in range(2)
    ]
    while (elapsed := time.monotonic() - began_at) < seconds:
        await asyncio.sleep(min(30.0, seconds - elapsed))
        ordered = sorted(traffic.seconds) or [0.0]
        record: dict[str, Any] = {
            "elapsed": round(time.monotonic() - began_at), "answers": len(traffic.seconds),
            "codes": dict(traffic.codes), "bad_codes": dict(traffic.bad_codes), "wrong": traffic.num_wrong,
            "p50": round(ordered[len(ordered) // 2], 3), "p99": round(ordered[int(0.99 * len(ordered))], 3),
            "worst": round(ordered[-1], 3), "megabytes": round(server.megabytes), "files": server.num_files,
            "threads": server.num_threads, "log_lines": server.count_lines(),
            "cpu_seconds": round(sum(psutil.Process(server.process.pid).cpu_times()[:2])), "load": os.getloadavg()[0],
        }  # fmt: skip
        print(json.dumps(record), flush=True)
        records.append(record)
        traffic.seconds.clear(), traffic.codes.clear(), traffic.bad_codes.clear()
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(result, asyncio.CancelledError), result
    await asyncio.sleep(2.0)
    records.append({"elapsed": round(time.monotonic() - began_at), "files": server.num_files, "is_idle": True})
    print(json.dumps(records[-1]), flush=True)
    return records


def find_problems(records: Sequence[dict[str, Any]]) -> list[str]:
    """What was not flat, not bounded, or wrong."""
    busy = [record for record in records if not record.get("is_idle")]
    third = max(1, len(busy) // 3)
    early, late = (max(record["megabytes"] for record in part) for part in (busy[:third], busy[-third:]))
    codes = sum((Counter(record["codes"]) + Counter(record["bad_codes"]) for record in busy), Counter[str]())
    return [
        *([f"memory: {early} MB at most in the first third, {late} in the last"] if late > 1.05 * early + 20 else []),
        *([f"{records[-1]['files']} files are open when all have left"] if records[-1]["files"] > 100 else []),
        *(f"{busy[-1]['wrong']} answers were another's" for _ in range(busy[-1]["wrong"] > 0)),
        *(f"{count} answers {code}" for code, count in codes.items() if code.startswith("500") or "undoc" in code),
        *(f"p99 {record['p99']} s at {record['elapsed']} s" for record in busy if record["p99"] > MAX_P99),
    ]


def main() -> int:
    """Attack a server of this checkout, or saturate it."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.serving", description=__doc__)
    parser.add_argument("fault", choices=["attacks", "saturation"])
    parser.add_argument("--folder", type=Path, default=Path("runs/torture"), help="models, log and ledger")
    parser.add_argument("--seconds", type=float, default=1800, help="of saturation")
    parser.add_argument("--connections", type=int, default=32, help="that ask good questions, at saturation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="attacks whose name holds this")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    folder = options.folder.resolve() / "serving"
    folder.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.folder.resolve() / "ledger.jsonl", f"server-{options.fault}", options.seed)
    with start_server(folder) as server:
        if options.fault == "attacks":
            asyncio.run(attack_all(server, ledger, options.only))
        else:
            rng = ledger.random("saturation")
            records = asyncio.run(saturate(server, options.seconds, options.connections, rng))
            count = sum(record.get("answers", 0) for record in records)
            ledger.write(f"saturation {len(ledger.records)}", count=count, problem="; ".join(find_problems(records)))
    print(summarize(ledger.file))
    return int(any(record["outcome"] == "FAILED" for record in read_records(ledger.file)))


if __name__ == "__main__":
    sys.exit(main())
