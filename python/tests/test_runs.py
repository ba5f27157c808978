"""Manifests from paths, texts and dicts, runs, and what can go wrong."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import exactfed as ef
import numpy as np
import pytest
from conftest import MANIFEST
from polars.testing import assert_frame_equal

SMALL: dict[str, Any] = {
    "title": "Small",
    "seed": 3,
    "replicates": 2,
    "problem": {
        "quadratic": {
            "dimension": 2,
            "clients": 4,
            "spectrum": {"from": 0.5, "to": 1.0},
            "noise": 1.0,
        }
    },
    "start": {"zero": True},
    "budget": {"rounds": 10},
    "algorithm": {"fedavg": [{"step-size": [0.1, 0.2], "local-steps": 2}]},
}
TEXT = """\
title = "Small"
seed = 3
replicates = 2
problem.quadratic = { dimension = 2, clients = 4, spectrum = { from = 0.5, to = 1.0 }, noise = 1.0 }
start.zero = true
budget.rounds = 10
[[algorithm.fedavg]]
step-size = [0.1, 0.2]
local-steps = 2
"""


def command_line(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exactfed", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def ids(manifest: Any, **options: Any) -> list[str]:
    return ef.plan(manifest, **options).frame()["cell"].to_list()


def test_paths_texts_and_dicts_have_the_same_cells(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(TEXT)
    numpy = SMALL | {
        "seed": np.int64(3),
        "algorithm": {"fedavg": [{"step-size": np.array([0.1, 0.2]), "local-steps": np.uint8(2)}]},
    }
    expected = ids(TEXT)
    assert len(expected) == 2
    single = SMALL | {"algorithm": {"fedavg": SMALL["algorithm"]["fedavg"][0]}}
    assert ids(file) == ids(str(file)) == ids(SMALL) == ids(numpy) == ids(single) == expected
    assert ef.plan(file).experiment == "mine"
    assert ef.plan(SMALL).experiment == "experiment"
    assert ef.plan(SMALL, name="group/other").experiment == "group/other"
    digests = [ef.run(m, out=tmp_path / "results").digests() for m in (SMALL, file)]
    assert digests[0] == digests[1] and len(digests[0]) == 2


def test_settings_are_replaced(tmp_path: Path) -> None:
    one = {"algorithm.fedavg.step-size": 0.1}
    assert ids(SMALL, set=one) == ids(SMALL)[:1]
    assert ids(SMALL, set=["algorithm.fedavg.step-size=0.1"]) == ids(SMALL)[:1]
    steps = {"algorithm.fedavg.step-size": np.array([0.3, 0.4]), "seed": 9}
    assert len(ids(SMALL, set=steps)) == 2 and not set(ids(SMALL, set=steps)) & set(ids(SMALL))
    spectrum = {"problem.quadratic.spectrum": {"from": 0.5, "to": 1.0}}
    assert ids(SMALL, set=spectrum) == ids(SMALL)
    assert ef.plan(SMALL, replicates=7).frame()["runs"].to_list() == [7, 7]
    results = ef.run(SMALL, out=tmp_path / "results", replicates=3)
    assert sorted(results.frame()["replicate"].unique()) == [0, 1, 2]


def test_overrides_with_and_without_the_number_of_an_entry() -> None:
    entries = [
        {"label": "one", "step-size": 0.1, "local-steps": 1},
        {"label": "two", "step-size": 0.2, "local-steps": 2},
    ]
    manifest = {**SMALL, "algorithm": {"fedavg": entries}}

    def cells(*paths: str) -> list[str]:
        frame = ef.plan(manifest, set=dict.fromkeys(paths, 0.05)).frame()
        return frame["cell"].to_list()

    first = cells("algorithm.fedavg.0.step-size")
    assert first[0] != cells()[0] and first[1] == cells()[1]
    every = cells("algorithm.fedavg.step-size")
    assert every == cells("algorithm.fedavg.0.step-size", "algorithm.fedavg.1.step-size")


def test_plans_know_what_is_done(tmp_path: Path) -> None:
    out = tmp_path / "results"
    ef.run(SMALL, out=out, set={"algorithm.fedavg.step-size": 0.1})
    plan = ef.plan(SMALL, out=out)
    assert len(plan) == 2
    frame = plan.frame()
    assert frame["state"].to_list() == ["done", "missing"]
    assert frame["step_size"].to_list() == [0.1, 0.2]
    assert (
        frame["rounds"].to_list() == [10, 10]
        and (frame["seconds"] > 0).all()
        and (frame["memory"] > 0).all()
    )
    assert "missing" in plan._repr_html_()


def test_what_is_wrong_is_what_the_command_line_prints(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    for change in [
        ("seed = 3", "sed = 3"),
        ("clients = 4", "clients = -4"),
        ("[[", "[[["),
        ("rounds = 10", "rounds = 'ten'"),
    ]:
        file.write_text(TEXT.replace(*change))
        printed = command_line("check", str(file))
        assert printed.returncode == 2
        with pytest.raises(ef.ManifestError) as caught:
            ef.check(file)
        assert str(caught.value) == printed.stderr.rstrip("\n")
        first = caught.value.diagnostics[0]
        assert first.file == str(file) and first.line and first.column and first.message
        with pytest.raises(ef.ManifestError):
            ef.run(file, out=tmp_path / "results")
    assert not (tmp_path / "results").exists()
    missing = tmp_path / "missing.toml"
    with pytest.raises(ef.ManifestError) as caught:
        ef.check(missing)
    assert str(caught.value) == command_line("check", str(missing)).stderr.rstrip("\n")
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, ef.ExactfedError)
    assert ef.check(SMALL) is None


def test_instances_that_cannot_be_built() -> None:
    """What the manifest alone does not show."""
    wrong = SMALL | {"problem": {"atoms": {"file": "nowhere.npz"}}}
    with pytest.raises(ef.ManifestError, match=r"nowhere.npz"):
        ef.check(wrong)
    huge = SMALL | {"problem": {"quadratic": SMALL["problem"]["quadratic"] | {"clients": 10**12}}}
    with pytest.raises(ef.ManifestError, match=r"memory|clients"):
        ef.check(huge)


def test_values_that_no_manifest_has(tmp_path: Path) -> None:
    with pytest.raises(ef.ManifestError, match="TOML has no value for None"):
        ef.plan(SMALL | {"question": None})
    with pytest.raises(TypeError, match="a manifest is"):
        ef.plan(3)  # type: ignore[arg-type]
    with pytest.raises(ef.ManifestError, match="cannot contain"):
        ef.run(SMALL, name="../outside", out=tmp_path / "results")
    with pytest.raises(TypeError, match="name="):
        ef.run(tmp_path / "a.toml", name="b")
    with pytest.raises(ef.ExactfedError, match="threads"):
        ef.run(SMALL, threads=0, out=tmp_path / "results")


def test_progress_is_reported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int, int]] = []
    ef.run(SMALL, out=tmp_path / "a", progress=lambda *state: seen.append(state))
    done, total, cells = seen[-1]
    assert done == total > 0 and cells == 2
    ef.run(SMALL, out=tmp_path / "a")
    assert capfd.readouterr() == ("", ""), "nothing is printed behind the back of Python"
    ef.run(SMALL, out=tmp_path / "b", progress=True)
    first, *_, last = re.split(r"\r", capfd.readouterr().err.strip())
    assert first.startswith("experiment:   0%") and "?" not in first.replace("<?", "")
    assert re.search(r"100%.*, 2 cells, [0-9.]+[kM]? steps/s$", last), last

    def fail(*_: int) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        ef.run(SMALL, out=tmp_path / "c", progress=fail)


def test_results_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a run goes on, its finished cells are results; a notebook shows them."""
    counts: list[int] = []

    def look(done: int, total: int, cells: int) -> None:
        if cells:
            counts.append(len(ef.load(tmp_path / "a").digests()))

    steps = {"algorithm.fedavg.step-size": [round(0.01 * i, 2) for i in range(1, 21)]}
    ef.run(SMALL, out=tmp_path / "a", set=steps | {"budget.rounds": 3000}, progress=look)
    assert counts and counts[-1] == 20 and counts == sorted(counts)

    from exactfed import _run

    shown: list[str] = []
    monkeypatch.setattr(_run, "_in_notebook", lambda: True)
    monkeypatch.setattr(_run._SoFar, "_BETWEEN", 0.0)
    monkeypatch.setattr(_run._SoFar, "_replace", lambda self, html: shown.append(html))
    ef.run(SMALL, out=tmp_path / "b", set=steps, progress=True)
    assert shown and "<svg" in shown[0]


CHILD = """
import sys
import exactfed as ef
manifest, out = open(sys.argv[1]).read(), sys.argv[2]
def progress(done, total, cells):
    if cells >= 1:
        print("stored", flush=True)
try:
    ef.run(manifest, out=out, threads=1, progress=progress, name="long")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
def test_an_interruption_keeps_finished_cells(tmp_path: Path) -> None:
    manifest = tmp_path / "long.toml"
    long = TEXT.replace("[0.1, 0.2]", str([round(0.01 * i, 2) for i in range(1, 31)]))
    manifest.write_text(long.replace("rounds = 10", "rounds = 300000"))
    command = [sys.executable, "-c", CHILD, str(manifest), str(tmp_path / "results")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "stored\n"
        child.send_signal(signal.SIGINT)
        begin = time.monotonic()
        rest, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert time.monotonic() - begin < 10
    assert child.returncode == 0 and rest.endswith("interrupted\n")
    results = ef.load(tmp_path / "results")
    assert 0 < len(results.digests()) < 30
    states = ef.plan(manifest.read_text(), out=tmp_path / "results", name="long").frame()["state"]
    assert set(states) == {"done", "missing"}


def test_failed_cells_are_reported_and_others_stored(tmp_path: Path) -> None:
    @ef.algorithm("Fails")
    def fails(clients, theta, gamma, H):  # type: ignore[no-untyped-def]
        if gamma > 0.15:
            raise ArithmeticError("too large a step")
        while True:
            yield theta

    entry = {"step-size": [0.1, 0.2], "local-steps": 2}
    manifest = SMALL | {"algorithm": {"fails": [entry]}}
    with pytest.warns(ef.CellFailedWarning, match="too large a step"):
        results = ef.run(manifest, out=tmp_path / "results")
    failures = results.failures()
    assert failures.height == 1 and "fails" in failures["reason"][0]
    assert len(results.digests()) == 1
    with pytest.warns(ef.CellFailedWarning), warnings.catch_warnings():
        warnings.simplefilter("error", ef.ExactfedWarning)
        warnings.simplefilter("always", ef.CellFailedWarning)
        ef.run(manifest, out=tmp_path / "results", rerun_failed=True)
    with pytest.raises(ef.CellError, match="too large a step"):
        ef.run(manifest, out=tmp_path / "none", set={"algorithm.fails.step-size": 0.2})


def test_until_decided(tmp_path: Path) -> None:
    changes = {"algorithm.fedavg.step-size": 0.05, "algorithm.scaffold.step-size": 0.05}
    results = ef.run(
        MANIFEST, out=tmp_path / "results", set=changes, replicates=2, until_decided=True
    )
    assert results.claims()["verdict"].to_list() == ["supported"]
    assert results.frame()["replicate"].max() > 1
    with pytest.raises(ef.ExactfedError, match="no claims"):
        ef.run(SMALL, out=tmp_path / "other", until_decided=True)


def test_results_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(ef.ExactfedError, match="there are no results here"):
        ef.load(tmp_path / "none")
    out = tmp_path / "results"
    for name in ("one", "two"):
        ef.run(SMALL, out=out, name=name)
    with pytest.raises(ef.ExactfedError, match=r"2 experiments.*one, two"):
        ef.load(out)
    with pytest.raises(ef.ExactfedError, match=r'no experiment "three".*one, two'):
        ef.load(out, "three")
    assert ef.load(out, "two").experiment == "two"
    marker = out / "exactfed.toml"
    marker.write_text(marker.read_text().replace("schema = 5", "schema = 99"))
    with pytest.raises(ef.ExactfedError, match="schema 99, written by exactfed"):
        ef.load(out, "two")


def test_verification_and_damage(tmp_path: Path) -> None:
    results = ef.run(SMALL, out=tmp_path / "results")
    found = results.verify(None)
    assert found and found.equal == 2 and "2 bit-identical" in found.text
    pack = min((tmp_path / "results" / "experiment").glob("*.parquet"))
    pack.write_bytes(pack.read_bytes()[:-1] + b"x")
    assert not ef.load(tmp_path / "results").verify(None)
    with pytest.warns(ef.ExactfedWarning, match=pack.name):
        assert ef.load(tmp_path / "results").frame()["cell"].n_unique() == 1
    with pytest.warns(ef.ExactfedWarning, match="run again"):
        assert ef.run(SMALL, out=tmp_path / "results").verify(None)


def test_the_command_line(tmp_path: Path) -> None:
    assert ef.__version__ in command_line("--version").stdout
    wrong = command_line("runn")
    assert (wrong.returncode == 2 and "did you mean" in wrong.stderr) or "similar" in wrong.stderr
    (tmp_path / "small.toml").write_text(TEXT)
    done = command_line("run", "small.toml", cwd=tmp_path)
    assert done.returncode == 0 and "2 cells" in done.stderr
    assert ef.load(tmp_path / "results").experiment == "small"
    report = command_line("report", "--quiet", cwd=tmp_path)
    assert report.returncode == 0 and (tmp_path / "reports/small/report.html").is_file()


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
def test_an_interrupted_command_line_ends_with_its_code(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(TEXT.replace("rounds = 10", "rounds = 100000000"))
    command = [sys.executable, "-m", "exactfed", "run", "long.toml"]
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "results" / "long").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 130, errors
    assert "interrupted: 0 of 2 cells are stored" in errors


@pytest.mark.skipif(os.name == "nt", reason="Slurm")
def test_a_submission_calls_python(tmp_path: Path) -> None:
    """The program that tasks call is a script, since the executable of the process is Python."""
    (tmp_path / "small.toml").write_text(TEXT)
    sbatch = tmp_path / "bin" / "sbatch"
    sbatch.parent.mkdir()
    sbatch.write_text("#!/bin/sh\necho 1\n")
    sbatch.chmod(0o755)
    path = f"{sbatch.parent}:{os.environ['PATH']}"
    done = command_line(
        "submit", "--slurm", "small.toml", cwd=tmp_path, env=os.environ | {"PATH": path}
    )
    assert done.returncode == 0, done.stderr
    program = tmp_path / "results" / ".slurm" / "1" / "exactfed"
    version = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
    assert ef.__version__ in version.stdout


UNPICKLE = """\
import pickle, sys
results = pickle.loads(sys.stdin.buffer.read())
frames = [results.frame(), results.claims(), results.ranking()]
shown = [results.experiment, results.digests(), results.figures]
pickle.dump((frames, shown, str(results.path)), sys.stdout.buffer)
"""


def test_results_are_pickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in another folder sees the same results, also after another run."""
    monkeypatch.chdir(tmp_path)
    results = ef.run(MANIFEST, name="mine")
    assert not results.path.is_absolute()
    pickled = pickle.dumps(results)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def unpickled() -> tuple[list[Any], list[Any], str]:
        command = [sys.executable, "-c", UNPICKLE]
        done = subprocess.run(
            command, input=pickled, capture_output=True, cwd=elsewhere, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return pickle.loads(done.stdout)

    frames = [results.frame(), results.claims(), results.ranking()]
    shown = results_now(results)
    other_frames, other_shown, path = unpickled()
    assert other_shown == shown and path == str(tmp_path / "results")
    for frame, other in zip(frames, other_frames, strict=True):
        assert_frame_equal(frame, other, check_exact=True)
    # The pickle is of the first run, as the results are that it was made of.
    ef.run(MANIFEST, name="mine", set={"replicates": 2})
    assert unpickled()[1] == results_now(results) == shown
    (tmp_path / "results").rename(tmp_path / "moved")
    with pytest.raises(ef.ExactfedError, match="results"):
        pickle.loads(pickled)


def results_now(results: ef.Results) -> list[Any]:
    return [results.experiment, results.digests(), results.figures]
