"""The student before it learns: a model that exists, or a preset or recipe with random weights."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

from litebert.checkpoint import MANIFEST, Checkpoint, CheckpointContent, save_checkpoint
from litebert.checkpoint import load_checkpoint as load_ours
from litebert.core.errors import ConfigError
from litebert.core.options import build_options, dump_toml
from litebert.corpus.shards import Corpus
from litebert.distillation.starting import start_from_teacher
from litebert.inference.predictor import Predictor
from litebert.interop.opening import load_checkpoint
from litebert.interop.source import FOR_TRAINING
from litebert.model.config import ModelConfig
from litebert.model.model import build_model
from litebert.model.presets import ALIASES, PRESETS, preset
from litebert.pretraining.recipe import expand_preset, list_recipes, read_recipe_values
from litebert.text.tokenizer import load_tokenizer

Start = Literal["random", "teacher"]
SEED = 1  # of a new student's weights


def open_student(name: str, corpus: Corpus, folder: Path, start: Start, teacher: Predictor) -> Checkpoint:
    """The student by name: a model's path, or a preset or recipe, which is written to `folder` as a new model.

    A new model reads the corpus's tokens. It has random weights, or starts from its teacher's.
    """
    config = find_shape(name, corpus)
    if config is None:
        if start != "random":
            raise ConfigError(
                "conflicting-options",
                f"{name} has weights of its own: start = '{start}' needs a preset or a recipe",
                option="start",
            )
        return load_checkpoint(name, FOR_TRAINING)
    recipe_toml = dump_toml({"student": {"name": name, "start": start}})
    if (folder / MANIFEST).is_file():
        found = load_ours(folder)
        if found.config == config and found.recipe_toml == recipe_toml:
            return found
        raise ConfigError(
            "options-changed",
            f"{folder} has another student than {name}; repeat its options or use another folder",
            option="student",
        )
    model = build_model(config, (), seed=SEED)
    if start == "teacher":
        same = teacher.tokenizer.fingerprint == corpus.tokenizer_fingerprint
        weights, note = start_from_teacher(config, model.state_dict(), teacher.checkpoint, has_same_tokens=same)
        model.load_state_dict(weights)
        print(f"the student: {note}")
    content = CheckpointContent(step=0, recipe_toml=recipe_toml)
    save_checkpoint(folder, model, load_tokenizer(corpus.tokenizer_path), content)
    return load_ours(folder)


def find_shape(name: str, corpus: Corpus) -> ModelConfig | None:
    """The shape of a preset or a recipe with the corpus's vocabulary; None if the name is a model's."""
    if name in PRESETS or name in ALIASES:
        config = preset(name)
    elif name in list_recipes() or Path(name).suffix == ".toml":
        config = build_options(ModelConfig, expand_preset(read_recipe_values(name).get("model", {})), where="model")
    else:
        return None
    return replace(config, vocab_size=corpus.vocab_size, has_pooler=False)
