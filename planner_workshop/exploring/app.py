"""The page of `plan explore`, and what it asks for: to whoever has the token, of this machine only.

The token comes with the address once, and is a cookie from then on. Other pages of the same
machine share cookies, so what changes something needs the token of the form too, in a header that
no other page can send. A foreign Host, by which a name of somebody else's leads here, is refused.
"""

from __future__ import annotations

import io
import json
import re
import secrets
import shlex
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planner.commands.requests import request_text
from planner.errors import Problem, RequestError
from planner.quantities.tables import PACKAGES
from planner.report import messages
from planner.specs.records.runtimes import TARGETS
from planner_workshop.exploring.form import TABLE, Json, form, line_of, said_of, state_of
from planner_workshop.exploring.jobs import Job, Jobs

MOST_BYTES = 64 * 1024
"""Of the body of a request."""
FORM_TOKEN = "x-form-token"

_OF_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_OF_ANSWER = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts"
)
_HEADERS = {
    "content-security-policy": _OF_PAGE,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_COLOURS = re.compile(r"@media[^{}]*dark[^{}]*\{\s*:root\s*\{[^}]*\}\s*\}|:root\s*\{[^}]*\}")
"""Of the style of answers, what this page has too."""
_STATIC = {
    "page.css": "planner/report/documents/page.css",
    "explore.css": "planner_workshop/exploring/explore.css",
    "explore.js": "planner_workshop/exploring/explore.js",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Lets in who comes by the address that was printed.

    Args:
        port: that is listened at.
        token: of the address, and of the cookie.
        form_token: of what changes something.
    """

    app: ASGIApp
    port: int
    token: str
    form_token: str

    @property
    def cookie(self) -> str:
        return f"plan-{self.port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        is_let_in = self._lets_in(Request(scope))
        refusal = PlainTextResponse(TABLE["refusal"], status_code=403)
        await (self.app if is_let_in else refusal)(scope, receive, sent)

    def _lets_in(self, request: Request) -> bool:
        hosts = [f"{name}:{self.port}" for name in ("127.0.0.1", "localhost")]
        if request.headers.get("host") not in hosts:
            return False
        tokens = (request.query_params.get("token"), request.cookies.get(self.cookie))
        is_known = any(_same(it, self.token) for it in tokens)
        if request.method in ("GET", "HEAD"):
            return is_known
        return is_known and _same(request.headers.get(FORM_TOKEN), self.form_token)


def _same(text: str | None, token: str) -> bool:
    return secrets.compare_digest((text or "").encode(), token.encode())


def guarded(jobs: Jobs, *, port: int, begun: Sequence[str]) -> Guard:
    """The application, and its tokens.

    Args:
        begun: words of the request to begin with; none where empty.
    """
    token, form_token = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    pages = Pages(jobs=jobs, begun=begun, form_token=form_token)
    guard = Guard(app=pages.routed(), port=port, token=token, form_token=form_token)
    pages.cookie = f"{guard.cookie}={token}; Path=/; HttpOnly; SameSite=Strict"
    return guard


@dataclass(slots=True, kw_only=True)
class Pages:
    """What there is at each path."""

    jobs: Jobs
    begun: Sequence[str]
    form_token: str
    cookie: str = field(default="")

    def routed(self) -> ASGIApp:
        routes = [
            Route("/", self.page),
            Route("/form", self.form),
            Route("/line", self.line, methods=["POST"]),
            Route("/jobs", self.start, methods=["POST"]),
            Route("/jobs", self.history),
            Route("/jobs/{number:int}", self.job),
            Route("/jobs/{number:int}/cancel", self.cancel, methods=["POST"]),
            Route("/jobs/{number:int}/{name}", self.file),
            Route("/{name}", self.static),
        ]
        return Starlette(routes=routes, exception_handlers={RequestError: _refused})

    async def page(self, request: Request) -> Response:
        text = _text("planner_workshop/exploring/explore.html")
        page = text.replace("{form_token}", self.form_token)
        return Response(page, media_type="text/html", headers={"set-cookie": self.cookie})

    async def form(self, request: Request) -> Response:
        begun = state_of(self.begun) if self.begun else None
        return JSONResponse({**form(), "begun": begun})

    async def line(self, request: Request) -> Response:
        """A command line and the form that it fills, by either of both."""
        body = await _body(request)
        if isinstance(body.get("line"), str):
            return JSONResponse(_read(body["line"]))
        said = said_of(body)
        return JSONResponse({"line": line_of(said)})

    async def start(self, request: Request) -> Response:
        body = await _body(request)
        columns, target = body.get("columns"), body.get("target", "")
        if not isinstance(columns, int) or target not in ("", *TARGETS):
            raise HTTPException(400)
        job = self.jobs.start(said_of(body), columns=columns, target=target)
        return JSONResponse(job.json(), status_code=202)

    async def history(self, request: Request) -> Response:
        return JSONResponse(self.jobs.history())

    async def job(self, request: Request) -> Response:
        return JSONResponse(self._job(request).json())

    async def cancel(self, request: Request) -> Response:
        job = self._job(request)
        job.end()
        return JSONResponse(job.json())

    def _job(self, request: Request) -> Job:
        job = self.jobs.job(request.path_params["number"])
        if job is None:
            raise HTTPException(404)
        return job

    async def file(self, request: Request) -> Response:
        """A file of an answer: to keep, or as the page shows it."""
        job, name = self._job(request), request.path_params["name"]
        headers = {"content-disposition": f"attachment; filename={name}"}
        if name == "shown.html" and "answer.html" in job.files:
            page = job.files["answer.html"]
            script = f"<script>{_text('planner_workshop/exploring/frame.js')}</script></body>"
            headers = {"content-security-policy": _OF_ANSWER}
            return Response(
                page.replace("</body>", script), media_type="text/html", headers=headers
            )
        if name == "request.toml":
            return Response(request_text(job.said, name), media_type="text/plain", headers=headers)
        if name == "launch.zip" and job.files:
            return Response(_zipped(job.files), media_type="application/zip", headers=headers)
        if name not in job.files:
            raise HTTPException(404)
        return Response(job.files[name], media_type=_kind(name), headers=headers)

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            raise HTTPException(404)
        text = _text(_STATIC[name])
        if name == "page.css":
            text = "".join(_COLOURS.findall(text))
        return Response(text, media_type=_kind(name))


async def _refused(request: Request, error: Exception) -> Response:
    """What is wrong with a request, as the command says it."""
    assert isinstance(error, RequestError)
    return JSONResponse({"message": messages.request_text(error, 100)}, status_code=400)


async def _body(request: Request) -> Json:
    """The JSON of a request: an object, and no more than a form has."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise HTTPException(413)
    try:
        value: Any = json.loads(body)
    except ValueError:
        raise HTTPException(400) from None
    if not isinstance(value, dict):
        raise HTTPException(400)
    return value


def _read(line: str) -> Json:
    """A command line that was pasted, and its form."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise RequestError([Problem(where="the line", fact=f"has {str(error).lower()}")]) from None
    state = state_of(words[1:] if words[:1] == ["plan"] else words)
    return {**state, "line": line_of(said_of(state))}


def _text(path: str) -> str:
    return PACKAGES.joinpath(path).read_text(encoding="utf-8")


def _kind(name: str) -> str:
    return _KINDS.get(name.rpartition(".")[2], "text/plain")


def _zipped(files: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return stream.getvalue()
