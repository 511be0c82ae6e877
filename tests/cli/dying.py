"""Work for workers that kill them: of tasks whose words say so."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def work(tasks):
    """The index of each task; `die` kills the worker, `once FILE` does where there is no file.

    What is `slow` is likely to be at work when another dies.
    """
    for task in tasks:
        if task.words[:1] == ("slow",):
            time.sleep(0.1)
        once = Path(task.words[1]) if task.words[:1] == ("once",) else None
        if task.words[:1] == ("die",) or (once is not None and not once.exists()):
            if once is not None:
                once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return [task.index for task in tasks]
