"""Handle a request: parse it, choose the model, check the limits, queue the inputs and return their results."""

import asyncio
import json
import logging
import textwrap
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from litebert.core.errors import LitebertError, suggest
from litebert.server.batching import Batcher, BatchKind, IsStopping, QueueIsFull
from litebert.server.compatible import list_labels
from litebert.server.costs import count_characters, encode_windows, estimate_cost
from litebert.server.functions import FUNCTIONS
from litebert.server.logs import log
from litebert.server.metrics import Metrics
from litebert.server.models import NamedModel
from litebert.server.options import Limits
from litebert.server.parsing import check_content_type, parse_ask
from litebert.server.refusals import ClientLeft, Refused

_MAX_MESSAGE = 400  # characters: a message may quote a long text
_LARGE_BODY = 16_384  # bytes; larger bodies are parsed in a thread, so that other requests do not wait


class Sized(NamedTuple):
    """An input, and its characters after normalization."""

    value: Any
    num_characters: int


class Prepared(NamedTuple):
    """A validated request, ready for the queue."""

    ask: Any
    kind: BatchKind
    inputs: list[Sized]
    costs: list[int]


class Service:
    """The served models and their batch queue."""

    def __init__(self, models: Sequence[NamedModel], limits: Limits, rerank_label: str = "") -> None:
        self.models = {model.name: model for model in models}
        self.limits = limits
        self.rerank_label = rerank_label
        self.metrics = Metrics(lambda: self.batcher.num_waiting)
        self.batcher = Batcher(self._compute, limits, self.metrics.observe_batch)
        self._predictors = {
            model.name: model.predictor.interruptible(lambda: self.batcher.begin_step()) for model in models
        }
        self._parser = ThreadPoolExecutor(1, thread_name_prefix="litebert-parser")

    def _compute(self, kind: BatchKind, inputs: Sequence[Sized]) -> list[Any]:
        """Each input's result as JSON, serialized in the computing thread instead of the event loop.

        An invalid input gets a `Refused` as its result and does not affect the others.
        """
        function, predictor = FUNCTIONS[kind.function], self._predictors[kind.model]
        checked = [self._check(kind, one) for one in inputs]
        fitting = [one for one in checked if not isinstance(one, Refused)]
        settings = dict(kind.settings)  # type: ignore[call-overload]
        results = iter(function.compute(predictor, fitting, settings) if fitting else ())
        return [one if isinstance(one, Refused) else function.dump(next(results)) for one in checked]

    def _check(self, kind: BatchKind, one: Sized) -> Any:
        """The input to compute, or a `Refused` that says what is wrong with it."""
        function, predictor = FUNCTIONS[kind.function], self._predictors[kind.model]
        try:
            checked = function.check(predictor, one.value)
        except LitebertError as error:
            return Refused(422, textwrap.shorten(str(error), _MAX_MESSAGE))
        most = self.limits.max_tokens
        windows = encode_windows(function, predictor, one.value, one.num_characters, most)
        if windows is None:
            return checked
        if windows.num_tokens > most:
            return Refused(
                422,
                f"{windows.num_tokens:,} tokens over all windows exceed the server's limit of {most:,}: "
                "shorten the text",
                code="too_long",
            )
        return checked._replace(windows=windows)  # what was counted is what is computed

    async def answer(self, function: str, request: Request) -> Response:
        """The response to a request; values for the log are stored in `request.state.noted`."""
        check_content_type(request.headers.get("content-type", ""))
        body = await request.body()
        if len(body) > _LARGE_BODY:
            loop = asyncio.get_running_loop()
            prepared = await loop.run_in_executor(self._parser, self._prepare, function, body)
        else:
            prepared = self._prepare(function, body)
        ask, kind, inputs, costs = prepared
        request.state.noted = {"model": kind.model, "inputs": len(inputs)}
        try:
            results = await _unless_left(self.batcher.ask(kind, inputs, costs), request)
        except QueueIsFull:
            raise Refused(429, "the queue is full; retry in a second") from None
        except IsStopping:
            raise Refused(503, "the server is shutting down", code="stopping") from None
        except TimeoutError:
            raise Refused(
                503,
                f"the request took longer than {self.limits.timeout_seconds:g} s; send fewer inputs, or retry",
                code="timeout",
            ) from None
        for number, result in enumerate(results):
            if isinstance(result, Exception):
                raise _refuse(result, ask.place(number))
        envelope = FUNCTIONS[function].envelope
        if envelope:
            answer = envelope.write(kind.model, ask, results)
        else:
            answer = f'{{"model":{json.dumps(kind.model)},"results":[{",".join(results)}]}}'
        return Response(answer, media_type="application/json")

    def _prepare(self, name: str, body: bytes) -> Prepared:
        function = FUNCTIONS[name]
        ask: Any = parse_ask(body, function.request, self.limits.max_inputs)
        model = self._find(name, ask.model)
        settings = ask.settings
        if settings.get("label", "") is None and self.rerank_label in list_labels(model.predictor):
            settings["label"] = self.rerank_label  # if the request has none, and the model has that label
        if bad := function.find_bad_setting(model.predictor, settings):
            raise Refused(422, bad[1], where=bad[0])
        tokenizer, most = model.predictor.tokenizer, self.limits.max_characters
        counted: dict[str, int] = {}  # the query of rerank is part of every input
        inputs = [Sized(one, count_characters(one, tokenizer, most + 1, counted)) for one in ask.inputs]
        for number, one in enumerate(inputs):
            if one.num_characters > most:
                raise Refused(
                    422,
                    f"{one.num_characters:,} characters after normalization exceed the server's limit of {most:,}: "
                    "shorten the text",
                    code="too_long",
                    where=ask.place(number),
                )
        costs = [estimate_cost(function, model.predictor, one.value, one.num_characters) for one in inputs]
        return Prepared(ask, BatchKind(model.name, name, tuple(settings.items())), inputs, costs)

    def _find(self, function: str, name: str | None) -> NamedModel:
        able = [model for model in self.models.values() if function in model.functions]
        if name is None:
            return able[0]
        if name not in self.models:
            raise Refused(404, f"unknown model; {suggest(name, self.models)}", where="model")
        if function not in self.models[name].functions:
            raise Refused(
                422,
                f"this model does not support {function}; {suggest('', [model.name for model in able])}",
                where="model",
            )
        return self.models[name]


async def _unless_left(asking: Coroutine[Any, Any, list[Any]], request: Request) -> list[Any]:
    """The results; cancelled if the client disconnects (ClientLeft) or the request times out (TimeoutError)."""
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


def _refuse(error: Exception, where: str) -> Refused:
    """The refusal of a request because one input failed; an exception other than Refused is our bug (status 500)."""
    if isinstance(error, Refused):
        return Refused(error.status, error.problem.message, code=error.problem.code, where=where)
    log("failed", level=logging.ERROR, error=error)
    return Refused(500, "internal error; see the server's log", where=where)
