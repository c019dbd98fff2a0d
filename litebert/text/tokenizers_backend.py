"""WordPiece, byte-level BPE and any tokenizer.json through `tokenizers`.

A tokenizer.json contains its own normalizer and pre-tokenizer. What is left to do: build one from the older file
formats, and keep special tokens from being parsed out of text.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers

from litebert.core.errors import DataError
from litebert.core.protobuf import get_bytes, iter_fields
from litebert.text.backend import Encoding
from litebert.text.chinese_script import find_conversion, name_script
from litebert.text.normalize import replace_surrogates
from litebert.text.sentencepiece_backend import load_processor
from litebert.text.word_cache import WordCache, find_cut

MODEL_FILE = "tokenizer.json"
# ids without a piece, in addition to as many as there are pieces; a model has a vector for each of them
_MAX_UNUSED_IDS = 10_000
# the library's name of a model -> our kind; a WordLevel vocabulary is WordPiece whose words are never split
KINDS = {"WordPiece": "wordpiece", "WordLevel": "wordpiece", "BPE": "bpe", "Unigram": "unigram"}


class TokenizersBackend:
    """Text to ids through a tokenizer.json."""

    model_file = MODEL_FILE

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._original = _load_tokenizer(model)
        self._tokenizer = _load_tokenizer(_hide_special_names(model))
        self._conversion = find_conversion(model)
        cut = find_cut(json.loads(model))
        self._cache = WordCache(cut, self._encode_whole) if cut else None
        self.kind = KINDS[type(self._tokenizer.model).__name__]
        self.vocabulary = _list_vocabulary(self._original)
        try:
            # a model without its unknown piece fails at the first unknown character; BERT's rules drop U+10FFFD
            self._encode_whole(["\U0010fffd", "\U00010380"])
        except Exception as error:  # the library raises nothing narrower
            raise DataError(
                "corrupt-tokenizer", f"this tokenizer.json cannot encode text ({error}); restore the original"
            ) from error

    @property
    def identity(self) -> bytes:
        """The vocabulary and its rules, without the file's layout and without what adds special tokens around text."""
        facts = json.loads(self.model)
        # files of older versions leave out what is off
        inner = {key: value for key, value in facts["model"].items() if value is not None and value is not False}
        if "merges" in inner:  # older files have "a b" for ["a", "b"]
            inner["merges"] = [m if isinstance(m, str) else " ".join(m) for m in inner["merges"]]
        found_in_text = [token for token in facts["added_tokens"] if not token["special"]]
        rules = [facts.get("normalizer"), facts.get("pre_tokenizer"), inner, found_in_text, self.vocabulary]
        return json.dumps(rules, sort_keys=True).encode()

    @property
    def splits(self) -> dict[int, list[int]]:
        return {}

    @property
    def settings(self) -> dict[str, Any]:
        # the model file contains all of them; this one is for people
        return {"script": name_script(self._conversion)} if self._conversion else {}

    def convert_script(self, text: str) -> str:
        """The text with its Chinese characters in the tokenizer's script, each in its place."""
        converted = self._conversion.normalize_str(text) if self._conversion else text
        return converted if len(converted) == len(text) else text

    def normalize(self, text: str) -> str:
        normalizer = self._tokenizer.normalizer
        return normalizer.normalize_str(replace_surrogates(text)) if normalizer else text

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        clean = [text if text.isascii() else replace_surrogates(text) for text in texts]
        return self._cache.encode_batch(clean) if self._cache else self._encode_whole(clean)

    def encode_with_offsets(self, text: str) -> Encoding:
        encoding = self._tokenizer.encode(replace_surrogates(text), add_special_tokens=False)
        return Encoding(encoding.ids, [_trim(text, start, end) for start, end in encoding.offsets])

    def decode(self, token_ids: Sequence[int]) -> str:
        text: str = self._original.decode(list(token_ids), skip_special_tokens=False)
        return text

    def _encode_whole(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)]


def build_wordpiece(vocab_file: Path, *, lowercase: bool) -> bytes:
    """The tokenizer.json of a BERT vocab.txt."""
    vocabulary = {piece: index for index, piece in enumerate(read_vocabulary(vocab_file))}
    if "[UNK]" not in vocabulary:
        raise DataError("corrupt-tokenizer", f"{vocab_file} has no [UNK] line; is it a BERT vocab.txt?")
    tokenizer = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    set_bert_rules(tokenizer, lowercase=lowercase, drops_accents=lowercase)
    return mark_special(tokenizer, ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"))


def build_byte_level(vocab_file: Path, merges_file: Path) -> bytes:
    """The tokenizer.json of a RoBERTa vocab.json and merges.txt."""
    try:
        model = models.BPE.from_file(str(vocab_file), str(merges_file))
    except Exception as error:  # the library raises nothing narrower
        raise DataError(
            "corrupt-tokenizer", f"{vocab_file} and {merges_file.name} do not form a vocabulary ({error})"
        ) from error
    tokenizer = tokenizers.Tokenizer(model)
    _list_vocabulary(tokenizer)  # the library writes every id up to the largest: one of 2^31 would fill the memory
    set_byte_level_rules(tokenizer)
    return mark_special(tokenizer, ("<s>", "<pad>", "</s>", "<unk>", "<mask>"))


def build_fairseq_unigram(model_file: Path, *, is_camembert: bool) -> bytes:
    """The tokenizer.json of an XLM-RoBERTa's or a CamemBERT's sentencepiece.bpe.model, as transformers makes it.

    fairseq put special tokens of its own before the pieces, and <mask> after them: ids are not the model's own.
    """
    content = model_file.read_bytes()
    processor = load_processor(content)
    pieces = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(len(processor))]
    if is_camembert:  # whose pieces still have <s> and </s>
        first = [("<s>NOTUSED", 0.0), ("<pad>", 0.0), ("</s>NOTUSED", 0.0), ("<unk>", 0.0), ("<unk>NOTUSED", -100.0)]
        vocabulary = [*first, *pieces[1:], ("<mask>", 0.0)]
    else:
        first = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
        vocabulary = [*first, *pieces[3:], ("<mask>", 0.0)]
    tokenizer = tokenizers.Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=False))
    charsmap = get_bytes(dict(iter_fields(get_bytes(dict(iter_fields(content)), 3))), 2)  # sentencepiece_model.proto
    if charsmap:
        tokenizer.normalizer = normalizers.Precompiled(charsmap)
    metaspace = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    return mark_special(tokenizer, ("<s>", "<pad>", "</s>", "<unk>", "<mask>"))


def read_vocabulary(vocab_file: Path) -> list[str]:
    """The lines of a vocab.txt. Only a newline ends a line: U+2028 is a piece of BERT's Chinese vocabulary."""
    try:
        lines = vocab_file.read_text("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise DataError("bad-encoding", f"{vocab_file}: not UTF-8 ({error}); is it a BERT vocab.txt?") from error
    return [line.rstrip("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


def set_bert_rules(tokenizer: Any, *, lowercase: bool, drops_accents: bool) -> None:
    """BERT's text cleaning, CJK characters as words of their own, split at white space and punctuation."""
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=drops_accents, lowercase=lowercase
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")


def set_byte_level_rules(tokenizer: Any) -> None:
    """GPT-2's and RoBERTa's split into words; nothing is ever unknown."""
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()


def mark_special(tokenizer: Any, names: Sequence[str]) -> bytes:
    """The tokenizer.json, in which those of the names that it contains are special tokens."""
    tokenizer.add_special_tokens(
        [AddedToken(name, special=True) for name in names if tokenizer.token_to_id(name) is not None]
    )
    text: str = tokenizer.to_str(pretty=True)
    return text.encode("utf-8")


def _load_tokenizer(model: bytes) -> Any:
    try:
        tokenizer = tokenizers.Tokenizer.from_buffer(model)
    except Exception as error:  # the library raises nothing narrower
        raise DataError(
            "corrupt-tokenizer", f"this version of `tokenizers` cannot read this tokenizer.json ({error})"
        ) from error
    tokenizer.no_truncation()  # some published files cut at 512
    tokenizer.no_padding()
    return tokenizer


def _list_vocabulary(tokenizer: Any) -> list[str]:
    """The pieces by id; an id without a piece gives an empty string."""
    ids = tokenizer.get_vocab(with_added_tokens=True)
    size = 1 + max(ids.values(), default=-1)
    if size > 2 * len(ids) + _MAX_UNUSED_IDS:
        raise DataError(
            "corrupt-tokenizer",
            f"the largest id is {size - 1:,} but there are only {len(ids):,} pieces; restore the original",
        )
    return [tokenizer.id_to_token(token_id) or "" for token_id in range(size)]


def _hide_special_names(model: bytes) -> bytes:
    """The tokenizer.json with special tokens renamed to what no text can match: names with spaces, where words end.

    The library's `encode_special_tokens` is not enough: a Unigram model still finds "<pad>" among its pieces.
    """
    facts = json.loads(model)
    hidden = {token["content"]: f" {token['content']} " for token in facts["added_tokens"] if token["special"]}
    facts["added_tokens"] = [token for token in facts["added_tokens"] if not token["special"]]
    facts["post_processor"] = None  # it only adds special tokens and trims offsets
    inner = facts["model"]
    if isinstance(inner["vocab"], dict):
        inner["vocab"] = {hidden.get(piece, piece): token_id for piece, token_id in inner["vocab"].items()}
    else:
        inner["vocab"] = [[hidden.get(piece, piece), score] for piece, score in inner["vocab"]]
    if inner.get("unk_token") is not None:
        inner["unk_token"] = hidden.get(inner["unk_token"], inner["unk_token"])
    return json.dumps(facts, ensure_ascii=False).encode("utf-8")


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without the white space around it: byte-level pieces contain the space before their word."""
    span = text[start:end]
    inner = span.strip()
    if not inner:
        return end, end
    left = start + len(span) - len(span.lstrip())
    return left, left + len(inner)
