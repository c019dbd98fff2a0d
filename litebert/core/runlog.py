"""A run's logs: metrics.jsonl (reproducible values only), timing.jsonl (the rest), TensorBoard and Weights & Biases.

Each line is a JSON object with its step. Lines are written complete and in step order. A run that resumes first removes
the lines after the step it resumes from, so an interrupted run ends with the same bytes as an uninterrupted one.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self
from uuid import uuid4

from litebert.core.errors import ConfigError, DataError, TrainingError, advise_on_disk, suggest
from litebert.core.files import atomic_path, check_keys, parse_json_value

METRICS_FILE = "metrics.jsonl"
TIMING_FILE = "timing.jsonl"
WANDB_ID_FILE = "wandb-id"

Values = Mapping[str, float | int]


class Sink(Protocol):
    """An additional destination for the metrics."""

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
        """Wait until the lines are on disk; called before a checkpoint, which must not be ahead of its metrics."""
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
    """Logs nothing; used by all processes except the first."""

    def write(self, step: int, *, metrics: Values, timing: Values) -> None:
        pass

    def sync(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class LineFile:
    """An append-only JSON lines file."""

    def __init__(self, path: Path, *, resumed_step: int) -> None:
        self.path = path
        truncate_log(path, resumed_step)
        # unbuffered: the operating system has each written line at once, and a kill cannot lose it
        self._file = path.open("ab", buffering=0)

    def write(self, step: int, values: Values) -> None:
        line = json.dumps({"step": step, **values}, allow_nan=False).encode() + b"\n"
        try:
            while line:  # a disk that fills up accepts only part of it
                line = line[self._file.write(line) :]
        except OSError as error:
            advice = advise_on_disk(error, self.path) or "; run the same command again"
            raise TrainingError(
                "cannot-write", f"{self.path}: {error.strerror or error}{advice}: it resumes from the last checkpoint"
            ) from error

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def truncate_log(path: Path, step: int) -> None:
    """Truncate a log after the line of `step`, and remove an incomplete last line. Idempotent."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        return
    kept_bytes = 0
    for line, record in _iter_complete_lines(path):
        if record["step"] > step:
            break
        kept_bytes += len(line)
    if kept_bytes < path.stat().st_size:
        os.truncate(path, kept_bytes)


def describe_log(path: Path) -> dict[str, Any]:
    """The length and hash of a log, as stored in a checkpoint."""
    data = path.read_bytes()
    return {"num_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def check_log(path: Path, described: Mapping[str, Any]) -> None:
    """Refuse to continue a log that no longer begins with the lines that `describe_log` described."""
    if not described:  # old checkpoints do not store it
        return
    check_keys(path, described, {"num_bytes": int, "sha256": str})
    data = path.read_bytes()[: described["num_bytes"]] if path.is_file() else b""
    if len(data) < described["num_bytes"] or hashlib.sha256(data).hexdigest() != described["sha256"]:
        state = "is corrupt" if path.is_file() else "is missing"
        raise DataError(
            "log-truncated",
            f"{path} {state}: the lines logged before the last checkpoint are gone or changed; restore the file, or "
            "continue from that checkpoint in another folder (init.from, init.continues)",
        )


def read_log(path: Path) -> list[dict[str, Any]]:
    """The records of a log, which may still be written to: an incomplete last line is skipped."""
    if not path.is_file():
        raise DataError("missing-file", f"{path}: no such file; is {path.parent.absolute()} a run folder?")
    return [record for _, record in _iter_complete_lines(path)]


def _iter_complete_lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            yield line, _parse_line(line, f"{path}:{number}")


def _parse_line(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = parse_json_value(line, where)
    except DataError as error:
        raise DataError("corrupt-log", f"{error}; delete the line or the file") from None
    if not isinstance(record, dict) or type(record.get("step")) is not int:
        raise DataError("corrupt-log", f"{where}: this line has no step; was this file written by litebert?")
    return record


def open_sinks(names: Sequence[str], folder: Path, *, run_name: str, config: Mapping[str, Any]) -> list[Sink]:
    """The additional logs that a recipe names; `config` is the part of the recipe that they record."""
    for name in names:
        if name not in SINKS:
            raise ConfigError("unknown-value", f"unknown log '{name}'; {suggest(name, SINKS)}")
    return [SINKS[name](folder, run_name, config) for name in names]


class TensorboardSink:
    """Event files in the run's folder, for `tensorboard --logdir`."""

    def __init__(self, folder: Path, run_name: str, config: Mapping[str, Any]) -> None:
        del run_name, config  # TensorBoard names a run by its folder and cannot store a recipe
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
    """A Weights & Biases run; wandb itself reads WANDB_PROJECT, WANDB_MODE=offline and so on."""

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
    """The run's unique id there; a folder name would not be unique, and would stay the same in a new run."""
    if not file.exists():
        with atomic_path(file) as temporary:
            temporary.write_text(uuid4().hex, "utf-8")
    return file.read_text("utf-8")


SINKS: dict[str, type[TensorboardSink] | type[WandbSink]] = {"tensorboard": TensorboardSink, "wandb": WandbSink}


def _not_installed(name: str) -> ConfigError:
    return ConfigError(
        "missing-package", f"{name} is not installed: pip install 'litebert[{name}]', or remove it from the logs"
    )
