"""Open a TensorFlow checkpoint of Google's ALBERT or BERT, or a TF-Hub module, and determine which model it is."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from litebert.core.errors import DataError
from litebert.core.files import read_json
from litebert.interop.google_names import (
    COUNTERS,
    FACTOR,
    HEADS,
    LABELS_AT,
    OBJECT_GRAPH,
    SLOTS,
    STEP,
    TOKENS,
    GoogleFamily,
    Groups,
    canonical_name,
    dead_names,
    name_table,
)
from litebert.interop.matching import Place, Store, Stored, match, note_rounding
from litebert.interop.own_files import check_tokenizer_files, checked_file
from litebert.interop.source import LoadOptions, Partial, Source, blame_heads, model_shapes, note_partial
from litebert.interop.tensorflow import INDEX_SUFFIX, Bundle, open_bundle
from litebert.interop.their_config import check_size, read_google_groups, read_their_config
from litebert.model.config import HeadKind, HeadSpec, ModelConfig

CONFIG_PATTERNS = ("albert_config*.json", "bert_config*.json")
TOKENIZER_PATTERNS = ("*.model", "vocab*.txt", "*vocab.txt")
_MULTIPLIED = (
    "the two factors of the token embeddings were multiplied (E = H): this layout projects tokens before positions and "
    "segments are added"
)
LARGEST_STEP = 1 << 53  # above this, float64 cannot represent every integer
FAMILY_SCOPES: dict[GoogleFamily, str] = {"albert": "bert/encoder/transformer/group_", "bert": "bert/encoder/layer_"}


def find_bundle(path: Path) -> Path | None:
    """The bundle given by its prefix, by one of its files, or by the folder that contains it; None if there is none."""
    if path.name.endswith(INDEX_SUFFIX) and path.is_file():
        return path.with_name(path.name.removesuffix(INDEX_SUFFIX))
    if path.name and path.with_name(path.name + INDEX_SUFFIX).is_file():  # "." and "/" have no name
        return path
    if ".data-" in path.name and path.is_file():
        return path.with_name(path.name.rpartition(".data-")[0])
    for folder in (path, path / "variables"):
        found = sorted(folder.glob(f"*{INDEX_SUFFIX}")) if folder.is_dir() else []
        if len(found) > 1:
            names = ", ".join(file.name.removesuffix(INDEX_SUFFIX) for file in found)
            raise DataError(
                "ambiguous-files",
                f"{folder} has several candidates: {names}; name one, such as {folder / found[-1].stem}",
            )
        if found:
            return found[0].with_name(found[0].name.removesuffix(INDEX_SUFFIX))
    return None


def open_google(prefix: Path, load_options: LoadOptions = LoadOptions()) -> Source:
    """A bundle with its configuration; the result's `mismatch` tells whether it is complete."""
    bundle = open_bundle(prefix)
    if OBJECT_GRAPH in bundle.variables:
        raise DataError(
            "unsupported-tensorflow",
            f"{prefix} is an object-based TensorFlow 2 checkpoint, whose names are Python attributes; "
            "the official models are TensorFlow 1 checkpoints",
        )
    store, slots = _sort_variables(bundle)
    is_factored = FACTOR in store.tensors
    if is_factored:
        store = _multiply_embeddings(store, prefix)
    family = _find_family(store.tensors, prefix)
    config_file = load_options.config or _find_file(prefix, CONFIG_PATTERNS)
    if config_file is None:
        raise DataError(
            "missing-file",
            f"{prefix} has no {family}_config.json next to it; give the configuration file",
        )
    stated = read_json(config_file)
    config = read_their_config(stated, family, "google", config_file)
    if is_factored:
        config = replace(config, embedding_size=config.hidden_size)
    config = replace(config, has_pooler=any(name.startswith("bert/pooler/") for name in store.tensors))
    groups = read_google_groups(stated) if family == "albert" else None
    heads, partial = _find_heads(store, load_options, prefix)
    check_size(config, heads, store, config_file)
    table = name_table(family, config, heads, groups)
    places = {ours: Place(variable.name, variable.is_transposed) for ours, variable in table.items()}
    mismatch = match(places, model_shapes(config, heads), store, _unread(config, groups).union(*partial.values()))
    of_heads = {variable.name for spec in heads for variable in HEADS[spec.kind].values()} - store.tensors.keys()
    is_missing = not heads and not partial
    mismatch = blame_heads(mismatch, {"cls/*"} if is_missing and not load_options.allows_missing_heads else of_heads)
    return Source(
        path=prefix,
        kind="tensorflow",
        family=family,
        config=config,
        heads=heads,
        store=store,
        places=places,
        slots=_place_slots(places, slots),
        mismatch=mismatch,
        step=_read_step(bundle),
        tokenizer_path=load_options.tokenizer or _find_tokenizer(prefix),
        stated=stated,
        notes=(
            *([_MULTIPLIED] if is_factored else []),
            *_notes(groups, heads, store),
            *note_partial(partial),
            *(["there is no head"] if is_missing else []),
        ),
    )


def _read_step(bundle: Bundle) -> int:
    """The training step at which it was saved; 0 if it is not stored."""
    name = next((name for name in bundle.variables if canonical_name(name) == STEP), None)
    if name is None:
        return 0
    if bundle.variables[name].shape not in ((), (1,)):
        raise DataError(
            "corrupt-file", f"{bundle.prefix}: {name} must be a number, got shape {list(bundle.variables[name].shape)}"
        )
    step = bundle.read(name).item()
    if not 0 <= step < LARGEST_STEP:  # also rejects NaN
        raise DataError("corrupt-file", f"{bundle.prefix}: {name} = {step} is not a valid step count")
    return int(step)


def _sort_variables(bundle: Bundle) -> tuple[Store, dict[str, dict[str, str]]]:
    """The weights under their official names, and the optimizer moments: official name -> moment -> real name."""
    real_names: dict[str, str] = {}
    slots: dict[str, dict[str, str]] = {}
    for name in bundle.variables:
        official = canonical_name(name)
        base, _, last = official.rpartition("/")
        if official in COUNTERS or last in COUNTERS:
            continue
        target, key = (slots.setdefault(base, {}), SLOTS[last]) if last in SLOTS and base else (real_names, official)
        if key in target:
            raise DataError(
                "duplicate-tensor", f"{bundle.prefix}: {name} and {target[key]} are the same variable under two names"
            )
        target[key] = name
    moments = {name for by_moment in slots.values() for name in by_moment.values()}
    tensors = {
        official: Stored(bundle.variables[name].shape, bundle.variables[name].dtype_name)
        for official, name in real_names.items()
    }
    store = Store(
        tensors,
        read=lambda name: bundle.read(name if name in moments else real_names[name]),
        files=tuple(sorted(bundle.prefix.parent.glob(f"{bundle.prefix.name}.*"))),
    )
    return store, slots


def _multiply_embeddings(store: Store, prefix: Path) -> Store:
    """The store with the product of both factors as the table of tokens: [V, E] by [E, H], which computes the same."""
    first, second = (store.tensors.get(name) for name in (TOKENS, FACTOR))
    if first is None or second is None or len(first.shape) != 2 or first.shape[1:] != second.shape[:1]:
        shapes = [None if one is None else list(one.shape) for one in (first, second)]
        raise DataError(
            "unknown-model", f"{prefix}: {TOKENS} and {FACTOR} have shapes {shapes}, which cannot be multiplied"
        )
    table = Stored((first.shape[0], *second.shape[1:]), first.dtype)
    tensors = {name: stored for name, stored in store.tensors.items() if name != FACTOR} | {TOKENS: table}
    read = lambda name: store.read(TOKENS) @ store.read(FACTOR) if name == TOKENS else store.read(name)  # noqa: E731
    return replace(store, tensors=tensors, read=read)


def _place_slots(places: dict[str, Place], slots: dict[str, dict[str, str]]) -> dict[str, Place]:
    return {
        f"{ours}/{moment}": Place(name, place.is_transposed)
        for ours, place in places.items()
        for moment, name in slots.get(place.name, {}).items()
    }


def _find_family(names: Iterable[str], prefix: Path) -> GoogleFamily:
    names = list(names)
    for family, scope in FAMILY_SCOPES.items():
        if any(name.startswith(scope) for name in names):
            return family
    raise DataError(
        "unknown-model",
        f"{prefix} is not a Google ALBERT or BERT checkpoint: none of its {len(names)} variables is in "
        f"{' or '.join(f'{scope}*' for scope in FAMILY_SCOPES.values())}; the first is {min(names, default='none')}",
    )


def _find_file(prefix: Path, patterns: Iterable[str]) -> Path | None:
    """A file next to the bundle, or where a TF-Hub module keeps it."""
    folders = [prefix.parent, prefix.parent / "assets"]
    if prefix.parent.name == "variables":
        folders += [prefix.parent.parent, prefix.parent.parent / "assets"]
    for folder in folders:
        for pattern in patterns:
            found = sorted(folder.glob(pattern))
            if len(found) > 1:
                raise DataError(
                    "ambiguous-files",
                    f"{folder} has several candidates: {', '.join(file.name for file in found)}; remove the others",
                )
            if found:
                return checked_file(folder, found[0].name)
    return None


def _find_tokenizer(prefix: Path) -> Path | None:
    file = _find_file(prefix, TOKENIZER_PATTERNS)
    if file is not None:
        check_tokenizer_files(file)
    return file


def _find_heads(store: Store, load_options: LoadOptions, prefix: Path) -> tuple[tuple[HeadSpec, ...], Partial]:
    """The heads that are present, and the incomplete ones if those are to be dropped."""
    heads: list[HeadSpec] = []
    partial: Partial = {}
    classifier: HeadKind = load_options.classifier or "classification"
    if classifier not in ("classification", "choice"):
        raise DataError(
            "unknown-model", f"{prefix}: Google's classifiers are classification or choice, not {classifier}"
        )
    for kind in HEADS:
        if kind in ("classification", "choice") and kind != classifier:
            continue
        wanted = {variable.name for variable in HEADS[kind].values()}
        there = wanted & store.tensors.keys()
        if there and there != wanted and load_options.drops_partial_heads:
            partial[kind] = there
        elif there:
            labels = store.tensors.get(LABELS_AT.get(kind, ""))
            heads.append(HeadSpec(kind, labels.shape[0] if labels and labels.shape else 2))
    return tuple(heads), partial


def _unread(config: ModelConfig, groups: Groups | None) -> frozenset[str]:
    return dead_names(config, groups) if groups else frozenset()


def _notes(groups: Groups | None, heads: Iterable[HeadSpec], store: Store) -> tuple[str, ...]:
    notes = []
    if groups and len(groups.used) < groups.num_groups:
        notes.append(
            f"groups {sorted(set(range(groups.num_groups)) - set(groups.used))} are not used by any layer (the "
            "official code computes groups in floating point) and were dropped; layer_map lists the groups in use"
        )
    if HeadSpec("classification", 1) in heads:
        notes.append("a classifier with one output was read as regression; for RACE, set classifier to choice")
    return (*notes, *note_rounding(store))
