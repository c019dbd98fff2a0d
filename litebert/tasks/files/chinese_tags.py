"""Chinese entities: CLUENER (JSON lines) and MSRA, from their files as distributed; characters are tagged.

MSRA is distributed as segments with a slash and a tag (`参加/o 李明/nr`), and as a character per line with BIO or
BMES tags.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from litebert.tasks.files.custom import TagFiles, read_tags
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.finetuning import Dataset
from litebert.tasks.kinds.token_tags import OUTSIDE, TaggedWords, TokenTags

CLUENER_KINDS = (
    *("address", "book", "company", "game", "government"),
    *("movie", "name", "organization", "position", "scene"),
)
# The tags of the distributions, in any case -> the kind
MSRA_KINDS = {"nr": "PER", "ns": "LOC", "nt": "ORG", "per": "PER", "loc": "LOC", "org": "ORG"}
_MSRA_STEMS = {
    "train": ("train", "train1", "msra_train_bio", "msra_train"),
    "dev": ("dev", "valid", "validation", "msra_dev_bio", "msra_dev"),
    # the first distribution has the sentences of testright1 again, without tags, as test1
    "test": ("testright1", "test", "msra_test_bio", "msra_test", "test1"),
}
# A segment of several characters with a tag of its own, such as a number: the tags of its first, inner and last one
_SPREAD = {prefix: tuple(spread) for prefix, spread in zip("BIMES", ("BII", "III", "MMM", "MME", "BME"), strict=True)}


def read_cluener(path: Path, options: TableOptions) -> Dataset:
    """CLUENER's texts with their names, from CLUE's folder, its own, or separate files."""
    labels = (OUTSIDE, *(f"{prefix}-{kind}" for kind in CLUENER_KINDS for prefix in "BI"))
    task = TokenTags("cluener", labels, "characters", scoring="names")
    return read_tags(
        _find_folder(path, ("cluener", "CLUENER", "cluener_public")), options, TagFiles(task, places=("text", "label"))
    )


def read_msra(path: Path, options: TableOptions) -> Dataset:
    """MSRA's sentences in any of its distributions."""
    folder = _find_folder(path, ("msra-ner", "msra", "msra_ner", "MSRA", "msraner"))
    stems = {split: _find_first(folder, names) for split, names in _MSRA_STEMS.items()}
    return read_tags(folder, options, TagFiles(TokenTags("msra-ner", (), "characters"), stems, respell=tag_characters))


def tag_characters(sentence: TaggedWords) -> TaggedWords:
    """The sentence with a tag per character, and the kinds PER, LOC and ORG."""
    words = tuple(character for word in sentence.words for character in word)
    if sentence.label is None:
        return replace(sentence, words=words)
    pairs = zip(sentence.words, sentence.label, strict=True)
    return replace(sentence, words=words, label=tuple(tag for word, one in pairs for tag in _spread(one, len(word))))


def _spread(tag: str, length: int) -> list[str]:
    """The tags of a segment's characters."""
    if tag.lower() == OUTSIDE.lower():
        return [OUTSIDE] * length
    prefix, kind = ("B", tag) if tag.lower() in MSRA_KINDS else (tag[:1].upper(), tag[2:])  # nr, or B-PER
    first, inner, last = _SPREAD.get(prefix, (prefix,) * 3)
    prefixes = [prefix] if length == 1 else [first, *inner * (length - 2), last]
    return [f"{one}-{MSRA_KINDS.get(kind.lower(), kind)}" for one in prefixes]


def _find_folder(path: Path, names: Sequence[str]) -> Path:
    return next((folder for name in names if (folder := path / name).is_dir()), path)


def _find_first(folder: Path, stems: Sequence[str]) -> tuple[str, ...]:
    """The first of the stems that a file in the folder has."""
    present = {file.name.partition(".")[0] for file in folder.iterdir()} if folder.is_dir() else set()
    return next(((stem,) for stem in stems if stem in present), (stems[0],))
