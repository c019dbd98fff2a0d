"""The overhead of HTTP: texts classified per second through the saturated server, compared with the predictor alone.

    python benchmarks/serve.py [--preset albert-base-v2] [--engine torch|onnx|int8|openvino] [--seconds 6] [--rounds 8]
                               [--connections 192] [--client wrk|own]

The contenders take turns of a few seconds with the same texts, of the lengths of SST-2's sentences. The predictor gets
all of them at once, so that it pads as little as possible. The server runs in its own process, under a client in
another one that sends one text per request: wrk if it is installed (benchmarks/serving/wrk.lua), else our own
(benchmarks/serving/client.py). The wall-clock ratio shows what users get on a quiet machine, where the client also
uses the cores; the ratio of processor time (excluding the client's) is also valid on a busy machine.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as `litebert serve` does

import psutil

from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.inference.predictor import Predictor, load
from litebert.model.model import build_model
from litebert.model.presets import preset
from litebert.tasks.catalog import task_facts
from litebert.tasks.kinds.classification import Classification
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

SERVING = Path(__file__).parent / "serving"
WORDS = [
    a + b for a in ("ba", "co", "di", "fu", "ge", "ka", "lo", "mi") for b in ("ler", "ten", "son", "dal", "vor", "nim")
]
NUM_TEXTS = 256


class Speed(NamedTuple):
    """Texts per second, and processor seconds per text."""

    texts_per_second: float
    processor_seconds: float


def main() -> None:
    options = parse_options()
    texts = invent_texts(NUM_TEXTS)
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(Path(folder), options, texts)
        bodies = Path(folder) / "bodies.json"
        bodies.write_text(json.dumps([{"inputs": [text]} for text in texts]), "utf-8")
        engine = {"int8": "onnx"}.get(options.engine, options.engine)
        predictor = load(model, engine=engine)
        process, port = start_server(model, engine)
        try:
            ratios = [compare(predictor, texts, process.pid, (port, bodies, options)) for _ in range(options.rounds)]
        finally:
            process.terminate()
            process.wait()
    by_clock, by_work = (statistics.median(column) for column in zip(*ratios, strict=True))
    print(
        f"{options.preset}, {options.engine}, {options.client}: the server reaches {by_clock:.2f} of the bare "
        f"predictor by the clock, {by_work:.2f} by processor time"
    )


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="albert-base-v2")
    parser.add_argument("--engine", default="torch", choices=["torch", "onnx", "int8", "openvino"])
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--connections", type=int, default=192)
    parser.add_argument("--client", choices=["wrk", "own"], default="wrk" if shutil.which("wrk") else "own")
    return parser.parse_args()


def invent_texts(count: int) -> list[str]:
    """SST-2's dev sentences have 19 words on average, from 2 to 47."""
    rng = Random(0)
    return [" ".join(rng.choices(WORDS, k=round(min(47, max(2, rng.gauss(19.3, 9)))))) for _ in range(count)]


def write_model(folder: Path, options: argparse.Namespace, texts: list[str]) -> Path:
    """A classifier with random weights, as a checkpoint; for int8, its export."""
    tokenizer = train_tokenizer(texts, VocabularyOptions(kind="wordpiece", vocab_size=100))
    task = Classification("classification", ("negative", "positive"))
    config = replace(preset(options.preset), vocab_size=tokenizer.vocab_size, max_positions=128)
    content = CheckpointContent(step=0, task=task_facts(task, max_length=128))
    save_checkpoint(folder / "checkpoint", build_model(config, task.heads), tokenizer, content)
    if options.engine != "int8":
        return folder / "checkpoint"
    from litebert.exporters.int8 import export_int8

    return export_int8(load_checkpoint(folder / "checkpoint"), folder / "int8").exported.path


def start_server(model: Path, engine: str) -> tuple["subprocess.Popen[str]", int]:
    command = [sys.executable, "-m", "litebert", "serve", str(model), "--port", "0", "--engine", engine]
    with tempfile.TemporaryFile("w+") as log:  # a full pipe that nobody reads would block the server
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ.copy())
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://[\d.]+:(\d+)", line)
    assert found, line
    return process, int(found[1])


def compare(
    predictor: Predictor, texts: list[str], server_pid: int, asking: tuple[int, Path, argparse.Namespace]
) -> tuple[float, float]:
    """The ratio of the server's speed to the predictor's, in wall-clock and in processor time."""
    bare = measure_bare(predictor, texts, asking[2].seconds)
    served, answer = measure_served(psutil.Process(server_pid), *asking)
    print(
        f"bare {bare.texts_per_second:7.1f} texts/s, {1000 * bare.processor_seconds:6.2f} ms of processor a text   "
        f"served {served.texts_per_second:7.1f}, {1000 * served.processor_seconds:6.2f} ms   "
        f"latency p50 {answer['p50']:.0f} ms, p99 {answer['p99']:.0f} ms",
        flush=True,
    )
    return served.texts_per_second / bare.texts_per_second, bare.processor_seconds / served.processor_seconds


def measure_bare(predictor: Predictor, texts: list[str], seconds: float) -> Speed:
    """The predictor alone, with all texts at once."""
    predictor.classify(texts[:64])
    count, started_at, used_before = 0, time.perf_counter(), time.process_time()
    while not count or time.perf_counter() - started_at < seconds:
        predictor.classify(texts)
        count += len(texts)
    return Speed(count / (time.perf_counter() - started_at), (time.process_time() - used_before) / count)


def measure_served(
    server: psutil.Process, port: int, bodies: Path, options: argparse.Namespace
) -> tuple[Speed, dict[str, Any]]:
    """The server under the client, and the client's own counts.

    Measured from the end of one batch to the end of another, so that work cut off when the client stops does not count.
    """
    client = start_client(port, bodies, options)
    ends: list[tuple[int, float, float]] = []  # of batches: texts so far, time, processor seconds
    while client.poll() is None:
        count = count_answers(port)
        if count and (not ends or count > ends[-1][0]):
            ends.append((count, time.perf_counter(), sum(server.cpu_times()[:2])))
        time.sleep(0.05)
    printed, _ = client.communicate()
    answer: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
    assert not answer.get("refused"), answer
    assert len(ends) > 2, "too few batches: give it more --seconds"
    # the first end seen may be of the previous round
    count, seconds, used = (last - first for first, last in zip(ends[1], ends[-1], strict=True))
    return Speed(count / seconds, used / count), answer


def count_answers(port: int) -> int:
    """The number of texts that the server has answered since it started."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        found = re.search(r"^litebert_batch_size_sum\S* (\S+)$", page.read().decode(), re.MULTILINE)
    return int(float(found[1])) if found else 0


def start_client(port: int, bodies: Path, options: argparse.Namespace) -> "subprocess.Popen[str]":
    """Start a client that prints a JSON line: the number of refused requests, latency percentiles in milliseconds."""
    if options.client == "own":
        words = ["127.0.0.1", str(port), "/v1/classify", str(bodies), str(options.connections), str(options.seconds)]
        command = [sys.executable, str(SERVING / "client.py"), *words]
    else:
        seconds = f"{max(1, round(options.seconds))}s"
        words = ["-t", "1", "-c", str(options.connections), "-d", seconds, "--timeout", "60s"]
        command = ["wrk", *words, "-s", str(SERVING / "wrk.lua"), f"http://127.0.0.1:{port}/v1/classify", str(bodies)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


if __name__ == "__main__":
    main()
