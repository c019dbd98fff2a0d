"""Traditional and simplified Chinese as one: each character of a text is converted before the vocabulary is applied.

OpenCC's table of characters is written into the tokenizer.json itself, as a normalizer that `tokenizers` runs. So a
tokenizer gives the same ids everywhere, whichever version of OpenCC is installed, if any; a character stays one
character, so offsets stay right. OpenCC's own phrases (乾隆 but 干燥) are not used: see docs/tokenizers.md for how many
characters differ.
"""

import base64
import io
import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal

import sentencepiece
from tokenizers import normalizers

from litebert.core.errors import ConfigError
from litebert.core.protobuf import get_bytes, iter_fields

Script = Literal["simplified", "traditional"]
CONFIGS: dict[Script, str] = {"simplified": "t2s", "traditional": "s2t"}  # OpenCC's names
# Where Chinese characters are: the extensions A to G, the common ones, and the compatibility forms
_RANGES = ((0x3400, 0xA000), (0xF900, 0xFB00), (0x20000, 0x31350))
_PROBE = "漢"  # differs between the scripts
_NORMALIZER, _CHARSMAP = 3, 2  # in sentencepiece_model.proto


def build_normalizer(script: Script) -> normalizers.Normalizer:
    """A normalizer that writes every Chinese character in one script."""
    return normalizers.Precompiled(_build_charsmap(script))


@cache
def _build_charsmap(script: Script) -> bytes:
    """OpenCC's characters in the form that `tokenizers` reads: SentencePiece compiles its table of rules."""
    rules = "".join(f"{ord(before):X}\t{ord(after):X}\n" for before, after in read_table(script).items())
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rules.tsv"
        file.write_text(rules, "utf-8")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c"] * 10),  # its vocabulary is not used
            model_writer=model,
            model_type="char",
            vocab_size=8,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(file),
            minloglevel=2,
        )
    return get_bytes(dict(iter_fields(get_bytes(dict(iter_fields(model.getvalue())), _NORMALIZER))), _CHARSMAP)


def read_table(script: Script) -> dict[str, str]:
    """The characters that OpenCC changes, each with the one that replaces it."""
    try:
        import opencc
    except ImportError:
        raise ConfigError(
            "missing-package", "converting Chinese characters needs OpenCC: pip install 'litebert[chinese]'"
        ) from None
    return _find_changed(opencc.OpenCC(CONFIGS[script]).convert)


def list_conversions(conversion: normalizers.Normalizer) -> dict[str, str]:
    """The characters that a normalizer changes, each with the one that replaces it."""
    return _find_changed(conversion.normalize_str)


def _find_changed(convert: Callable[[str], str]) -> dict[str, str]:
    characters = (chr(code) for first, end in _RANGES for code in range(first, end))
    pairs = ((character, convert(character)) for character in characters)
    return {before: after for before, after in pairs if after != before and len(after) == 1}


def add_script(model: bytes, script: Script) -> bytes:
    """A tokenizer.json that converts characters before its other rules."""
    facts = json.loads(model)
    inner = facts.get("normalizer")
    charsmap = base64.b64encode(_build_charsmap(script)).decode()
    steps = [{"type": "Precompiled", "precompiled_charsmap": charsmap}, *([inner] if inner else [])]
    return json.dumps(facts | {"normalizer": {"type": "Sequence", "normalizers": steps}}, ensure_ascii=False).encode()


def find_conversion(model: bytes) -> normalizers.Normalizer | None:
    """The normalizer that `add_script` put into a tokenizer.json."""
    charsmap = find_charsmap(json.loads(model).get("normalizer"))
    return None if charsmap is None else normalizers.Precompiled(base64.b64decode(charsmap))


def find_charsmap(normalizer: dict[str, object] | None) -> str | None:
    """The table of the conversion in a tokenizer.json's normalizer, as base64."""
    match normalizer:
        case {
            "type": "Sequence",
            "normalizers": [{"type": "Precompiled", "precompiled_charsmap": str(charsmap)}, {"type": "BertNormalizer"}],
        }:
            return charsmap
    return None


def name_script(conversion: normalizers.Normalizer) -> Script:
    """Which script a conversion writes."""
    return "simplified" if conversion.normalize_str(_PROBE) != _PROBE else "traditional"
