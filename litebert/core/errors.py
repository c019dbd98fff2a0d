"""Our exceptions: wrong input from a person. Each message says what, where, and how to mend it."""

import errno
import os
from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar, NamedTuple

_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class LitebertError(Exception):
    """A mistake that the user can mend; the command line shows it as one line and exits with its code."""

    exit_code: ClassVar[int] = 2


class ConfigError(LitebertError):
    """A preset, recipe or option that cannot be what was meant."""


class BusyError(ConfigError):
    """A folder that another process works in: nothing is wrong, and whoever waits for it can tell by the code."""

    exit_code = os.EX_TEMPFAIL


class DataError(LitebertError):
    """A file whose content is not what it should be."""


class TrainingError(LitebertError):
    """A run that cannot go on."""


class Refusal(NamedTuple):
    """What the command line says of an error that a person can mend."""

    line: str
    exit_code: int


def describe_refusal(error: BaseException) -> Refusal | None:
    """The line and the exit code for an error of ours, or of a file; None for all others, which are nobody's input."""
    if isinstance(error, LitebertError):
        return Refusal(f"error: {error}", error.exit_code)
    if not isinstance(error, OSError):
        return None
    is_full = error.errno in _FULL_DISK
    if error.filename is None and not is_full:
        return None
    where = "" if error.filename is None else f"{error.filename}: "  # of a write, the system does not say which
    remedy = "; make room and start the same command again" if is_full else ""
    return Refusal(f"error: {where}{error.strerror}{remedy}", 2)


def suggest(word: str, valid: Iterable[str]) -> str:
    """What to append to an 'unknown ...' message: the nearest valid name, or all of them when none is near."""
    names = sorted(valid)
    near = get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return f"did you mean '{near[0]}'?" if near else f"valid: {', '.join(names)}"
