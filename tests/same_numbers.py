"""Does this code compute the same numbers as another version? For changes that should not change any.

    git worktree add ../before v0.1.0
    .venv/bin/python tests/same_numbers.py ../before

Both versions train nano, shortened, and a recipe with stages, dropout, packed rows, micro-batches, LAMB and two
corpora, which the other version has built. Then this version resumes the other's runs from their first checkpoint.
Metrics, weights and optimizer states must have the same bytes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from small_text import make_sentences

OURS = Path(__file__).parents[1]
NANO = [
    *("nano", "model.vocab_size=200", "data.corpora=near", "train.steps=12", "train.save_every=4", "train.keep_last=9"),
    *("schedule.warmup_steps=4", "stages=[{at = 8, model = {num_layers = 2}}]"),
]
MIXED = """
[model]
preset = "nano"
vocab_size = 200
hidden_dropout_rate = 0.1
attention_dropout_rate = 0.1
[data]
corpora = ["near", "far"]
weights = [2.0, 1.0]
[segments]
max_length = 64
[batch]
tokens = 900
is_packed = true
[optim]
name = "lamb"
[schedule]
warmup_steps = 4
[train]
steps = 12
micro_batch = 5
save_every = 4
keep_last = 9
evaluate_every = 3
evaluate_batches = 2
[[stages]]
at = 5
model = { hidden_dropout_rate = 0.0 }
segments = { max_length = 128, task = "nsp" }
[[stages]]
at = 9
segments = { task = "none", format = "full-sentences" }
masking = { kind = "span" }
"""


def main() -> None:
    before = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpora(before, folder)
        (folder / "mixed.toml").write_text(MIXED)
        differences = compare(before, folder, "nano", NANO) + compare(before, folder, "mixed", ["mixed.toml"])
    print("\n".join(differences) or "all files are the same")
    sys.exit(bool(differences))


def run_litebert(tree: Path, folder: Path, *arguments: str) -> None:
    """Run the command line of a source tree in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "litebert", *arguments]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


def write_corpora(tree: Path, folder: Path) -> None:
    """Two corpora of made-up documents, `near` and `far`, built by the version in `tree`."""
    sentences = make_sentences(2400)
    for name, begin, stop in (("near", 0, 1600), ("far", 1600, 2400)):
        documents = ["\n".join(sentences[k : k + 8]) for k in range(begin, stop, 8)]
        (folder / f"{name}.txt").write_text("\n\n".join(documents), "utf-8")
    run_litebert(tree, folder, "tokenizer", "train", "near.txt", "--out", "tokenizer", "--vocab-size", "200")
    for name in ("near", "far"):
        options = ("--tokenizer", "tokenizer", "--out", name, "--valid-share", "0.1")
        run_litebert(tree, folder, "corpus", "build", f"{name}.txt", *options)


def compare(before: Path, folder: Path, name: str, arguments: list[str]) -> list[str]:
    """The files in which the runs of a recipe differ: new in both versions, and resumed by this one."""
    theirs, ours, resumed = (folder / f"{name}-{kind}" for kind in ("before", "new", "resumed"))
    run_litebert(before, folder, "pretrain", *arguments, "--out", theirs.name)
    shutil.copytree(theirs, resumed)
    _, *later = sorted((resumed / "checkpoints").iterdir())
    for checkpoint in later:
        shutil.rmtree(checkpoint)
    for run in (ours, resumed):
        run_litebert(OURS, folder, "pretrain", *arguments, "--out", run.name)
    files = [path.relative_to(theirs) for path in sorted(theirs.rglob("*.safetensors")) if ".tmp" not in path.parts]
    print(f"{name}: comparing metrics.jsonl and {len(files)} files of weights and optimizer states")
    return [
        f"{run.name}/{file} differs"
        for run in (ours, resumed)
        for file in (Path("metrics.jsonl"), *files)
        if (run / file).read_bytes() != (theirs / file).read_bytes()
    ]


if __name__ == "__main__":
    main()
