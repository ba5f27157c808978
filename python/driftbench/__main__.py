"""``python -m driftbench``: the command line."""

from . import main

main()
