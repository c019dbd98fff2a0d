"""The tokenizer: text to ids and back, the same in training, fine-tuning and serving.

One class over two libraries (see backend.py). It knows its special tokens, which pieces begin words, and a fingerprint
of everything that changes ids; saved to a directory it needs nothing else to give the same ids again.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import atomic_directory, parse_json_value
from litebert.core.options import build_options
from litebert.core.sealed import build_record, read_sealed, write_sealed
from litebert.text import sentencepiece_backend, tokenizers_backend
from litebert.text.backend import Backend, Encoding
from litebert.text.chinese_script import Script, add_script
from litebert.text.normalize import Normalization
from litebert.text.sentencepiece_backend import DigitComma, SentencePieceBackend
from litebert.text.tokenizers_backend import TokenizersBackend
from litebert.text.word_starts import Words, check_jieba, find_chinese_continuations, find_word_starts

Kind = Literal["unigram", "wordpiece", "bpe"]

MANIFEST_FILE = "manifest.json"
FORMAT = "litebert-tokenizer"
FORMAT_VERSION = 1
THEIR_CONFIG = "tokenizer_config.json"
MODEL_CONFIG = "config.json"
FAIRSEQ_FILE = "sentencepiece.bpe.model"  # of XLM-RoBERTa and CamemBERT: their ids are not the file's own
OUR_SETTINGS = "litebert"  # the key of a tokenizer_config.json under which we wrote what its other keys cannot say

# What a special token is called: by ALBERT and BERT, or by RoBERTa.
SPECIAL_NAMES = {
    "pad": ("<pad>", "[PAD]"),
    "unk": ("<unk>", "[UNK]"),
    "cls": ("[CLS]", "<s>"),
    "sep": ("[SEP]", "</s>"),
    "mask": ("[MASK]", "<mask>"),
}


@dataclass(frozen=True)
class ReadingOptions:
    """How to read a foreign vocabulary; our own directories store these options."""

    lowercase: bool | None = None  # None: as tokenizer_config.json says, else unless the vocabulary has capitals
    digit_comma: DigitComma = "intended"
    words: Words = "pieces"


class Tokenizer:
    """Text to token ids. Adds no special tokens, and finds none in text: "[MASK]" typed by a person is five letters."""

    def __init__(self, backend: Backend, *, words: Words = "pieces") -> None:
        special = find_special_tokens(backend.vocabulary)
        self._backend = backend
        self.words = words
        self.kind = cast(Kind, backend.kind)
        self.vocab_size = len(backend.vocabulary)
        self.pad_id, self.unk_id = special["pad"], special["unk"]
        self.cls_id, self.sep_id, self.mask_id = special["cls"], special["sep"], special["mask"]
        self.special_ids = frozenset(special.values())
        self.fingerprint = _fingerprint(backend, backend.identity)
        self.word_starts = find_word_starts(self.kind, backend.vocabulary, self.special_ids)

    @property
    def settings(self) -> dict[str, Any]:
        """The options stored with the vocabulary: normalization, digit-comma mode, how words are found."""
        return {**self._backend.settings, "words": self.words}

    @property
    def splits(self) -> dict[int, list[int]]:
        """Pieces that `encode` splits further (the digit-comma rule), each with the ids that replace it."""
        return self._backend.splits

    @property
    def model_file(self) -> str:
        """The name of the vocabulary's file: spiece.model or tokenizer.json."""
        return self._backend.model_file

    @property
    def model(self) -> bytes:
        """The content of that file."""
        return self._backend.model

    def has_fingerprint(self, stored: str) -> bool:
        """Whether a stored fingerprint is this tokenizer's; the first versions hashed the whole tokenizer.json."""
        return stored == self.fingerprint or stored == _fingerprint(self._backend, self._backend.model)

    def normalize(self, text: str) -> str:
        """The text after normalization, which the vocabulary is applied to."""
        return self._backend.normalize(text)

    def encode(self, text: str) -> list[int]:
        return self._backend.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of many texts at once: several times faster."""
        return self._backend.encode_batch(texts)

    def encode_with_offsets(self, text: str) -> Encoding:
        """The ids of `encode`, each with its place in the text as it was given."""
        return self._backend.encode_with_offsets(text)

    def pieces(self, token_ids: Sequence[int]) -> list[str]:
        return [self._backend.vocabulary[token_id] for token_id in token_ids]

    def decode(self, token_ids: Sequence[int]) -> str:
        """Readable text without special tokens, except for the unknown one."""
        silent = self.special_ids - {self.unk_id}
        return self._backend.decode([token_id for token_id in map(int, token_ids) if token_id not in silent])

    def mark_words(self, text: str, token_ids: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Which of the tokens of `text` begin a word; the first always does."""
        marks = self.word_starts[np.asarray(token_ids, dtype=np.int64)]  # (T,)
        if self.words == "jieba":
            check_jieba()  # only here: encoding alone does not need it
            encoding = self.encode_with_offsets(text)
            assert encoding.token_ids == list(token_ids), "mark_words needs the ids of the same text"
            if isinstance(self._backend, TokenizersBackend):
                text = self._backend.convert_script(text)  # jieba knows simplified words better
            marks[find_chinese_continuations(text, encoding.offsets)] = False
        marks[:1] = True
        return marks

    def adapted(self, *, words: Words | None = None, script: Script | None = None) -> "Tokenizer":
        """This tokenizer with words from elsewhere, or with Chinese characters converted to one script."""
        backend = self._backend
        if script is not None and backend.settings.get("script") not in (None, script):
            raise ConfigError(
                "conflicting-options",
                f"this tokenizer already converts characters to {backend.settings['script']}, not {script}",
                option="script",
            )
        if script is not None and "script" not in backend.settings:
            if self.kind != "wordpiece":
                raise ConfigError(
                    "kind-not-chinese",
                    f"script = {script} needs a WordPiece vocabulary, not {self.kind}",
                    option="script",
                )
            backend = TokenizersBackend(add_script(backend.model, script))
        if words == "jieba":
            check_jieba()
            if self.kind == "bpe":
                raise ConfigError(
                    "kind-not-chinese",
                    "words = jieba needs a vocabulary of characters, such as WordPiece, not bpe",
                    option="words",
                )
        return Tokenizer(backend, words=words or self.words)

    def save(self, directory: Path, *, replaces: bool = False) -> None:
        """Write everything into a new directory; `replaces` allows one that exists."""
        with atomic_directory(directory, replaces=replaces) as temporary:
            (temporary / self._backend.model_file).write_bytes(self._backend.model)
            write_sealed(temporary / MANIFEST_FILE, self._manifest())

    def _manifest(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "kind": self.kind,
            "vocab_size": self.vocab_size,
            "model_file": self._backend.model_file,
            "model_hash": hashlib.sha256(self._backend.model).hexdigest(),
            **self.settings,
            "special_ids": {name: getattr(self, f"{name}_id") for name in SPECIAL_NAMES},
            "fingerprint": self.fingerprint,
        }


def load_tokenizer(path: Path, options: ReadingOptions | None = None) -> Tokenizer:
    """A tokenizer from our own directory, an ALBERT .model, a BERT vocab.txt, a RoBERTa vocab.json, or tokenizer.json.

    `path` may be the file or the directory around it. `options` are for foreign vocabularies only.
    """
    file = _find_vocabulary(path)
    try:
        if file.name == MANIFEST_FILE:
            if options is not None:
                raise ConfigError(
                    "conflicting-options",
                    f"{path} already stores its options; set them when reading the original vocabulary",
                )
            return _load_saved(file)
        return _load_exported(file) if options is None and _is_exported(file) else _load_foreign(file, options)
    except KeyError as error:
        raise DataError("corrupt-tokenizer", f"{file} is corrupt: {error} is missing; restore the original") from error
    except DataError as error:
        raise error if str(path) in str(error) else DataError(error.code, f"{file}: {error}") from error


def is_saved_tokenizer(directory: Path) -> bool:
    """Whether `Tokenizer.save` made this directory."""
    file = directory / MANIFEST_FILE
    return file.is_file() and bool(read_sealed(file).get("format") == FORMAT)


def find_special_tokens(vocabulary: Sequence[str]) -> dict[str, int]:
    """The ids of the five special tokens, whichever way they are spelled."""
    ids = {piece: token_id for token_id, piece in enumerate(vocabulary)}
    found: dict[str, int] = {}
    for name, spellings in SPECIAL_NAMES.items():
        present = [spelling for spelling in spellings if spelling in ids]
        if not present:
            raise DataError(
                "missing-special-token",
                f"the vocabulary has no {' or '.join(spellings)}; masked language models need it",
            )
        found[name] = ids[present[0]]
    return found


@dataclass(frozen=True)
class _Manifest:
    """The content of a tokenizer's manifest.json."""

    format: str
    version: int
    kind: str
    vocab_size: int
    model_file: str
    model_hash: str
    words: str
    special_ids: dict[str, int]
    fingerprint: str
    normalization: dict[str, Any] | None = None  # SentencePiece's only
    script: str | None = None  # of WordPiece that converts Chinese characters
    digit_comma: str | None = None


def _load_saved(manifest_file: Path) -> Tokenizer:
    content = read_sealed(manifest_file)
    if content.get("format") != FORMAT:
        raise _describes_no_tokenizer(manifest_file, content)
    if content.get("version") != FORMAT_VERSION:
        raise DataError(
            "newer-version",
            f"version {content.get('version')}, but this litebert reads version {FORMAT_VERSION}; upgrade litebert",
        )
    manifest = build_record(_Manifest, content, where=str(manifest_file))
    model_file = manifest_file.parent / manifest.model_file
    if not model_file.is_file():
        raise DataError("missing-file", f"{model_file.name} is missing; was the directory copied completely?")
    model = model_file.read_bytes()
    if hashlib.sha256(model).hexdigest() != manifest.model_hash:
        raise DataError("corrupt-tokenizer", f"{model_file.name} changed since it was saved; restore the original")
    backend: Backend
    if manifest.model_file == sentencepiece_backend.MODEL_FILE:
        settings = _read_settings(content, ("words", "normalization", "digit_comma"))
        backend = SentencePieceBackend(model, settings.normalization, settings.digit_comma)
    else:
        settings = _read_settings(content, ("words",))
        backend = TokenizersBackend(model)
    tokenizer = Tokenizer(backend, words=settings.words)
    if not tokenizer.has_fingerprint(manifest.fingerprint):
        raise DataError("corrupt-tokenizer", f"{MANIFEST_FILE} changed since it was saved; restore the original")
    return tokenizer


def _describes_no_tokenizer(file: Path, manifest: dict[str, Any]) -> DataError:
    inside = file.parent / "tokenizer"  # where a corpus has its own
    remedy = f"did you mean {inside}?" if inside.is_dir() else "is the tokenizer in another folder?"
    other = f" but a {manifest['format']}" if "format" in manifest else ""
    return DataError("not-a-tokenizer", f"{file} does not describe a tokenizer{other}; {remedy}")


@dataclass(frozen=True)
class _Settings:
    """A manifest's options; all except `words` apply to SentencePiece only."""

    words: Words
    normalization: Normalization = field(default_factory=Normalization)
    digit_comma: DigitComma = "intended"


def _read_settings(manifest: dict[str, Any], names: Sequence[str]) -> _Settings:
    try:
        return build_options(_Settings, {name: manifest[name] for name in names})
    except ConfigError as error:
        raise DataError("corrupt-tokenizer", f"{error}; restore the original") from error


def _is_exported(file: Path) -> bool:
    """Whether litebert exported this vocabulary, with our settings stored next to it."""
    return file.suffix in (".model", ".json") and OUR_SETTINGS in _read_their_config(file)


def _load_exported(file: Path) -> Tokenizer:
    """A tokenizer that litebert exported: it gives the same ids as the original."""
    stated = _read_their_config(file)[OUR_SETTINGS]
    if file.suffix == ".json":
        settings = _read_settings(stated, ("words",))
        return Tokenizer(TokenizersBackend(file.read_bytes()), words=settings.words)
    settings = _read_settings(stated, ("words", "normalization", "digit_comma"))
    backend = SentencePieceBackend(file.read_bytes(), settings.normalization, settings.digit_comma)
    return Tokenizer(backend, words=settings.words)


def _load_foreign(file: Path, options: ReadingOptions | None) -> Tokenizer:
    options = options or ReadingOptions()
    if options.words == "jieba":
        check_jieba()
    backend: Backend
    if file.name == FAIRSEQ_FILE:
        is_camembert = "camembert" in f"{_read_beside(file, THEIR_CONFIG)} {_read_beside(file, MODEL_CONFIG)}".lower()
        backend = TokenizersBackend(tokenizers_backend.build_fairseq_unigram(file, is_camembert=is_camembert))
    elif file.suffix == ".model":
        model = file.read_bytes()
        backend = SentencePieceBackend(model, Normalization(), options.digit_comma)
        if not _is_lowercase(file, backend.vocabulary, options):
            backend = SentencePieceBackend(model, Normalization(lowercase=False), options.digit_comma)
    elif file.suffix == ".txt":
        lowercase = _is_lowercase(file, tokenizers_backend.read_vocabulary(file), options)
        backend = TokenizersBackend(tokenizers_backend.build_wordpiece(file, lowercase=lowercase))
    elif file.name == "tokenizer.json":
        backend = TokenizersBackend(file.read_bytes())
    else:
        backend = TokenizersBackend(tokenizers_backend.build_byte_level(file, file.with_name("merges.txt")))
    return Tokenizer(backend, words=options.words)


def _is_lowercase(file: Path, vocabulary: Sequence[str], options: ReadingOptions) -> bool:
    if options.lowercase is not None:
        return options.lowercase
    stated = _read_stated_case(file)
    if stated is not None:
        return stated
    special = {name for names in SPECIAL_NAMES.values() for name in names}
    words = (piece.lstrip("#▁Ġ") for piece in vocabulary if piece not in special)
    return not any(word.isalpha() and word.isascii() and word != word.lower() for word in words)


def _read_stated_case(file: Path) -> bool | None:
    """`do_lower_case` of the Hugging Face config next to a vocabulary; None where it is not stated."""
    stated = _read_their_config(file).get("do_lower_case")
    if stated is not None and not isinstance(stated, bool):
        beside = file.with_name(THEIR_CONFIG)
        raise DataError(
            "bad-value", f"{beside}: do_lower_case is {stated!r}, which is neither true nor false; fix or remove it"
        )
    return stated


def _read_their_config(file: Path) -> dict[str, Any]:
    return _read_beside(file, THEIR_CONFIG)


def _read_beside(file: Path, name: str) -> dict[str, Any]:
    """A Hugging Face config file next to a vocabulary; empty if it does not exist."""
    beside = file.with_name(name)
    if not beside.is_file():
        return {}
    try:
        config = parse_json_value(beside.read_bytes(), str(beside))
    except DataError as error:
        raise DataError(error.code, f"{error}; fix or remove it") from None
    return config if isinstance(config, dict) else {}


def _find_vocabulary(path: Path) -> Path:
    if path.is_file():
        return path.with_name("vocab.json") if path.name == "merges.txt" else path
    if not path.is_dir():
        raise DataError("missing-file", f"{path}: no such file or directory; expected a tokenizer")
    try:
        files = sorted(file for file in path.iterdir() if file.is_file())
    except PermissionError as error:
        raise DataError("unreadable-input", f"{path}: {error.strerror}; check its permissions") from error
    # ours first; sentencepiece before the tokenizer.json that is often next to it: it is faster, and Google's own
    for pattern in (MANIFEST_FILE, "*.model", "tokenizer.json", "vocab*.txt", "vocab.json"):
        found = [file for file in files if file.match(pattern)]
        if [file.name for file in found] == [FAIRSEQ_FILE] and path / "tokenizer.json" in files:
            return path / "tokenizer.json"  # it has the final ids, without fairseq's offsets
        if len(found) > 1:
            raise DataError(
                "ambiguous-files",
                f"{path} has several candidates: {', '.join(file.name for file in found)}; name one of them",
            )
        if found:
            return found[0]
    raise DataError("not-a-tokenizer", f"{path} has no manifest.json, *.model, tokenizer.json, vocab.txt or vocab.json")


def _fingerprint(backend: Backend, model: bytes) -> str:
    digest = hashlib.sha256(model)
    digest.update(json.dumps({"kind": backend.kind, **backend.settings}, sort_keys=True).encode())
    return digest.hexdigest()
