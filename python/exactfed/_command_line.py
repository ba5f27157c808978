"""The command line, in the process of Python."""

from __future__ import annotations

import signal
import sys

from . import _native


def main() -> None:
    """Run the command line with the arguments of the process, and exit with its code."""
    # Python's own handler would only set a flag, which nobody reads while a command runs.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    program = [sys.executable, "-m", "exactfed"]
    sys.exit(_native.main(["exactfed", *sys.argv[1:]], program))
