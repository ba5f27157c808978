"""``python -m exactfed``: the command line."""

from . import main

main()
