"""The entry of the command: nothing is imported before Ctrl-C can be answered.

What `cli` imports takes a tenth of a second, and a Ctrl-C in it would end in a traceback.
"""

from __future__ import annotations

import sys
import time

BEGAN_S = time.perf_counter()
INTERRUPTED = 130


def main() -> int:
    """Run the command line of the process.

    Returns:
        The exit code.
    """
    try:
        from planner.cli import main as run

        return run(began_s=BEGAN_S)
    except KeyboardInterrupt:  # before there was anything to end in good order
        sys.stderr.write("error: interrupted before a plan was found\n")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
