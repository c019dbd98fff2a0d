"""The tokenizer data that page/tokenizer.js needs to produce the same ids in a browser."""

import json
import sys
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Any

import sentencepiece

from litebert.core.errors import ConfigError
from litebert.core.protobuf import get_bytes, get_number, iter_fields
from litebert.tasks.groups import SequenceForm
from litebert.tasks.words import belongs_to_word, is_unspaced
from litebert.text.chinese_script import find_charsmap, find_conversion, list_conversions
from litebert.text.sentencepiece_backend import MODEL_FILE
from litebert.text.tokenizer import SPECIAL_NAMES, Tokenizer

# field numbers of sentencepiece_model.proto
PIECES, TRAINER, NORMALIZER = 1, 2, 3
TYPE = 3  # of a piece
MODEL_TYPE, BYTE_FALLBACK = 3, 35  # of the trainer
RULES = 1  # of the normalizer
NORMAL, USER_DEFINED = 1, 4  # types of pieces
UNIGRAM, NMT_NFKC = 1, "nmt_nfkc"  # what page/tokenizer.js supports


def describe_vocabulary(tokenizer: Tokenizer, form: SequenceForm) -> dict[str, Any]:
    """The content of vocabulary.json."""
    common = {
        "kind": tokenizer.kind,
        "pieces": tokenizer.pieces(range(tokenizer.vocab_size)),
        "special": {name: getattr(tokenizer, f"{name}_id") for name in SPECIAL_NAMES},
        "max_length": form.max_length,
        "num_segments": form.num_segments,
        "spaces": list_ranges(str.isspace),
    }
    if tokenizer.model_file == MODEL_FILE:
        return common | _describe_unigram(tokenizer)
    facts = json.loads(tokenizer.model)
    rules = facts.get("normalizer") or {}
    if facts["model"]["type"] == "WordPiece" and (rules.get("type") == "BertNormalizer" or find_charsmap(rules)):
        return common | _describe_wordpiece(tokenizer, facts)
    raise ConfigError(
        "no-web-tokenizer",
        f"web export supports SentencePiece and BERT WordPiece tokenizers, not {tokenizer.kind}: "
        "export the model as onnx",
        option="format",
    )


def describe_words() -> dict[str, Any]:
    """What a page needs to cut a text into the words that are tagged (tasks/words.py)."""
    return {"unspaced": list_ranges(is_unspaced), "word_letters": list_ranges(belongs_to_word)}


def _describe_unigram(tokenizer: Tokenizer) -> dict[str, Any]:
    check_model(tokenizer.model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    kinds = [
        get_number(dict(iter_fields(value)), TYPE, NORMAL)
        for number, value in iter_fields(tokenizer.model)
        if number == PIECES and isinstance(value, bytes)
    ]
    return {
        "scores": [processor.get_score(i) for i in range(len(processor))],
        "user_defined": [i for i, kind in enumerate(kinds) if kind == USER_DEFINED],
        "unusable": [i for i, kind in enumerate(kinds) if kind not in (NORMAL, USER_DEFINED)],
        "normalization": tokenizer.settings["normalization"],
        "splits": tokenizer.splits,
        "dropped": [ord(letter) for letter in _INVISIBLE if _between(processor, letter) == ""],
        "spaced": [ord(letter) for letter in _INVISIBLE if _between(processor, letter) == " "],
        "marks": list_ranges(unicodedata.combining),
    }


def check_model(model: bytes) -> None:
    """Raise if a SentencePiece model uses an algorithm or rules that the page does not support."""
    parts = {number: value for number, value in iter_fields(model) if number in (TRAINER, NORMALIZER)}
    trainer, normalizer = (dict(iter_fields(get_bytes(parts, number))) for number in (TRAINER, NORMALIZER))
    rules = get_bytes(normalizer, RULES).decode()
    if get_number(trainer, MODEL_TYPE, UNIGRAM) != UNIGRAM or get_number(trainer, BYTE_FALLBACK) or rules != NMT_NFKC:
        raise ConfigError(
            "no-web-tokenizer",
            f"web export supports SentencePiece unigram models with {NMT_NFKC} normalization and no byte fallback; "
            f"this one differs (normalization '{rules}'): export the model as onnx",
            option="format",
        )


# SentencePiece versions treat these differently: spaces, controls, direction marks and joiners
_INVISIBLE = [
    chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in ("Cc", "Cf", "Zs", "Zl", "Zp")
] + ["\ufffd"]


def _between(processor: Any, letter: str) -> str:
    """The normalized form of a character inside a word."""
    text: str = processor.normalize(f"a{letter}b").replace("▁", " ").strip()
    return text.removeprefix("a").removesuffix("b")


def _describe_wordpiece(tokenizer: Tokenizer, facts: dict[str, Any]) -> dict[str, Any]:
    normalizer, model = facts["normalizer"], facts["model"]
    conversion = find_conversion(tokenizer.model)
    if conversion:
        normalizer = normalizer["normalizers"][1]
    strips = normalizer["strip_accents"]
    return {
        "unusable": sorted(tokenizer.special_ids),
        "normalization": {
            "lowercase": normalizer["lowercase"],
            "strip_accents": normalizer["lowercase"] if strips is None else strips,
            "handle_chinese_chars": normalizer["handle_chinese_chars"],
            "characters": list_conversions(conversion) if conversion else {},
        },
        "prefix": model["continuing_subword_prefix"],
        "max_characters": model["max_input_chars_per_word"],
    }


@cache
def list_ranges(predicate: Callable[[str], object]) -> list[tuple[int, int]]:
    """The characters that satisfy the predicate, as inclusive ranges of code points."""
    codes = [code for code in range(sys.maxunicode + 1) if predicate(chr(code))]
    held = set(codes)
    firsts = [code for code in codes if code - 1 not in held]
    lasts = [code for code in codes if code + 1 not in held]
    return list(zip(firsts, lasts, strict=True))
