"""Speed and memory of building a corpus from text. Needs $LITEBERT_DATA (with the English Wikipedia).

    python benchmarks/data.py                    everything
    python benchmarks/data.py build --rounds 3   megabytes per second, compared with SentencePiece alone
    python benchmarks/data.py memory             resident memory on the text once and repeated ten times

Speed is measured on distinct text, in processor time and wall time, to distinguish a busy machine from a slow program.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

FLOOR_MEGABYTES_A_SECOND = 4.0
FLOOR_RESIDENT_MEGABYTES = 600.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds; the median is shown")
    arguments = parser.parse_args()
    data = os.environ.get("LITEBERT_DATA")
    if not data:
        print("skipped: LITEBERT_DATA is not set")
        return
    for name, part in PARTS.items():
        if arguments.part in (name, "all"):
            part(Path(data), arguments.rounds)


def measure_building(data: Path, rounds: int) -> None:
    """Reading, normalizing, splitting, encoding and writing, compared with SentencePiece on the same sentences."""
    tokenizer = data / "vocab" / "albert-30k.model"
    files = sorted((data / "corpora" / "enwiki").glob("*.gz"))
    alone, one, two = [], [], []
    for _ in range(rounds):  # interleaved, so that load affects all alike; new processes start with empty caches
        alone.append(_run_child(_ENCODE_ALONE, tokenizer, *files))
        one.append(_run_build(tokenizer, files, processes=1))
        two.append(_run_build(tokenizer, files, processes=2))
    print("building a corpus from English Wikipedia (gzip, 70 MB of text), unigram vocabulary of 30,000")
    _show("SentencePiece alone, one thread", alone)
    _show("litebert corpus build, 1 process", one)
    _show("litebert corpus build, 2 processes", two)
    share = statistics.median(a["cpu_rate"] for a in one) / statistics.median(a["cpu_rate"] for a in alone)
    print(f"  share of SentencePiece's own speed: {share:.2f}")
    gain = statistics.median(b["rate"] / a["rate"] for a, b in zip(one, two, strict=True))
    print(f"  2 processes over 1: {gain:.2f} times")
    rate = statistics.median(a["cpu_rate"] for a in one)
    _judge("a second of one core", rate, FLOOR_MEGABYTES_A_SECOND, "MB", rate >= FLOOR_MEGABYTES_A_SECOND)


def measure_memory(data: Path, rounds: int) -> None:
    """Resident memory of all processes together, on the text once and repeated ten times."""
    del rounds
    tokenizer = data / "vocab" / "albert-30k.model"
    files = sorted((data / "corpora" / "enwiki").glob("*.gz"))
    with tempfile.TemporaryDirectory() as folder:
        tenfold = Path(folder) / "tenfold.gz"
        _concatenate(files, tenfold, times=10)
        for title, sources in (("once (70 MB)", files), ("ten times over (700 MB, one file)", [tenfold])):
            found = _run_build(tokenizer, sources, processes=2, watch=True)
            peak = found["peak_megabytes"]
            print(f"  {title}: {found['text_megabytes']:.0f} MB of text, peak of the sum {peak:.0f} MB")
            _judge("resident, 2 processes", peak, FLOOR_RESIDENT_MEGABYTES, "MB", peak < FLOOR_RESIDENT_MEGABYTES)


def _concatenate(files: list[Path], path: Path, *, times: int) -> None:
    with path.open("wb") as out:  # a gzip file may have several members
        for _ in range(times):
            for file in files:
                out.write(file.read_bytes())


PARTS: dict[str, Callable[[Path, int], None]] = {"build": measure_building, "memory": measure_memory}

_ENCODE_ALONE = """
import sys, time
from pathlib import Path
from litebert.corpus.documents import iter_documents
from litebert.text.tokenizer import load_tokenizer
tokenizer = load_tokenizer(Path(sys.argv[1]))
texts = [tokenizer.normalize(s) for d in iter_documents(sys.argv[2:]) for s in d.sentences]
import sentencepiece
processor = sentencepiece.SentencePieceProcessor(sys.argv[1])
started, cpu = time.monotonic(), time.process_time()
for first in range(0, len(texts), 4096):
    processor.encode(texts[first : first + 4096], num_threads=1)
size = sum(len(text.encode()) for text in texts) / 1e6
print(size / (time.monotonic() - started), size / (time.process_time() - cpu), size)
"""

_BUILD = """
import resource, sys, time
from pathlib import Path
from litebert.corpus.build import BuildOptions, build_corpus
from litebert.text.tokenizer import load_tokenizer
if __name__ == "__main__":
    tokenizer = load_tokenizer(Path(sys.argv[1]))
    started = time.monotonic()
    result = build_corpus(sys.argv[4:], tokenizer, Path(sys.argv[2]),
                          BuildOptions(processes=int(sys.argv[3]), is_quiet=True))
    seconds = time.monotonic() - started
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in spent)
    size = result.text_bytes / 1e6
    print(size / seconds, size / cpu, size)
"""


def _run_child(code: str, *words: str | Path, watch: bool = False) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "measured.py"  # spawned workers import the main module, so it must be a file
        script.write_text(code, encoding="utf-8")
        process = subprocess.Popen([sys.executable, script, *words], stdout=subprocess.PIPE, text=True)
        peak = _watch(process) if watch else 0.0
        output, _ = process.communicate()
    if process.returncode:
        sys.exit(f"the measured program failed with {process.returncode}")
    rate, cpu_rate, size = map(float, output.split())
    return {"rate": rate, "cpu_rate": cpu_rate, "text_megabytes": size, "peak_megabytes": peak}


def _run_build(tokenizer: Path, files: list[Path], *, processes: int, watch: bool = False) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        return _run_child(_BUILD, tokenizer, Path(folder) / "corpus", str(processes), *files, watch=watch)


def _watch(process: subprocess.Popen[str]) -> float:
    """The maximum of the summed resident sizes of a process and its children, in megabytes."""
    import psutil

    parent, peak = psutil.Process(process.pid), 0
    while process.poll() is None:
        try:
            family = [parent, *parent.children(recursive=True)]
            peak = max(peak, sum(member.memory_info().rss for member in family))
        except psutil.NoSuchProcess:
            pass  # ended since it was listed
        time.sleep(0.05)
    return peak / 1e6


def _show(title: str, found: list[dict[str, float]]) -> None:
    wall, cpu = (statistics.median(run[key] for run in found) for key in ("rate", "cpu_rate"))
    print(f"  {title:52} {wall:6.1f} MB/s wall, {cpu:6.1f} MB per second of CPU")


def _judge(what: str, value: float, floor: float, unit: str, is_good: bool) -> None:
    print(f"  {what}: {value:.1f} {unit}, wanted {floor:g}: {'good' if is_good else 'MISSED'}")


if __name__ == "__main__":
    main()
