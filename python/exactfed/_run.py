"""Runs."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any

from . import _native, _threads
from ._errors import CellError, CellFailedWarning, ExactfedError, ExactfedWarning
from ._executor import distribute
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
    executor: Executor | None = None,
    tasks: int | None = None,
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
        type and layout are converted to float64; they must be finite, but columns and frames may
        lack values. Results keep a copy.
    set
        Settings in place of the manifest's: ``{"problem.garnet.clients": 10}``, or texts as for
        ``--set``.
    replicates
        The number of replicates of each cell.
    threads
        The number of threads; by default as many as the machine has. Of an executor, those of each
        task, by default 1.
    progress
        ``True`` for a progress bar, which in a notebook also shows the headline and the first
        figure of the cells that are stored so far. Or a function that is called with the work so
        far and that of the whole run, in operations, and the number of cells that are done;
        :func:`load` opens the results so far.
    force, rerun_failed
        Also run cells that are done, or that failed before.
    until_decided
        Add replicates until every claim is decided, at planned looks.
    memory
        The bytes that the run may use, or each task; by default what is available.
    executor
        What computes the cells: a ``concurrent.futures.Executor``, such as a process pool, or that
        of Dask, loky or mpi4py. Its workers need this version of exactfed and no shared folder.
        They get the manifest, data and algorithms in Python from here, and the digests are those of
        a run without it.
    tasks
        The number of tasks that an executor gets; by default eight for each worker.

    Raises
    ------
    ManifestError
        If the manifest is not valid. Nothing is written then.
    CellError
        If no cell has results.
    ExactfedError
        If the call is made in a round of the same experiment's run, by the algorithm or by a thread
        that it started: it would wait for that round for ever. If a task of an executor was lost
        four times, the executor takes no more tasks, or a worker has another version of exactfed;
        finished tasks are stored, and the same call runs the others.
    KeyboardInterrupt
        After Ctrl-C: at the end of the current rounds, or after three seconds; the threads then
        finish their round in the background. Finished cells are stored, of an executor those of
        finished tasks; the same call runs the others.

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
        "only": None,
        "shard": None,
        "force": force,
        "rerun_failed": rerun_failed,
        "until_decided": until_decided,
        "memory": memory,
    }
    compute = _native.run if executor is None else partial(distribute, executor, tasks)
    if progress is True:
        with _Bar(out, native.experiment) as bar:
            failed, notes = compute(native, out, progress=bar, **options)
    else:
        # What a caller's function receives are the first three of four numbers.
        called = None if not progress else lambda *state: progress(*state[:3])
        failed, notes = compute(native, out, progress=called, **options)
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
    """A progress bar of the expected work; in a notebook, also the results so far."""

    def __init__(self, out: str | os.PathLike[str], name: str) -> None:
        from tqdm.auto import tqdm

        form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
        # With 0 of `miniters`, every call may draw it, also while no replicate ends.
        self._bar = tqdm(desc=name, total=1, bar_format=form, miniters=0)
        self._begin = time.monotonic()
        self._so_far = _SoFar(out, name) if _in_notebook() else None

    def __call__(self, done: int, total: int, cells: int, steps: int) -> None:
        rate = self._bar.format_sizeof(steps / max(time.monotonic() - self._begin, 1e-9))
        self._bar.total = max(total, 1)
        counted = "1 cell" if cells == 1 else f"{cells} cells"
        self._bar.set_postfix_str(f"{counted}, {rate} steps/s", refresh=False)
        self._bar.update(done - self._bar.n)
        if self._so_far:
            self._so_far.show(cells)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._bar.n = self._bar.total
        self._bar.close()
        if self._so_far:
            self._so_far.clear()


def _in_notebook() -> bool:
    """Whether a kernel of Jupyter shows what is displayed."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in getattr(shell, "config", {})


class _SoFar:
    """What a notebook shows of the cells that are stored while a run goes on."""

    _BETWEEN = 5.0
    """Least time between two views, in seconds."""
    _SHARE = 0.05
    """The largest part of the time in which a view is made."""

    def __init__(self, out: str | os.PathLike[str], name: str) -> None:
        self._out, self._name = out, name
        self._cells, self._next = 0, time.monotonic() + self._BETWEEN
        self._display: Any = None

    def show(self, cells: int) -> None:
        begin = time.monotonic()
        if cells == self._cells or begin < self._next:
            return
        # What is wrong with the results is said when the run has ended.
        with contextlib.suppress(ExactfedError):
            self._replace(load(self._out, self._name)._repr_html_())
        end = time.monotonic()
        self._cells = cells
        self._next = end + max(self._BETWEEN, (end - begin) / self._SHARE)

    def clear(self) -> None:
        if self._display is not None:
            self._replace("")

    def _replace(self, html: str) -> None:
        ipython = importlib.import_module("IPython.display")
        if self._display is None:
            self._display = ipython.display(ipython.HTML(html), display_id=True)
        else:
            self._display.update(ipython.HTML(html))
