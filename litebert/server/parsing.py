"""Parse and validate request bodies; counts are checked first.

pydantic describes every error: for half a million invalid inputs, that takes 25 seconds and a gigabyte. So requests
that are too large are refused first, and a list is validated only up to its first error.
"""

import json
from email.message import Message
from typing import Any, TypeVar

from pydantic import ValidationError

from litebert.server.refusals import Refused, describe_invalid
from litebert.server.schemas import Ask

MAX_KEYS = 16  # per object; more than any of our schemas has

AskType = TypeVar("AskType", bound=Ask)


def check_content_type(value: str) -> None:
    """Refuse a body not declared as JSON: a form on another site could send it without a CORS preflight."""
    message = Message()
    message["content-type"] = value
    kind = message.get_content_type()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Refused(422, "the body must be JSON: send the header `Content-Type: application/json`")


def parse_ask(body: bytes, kind: type[AskType], max_inputs: int) -> AskType:
    """The request in this body; raises `Refused` if it is invalid."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "the body is not valid JSON") from None
    _check_counts(content, kind, max_inputs)
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        # an input may have one of several types: report the deepest error, from the closest type
        raise describe_invalid(max(errors, key=lambda one: len(one["loc"]))) from None


def _check_counts(content: Any, kind: type[Ask], max_inputs: int) -> None:
    if not isinstance(content, dict):
        raise Refused(422, f'the body must be an object such as {{"{kind.lists[0]}": [...]}}')
    if unsupported := kind.find_unsupported(content):
        raise Refused(422, unsupported[1], where=unsupported[0])
    objects = [("", content)]
    for key in kind.lists:
        inputs = content.get(key)
        inputs = inputs if isinstance(inputs, list) else []
        if len(inputs) > max_inputs:
            raise Refused(
                422,
                f"{len(inputs):,} {key} exceed the limit of {max_inputs} per request: split them into several requests",
                code="too_many",
                where=key,
            )
        objects += [(f"{key}.{number}", one) for number, one in enumerate(inputs)]
    for where, one in objects:
        if isinstance(one, dict) and len(one) > MAX_KEYS:
            raise Refused(422, f"an object has {len(one):,} keys; at most {MAX_KEYS} are allowed", where=where)
