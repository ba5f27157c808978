"""The functions of the Rust library that the package calls."""

from collections.abc import Sequence

__version__: str

def main(arguments: Sequence[str]) -> int:
    """Run the command line, of which the first argument is the program: its exit code."""
