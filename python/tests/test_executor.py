"""Runs on executors: the digests of local runs, whatever happens to the workers."""

from __future__ import annotations

import hashlib
import importlib.util
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import exactfed as ef
import numpy as np
import pytest
from conftest import MANIFEST
from exactfed import _executor

HALF = 0.5
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
SMALL: dict[str, Any] = {
    "title": "Small",
    "seed": 3,
    "replicates": 2,
    "problem": {
        "quadratic": {
            "dimension": 3,
            "clients": 4,
            "spectrum": {"from": 0.5, "to": 1.0},
            "gradient-heterogeneity": 1.0,
            "noise": 0.5,
        }
    },
    "start": {"offset": 1.0},
    "budget": {"rounds": 40},
    "algorithm": {"fedavg": {"step-size": [0.01 * k for k in range(1, 13)], "local-steps": 5}},
}
SLOW = SMALL | {"budget": {"rounds": 30_000}, "record": {"points": 20}, "replicates": 8}
BRIEF = SLOW | {"replicates": 2}
RECORDS = {
    "title": "Records",
    "seed": 1,
    "replicates": 3,
    "problem": {
        "logistic-dataset": {
            "dataset": {"file": "records.csv", "clients": 10, "split": {"dirichlet": 0.5}},
            "l2": 0.1,
        }
    },
    "start": {"zero": True},
    "budget": {"rounds": 20},
    "algorithm": {"fedavg": {"step-size": [0.05, 0.1, 0.2], "local-steps": [1, 5]}},
}


@ef.algorithm("Damped", kind="damped")
def damped(clients, theta, gamma, H, server=1.0):
    while True:
        theta = theta + HALF * server * (clients.mean(clients.local_steps(theta, gamma, H)) - theta)
        yield theta


def records() -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(0)
    x = draws.normal(size=(1500, 40))
    return x, (x[:, 0] + draws.normal(size=1500) > 0).astype(float)


Case = tuple[Any, dict[str, Any]]


def manifests(folder: Path) -> list[Case]:
    """Manifests with all that a task has to bring along."""
    x, y = records()
    rows = [",".join(map(repr, map(float, [*row, label]))) for row, label in zip(x, y, strict=True)]
    names = ",".join([*(f"x{k}" for k in range(40)), "label"])
    (folder / "records.csv").write_text("\n".join([names, *rows]) + "\n")
    (folder / "own.py").write_text(
        "import exactfed as ef\n\n\n@ef.algorithm('Of a file', kind='of-a-file')\n"
        "def of_a_file(clients, theta, gamma, H):\n    while True:\n"
        "        theta = clients.mean(clients.local_steps(theta, gamma, H))\n        yield theta\n"
    )
    own = {
        "algorithm": {"damped": {"step-size": [0.1, 0.2], "local-steps": 5, "server": [0.5, 1.0]}}
    }
    in_memory = RECORDS["problem"]["logistic-dataset"] | {  # type: ignore[index]
        "dataset": {"file": "mine", "clients": 10, "split": {"dirichlet": 0.5}}
    }
    (folder / "file.toml").write_text(
        ef._manifest._toml(RECORDS).replace("\n", '\npython = ["own.py"]\n', 1)  # type: ignore[attr-defined]
        + "[[algorithm.of-a-file]]\nstep-size = 0.1\nlocal-steps = 5\n"
    )
    tuned = {
        "algorithm": {"fedavg": {"local-steps": 5}, "damped": {"local-steps": 5}},
        "tune": {
            "over": ["step-size", "server"],
            "range": {"step-size": [0.02, 0.1]},
            "values": {"server": [0.5, 1.0]},
        },
    }
    return [
        (MANIFEST, {"set": {"seed": 5}, "name": "group/settings"}),
        (folder / "file.toml", {}),
        (
            RECORDS | {"problem": {"logistic-dataset": in_memory}},
            {"arrays": {"mine": {"x": x, "y": y}}},
        ),
        (SMALL | own, {}),
        (SMALL | tuned, {}),
    ]  # fmt: skip


Cases = list[tuple[Case, dict[str, str]]]


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """The manifests and the digests of local runs."""
    folder = tmp_path_factory.mktemp("cases")

    def digests(k: int, case: Case) -> dict[str, str]:
        return ef.run(case[0], out=folder / str(k), **case[1]).digests()

    return [(case, digests(k, case)) for k, case in enumerate(manifests(folder))]


def check(executor: Executor, cases: Cases, out: Path) -> None:
    """Runs all cases with an executor."""
    for k, ((manifest, options), digests) in enumerate(cases):
        states = list[tuple[int, int, int]]()
        results = ef.run(
            manifest,
            out=out / str(k),
            executor=executor,
            progress=lambda *state: states.append(state),  # noqa: B023
            **options,
        )
        assert results.digests() == digests
        assert states[-1][0] == states[-1][1] > 0 and states[-1][2] == len(digests)


def processes(workers: int = 2, **options: Any) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), **options)


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with processes() as pool:
        yield pool


def test_a_process_pool_gives_the_digests_of_a_local_run(
    pool: Executor, cases: Cases, tmp_path: Path
) -> None:
    check(pool, cases, tmp_path)


def test_loky_gives_the_digests_of_a_local_run(cases: Cases, tmp_path: Path) -> None:
    loky = pytest.importorskip("loky")
    with loky.ProcessPoolExecutor(2) as pool:
        check(pool, cases, tmp_path)


@pytest.fixture
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    quiet = {"dashboard_address": None, "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=4, threads_per_worker=1, **quiet) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


def test_dask_gives_the_digests_of_a_local_run_when_two_workers_are_killed(
    cluster: Any, cases: Cases, slow: dict[str, str], tmp_path: Path
) -> None:
    """Dask sends them again by itself."""
    check(cluster.get_executor(), cases, tmp_path)
    victims = [*cluster.run(os.getpid).values()][:2]

    def kill(done: int, total: int, cells: int) -> None:
        if 0 < cells < 12 and victims:
            os.kill(victims.pop(), KILL)

    options = {"out": tmp_path / "killed", "executor": cluster.get_executor(), "tasks": 12}
    assert ef.run(SLOW, progress=kill, **options).digests() == slow
    assert not victims
    with pytest.raises(TypeError, match=r"pass client.get_executor()"):
        ef.run(SMALL, out=tmp_path / "none", executor=cluster)


def test_mpi_gives_the_digests_of_a_local_run(cases: Cases, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip("no mpiexec beside Python")
    (tmp_path / "script.py").write_text(
        textwrap.dedent(
            f"""
            import pathlib, sys
            sys.path.insert(0, {str(Path(__file__).parent)!r})
            import exactfed as ef
            from mpi4py.futures import MPIPoolExecutor
            from test_executor import manifests

            if __name__ == "__main__":
                with MPIPoolExecutor() as executor:
                    for k, (manifest, options) in enumerate(manifests(pathlib.Path.cwd())):
                        ef.run(manifest, out=str(k), executor=executor, **options)
            """
        )
    )
    call = [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", "script.py"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    for k, (_, digests) in enumerate(cases):
        assert ef.load(tmp_path / str(k)).digests() == digests


@pytest.fixture(scope="session")
def slow(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The digests of cells that take a while."""
    return ef.run(SLOW, out=tmp_path_factory.mktemp("slow")).digests()


def stored(out: Path) -> set[str]:
    return {file.name for file in out.glob("experiment/*.parquet")}


def test_workers_of_a_process_pool_are_killed_at_random(
    slow: dict[str, str], tmp_path: Path
) -> None:
    draws, kept, broken = random.Random(1), set[str](), 0
    for attempt in range(30):
        with processes() as pool:
            pool.submit(os.getpid).result(timeout=60)
            victim = draws.choice([*pool._processes])
            timer = threading.Timer(draws.uniform(0.05, 0.8), os.kill, (victim, KILL))
            if attempt < 3:
                timer.start()
            try:
                results = ef.run(SLOW, out=tmp_path, executor=pool, tasks=12)
                break
            except ef.ExactfedError as error:
                assert "takes no more tasks" in str(error) and "the same call" in str(error)
                broken += 1
            finally:
                timer.cancel()
        assert stored(tmp_path) >= kept
        kept = stored(tmp_path)
    assert broken and results.digests() == slow and stored(tmp_path) >= kept


def test_an_exception_of_the_progress_keeps_what_has_finished(tmp_path: Path) -> None:
    def fail(done: int, total: int, cells: int) -> None:
        if cells:
            raise RuntimeError("enough")

    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="enough"):
        ef.run(SMALL, out=tmp_path, executor=pool, progress=fail)
    assert stored(tmp_path)


class Here(Executor):
    """Runs each task at once; ``before`` may spoil it."""

    _max_workers = 1

    def __init__(self, before: Callable[[dict[str, Any]], None]) -> None:
        self._before = before

    def submit(self, call: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        future = Future[Any]()
        try:
            self._before(arguments[0])
            future.set_result(call(*arguments, **options))
        except Exception as error:
            future.set_exception(error)
        return future


class First(Here):
    """Runs the first task, and leaves the others waiting."""

    def submit(self, call: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        if arguments[0]["number"][1] > 1:
            return Future[Any]()
        return super().submit(call, *arguments, **options)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_keeps_what_has_finished(slow: dict[str, str], tmp_path: Path) -> None:
    timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))

    def interrupt(done: int, total: int, cells: int) -> None:
        if cells and not timer.ident:
            timer.start()

    # A job in the background of a shell ignores it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ef.run(SLOW, out=tmp_path, executor=First(lambda task: None), progress=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    kept = stored(tmp_path)
    assert 0 < len(kept) < 12
    with processes() as pool:
        results = ef.run(SLOW, out=tmp_path, executor=pool)
    assert results.digests() == slow and stored(tmp_path) > kept


def test_large_data_travel_once(cases: Cases, tmp_path: Path) -> None:
    (manifest, _), digests = cases[1]
    sent = list[int]()
    here = Here(lambda task: sent.append(sum(map(len, task["contents"].values()))))
    results = ef.run(manifest, out=tmp_path, executor=here, tasks=5)
    assert results.digests() == digests
    size = (manifest.parent / "records.csv").stat().st_size
    assert len(sent) == 6 and sum(size <= bytes_sent for bytes_sent in sent) == 1


def test_files_of_a_task_stay_when_another_thread_is_sent_them(tmp_path: Path) -> None:
    content = b"an experiment"
    digest = hashlib.sha256(content).hexdigest()
    for name in ("one", "two"):
        assert not _executor._placed({"file": digest}, {digest: content}, tmp_path / name)
        if name == "one":
            before = (tmp_path / "one" / "file").stat().st_mtime_ns
    # What the first task may be reading was not written again.
    assert (tmp_path / "one" / "file").stat().st_mtime_ns == before


def test_lost_tasks_are_submitted_again(tmp_path: Path) -> None:
    def spoil(task: dict[str, Any]) -> None:
        if random.random() < 0.4:
            raise OSError("the network is gone")

    random.seed(2)
    local = ef.run(SMALL, out=tmp_path / "local")
    lossy = ef.run(SMALL, out=tmp_path / "lossy", executor=Here(spoil), tasks=12)
    assert lossy.digests() == local.digests()

    count = iter(range(100))
    with pytest.raises(ef.ExactfedError, match=r"lost 4 times .ZeroDivision.*the same call"):
        ef.run(
            SMALL,
            out=tmp_path / "gone",
            executor=Here(lambda task: 1 // (next(count) < 2)),
            tasks=4,
        )
    assert len(stored(tmp_path / "gone")) == 6
    again = ef.run(SMALL, out=tmp_path / "gone", executor=Here(lambda task: None))
    assert again.digests() == local.digests()


def processes_or_threads(kind: str) -> Executor:
    return processes() if kind == "processes" else ThreadPoolExecutor(2)


@pytest.fixture(scope="session")
def brief(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The digests of fewer runs of these cells."""
    return ef.run(BRIEF, out=tmp_path_factory.mktemp("brief")).digests()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", ["processes", "threads"])
def test_an_executor_that_is_shut_down_with_its_tasks(
    kind: str, brief: dict[str, str], tmp_path: Path
) -> None:
    """Python leaves the cancelled tasks in a state that nothing reports."""
    closed = processes_or_threads(kind)

    def shut_down(done: int, total: int, cells: int) -> None:
        if cells:
            closed.shutdown(wait=False, cancel_futures=True)

    with pytest.raises(ef.ExactfedError, match=r"takes no more tasks.*the same call"):
        ef.run(BRIEF, out=tmp_path, executor=closed, tasks=12, progress=shut_down)
    assert 0 < len(stored(tmp_path)) < len(brief)
    with processes_or_threads(kind) as open_one:
        assert ef.run(BRIEF, out=tmp_path, executor=open_one).digests() == brief
    closed.shutdown()


class Cancels(Here):
    """Cancels every second task that it is given, and goes on."""

    count = 0

    def submit(self, call: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        self.count += 1
        if self.count % 2:
            future = Future[Any]()
            assert future.cancel()
            return future
        return super().submit(call, *arguments, **options)


@pytest.mark.timeout(120)
def test_cancelled_tasks_are_submitted_again(tmp_path: Path) -> None:
    local = ef.run(SMALL, out=tmp_path / "local")
    there = ef.run(SMALL, out=tmp_path / "there", executor=Cancels(lambda task: None), tasks=3)
    assert there.digests() == local.digests()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("closes", ["client", "cluster", "both"])
def test_dask_is_closed_in_the_middle(closes: str, brief: dict[str, str], tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    quiet = {"dashboard_address": None, "silence_logs": 50}
    workers = distributed.LocalCluster(**options, **quiet)
    client = distributed.Client(workers)
    executor = client.get_executor()

    def close(done: int, total: int, cells: int) -> None:
        if cells:
            if closes in ("client", "both"):
                client.close()
            if closes in ("cluster", "both"):
                workers.close()

    try:
        with pytest.raises(ef.ExactfedError, match="the same call"):
            ef.run(BRIEF, out=tmp_path, executor=executor, tasks=12, progress=close)
    finally:
        client.close()
        workers.close()
    assert stored(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        assert ef.run(BRIEF, out=tmp_path, executor=pool).digests() == brief


class Replies(Here):
    """Gives other replies than those of the worker."""

    def __init__(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        super().__init__(lambda task: None)
        self._change = change

    def submit(self, call: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        future = Future[Any]()
        future.set_result(self._change(call(*arguments, **options)))
        return future


@pytest.mark.parametrize(
    "path",
    [
        "../../../file", "/tmp/exactfed-file", ".optima/../../file", "experiment/../../file",
        "exactfed.toml", "experiment/sub/file.parquet", ".data/file", ".git/hooks/post-commit",
        "experiment/..", "experiment/", "C:\\file", "experiment/..\\file", "other/a.parquet", "",
    ],
)  # fmt: skip
def test_a_reply_writes_no_other_files(path: str, tmp_path: Path) -> None:
    out = tmp_path / "a" / "b" / "out"
    bad = Replies(lambda reply: {**reply, "files": {**reply["files"], path: b"x"}})
    before = ef.run(SMALL, out=out, set={"replicates": 1}).digests()
    kept = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    with pytest.raises(ef.ExactfedError, match="a worker returned the file"):
        ef.run(SMALL, out=out, executor=bad, force=True, set={"replicates": 1})
    found = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert found.keys() == kept.keys() and ef.load(out).digests() == before
    assert not Path("/tmp/exactfed-file").exists()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("reply", [{}, {"lacks": ["0" * 64]}, {"lacks": []}])
def test_replies_without_a_result_are_not_asked_for_ever(reply: Any, tmp_path: Path) -> None:
    with pytest.raises(ef.ExactfedError, match=r"lost 4 times .*neither files nor what it lacks"):
        ef.run(SMALL, out=tmp_path, executor=Replies(lambda _: reply), tasks=2)


def test_damaged_results_are_not_stored(tmp_path: Path) -> None:
    ef.run(SMALL, out=tmp_path / "part")
    file = min((tmp_path / "part" / "experiment").glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-20] + bytes(20))
    with pytest.raises(ef.ExactfedError, match=file.name):
        ef._native.add_results(tmp_path / "part", tmp_path / "out", "experiment")
    assert file.name not in stored(tmp_path / "out")


def of_another_version() -> None:
    _executor.__version__ = "0.0.1"  # type: ignore[attr-defined]


def test_workers_of_another_version_are_refused(tmp_path: Path) -> None:
    with (
        processes(1, initializer=of_another_version) as pool,
        pytest.raises(ef.ExactfedError, match=r"a worker has exactfed 0\.0\.1 and the caller"),
    ):
        ef.run(SMALL, out=tmp_path, executor=pool)
    assert not stored(tmp_path)


def test_failed_cells_and_forced_ones(pool: Executor, tmp_path: Path) -> None:
    @ef.algorithm("Fails", kind="fails-on-workers")
    def fails(clients, theta, gamma, H):
        while True:
            if gamma > 0.15:
                raise ValueError("this step size is too large")
            theta = clients.mean(clients.local_steps(theta, gamma, H))
            yield theta

    entry = {"fails-on-workers": {"step-size": [0.1, 0.2], "local-steps": 2}}
    manifest = SMALL | {"algorithm": entry}
    for options in ({}, {}, {"rerun_failed": True}, {"force": True}):
        with pytest.warns(ef.CellFailedWarning, match="too large"):
            results = ef.run(manifest, out=tmp_path, executor=pool, **options)
        assert results.failures().height == 1 and len(results.digests()) == 1
    with pytest.raises(ef.CellError, match="too large"):
        large = {"algorithm.fails-on-workers.step-size": 0.2}
        ef.run(manifest, out=tmp_path / "none", executor=pool, set=large)
    with pytest.raises(TypeError, match="until_decided"):
        ef.run(manifest, out=tmp_path / "looks", executor=Here(print), until_decided=True)


def test_algorithms_without_cloudpickle(
    pool: Executor, cases: Cases, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    (manifest, options), digests = cases[3]
    # Workers import the module of the test.
    assert ef.run(manifest, out=tmp_path, executor=pool, **options).digests() == digests
    with pytest.raises(ef.ExactfedError, match=r"own.py:.*of-a-file: pip install cloudpickle"):
        ef.run(cases[1][0][0], out=tmp_path, executor=pool)


def test_algorithms_travel_by_value(pool: Executor, tmp_path: Path) -> None:
    """A worker has no module of a notebook or a script, nor a later version of its code."""
    pytest.importorskip("cloudpickle")
    digests = []
    for factor in ("0.5", "0.25"):
        (tmp_path / f"own{factor}.py").write_text(
            f"import exactfed as ef\nFACTOR = {factor}\n\n\ndef scaled(theta):\n"
            "    return FACTOR * theta\n\n\n@ef.algorithm('Own', kind='of-a-script')\n"
            "def own(clients, theta, gamma, H):\n    while True:\n"
            "        theta = scaled(clients.mean(clients.local_steps(theta, gamma, H)))\n"
            "        yield theta\n"
        )
        ef._algorithm._defined.pop("of-a-script", None)  # type: ignore[attr-defined]
        spec = importlib.util.spec_from_file_location("of_a_script", tmp_path / f"own{factor}.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        manifest = SMALL | {"algorithm": {"of-a-script": {"step-size": 0.1, "local-steps": 2}}}
        local = ef.run(manifest, out=tmp_path / "local").digests()
        there = ef.run(manifest, out=tmp_path / "there", executor=pool).digests()
        assert local == there
        digests.append(local)
    # The second results have the cell of the first code too.
    assert digests[0] != digests[1]
