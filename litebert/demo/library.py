"""The text that every CPython carries: the language's help topics and the docstrings of its standard library.

Docstrings are read from the source with `ast`; no module is imported, so nothing of it runs.
"""

import ast
import sysconfig
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from litebert.core.errors import DataError
from litebert.corpus.documents import Document
from litebert.demo.prose import iter_sentences

# Tests, generated or vendored code, other people's packages, and topics, which come as data
_SKIPPED_FOLDERS = frozenset(
    {"test", "tests", "idle_test", "site-packages", "dist-packages", "_vendor", "pydoc_data", "__pycache__"}
)
_HAS_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def standard_library() -> Path:
    """Where this Python keeps its standard library."""
    return Path(sysconfig.get_path("stdlib"))


def load_topics() -> Mapping[str, str]:
    """The pages behind `help("TOPIC")`."""
    try:
        from pydoc_data.topics import topics
    except ImportError:  # left out by some distributors
        return {}
    return topics


def collect_documents(library: Path, topics: Mapping[str, str]) -> list[Document]:
    """A document for each topic and each docstring, in a fixed order; a module's one-liners together are one more.

    Within a docstring the order of sentences means something; between those of two functions it hardly does. A sentence
    that came before is left out: topics quote each other at length, and modules their twins, and what is held out must
    not have been read elsewhere.
    """
    seen: set[str] = set()
    documents = [Document(f"topic {name}", _new_sentences(topics[name], seen)) for name in sorted(topics)]
    for module, docstrings in iter_docstrings(library):
        texts = [_new_sentences(docstring, seen) for docstring in docstrings]
        one_liners = tuple(text[0] for text in texts if len(text) == 1)
        documents += [Document(f"module {module}", text) for text in (*texts, one_liners) if len(text) > 1]
    if not documents:
        raise DataError(
            "no-documentation",
            f"{library} contains no Python source with docstrings: run the demo with a complete CPython",
        )
    return [document for document in documents if document.sentences]


def iter_docstrings(library: Path) -> Iterator[tuple[str, list[str]]]:
    """Each module's name and its docstrings in the order of the source."""
    for path in sorted(library.rglob("*.py")):
        place = path.relative_to(library)
        if _SKIPPED_FOLDERS.isdisjoint(place.parts):
            yield ".".join(place.with_suffix("").parts), list_docstrings(path.read_bytes())


def list_docstrings(source: bytes) -> list[str]:
    """The docstrings of a module, its classes and functions; none where the source does not parse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other people's invalid escapes
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):  # samples of bad syntax are part of the library
            return []
    nodes = [node for node in ast.walk(tree) if isinstance(node, _HAS_DOCSTRING)]
    nodes.sort(key=lambda node: getattr(node, "lineno", 0))  # a module has no line
    return [docstring for docstring in map(ast.get_docstring, nodes) if docstring]


def _new_sentences(text: str, seen: set[str]) -> tuple[str, ...]:
    sentences = tuple(sentence for sentence in dict.fromkeys(iter_sentences(text)) if sentence not in seen)
    seen.update(sentences)
    return sentences
