"""Builds frozen option dataclasses from TOML and key=value overrides, with an error message for each mistake."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Set
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from litebert.core.errors import ConfigError, suggest
from litebert.core.ranges import check_values

T = TypeVar("T")
# what other programs call our keys
_OTHER_NAMES = {
    "lr": ("learning_rate",),
    "wd": ("weight_decay",),
    "batch_size": ("batch_size", "sequences"),
    "max_steps": ("steps",),
    "num_steps": ("steps",),
    "num_epochs": ("epochs",),
    "num_train_epochs": ("epochs",),
    "warmup": ("warmup_steps",),
    "grad_clip": ("clip_norm",),
    "max_grad_norm": ("clip_norm",),
    "max_seq_length": ("max_length",),
    "layers": ("num_layers",),
    "dropout": ("dropout_rate", "hidden_dropout_rate"),
}


def build_options(kind: type[T], values: Mapping[str, Any], *, where: str = "") -> T:
    """The dataclass `kind` from a mapping; an unknown or missing key or a wrong type is an error naming the key."""
    if not isinstance(values, Mapping):
        raise ConfigError(
            "not-a-section", f"{where or kind.__name__} must be a section of keys and values, got {values!r:.80}"
        )
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    prefix = f"{where}." if where else ""
    hints = get_type_hints(kind)
    for name in values:
        if name not in known:
            named = find_keys(kind, name)
            remedy = f"did you mean '{prefix}{named[0]}'?" if named else suggest(name, known)
            raise ConfigError("unknown-key", f"unknown key '{prefix}{name}'; {remedy}")
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise ConfigError("missing-key", f"'{prefix}{name}' is missing: it has no default")
    built = {name: _build_value(hints[name], value, where=f"{prefix}{name}") for name, value in values.items()}
    try:
        options = kind(**built)
        check_values(options)
    except ConfigError as error:
        # a dataclass names its own keys without their section: `steps must be ...`, `tokens = 5 and hours = 3 ...`
        own_keys = rf"(?<![\w.'/])({'|'.join(known)})(?= = | must be )"
        raise ConfigError(error.code, re.sub(own_keys, rf"{prefix}\1", str(error)), option=error.option) from None
    return options


def find_keys(kind: type, name: str) -> list[str]:
    """The dotted keys of the dataclass `kind` that end with `name`, or with our word for it."""
    names = _OTHER_NAMES.get(name, (name,))
    return [key for key in _list_keys(kind) if key.rpartition(".")[2] in names]


@cache
def _list_keys(kind: type) -> list[str]:
    hints = get_type_hints(kind)
    keys = []
    for field in fields(kind):
        hint = hints[field.name]
        is_section = isinstance(hint, type) and is_dataclass(hint)
        keys += [f"{field.name}.{key}" for key in _list_keys(hint)] if is_section else [field.name]
    return keys


def parse_assignments(words: Iterable[str]) -> dict[str, Any]:
    """Nested values from overrides such as `train.steps=500` or `model.sharing=ffn`: TOML values or bare strings."""
    nested: dict[str, Any] = {}
    for word in words:
        key, sign, text = word.partition("=")
        if not sign or not all(part.isidentifier() for part in key.split(".")):
            raise ConfigError("bad-override", f"'{word}' is not an override: write key=value, such as train.steps=500")
        *path, last = key.split(".")
        section = nested
        for part in path:
            section = section.setdefault(part, {})
            if not isinstance(section, dict):
                raise ConfigError(
                    "bad-override", f"'{word}' sets a key of '{part}', but another override sets '{part}' itself"
                )
        section[last] = _parse_toml_value(text)
    return nested


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` updated with `changes`, section by section."""
    merged = dict(base)
    for name, value in changes.items():
        both_sections = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = merge(merged[name], value) if both_sections else value
    return merged


def _parse_toml_value(text: str) -> Any:
    try:
        return parse_toml(f"value = {text}", where="")["value"]
    except ConfigError:
        return text


def _build_value(hint: Any, value: Any, *, where: str) -> Any:
    if isinstance(hint, type) and is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise ConfigError(
                "not-a-section", f"{where} is a section, got {value!r}; set one of its keys: {where}.key = value"
            )
        return build_options(hint, value, where=where)
    item = next((one for one in get_args(hint) if is_dataclass(one)), None)
    if item is not None and get_origin(hint) in (dict, tuple):  # sections by name, or a list of them
        return _build_sections(item, value, where, is_table=get_origin(hint) is dict)
    if get_origin(hint) is Literal and isinstance(value, str):
        return value  # check_values knows the choices
    if hint == tuple[str, ...] and isinstance(value, str):
        value = [value]  # data.corpora=corpus on the command line
    if isinstance(value, float) and value.is_integer() and hint in (int, int | None):
        value = int(value)  # train.steps=1e5
    try:
        # through JSON: strict about types, but an array may become a tuple
        return _adapter(hint).validate_json(json.dumps(value, default=str), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError("bad-value", f"{where} = {value!r}: {first['msg'][0].lower()}{first['msg'][1:]}") from None


def _build_sections(kind: Any, value: Any, where: str, *, is_table: bool) -> Any:
    """Sections by name, or a list of them."""
    if is_table and isinstance(value, Mapping):
        return {name: build_options(kind, section, where=f"{where}.{name}") for name, section in value.items()}
    if not is_table and isinstance(value, list | tuple):
        return tuple(build_options(kind, section, where=f"{where} {n}") for n, section in enumerate(value, start=1))
    example = f"[{where}.NAME]" if is_table else f"[[{where}]]"
    raise ConfigError("not-a-section", f"{where} consists of sections: write {example}")


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint)


def read_toml(path: Path, kind: str) -> str:
    """The text of a UTF-8 file that should be a `kind`, such as a recipe."""
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError("bad-encoding", f"{path} is not UTF-8 ({error}); is this a {kind}?") from None


def read_toml_values(path: Path, kind: str) -> dict[str, Any]:
    """The values in a TOML file that should be a `kind`, such as a recipe."""
    return parse_toml(read_toml(path, kind), where=str(path))


def parse_toml(text: str, *, where: str, code: str = "bad-toml") -> dict[str, Any]:
    """The values in a text of TOML, which `where` names in messages. All TOML is read here."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError(code, f"{where}: nested too deeply") from None
    except ValueError as error:  # not only tomllib's own: Python refuses numbers of many digits
        raise ConfigError(code, f"{where}: {error}") from None


def dump_toml(values: Mapping[str, Any]) -> str:
    """The values as TOML: plain keys first, then a section for each mapping; None is left out."""
    plain = {name: value for name, value in values.items() if not isinstance(value, Mapping) and not _is_tables(value)}
    lines = [f"{name} = {_dump_value(value)}" for name, value in plain.items() if value is not None]
    for name, value in values.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{name}]"]
            lines += [f"{key} = {_dump_value(item)}" for key, item in value.items() if item is not None]
        elif _is_tables(value):
            for table in value:
                lines += ["", f"[[{name}]]"]
                lines += [f"{key} = {_dump_value(item)}" for key, item in flatten(table).items()]
    return "\n".join(lines) + "\n"


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values by their dotted keys."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= flatten(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def unflatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as nested values."""
    nested: dict[str, Any] = {}
    for key, value in values.items():
        *sections, name = key.split(".")
        inner = nested
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[name] = value
    return nested


def describe_changes(old: Mapping[str, Any], new: Mapping[str, Any], free_keys: Set[str]) -> list[str]:
    """The differences between nested values as `key: old -> new`, ignoring `free_keys`; tuples equal lists."""
    before, after = flatten(old), flatten(new)
    return [
        f"{key}: {before.get(key)!r} -> {after.get(key)!r}"
        for key in sorted((before.keys() | after.keys()) - free_keys)
        if _listed(before.get(key)) != _listed(after.get(key))
    ]


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _is_tables(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _dump_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_dump_value, value))}]"
    return repr(value)
