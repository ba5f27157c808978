"""The cells of a manifest, and what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._frames import Kind, to_frame
from ._manifest import Manifest, Overrides, read
from ._native import Clients, NativePlan


class Plan:
    """The cells of a manifest; made by :func:`plan`."""

    def __init__(self, native: NativePlan, out: str | os.PathLike[str], threads: int) -> None:
        self._native, self._out, self._threads = native, out, threads

    def __len__(self) -> int:
        """The number of cells of the manifest, without those that follow from results."""
        return len(self._native)

    @property
    def experiment(self) -> str:
        """The name of the experiment."""
        return self._native.experiment

    def frame(self, kind: Kind = "polars") -> Any:
        """A row for each cell.

        ``kind`` is ``"polars"`` or ``"pandas"``.

        Columns
        -------
        cell, problem, algorithm, label
            The id of the cell, the kinds of its problem and its algorithm, and the label.
        state
            ``done``, ``missing``, ``damaged`` or ``failed``.
        rounds, runs
            The number of rounds, and of runs.
        seconds
            The computing time, also of cells that are done, measured by running the first rounds of
            one cell of each shape; null where that fails.
        memory
            The expected peak of memory in bytes of the cell by itself on one thread, within a
            factor of about two.
        <setting>
            A column for each setting in which cells differ.
        """
        return to_frame(self._native.frame(self._out, self._threads), kind)

    def clients(self, cell: int = 0, run: int = 0) -> tuple[Clients, np.ndarray]:
        """The clients of a run before its first round, and θ_0, of shape (d,).

        To try an algorithm out, a round after the other, on the instance and with the draws of
        run number ``run`` of cell number ``cell``:

        >>> import exactfed as ef
        >>> plan = ef.plan({
        ...     "title": "Rounds by hand", "seed": 1, "replicates": 1,
        ...     "problem": {"quadratic": {"dimension": 2, "clients": 5, "noise": 1.0,
        ...                               "spectrum": {"from": 0.5, "to": 1.0}}},
        ...     "start": {"zero": True},
        ...     "algorithm": {"fedavg": [{"step-size": 0.05, "local-steps": 10}]},
        ...     "budget": {"rounds": 100},
        ... })
        >>> clients, theta = plan.clients()
        >>> ends = clients.local_steps(theta, 0.05, 10)
        >>> ends.shape, clients.mean(ends).shape
        ((5, 2), (2,))
        """
        return self._native.clients(cell, run)

    def __repr__(self) -> str:
        return f"Plan({self.experiment!r}, {len(self)} cells)"

    def _repr_html_(self) -> str:
        return str(self.frame()._repr_html_())


def plan(
    manifest: Manifest,
    *,
    out: str | os.PathLike[str] = "results",
    name: str | None = None,
    arrays: Mapping[str, Any] | None = None,
    set: Overrides = None,
    replicates: int | None = None,
    threads: int | None = None,
) -> Plan:
    """List the cells of a manifest, with their state in the folder ``out``.

    The arguments are those of :func:`exactfed.run`; ``threads`` is the number on which the time
    is estimated. Nothing is run or written.

    Raises
    ------
    ManifestError
        If the manifest is not valid.

    Examples
    --------
    >>> import exactfed as ef
    >>> cells = ef.plan({
    ...     "title": "Two step sizes", "seed": 1, "replicates": 4,
    ...     "problem": {"quadratic": {"dimension": 2, "clients": 4, "noise": 1.0,
    ...                               "spectrum": {"from": 0.5, "to": 1.0}}},
    ...     "start": {"zero": True},
    ...     "algorithm": {"fedavg": [{"step-size": [0.01, 0.1], "local-steps": 10}]},
    ...     "budget": {"rounds": 100},
    ... })
    >>> len(cells)
    2
    >>> cells.frame()["step_size"].to_list()
    [0.01, 0.1]
    """
    native = read(manifest, name, set, replicates, arrays)
    return Plan(native, out, threads or os.cpu_count() or 1)


def check(
    manifest: Manifest,
    *,
    name: str | None = None,
    arrays: Mapping[str, Any] | None = None,
    set: Overrides = None,
    replicates: int | None = None,
) -> None:
    r"""Check a manifest as ``exactfed check`` does: also that its instances can be built.

    The arguments are those of :func:`exactfed.run`.

    Raises
    ------
    ManifestError
        If anything is wrong; its text is that of ``exactfed check``, and ``diagnostics`` lists
        everything with file, line and column.

    Examples
    --------
    >>> import exactfed as ef
    >>> try:
    ...     ef.check("title = 'x'\nsed = 1\n")
    ... except ef.ManifestError as e:
    ...     print(e.diagnostics[-1].message)
    unknown key `sed`
    """
    read(manifest, name, set, replicates, arrays).check()
