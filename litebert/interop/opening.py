"""Any checkpoint by what a person calls it: ours, Hugging Face's, Google's, or a name on the hub."""

from pathlib import Path

from litebert import checkpoint
from litebert.checkpoint import MANIFEST, Checkpoint
from litebert.core.errors import DataError
from litebert.interop.google import find_bundle, open_google
from litebert.interop.hub import fetch_from_hub, is_hub_name
from litebert.interop.huggingface import CONFIG_FILE, open_huggingface
from litebert.interop.source import Source, Wishes
from litebert.interop.tensor_files import has_tensor_files


def load_checkpoint(source: str | Path, wishes: Wishes = Wishes()) -> Checkpoint:
    """A checkpoint that was found whole: ours, a Hugging Face folder or hub name, or a TensorFlow checkpoint."""
    opened = open_source(source, wishes)
    if isinstance(opened, Checkpoint):
        return opened
    opened.check()
    return Checkpoint(
        path=opened.path,
        config=opened.config,
        heads=opened.heads,
        layout=opened.family,
        step=opened.step,
        state={},
        foreign=opened,
    )


def open_source(source: str | Path, wishes: Wishes = Wishes()) -> Checkpoint | Source:
    """What `source` is: a checkpoint of ours, or somebody else's, which may turn out not to be whole."""
    path = Path(source)
    if (path / MANIFEST).is_file():
        return checkpoint.load_checkpoint(path)
    if path.suffix in (".safetensors", ".bin") and path.is_file():
        path = path.parent
    if path.is_dir() and ((path / CONFIG_FILE).is_file() or has_tensor_files(path)):
        return _open_huggingface(path, wishes)
    bundle = find_bundle(path)
    if bundle is not None:
        return open_google(bundle, wishes)
    if path.exists():
        raise DataError(
            f"{path} is no model: it has no {MANIFEST} (litebert), no {CONFIG_FILE} with weights (Hugging Face) and no "
            "*.index (TensorFlow)"
        )
    if not is_hub_name(str(source)):
        raise DataError(f"{source}: no such file or directory; expected a model")
    return _open_huggingface(fetch_from_hub(str(source)), wishes)


def _open_huggingface(folder: Path, wishes: Wishes) -> Source:
    if not (folder / CONFIG_FILE).is_file():
        raise DataError(f"{folder} has weights, but no {CONFIG_FILE}, which says how they are computed with")
    return open_huggingface(folder, wishes)
