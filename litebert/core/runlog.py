"""The numbers of a run on disk: metrics.jsonl (reproducible values only), timing.jsonl (the rest), others' logs.

Each line is one JSON object with its step. Lines are written whole and in the order of their steps; a run that resumes
first forgets the lines after the step it resumes from, so that the file of an interrupted run equals, byte for byte,
that of a run that never stopped.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self
from uuid import uuid4

from litebert.core.errors import ConfigError, DataError, TrainingError, advise_on_disk, suggest
from litebert.core.files import atomic_path, check_keys

METRICS_FILE = "metrics.jsonl"
TIMING_FILE = "timing.jsonl"
WANDB_ID_FILE = "wandb-id"

Values = Mapping[str, float | int]


class Sink(Protocol):
    """Another program that wants the numbers too."""

    def write(self, step: int, values: Values) -> None: ...

    def close(self) -> None: ...


class RunLog:
    """The logs of one run, open for writing; use it in a `with` block."""

    def __init__(self, folder: Path, *, resumed_step: int = 0, sinks: Sequence[Sink] = ()) -> None:
        self._metrics = LineFile(folder / METRICS_FILE, resumed_step=resumed_step)
        self._timing = LineFile(folder / TIMING_FILE, resumed_step=resumed_step)
        self._sinks = sinks

    def write(self, step: int, *, metrics: Values, timing: Values) -> None:
        """Record a step: `metrics` must be the same in every run of this recipe, `timing` need not."""
        self._metrics.write(step, metrics)
        self._timing.write(step, timing)
        for sink in self._sinks:
            sink.write(step, {**metrics, **timing})

    def sync(self) -> None:
        """Wait until the lines are on the disk: before a checkpoint, which must not be ahead of its metrics."""
        self._metrics.sync()
        self._timing.sync()

    def close(self) -> None:
        for part in (self._metrics, self._timing, *self._sinks):
            part.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NoLog:
    """Logs nothing: the log of all processes but the first."""

    def write(self, step: int, *, metrics: Values, timing: Values) -> None:
        pass

    def sync(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class LineFile:
    """A file of JSON lines that grows by whole lines."""

    def __init__(self, path: Path, *, resumed_step: int) -> None:
        self.path = path
        forget_lines_after(path, resumed_step)
        # unbuffered: a line is the system's the moment it is written, and a kill cannot lose it
        self._file = path.open("ab", buffering=0)

    def write(self, step: int, values: Values) -> None:
        line = json.dumps({"step": step, **values}, allow_nan=False).encode() + b"\n"
        try:
            while line:  # a disk that fills up takes a part of it, and refuses the rest
                line = line[self._file.write(line) :]
        except OSError as error:
            advice = advise_on_disk(error, self.path) or "; start the same command again"
            raise TrainingError(
                "cannot-write", f"{self.path}: {error.strerror or error}{advice}: it continues from the last checkpoint"
            ) from error

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def forget_lines_after(path: Path, step: int) -> None:
    """Cut a log after the line of `step`, and a half-written last line off; doing it again changes nothing."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        return
    kept_bytes = 0
    for line, record in _iter_whole_lines(path):
        if record["step"] > step:
            break
        kept_bytes += len(line)
    if kept_bytes < path.stat().st_size:
        os.truncate(path, kept_bytes)


def describe_log(path: Path) -> dict[str, Any]:
    """How long a log is and the hash of its bytes: what a checkpoint remembers of it."""
    data = path.read_bytes()
    return {"num_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def check_log(path: Path, described: Mapping[str, Any]) -> None:
    """Refuse to continue a log that no longer begins with the lines that `describe_log` described."""
    if not described:  # by a checkpoint of before
        return
    check_keys(path, described, {"num_bytes": int, "sha256": str})
    data = path.read_bytes()[: described["num_bytes"]] if path.is_file() else b""
    if len(data) < described["num_bytes"] or hashlib.sha256(data).hexdigest() != described["sha256"]:
        state = "is corrupt: it does not begin with what" if path.is_file() else "is missing: it held what"
        raise DataError(
            "log-truncated",
            f"{path} {state} was logged before the last checkpoint; restore it, or start a new run in another folder "
            "from that checkpoint (init.from, init.continues)",
        )


def read_log(path: Path) -> list[dict[str, Any]]:
    """The records of a log, also of one that is being written: a half-written last line is left out."""
    if not path.is_file():
        raise DataError("missing-file", f"{path}: no such file; is {path.parent.absolute()} the folder of a run?")
    return [record for _, record in _iter_whole_lines(path)]


def _iter_whole_lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            yield line, _parse_line(line, f"{path}:{number}")


def _parse_line(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise DataError(
            "corrupt-log", f"{where}: this line is not JSON ({error}); delete it, or the file, to go on"
        ) from error
    if not isinstance(record, dict) or not isinstance(record.get("step"), int):
        raise DataError("corrupt-log", f"{where}: this line has no step; is this a file of ours?")
    return record


def open_sinks(names: Sequence[str], folder: Path, *, run_name: str, config: Mapping[str, Any]) -> list[Sink]:
    """The further logs that a recipe asks for, by name; `config` is what they show of the recipe."""
    for name in names:
        if name not in SINKS:
            raise ConfigError("unknown-value", f"unknown log '{name}'; {suggest(name, SINKS)}")
    return [SINKS[name](folder, run_name, config) for name in names]


class TensorboardSink:
    """Event files in the run's folder, for `tensorboard --logdir`."""

    def __init__(self, folder: Path, run_name: str, config: Mapping[str, Any]) -> None:
        del run_name, config  # TensorBoard names a run by its folder, and has no place for a recipe
        try:
            from tensorboard.summary import Writer  # the package's own writer, which needs no torch
        except ImportError as error:
            raise _not_installed("tensorboard") from error
        self._writer = Writer(str(folder / "tensorboard"))

    def write(self, step: int, values: Values) -> None:
        for key, value in values.items():
            self._writer.add_scalar(key, value, step)

    def close(self) -> None:
        self._writer.close()


class WandbSink:
    """A run at Weights & Biases; WANDB_PROJECT, WANDB_MODE=offline and the like are its own to read."""

    def __init__(self, folder: Path, run_name: str, config: Mapping[str, Any]) -> None:
        try:
            import wandb
        except ImportError as error:
            raise _not_installed("wandb") from error
        run_id = _read_or_draw_id(folder / WANDB_ID_FILE)
        self._run = wandb.init(dir=str(folder), name=run_name, id=run_id, resume="allow", config=dict(config))

    def write(self, step: int, values: Values) -> None:
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        self._run.finish()


def _read_or_draw_id(file: Path) -> str:
    """What tells a run from all others there; its folder's name would not, nor tell when it is begun anew."""
    if not file.exists():
        with atomic_path(file) as temporary:
            temporary.write_text(uuid4().hex, "utf-8")
    return file.read_text("utf-8")


SINKS: dict[str, type[TensorboardSink] | type[WandbSink]] = {"tensorboard": TensorboardSink, "wandb": WandbSink}


def _not_installed(name: str) -> ConfigError:
    return ConfigError(
        "missing-package", f"the log '{name}' is not installed: pip install 'litebert[{name}]', or leave it out"
    )
