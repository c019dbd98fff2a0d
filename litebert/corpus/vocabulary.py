"""Training a tokenizer on text files: the story of `litebert tokenizer train` and `litebert.train_tokenizer`."""

import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from litebert.core.errors import ConfigError
from litebert.core.memory import measure_free_memory
from litebert.core.progress import ProgressBar
from litebert.corpus.chunks import iter_chunks
from litebert.corpus.documents import ReadOptions, describe_source
from litebert.corpus.formats.parsers import parse_stretch
from litebert.corpus.notes import Notes
from litebert.corpus.sources import STDIN, find_files, spool_stdin, spool_texts
from litebert.text.tokenizer import Tokenizer, is_saved_tokenizer
from litebert.text.train_tokenizer import SAMPLE_SIZES, VocabularyOptions, train_tokenizer

_MEMORY_PER_TEXT = 25  # bytes that SentencePiece takes for a byte of text, as measured


def train_from_files(
    paths: Sequence[str],
    options: VocabularyOptions,
    read: ReadOptions,
    *,
    notes: Notes,
    texts: Iterable[str] | None = None,
) -> Tokenizer:
    """The tokenizer of files and `texts`, with progress; `notes` collects what is skipped."""
    sample_size = options.input_sentence_size if options.kind == "unigram" else None
    sentences = _iter_sentences(paths, texts, read, notes, sample_size)
    with closing(sentences), _show_progress() as report:
        return train_tokenizer(sentences, options, report)


def check_output(out: Path, *, is_replaced: bool) -> None:
    """Raise if the output folder cannot be written, before training for an hour."""
    if out.exists() and not is_saved_tokenizer(out):
        raise ConfigError(
            "output-exists",
            f"{out} exists and is not a tokenizer made by litebert; choose another folder",
            option="out",
        )
    if out.exists() and not is_replaced:
        raise ConfigError("output-exists", f"{out} exists; choose another folder, or replace it", option="overwrite")
    nearest = next(folder for folder in out.absolute().parents if folder.exists())
    try:
        tempfile.TemporaryDirectory(prefix=".litebert-", dir=nearest).cleanup()
    except OSError as error:
        raise ConfigError(
            "cannot-write", f"cannot write {out}: {nearest}: {error.strerror}; choose another folder", option="out"
        ) from None


def _iter_sentences(
    paths: Sequence[str],
    texts: Iterable[str] | None,
    options: ReadOptions,
    notes: Notes,
    sample_size: int | None = None,
) -> Generator[str, None, None]:
    """All sentences, with a bar for the share of the files on disk that is read.

    At the end, a note says if a unigram vocabulary of `sample_size` sentences (0: all) may need more memory than is
    free.
    """
    text_bytes = num_sentences = 0
    with tempfile.TemporaryDirectory(prefix="litebert-stdin-") as spool:
        patterns = [str(spool_stdin(Path(spool))) if path == STDIN else path for path in dict.fromkeys(paths)]
        patterns += [] if texts is None else [str(spool_texts(texts, Path(spool)))]
        sources = [describe_source(path, options) for path in find_files(patterns)]
        with ProgressBar("reading", total=sum(source.num_bytes for source in sources)) as progress:
            for chunk in iter_chunks(sources, limits=options.limits):
                for stretch in chunk.stretches:
                    for document in parse_stretch(stretch, notes):
                        yield from document.sentences
                        num_sentences += len(document.sentences)
                text_bytes += chunk.num_bytes
                progress.move_to(chunk.raw_position)
    print(f"training a vocabulary on {text_bytes / 1e6:,.1f} MB of text ...", file=sys.stderr, flush=True)
    if sample_size is not None and (note := _foresee_shortage(text_bytes, num_sentences, sample_size)):
        print(note, file=sys.stderr, flush=True)


def _foresee_shortage(text_bytes: int, num_sentences: int, sample_size: int) -> str:
    """A note if SentencePiece may need more memory than is free: it then ends the process, which nobody can catch."""
    share = min(1.0, sample_size / max(1, num_sentences)) if sample_size else 1.0
    needed, free = _MEMORY_PER_TEXT * share * text_bytes, measure_free_memory()
    if free is None or needed <= free:
        return ""
    fitting = max(SAMPLE_SIZES.start, int(share * num_sentences * free / needed / 2))
    return (
        f"note: this may need {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free; if it ends without an "
        f"error, set max_sentences to {fitting}"
    )


@contextmanager
def _show_progress() -> Iterator[Callable[[float], None]]:
    """Yields a function to call with the share of the work that is done; its clock starts with the first call."""
    with ExitStack() as stack:
        shown: list[ProgressBar] = []

        def report(share: float) -> None:
            if not shown:
                shown.append(stack.enter_context(ProgressBar("learning", total=100, unit="%", scale=1)))
            shown[0].move_to(100 * share)

        yield report
