"""`litebert serve`: serve models over HTTP, with a demo page."""

from pathlib import Path
from typing import Annotated

import typer

from litebert import api
from litebert.cli.words import EngineWord, Threads
from litebert.core.errors import ConfigError


def serve_models(
    checkpoints: Annotated[
        list[str], typer.Argument(metavar="CKPT...", help="Models to serve; NAME=PATH sets the name.")
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 accepts other machines (set --token-file).")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the bearer token that clients must send.", exists=True, dir_okay=False),
    ] = None,
    origin: Annotated[
        list[str] | None, typer.Option(help="Additional site to allow by CORS, such as https://example.org.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Additional Host header to accept. Default: only local names."),
    ] = None,
    root_path: Annotated[str, typer.Option(help="Path prefix behind a proxy, such as /bert.")] = "",
    device: Annotated[str, typer.Option(help="Device: auto, cpu, cuda or mps.")] = "auto",
    engine: EngineWord = None,
    threads: Threads = 0,
    max_batch: Annotated[int, typer.Option(help="Maximum number of texts per batch.")] = 64,
    max_wait_ms: Annotated[float, typer.Option(help="Milliseconds to wait for a batch to fill.")] = 2.0,
    max_queue: Annotated[int, typer.Option(help="Maximum number of waiting texts; more get status 429.")] = 512,
    max_inputs: Annotated[int, typer.Option(help="Maximum number of texts per request; more get status 422.")] = 64,
    max_characters: Annotated[
        int, typer.Option(help="Maximum number of characters per input, normalized; more get status 422.")
    ] = 20_000,
    max_tokens: Annotated[
        int, typer.Option(help="Maximum number of tokens per input, over all windows; more get status 422.")
    ] = 16_384,
    max_body: Annotated[
        int, typer.Option(help="Maximum number of bytes per request; more get status 413.")
    ] = 1_000_000,
    timeout: Annotated[float, typer.Option(help="Seconds until a request gets status 503.")] = 30.0,
) -> None:
    """Serve models over HTTP, with a demo page at / and the API documentation at /docs.

    Example: litebert serve sentiment=runs/sst-2
    """
    api.serve(
        checkpoints,
        host=host,
        port=port,
        token="" if token_file is None else _read_token(token_file),
        origins=origin or (),
        allow_hosts=allow_host or (),
        root_path=root_path,
        device=device,
        engine=engine,
        threads=threads,
        max_batch=max_batch,
        max_wait_ms=max_wait_ms,
        max_queue=max_queue,
        max_inputs=max_inputs,
        max_characters=max_characters,
        max_tokens=max_tokens,
        max_body=max_body,
        timeout=timeout,
    )


def _read_token(file: Path) -> str:
    token = file.read_bytes().decode("latin-1").strip()
    if not token.isascii() or len(token.split()) != 1:
        raise ConfigError("bad-token", f"{file} must contain only the token: ASCII characters without spaces")
    return token
