"""`litebert serve`: models over HTTP, and a page to play on."""

from pathlib import Path
from typing import Annotated

import typer

from litebert import api
from litebert.cli.words import EngineWord, Threads
from litebert.core.errors import ConfigError


def serve_models(
    checkpoints: Annotated[
        list[str], typer.Argument(metavar="CKPT...", help="Checkpoints, runs or other models; name=path to name one.")
    ],
    host: Annotated[str, typer.Option(help="0.0.0.0 lets other machines in; set a token then.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any free one.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file with the bearer token that clients must send.", exists=True, dir_okay=False),
    ] = None,
    origin: Annotated[
        list[str] | None, typer.Option(help="Another site whose pages may ask, such as https://example.org.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Another name that it may be asked by; at 127.0.0.1 only this machine's own are taken."),
    ] = None,
    root_path: Annotated[str, typer.Option(help="Path under which a proxy offers the server, such as /bert.")] = "",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    engine: EngineWord = None,
    threads: Threads = 0,
    max_batch: Annotated[int, typer.Option(help="Texts computed at once.")] = 64,
    max_wait_ms: Annotated[float, typer.Option(help="Milliseconds that a text waits for others.")] = 2.0,
    max_queue: Annotated[int, typer.Option(help="Texts that may wait; more are refused with 429.")] = 512,
    max_inputs: Annotated[int, typer.Option(help="Texts in one request; more are refused with 422.")] = 64,
    max_characters: Annotated[
        int, typer.Option(help="Characters of one input after normalization; more are refused with 422.")
    ] = 20_000,
    max_tokens: Annotated[
        int, typer.Option(help="Tokens computed for one input, windows included; more are refused with 422.")
    ] = 16_384,
    max_body: Annotated[int, typer.Option(help="Bytes of a request; more are refused with 413.")] = 1_000_000,
    timeout: Annotated[float, typer.Option(help="Seconds for a request; then it is refused with 503.")] = 30.0,
) -> None:
    """Serve models over HTTP, with a page to play on at / and the API's description at /docs."""
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
        raise ConfigError("bad-token", f"{file} must hold one word of ASCII letters, the token")
    return token
