"""Exceptions for wrong input. Each message says what is wrong, where, and how to fix it."""

import errno
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from litebert.core.memory import describe_shortage

_ADVICE = {
    errno.ENOSPC: "free space on the disk of {disk} and run the same command again",
    errno.EDQUOT: "your quota on the disk of {disk} is used up: free space and run the same command again",
    errno.EFBIG: "raise the file size limit (ulimit -f) and run the same command again",
    errno.EIO: "the disk of {disk} may be failing: back it up before you run the same command again",
}


class LitebertError(Exception):
    """A mistake that the user can fix; the command line shows it as one line and exits with its `exit_code`.

    `code` names the kind of mistake, such as "unknown-key". It stays the same when the sentence is reworded, so that
    programs and tests can rely on it. The message says what is wrong, where, and how to fix it. `option` names the
    argument of the Python function that fixes it; the command line adds its flag.
    """

    exit_code: int = 2

    def __init__(self, code: str, message: str, *, option: str = "") -> None:
        super().__init__(code, message)  # both, so that the error survives pickling between processes
        self.code = code
        self.message = escape_controls(message)
        self.option = option

    def __str__(self) -> str:
        return self.message


class ConfigError(LitebertError):
    """An invalid preset, recipe or option."""


class BusyError(ConfigError):
    """The folder is in use by another process. The exit code tells a caller to try again later."""

    exit_code = os.EX_TEMPFAIL


class DataError(LitebertError):
    """A file that is missing, corrupt or in the wrong format."""


class TrainingError(LitebertError):
    """A run that cannot continue."""


class WorkersError(TrainingError):
    """The processes of a run failed with an exit code; the cause was printed when it happened."""

    def __init__(self, exit_code: int) -> None:
        super().__init__("workers-ended", f"the processes of the run ended with exit code {exit_code}")
        self.exit_code = exit_code


class LitebertWarning(UserWarning):
    """Something the user should know that is not an error; the command line prints it as a note."""


class TextsCutWarning(LitebertWarning):
    """Texts were longer than the model's maximum length and were truncated."""


def warn(message: str, category: type[LitebertWarning] = LitebertWarning) -> None:
    """Warn at the line of the user's code that called litebert."""
    package, frame, level = __name__.partition(".")[0], sys._getframe(1), 2  # level 1 would be this function
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class Refusal(NamedTuple):
    """What the command line prints for an error that the user can fix, and its exit code."""

    line: str
    exit_code: int


@contextmanager
def naming_shortages(doing: str, *, fix: str) -> Iterator[None]:
    """Turn an out-of-memory error of the block, or of the function, into one that says what was done and what helps."""
    try:
        yield
    except (MemoryError, RuntimeError, OSError) as error:
        shortage = describe_shortage(error)
        if shortage is None:
            raise
        raise TrainingError("out-of-memory", f"{doing}: {shortage}; {fix}") from error


def describe_refusal(error: BaseException) -> Refusal | None:
    """The line and exit code for a litebert, out-of-memory or file error; None for any other, which is a bug."""
    if isinstance(error, LitebertError):
        return Refusal(f"error[{error.code}]: {error}", error.exit_code)
    shortage = describe_shortage(error)
    if shortage is not None:
        return Refusal(f"error[out-of-memory]: {shortage}; close other programs, or use a machine with more memory", 2)
    if not isinstance(error, OSError):
        return None
    advice = advise_on_disk(error)
    if error.filename is None and not advice:
        return None
    where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "  # a failed write has no file name
    return Refusal(escape_controls(f"error: {where}{error.strerror}{advice}"), 2)


def advise_on_disk(error: OSError, path: Path | None = None) -> str:
    """What to append to an error message if the disk is the cause; empty otherwise."""
    advice = _ADVICE.get(error.errno or 0)
    if advice is None:
        return ""
    named = path or (Path(os.fsdecode(error.filename)) if error.filename is not None else None)
    disk = next((folder for folder in named.absolute().parents if folder.is_mount()), Path("/")) if named else None
    return f"; {advice.format(disk=disk or 'the output')}"


def explain_import(error: ImportError, *, purpose: str, remedy: str) -> LitebertError:
    """Why a package could not be imported: it is not installed, it cannot be loaded, or memory ran out."""
    shortage = describe_shortage(error)
    if shortage is not None:
        return ConfigError("out-of-memory", f"{purpose} ran out of memory while it was loaded ({shortage})")
    if isinstance(error, ModuleNotFoundError):
        return ConfigError("missing-package", f"{purpose}: {remedy}")
    return ConfigError("missing-package", f"{purpose}, which is installed but cannot be loaded: {in_one_line(error)}")


def escape_controls(text: str) -> str:
    """The text with line ends, terminal sequences and other characters that do not print written as escapes.

    Messages quote names and values from files, whose author must not be able to write to the reader's terminal.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def in_one_line(error: BaseException) -> str:
    """Another library's error message as a single line."""
    return " ".join(str(error).split())


def suggest(word: str, valid: Iterable[str], other: str = "") -> str:
    """What to append to an 'unknown ...' message: the nearest valid name, or all of them when none is near.

    `other` is what else is valid, such as "the path of a .toml file".
    """
    names = sorted(valid)
    near = get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    last = f", or {other}" if other else ""
    return f"did you mean '{near[0]}'{last}?" if near else f"valid: {', '.join(names)}{last}"
