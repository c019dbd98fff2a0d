"""The application: a route per function of the served models, the model list, health checks and metrics."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel, create_model
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from litebert.core.errors import ConfigError
from litebert.server import schemas
from litebert.server.compatible import list_labels
from litebert.server.functions import FUNCTIONS, Function, show_request
from litebert.server.guard import Guard
from litebert.server.logs import log
from litebert.server.metrics import CONTENT_TYPE
from litebert.server.models import NamedModel
from litebert.server.options import ServeOptions
from litebert.server.pages import add_pages
from litebert.server.refusals import CODES, MEANINGS, Refused
from litebert.server.service import Service

_DESCRIPTION = (
    "Inference API for lite BERTs. A request has one or more `inputs` and returns one result per input, in the same "
    "order; inputs of different requests are batched together. Errors have the form "
    '`{"error": {"code", "message", "where"}}`.'
)


def build_app(models: Sequence[NamedModel], options: ServeOptions) -> FastAPI:
    """Build the application that serves these models."""
    _check_rerank_label(options.rerank_label, models)
    service = Service(models, options.limits, options.rerank_label)

    @asynccontextmanager
    async def live(_: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        yield
        await asyncio.to_thread(service.batcher.stop)
        log("stopped")

    app = FastAPI(
        title="litebert",
        version=version("litebert"),
        description=_DESCRIPTION,
        lifespan=live,
        docs_url=None,  # FastAPI's own pages load scripts from a CDN
        redoc_url=None,
        responses=_refusals(401, 421, 500),
    )
    app.state.metrics = service.metrics  # for requests refused before they reach a route
    app.add_middleware(Guard, options=options, metrics=service.metrics)
    if options.origins:  # outside the guard, so that pages of these origins can read its refusals
        app.add_middleware(
            _OtherSites,  # type: ignore[arg-type]  # mypy loses the parameters behind **options
            count_refusal=service.metrics.count_refusal,
            allow_origins=list(options.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Retry-After"],
        )
    for name, function in FUNCTIONS.items():
        if any(name in model.functions for model in models):
            _add_function(app, service, name, function)
    _add_watching(app, service, with_examples=options.is_private)
    add_pages(app)
    _add_refusals(app)
    return app


def _check_rerank_label(label: str, models: Sequence[NamedModel]) -> None:
    known = {name: None for model in models if "rerank" in model.functions for name in list_labels(model.predictor)}
    if label and label not in known:
        labels = f"their labels are {', '.join(known)}" if known else "none has labels"
        raise ConfigError(
            "unknown-label",
            f"rerank_label = '{label}' is not a label of the served models that can rerank: {labels}",
            option="rerank_label",
        )


def _add_function(app: FastAPI, service: Service, name: str, function: Function) -> None:
    async def answer(request: Request, ask: BaseModel) -> Response:
        del ask  # only for OpenAPI; the service parses the body itself, because it checks sizes first
        return await service.answer(name, request)

    answer.__annotations__["ask"] = function.request
    title = function.request.__name__
    first = next(model for model in service.models.values() if name in model.functions)
    answer_model = (
        function.envelope.answer
        if function.envelope
        else create_model(f"{title}Results", model=(str, ...), results=(list[function.result], ...))  # type: ignore[name-defined]
    )
    app.router.add_api_route(
        f"/v1/{name}",
        answer,
        route_class_override=_Unparsed,
        methods=["POST"],
        summary=function.summary,
        operation_id=name,
        response_model=answer_model,
        responses=_refusals(400, 404, 408, 413, 422, 429, 503),
        openapi_extra={
            "requestBody": {"content": {"application/json": {"example": show_request(function, first.predictor)}}}
        },
    )


class _OtherSites(CORSMiddleware):
    """CORS headers; preflight requests from disallowed origins get our error format and are counted."""

    def __init__(self, app: ASGIApp, *, count_refusal: Callable[[int], None], **options: Any) -> None:
        super().__init__(app, **options)
        self._count_refusal = count_refusal

    def preflight_response(self, request_headers: Headers) -> Response:
        response = super().preflight_response(request_headers)
        if response.status_code < 400:
            return response
        self._count_refusal(response.status_code)
        refused = Refused(response.status_code, "this origin is not allowed", code="wrong_origin")
        answer = refused.to_response()
        for name, value in response.headers.items():
            answer.headers.setdefault(name, value)
        return answer


class _Unparsed(APIRoute):
    """A route whose body FastAPI describes but does not parse."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        async def answer(request: Request) -> Response:
            response: Response = await self.endpoint(request, None)
            return response

        return answer


def _add_watching(app: FastAPI, service: Service, *, with_examples: bool) -> None:
    limits, batcher = service.limits, service.batcher
    served = schemas.ServedModels(
        models=[model.describe(with_examples=with_examples) for model in service.models.values()],
        max_inputs=limits.max_inputs,
        max_characters=limits.max_characters,
    )

    @app.get("/v1/models", summary="List the served models and their functions")
    async def list_models() -> schemas.ServedModels:
        return served

    @app.head("/health", include_in_schema=False)
    @app.get("/health", summary="Liveness check", responses={503: {"model": schemas.State}})
    async def tell_health(response: Response) -> schemas.State:
        response.status_code = 503 if batcher.is_broken else 200
        return schemas.State(status="broken" if batcher.is_broken else "ok")

    @app.head("/ready", include_in_schema=False)
    @app.get("/ready", summary="Readiness check", responses={503: {"model": schemas.State}})
    async def tell_readiness(response: Response) -> schemas.State:
        if batcher.is_stopping:
            response.status_code = 503
            return schemas.State(status="stopping")
        if batcher.num_waiting >= limits.max_queue or batcher.is_late:
            response.status_code = 503
            return schemas.State(status="busy")
        return schemas.State(status="ready")

    @app.get("/metrics", summary="Metrics in Prometheus format", response_class=Response, responses={200: _AS_TEXT})
    async def tell_metrics() -> Response:
        return Response(service.metrics.to_text(), media_type=CONTENT_TYPE)


_AS_TEXT: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Counters"}


def _add_refusals(app: FastAPI) -> None:
    """Give all errors the same format, ours and Starlette's."""
    paths = [path for path in app.openapi()["paths"] if path.startswith("/v1/")]

    async def refuse_http(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        status = error.status_code if error.status_code in CODES else 400
        message = f"no such endpoint; available: {', '.join(paths)}" if status == 404 else MEANINGS[status]
        response = Refused(status, message).to_response()
        response.headers.update(error.headers or {})
        return response

    async def refuse(_: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return error.to_response()

    handlers: dict[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
        HTTPException: refuse_http,
        Refused: refuse,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": schemas.Refusal, "description": MEANINGS[status]} for status in statuses}
