"""A sentence-transformers folder: the encoder, and how a text becomes one vector.

modules.json                    the modules in order: Transformer, Pooling, and optionally Normalize
1_Pooling/config.json           how the last hidden states are pooled
sentence_bert_config.json       the maximum number of tokens, in the folder of the Transformer
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from litebert.core.errors import DataError
from litebert.core.files import parse_json_value, read_json, write_json
from litebert.interop.own_files import checked_file
from litebert.model.config import Pooling
from litebert.model.pooling import EmbeddingSpec

MODULES_FILE = "modules.json"
_MAX_NAME = 255  # the longest file name, in bytes, that a file system accepts
PROMPTS_FILE = "config_sentence_transformers.json"
LENGTH_FILE = "sentence_bert_config.json"
POOLING_FOLDER = "1_Pooling"
_MODULE = "sentence_transformers.models"
# our pooling modes -> the keys of their Pooling
_FLAGS: dict[Pooling, str] = {
    "mean": "pooling_mode_mean_tokens",
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
}


@dataclass(frozen=True)
class SentenceFolder:
    """Where the encoder is, how its embeddings are made, and notes for the user."""

    encoder: Path
    embedding: EmbeddingSpec
    lowers_case: bool  # before tokenization
    notes: tuple[str, ...]


def read_sentence_folder(folder: Path) -> SentenceFolder | None:
    """Read modules.json; None if there is none. Modules that litebert cannot compute raise an error."""
    if not (folder / MODULES_FILE).exists():
        return None
    modules = _read_modules(checked_file(folder, MODULES_FILE))
    kinds = [kind for kind, _ in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise DataError(
            "unsupported-sentence-module",
            f"{folder / MODULES_FILE}: the modules {', '.join(kinds) or '(none)'} are not supported, only "
            "Transformer, Pooling and optionally Normalize; to load only the encoder, give its weights file",
        )
    encoder = _enter(folder, modules[0][1])
    pooling = _read_pooling(_enter(folder, modules[1][1]))
    stated = _read_lengths(encoder)
    spec = EmbeddingSpec(pooling, "Normalize" in kinds, _read_max_length(encoder, stated))
    return SentenceFolder(encoder, spec, stated.get("do_lower_case") is True, _note_prompts(folder))


def write_sentence_folder(spec: EmbeddingSpec, folder: Path, *, hidden_size: int, max_positions: int) -> None:
    """Write what `read_sentence_folder` reads next to an encoder in Hugging Face's layout."""
    modules = [("Transformer", ""), ("Pooling", POOLING_FOLDER)]
    modules += [("Normalize", "2_Normalize")] if spec.normalize else []
    listed = [
        {"idx": number, "name": str(number), "path": path, "type": f"{_MODULE}.{kind}"}
        for number, (kind, path) in enumerate(modules)
    ]
    (folder / MODULES_FILE).write_text(json.dumps(listed, indent=2) + "\n", "utf-8")
    (folder / POOLING_FOLDER).mkdir()
    flags = {flag: pooling == spec.pooling for pooling, flag in _FLAGS.items()}
    write_json(folder / POOLING_FOLDER / "config.json", {"word_embedding_dimension": hidden_size, **flags})
    length = min(spec.max_length or max_positions, max_positions)
    write_json(folder / LENGTH_FILE, {"max_seq_length": length, "do_lower_case": False})


def _read_modules(file: Path) -> list[tuple[str, str]]:
    """The kind and the folder of each module."""
    try:
        listed = parse_json_value(file.read_bytes(), str(file))
        return [(str(one["type"]).rpartition(".")[2], str(one["path"])) for one in listed]
    except (DataError, KeyError, TypeError):
        raise DataError("corrupt-file", f"{file} must be a list of modules with path and type") from None


def _enter(folder: Path, name: str) -> Path:
    """A module's folder: this one or one inside it."""
    inside = folder / name
    if len(name.encode(errors="replace")) > _MAX_NAME or (
        name and (name != Path(name).name or name in (".", "..") or not inside.is_dir() or inside.is_symlink())
    ):
        raise DataError(
            "missing-file",
            f"{folder / MODULES_FILE} names a missing folder '{name[:80]}'; was the model copied completely?",
        )
    return inside


def _read_pooling(folder: Path) -> Pooling:
    file = checked_file(folder, "config.json")
    stated = read_json(file)
    named = stated.get("pooling_mode")  # the key of newer files
    if named is None:
        chosen = [key for key, value in stated.items() if key.startswith("pooling_mode_") and value is True]
        chosen += [_FLAGS["mean"]] if stated.get(_FLAGS["mean"], True) and _FLAGS["mean"] not in chosen else []
    else:
        chosen = [named] if isinstance(named, str) else list(named) if isinstance(named, list) else [str(named)]
    for pooling in get_args(Pooling):
        if chosen in ([pooling], [_FLAGS[pooling]]):
            found: Pooling = pooling
            return found
    raise DataError(
        "unsupported-sentence-module",
        f"{file}: the pooling {', '.join(map(str, chosen)) or '(none)'} is not supported; supported: "
        f"{', '.join(_FLAGS.values())}; to load only the encoder, give its weights file",
    )


def _read_lengths(encoder: Path) -> Mapping[str, Any]:
    """sentence_bert_config.json, which may also be named after other families."""
    found = sorted(encoder.glob("sentence_*_config.json"))
    return read_json(checked_file(encoder, found[0].name)) if found else {}


def _read_max_length(encoder: Path, stated: Mapping[str, Any]) -> int | None:
    """The stated maximum length; without one the tokenizer's, as in sentence-transformers."""
    length = stated.get("max_seq_length")
    if length is None and (encoder / "tokenizer_config.json").is_file():
        length = read_json(checked_file(encoder, "tokenizer_config.json")).get("model_max_length")
    is_number = isinstance(length, int | float) and not isinstance(length, bool)
    if length is None or (is_number and length > 2**31):  # transformers' placeholder for "not known"
        return None
    if not isinstance(length, int) or not is_number or length < 3:
        raise DataError(
            "bad-value", f"{encoder / LENGTH_FILE}: max_seq_length = {length!r:.40} must be a number above 2"
        )
    return length


def _note_prompts(folder: Path) -> tuple[str, ...]:
    if not (folder / PROMPTS_FILE).is_file():
        return ()
    stated = read_json(checked_file(folder, PROMPTS_FILE))
    prompts, name = stated.get("prompts"), stated.get("default_prompt_name")
    if not isinstance(prompts, dict) or not any(prompts.values()):
        return ()
    default = f"; sentence-transformers adds '{name}' by default" if name else ""
    return (
        f"{PROMPTS_FILE} has prompts ({', '.join(map(str, prompts))}), which litebert does not add to texts{default}",
    )
