"""Runs that are called inside rounds, in threads, and in processes that were forked."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import exactfed as ef
import polars as pl
import pytest
from conftest import MANIFEST
from test_algorithm import QUADRATIC, entries

SHORT = QUADRATIC.replace("rounds = 600", "rounds = 5")
NESTED = SHORT + entries(nested="")


def in_time(work: Callable[[], object], seconds: float = 60) -> None:
    """Do work that may wait for ever in a thread, which ends with the process.

    What the work raises is raised here.
    """
    raised: list[BaseException] = []

    def caught() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=caught, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"it did not end within {seconds} s"
    if raised:
        raise raised[0]


def directly(call: Callable[[], object]) -> None:
    call()


def in_a_thread(call: Callable[[], object]) -> None:
    raised: list[BaseException] = []

    def caught() -> None:
        try:
            call()
        except ef.ExactfedError as error:
            raised.append(error)

    def outer() -> None:
        # A thread of a thread.
        inner = threading.Thread(target=caught, daemon=True)
        inner.start()
        inner.join()

    thread = threading.Thread(target=outer, daemon=True)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def in_an_executor(call: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(call).result()


def in_another_run(call: Callable[[], object]) -> None:
    """In a round of a run of another experiment, which the round calls."""

    @ef.algorithm("between", source="between")
    def between(clients, theta, gamma, H):
        call()
        while True:
            yield theta

    ef.run(SHORT + entries(between=""), name="between", out=OUT[0])


OUT: list[Path] = []


@pytest.mark.parametrize("how", [directly, in_a_thread, in_an_executor, in_another_run])
def test_a_run_inside_its_own_rounds_is_an_error(tmp_path, how):
    OUT[:] = [tmp_path / "link"]
    (tmp_path / "results").mkdir()
    if os.name != "nt":
        OUT[0].symlink_to(tmp_path / "results")

    @ef.algorithm("nested", source=how.__name__)
    def nested(clients, theta, gamma, H):
        how(lambda: ef.run(NESTED, name="nested", out=tmp_path / "results"))
        while True:
            yield theta

    begin = time.monotonic()
    with pytest.raises(ef.CellError, match="calls for another run of the same experiment"):
        in_time(lambda: ef.run(NESTED, name="nested", out=OUT[0]))
    assert time.monotonic() - begin < 30, "at once, and not after `patience`"


def test_a_round_may_run_another_experiment_and_look_at_its_own(tmp_path):
    seen = []
    text = SHORT + entries(looks="")

    @ef.algorithm("looks", source="looks")
    def looks(clients, theta, gamma, H):
        other = ef.run(SHORT + entries(fedavg=""), name="other", out=tmp_path)
        same = ef.run(
            text.replace("seed = 7", "seed = 8").replace("looks", "fedavg"),
            name="looks",
            out=tmp_path / "b",
        )
        seen.append((other.frame().height, same.frame().height, len(ef.plan(text, out=tmp_path))))
        while True:
            yield theta

    in_time(lambda: ef.run(text, name="looks", out=tmp_path))
    assert set(seen) == {(12, 12, 1)}, "in its two runs and where its theory is traced"
    assert len(seen) >= 2


def test_threads_that_run_an_experiment_together_wait_for_each_other(tmp_path):
    """One of them starts the other while its algorithm is in a round."""
    begun, ended = threading.Event(), threading.Event()

    @ef.algorithm("together", source="together")
    def together(clients, theta, gamma, H):
        while True:
            begun.set()
            # So long that the other run finds the lock held.
            ended.wait(0.1)
            yield theta

    results = []
    run = lambda: results.append(ef.run(SHORT + entries(together=""), out=tmp_path))  # noqa: E731

    def both() -> None:
        first = threading.Thread(target=run, daemon=True)
        first.start()
        assert begun.wait(30)
        run()
        first.join()

    in_time(both)
    assert len(results) == 2 and results[0].digests() == results[1].digests()


def child(work: Callable[[], object], seconds: float = 60) -> str:
    """What a forked process writes about this work: `done`, or its exception."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Python warns that other threads exist: that is what is tested.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process == 0:
        try:
            work()
            text = "done"
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    deadline = time.monotonic() + seconds
    while os.waitpid(process, os.WNOHANG)[0] == 0:
        if time.monotonic() > deadline:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            os.close(read)
            return "it hangs"
        time.sleep(0.02)
    with os.fdopen(read) as pipe:
        return pipe.read()


def use(results: ef.Results, folder: Path) -> None:
    """Everything that works with several threads."""
    assert results.frame().height > 0
    assert results.ranking().height > 0
    results.plot()
    results.report(folder / "reports")
    assert ef.plan(MANIFEST, out=folder / "none").frame().height == 8
    assert ef.diff(results, results).code == 0
    only = {"step-size": 0.02, "local-steps": 10}
    assert ef.exact(MANIFEST, label="Scaffold", settings=only).mean is not None


@pytest.mark.skipif(sys.platform != "linux", reason="fork is not how processes begin there")
def test_a_forked_process_can_do_what_its_parent_did(tmp_path, results):
    long = {"set": ["record.points=1000"], "replicates": 40}
    use(results, tmp_path / "parent")
    # All threads of polars in the parent exist.
    pl.DataFrame({"a": range(100_000)}).sort("a", descending=True).group_by("a").len()

    def work() -> None:
        use(results, tmp_path / "child")
        own = ef.run(MANIFEST, name="own", out=tmp_path / "results", **long)
        use(own, tmp_path / "own")
        assert own.frame().height > 30_000
        assert own.verify(2)

    assert child(work) == "done"


@pytest.mark.skipif(sys.platform != "linux", reason="fork is not how processes begin there")
def test_a_forked_process_ends_rounds_that_do_not_end(tmp_path):
    @ef.algorithm("endless", source="endless", patience=1)
    def endless(clients, theta, gamma, H):
        yield theta
        while True:
            pass

    text = SHORT + entries(endless="")
    with pytest.raises(ef.CellError, match="within 1 s"):
        in_time(lambda: ef.run(text, out=tmp_path / "parent"))
    said = child(lambda: ef.run(text, out=tmp_path / "child"))
    assert said.startswith("CellError") and "within 1 s" in said, said
