"""From a checked request to its answer: which model is meant, what is too much, and the way through the queue."""

import asyncio
import json
import logging
import textwrap
from collections.abc import Coroutine, Sequence
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from litebert.core.errors import LitebertError, suggest
from litebert.infer.predictor import Predictor
from litebert.serve.batching import Batcher, IsStopping, Lane, QueueIsFull
from litebert.serve.functions import FUNCTIONS, Function
from litebert.serve.logs import log
from litebert.serve.metrics import Metrics
from litebert.serve.models import NamedModel
from litebert.serve.options import Limits
from litebert.serve.refusals import ClientLeft, Refused

_MAX_MESSAGE = 400  # characters: a message may quote a long text


class Service:
    """The models, and the queue before them."""

    def __init__(self, models: Sequence[NamedModel], limits: Limits) -> None:
        self.models = {model.name: model for model in models}
        self.limits = limits
        self.metrics = Metrics(lambda: self.batcher.num_waiting)
        self.batcher = Batcher(self._compute, limits, self.metrics.observe_batch)

    def _compute(self, lane: Lane, inputs: Sequence[Any]) -> list[Any]:
        """Each input's result as JSON, made here and not by the thread that answers everybody.

        What is wrong with an input is its own result: it costs no other anything.
        """
        function, predictor = FUNCTIONS[lane.function], self.models[lane.model].predictor
        mistakes = [_find_mistake(function, predictor, one) for one in inputs]
        fitting = [one for one, mistake in zip(inputs, mistakes, strict=True) if mistake is None]
        settings = dict(lane.settings)  # type: ignore[call-overload]
        results = iter(function.compute(predictor, fitting, settings) if fitting else ())
        return [next(results).model_dump_json() if mistake is None else mistake for mistake in mistakes]

    async def answer(self, function: str, ask: Any, request: Request) -> Response:
        """The answer to a request; what the log may know of it is noted in its state."""
        model = self._find(function, ask.model)
        request.state.noted = {"model": model.name, "inputs": len(ask.inputs)}
        sizes = self._measure(ask.inputs)
        if bad := FUNCTIONS[function].find_bad_setting(model.predictor, ask.settings):
            raise Refused(422, bad[1], where=bad[0])
        lane = Lane(model.name, function, tuple(ask.settings.items()))
        try:
            results = await _unless_left(self.batcher.ask(lane, ask.inputs, sizes), request)
        except QueueIsFull:
            raise Refused(429, "too many texts are waiting already; try again in a second") from None
        except IsStopping:
            raise Refused(503, "the server is stopping; ask another one", code="stopping") from None
        except TimeoutError:
            raise Refused(
                503, f"the answer took over {self.limits.timeout_seconds:g} s; send less, or try again", code="timeout"
            ) from None
        for number, result in enumerate(results):
            if isinstance(result, Exception):
                raise _refuse(result, number)
        body = f'{{"model":{json.dumps(model.name)},"results":[{",".join(results)}]}}'
        return Response(body, media_type="application/json")

    def _find(self, function: str, name: str | None) -> NamedModel:
        able = [model for model in self.models.values() if function in model.functions]
        if name is None:
            return able[0]
        if name not in self.models:
            raise Refused(404, f"no model of this name is served; {suggest(name, self.models)}", where="model")
        if function not in self.models[name].functions:
            raise Refused(
                422, f"this model cannot {function}; {suggest('', [model.name for model in able])}", where="model"
            )
        return self.models[name]

    def _measure(self, inputs: Sequence[Any]) -> list[int]:
        """The characters of each input, none above what is taken."""
        if len(inputs) > self.limits.max_inputs:
            raise Refused(
                422,
                f"{len(inputs)} inputs, and the server takes {self.limits.max_inputs} at once: send them in parts",
                code="too_many",
                where="inputs",
            )
        sizes = [_count_characters(one) - 1 for one in inputs]
        for number, size in enumerate(sizes):
            if size > self.limits.max_characters:
                raise Refused(
                    422,
                    f"{size:,} characters, and the server takes {self.limits.max_characters:,}: shorten the text",
                    code="too_long",
                    where=f"inputs.{number}",
                )
        return sizes


async def _unless_left(asking: Coroutine[Any, Any, list[Any]], request: Request) -> list[Any]:
    """What was asked for; given up when the client leaves, or when its time is over (TimeoutError)."""
    work, leaving = asyncio.ensure_future(asking), asyncio.ensure_future(_wait_until_left(request))
    try:
        async with asyncio.timeout_at(request.state.give_up_at):
            await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ClientLeft
        return work.result()
    finally:
        work.cancel()
        leaving.cancel()


async def _wait_until_left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _find_mistake(function: Function, predictor: Predictor, one: Any) -> LitebertError | None:
    try:
        function.check(predictor, one)
    except LitebertError as error:
        return error
    return None


def _refuse(error: Exception, number: int) -> Refused:
    if isinstance(error, LitebertError):
        return Refused(422, textwrap.shorten(str(error), _MAX_MESSAGE), where=f"inputs.{number}")
    log("failed", level=logging.ERROR, error=error)
    return Refused(500, "the server made a mistake; its log says where", where=f"inputs.{number}")


def _count_characters(value: Any) -> int:
    """The letters of all texts in an input, and one more for each text: an empty word is a token too."""
    if isinstance(value, str):
        return len(value) + 1
    if isinstance(value, BaseModel):
        value = [getattr(value, name) for name in type(value).model_fields]
    return sum(map(_count_characters, value))
