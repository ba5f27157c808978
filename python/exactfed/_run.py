"""Runs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from . import _native, _threads
from ._errors import CellError, CellFailedWarning, ExactfedWarning
from ._manifest import Manifest, Overrides, read
from ._results import Results, load

Progress = bool | Callable[[int, int, int], Any] | None


def run(
    manifest: Manifest,
    *,
    out: str | os.PathLike[str] = "results",
    name: str | None = None,
    arrays: Mapping[str, Any] | None = None,
    set: Overrides = None,
    replicates: int | None = None,
    threads: int | None = None,
    progress: Progress = None,
    force: bool = False,
    rerun_failed: bool = False,
    until_decided: bool = False,
    memory: float | None = None,
) -> Results:
    """Run the cells of a manifest that have no results yet, and return all its results.

    Parameters
    ----------
    manifest
        A path, a TOML text (it contains a line break) or a dict with the same keys, in
        which one algorithm, figure or claim of a kind needs no list.
    out
        The folder of the results.
    name
        The name of the experiment, where the manifest is a text or a dict; by default
        ``"experiment"``. A file has the name of its path.
    arrays
        Data in memory, by the name that the manifest writes as ``file = "<name>"``: a dict of
        arrays (dense, or sparse matrices of SciPy) or a frame, or the bytes of an ``.npz`` file.
        Records are ``{"x": (n, d), "y": (n,)}``, with further columns of length n. Numbers of any
        type and layout are converted to float64; they must be finite. Results keep a copy.
    set
        Settings in place of the manifest's: ``{"problem.garnet.clients": 10}``, or texts as for
        ``--set``.
    replicates
        The number of replicates of each cell.
    threads
        The number of threads; by default as many as the machine has.
    progress
        ``True`` for a progress bar, or a function that is called with the work so far and that of
        the whole run, in nanoseconds that they are expected to take on one thread, and the number of
        cells that are done.
    force, rerun_failed
        Also run cells that are done, or that failed before.
    until_decided
        Add replicates until every claim is decided, at planned looks.
    memory
        The bytes that the run may use; by default what is available.

    Raises
    ------
    ManifestError
        If the manifest is not valid. Nothing is written then.
    CellError
        If no cell has results.
    ExactfedError
        If the call is made in a round of the same experiment's run, by the algorithm or by a thread
        that it started: it would wait for that round for ever.
    KeyboardInterrupt
        After Ctrl-C. Finished cells are stored; the same call runs the others.

    Warns
    -----
    CellFailedWarning
        For each cell that failed, with the reason. The others are stored.
    ExactfedWarning
        For each cell in which an algorithm in Python made θ infinite or NaN, with the first round.
        Such a run ends as diverged.

    Examples
    --------
    >>> import exactfed as ef
    >>> results = ef.run({
    ...     "title": "FedAvg and Scaffold", "seed": 1, "replicates": 4,
    ...     "problem": {"quadratic": {"dimension": 2, "clients": 4, "noise": 1.0,
    ...                               "spectrum": {"from": 0.5, "to": 1.0}}},
    ...     "start": {"zero": True},
    ...     "algorithm": {
    ...         "fedavg": [{"step-size": 0.05, "local-steps": 10}],
    ...         "scaffold": [{"step-size": 0.05, "local-steps": 10}],
    ...     },
    ...     "budget": {"rounds": 100},
    ... }, name="two")
    >>> sorted(results.frame()["label"].unique())
    ['FedAvg', 'Scaffold']
    """
    native = read(manifest, name, set, replicates, arrays)
    options: dict[str, Any] = {
        "locks": _threads.locks(),
        "threads": threads,
        "force": force,
        "rerun_failed": rerun_failed,
        "until_decided": until_decided,
        "memory": memory,
    }
    if progress is True:
        with _Bar(native.experiment) as bar:
            failed, notes = _native.run(native, out, progress=bar, **options)
    else:
        failed, notes = _native.run(native, out, progress=progress or None, **options)
    for note in notes:
        warnings.warn(note, ExactfedWarning, stacklevel=2)
    texts = [f"cell {cell} ({label}) failed: {reason}" for cell, label, reason in failed]
    results = load(out, native.experiment)
    if texts and results._native.done() == 0:
        raise CellError("\n".join(texts))
    for text in texts:
        warnings.warn(text, CellFailedWarning, stacklevel=2)
    return results


class _Bar:
    """A progress bar of the expected work, in seconds of one thread."""

    def __init__(self, name: str) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(desc=name, unit="s", unit_scale=1e-9)

    def __call__(self, done: int, total: int, cells: int) -> None:
        self._bar.total = total
        self._bar.set_postfix(cells=cells, refresh=False)
        self._bar.update(done - self._bar.n)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()
