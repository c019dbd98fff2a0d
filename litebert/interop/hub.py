"""Fetch a model by its name on the Hugging Face hub, or take it from the cache when offline."""

import re
from pathlib import Path

from litebert.core.errors import DataError

_NAME = re.compile(r"[\w.-]+/[\w.-]+")
# the files a model needs; no pickle if there are safetensors, and no code
_WANTED = [
    "*.json",
    "*.safetensors",
    "*.model",
    "*.toml",
    "vocab.txt",
    "merges.txt",
    "README.md",
    "LICENSE*",
    "NOTICE*",
]
_PICKLES = ["pytorch_model*.bin"]
_FILE_ENDINGS = (".safetensors", ".bin", ".json", ".index", ".ckpt")


def is_hub_name(source: str) -> bool:
    """Whether this can be the name of a model on the hub, such as albert/albert-base-v2, not a mistyped path."""
    folder, _, _ = source.rpartition("/")
    is_path = source.startswith(".") or source.endswith(_FILE_ENDINGS) or bool(folder and Path(folder).exists())
    return _NAME.fullmatch(source) is not None and not is_path


def fetch_from_hub(name: str) -> Path:
    """The folder with the model's files, downloaded if necessary."""
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError:
        raise DataError(
            "missing-package",
            f"'{name}' is not a local file or folder; to download it from the Hugging Face Hub: "
            "pip install 'litebert[hub]'",
        ) from None
    for patterns in (_WANTED, _PICKLES):
        try:
            folder = Path(huggingface_hub.snapshot_download(name, allow_patterns=patterns))
        except errors.GatedRepoError:
            raise DataError(
                "hub-access", f"'{name}' is private or gated on the Hugging Face Hub: run `hf auth login`"
            ) from None
        except (errors.RepositoryNotFoundError, errors.HFValidationError):
            raise DataError(
                "unknown-model",
                f"'{name}' is neither a local path nor a model on the Hugging Face Hub: check the spelling",
            ) from None
        except (errors.HfHubHTTPError, errors.LocalEntryNotFoundError, OSError):  # their messages are paragraphs long
            raise DataError(
                "hub-unreachable",
                f"'{name}' is not a local path, the Hugging Face Hub cannot be reached, and its cache has no such "
                "model: check the spelling, or the network",
            ) from None
        if any(folder.glob("*.safetensors")):
            break
    return folder
