"""What a person calls a model."""

from pathlib import Path

_NAMELESS = ("model", "checkpoints", "checkpoint")  # folders whose name says nothing about the model inside


def name_model(path: Path) -> str:
    """The last folder with a telling name: a checkpoint inside a run goes by the run's."""
    parts = [part for part in path.absolute().parts if part not in _NAMELESS and not part.startswith("step-")]
    return parts[-1] if parts else "model"
