"""A new vocabulary from text: SentencePiece unigram as ALBERT's, WordPiece as BERT's, byte-level BPE as RoBERTa's."""

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, get_args

import sentencepiece
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, trainers

from litebert.core.errors import ConfigError, DataError, suggest
from litebert.core.memory import describe_shortage
from litebert.text.backend import Backend
from litebert.text.chinese_script import Script, add_script, build_normalizer
from litebert.text.normalize import Normalization, normalize, replace_surrogates
from litebert.text.sentencepiece_backend import SentencePieceBackend
from litebert.text.tokenizer import Kind, Tokenizer
from litebert.text.tokenizers_backend import TokenizersBackend, mark_special, set_bert_rules, set_byte_level_rules
from litebert.text.training_progress import Report, UnigramProgress, progress_reported_to, read_merging_progress
from litebert.text.word_starts import Words, check_jieba

# They get the ids 0 to 4 in this order (for unigram, as in the released ALBERT).
BERT_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
# ALBERT's, and the comma: with it no piece is a digit with a comma, and all digit-comma modes agree.
USER_SYMBOLS = ("(", ")", '"', "-", ".", "–", "£", "€", ",")
# The libraries reserve memory for each piece before they read any text: 70 bytes and more. Published vocabularies have
# up to a million (XLM-V).
LARGEST_VOCABULARY = 2_000_000
# SentencePiece refuses smaller samples, and larger ones than it can count.
SAMPLE_SIZES = range(101, 1 << 31)
# SentencePiece silently drops lines of more than 4,192 bytes; a character has at most four.
LONGEST_TEXT = 1000


@dataclass(frozen=True)
class VocabularyOptions:
    """The vocabulary to train. The defaults are those of the released ALBERT."""

    kind: Kind = "unigram"
    vocab_size: int = 30_000
    lowercase: bool | None = None  # None: yes for unigram and WordPiece, no for BPE, as the published models
    words: Words = "pieces"
    script: Script | None = None  # WordPiece: write Chinese characters in this script first
    character_coverage: float = 0.99995  # unigram: the share of the text's characters that get a piece
    input_sentence_size: int = 10_000_000  # unigram: the number of lines to sample, held in memory; 0 takes all
    min_frequency: int = 2  # WordPiece, BPE: rarer pairs are not merged
    max_alphabet: int = 1_000  # WordPiece: characters that get a piece; Chinese needs about 8,000

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ConfigError(
                "unknown-value", f"unknown kind of vocabulary '{self.kind}'; {suggest(self.kind, get_args(Kind))}"
            )
        if self.script is not None and self.kind != "wordpiece":
            raise ConfigError(
                "kind-not-chinese",
                f"script = {self.script} needs kind = wordpiece, not {self.kind}",
                option="script",
            )
        if self.vocab_size <= 5:
            raise ConfigError(
                "vocabulary-too-small", f"vocab_size {self.vocab_size} is too small: the special tokens alone take 5"
            )
        if self.vocab_size > LARGEST_VOCABULARY:
            raise ConfigError(
                "vocabulary-too-large",
                f"vocab_size = {self.vocab_size} must be at most {LARGEST_VOCABULARY}; ALBERT uses 30000",
            )
        if self.input_sentence_size != 0 and self.input_sentence_size not in SAMPLE_SIZES:
            raise ConfigError(
                "out-of-range",
                f"max_sentences = {self.input_sentence_size} must be between "
                f"{SAMPLE_SIZES[0]} and {SAMPLE_SIZES[-1]}, or 0 for all",
                option="max_sentences",
            )
        if not 0.9 <= self.character_coverage <= 1:
            raise ConfigError(
                "out-of-range", f"character_coverage = {self.character_coverage} must be between 0.9 and 1"
            )

    @property
    def is_lowercase(self) -> bool:
        return self.kind != "bpe" if self.lowercase is None else self.lowercase


def train_tokenizer(texts: Iterable[str], options: VocabularyOptions, report: Report | None = None) -> Tokenizer:
    """A tokenizer with exactly `options.vocab_size` pieces; the same texts give the same one on any machine.

    (With the same release of the library that trains it: SentencePiece 0.2.3 chooses other pieces than 0.2.2.)
    Once the texts are read, `report` is called from another thread with the share of the work that is done.
    """
    if options.words == "jieba":
        check_jieba()
    read = UnigramProgress(options.vocab_size) if options.kind == "unigram" else read_merging_progress
    with progress_reported_to(read, report):
        try:
            backend = _TRAINERS[options.kind](_Source(texts), options, report is not None)
        except (MemoryError, RuntimeError, OSError) as error:
            raise _explain_shortage(error, options) or error from None
    tokenizer = Tokenizer(backend, words=options.words)
    if tokenizer.vocab_size < options.vocab_size:
        raise _too_large(options, tokenizer.vocab_size)
    if tokenizer.vocab_size > options.vocab_size:
        raise _too_small(options, tokenizer.vocab_size)
    return tokenizer


class _Source:
    """The texts, cut to a maximal length. Keeps a reading error, which the libraries would swallow or garble."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = texts
        self.error: Exception | None = None
        self.is_empty = True

    def read(self) -> Iterator[str]:
        try:
            for text in self._texts:
                for part in _cut(replace_surrogates(text)):
                    self.is_empty = False
                    yield part
        except Exception as error:
            self.error = error

    def check(self) -> None:
        if self.error is not None:
            raise self.error
        if self.is_empty:
            raise DataError("empty-corpus", "no text to train a vocabulary on; are the files empty?")


def _cut(text: str) -> Iterator[str]:
    text = text.replace("\0", "").strip()
    while len(text) > LONGEST_TEXT:
        cut = text.rfind(" ", 1, LONGEST_TEXT) + 1 or LONGEST_TEXT
        yield text[:cut].rstrip()
        text = text[cut:]
    if text:
        yield text


def _train_unigram(source: _Source, options: VocabularyOptions, is_reported: bool) -> SentencePieceBackend:
    policy = Normalization(lowercase=options.is_lowercase)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(normalize(text, policy) for text in source.read()),
            model_writer=model,
            model_type="unigram",
            vocab_size=options.vocab_size,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            control_symbols=["[CLS]", "[SEP]", "[MASK]"],
            user_defined_symbols=list(USER_SYMBOLS),
            character_coverage=options.character_coverage,
            input_sentence_size=options.input_sentence_size,
            shuffle_input_sentence=True,
            num_threads=16,  # the sums depend on it: fixed, so that every machine learns the same vocabulary
            minloglevel=0 if is_reported else 2,
        )
    except RuntimeError as error:
        source.check()
        raise _explain(error, options) from error
    source.check()
    return SentencePieceBackend(model.getvalue(), policy, "intended")


def _train_wordpiece(source: _Source, options: VocabularyOptions, is_reported: bool) -> TokenizersBackend:
    """The library breaks ties in the order of a hash table, which changes from run to run.

    To make the result reproducible, we assign the ids of letters: as "special" tokens, which come first.
    """
    tokenizer = _build_wordpiece(models.BPE(), options)
    words = Counter[str]()
    convert = build_normalizer(options.script).normalize_str if options.script else str
    for text in map(convert, source.read()):
        words.update(tokenizer.normalizer.normalize_str(text).split())
    source.check()
    room = options.vocab_size - len(BERT_SPECIAL) if options.words == "jieba" else None
    first_letters, inner_letters = _choose_alphabet(words, tokenizer.pre_tokenizer, options.max_alphabet, room)
    # the library's WordPieceTrainer is this trainer with this prefix, but does not report its progress
    trainer = trainers.BpeTrainer(
        vocab_size=options.vocab_size,
        min_frequency=options.min_frequency,
        initial_alphabet=first_letters,
        limit_alphabet=len(first_letters),
        special_tokens=[*BERT_SPECIAL, *(f"##{letter}" for letter in inner_letters)],
        continuing_subword_prefix="##",
        show_progress=is_reported,
        progress_format="json" if is_reported else "silent",
    )
    tokenizer.train_from_iterator(_iter_repeated(words), trainer)
    model = models.WordPiece(tokenizer.get_vocab(), unk_token="[UNK]", max_input_chars_per_word=100)
    final = mark_special(_build_wordpiece(model, options), BERT_SPECIAL)
    return TokenizersBackend(add_script(final, options.script) if options.script else final)


def _build_wordpiece(model: Any, options: VocabularyOptions) -> Any:
    tokenizer = tokenizers.Tokenizer(model)
    set_bert_rules(tokenizer, lowercase=options.is_lowercase, drops_accents=options.is_lowercase)
    return tokenizer


def _choose_alphabet(words: Counter[str], splitter: Any, limit: int, room: int | None) -> tuple[list[str], list[str]]:
    """The most frequent characters, and those among them that occur inside words.

    Chinese text has thousands of rare characters. Where they exceed the `room` for pieces, only the most frequent ones
    are kept, so that they take nine tenths of it.
    """
    counts = Counter[str]()
    inner: set[str] = set()
    for word, count in words.items():
        for part, _ in splitter.pre_tokenize_str(word):
            inner.update(part[1:])
            for letter in part:
                counts[letter] += count
    alphabet = sorted(sorted(counts), key=counts.__getitem__, reverse=True)[:limit]
    needed = [1 + (letter in inner) for letter in alphabet]  # pieces: the letter, and ## with the letter
    if room is not None and sum(needed) > room:
        alphabet = [letter for letter, sum_ in zip(alphabet, accumulate(needed), strict=True) if sum_ <= 0.9 * room]
    return sorted(alphabet), sorted(inner.intersection(alphabet))


def _iter_repeated(words: Counter[str]) -> Iterator[str]:
    for word, count in words.items():
        for start in range(0, count, 1000):
            yield f"{word} " * min(1000, count - start)


def _train_byte_level(source: _Source, options: VocabularyOptions, is_reported: bool) -> TokenizersBackend:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    set_byte_level_rules(tokenizer)
    if options.is_lowercase:
        tokenizer.normalizer = normalizers.Lowercase()
    trainer = trainers.BpeTrainer(
        vocab_size=options.vocab_size,
        min_frequency=options.min_frequency,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=list(ROBERTA_SPECIAL),
        show_progress=is_reported,
        progress_format="json" if is_reported else "silent",
    )
    tokenizer.train_from_iterator(source.read(), trainer)
    source.check()
    return TokenizersBackend(mark_special(tokenizer, ROBERTA_SPECIAL))


_TRAINERS: dict[Kind, Callable[[_Source, VocabularyOptions, bool], Backend]] = {
    "unigram": _train_unigram,
    "wordpiece": _train_wordpiece,
    "bpe": _train_byte_level,
}


def _explain_shortage(error: Exception, options: VocabularyOptions) -> Exception | None:
    """An out-of-memory error that says which option to lower; None for any other error."""
    shortage = describe_shortage(error)
    if shortage is None:
        return None
    remedy, option = "train on less text", ""
    if options.kind == "unigram":
        sample = max(SAMPLE_SIZES.start, (options.input_sentence_size or VocabularyOptions.input_sentence_size) // 4)
        option = "max_sentences"
        remedy = f"set max_sentences to {sample} (now {options.input_sentence_size or 'all'})"
    return ConfigError("out-of-memory", f"learning a vocabulary: {shortage}; {remedy}", option=option)


def _explain(error: RuntimeError, options: VocabularyOptions) -> Exception:
    """SentencePiece's error as ours, with the largest or smallest possible vocabulary if it states one."""
    if largest := re.search(r"size too high .* value <= (\d+)", str(error)):
        return _too_large(options, int(largest[1]))
    if smallest := re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error)):
        return _too_small(options, int(smallest[1]))
    return DataError("no-vocabulary", f"cannot train a vocabulary on this text: {error}")


def _too_large(options: VocabularyOptions, largest: int) -> ConfigError:
    return ConfigError(
        "vocabulary-too-large",
        f"vocab_size {options.vocab_size} is too large for this text: it yields at most {largest} pieces; "
        f"use {largest} or less, or add text",
    )


def _too_small(options: VocabularyOptions, smallest: int) -> ConfigError:
    letters, remedy = {
        "unigram": ("characters of this text", ", or lower character_coverage"),
        "wordpiece": ("characters of this text", ""),
        "bpe": ("256 bytes", ""),
    }[options.kind]
    return ConfigError(
        "vocabulary-too-small",
        f"vocab_size {options.vocab_size} is too small: the {letters} and the special tokens alone take {smallest}; "
        f"increase it{remedy}",
    )
