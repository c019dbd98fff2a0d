"""What a test asserts about a refusal: the kind of error, its code and the place it names, never its sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from litebert.core.errors import LitebertError


@contextmanager
def refuses(kind: type[LitebertError], code: str, *, at: str = "") -> Iterator[pytest.ExceptionInfo[LitebertError]]:
    """The block raises an error of this kind and code, whose message names the place `at` (a key, a file, a line)."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code == code, f"{caught.value.code}: {caught.value}"
    assert at in str(caught.value)
