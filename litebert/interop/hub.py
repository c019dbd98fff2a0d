"""A model by its name on the Hugging Face hub: fetched where there is a network, from the cache where there is none."""

import re
from pathlib import Path

from litebert.core.errors import DataError

_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
# what a model needs; never a pickle where safetensors are to be had, and no code
_WANTED = ["*.json", "*.safetensors", "*.model", "*.toml", "vocab.txt", "merges.txt", "README.md"]
_PICKLES = ["pytorch_model*.bin"]


def is_hub_name(source: str) -> bool:
    """Whether this can be a model's name on the hub, such as albert/albert-base-v2."""
    return _NAME.fullmatch(source) is not None and not source.startswith(".")


def fetch_from_hub(name: str) -> Path:
    """The folder with the model's files."""
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError:
        raise DataError(
            f"'{name}' is no file or folder here; to fetch it from the Hugging Face hub: pip install 'litebert[hub]'"
        ) from None
    for patterns in (_WANTED, _PICKLES):
        try:
            folder = Path(huggingface_hub.snapshot_download(name, allow_patterns=patterns))
        except (errors.HfHubHTTPError, errors.HFValidationError, errors.LocalEntryNotFoundError, OSError) as error:
            raise DataError(
                f"'{name}' is no file or folder here, and cannot be had from the Hugging Face hub or its cache: "
                f"{' '.join(str(error).split())[:200]}"
            ) from None
        if any(folder.glob("*.safetensors")):
            break
    return folder
