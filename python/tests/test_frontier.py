"""Frontiers of algorithms in Python: their exact errors, their keys, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import exactfed as ef
import exactfed.algorithms as shipped
import polars as pl
import pytest
from test_trust import command

assert shipped, "the algorithms are known once their module is imported"

PROBLEM = """
title = "A frontier of momentum"
seed = 1
replicates = 1

[problem.quadratic]
dimension = 2
clients = 4
noise = 0.5
gradient-heterogeneity = 0.5
hessian-heterogeneity = 0.1
spectrum = { from = 0.2, to = 1.0 }
"""
START = """
[start]
offset = 1.0
"""
FRONTIER = """
[[frontier]]
id = "least"
algorithms = ["fedavg", ALGORITHM]
targets = [0.5, 0.25]
step-size = { from = 1e-2, to = 1.0, points = 12 }
local-steps = [1, 4, 16]
start = "runs"
"""


def manifest(algorithm: str) -> str:
    return PROBLEM + START + FRONTIER.replace("ALGORITHM", algorithm)


def frontier(algorithm: str, folder: Path) -> pl.DataFrame:
    frame: pl.DataFrame = ef.run(manifest(algorithm), out=folder, progress=False).frontier()
    return frame.filter(pl.col("minimises") == "cost")


def of(frame: pl.DataFrame, algorithm: str) -> list[dict[str, Any]]:
    return frame.filter(pl.col("algorithm") == algorithm).sort("price", "target").to_dicts()


def test_without_momentum_it_is_fedavg(tmp_path: Path) -> None:
    frame = frontier("{ fedavgm = { momentum = [0.0] } }", tmp_path)
    same = ("rounds", "local_steps", "communications", "gradients", "flag")
    ours, theirs = of(frame, "fedavgm"), of(frame, "fedavg")
    assert len(ours) == len(theirs) > 10
    for a, b in zip(ours, theirs, strict=True):
        assert [a[name] for name in same] == [b[name] for name in same], (a, b)
        assert a["settings"] == "momentum 0"


@pytest.mark.engine
def test_points_are_where_the_exact_error_comes_below_and_stays(tmp_path: Path) -> None:
    seen = set()
    for point in of(frontier("{ fedavgm = { momentum = [0.0, 0.5, 0.9] } }", tmp_path), "fedavgm"):
        settings = (point["step_size"], point["local_steps"], point["settings"], point["target"])
        if settings in seen:
            continue
        seen.add(settings)
        rounds = point["rounds"]
        exact = ef.exact(
            PROBLEM
            + START
            + f"""
[budget]
rounds = {rounds + 100}
[record]
every = 1
[[algorithm.fedavgm]]
step-size = {point["step_size"]!r}
local-steps = {point["local_steps"]}
momentum = {point["settings"].removeprefix("momentum ")}
"""
        )
        assert exact.sq_error is not None
        assert (exact.sq_error[rounds:] <= point["target"] ** 2 * (1 + 1e-9)).all()
        assert exact.sq_error[rounds - 1] > point["target"] ** 2 * (1 - 1e-9)
    assert len({momentum for _, _, momentum, _ in seen}) > 1, seen


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        ("{ fedavgm = { momentun = [0.5] } }", "has no key `momentun`"),
        ("{ fedavgm = { momentum = [] } }", "at least one"),
        ("{ fedavgmm = {} }", 'no algorithm is called "fedavgmm"'),
        ("{ topk = {} }", "topk cannot be solved exactly"),
        ("{ fedadam = {} }", "fedadam cannot be solved exactly: the server adapts its step"),
    ],
)
def test_what_is_refused(algorithm: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ef.ExactfedError, match=words) as refusal:
        frontier(algorithm, tmp_path)
    if "topk" in algorithm:
        assert "the compressor top-k:1" in str(refusal.value), "what is not linear"


OWN = """
import exactfed as ef


@ef.algorithm("Mixed", kind="mixed")
def mixed(clients, theta, gamma, H, mix=0.5):
    previous = theta
    while True:
        point = (1.0 - mix) * theta + mix * previous
        previous, theta = theta, clients.mean(clients.local_steps(point, gamma, H))
        yield theta
"""


def test_reports_of_results_need_code_until_the_frontier_is_kept(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    text = manifest("{ mixed = { mix = [0.0, 0.5] } }")
    (tmp_path / "m.toml").write_text('python = ["own.py"]\n' + text)
    assert command("run", "m.toml", folder=tmp_path).returncode == 0
    done = command("report", folder=tmp_path)
    assert done.returncode == 2 and "name its file with --run-code" in done.stderr, done.stderr
    done = command("report", "--run-code", "own.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    page = tmp_path / "reports/m/frontier.csv"
    before = page.read_text()
    assert "mixed" in before
    page.unlink()
    done = command("report", folder=tmp_path)
    assert done.returncode == 0 and page.read_text() == before, done.stderr
    done = command("verify", "--all", folder=tmp_path)
    assert done.returncode == 4 and 'frontier "least" left out: the code of `mixed`' in done.stdout
    done = command("verify", "--all", "--run-code", "own.py", folder=tmp_path)
    assert done.returncode == 0 and "1 cache of theory computed again" in done.stdout, done.stdout


def test_reports_load_the_shipped_algorithms(tmp_path: Path) -> None:
    text = manifest("{ fedavgm = { momentum = [0.5] } }")
    (tmp_path / "m.toml").write_text('python = ["exactfed.algorithms"]\n' + text)
    assert command("run", "m.toml", folder=tmp_path).returncode == 0
    done = command("report", folder=tmp_path)
    assert done.returncode == 0, done.stderr
