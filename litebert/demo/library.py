"""The text that ships with CPython: the language's help topics and the docstrings of the standard library.

Docstrings are read from the source with `ast`; no module is imported or executed.
"""

import ast
import sysconfig
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from litebert.core.errors import DataError
from litebert.corpus.documents import Document
from litebert.demo.prose import iter_sentences

# Tests, generated or vendored code, third-party packages, and the topics, which are loaded as data
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
    """One document per topic and per docstring, in a fixed order; a module's one-line docstrings form one document.

    Sentence order is meaningful within a docstring, but hardly between docstrings. Repeated sentences are dropped:
    topics quote each other at length, similar modules share text, and validation text must not occur in training.
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
    """Each module's name and its docstrings in source order."""
    for path in sorted(library.rglob("*.py")):
        place = path.relative_to(library)
        if _SKIPPED_FOLDERS.isdisjoint(place.parts):
            yield ".".join(place.with_suffix("").parts), list_docstrings(path.read_bytes())


def list_docstrings(source: bytes) -> list[str]:
    """The docstrings of a module, its classes and functions; none if the source does not parse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other people's invalid escapes
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):  # the library includes samples of bad syntax
            return []
    nodes = [node for node in ast.walk(tree) if isinstance(node, _HAS_DOCSTRING)]
    nodes.sort(key=lambda node: getattr(node, "lineno", 0))  # a module has no line
    return [docstring for docstring in map(ast.get_docstring, nodes) if docstring]


def _new_sentences(text: str, seen: set[str]) -> tuple[str, ...]:
    sentences = tuple(sentence for sentence in dict.fromkeys(iter_sentences(text)) if sentence not in seen)
    seen.update(sentences)
    return sentences
