"""Maps: squares against runs, algorithms in Python against exact errors, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import exactfed as ef
import exactfed.algorithms as shipped
import numpy as np
import polars as pl
import pytest

assert shipped, "the algorithms are known once their module is imported"

MAP = """
title = "A map"
seed = 3
replicates = 1

[problem.quadratic]
dimension = 2
clients = 2
spectrum = { from = 0.2, to = 1.0 }
gradient-heterogeneity = 0.2
hessian-heterogeneity = 0.1
noise = 0.1

[[phase]]
id = "map"
x = { over = "noise", values = { from = 1e-2, to = 10.0, points = 7 } }
y = { over = "gradient-heterogeneity", values = { from = 1e-2, to = 100.0, points = 9 } }

[[frontier]]
id = "base"
algorithms = [ALGORITHMS]
targets = [0.1]
price-ratios = [20]
step-size = { from = 1e-3, to = 1.5, points = 20 }
local-steps = { up-to = 64 }
"""
ALL = '"minibatch-sgd", "fedavg", "fedavg-server-step", "richardson-romberg", "scaffold"'
RUNS = 300


def algorithm(square: dict[str, Any]) -> dict[str, Any]:
    steps = square["local_steps"]
    kind = "fedavg" if square["algorithm"] == "fedavg-server-step" else square["algorithm"]
    keys: dict[str, Any] = {"step-size": square["step_size"]}
    keys["batch" if kind == "minibatch-sgd" else "local-steps"] = steps
    if square["server_step"] != 1:
        keys["server-step"] = square["server_step"]
    return {kind: [keys]}


def problem(square: dict[str, Any]) -> dict[str, Any]:
    """The quadratic of these numbers, with L = R = 1 and d = N = 2."""
    mu = 1 / square["condition"]
    return {
        "dimension": 2,
        "clients": 2,
        "spectrum": {"from": mu, "to": 1.0},
        "gradient-heterogeneity": square["gradient_heterogeneity"] * mu,
        "hessian-heterogeneity": square["hessian_heterogeneity"] * mu,
        "noise": mu * square["target"] * math.sqrt(square["noise"]),
    }


def errors(square: dict[str, Any], folder: Path) -> tuple[Any, Any]:
    """Means and standard errors of ‖θ_t − θ*‖² over runs from θ* ± each axis, by round."""
    manifest: dict[str, Any] = {
        "title": "t",
        "seed": 3,
        "replicates": RUNS,
        "problem": {"quadratic": problem(square)},
        "budget": {"rounds": square["rounds"]},
        "record": {"every": 1},
        "start": {"zero": True},
        "algorithm": algorithm(square),
    }
    optimum = ef.exact(manifest).optimum
    assert optimum is not None
    axes = np.concatenate([np.eye(2), -np.eye(2)])
    manifest["start"] = {"point": [list(optimum + axis) for axis in axes]}
    frame = ef.run(manifest, out=folder, progress=False).frame()
    by_run = frame.group_by("round", "replicate").agg(pl.col("sq_error").mean())
    by_round = by_run.group_by("round").agg(
        mean=pl.col("sq_error").mean(), error=pl.col("sq_error").std() / math.sqrt(RUNS)
    )
    by_round = by_round.sort("round")
    return by_round["mean"].to_numpy(), by_round["error"].to_numpy()


@pytest.mark.engine
def test_ten_squares_are_what_runs_do(tmp_path: Path) -> None:
    text = MAP.replace("ALGORITHMS", ALL)
    results = ef.run(text, name="map", out=tmp_path / "results", progress=False)
    page = results.report(tmp_path / "reports")
    squares = pl.read_csv(page.parent / "figures" / "map.csv")
    assert squares.height == 63
    assert squares["algorithm"].n_unique() > 2, squares["algorithm"].unique()
    chosen = squares.filter(pl.col("rounds") > 1).sample(10, seed=5).to_dicts()
    for number, square in enumerate(chosen):
        mean, error = errors(square, tmp_path / f"runs-{number}")
        square_of_target = square["target"] ** 2
        last, before = square["rounds"], square["rounds"] - 1
        assert mean[last] <= square_of_target + 4 * error[last], square
        assert mean[before] >= square_of_target - 4 * error[before], square


def map_of(algorithms: str, folder: Path, changed: tuple[str, str] = ("", "")) -> pl.DataFrame:
    """The squares of a small map of these algorithms."""
    text = MAP.replace("ALGORITHMS", algorithms)
    for many, few in ((7, 3), (9, 3), (20, 8)):
        text = text.replace(f"points = {many}", f"points = {few}")
    text = text.replace("up-to = 64", "up-to = 8")
    results = ef.run(text.replace(*changed), name="map", out=folder / "results", progress=False)
    return pl.read_csv(results.report(folder / "reports").parent / "figures" / "map.csv")


@pytest.mark.engine
def test_without_momentum_each_square_is_fedavgs(tmp_path: Path) -> None:
    squares = map_of('"fedavg", { fedavgm = { momentum = [0.0] } }', tmp_path)
    assert squares.height == 9
    assert squares["times_fedavgm"].to_list() == squares["times_fedavg"].to_list()
    assert squares["times_fedavg"].null_count() == 0


@pytest.mark.engine
def test_squares_of_an_algorithm_in_python_are_its_exact_errors(tmp_path: Path) -> None:
    squares = map_of("{ fedavgm = { momentum = [0.5] } }", tmp_path)
    best = squares.filter((pl.col("algorithm") == "fedavgm") & (pl.col("rounds") > 1)).to_dicts()
    assert len(best) > 4, squares
    for square in best:
        manifest: dict[str, Any] = {
            "title": "t",
            "seed": 3,
            "replicates": 1,
            "problem": {"quadratic": problem(square)},
            "budget": {"rounds": square["rounds"]},
            "record": {"every": 1},
            "start": {"zero": True},
            "algorithm": {
                "fedavgm": [
                    {
                        "step-size": square["step_size"],
                        "local-steps": square["local_steps"],
                        "momentum": 0.5,
                    }
                ]
            },
        }
        optimum = ef.exact(manifest).optimum
        assert optimum is not None
        errors = np.zeros(square["rounds"] + 1)
        for axis in np.eye(2):
            for sign in (1.0, -1.0):
                manifest["start"] = {"point": list(optimum + sign * axis)}
                error = ef.exact(manifest).sq_error
                assert error is not None
                errors += error / 4
        assert errors[-1] <= square["target"] ** 2 * (1 + 1e-9), square
        assert errors[-2] >= square["target"] ** 2 * (1 - 1e-9), square


def test_other_numbers_of_clients_are_refused(tmp_path: Path) -> None:
    changed = ("[[frontier]]", "[phase.at]\nclients = 10\n\n[[frontier]]")
    with pytest.raises(ef.ExactfedError, match="the rounds of `fedavgm` are those of 2 clients"):
        map_of("{ fedavgm = { momentum = [0.5] } }", tmp_path, changed)
    assert map_of('"scaffold"', tmp_path, changed).height == 9
