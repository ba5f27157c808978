"""Comparisons of two sets of results."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from . import _native
from ._frames import Kind, to_frame
from ._results import Results

Side = str | os.PathLike[str] | Results


class Diff:
    """A comparison of two sides; made by :func:`diff`.

    Attributes
    ----------
    text
        The summary that ``exactfed diff`` prints.
    page
        The page of ``exactfed diff --format html``.
    data
        Everything, as ``exactfed diff --format json``.
    code
        The exit code: 0, 1 (something of ``fail_on``) or 3 (nothing to compare).
    """

    def __init__(self, text: str, page: str, data: str, code: int) -> None:
        self.text, self.page, self.code = text, page, code
        self.data: dict[str, Any] = json.loads(data)

    @property
    def verdict(self) -> str:
        """``"passes"``, ``"fails"`` or ``"nothing to compare"``, by the code."""
        return {0: "passes", 1: "fails"}.get(self.code, "nothing to compare")

    def frame(self, kind: Kind = "polars") -> Any:
        """The cells that changed, one row each.

        Bit-identical cells are left out.

        Columns
        -------
        experiment, cell, cell_before
            The experiment, and the id of the cell on the second side and on the first.
        name
            The label of the cell, with the settings that distinguish it.
        verdict
            What the change is, such as ``worse``.
        ratio, low, high
            How many times larger the error of the second side is, and the 95 % interval of this
            ratio.
        p
            The p-value after Holm's correction.
        note
            What else there is to say of the cell.
        """
        changed = self.data["changed"]
        columns: dict[str, tuple[Any, Callable[[dict[str, Any]], Any]]] = {
            "experiment": (pl.String, lambda row: row["experiment"]),
            "cell": (pl.String, lambda row: row["cell"]),
            "cell_before": (pl.String, lambda row: row["cell-before"]),
            "name": (pl.String, lambda row: row["name"]),
            "verdict": (pl.String, lambda row: row["verdict"]),
            "ratio": (pl.Float64, lambda row: row["ratio"]),
            "low": (pl.Float64, lambda row: (row["interval"] or [None])[0]),
            "high": (pl.Float64, lambda row: (row["interval"] or [None])[-1]),
            "p": (pl.Float64, lambda row: row["p"]),
            "note": (pl.String, lambda row: row["note"]),
        }
        values = {name: [of(row) for row in changed] for name, (_, of) in columns.items()}
        frame = pl.DataFrame(values, schema={name: kind for name, (kind, _) in columns.items()})
        return to_frame(frame, kind)

    def __repr__(self) -> str:
        return f"Diff({self.verdict!r})"

    def _repr_html_(self) -> str:
        page = html.escape(self.page, quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 520px; border: 0"></iframe>'


def diff(
    a: Side,
    b: Side,
    *,
    fail_on: Sequence[str] = ("worse", "diverged", "failed", "claims"),
) -> Diff:
    """Compare two results folders, as ``exactfed diff`` does.

    ``a`` and ``b`` are each a path, a :class:`Results` or a git revision with ``reports/``.
    ``fail_on`` lists what makes the verdict ``"fails"``.

    Raises
    ------
    ExactfedError
        If a side is none of these.
    """
    before, after = (os.fspath(side.path if isinstance(side, Results) else side) for side in (a, b))
    return Diff(*_native.diff(before, after, list(fail_on)))
