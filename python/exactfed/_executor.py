"""Runs whose cells the workers of a ``concurrent.futures.Executor`` compute.

The executor schedules, transports and restarts. A task is a call of :func:`work` with the ids of
some cells and the names of the files that they need, each by the hash of its content: the
experiment as results store it, its data, its algorithms in Python and, for cells that follow from
results, these. A worker that lacks a content says so and is sent it, so that large data travel once
to each. It runs the cells in a folder of its own and returns the files of their results, which the
caller merges.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import importlib
import importlib.util
import os
import pickle
import re
import shutil
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from . import _native, _threads
from ._algorithm import Algorithm
from ._definition import Defined
from ._errors import ExactfedError
from ._metric import Metric
from ._native import NativePlan, __version__
from ._problem import Problem

_PER_WORKER = 8
"""The number of tasks for each worker."""
_MOST_LOST = 3
"""How often a task is submitted again when it was lost."""
_SMALL = 1 << 16
"""The most bytes of a content in memory that every task brings along."""
_PATIENCE = 3.0
"""Seconds for which an interruption waits for tasks that cannot be cancelled."""
_CODE = "algorithms"
"""The file of a task with the algorithms in Python."""

Told = Callable[[int, int, int, int], Any]


def distribute(
    executor: Executor,
    tasks: int | None,
    native: NativePlan,
    out: str | os.PathLike[str],
    *,
    progress: Told | None,
    **options: Any,
) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Run the missing cells of a plan on an executor: as ``_native.run``, with its ``options``."""
    if not isinstance(executor, Executor):
        hint = ": pass client.get_executor()" if hasattr(executor, "get_executor") else ""
        kind = type(executor).__name__
        raise TypeError(f"executor= is a concurrent.futures.Executor, not {kind}{hint}")
    if tasks is not None and tasks < 1:
        raise ValueError(f"tasks= is 1 or more, not {tasks}")
    if options["until_decided"]:
        raise TypeError("until_decided= goes on from each look to the next: it takes no executor=")
    here = {**options, "threads": None, "force": False, "rerun_failed": False, "progress": None}
    with tempfile.TemporaryDirectory(prefix="exactfed-") as folder:
        none = Path(folder) / "none"
        none.touch()
        # This writes the experiment, and moves what is damaged away.
        _, notes = _native.run(native, out, **{**here, "only": none})
        job = _Job(executor, native, Path(out), Path(folder), tasks, options, progress)
        while cells := job.wanted():
            job.stage(cells)
        # All is done; this says which cells have failed, now or before.
        failed, more = _native.run(native, out, **here)
    return failed, [*notes, *job.notes, *more]


@dataclass
class _Task:
    cells: list[str]
    work: int
    carried: set[str] = field(default_factory=set)
    """Contents that a worker was found to lack."""
    lost: int = 0


class _Job:
    """The cells of an experiment that an executor computes."""

    def __init__(
        self,
        executor: Executor,
        native: NativePlan,
        out: Path,
        folder: Path,
        tasks: int | None,
        options: dict[str, Any],
        progress: Told | None,
    ) -> None:
        self._executor, self._native, self._out = executor, native, out
        self._tasks, self._options, self._progress = tasks, options, progress
        self._part, self._handled = folder / "part", set[str]()
        self._state, self._next = [0, 0, 0, 0], 0.0
        self._submitted, self._has_replied, self._follows = 0, False, False
        self._contents: dict[str, bytes | Path] = {}
        self.notes: list[str] = []
        self._files = {"exactfed.toml": self._keep((out / "exactfed.toml").read_bytes())}
        self._experiment = f"{native.experiment}/experiment.toml"
        self._files[self._experiment] = self._keep((out / self._experiment).read_bytes())
        for digest, file in native.files.items():
            copy = out / ".data" / digest
            self._contents[digest] = copy if copy.is_file() else file
            self._files[f".data/{digest}"] = digest
        problem = native.own_problem
        own: list[Defined] = [
            Algorithm._all[kind] for kind in native.algorithms if kind in Algorithm._all
        ]
        own += [Problem._all[problem]] if problem in Problem._all else []
        own += [Metric._all[name] for name in native.own_metrics if name in Metric._all]
        if code := _packed(own):
            self._files[_CODE] = self._keep(code)

    def _keep(self, content: bytes, file: Path | None = None) -> str:
        """Keep a content, or the file that holds it: its hash."""
        digest = hashlib.sha256(content).hexdigest()
        self._contents[digest] = file or content
        return digest

    def wanted(self) -> dict[str, int]:
        """The cells that are to be run next, with the operations of each."""
        frame = pl.DataFrame(self._native.frame(self._out, None))
        states = {"missing", "damaged"}
        if self._options["rerun_failed"]:
            states.add("failed")
        found = {
            cell: operations
            for cell, state, operations in frame.select("cell", "state", "operations").iter_rows()
            if cell not in self._handled and (state in states or self._options["force"])
        }
        self._follows = len(frame) > len(self._native)
        if found and self._follows:
            # Some follow from results, which workers then need too.
            for file in (self._out / self._native.experiment).iterdir():
                if file.name.endswith((".parquet", ".failed.toml")):
                    path = f"{self._native.experiment}/{file.name}"
                    self._files[path] = self._keep(file.read_bytes(), file)
        self._handled.update(found)
        self._state[1] += sum(found.values())
        return found

    def stage(self, cells: dict[str, int]) -> None:
        """Have these cells computed and stored."""
        waiting, running = deque(self._split(cells)), dict[Future[Any], _Task]()
        self._has_replied = False
        try:
            while waiting or running:
                most = self._most()
                while waiting and len(running) < most:
                    future = self._submit(waiting[0])
                    running[future] = waiting.popleft()
                done, _ = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
                # An executor that is shut down leaves cancelled ones, which wait() never reports.
                done |= {future for future in running if future.cancelled()}
                for future in done:
                    task = running.pop(future)
                    if not self._receive(future, task):
                        waiting.appendleft(task)
                self._store(now=not running)
                if self._progress:
                    self._progress(*self._state)
        except BaseException:
            left = [future for future in running if not future.cancel()]
            for future in wait(left, timeout=_PATIENCE).done:
                if not future.cancelled() and future.exception() is None:
                    with contextlib.suppress(ExactfedError):
                        self._take(future.result(), running[future])
            self._store(now=True)
            raise

    def _split(self, cells: dict[str, int]) -> list[_Task]:
        """Tasks of about as many operations: the costliest cells first."""
        most = self._tasks or _PER_WORKER * (self._workers() or os.cpu_count() or 1)
        tasks = [_Task([], 0) for _ in range(min(most, len(cells)))]
        least = [(0, i) for i in range(len(tasks))]
        for cell, cost in sorted(cells.items(), key=lambda cell: (-cell[1], cell[0])):
            _, i = least[0]
            tasks[i].cells.append(cell)
            tasks[i].work += cost
            heapq.heapreplace(least, (tasks[i].work, i))
        return tasks

    def _most(self) -> int:
        """How many tasks are submitted at once.

        They are few where workers would ask for data several times.
        """
        workers = self._workers()
        if workers is None or not any(map(_is_large, self._contents.values())):
            return sys.maxsize
        return max(workers, 1) * (2 if self._has_replied else 1)

    def _workers(self) -> int | None:
        """The number of workers, where the executor says it; it must not be closed."""
        try:
            return _workers(self._executor)
        except Exception as error:
            raise self._stopped("the executor is closed", error) from error

    def _submit(self, task: _Task) -> Future[Any]:
        contents = {}
        for digest in set(self._files.values()):
            content = self._contents[digest]
            if digest in task.carried or not _is_large(content):
                contents[digest] = content if isinstance(content, bytes) else content.read_bytes()
        # Equal calls would be one to Dask.
        self._submitted += 1
        call = {
            "version": __version__,
            "number": (self._part.parent.name, self._submitted),
            "experiment": self._native.experiment,
            "cells": task.cells,
            "files": dict(self._files),
            "contents": contents,
            "follows": self._follows,
            "threads": self._options["threads"] or 1,
            "memory": self._options["memory"],
        }
        try:
            return self._executor.submit(work, call)
        except Exception as error:
            raise self._stopped("the executor takes no more tasks", error) from error

    def _receive(self, future: Future[Any], task: _Task) -> bool:
        """Take the reply of a task; whether it is not to be submitted again."""
        try:
            reply = future.result()
        except Exception as error:
            self._lose(task, error)
            return False
        if "error" in reply:
            raise ExactfedError(reply["error"])
        return self._take(reply, task)

    def _lose(self, task: _Task, error: Exception) -> None:
        """Count a task that was lost, which is not submitted for ever."""
        task.lost += 1
        if task.lost > _MOST_LOST:
            raise self._stopped(f"a task was lost {task.lost} times", error) from error

    def _take(self, reply: dict[str, Any], task: _Task) -> bool:
        if "files" not in reply:
            lacks = set(reply.get("lacks", ())) & self._contents.keys() - task.carried
            if not lacks:
                self._lose(task, ValueError("the reply has neither files nor what it lacks"))
            task.carried |= lacks
            return False
        for path in reply["files"]:
            self._check_path(path)
        for path, content in reply["files"].items():
            cached = path.startswith(".")
            file = (self._out if cached else self._part) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if cached:
                # Other tasks need not search for the same optimum.
                self._files[path] = self._keep(content)
            new = file.with_name(f"{file.name}.{os.getpid()}")
            new.write_bytes(content)
            new.replace(file)
        self._state[0] += task.work
        self._state[2] += len(task.cells)
        self._state[3] += reply["steps"]
        self.notes += reply["notes"]
        self._has_replied = True
        return True

    def _check_path(self, path: str) -> None:
        """Refuse a file of a reply that is neither a result of the experiment nor an optimum."""
        folder, _, name = path.rpartition("/")
        known = folder in (self._native.experiment, ".optima")
        if not known or not re.fullmatch(r"\w[\w.-]*", name, re.ASCII):
            raise ExactfedError(
                f"error: {self._native.experiment}: a worker returned the file {path!r}: a reply "
                f"has files of {self._native.experiment}/ and .optima/ alone"
            )

    def _store(self, *, now: bool) -> None:
        """Merge what was returned into the results, unless merging took much of the time so far."""
        begin = time.monotonic()
        if not self._part.exists() or (begin < self._next and not now):
            return
        for path in ("exactfed.toml", self._experiment):
            content = self._contents[self._files[path]]
            assert isinstance(content, bytes)
            (self._part / path).write_bytes(content)
        _native.add_results(self._part, self._out, self._native.experiment)
        shutil.rmtree(self._part)
        end = time.monotonic()
        self._next = end + 10 * (end - begin)

    def _stopped(self, what: str, why: Exception) -> ExactfedError:
        why_text = f"{type(why).__name__}: {why}"
        return ExactfedError(
            f"error: {self._native.experiment}: {what} ({why_text}). Finished cells are stored; "
            "the same call, with an executor that works, runs the others"
        )


def _is_large(content: bytes | Path) -> bool:
    return isinstance(content, Path) or len(content) > _SMALL


def _workers(executor: Any) -> int | None:
    """The number of workers of an executor, where it says it."""
    client: Any = getattr(executor, "_client", None)
    if hasattr(client, "nthreads"):  # Dask
        return sum(client.nthreads().values())
    workers: int | None = getattr(executor, "_max_workers", None)
    return workers


def work(task: dict[str, Any]) -> dict[str, Any]:
    """Run cells on a worker.

    Returned are the files of their results, the contents that it lacks, or an error.
    """
    if task["version"] != __version__:
        return {
            "error": f"error: a worker has exactfed {__version__} and the caller "
            f"{task['version']}: install the same version for all workers"
        }
    with tempfile.TemporaryDirectory(prefix="exactfed-") as folder:
        root = Path(folder)
        if lacks := _placed(task["files"], task["contents"], root / "results"):
            return {"lacks": lacks}
        try:
            return _run(task, root)
        except ExactfedError as error:
            return {"error": f"{error}\non a worker"}


def _run(task: dict[str, Any], root: Path) -> dict[str, Any]:
    results, experiment = root / "results", task["experiment"]
    if _CODE in task["files"]:
        _define((results / _CODE).read_bytes())
        (results / _CODE).unlink()
    only, steps = root / "cells", [0]
    only.write_text("\n".join(task["cells"]))
    plan = NativePlan(results / experiment / "experiment.toml", "", "", [], {})
    _, notes = _native.run(
        plan.following(results) if task["follows"] else plan,
        results,
        _threads.locks(),
        threads=task["threads"],
        only=only,
        shard=None,
        force=True,
        rerun_failed=True,
        until_decided=False,
        memory=task["memory"],
        progress=lambda *state: steps.__setitem__(0, state[3]),
    )
    new = [*(results / experiment).glob("*.parquet"), *(results / experiment).glob("*.failed.toml")]
    new += (results / ".optima").glob("*")
    files = {file.relative_to(results).as_posix(): file for file in new}
    made = {path: file.read_bytes() for path, file in files.items() if path not in task["files"]}
    return {"files": made, "steps": steps[0], "notes": notes}


_lock = threading.Lock()
_caches: dict[int, tempfile.TemporaryDirectory[str]] = {}


def _placed(files: dict[str, str], contents: dict[str, bytes], root: Path) -> list[str]:
    """Put the files of a task below a folder: the contents that this process lacks.

    It keeps the contents of the last task.
    """
    with _lock:
        # A forked process is another one.
        if os.getpid() not in _caches:
            _caches[os.getpid()] = tempfile.TemporaryDirectory(prefix="exactfed-")
        cache = Path(_caches[os.getpid()].name)
        for digest, content in contents.items():
            if not (cache / digest).exists():
                # Never in place: tasks of other threads read links to it.
                new = cache / f"{digest}.new"
                new.write_bytes(content)
                new.replace(cache / digest)
        for other in {file.name for file in cache.iterdir()} - {*files.values()}:
            (cache / other).unlink()
        lacks = [digest for digest in set(files.values()) if not (cache / digest).exists()]
        for path, digest in () if lacks else files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(cache / digest, root / path)
            except OSError:
                shutil.copyfile(cache / digest, root / path)
    return lacks


def _packed(own: list[Defined]) -> bytes | None:
    """What is defined in Python: the modules that define it, and what has none by value."""
    modules, by_value = set[str](), list[Defined]()
    try:
        cloudpickle: Any = importlib.import_module("cloudpickle")
    except ImportError:
        cloudpickle = None
    for one in own:
        module = one.function.__module__
        if module.partition(".")[0] != "exactfed" and cloudpickle:
            by_value.append(one)
        elif module in sys.modules and module != "__main__":
            modules.add(module)
        else:
            raise ExactfedError(
                f"error: {one._where}: workers cannot import {one.kind}: "
                "pip install cloudpickle, here and for the workers, sends it by value"
            )
    values = [
        (type(one), one._known(), one._arguments(), _value(one, cloudpickle)) for one in by_value
    ]
    return pickle.dumps((sys.version_info[:2], sorted(modules), values)) if own else None


def _value(one: Defined, cloudpickle: Any) -> bytes:
    """The function or class of an algorithm or a problem, also where its module has a name."""
    module = sys.modules.get(one.function.__module__)
    named = module is not None and module.__name__ not in (
        "__main__",
        *cloudpickle.list_registry_pickle_by_value(),
    )
    if named:
        cloudpickle.register_pickle_by_value(module)
    try:
        value: bytes = cloudpickle.dumps(one.function)
        return value
    except Exception as error:
        raise ExactfedError(
            f"error: {one._where}: {one.kind} cannot be sent to workers: {error}"
        ) from error
    finally:
        if named:
            cloudpickle.unregister_pickle_by_value(module)


def _define(packed: bytes) -> None:
    """Define what :func:`_packed` packed, unless this process has the same."""
    python, modules, values = pickle.loads(packed)
    try:
        for module in modules:
            importlib.import_module(module)
        for family, known, arguments, function in values:
            with _lock:
                have = family._all.get(known["kind"])
                if have is not None and have._known() == known:
                    continue
                if python != sys.version_info[:2]:
                    raise ExactfedError(
                        f"error: a worker has Python {sys.version.split()[0]} and the caller "
                        f"{'.'.join(map(str, python))}: algorithms in Python need the same"
                    )
                family._all.pop(known["kind"], None)
                definition = {key: value for key, value in known.items() if key != "source"}
                made = pickle.loads(function)
                family(made, definition, known["source"], *arguments)
    except ImportError as error:
        raise ExactfedError(f"error: a worker cannot load an algorithm: {error}") from error
