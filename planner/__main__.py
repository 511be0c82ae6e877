"""The command `plan`, `python -m planner` too: nothing is imported before Ctrl-C is answered.

What `commands.cli` imports takes a tenth of a second, and a Ctrl-C in it would end in a traceback.
When all is said the process ends at once: what libraries tidy up then takes as long again, and may
fail.
"""

import gc
import os
import sys
import time

BEGAN_S = time.perf_counter()
INTERRUPTED, EXHAUSTED = 130, 3
FEW_COLLECTIONS = 200_000
"""New containers before a collection: 0.04 s less of 0.5 s in a small plan."""


def main() -> int:
    """Run the command line of the process, and end the process with its exit code."""
    # Arrays here are small: threads that numpy would start for each core take memory only.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(FEW_COLLECTIONS)  # what imports make stays: to look for rubbish in it is idle
    try:
        from planner.running.endings import deafen, listen

        listen()
        import datetime  # noqa: F401 # libraries in Rust load it, and panic where a Ctrl-C falls in

        from planner.commands.cli import main as run

        code = run(began_s=BEGAN_S)
        deafen()
    except BaseException as error:  # what is loading may turn a Ctrl-C into another, a panic too
        code = _cut_short(error)
    _flush()
    os._exit(code)


def _flush() -> None:
    from contextlib import suppress

    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # None where the caller closed it
            with suppress(OSError):  # `cli` has said so
                stream.flush()


def _cut_short(error: BaseException) -> int:
    """Say in one line what came before anything could end in good order."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        from planner.running.endings import cause_of

        cause = cause_of(error)
    except MemoryError as starved:  # not even room to look for it
        cause = starved
    if cause is None:
        raise error
    is_interrupted = isinstance(cause, KeyboardInterrupt)
    what = "interrupted" if is_interrupted else "out of memory"
    if sys.stderr is not None:
        sys.stderr.write(f"error: {what} before a plan was found\n")
    return INTERRUPTED if is_interrupted else EXHAUSTED


if __name__ == "__main__":
    main()
