"""Serve the files of the playground and the API documentation, which are read once from the package."""

import hashlib
from collections.abc import Awaitable, Callable
from importlib.resources import files

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

# Pages by URL path; the files that they load are under /page/.
_ADDRESSES = {"/": "index.html", "/docs": "docs.html"}
_TYPES = {"js": "text/javascript", "css": "text/css", "html": "text/html", "svg": "image/svg+xml"}


def add_pages(app: FastAPI) -> None:
    """Add a route per file."""
    folders = files("litebert.server") / "page", files("litebert") / "page"  # its own, and those shared by all pages
    contents = {file.name: file.read_bytes() for folder in folders for file in folder.iterdir() if file.is_file()}
    names = _ADDRESSES | {f"/page/{name}": name for name in contents}
    for address, name in names.items():
        answer = _answer_with(contents[name], _TYPES[name.rpartition(".")[2]])
        app.add_api_route(address, answer, methods=["GET", "HEAD"], include_in_schema=False)


def _answer_with(content: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    # browsers revalidate each time (304 if unchanged), so a new version shows at once
    headers = {"ETag": tag, "Cache-Control": "no-cache"}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=kind)

    return answer
