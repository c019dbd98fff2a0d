"""Write a tokenizer as `transformers.AutoTokenizer` reads it: tokenizer.json, tokenizer_config.json, spiece.model.

The ids are the same as ours, with special tokens added. Unlike litebert, `transformers` also recognizes special tokens
that are spelled out in the text, which fill-mask needs. docs/tokenizers.md lists the few other inputs that differ.
"""

import json
import sys
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import sentencepiece
import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors

from litebert.core.files import write_json
from litebert.core.protobuf import get_bytes, get_number, iter_fields
from litebert.text import sentencepiece_backend
from litebert.text.normalize import Normalization
from litebert.text.tokenizer import OUR_SETTINGS, SPECIAL_NAMES, Tokenizer

TOKENIZER_FILE = "tokenizer.json"
CONFIG_FILE = "tokenizer_config.json"


def write_tokenizer_files(
    tokenizer: Tokenizer,
    directory: Path,
    *,
    has_segments: bool = True,
    max_length: int | None = None,
    cuts_itself: bool = False,
) -> None:
    """Write the files into an existing directory; the same tokenizer gives the same bytes.

    `has_segments` says whether the model uses segment ids for the two texts of a pair; without them, pairs are joined
    as in RoBERTa. `max_length` is where a user's `truncation=True` cuts, special tokens included. With `cuts_itself`,
    tokenizer.json enables truncation and padding, for users of `tokenizers` alone.
    """
    if tokenizer.model_file == sentencepiece_backend.MODEL_FILE:
        (directory / tokenizer.model_file).write_bytes(tokenizer.model)
        backend = build_unigram(tokenizer.model, Normalization(**tokenizer.settings["normalization"]))
    else:
        backend = tokenizers.Tokenizer.from_buffer(tokenizer.model)
    backend.no_truncation()
    backend.no_padding()
    backend.post_processor = _build_template(tokenizer, has_segments=has_segments)
    if cuts_itself:
        assert max_length is not None, "max_length is required to truncate"
        backend.enable_truncation(max_length)
        backend.enable_padding(pad_id=tokenizer.pad_id, pad_token=tokenizer.pieces([tokenizer.pad_id])[0])
    facts = json.loads(backend.to_str())
    facts["added_tokens"] = _mark_special(tokenizer, facts["added_tokens"])
    write_json(directory / TOKENIZER_FILE, facts)
    write_json(directory / CONFIG_FILE, _describe(tokenizer, has_segments=has_segments, max_length=max_length))


def build_unigram(model: bytes, policy: Normalization) -> Any:
    """A SentencePiece model as a `tokenizers` tokenizer, including our normalization."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    rules = _read_rules(model)
    vocabulary = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(len(processor))]
    backend = tokenizers.Tokenizer(models.Unigram(vocabulary, processor.unk_id(), byte_fallback=False))
    backend.normalizer = normalizers.Sequence([*_our_rules(policy), *_their_rules(rules)])
    # "first": no prefix space for text after a [MASK]. The text is not split into words, as in SentencePiece
    scheme = "first" if rules.adds_prefix else "never"
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    backend.decoder = decoders.Metaspace(prepend_scheme=scheme)
    return backend


class _Rules(NamedTuple):
    """How a SentencePiece model normalizes text before it looks for pieces."""

    name: str = ""
    charsmap: bytes = b""  # the character mapping
    adds_prefix: bool = True
    collapses_spaces: bool = True


def _our_rules(policy: Normalization) -> Iterator[Any]:
    """text/normalize.py in terms of the `tokenizers` library."""
    if policy.collapses_whitespace:
        yield normalizers.Replace(Regex(f"{_class_of(str.isspace)}+"), " ")
    if policy.unicode_form != "none":
        yield {"NFKD": normalizers.NFKD, "NFKC": normalizers.NFKC}[policy.unicode_form]()
    if policy.drops_accents:
        # not StripAccents, which goes by category and also drops vowel signs without a combining class
        marks = f"{_class_of(unicodedata.combining)}+"
        # at the beginning of a text replace by a space: with nothing there, Metaspace would not add its prefix
        yield normalizers.Replace(Regex(rf"\A{marks}"), " ")
        yield normalizers.Replace(Regex(marks), "")
    if policy.lowercase:
        yield normalizers.Replace(Regex(_FINAL_SIGMA), "ς")  # as Python's lower() does, but not Lowercase
        yield normalizers.Lowercase()


# Unicode's rule: after a letter and not before one, ignoring case-ignorable characters such as apostrophes
_LETTER = r"[\p{Cased}&&[^\p{Case_Ignorable}]]"
_FINAL_SIGMA = rf"{_LETTER}\p{{Case_Ignorable}}*\KΣ(?!\p{{Case_Ignorable}}*{_LETTER})"


def _their_rules(rules: _Rules) -> Iterator[Any]:
    """SentencePiece's own normalization; Metaspace then replaces spaces by "▁"."""
    if "nfkc" in rules.name:
        yield normalizers.NFC()  # the library maps only short clusters, and would leave Korean decomposed
    if rules.charsmap:
        yield normalizers.Precompiled(rules.charsmap)
    if rules.collapses_spaces:
        yield normalizers.Replace(Regex(" +"), " ")
        yield normalizers.Replace(Regex(r"[ ▁]+\z"), "")


@cache
def _class_of(predicate: Callable[[str], object]) -> str:
    """A regular expression for one character that satisfies the predicate."""
    codes = [code for code in range(sys.maxunicode + 1) if predicate(chr(code))]
    held = set(codes)
    firsts = [code for code in codes if code - 1 not in held]
    lasts = [code for code in codes if code + 1 not in held]
    ranges = (f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in zip(firsts, lasts, strict=True))
    return f"[{''.join(ranges)}]"


def _read_rules(model: bytes) -> _Rules:
    """The normalizer of a SentencePiece model: its field 3, with field numbers from sentencepiece_model.proto."""
    fields = dict(iter_fields(get_bytes(dict(iter_fields(model)), 3)))
    return _Rules(
        name=get_bytes(fields, 1).decode(),
        charsmap=get_bytes(fields, 2),
        adds_prefix=bool(get_number(fields, 3, True)),
        collapses_spaces=bool(get_number(fields, 4, True)),
    )


def _build_template(tokenizer: Tokenizer, *, has_segments: bool) -> Any:
    first, separator = tokenizer.pieces([tokenizer.cls_id, tokenizer.sep_id])
    single = f"{first} $A {separator}"
    template = processors.TemplateProcessing(
        single=single,
        pair=f"{single} $B:1 {separator}:1" if has_segments else f"{single} {separator} $B {separator}",
        special_tokens=[(first, tokenizer.cls_id), (separator, tokenizer.sep_id)],
    )
    if tokenizer.kind != "bpe":
        return template
    # offsets exclude the space before a word, as for the other tokenizers
    return processors.Sequence([processors.ByteLevel(trim_offsets=True, add_prefix_space=False), template])


def _mark_special(tokenizer: Tokenizer, added_tokens: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The added tokens, including our five special ones."""
    others = [token for token in added_tokens if token["id"] not in tokenizer.special_ids]
    ours = [
        {
            "id": token_id,
            "content": tokenizer.pieces([token_id])[0],
            "single_word": False,
            # if pieces include the space before a word, so does the mask
            "lstrip": token_id == tokenizer.mask_id and tokenizer.kind != "wordpiece",
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for token_id in tokenizer.special_ids
    ]
    return sorted([*others, *ours], key=lambda token: int(token["id"]))


def _describe(tokenizer: Tokenizer, *, has_segments: bool, max_length: int | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        # with "albert", any other class would replace our normalizer and omit token_type_ids
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", *(["token_type_ids"] if has_segments else []), "attention_mask"],
        "clean_up_tokenization_spaces": False,
    }
    for name in SPECIAL_NAMES:
        facts[f"{name}_token"] = tokenizer.pieces([getattr(tokenizer, f"{name}_id")])[0]
    if max_length is not None:
        facts["model_max_length"] = max_length
    if "normalization" in tokenizer.settings:  # for programs that read spiece.model, such as our load_tokenizer
        facts["do_lower_case"] = tokenizer.settings["normalization"]["lowercase"]
    facts[OUR_SETTINGS] = tokenizer.settings  # read by our load_tokenizer, ignored by transformers
    return facts
