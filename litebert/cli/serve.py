"""`litebert serve`: serve models over HTTP, with a demo page."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from litebert import api
from litebert.cli.words import RUNNING, EngineWord, Threads
from litebert.core.errors import ConfigError

LIMITS = "Limits"


def serve_models(
    models: Annotated[list[str], typer.Argument(metavar="MODEL", help="Models to serve; NAME=MODEL sets the name.")],
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Address to listen on; 0.0.0.0 accepts other machines (set --token-file)."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File with the bearer token that clients must send.", exists=True, dir_okay=False
        ),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Additional site to allow by CORS, such as https://example.org."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Additional Host header to accept. Default: only local names."),
    ] = None,
    root_path: Annotated[str, typer.Option(metavar="PREFIX", help="Path prefix behind a proxy, such as /bert.")] = "",
    rerank_label: Annotated[
        str,
        typer.Option(metavar="LABEL", help="Label of relevant texts, if a model that /v1/rerank asks is a classifier."),
    ] = "",
    device: Annotated[
        Literal["auto", "cpu", "cuda", "mps"], typer.Option(help="Device to compute on.", rich_help_panel=RUNNING)
    ] = "auto",
    engine: EngineWord = None,
    threads: Threads = 0,
    max_batch: Annotated[int, typer.Option(help="Maximum number of texts per batch.", rich_help_panel=LIMITS)] = 64,
    max_wait_ms: Annotated[
        float, typer.Option(help="Milliseconds to wait for a batch to fill.", rich_help_panel=LIMITS)
    ] = 2.0,
    max_queue: Annotated[
        int, typer.Option(help="Maximum number of waiting texts; more get status 429.", rich_help_panel=LIMITS)
    ] = 512,
    max_inputs: Annotated[
        int, typer.Option(help="Maximum number of texts per request; more get status 422.", rich_help_panel=LIMITS)
    ] = 64,
    max_characters: Annotated[
        int,
        typer.Option(
            help="Maximum number of characters per input, normalized; more get status 422.", rich_help_panel=LIMITS
        ),
    ] = 20_000,
    max_tokens: Annotated[
        int,
        typer.Option(
            help="Maximum number of tokens per input, over all windows; more get status 422.", rich_help_panel=LIMITS
        ),
    ] = 16_384,
    max_body: Annotated[
        int, typer.Option(help="Maximum number of bytes per request; more get status 413.", rich_help_panel=LIMITS)
    ] = 1_000_000,
    timeout: Annotated[
        float, typer.Option(help="Seconds until a request gets status 503.", rich_help_panel=LIMITS)
    ] = 30.0,
) -> None:
    """Serve models over HTTP, with a demo page and API documentation.

    The page is at /, the documentation at /docs.

    Examples:
      litebert serve runs/reviews
      litebert serve sentiment=runs/reviews masked=runs/nano --port 8080
    """
    api.serve(
        models,
        host=host,
        port=port,
        token="" if token_file is None else _read_token(token_file),
        origins=origin or (),
        allow_hosts=allow_host or (),
        root_path=root_path,
        rerank_label=rerank_label,
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
