"""Open a Hugging Face folder of ALBERT, BERT, RoBERTa or a relative, and determine its model."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from litebert.core.errors import DataError
from litebert.core.files import read_json
from litebert.interop.matching import Place, Store, Stored, match, note_rounding
from litebert.interop.names import (
    CLASS_SUFFIX,
    EMBEDDINGS,
    HEADS,
    LABELLED_KINDS,
    POOLER,
    POSITIONS,
    PROJECTION,
    ROBERTA_DEAD_ROWS,
    SEGMENTS,
    Family,
    name_table,
)
from litebert.interop.other_models import FAMILIES, read_model_type
from litebert.interop.own_files import check_tokenizer_files, checked_file
from litebert.interop.source import LoadOptions, Partial, Source, blame_heads, model_shapes, note_partial
from litebert.interop.tensor_files import open_tensor_files
from litebert.interop.their_config import check_size, read_their_config
from litebert.model.config import HeadKind, HeadSpec, ModelConfig

CONFIG_FILE = "config.json"
_PLAIN_CLASSIFIERS: tuple[HeadKind, ...] = ("classification", "tokens", "choice")
# Second names under which a file may repeat a tensor, because their module has it twice -> the first name.
TIED: dict[Family, dict[str, str]] = {
    "albert": {
        "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    },
    "bert": {
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    "roberta": {
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    "ernie": {
        "cls.predictions.decoder.weight": "ernie.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    "electra": {"generator_lm_head.weight": "electra.embeddings.word_embeddings.weight"},
    "distilbert": {"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"},
}
# Heads that none of ours computes: the first tensors, by which one is recognized -> all of its prefixes
_OTHER_HEADS: dict[Family, dict[str, tuple[str, ...]]] = {
    "electra": {
        "classifier.dense.": ("classifier.",),  # GELU instead of our pooler's tanh
        "sequence_summary.": ("sequence_summary.", "classifier."),
    },
    "distilbert": {"pre_classifier.": ("pre_classifier.", "classifier.")},  # ReLU
}
_REPLACED_TOKENS = "discriminator_predictions."  # ELECTRA's own pre-training task, which has no use after pre-training
_GELU_MLM: tuple[Family, ...] = ("roberta", "electra")  # the masked-LM head always uses gelu


def open_huggingface(folder: Path, load_options: LoadOptions = LoadOptions(), named: str | None = None) -> Source:
    """A folder with config.json and weights, or one `named` weight file; `mismatch` tells whether it is complete."""
    stated = read_json(checked_file(folder, CONFIG_FILE))
    family = _read_family(stated, folder)
    store = _with_official_names(open_tensor_files(folder, named), family, folder)
    notes: list[str] = []
    store, ignored = _drop_repeated(store, family, folder, notes)
    store = _drop_other_heads(store, family, load_options, folder, notes)
    expected = _expected_heads(stated)
    heads, partial = _find_heads(store, family, expected, load_options, folder)
    config = read_their_config(stated, family, "huggingface", folder / CONFIG_FILE)
    check_size(config, heads, store, folder / CONFIG_FILE)
    if family == "distilbert":
        store = _with_zero_segments(store, config)
        notes.append("distilbert has no segments: both rows of the table are zero")
    if family == "ernie" and stated.get("use_task_id"):
        store = _with_first_task(store, folder)
        notes.append("the vector of task id 0, which transformers adds by default, was added to the segments")
    config = replace(config, has_pooler=_has_pooler(store, family, heads))
    config, unread = _settle(config, family, store, heads, notes)
    places = {ours: Place(theirs) for ours, theirs in name_table(family, config, heads).items()}
    if family == "roberta":
        config, places = _as_roberta_reads(config, places, notes)
    mismatch = match(places, model_shapes(config, heads), store, (ignored | unread).union(*partial.values()))
    lost = {kind for kind in expected & HEADS[family].keys() if kind not in {spec.kind for spec in heads}}
    if load_options.allows_missing_heads:
        absent = sorted(lost - partial.keys())
        notes += note_partial(partial) + [
            f"the weights have no {kind} head, although {CONFIG_FILE} names it" for kind in absent
        ]
        lost = set()
    of_heads = {name for kind in (*lost, *(spec.kind for spec in heads)) for name in _tensors_of_head(family, kind)}
    mismatch = blame_heads(mismatch, of_heads - store.tensors.keys())
    return Source(
        path=folder / named if named else folder,
        kind="huggingface",
        family=family,
        config=config,
        heads=heads,
        store=store,
        places=places,
        slots={},
        mismatch=mismatch,
        step=0,
        tokenizer_path=load_options.tokenizer or _find_tokenizer(folder),
        stated=stated,
        notes=(*notes, *note_rounding(store)),
    )


def _read_family(stated: Mapping[str, Any], folder: Path) -> Family:
    return read_model_type(stated.get("model_type") or _type_of_class(stated), folder / CONFIG_FILE)


def _type_of_class(stated: Mapping[str, Any]) -> str | None:
    """The model type of files from before `model_type` existed, by the class name."""
    name = _class_name(stated).lower()
    return next((model_type for model_type in FAMILIES if name.startswith(model_type.replace("-", ""))), None)


_BASE_MODULES = ("embeddings.", "embeddings_project.", "encoder.", "transformer.", "pooler.")


def _with_official_names(store: Store, family: Family, folder: Path) -> Store:
    """The store under current names: with the family as prefix, and weight and bias instead of gamma and beta."""
    real_names: dict[str, str] = {}
    for name in store.tensors:
        official = name.removeprefix("module.").removeprefix("model.")
        if official.startswith(_BASE_MODULES):  # a model without heads has no family prefix
            official = f"{family}.{official}"
        if official.endswith((".gamma", ".beta")):
            official = official.removesuffix(".gamma").removesuffix(".beta") + (
                ".weight" if official.endswith(".gamma") else ".bias"
            )
        if official in real_names:
            raise DataError(
                "duplicate-tensor", f"{folder}: {name} and {real_names[official]} are the same tensor under two names"
            )
        real_names[official] = name
    return replace(
        store,
        tensors={official: store.tensors[name] for official, name in real_names.items()},
        read=lambda official: store.read(real_names[official]),
    )


def _drop_repeated(store: Store, family: Family, folder: Path, notes: list[str]) -> tuple[Store, set[str]]:
    """Ignore buffers, and decoders that repeat the token embeddings; returns the store and the ignored names."""
    ignored = {name for name in store.tensors if name.endswith((".position_ids", ".token_type_ids"))}
    tensors = dict(store.tensors)
    aliases: dict[str, str] = {}
    for second, first in TIED[family].items():
        if second not in tensors:
            continue
        if first not in tensors:  # only the second name is in the file
            tensors[first] = tensors.pop(second)
            aliases[first] = second
            continue
        ignored.add(second)
        if tensors[second].shape == tensors[first].shape and torch.equal(store.read(second), store.read(first)):
            continue
        if second.endswith("weight"):
            raise DataError(
                "untied-decoder",
                f"{folder}: {second} differs from {first}: a decoder that is not tied to the "
                "token embeddings is not supported",
            )
        notes.append(f"{second} differs from {first} and is ignored, because transformers ties the two")
    return replace(store, tensors=tensors, read=lambda name: store.read(aliases.get(name, name))), ignored


def _drop_other_heads(store: Store, family: Family, load_options: LoadOptions, folder: Path, notes: list[str]) -> Store:
    """Drop heads that are computed differently from ours; raises an error unless heads may be missing."""
    dropped: list[str] = [_REPLACED_TOKENS]
    for sign, prefixes in _OTHER_HEADS.get(family, {}).items():
        if not any(name.startswith(sign) for name in store.tensors):
            continue
        if not load_options.allows_missing_heads:
            raise DataError(
                "unsupported-config",
                f"{folder}: {family}'s classifier without a tanh pooler is not supported; to load only the encoder, "
                "allow missing heads",
            )
        dropped += prefixes
    left = {name: stored for name, stored in store.tensors.items() if not name.startswith(tuple(dropped))}
    gone = sorted({name.partition(".")[0] for name in store.tensors.keys() - left.keys()})
    notes += [f"the head {name} is dropped: it is not supported" for name in gone]
    return replace(store, tensors=left)


def _with_zero_segments(store: Store, config: ModelConfig) -> Store:
    """Add a table of zeros to a model without segment embeddings, which leaves its output bit-identical."""
    name = f"distilbert.{EMBEDDINGS[SEGMENTS]}"
    shape = (config.num_segments, config.embedding_size)
    return replace(
        store,
        tensors={**store.tensors, name: Stored(shape, "float32")},
        read=lambda asked: torch.zeros(shape) if asked == name else store.read(asked),
    )


def _with_first_task(store: Store, folder: Path) -> Store:
    """The store of an ERNIE whose segments include the vector of task id 0: every token has a segment and this task."""
    tasks, segments = (f"ernie.embeddings.{kind}_type_embeddings.weight" for kind in ("task", "token"))
    found, table = store.tensors.get(tasks), store.tensors.get(segments)
    if found is None or table is None or not found.shape[:1] > (0,) or found.shape[1:] != table.shape[1:]:
        raise DataError(
            "unsupported-config",
            f"{folder}: use_task_id = true, but the weights have no {tasks} of the segments' width",
        )
    read = lambda name: store.read(name) + store.read(tasks)[0] if name == segments else store.read(name)  # noqa: E731
    return replace(store, tensors={name: one for name, one in store.tensors.items() if name != tasks}, read=read)


def _expected_heads(stated: Mapping[str, Any]) -> set[HeadKind]:
    """The heads of the class named in config.json; empty if it names no class we know."""
    if _class_name(stated) == "ElectraForPreTraining":  # it detects replaced tokens instead of predicting masked ones
        return set()
    for kinds, suffix in CLASS_SUFFIX.items():
        if kinds and _class_name(stated).endswith(suffix):
            return set(kinds)
    return set()


def _class_name(stated: Mapping[str, Any]) -> str:
    classes = stated.get("architectures")
    return str(classes[0]) if isinstance(classes, list) and classes else ""


def _find_heads(
    store: Store, family: Family, expected: set[HeadKind], load_options: LoadOptions, folder: Path
) -> tuple[tuple[HeadSpec, ...], Partial]:
    """The heads that are present, and the incomplete ones if those are to be dropped."""
    present: list[HeadSpec] = []
    partial: Partial = {}
    for kind in _candidates(store, family, expected, load_options, folder):
        wanted = _tensors_of_head(family, kind)
        there = {name for name in wanted if name in store.tensors}
        if there and there != wanted and load_options.drops_partial_heads:
            partial[kind] = there
        elif there:
            (rows, *_) = *store.tensors[min(there)].shape, 2
            present.append(HeadSpec(kind, rows) if kind in LABELLED_KINDS else HeadSpec(kind))
    return tuple(present), partial


def _candidates(
    store: Store, family: Family, expected: set[HeadKind], load_options: LoadOptions, folder: Path
) -> list[HeadKind]:
    """The kinds of head to look for; config.json or the user has to say which kind a plain classifier is."""
    kinds = [kind for kind in HEADS[family] if kind not in _PLAIN_CLASSIFIERS]
    plain = [kind for kind in _PLAIN_CLASSIFIERS if any(n in store.tensors for n in _tensors_of_head(family, kind))]
    if len(plain) > 1:
        said = [load_options.classifier] if load_options.classifier else [kind for kind in plain if kind in expected]
        if len(said) != 1 or said[0] not in plain:
            raise DataError(
                "ambiguous-head",
                f"{folder} has a classifier, and {CONFIG_FILE} does not name its task (architectures): "
                f"set classifier to {' or '.join(plain)}",
            )
        plain = [kind for kind in plain if kind == said[0]]
    return [*kinds, *plain]


def _tensors_of_head(family: Family, kind: HeadKind) -> set[str]:
    modules = HEADS[family].get(kind, {}).values()
    return {
        name
        for module in modules
        for name in ([module] if module.endswith(".bias") else [f"{module}.weight", f"{module}.bias"])
    }


def _has_pooler(store: Store, family: Family, heads: tuple[HeadSpec, ...]) -> bool:
    kinds = {spec.kind for spec in heads}
    name = "classifier.dense" if family == "roberta" and "classification" in kinds else POOLER.get(family)
    return name is not None and any(f"{name}.{leaf}" in store.tensors for leaf in ("weight", "bias"))


def _settle(
    config: ModelConfig,
    family: Family,
    store: Store,
    heads: tuple[HeadSpec, ...],
    notes: list[str],
) -> tuple[ModelConfig, set[str]]:
    """Complete the configuration from the tensors; also returns the names of tensors that nothing reads."""
    unread: set[str] = set()
    if family in _GELU_MLM and any(spec.kind == "mlm" for spec in heads) and config.activation != "gelu":
        raise DataError(
            "unsupported-config",
            f"{store.files[0].parent / CONFIG_FILE}: hidden_act = '{config.activation}', but {family}'s masked-LM "
            "head uses gelu; a model with two activations is not supported",
        )
    if family == "roberta" and any(spec.kind == "classification" for spec in heads):
        unread = {name for name in store.tensors if name.startswith(f"{POOLER[family]}.")}
        notes += [f"{name} is not used by roberta's classifier and was dropped" for name in sorted(unread)]
    if family == "albert" and config.embedding_size == config.hidden_size:
        names = {f"{PROJECTION[family]}.{leaf}" for leaf in ("weight", "bias")}
        if names <= store.tensors.keys() and not _is_identity(store, *sorted(names, reverse=True)):
            return replace(config, projection="always"), unread
        if names <= store.tensors.keys():
            unread |= names  # an identity projection is the same as none
    return config, unread


def _as_roberta_reads(
    config: ModelConfig, places: dict[str, Place], notes: list[str]
) -> tuple[ModelConfig, dict[str, Place]]:
    """Drop the unused rows: RoBERTa's positions start late, and both texts of a pair have segment 0."""
    spare_rows = config.num_segments - 1
    if spare_rows:
        notes.append(
            f"{places[SEGMENTS].name} has {spare_rows + 1} rows, but roberta's tokenizers use segment 0 for both "
            "texts: only row 0 is kept"
        )
    positions = places[POSITIONS]._replace(dead_rows=ROBERTA_DEAD_ROWS)
    segments = places[SEGMENTS]._replace(spare_rows=spare_rows)
    return replace(config, num_segments=1), places | {POSITIONS: positions, SEGMENTS: segments}


def _is_identity(store: Store, weight_name: str, bias_name: str) -> bool:
    weight, bias = store.read(weight_name), store.read(bias_name)
    return torch.equal(weight, torch.eye(len(weight), dtype=weight.dtype)) and not bool(bias.any())


def _find_tokenizer(folder: Path) -> Path | None:
    patterns = ("*.model", "tokenizer.json", "vocab*.txt", "vocab.json")
    if not any(next(folder.glob(pattern), None) for pattern in patterns):
        return None
    check_tokenizer_files(folder)
    return folder
