"""What every test may ask for: the real data where it is, and quiet hypothesis settings."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("litebert", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("litebert")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real text and task data; tests that need it skip where $LITEBERT_DATA is unset."""
    folder = os.environ.get("LITEBERT_DATA")
    if not folder:
        pytest.skip("LITEBERT_DATA is not set")
    return Path(folder)
