"""`plan explore`: a page of this machine alone, on which requests are made and answered.

form   what fields there are; a form to its command line, and back
jobs   requests that are answered, each by a process
app    what there is at each path, and for whom
"""

import os
import socket
import sys
import webbrowser
from collections.abc import Sequence
from threading import Thread

from planner.errors import Problem, RequestError
from planner.report.progress import tell

ADDRESS = "127.0.0.1"


def serve(words: Sequence[str], *, port: int | None, opens_browser: bool) -> None:
    """Serve the page until Ctrl-C.

    Args:
        words: of the request to begin with; none where empty.
        port: to listen at; a free one if None.

    Raises:
        RequestError: what it needs is not installed, the port is taken, or the form has no such
            request.
    """
    try:
        import uvicorn

        from planner_workshop.exploring.app import guarded
    except ImportError:
        remedy = "`pip install 'llm-serving-planner[explore]'`"
        fact = "needs Starlette and Uvicorn, which are not installed"
        raise RequestError([Problem(where="plan explore", fact=fact, remedy=remedy)]) from None
    from planner_workshop.exploring.form import state_of
    from planner_workshop.exploring.jobs import Jobs

    if words:
        state_of(words)
    listening = _listening(port)
    port = int(listening.getsockname()[1])
    jobs = Jobs()
    guard = guarded(jobs, port=port, begun=words)
    config = uvicorn.Config(
        guard, log_config=None, access_log=False, lifespan="off", ws="none", server_header=False
    )
    server = uvicorn.Server(config)
    url = f"http://{ADDRESS}:{port}/?token={guard.token}"
    thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        begin = "\r" * sys.stderr.isatty()  # in place of what is said of the work so far
        sys.stderr.write(f"{begin}open {url}\n")
        sys.stderr.flush()
        tell(lambda _: "Ctrl-C ends it")
        if opens_browser and _has_screen():
            webbrowser.open(url)
        thread.join()
    except KeyboardInterrupt:
        server.should_exit = True
        jobs.close()
        thread.join()


def _listening(port: int | None) -> socket.socket:
    """A socket of this machine alone.

    Raises:
        RequestError: the port is taken.
    """
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((ADDRESS, port or 0))
        listening.listen()
    except OSError as error:
        listening.close()
        fact = f"cannot be listened at: {(error.strerror or str(error)).lower()}"
        remedy = "leave it out for a free one"
        problem = Problem(where="--port", value=str(port), fact=fact, remedy=remedy)
        raise RequestError([problem]) from None
    return listening


def _has_screen() -> bool:
    """Whether a browser of this machine would be seen: others would take over the terminal."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return sys.platform != "linux" or any(map(os.environ.get, names))
