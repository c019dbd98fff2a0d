"""Our exceptions: wrong input from a person. Each message says what, where, and how to mend it."""

import os
from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar


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


def suggest(word: str, valid: Iterable[str]) -> str:
    """What to append to an 'unknown ...' message: the nearest valid name, or all of them when none is near."""
    names = sorted(valid)
    near = get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return f"did you mean '{near[0]}'?" if near else f"valid: {', '.join(names)}"
