"""`litebert serve`: load the models, listen, and on SIGTERM or Ctrl-C finish the accepted requests."""

import gc
import logging
import math
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import uvicorn
from fastapi import FastAPI

from litebert.core.errors import ConfigError
from litebert.inference.engines.choosing import EngineChoice
from litebert.inference.predictor import load
from litebert.server.app import build_app
from litebert.server.connections import ACCEPTED_AT_ONCE, MAX_CONNECTIONS, build_protocol, choose_max_connections
from litebert.server.functions import FUNCTIONS, show_request
from litebert.server.logs import log, set_up_logging
from litebert.server.models import NamedModel, check_names, split_name
from litebert.server.options import ServeOptions

_BACKLOG = 1024  # connections that the kernel queues until they are accepted


class Computing(NamedTuple):
    """The options of `litebert.load` for where and how models are computed."""

    device: str = "auto"
    engine: EngineChoice | None = None
    threads: int = 0


def serve(sources: Sequence[str], options: ServeOptions, computing: Computing = Computing()) -> None:
    """Serve the models until SIGTERM or Ctrl-C."""
    set_up_logging()
    options = options.with_own_hosts()
    listener = bind(options)  # before the slow loading, so that an occupied port is reported at once
    try:
        models = load_models(sources, computing)
        app = build_app(models, options)
        run(app, listener, options)
    finally:
        listener.close()


def load_models(sources: Sequence[str], computing: Computing = Computing()) -> list[NamedModel]:
    """Load models given as `path` or `name=path`."""
    named = [split_name(source) for source in sources]
    check_names([name for name, _ in named])
    models = []
    for name, path in named:
        models.append(NamedModel.of(name, load(path, **computing._asdict())))
        warm_up(models[-1])
        log("loaded", model=name, functions=list(models[-1].functions))
    return models


def warm_up(model: NamedModel) -> None:
    """Run each function on its example, so that the first request does not wait for kernels to compile."""
    for name in model.functions:
        function, predictor = FUNCTIONS[name], model.predictor
        if name == "read" and predictor.engine.name != "torch":
            continue  # needs the torch model, which other engines load only on request
        asked = function.request.model_validate(show_request(function, predictor))
        checked = [function.check(predictor, one) for one in asked.inputs]  # type: ignore[attr-defined]
        function.compute(predictor, checked, asked.settings)


def bind(options: ServeOptions) -> socket.socket:
    """A socket bound to the configured address."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # asyncio disables Nagle's algorithm only if the protocol is given; otherwise a response waits 40 ms for an ACK
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
    except OSError as error:
        listener.close()
        raise ConfigError(
            "cannot-listen",
            f"cannot listen on {options.host}:{options.port} ({error.strerror}): choose another port or host",
            option="port",
        ) from error
    return listener


def run(app: FastAPI, listener: socket.socket, options: ServeOptions) -> None:
    """Serve requests on a bound socket until SIGTERM or Ctrl-C, then finish the accepted ones."""
    if not options.is_local and not options.token:
        log(
            "open",
            level=logging.WARNING,
            host=options.host,
            advice="anyone who can reach this host can send requests: set a token",
        )
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=ACCEPTED_AT_ONCE,
        ws="none",
        timeout_keep_alive=30,
        http=build_protocol(
            options.limits.timeout_seconds,
            max_connections=choose_max_connections(_count_max_files()),
            count_refusal=app.state.metrics.count_refusal,
        ),
        # accepted requests may use their whole time limit; clients that then do not read the response are cut off
        timeout_graceful_shutdown=math.ceil(options.limits.timeout_seconds) + 5,
    )
    # Exempt loaded objects from collection: there are 350,000, and a large request causes several full collections.
    gc.collect()
    gc.freeze()
    listener.listen(_BACKLOG)  # from here on connections are queued, not refused, so the URL can be printed
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    server = _Server(config)
    with _stopped_by(server, signal.SIGTERM, signal.SIGINT):
        log("listening", url=f"http://{shown}:{port}")
        print(f"Open http://{shown}:{port} in a browser; Ctrl-C stops the server.", flush=True)
        server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """uvicorn with a listen backlog longer than the number of connections that it accepts at once."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_BACKLOG)


def _count_max_files() -> int:
    if sys.platform == "win32":  # limited by memory only
        return 2 * MAX_CONNECTIONS
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2 * MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else soft


@contextmanager
def _stopped_by(server: uvicorn.Server, *signals: signal.Signals) -> Iterator[None]:
    """Stop the server on these signals, also before uvicorn installs its handlers and when it re-raises them.

    Otherwise a signal that arrives before uvicorn's handlers are installed would be lost.
    """

    def stop(*_: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
