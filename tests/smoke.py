"""What `make package` asks of an installed package without extras: from text to an answer, and the command.

python tests/smoke.py FOLDER
"""

import random
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import litebert


def main(folder: Path) -> None:
    rng = random.Random(1)
    words = ["".join(rng.choices("aeioubdfgklmnprst", k=rng.randint(2, 7))) for _ in range(600)]
    (folder / "text").mkdir(parents=True)
    for number in range(30):
        sentences = [" ".join(rng.choices(words, k=9)).capitalize() + "." for _ in range(8)]
        (folder / "text" / f"{number}.txt").write_text("\n".join(sentences), "utf-8")

    tokenizer = litebert.train_tokenizer(folder / "text", folder / "tokenizer", vocab_size=200)
    corpus = litebert.build_corpus(folder / "text", folder / "corpus", tokenizer=tokenizer, valid_share=0.2)
    changes = {"data.corpora": corpus, "model.vocab_size": 200, "train.steps": 2, "schedule.warmup_steps": 1}
    run = litebert.pretrain("nano", {**changes, "stages": []}, out=folder / "run")
    (guesses,) = litebert.load(run).fill_mask("One [MASK] of text.", top_k=3)
    assert len(guesses) == 3, guesses

    command = Path(sys.executable).parent / "litebert"
    printed = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    assert printed == f"litebert {version('litebert')}\n", printed
    subprocess.run([command, "doctor", run.checkpoint], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
