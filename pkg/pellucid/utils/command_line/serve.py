"""``pellucid serve [FOLDER]``: static files by Starlette, for pages that stream weights by Range."""

from __future__ import annotations

import json
import os
import stat

import click

from . import as_json


@click.command()
@click.argument("folder", default=".", type=click.Path(exists=True, file_okay=False))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, help="0 takes a free one.")
@click.option("--cors/--no-cors", default=True, show_default=True, help="Let pages of other origins read.")
@click.option("--isolation", is_flag=True, help="Send COOP and COEP, so that pages have SharedArrayBuffer.")
@as_json
def serve(folder: str, host: str, port: int, cors: bool, isolation: bool, as_json: bool) -> None:
    """Serve FOLDER: byte ranges, entity tags, right types, files that lie packed beside (NAME.gz).

    With --json the first line says the address.
    """
    import uvicorn

    server = uvicorn.Server(
        uvicorn.Config(application(folder, cors, isolation), host=host, port=port, log_level="warning")
    )
    socket = server.config.bind_socket()
    address = f"http://{host}:{socket.getsockname()[1]}/"
    click.echo(
        json.dumps({"folder": folder, "address": address}) if as_json else f"serving {folder} at {address}"
    )
    server.run([socket])


def application(folder: str, cors: bool = True, isolation: bool = False):
    """The application that serves a folder.

    Args:
        folder: what is at ``/``.
        cors: whether pages of other origins may read, ranges and entity tags included.
        isolation: whether to send COOP and COEP.
    """
    from mimetypes import add_type

    from starlette.applications import Starlette
    from starlette.datastructures import Headers
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware
    from starlette.routing import Mount
    from starlette.staticfiles import StaticFiles

    class Files(StaticFiles):
        """Whole files are sent packed, where they lie so beside and the browser takes it; ranges never."""

        def file_response(self, full_path, stat_result, scope, status_code=200):
            packed = _packed_beside(full_path, stat_result)
            asked = Headers(scope=scope)
            if packed is None or "range" in asked or "gzip" not in asked.get("accept-encoding", ""):
                response = super().file_response(full_path, stat_result, scope, status_code)
            else:
                response = super().file_response(f"{full_path}.gz", packed, scope, status_code)
                response.headers["Content-Encoding"] = "gzip"
            if packed is not None:
                response.headers.add_vary_header("Accept-Encoding")
            return response

    for kind, ending in (
        ("text/javascript", ".mjs"),
        ("application/wasm", ".wasm"),
        ("text/javascript", ".js"),
    ):
        add_type(kind, ending)
    headers = {"Cache-Control": "no-cache", "Cross-Origin-Resource-Policy": "cross-origin"}
    if isolation:
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
        headers["Cross-Origin-Embedder-Policy"] = "require-corp"
    told = ["Accept-Ranges", "Content-Length", "Content-Range", "ETag"]
    middleware = [Middleware(_Headers, headers)]
    if cors:
        middleware.append(
            Middleware(
                CORSMiddleware, allow_origins=["*"], allow_headers=["Range", "If-Range"], expose_headers=told
            )
        )
    return Starlette(routes=[Mount("/", Files(directory=folder, html=True))], middleware=middleware)


def _packed_beside(path, facts: os.stat_result) -> os.stat_result | None:
    """What the file ``PATH.gz`` is, unless it is older than the file: then it is of something else."""
    try:
        packed = os.lstat(f"{path}.gz")
    except OSError:  # there is none
        return None
    fits = stat.S_ISREG(packed.st_mode) and packed.st_mtime_ns >= facts.st_mtime_ns
    return packed if fits else None


class _Headers:
    """Adds headers to every answer.

    Args:
        app: what answers.
        headers: by name.
    """

    def __init__(self, app, headers: dict[str, str]):
        self._app = app
        self._headers = [(k.lower().encode(), v.encode()) for k, v in headers.items()]

    async def __call__(self, scope, receive, send) -> None:
        async def sent(message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self._headers]
            await send(message)

        await self._app(scope, receive, sent)
