"""Our ids beside those of the libraries that the vocabularies come from, on more than 20,000 varied lines.

Where they differ, the line must contain something that docs/tokenizers.md explains; no line of real text does.
"""

import gzip
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest
import sentencepiece
import tokenizers
from varied_lines import iter_rare_lines, iter_varied_lines

from litebert.text.chinese_script import Script
from litebert.text.tokenizer import ReadingOptions, Tokenizer, load_tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

Ids = list[list[int]]
SPECIAL_NAMES = re.compile(r"\[(CLS|SEP|MASK|PAD|UNK)\]|<(pad|unk|s|/s|mask)>")
QUOTES = re.compile(r"``|''")
SEPARATORS = re.compile("[\x1c-\x1f]")
FINAL_SIGMA = re.compile("Σ")


@pytest.fixture(scope="module")
def lines(real_data: Path) -> list[str]:
    lines = list(iter_varied_lines(real_data))
    assert len(set(lines)) > 20_000
    return lines


@pytest.fixture(scope="module")
def albert_file(real_data: Path) -> Path:
    return real_data / "vocab/albert-30k.model"


@pytest.fixture(scope="module")
def bert_file(real_data: Path) -> Path:
    return real_data / "tf/google_albert_base_zh/vocab_chinese.txt"


@pytest.fixture(scope="module")
def roberta_folder(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> Path:
    """vocab.json and merges.txt in the published layout, with a vocabulary of our own (the real one is not here)."""
    trained = train_tokenizer(lines[:3000], VocabularyOptions(kind="bpe", vocab_size=3000))
    folder = tmp_path_factory.mktemp("roberta")
    trained.save(folder / "ours")
    model = json.loads((folder / "ours" / "tokenizer.json").read_text("utf-8"))["model"]
    merges = "\n".join(" ".join(pair) for pair in model["merges"])
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]), "utf-8")
    (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}\n", "utf-8")
    return folder


def google_preprocess(text: str) -> str:
    text = unicodedata.normalize("NFKD", " ".join(text.split()))
    return "".join(c for c in text if not unicodedata.combining(c)).lower()


def google_split_commas(
    pieces: list[str], processor: sentencepiece.SentencePieceProcessor, *, strips: bool
) -> list[str]:
    """Google's digit-comma rule in its own terms; `strips` is what its comparison of str with bytes prevents."""
    result = []
    for piece in pieces:
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            parts = processor.encode(piece[:-1].replace("▁", ""), out_type=str)
            if strips and piece[0] != "▁" and parts[0][0] == "▁":
                parts = parts[1:] if len(parts[0]) == 1 else [parts[0][1:], *parts[1:]]
            result += [*parts, ","]
        else:
            result.append(piece)
    return result


def assert_same_except(lines: list[str], ours: Ids, theirs: Ids, *explained: Callable[[str], object]) -> None:
    """The ids differ only on lines with an explained feature, and each feature does make a difference somewhere."""
    differing = [line for line, a, b in zip(lines, ours, theirs, strict=True) if a != b]
    unexplained = [line for line in differing if not any(feature(line) for feature in explained)]
    assert not unexplained, (len(unexplained), unexplained[:5])
    assert all(any(feature(line) for line in differing) for feature in explained), "an explanation explains nothing"
    rare = set(iter_rare_lines(5000))
    assert rare.issuperset(differing), "a line of real text differs"


def test_albert_ids_are_those_of_sentencepiece_after_googles_preprocessing(lines: list[str], albert_file: Path) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_file=str(albert_file))
    plain = [processor.encode(google_preprocess(line)) for line in lines]
    assert load_tokenizer(albert_file, ReadingOptions(digit_comma="off")).encode_batch(lines) == plain
    pieces = [processor.encode(google_preprocess(line), out_type=str) for line in lines]
    for mode, strips in (("intended", True), ("google_py3", False)):
        tokenizer = load_tokenizer(albert_file, ReadingOptions(digit_comma=mode))
        split = [processor.piece_to_id(google_split_commas(line, processor, strips=strips)) for line in pieces]
        assert tokenizer.encode_batch(lines) == split
    assert plain != split, "the lines should touch the digit-comma rule"


def test_albert_ids_are_those_of_transformers_but_for_quotes_special_names_and_marks(
    lines: list[str], albert_file: Path, tmp_path: Path
) -> None:
    theirs = build_transformers_albert(albert_file)
    ids = [encoding.ids for encoding in theirs.encode_batch(lines, add_special_tokens=False)]
    ours = load_tokenizer(albert_file, ReadingOptions(digit_comma="off")).encode_batch(lines)
    explained = (QUOTES.search, SPECIAL_NAMES.search, has_classless_mark, SEPARATORS.search)
    assert_same_except(lines, ours, ids, *explained)
    theirs.save(str(tmp_path / "tokenizer.json"))
    assert_same_except(lines, load_tokenizer(tmp_path).encode_batch(lines), ids, SPECIAL_NAMES.search)


def test_bert_ids_are_those_of_tokenizers_and_transformers_but_for_special_names(
    lines: list[str], bert_file: Path
) -> None:
    from transformers import BertTokenizer

    tokenizer = load_tokenizer(bert_file)
    ours = tokenizer.encode_batch(lines)
    peer = tokenizers.BertWordPieceTokenizer(str(bert_file), lowercase=True)
    theirs = [encoding.ids for encoding in peer.encode_batch(lines, add_special_tokens=False)]
    assert_same_except(lines, ours, theirs, SPECIAL_NAMES.search)
    vocabulary = {piece: index for index, piece in enumerate(tokenizer.pieces(range(tokenizer.vocab_size)))}
    peer = BertTokenizer(vocab=vocabulary)
    assert_same_except(lines, ours, peer(lines, add_special_tokens=False)["input_ids"], SPECIAL_NAMES.search)


@pytest.mark.parametrize("script", [None, "simplified"])
def test_5000_lines_of_chinese_wikipedia_have_the_ids_and_offsets_of_tokenizers(
    real_data: Path, bert_file: Path, script: Script | None, tmp_path: Path
) -> None:
    if script:
        pytest.importorskip("opencc")
    ours = load_tokenizer(bert_file).adapted(script=script)
    ours.save(tmp_path / "saved")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "saved" / "tokenizer.json"))
    if script is None:
        theirs = tokenizers.BertWordPieceTokenizer(str(bert_file), lowercase=True)
    with gzip.open(real_data / "corpora" / "zhwiki" / "zhwiki_00.gz", "rt", encoding="utf-8") as file:
        lines = list(islice((line.rstrip("\n") for line in file if len(line) > 20 and not line.startswith("<")), 5000))
    assert len(lines) == 5000
    peer = theirs.encode_batch(lines, add_special_tokens=False)
    assert ours.encode_batch(lines) == [encoding.ids for encoding in peer]
    found = [ours.encode_with_offsets(line) for line in lines]
    assert [(one.token_ids, one.offsets) for one in found] == [(encoding.ids, encoding.offsets) for encoding in peer]


def test_bert_ids_are_those_of_the_reference_python_but_for_final_sigma_and_unassigned_characters(
    lines: list[str], bert_file: Path
) -> None:
    """BERT's original algorithm in Python, as `transformers` keeps it: nothing in it comes from `tokenizers`."""
    from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

    peer = BertTokenizerLegacy(str(bert_file), do_lower_case=True)

    def encode(line: str) -> list[int]:
        words = peer.basic_tokenizer.tokenize(line)
        pieces = [piece for word in words for piece in peer.wordpiece_tokenizer.tokenize(word)]
        return [peer.vocab[piece] for piece in pieces]

    ours = load_tokenizer(bert_file).encode_batch(lines)
    assert_same_except(lines, ours, [encode(line) for line in lines], FINAL_SIGMA.search, has_unassigned_character)


def test_roberta_ids_are_those_of_tokenizers_and_transformers_but_for_special_names(
    lines: list[str], roberta_folder: Path
) -> None:
    from transformers import RobertaTokenizer

    files = (str(roberta_folder / "vocab.json"), str(roberta_folder / "merges.txt"))
    ours = load_tokenizer(roberta_folder / "vocab.json").encode_batch(lines)
    peer = tokenizers.ByteLevelBPETokenizer(*files)
    assert ours == [encoding.ids for encoding in peer.encode_batch(lines)]
    peer = RobertaTokenizer(*files)
    assert_same_except(lines, ours, peer(lines, add_special_tokens=False)["input_ids"], SPECIAL_NAMES.search)


def test_offsets_give_the_same_ids_and_the_words_of_the_original(
    lines: list[str], albert_file: Path, bert_file: Path, roberta_folder: Path
) -> None:
    for path in (albert_file, bert_file, roberta_folder):
        tokenizer = load_tokenizer(path)
        sample = [*lines[::5], *iter_rare_lines(2000)]
        for line, token_ids in zip(sample, tokenizer.encode_batch(sample), strict=True):
            encoding = tokenizer.encode_with_offsets(line)
            assert encoding.token_ids == token_ids
            check_offsets(tokenizer, line, encoding.offsets, token_ids)


def check_offsets(tokenizer: Tokenizer, line: str, offsets: list[tuple[int, int]], token_ids: list[int]) -> None:
    """In range, in order, and what stands there becomes the piece (or contains it: one ligature, several pieces)."""
    previous = (0, 0)
    for (start, end), piece, token_id in zip(offsets, tokenizer.pieces(token_ids), token_ids, strict=True):
        assert 0 <= start <= end <= len(line)
        assert previous[0] <= start
        assert previous[1] <= end
        previous = (start, end)
        if tokenizer.kind == "bpe" or token_id == tokenizer.unk_id:
            continue  # part of a character, or anything
        seen = "".join(tokenizer.normalize(line[start:end]).split()).replace("ς", "σ")  # ς only at the end of a word
        wanted = piece.removeprefix("##").removeprefix("▁").replace("ς", "σ")
        assert wanted in seen, (line, piece, line[start:end])
        if len(seen) == end - start:  # no character became several
            assert wanted == seen, (line, piece, line[start:end])


def has_classless_mark(line: str) -> bool:
    """A non-spacing mark without a combining class: `tokenizers` drops it, Google's ALBERT keeps it."""
    return any(unicodedata.category(c) == "Mn" and not unicodedata.combining(c) for c in google_preprocess(line))


def has_unassigned_character(line: str) -> bool:
    return any(unicodedata.category(c) == "Cn" for c in line)


def build_transformers_albert(model_file: Path) -> tokenizers.Tokenizer:
    from transformers import AlbertTokenizer

    processor = sentencepiece.SentencePieceProcessor(model_file=str(model_file))
    vocabulary = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(len(processor))]
    normalizer = dict(iter_fields(dict(iter_fields(model_file.read_bytes()))[3]))
    return AlbertTokenizer(vocab=vocabulary, _spm_precompiled_charsmap=normalizer[2]).backend_tokenizer


def iter_fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The length-delimited fields of a protocol buffer; SentencePiece's model file is one."""
    position = 0

    def read_number() -> int:
        nonlocal position
        number, shift = 0, 0
        while True:
            byte = message[position]
            position += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while position < len(message):
        key = read_number()
        if key & 7 == 2:
            length = read_number()
            yield key >> 3, message[position : position + length]
            position += length
        elif key & 7 == 0:
            read_number()
        else:
            position += {1: 8, 5: 4}[key & 7]
