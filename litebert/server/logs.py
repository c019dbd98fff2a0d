"""Structured logs: one JSON object per line on standard error, without any text that users send.

An exception's message may quote the text that caused it, so only its type and traceback locations are logged.
"""

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

LOGGER = "litebert.server"
_FIELDS = "litebert_fields"  # the attribute of a record with its values
_LEFT_OUT = "litebert_left_out"  # the attribute with the number of similar lines dropped before it


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        values: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
        }
        fields = getattr(record, _FIELDS, None)
        values |= _describe_foreign(record) if fields is None else fields
        if left_out := getattr(record, _LEFT_OUT, 0):
            values["left_out"] = left_out
        if record.exc_info and record.exc_info[1] is not None:
            values |= describe_exception(record.exc_info[1])
        return json.dumps(values, ensure_ascii=False, default=str)


def _describe_foreign(record: logging.LogRecord) -> dict[str, Any]:
    """The source of another library's message, which may quote anything; for uvicorn, also its fixed part."""
    values = {"event": record.name, "at": [f"{record.pathname}:{record.lineno} {record.funcName}"]}
    return values | ({"message": str(record.msg)} if record.name.startswith("uvicorn") else {})


@dataclass
class RepeatLimit:
    """A filter that passes a few lines per origin and period; the next period's first line says how many were dropped.

    Lines about requests always pass: there is exactly one per response.
    """

    max_lines: int = 10
    period_seconds: float = 10.0
    clock: Callable[[], float] = time.monotonic
    _periods: dict[tuple[Any, ...], tuple[float, int]] = field(default_factory=dict)  # start, lines since

    def __call__(self, record: logging.LogRecord) -> bool:
        event = getattr(record, _FIELDS, {}).get("event")
        if event == "request":
            return True
        origin, now = (record.name, record.pathname, record.lineno, event), self.clock()
        began_at, count = self._periods.get(origin, (now, 0))
        if now - began_at >= self.period_seconds:
            setattr(record, _LEFT_OUT, max(0, count - self.max_lines))
            began_at, count = now, 0
        self._periods[origin] = (began_at, count + 1)
        return count < self.max_lines


def set_up_logging(level: str = "info") -> None:
    """Write everything that this process logs as JSON lines to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(RepeatLimit())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel("WARNING")
    logging.getLogger(LOGGER).setLevel(level.upper())


def log(event: str, *, level: int = logging.INFO, error: BaseException | None = None, **values: Any) -> None:
    """Log one line; values are our own numbers and names, never user input."""
    info = None if error is None else (type(error), error, error.__traceback__)
    logging.getLogger(LOGGER).log(level, event, exc_info=info, extra={_FIELDS: {"event": event, **values}})


def describe_exception(error: BaseException) -> dict[str, Any]:
    """The type and the traceback locations, innermost last; no message or source lines, which may contain values."""
    frames = traceback.extract_tb(error.__traceback__)
    return {"error": type(error).__name__, "at": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]}
