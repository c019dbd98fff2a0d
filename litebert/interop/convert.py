"""Model conversion: any supported model becomes a litebert checkpoint or a Hugging Face folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from litebert.checkpoint import (
    WEIGHTS,
    Checkpoint,
    CheckpointContent,
    list_special_ids,
    save_checkpoint,
    write_tensors,
)
from litebert.core.errors import ConfigError
from litebert.core.files import atomic_directory, read_json, write_json
from litebert.interop.card import CARD, read_card, read_licence_files
from litebert.interop.foreign_task import KEPT_KINDS, OUR_KEY
from litebert.interop.huggingface import CONFIG_FILE
from litebert.interop.layout import to_theirs
from litebert.interop.lengthening import Lengthening
from litebert.interop.matching import list_some
from litebert.interop.names import (
    CLASS_PREFIX,
    CLASS_SUFFIX,
    Family,
    find_family,
    name_table,
    their_config,
    their_labels,
)
from litebert.interop.opening import load_checkpoint
from litebert.interop.resharing import average_config, average_weights, check_reshares, unroll_config, unroll_weights
from litebert.interop.sentence_folder import write_sentence_folder
from litebert.interop.source import LoadOptions, Source
from litebert.interop.statistics import check_has_content, find_empty
from litebert.interop.tokenizer_files import write_tokenizer_files
from litebert.interop.truncating import truncate
from litebert.interop.vocabulary_notes import note_vocabulary
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.heads import NEEDS_POOLER
from litebert.model.model import build_model
from litebert.tasks.catalog import restore_task
from litebert.text.tokenizer import Tokenizer

Target = Literal["litebert", "huggingface", "sentence-transformers"]
StoredType = Literal["float32", "float16", "bfloat16"]
LABEL_KEYS = ("id2label", "label2id", "problem_type")
_NUMBER = "heads.classification.output"  # the head of a regression model


@dataclass(frozen=True)
class ConvertOptions:
    """Options of a conversion."""

    to: Target = "litebert"
    keeps_slots: bool = False  # also the optimizer's moments, so that training can be resumed
    heads: tuple[str, ...] | None = None  # which heads to keep; None = all
    layers: int = 0  # keep only the first N layers; 0 = all
    sharing: str = ""  # none = each layer gets its own blocks, all = one averaged block; empty = unchanged
    dtype: StoredType | None = None  # of the stored weights; None = unchanged
    lengthening: Lengthening = field(default_factory=Lengthening)  # for longer texts


@dataclass(frozen=True)
class Conversion:
    """The files that were written, with notes for the user."""

    path: Path
    written_as: str  # "litebert", or the transformers class
    num_parameters: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Parts:
    """A model during conversion: its configuration, its weights and the notes so far."""

    config: ModelConfig
    heads: tuple[HeadSpec, ...]
    weights: dict[str, Tensor]
    notes: tuple[str, ...] = ()


def convert(
    source: str | Path, out: Path, options: ConvertOptions = ConvertOptions(), load_options: LoadOptions = LoadOptions()
) -> Conversion:
    """Convert a model; `out` appears only when it is complete."""
    _check_options(options, out)
    checkpoint = load_checkpoint(source, load_options)
    if options.to == "sentence-transformers":
        options, checkpoint = replace(options, heads=()), _state_embedding(checkpoint)
    cut = truncate(checkpoint, options.layers) if options.layers else checkpoint
    tokenizer = checkpoint.load_tokenizer() if load_options.needs_tokenizer else None
    heads = _choose_heads(checkpoint.heads, options.heads)
    # fail before reading gigabytes if the model cannot be written
    plan = _plan_export(_changed_config(cut.config, options), heads, tokenizer, cut.layout, options)
    parts = _read_parts(
        cut, heads, options, notes=(*_note_source(checkpoint, cut), *_note_tokenizer(tokenizer, cut.config))
    )
    if plan is None:
        return _write_litebert(checkpoint, parts, tokenizer, out, options)
    return _write_huggingface(checkpoint, parts, plan, tokenizer, out)


def _check_options(options: ConvertOptions, out: Path) -> None:
    if out.exists():
        raise ConfigError(
            "output-exists", f"{out} already exists: choose another name, or overwrite it", option="overwrite"
        )
    if options.sharing:
        check_reshares(options.sharing)
    changes = options.sharing or options.layers or options.dtype or options.lengthening.is_some
    if options.to == "sentence-transformers" and options.heads:
        raise ConfigError(
            "conflicting-options",
            "a sentence-transformers folder has no heads: leave heads out, or convert to huggingface",
        )
    if options.keeps_slots and (options.to != "litebert" or changes):
        raise ConfigError(
            "conflicting-options",
            "optimizer state can be kept only when the model is unchanged and written in litebert's format",
        )


def _state_embedding(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint with the way it makes vectors, which the modules of sentence-transformers state."""
    length = checkpoint.find_max_length("embedding")
    return replace(checkpoint, embedding=replace(checkpoint.embedding_spec, max_length=length))


def _choose_heads(heads: tuple[HeadSpec, ...], wanted: tuple[str, ...] | None) -> tuple[HeadSpec, ...]:
    if wanted is None:
        return heads
    missing = set(wanted) - {spec.kind for spec in heads}
    if missing:
        raise ConfigError(
            "no-head",
            f"heads: the model does not have {', '.join(sorted(missing))}; "
            f"it has {', '.join(s.kind for s in heads) or 'none'}",
        )
    return tuple(spec for spec in heads if spec.kind in wanted)


def _changed_config(config: ModelConfig, options: ConvertOptions) -> ModelConfig:
    config = options.lengthening.change_config(config)
    return {"none": unroll_config, "all": average_config}.get(options.sharing, lambda same: same)(config)


def _note_source(checkpoint: Checkpoint, cut: Checkpoint) -> tuple[str, ...]:
    """Notes about the source and which layers of it were kept."""
    notes = checkpoint.foreign.notes if isinstance(checkpoint.foreign, Source) else ()
    if cut is checkpoint:
        return notes
    kept, all_layers = cut.config.num_layers, checkpoint.config.num_layers
    return (*notes, f"truncated to {kept} of {all_layers} layers: results of the full model do not apply to it")


def _read_parts(
    checkpoint: Checkpoint, heads: tuple[HeadSpec, ...], options: ConvertOptions, *, notes: tuple[str, ...]
) -> _Parts:
    """The source's weights with the requested heads and sharing."""
    dropped = tuple(f"heads.{spec.kind}." for spec in checkpoint.heads if spec not in heads)
    weights = {name: t for name, t in checkpoint.load_weights().items() if not name.startswith(dropped or ("-",))}
    check_has_content(weights, checkpoint.path)
    notes += tuple(f"{what}: {list_some(names)}" for what, names in find_empty(weights).items())
    if dropped:
        notes += (f"dropped heads: {', '.join(name.split('.')[1] for name in dropped)}",)
    if (lengthening := options.lengthening).is_some:
        weights = lengthening.change_weights(weights, checkpoint.config)
        notes += lengthening.notes(checkpoint.config)
    parts = _Parts(lengthening.change_config(checkpoint.config), heads, weights, notes)
    if options.sharing == "none":
        parts = _unrolled(parts)
    elif options.sharing == "all":
        note = "the shared block is the average of all layers: this is only an initialization and must be trained"
        weights = average_weights(parts.config, parts.weights)
        parts = replace(parts, config=average_config(parts.config), weights=weights, notes=(*parts.notes, note))
    return parts if options.dtype is None else _rounded(parts, options.dtype)


def _rounded(parts: _Parts, dtype: StoredType) -> _Parts:
    """The parts with their weights in another storage dtype; computations stay in float32."""
    weights = {name: tensor.to(getattr(torch, dtype)) for name, tensor in parts.weights.items()}
    lost = [name for name, tensor in weights.items() if not bool(tensor.isfinite().all())]
    if lost:
        raise ConfigError(
            "value-overflow",
            f"dtype: {list_some(lost)} has values that do not fit {dtype}; use bfloat16 or float32",
        )
    furthest = max(
        float((weights[name].float() - tensor.float()).abs().max()) for name, tensor in parts.weights.items()
    )
    note = f"weights are stored as {dtype}; the largest rounding error is {furthest:.1e}"
    return replace(parts, weights=weights, notes=(*parts.notes, note))


def _unrolled(parts: _Parts) -> _Parts:
    weights = unroll_weights(parts.config, parts.weights)
    return replace(parts, config=unroll_config(parts.config), weights=weights)


@dataclass(frozen=True)
class _Export:
    """How a model is written for transformers."""

    family: Family
    is_unrolled: bool
    has_pooler: bool
    notes: tuple[str, ...]


def _plan_export(
    config: ModelConfig,
    heads: Sequence[HeadSpec],
    tokenizer: Tokenizer | None,
    prefers: Family | None,
    options: ConvertOptions,
) -> _Export | None:
    """The transformers class that computes exactly this model; None if the output is a litebert checkpoint."""
    if options.to == "litebert":
        return None
    kinds = frozenset(spec.kind for spec in heads)
    if kinds not in CLASS_SUFFIX:
        known = " | ".join("+".join(sorted(k)) or "none" for k in CLASS_SUFFIX)
        raise ConfigError(
            "no-transformers-class",
            f"transformers has no class with the heads {', '.join(sorted(kinds))} (it has {known}); choose heads",
        )
    notes: tuple[str, ...] = ()
    if not kinds and not config.has_pooler:
        notes += (
            "this model has no pooler, so transformers initializes one at random: load it with "
            "add_pooling_layer=False, or ignore pooler_output",
        )
    if config.has_pooler and kinds and not kinds & NEEDS_POOLER:
        notes += ("the pooler is dropped: no head uses it, and the transformers class has none",)
        config = replace(config, has_pooler=False)
    family = _find_family(config, heads, tokenizer, prefers)
    if family is not None:
        return _Export(family, False, config.has_pooler, (*notes, *_tokenizer_notes(tokenizer)))
    unrolled = unroll_config(config)
    family = _find_family(unrolled, heads, tokenizer, prefers)
    if family is None:
        raise ConfigError("no-transformers-class", _reason(unrolled, heads))
    notes += (
        f"transformers has no sharing = '{config.sharing}': written as {unrolled.num_layers} separate layers, "
        "which compute the same",
    )
    return _Export(family, True, config.has_pooler, (*notes, *_tokenizer_notes(tokenizer)))


def _find_family(
    config: ModelConfig, heads: Sequence[HeadSpec], tokenizer: Tokenizer | None, prefers: Family | None
) -> Family | None:
    # a model that is not exactly RoBERTa may still be BERT or ALBERT, which do not depend on the padding id
    family = tokenizer and find_family(config, heads, pad_id=tokenizer.pad_id, prefers=prefers)
    return family or find_family(config, heads, prefers=prefers)


def _reason(config: ModelConfig, heads: Sequence[HeadSpec]) -> str:
    try:
        name_table("albert", config, heads)
    except ConfigError as error:
        return f"transformers cannot express this model: {error}"
    return "transformers cannot express this model"


def _note_tokenizer(tokenizer: Tokenizer | None, config: ModelConfig) -> tuple[str, ...]:
    if tokenizer is None:
        return ("no tokenizer: the model takes token ids, not text",)
    return note_vocabulary(tokenizer, config.vocab_size)


def _tokenizer_notes(tokenizer: Tokenizer | None) -> tuple[str, ...]:
    """A note if the digit-comma rule splits pieces of the vocabulary: transformers gives such texts other ids."""
    if tokenizer is None or tokenizer.settings.get("digit_comma", "off") == "off":
        return ()
    vocabulary = tokenizer.pieces(range(tokenizer.vocab_size))
    cut = [piece for piece in vocabulary if piece.endswith(",") and piece[-2:-1].isdigit()]
    if not cut:
        return ()
    return (
        f"tokenizer: litebert splits the {len(cut):,} pieces of digits with a comma, such as '{cut[0]}', before the "
        "comma; transformers cannot, so texts with these pieces get other ids there",
    )


def _write_litebert(
    checkpoint: Checkpoint, parts: _Parts, tokenizer: Tokenizer | None, out: Path, options: ConvertOptions
) -> Conversion:
    optimizer = checkpoint.load_optimizer() if options.keeps_slots else None
    content = CheckpointContent(
        step=checkpoint.step,
        recipe_toml=checkpoint.recipe_toml,
        card=_card(checkpoint, parts.notes),
        licences=read_licence_files(_folder_of(checkpoint)),
        at_chance=[kind for kind in checkpoint.at_chance if kind in {spec.kind for spec in parts.heads}],
        state=checkpoint.state,
        optimizer=optimizer,
        task=checkpoint.task if parts.heads == checkpoint.heads else None,
        embedding=checkpoint.embedding,
    )
    model = build_model(parts.config, parts.heads, device="meta")
    save_checkpoint(out, model, tokenizer, content, parts.weights)
    return Conversion(out, "litebert", _count(parts.weights), parts.notes)


def _write_huggingface(
    checkpoint: Checkpoint, parts: _Parts, plan: _Export, tokenizer: Tokenizer | None, out: Path
) -> Conversion:
    if plan.is_unrolled:
        parts = _unrolled(parts)
    parts, kept_task = _with_task(checkpoint, parts)
    config = replace(parts.config, has_pooler=plan.has_pooler)
    kept = {name: t for name, t in parts.weights.items() if plan.has_pooler or not name.startswith("encoder.pooler.")}
    values = (
        their_config(plan.family, config, parts.heads, list_special_ids(tokenizer))
        | _labels(checkpoint, parts.heads)
        | kept_task
    )
    notes = (*parts.notes, *plan.notes)
    with atomic_directory(out) as temporary:
        write_json(temporary / CONFIG_FILE, values)
        if tokenizer is not None:
            task = checkpoint.task if parts.heads == checkpoint.heads else None
            length = min((task or {}).get("max_length", config.max_positions), config.max_positions)
            write_tokenizer_files(tokenizer, temporary, has_segments=config.num_segments > 1, max_length=length)
        if checkpoint.embedding is not None:
            size, positions = config.hidden_size, config.max_positions
            write_sentence_folder(checkpoint.embedding, temporary, hidden_size=size, max_positions=positions)
        tensors = to_theirs(plan.family, config, parts.heads, kept)
        write_tensors(tensors, temporary / WEIGHTS)
        (temporary / CARD).write_text(_card(checkpoint, notes), "utf-8")
        for name, text in read_licence_files(_folder_of(checkpoint)).items():
            (temporary / name).write_bytes(text)
    kinds = frozenset(spec.kind for spec in parts.heads)
    return Conversion(out, CLASS_PREFIX[plan.family] + CLASS_SUFFIX[kinds], _count(kept), notes)


def _with_task(checkpoint: Checkpoint, parts: _Parts) -> tuple[_Parts, dict[str, Any]]:
    """The parts as other programs expect them, and the task facts that config.json keeps for litebert.

    Our regression head predicts standard deviations from the mean; theirs predicts the number itself.
    """
    facts = checkpoint.task
    if facts is None or facts["kind"] not in KEPT_KINDS or parts.heads != checkpoint.heads:
        return parts, {}
    if facts["kind"] == "regression":
        center, scale = facts["center"], facts["scale"]
        weight, bias = (parts.weights[f"{_NUMBER}.{name}"] for name in ("weight", "bias"))
        scaled = {"weight": weight.float() * scale, "bias": bias.float() * scale + center}
        weights = {f"{_NUMBER}.{name}": tensor.to(weight.dtype) for name, tensor in scaled.items()}
        for name, tensor in weights.items():
            if not bool(tensor.isfinite().all()):
                raise ConfigError(
                    "value-overflow",
                    f"{name}, rescaled to the units of the answers, is too large for {weight.dtype}; use float32",
                )
        parts = replace(parts, weights=parts.weights | weights)
        facts = {**facts, "center": 0.0, "scale": 1.0}
    return parts, {OUR_KEY: {"task": facts}}


def _labels(checkpoint: Checkpoint, heads: Sequence[HeadSpec]) -> dict[str, Any]:
    """The label keys of config.json: from the task if there is one, else from the source's own config.json."""
    if checkpoint.task is not None:
        task = restore_task(checkpoint.task, where=str(checkpoint.path))
        return their_labels(checkpoint.task) if set(task.heads) <= set(heads) else {}
    if isinstance(checkpoint.foreign, Source):
        stated: Mapping[str, Any] = checkpoint.foreign.stated
    else:
        file = checkpoint.path / CONFIG_FILE
        stated = read_json(file) if file.is_file() else {}
    labels = stated.get("id2label")
    if not isinstance(labels, dict) or len(labels) not in {spec.num_labels for spec in heads}:
        return {}
    return {key: stated[key] for key in LABEL_KEYS if key in stated}


def _count(weights: Mapping[str, Tensor]) -> int:
    return sum(tensor.numel() for tensor in weights.values())


def _card(checkpoint: Checkpoint, notes: Sequence[str]) -> str:
    """The model card: where the model comes from, and the notes of the conversion."""
    if checkpoint.foreign is None and (checkpoint.path / CARD).is_file():
        noted = "".join(f"\n- {note}" for note in notes)
        return (checkpoint.path / CARD).read_text("utf-8") + (f"\n## Converted\n{noted}\n" if notes else "")
    original = read_card(_folder_of(checkpoint))
    title = f"{original.rstrip()}\n\n## Converted" if original else f"# {checkpoint.path.name}"
    lines = [title, "", f"Converted by litebert from `{checkpoint.path.name}`."]
    lines += [f"- {note}" for note in notes]
    return "\n".join(lines) + "\n"


def _folder_of(checkpoint: Checkpoint) -> Path:
    return checkpoint.path if checkpoint.path.is_dir() else checkpoint.path.parent
