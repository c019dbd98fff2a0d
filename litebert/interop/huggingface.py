"""A Hugging Face folder of ALBERT, BERT or RoBERTa: which model it is, by its config.json and its tensors."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import torch

from litebert.core.errors import DataError
from litebert.core.files import read_json
from litebert.interop.matching import Place, Store, match, note_rounding
from litebert.interop.names import (
    CLASS_SUFFIX,
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
from litebert.interop.own_files import check_tokenizer_files, checked_file
from litebert.interop.source import Partial, Source, Wishes, blame_heads, model_shapes, note_partial
from litebert.interop.tensor_files import open_tensor_files
from litebert.interop.their_config import check_size, read_their_config
from litebert.model.config import HeadKind, HeadSpec, ModelConfig

CONFIG_FILE = "config.json"
_PLAIN_CLASSIFIERS: tuple[HeadKind, ...] = ("classification", "tokens", "choice")
# A tensor that a file may repeat under a second name, because their module has it twice -> the first name.
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
}


def open_huggingface(folder: Path, wishes: Wishes = Wishes(), named: str | None = None) -> Source:
    """A folder with config.json and weights, or one `named` file of them; `mismatch` tells whether it is whole."""
    stated = read_json(checked_file(folder, CONFIG_FILE))
    family = _read_family(stated, folder)
    store = _with_official_names(open_tensor_files(folder, named), family, folder)
    notes: list[str] = []
    store, ignored = _drop_repeated(store, family, folder, notes)
    expected = _expected_heads(stated)
    heads, partial = _find_heads(store, family, expected, wishes, folder)
    config = read_their_config(stated, family, "huggingface", folder / CONFIG_FILE)
    check_size(config, heads, store, folder / CONFIG_FILE)
    config = replace(config, has_pooler=_has_pooler(store, family, heads))
    config, unread = _settle(config, family, store, heads, notes)
    places = {ours: Place(theirs) for ours, theirs in name_table(family, config, heads).items()}
    if family == "roberta":
        config, places = _as_roberta_reads(config, places, notes)
    mismatch = match(places, model_shapes(config, heads), store, (ignored | unread).union(*partial.values()))
    lost = {kind for kind in expected & HEADS[family].keys() if kind not in {spec.kind for spec in heads}}
    if wishes.allows_missing_heads:
        absent = sorted(lost - partial.keys())
        notes += note_partial(partial) + [f"there is no head {kind}, which {CONFIG_FILE} names" for kind in absent]
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
        tokenizer_path=wishes.tokenizer or _find_tokenizer(folder),
        stated=stated,
        notes=(*notes, *note_rounding(store)),
    )


def _read_family(stated: Mapping[str, Any], folder: Path) -> Family:
    model_type = stated.get("model_type") or _type_of_class(stated)
    families: tuple[Family, ...] = get_args(Family)
    for family in families:
        if family == model_type:
            return family
    raise DataError(
        f"{folder / CONFIG_FILE}: model_type = '{model_type}' is not one of {', '.join(families)}: "
        "another kind of model cannot be computed here"
    )


def _type_of_class(stated: Mapping[str, Any]) -> str | None:
    """The family of files from before `model_type`, by the class's name."""
    name = _class_name(stated).lower()
    return next((family for family in get_args(Family) if name.startswith(family)), None)


def _with_official_names(store: Store, family: Family, folder: Path) -> Store:
    """The store under the names that current files have: with the family before them, and weight for gamma."""
    real_names: dict[str, str] = {}
    for name in store.tensors:
        official = name.removeprefix("module.")
        if official.startswith(("embeddings.", "encoder.", "pooler.")):  # of a model without heads
            official = f"{family}.{official}"
        if official.endswith((".gamma", ".beta")):
            official = official.removesuffix(".gamma").removesuffix(".beta") + (
                ".weight" if official.endswith(".gamma") else ".bias"
            )
        if official in real_names:
            raise DataError(f"{folder}: {name} and {real_names[official]} are the same tensor under two names")
        real_names[official] = name
    return replace(
        store,
        tensors={official: store.tensors[name] for official, name in real_names.items()},
        read=lambda official: store.read(real_names[official]),
    )


def _drop_repeated(store: Store, family: Family, folder: Path, notes: list[str]) -> tuple[Store, set[str]]:
    """What is no parameter, or is one again: buffers, and decoders that are the token table."""
    ignored = {name for name in store.tensors if name.endswith((".position_ids", ".token_type_ids"))}
    tensors = dict(store.tensors)
    aliases: dict[str, str] = {}
    for second, first in TIED[family].items():
        if second not in tensors:
            continue
        if first not in tensors:  # only the second name was written
            tensors[first] = tensors.pop(second)
            aliases[first] = second
            continue
        ignored.add(second)
        if tensors[second].shape == tensors[first].shape and torch.equal(store.read(second), store.read(first)):
            continue
        if second.endswith("weight"):
            raise DataError(
                f"{folder}: {second} is not {first}: a decoder that is not tied to the token table is not ours"
            )
        notes.append(f"{second} differs from {first} and is not read, as transformers ties the two")
    return replace(store, tensors=tensors, read=lambda name: store.read(aliases.get(name, name))), ignored


def _expected_heads(stated: Mapping[str, Any]) -> set[HeadKind]:
    """The heads of the class that config.json names; none where it names none that we know."""
    for kinds, suffix in CLASS_SUFFIX.items():
        if kinds and _class_name(stated).endswith(suffix):
            return set(kinds)
    return set()


def _class_name(stated: Mapping[str, Any]) -> str:
    classes = stated.get("architectures")
    return str(classes[0]) if isinstance(classes, list) and classes else ""


def _find_heads(
    store: Store, family: Family, expected: set[HeadKind], wishes: Wishes, folder: Path
) -> tuple[tuple[HeadSpec, ...], Partial]:
    """The heads that are there; with them those that are not whole, where such are left out."""
    present: list[HeadSpec] = []
    partial: Partial = {}
    for kind in _candidates(store, family, expected, wishes, folder):
        wanted = _tensors_of_head(family, kind)
        there = {name for name in wanted if name in store.tensors}
        if there and there != wanted and wishes.drops_partial_heads:
            partial[kind] = there
        elif there:
            (rows, *_) = *store.tensors[min(there)].shape, 2
            present.append(HeadSpec(kind, rows) if kind in LABELLED_KINDS else HeadSpec(kind))
    return tuple(present), partial


def _candidates(store: Store, family: Family, expected: set[HeadKind], wishes: Wishes, folder: Path) -> list[HeadKind]:
    """The kinds of head to look for; which one a plain classifier is has to be said by config.json or a person."""
    kinds = [kind for kind in HEADS[family] if kind not in _PLAIN_CLASSIFIERS]
    plain = [kind for kind in _PLAIN_CLASSIFIERS if any(n in store.tensors for n in _tensors_of_head(family, kind))]
    if len(plain) > 1:
        said = [wishes.classifier] if wishes.classifier else [kind for kind in plain if kind in expected]
        if len(said) != 1 or said[0] not in plain:
            raise DataError(
                f"{folder} has a classifier, and {CONFIG_FILE} does not say of what (architectures): "
                f"say --classifier {' or '.join(plain)}"
            )
        plain = [kind for kind in plain if kind == said[0]]
    return [*kinds, *plain]


def _tensors_of_head(family: Family, kind: HeadKind) -> set[str]:
    modules = HEADS[family][kind].values()
    return {
        name
        for module in modules
        for name in ([module] if module.endswith(".bias") else [f"{module}.weight", f"{module}.bias"])
    }


def _has_pooler(store: Store, family: Family, heads: tuple[HeadSpec, ...]) -> bool:
    kinds = {spec.kind for spec in heads}
    name = "classifier.dense" if family == "roberta" and "classification" in kinds else POOLER[family]
    return any(f"{name}.{leaf}" in store.tensors for leaf in ("weight", "bias"))


def _settle(
    config: ModelConfig,
    family: Family,
    store: Store,
    heads: tuple[HeadSpec, ...],
    notes: list[str],
) -> tuple[ModelConfig, set[str]]:
    """The configuration with what depends on the tensors; and those tensors that nothing reads."""
    unread: set[str] = set()
    if family == "roberta":
        if any(spec.kind == "mlm" for spec in heads) and config.activation != "gelu":
            raise DataError(
                f"{store.files[0].parent / CONFIG_FILE}: hidden_act = '{config.activation}', but roberta's head for "
                "masked words is computed with gelu: a model with two activations is not ours"
            )
        if any(spec.kind == "classification" for spec in heads):
            unread = {name for name in store.tensors if name.startswith(f"{POOLER[family]}.")}
            notes += [f"{name} is not read by roberta's classifier, and is left out" for name in sorted(unread)]
    if family == "albert" and config.embedding_size == config.hidden_size:
        names = {f"albert.{theirs}.{leaf}" for theirs in PROJECTION.values() for leaf in ("weight", "bias")}
        if names <= store.tensors.keys() and not _is_identity(store, *sorted(names, reverse=True)):
            return replace(config, projection="always"), unread
        if names <= store.tensors.keys():
            unread |= names  # their identity is our absence
    return config, unread


def _as_roberta_reads(
    config: ModelConfig, places: dict[str, Place], notes: list[str]
) -> tuple[ModelConfig, dict[str, Place]]:
    """The tables without the rows that nothing reads: positions begin late, and both sides of a pair are segment 0."""
    spare_rows = config.num_segments - 1
    if spare_rows:
        notes.append(
            f"{places[SEGMENTS].name} has {spare_rows + 1} rows, and roberta's tokenizers give 0 for both sides: "
            "row 0 is kept, the others are left out"
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
