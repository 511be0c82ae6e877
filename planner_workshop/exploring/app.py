"""What `plan explore` serves: to whoever has the token, of this machine only.

The token comes with the address once, and is a cookie from then on. Other pages of this machine
share cookies, so what changes something needs the token of the form too, in a header that no other
page can send. A foreign Host, by which a name of somebody else's leads here, is refused.
"""

import io
import json
import re
import secrets
import zipfile
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from planner.commands.requests import request_text
from planner.errors import RequestError
from planner.quantities.tables import PACKAGES
from planner.report.messages import request_text as told
from planner.specs.records.runtimes import TARGETS
from planner_workshop.exploring.form import TABLE, Json, form, line_of, said_of, state_of
from planner_workshop.exploring.jobs import Job, Jobs

MOST_BYTES = 64 * 1024
"""Of the body of a request."""
FORM_TOKEN = "x-form-token"
_COLOURS = re.compile(r"@media[^{}]*dark[^{}]*\{\s*:root\s*\{[^}]*\}\s*\}|:root\s*\{[^}]*\}")
"""Of the style of answers, what the form has too."""


class Pages:
    """What there is at each path, for whoever comes by the address.

    Args:
        port: that is listened at.
        begun: the form to begin with; none where None.
    """

    def __init__(self, jobs: Jobs, *, port: int, begun: Json | None) -> None:
        self.jobs, self.begun, self.port = jobs, begun, port
        self.token, self.form_token = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.cookie, self.url = f"plan-{port}", f"http://127.0.0.1:{port}/?token={self.token}"
        routes = [
            Route("/", self.page),
            Route("/form", self.form),
            Route("/line", self.line, methods=["POST"]),
            Route("/jobs", self.start, methods=["POST"]),
            Route("/jobs", self.history),
            Route("/jobs/{number}", self.job),
            Route("/jobs/{number}/cancel", self.cancel, methods=["POST"]),
            Route("/jobs/{number}/{name}", self.file),
            Route("/{name}", self.static),
        ]
        self._app = Starlette(routes=routes, exception_handlers={RequestError: _refused})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in TABLE["headers"].items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = PlainTextResponse(TABLE["refusal"], status_code=403)
        await (self._app if self._lets_in(Request(scope)) else refusal)(scope, receive, sent)

    def _lets_in(self, request: Request) -> bool:
        hosts = [f"{name}:{self.port}" for name in ("127.0.0.1", "localhost")]
        tokens = [request.query_params.get("token"), request.cookies.get(self.cookie)]
        is_known = any(_same(it, self.token) for it in tokens)
        is_read = request.method in ("GET", "HEAD")
        is_own = is_read or _same(request.headers.get(FORM_TOKEN), self.form_token)
        return request.headers.get("host") in hosts and is_known and is_own

    async def page(self, request: Request) -> Response:
        page = _text("explore.html").replace("{form_token}", self.form_token)
        cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        return Response(page, media_type="text/html", headers={"set-cookie": cookie})

    async def form(self, request: Request) -> Response:
        return JSONResponse({**form(), "begun": self.begun})

    async def line(self, request: Request) -> Response:
        """A command line and the form that it fills, by either of both."""
        body = await _body(request)
        state = state_of(body["line"]) if isinstance(body.get("line"), str) else body
        return JSONResponse({**state, "line": line_of(said_of(state))})

    async def start(self, request: Request) -> Response:
        body = await _body(request)
        columns, target = body.get("columns"), body.get("target", "")
        if not isinstance(columns, int) or target not in ("", *TARGETS):
            raise HTTPException(400)
        job = self.jobs.start(said_of(body), columns=columns, target=target)
        return JSONResponse(job.json(), status_code=202)

    async def history(self, request: Request) -> Response:
        jobs = [it for it in self.jobs.all() if it.news["state"] == "done" and not it.target]
        return JSONResponse([it.json() for it in jobs])

    async def job(self, request: Request) -> Response:
        return JSONResponse(self._job(request).json())

    async def cancel(self, request: Request) -> Response:
        self._job(request).end()
        return await self.job(request)

    def _job(self, request: Request) -> Job:
        number = request.path_params["number"]
        for job in self.jobs.all():
            if str(job.number) == number:
                return job
        raise HTTPException(404)

    async def file(self, request: Request) -> Response:
        """A file of an answer, to keep; its page also as it is shown."""
        job, name = self._job(request), request.path_params["name"]
        files: dict[str, Any] = {**job.files, "request.toml": request_text(job.said, name)}
        headers = {"content-disposition": f"attachment; filename={name}"}
        if job.target and job.files:
            files["launch.zip"] = _zipped(job.files)
        if "answer.html" in files:
            end = f"<script>{_text('frame.js')}</script></body>"
            files["shown.html"] = files["answer.html"].replace("</body>", end)
        if name == "shown.html":
            headers = {"content-security-policy": TABLE["framed"]}
        return _sent(files, name, headers)

    async def static(self, request: Request) -> Response:
        files = {name: _text(name) for name in ("explore.css", "explore.js")}
        files["page.css"] = "".join(
            _COLOURS.findall(_text("../../planner/report/documents/page.css"))
        )
        return _sent(files, request.path_params["name"], {})


def _same(text: str | None, token: str) -> bool:
    return secrets.compare_digest((text or "").encode(), token.encode())


def _text(name: str) -> str:
    return PACKAGES.joinpath("planner_workshop/exploring", name).read_text(encoding="utf-8")


def _sent(files: dict[str, Any], name: str, headers: dict[str, str]) -> Response:
    """One of some files; 404 where it is none."""
    if name not in files:
        raise HTTPException(404)
    kind = TABLE["kinds"].get(name.rpartition(".")[2], "text/plain")
    return Response(files[name], media_type=kind, headers=headers)


async def _refused(request: Request, error: Exception) -> Response:
    """What is wrong with a request, as the command says it."""
    assert isinstance(error, RequestError)
    return JSONResponse({"message": told(error, 100)}, status_code=400)


async def _body(request: Request) -> Json:
    """The JSON of a request: an object, and no more than a form has."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise HTTPException(413)
    try:
        value: Any = json.loads(body)
        json.dumps(value, ensure_ascii=False).encode()  # halves of characters are no text
    except (ValueError, RecursionError):
        raise HTTPException(400) from None
    if not isinstance(value, dict):
        raise HTTPException(400)
    return value


def _zipped(files: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return stream.getvalue()
