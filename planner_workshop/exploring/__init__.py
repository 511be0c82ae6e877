"""`plan explore`: a page of this machine alone, on which requests are made and answered.

form   what fields there are; a form to its command line, and back
jobs   requests that are answered, each by a process
app    what there is at each path, and for whom
"""

import os
import shlex
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
        RequestError: a library is missing, the port is taken, or the form has no such request.
    """
    try:
        import uvicorn

        from planner_workshop.exploring.app import Pages
    except ImportError:
        remedy = "`pip install 'llm-serving-planner[explore]'`"
        fact = "needs Starlette and Uvicorn, which are not installed"
        raise RequestError([Problem(where="plan explore", fact=fact, remedy=remedy)]) from None
    from planner_workshop.exploring.form import TABLE, state_of
    from planner_workshop.exploring.jobs import Jobs

    begun = state_of(shlex.join(words)) if words else None
    try:
        listening = socket.create_server((ADDRESS, port or 0))
    except OSError as error:
        fact = f"cannot be listened at: {(error.strerror or str(error)).lower()}"
        raise RequestError([Problem(**TABLE["taken"], value=str(port), fact=fact)]) from None
    pages = Pages(Jobs(), port=listening.getsockname()[1], begun=begun)
    quiet = {"log_config": None, "access_log": False, "server_header": False}
    server = uvicorn.Server(uvicorn.Config(pages, lifespan="off", ws="none", **quiet))
    thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        begin = "\r" * sys.stderr.isatty()  # in place of what is said of the work so far
        sys.stderr.write(f"{begin}open {pages.url}\n")
        sys.stderr.flush()
        tell(lambda _: "Ctrl-C ends it")
        if opens_browser and (
            sys.platform != "linux" or any(map(os.environ.get, TABLE["screens"]))
        ):
            webbrowser.open(pages.url)
        thread.join()
    except KeyboardInterrupt:
        server.should_exit = True
        thread.join()
        pages.jobs.close()
