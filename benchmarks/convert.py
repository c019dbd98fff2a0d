"""Time and memory to convert a model of ALBERT-xxlarge's shape: TensorFlow -> litebert -> Hugging Face -> litebert.

    python benchmarks/convert.py [preset]

Writes about five times the model's size to a temporary folder. Memory is the peak of the converting process.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from litebert.interop.google_names import name_table
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.model import build_model
from litebert.model.presets import preset

sys.path.append(str(Path(__file__).parent.parent / "tests" / "interop"))

HEADS = (HeadSpec("mlm"), HeadSpec("sentence"))


def write_source(folder: Path, config: ModelConfig) -> int:
    """Write a TensorFlow checkpoint of this shape with random weights; returns its size."""
    from bundles import write_bundle

    state = build_model(config, HEADS, device="meta").state_dict()
    variables = {}
    for ours, variable in name_table("albert", config, HEADS).items():
        shape = tuple(state[ours].shape)
        variables[variable.name] = torch.rand(shape[::-1] if variable.is_transposed else shape)
    write_bundle(folder / "model.ckpt-best", variables)
    values = {
        "vocab_size": config.vocab_size,
        "embedding_size": config.embedding_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.ffn_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
    }
    (folder / "albert_config.json").write_text(json.dumps(values), "utf-8")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(config.vocab_size - 5))]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    return sum(file.stat().st_size for file in folder.glob("model.ckpt-best*"))


def measure(words: list[str]) -> tuple[float, float, float]:
    """Wall-clock seconds, processor seconds, and peak bytes of one `litebert` command in its own process."""
    code = (
        "import sys\nfrom litebert.cli.main import _run\n"
        f"status = _run({words!r}, debug=True)\n"
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "import time; print(time.process_time(), peak.split()[1]); sys.exit(status)\n"
    )
    started_at = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    worked, peak = done.stdout.split()[-2:]
    return time.perf_counter() - started_at, float(worked), 1024 * float(peak)


def iter_conversions(folder: Path) -> Iterator[tuple[str, list[str]]]:
    source, ours, theirs, back = (str(folder / name) for name in ("source", "ours", "theirs", "back"))
    yield "(nothing: --help)", ["convert", "--help"]
    yield "TensorFlow -> litebert", ["convert", source, ours]
    yield "litebert -> Hugging Face", ["convert", ours, theirs, "--to", "huggingface"]
    yield "Hugging Face -> litebert", ["convert", theirs, back]
    yield "doctor", ["doctor", back]


def main() -> None:
    config = preset(sys.argv[1] if len(sys.argv) > 1 else "albert-xxlarge")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "source").mkdir()
        size = write_source(folder / "source", config)
        print(f"the weights are {size / 1e6:,.0f} MB")
        for what, words in iter_conversions(folder):
            seconds, worked, peak = measure(words)
            memory = f"{peak / 1e6:7,.0f} MB, {peak / size:.2f} of the weights"
            print(f"{what:26} {seconds:6.1f} s ({worked:5.1f} s of work)   {memory}", flush=True)


if __name__ == "__main__":
    main()
