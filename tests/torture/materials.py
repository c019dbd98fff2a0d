"""What the campaign's jobs read: text, tokenizer, corpus, checkpoint, labelled rows, recipes. Built once per folder."""

import random
from dataclasses import replace
from pathlib import Path

from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.core.files import atomic_directory
from litebert.corpus.build import BuildOptions, build_corpus
from litebert.model.model import build_model
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer
from tests.small_configs import TINY
from tests.small_tasks import find_animal, invent_rows, write_rows

WORDS = "the a small large old new cat dog bird house tree river sees likes finds leaves follows and or but near below"
RECIPE = """
seed = 3
[model]
vocab_size = 100
embedding_size = 8
hidden_size = 16
ffn_size = 24
num_layers = 2
num_heads = 2
max_positions = 32
[data]
corpora = ["{corpus}"]
[segments]
max_length = 32
[batch]
sequences = 8
[train]
steps = 8
save_every = 2
evaluate_every = 4
evaluate_batches = 1
log_every = 1
micro_batch = 4
[schedule]
warmup_steps = 2
[optim]
learning_rate = 0.01
"""
STUDY = """
title = "Masking rate"
source = "ours"
about = "A study to be killed."
columns = ["mlm", "sop", "sst-2"]
[grid]
"masking.rate" = [0.15, 0.4]
[laptop]
recipe = "laptop"
seeds = [1]
measures = ["parameters", "intrinsic"]
pairs = 48
length = 32
[laptop.change]
model = { vocab_size = 100, hidden_size = 16, embedding_size = 16, ffn_size = 32, num_layers = 2, max_positions = 32 }
segments = { max_length = 32 }
batch = { sequences = 8 }
schedule = { warmup_steps = 2 }
train = { steps = 8, save_every = 4, evaluate_every = 4, evaluate_batches = 2, log_every = 1 }
[[laptop.tasks]]
task = "sst-2"
data = "glue"
change = ["train.steps=8", "train.evaluations=2", "train.batch_size=8", "train.max_length=24"]
"""


def build_materials(folder: Path) -> Path:
    """Build everything into a folder that does not exist yet; an existing one is returned as it is."""
    if folder.exists():
        return folder
    documents = [_invent_document(random.Random(number)) for number in range(300)]
    with atomic_directory(folder) as made:
        (made / "text").mkdir()
        for number in range(3):
            text = "\n\n".join(documents[number::3])
            (made / "text" / f"{number}.txt").write_text(text, "utf-8")
        tokenizer = train_tokenizer("\n".join(documents).split("\n"), VocabularyOptions("wordpiece", vocab_size=100))
        tokenizer.save(made / "tokenizer")
        options = BuildOptions(valid_share=0.1, is_quiet=True)
        build_corpus([str(made / "text")], tokenizer, made / "corpus", options)
        config = replace(TINY, initializer_range=0.02)
        model = build_model(config, ["mlm", "sentence"])
        save_checkpoint(made / "checkpoint", model, tokenizer, CheckpointContent(step=0))
        write_rows(made / "rows", invent_rows())
        write_rows(made / "tasks" / "glue" / "SST-2", invent_rows(lambda words: int(find_animal(words) == "cat")))
        (made / "recipe.toml").write_text(RECIPE.format(corpus=folder / "corpus"), "utf-8")
        (made / "study.toml").write_text(STUDY, "utf-8")
    return folder


def _invent_document(rng: random.Random) -> str:
    sentences = (" ".join(rng.choices(WORDS.split(), k=rng.randint(3, 9))) for _ in range(rng.randint(2, 9)))
    return "\n".join(f"{sentence.capitalize()}." for sentence in sentences)
