"""A server of its own process under load: no mix-up, no leak, nothing lost when it is told to stop."""

import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_server import wait_until

from litebert.inference.predictor import Predictor

pytestmark = pytest.mark.slow

WORDS = [
    "the",
    "a",
    "small",
    "large",
    "old",
    "new",
    "cat",
    "dog",
    "bird",
    "house",
    "tree",
    "river",
    "sees",
    "likes",
    "finds",
    "and",
    "near",
]


@dataclass
class Running:
    """A server, its port, and its log as it grows."""

    process: "subprocess.Popen[str]"
    port: int
    lines: list[str]
    reader: threading.Thread

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=120)
        self.reader.join()
        return code

    def events(self, name: str) -> list[dict[str, Any]]:
        return [event for event in map(json.loads, list(self.lines)) if event["event"] == name]


def start(*arguments: str) -> Running:
    return start_program(sys.executable, "-m", "litebert", "serve", *arguments, "--port", "0")


def start_program(*command: str) -> Running:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    lines: list[str] = []
    has_port = threading.Event()

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if '"listening"' in line:
                has_port.set()
        process.stderr.close()

    reader = threading.Thread(target=read)
    reader.start()
    assert has_port.wait(timeout=240), "".join(lines)
    url = next(json.loads(line)["url"] for line in lines if '"listening"' in line)
    port = int(url.rpartition(":")[2])
    return Running(process, port, lines, reader)


@pytest.fixture
def running(request: pytest.FixtureRequest, checkpoints: dict[str, Path]) -> Iterator[Running]:
    names, *options = getattr(request, "param", ("words",))
    running = start(*(f"{name}={checkpoints[name]}" for name in names.split()), *options)
    yield running
    if running.process.poll() is None:
        assert running.stop() == 0


class Client:
    """One connection, kept open."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, function: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.connection.request("POST", f"/v1/{function}", json.dumps(body), {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def get(self, path: str) -> str:
        self.connection.request("GET", path)
        return self.connection.getresponse().read().decode()

    def close(self) -> None:
        self.connection.close()


def invent_text(rng: random.Random, most: int = 25) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(1, most)))


@pytest.mark.parametrize("running", [("words animals",)], indirect=True)
def test_parallel_clients_get_their_own_answers(running: Running, predictors: dict[str, Predictor]) -> None:
    def work(number: int) -> None:
        rng, client = random.Random(number), Client(running.port)
        for _ in range(25):
            texts = [invent_text(rng) for _ in range(rng.randint(1, 5))]
            status, answer = client.ask("embed", {"inputs": texts})
            assert status == 200, answer
            asked.append((texts, [result["vector"] for result in answer["results"]]))
            text = invent_text(rng)
            status, answer = client.ask("classify", {"inputs": [text]})
            labels.append((text, answer["results"][0]["probabilities"]))
        client.close()

    asked: list[tuple[list[str], Any]] = []
    labels: list[tuple[str, dict[str, float]]] = []
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(work, range(16)))
    assert len(asked) == len(labels) == 16 * 25
    vectors = predictors["words"].embed([text for texts, _ in asked for text in texts])
    np.testing.assert_allclose(np.concatenate([given for _, given in asked]), vectors, atol=1e-4)
    expected = predictors["animals"].classify([text for text, _ in labels])
    for (_, given), label in zip(labels, expected, strict=True):
        assert given == pytest.approx(label.probabilities, abs=1e-4)
    assert max_batch_size(Client(running.port)) > 1  # or nothing could have been mixed up


def max_batch_size(client: Client) -> float:
    text = client.get("/metrics")
    client.close()
    counts = {float(m[1]): float(m[2]) for m in re.finditer(r'batch_size_bucket.*le="([\d.]+)".* ([\d.]+)', text)}
    total = max(counts.values())
    return min(size for size, count in counts.items() if count == total)


@pytest.mark.parametrize("running", [("words", "--max-queue", "64", "--max-inputs", "64")], indirect=True)
def test_overload_is_shed_and_the_server_recovers(running: Running) -> None:
    def work(number: int) -> Counter[int]:
        rng, client = random.Random(number), Client(running.port)
        statuses = Counter(
            client.ask("embed", {"inputs": [invent_text(rng, 60) for _ in range(32)]})[0] for _ in range(10)
        )
        client.close()
        return statuses

    with ThreadPoolExecutor(24) as threads:
        statuses = sum(threads.map(work, range(24)), Counter[int]())
    assert set(statuses) == {200, 429}
    assert statuses[200] >= 2
    client = Client(running.port)
    assert [client.ask("embed", {"inputs": ["the cat"]})[0] for _ in range(20)] == [200] * 20
    assert json.loads(client.get("/ready")) == {"status": "ready"}
    client.close()


def test_accepted_requests_are_answered_before_the_server_stops(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    gate, count = tmp_path / "gate", 12
    program = Path(__file__).with_name("gated_server.py")
    running = start_program(sys.executable, str(program), str(gate), str(checkpoints["words"]))
    gate.touch()  # from here on every request is held
    watcher = Client(running.port)

    def is_accepted() -> bool:
        return f"litebert_open_requests {count + 1}.0" in watcher.get("/metrics")  # that one included

    def work(number: int) -> tuple[int, int]:
        rng, client = random.Random(number), Client(running.port)
        status, answer = client.ask("embed", {"inputs": [invent_text(rng, 60) for _ in range(8)]})
        client.close()
        return status, len(answer["results"])

    with ThreadPoolExecutor(count) as threads:
        futures = [threads.submit(work, number) for number in range(count)]
        wait_until(is_accepted)
        running.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not is_listening(running.port))
        gate.unlink()
        assert [future.result() for future in futures] == [(200, 8)] * count
    watcher.close()
    assert running.process.wait(timeout=120) == 0
    running.reader.join()
    answered = [event for event in running.events("request") if event["route"] == "/v1/embed"]
    assert [(event["status"], event["is_answered"]) for event in answered] == [(200, True)] * count
    assert len(running.events("stopped")) == 1


def is_listening(port: int) -> bool:
    with closing(socket.socket()) as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_ten_thousand_requests_do_not_fill_the_memory(running: Running) -> None:
    def work(number: int) -> None:
        rng, client = random.Random(number), Client(running.port)
        for _ in range(250):
            text, other = invent_text(rng, 9), invent_text(rng, 9)  # with a gap between them, within 64 tokens
            bodies: list[tuple[str, dict[str, Any], int]] = [
                ("embed", {"inputs": [text, other]}, 200),
                ("order", {"inputs": [[text, other]]}, 200),
                ("fill-mask", {"inputs": [f"{text} [MASK] {other}"]}, 200),
                ("fill-mask", {"inputs": [text]}, 422),
                ("read", {"inputs": [text], "head": rng.randint(0, 1)}, 200),
            ]
            function, body, expected = rng.choice(bodies)
            assert client.ask(function, body)[0] == expected
        client.close()

    def measure() -> float:
        client = Client(running.port)
        memory = re.search(r"process_resident_memory_bytes ([\d.e+]+)", client.get("/metrics"))
        client.close()
        return float(memory[1]) / 1e6  # type: ignore[index]

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))  # 2,000 to fill caches and pools
        before = measure()
        list(threads.map(work, range(8, 48)))  # 10,000
    after = measure()
    assert after < 1.05 * before + 5, f"{before:.0f} MB before, {after:.0f} MB after"
