"""What HTTP costs: texts classified a second through the server at saturation, beside the bare predictor.

    python benchmarks/serve.py [preset] [seconds]

The same texts, of the lengths of SST-2's sentences, in turn: the predictor alone with batches as large as the server's,
then the server in a process of its own under a client in another (benchmarks/serving/client.py), which sends one text a
request. The clock's ratio says what a user gets on a quiet machine; the ratio of processor time (not the client's) can
also be had on a busy one. The bare predictor pads texts as they come; the server's lanes pad less.
"""

import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import psutil

from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.infer.predictor import Predictor, load
from litebert.model.model import build_model
from litebert.model.presets import preset
from litebert.tasks.catalog import task_facts
from litebert.tasks.classification import Classification
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

CLIENT = Path(__file__).parent / "serving" / "client.py"
WORDS = [
    a + b for a in ("ba", "co", "di", "fu", "ge", "ka", "lo", "mi") for b in ("ler", "ten", "son", "dal", "vor", "nim")
]
CONNECTIONS = 48
MAX_BATCH = 32
ROUNDS = 3


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "albert-base"
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 8.0
    texts = invent_texts(1024)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "checkpoint"
        write_checkpoint(checkpoint, name, texts)
        bodies = Path(folder) / "bodies.json"
        bodies.write_text(json.dumps([{"inputs": [text]} for text in texts]), "utf-8")
        predictor = load(checkpoint)
        process, port = start_server(checkpoint)
        try:
            ratios = [compare(predictor, texts, port, bodies, seconds, process.pid) for _ in range(ROUNDS)]
        finally:
            process.terminate()
            process.wait()
    by_clock, by_work = (statistics.median(column) for column in zip(*ratios, strict=True))
    print(
        f"{name}: the server reaches {by_clock:.2f} of the bare predictor by the clock, {by_work:.2f} by processor time"
    )


def invent_texts(count: int) -> list[str]:
    """SST-2's dev sentences have 19 words in the mean, from 2 to 47."""
    rng = random.Random(0)
    return [" ".join(rng.choices(WORDS, k=round(min(47, max(2, rng.gauss(19.3, 9)))))) for _ in range(count)]


def write_checkpoint(path: Path, name: str, texts: list[str]) -> None:
    tokenizer = train_tokenizer(texts, VocabularyOptions(kind="wordpiece", vocab_size=100))
    task = Classification("classification", ("negative", "positive"))
    config = replace(preset(name), vocab_size=tokenizer.vocab_size, max_positions=128)
    content = CheckpointContent(step=0, task=task_facts(task, max_length=128))
    save_checkpoint(path, build_model(config, task.heads), tokenizer, content)


def start_server(checkpoint: Path) -> tuple["subprocess.Popen[str]", int]:
    command = [sys.executable, "-m", "litebert", "serve", str(checkpoint), "--port", "0", "--max-batch", str(MAX_BATCH)]
    with tempfile.TemporaryFile("w+") as log:  # a pipe that nobody empties would stop the server
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ.copy())
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://[\d.]+:(\d+)", line)
    assert found, line
    return process, int(found[1])


def compare(
    predictor: Predictor, texts: list[str], port: int, bodies: Path, seconds: float, server_pid: int
) -> tuple[float, float]:
    """How much of the bare predictor's speed the server reaches, by the clock and by processor time."""
    bare, bare_cost = measure_bare(predictor, texts, seconds)
    server = psutil.Process(server_pid)
    used_before = sum(server.cpu_times()[:2])
    command = [sys.executable, str(CLIENT), "127.0.0.1", str(port), "/v1/classify", str(bodies), str(CONNECTIONS)]
    done = subprocess.run([*command, str(seconds)], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    served = answer["answers_per_second"]
    cost = (sum(server.cpu_times()[:2]) - used_before) / answer["answers"]
    print(
        f"bare {bare:7.1f} texts/s, {1000 * bare_cost:6.2f} ms of processor a text   served {served:7.1f}, "
        f"{1000 * cost:6.2f} ms   latency p50 {answer['p50']:.0f} ms, p99 {answer['p99']:.0f} ms"
    )
    return served / bare, bare_cost / cost


def measure_bare(predictor: Predictor, texts: list[str], seconds: float) -> tuple[float, float]:
    """Texts a second of the predictor alone, in batches of the server's size, and processor seconds for each."""
    rng = random.Random(1)
    predictor.classify(texts[:MAX_BATCH])
    count, started_at, used_before = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - started_at < seconds:
        predictor.classify(rng.sample(texts, MAX_BATCH))
        count += MAX_BATCH
    return count / (time.perf_counter() - started_at), (time.process_time() - used_before) / count


if __name__ == "__main__":
    main()
