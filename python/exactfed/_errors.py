"""The exceptions and warnings of the package."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


class ExactfedError(Exception):
    """Bad input, or results that cannot be read; the text is that of the command line."""


@dataclass(frozen=True)
class Diagnostic:
    """One thing that is wrong with a manifest.

    ``line`` and ``column`` count from 1, in characters; they are ``None`` where the manifest as a
    whole is wrong, or a value of ``set=``. ``key`` is the dotted path of the key.
    """

    file: str
    line: int | None
    column: int | None
    key: str
    message: str
    hint: str | None = None
    allowed: str | None = None


class ManifestError(ExactfedError, ValueError):
    """A manifest that cannot be run; the text is what ``exactfed check`` prints.

    ``diagnostics`` has one :class:`Diagnostic` for each thing that is wrong, in the order of the
    text. It is empty where the manifest cannot be read at all.
    """

    def __init__(self, text: str, diagnostics: Iterable[tuple[Any, ...]] = ()) -> None:
        super().__init__(text)
        self.diagnostics = [Diagnostic(*values) for values in diagnostics]


class CellError(ExactfedError, RuntimeError):
    """No cell of a run has results; the text has the reasons."""


class ExactfedWarning(UserWarning):
    """Stored results are not as they were written, a plot leaves something out, or θ is not finite."""  # noqa: E501 (a summary is one line)


class CellFailedWarning(ExactfedWarning):
    """A cell could not be run to its end; the other cells are stored."""
