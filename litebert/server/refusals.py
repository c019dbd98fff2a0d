"""Error responses: an HTTP status, a code for programs and a message for people."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from litebert.server.schemas import Problem, Refusal

# The description of each status in OpenAPI.
MEANINGS = {
    400: "The body is not valid JSON.",
    401: "The bearer token is missing or wrong.",
    404: "Unknown endpoint or model.",
    405: "The endpoint does not support this method.",
    408: "The request took too long to arrive.",
    413: "The request body is too large.",
    421: "The Host header is not accepted.",
    422: "The request is invalid; the message says where and how to fix it.",
    429: "The queue is full; retry after the number of seconds in Retry-After.",
    500: "Internal error.",
    503: "The server is busy or shutting down, or the request timed out.",
}
CODES = {
    400: "not_json",
    401: "unauthorized",
    404: "not_found",
    405: "wrong_method",
    408: "too_slow",
    413: "too_large",
    421: "wrong_host",
    422: "invalid",
    429: "busy",
    500: "internal",
    503: "unavailable",
}


_MAX_KEY = 40  # characters of a key that an error message quotes


class ClientLeft(Exception):
    """The client disconnected, or does not read the response."""


class Refused(Exception):
    """A request is refused with an error response."""

    def __init__(self, status: int, message: str, *, code: str = "", where: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.problem = Problem(code=code or CODES[status], message=message, where=where)

    def to_response(self) -> Response:
        headers: Mapping[str, str] = {}
        if self.status in (429, 503):
            headers = {"Retry-After": "1"}
        elif self.status == 401:
            headers = {"WWW-Authenticate": "Bearer"}
        body = Refusal(error=self.problem).model_dump_json()
        return Response(body, self.status, headers=headers, media_type="application/json")


def describe_invalid(error: Mapping[str, Any]) -> Refused:
    """The refusal for a pydantic error. It quotes nothing of the input but the beginning of an unknown key."""
    # pydantic also names which of several allowed types it tried
    parts = [str(part) for part in error["loc"] if part != "str" and "[" not in str(part)]
    where = ".".join(part if len(part) <= _MAX_KEY else f"{part[:_MAX_KEY]}…" for part in parts)
    message = error["msg"][:1].lower() + error["msg"][1:]
    return Refused(422, f"{where}: {message}" if where else message, where=where)
