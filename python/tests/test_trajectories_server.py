"""Rounds without noise whose server does more than averaging, against their formulas in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import exactfed as ef
import numpy as np
import pytest

RNG = np.random.default_rng(5)
#: Three clients hold 4, 7 and 9 records of ridge regression in three dimensions.
CLIENT = np.repeat([0, 1, 2], [4, 7, 9])
X = RNG.normal(size=(20, 3)) + CLIENT[:, None]
Y = X @ [1.0, -2.0, 0.5] + CLIENT
RECORDS = np.array([4, 7, 9]) / 20
EQUAL = np.full(3, 1 / 3)
STEP, L2, ROUNDS = 0.02, 0.1, 30


def ends(theta: np.ndarray, steps: list[int], proximal: float = 0.0) -> np.ndarray:
    """θ_k after E_k local steps of each client from θ, of shape (3, 3)."""
    found = np.tile(theta, (3, 1))
    for k in range(3):
        x, y = X[k == CLIENT], Y[k == CLIENT]
        for _ in range(steps[k]):
            field = x.T @ (x @ found[k] - y) / len(y) + L2 * found[k]
            found[k] -= STEP * (field + proximal * (found[k] - theta))
    return found


def iterates(keys: dict[str, object], kind: str, weights: str, folder: Path) -> np.ndarray:
    """θ_0, θ_1, … of a run of exactfed without noise."""
    dataset = {"file": "mine", "split": {"column": "client"}, "weights": weights,
               "intercept": False, "standardise": False}  # fmt: skip
    manifest = {
        "title": "t", "seed": 1, "replicates": 1, "oracle": "exact",
        "problem": {"least-squares-dataset": {"l2": L2, "dataset": dataset}},
        "start": {"zero": True}, "budget": {"rounds": ROUNDS},
        "record": {"every": 1, "iterates": True},
        "algorithm": {kind: {"step-size": STEP, **keys}},
    }  # fmt: skip
    arrays = {"mine": {"x": X, "y": Y, "client": CLIENT}}
    rows = ef.run(manifest, out=folder, arrays=arrays, progress=False).frame().sort("round")
    return np.array(rows["theta"].to_list())


SECOND_MOMENTS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "fedadagrad": lambda v, change: v + change**2,
    "fedadam": lambda v, change: 0.95 * v + 0.05 * change**2,
    "fedyogi": lambda v, change: v - 0.05 * change**2 * np.sign(v - change**2),
}


@pytest.mark.parametrize("weights", ["equal", "records"])
@pytest.mark.parametrize("kind", sorted(SECOND_MOMENTS))
def test_adaptive_servers(kind: str, weights: str, tmp_path: Path) -> None:
    shares = RECORDS if weights == "records" else EQUAL
    theta, m, v = np.zeros(3), np.zeros(3), np.full(3, 0.02**2)
    path = [theta]
    for _ in range(ROUNDS):
        change = shares @ ends(theta, [1, 5, 2]) - theta
        m = 0.8 * m + 0.2 * change
        v = SECOND_MOMENTS[kind](v, change)
        theta = theta + 0.1 * m / (np.sqrt(v) + 0.02)
        path.append(theta)
    keys = {"steps-per-client": [1, 5, 2], "server-step": 0.1, "beta1": 0.8, "tau": 0.02}
    if kind != "fedadagrad":
        keys["beta2"] = 0.95
    found = iterates(keys, kind, weights, tmp_path)
    np.testing.assert_allclose(found, path, rtol=0, atol=1e-12)
    assert np.linalg.norm(path[-1]) > 0.3


@pytest.mark.parametrize("weights", ["equal", "records"])
@pytest.mark.parametrize("server_step, proximal", [(1.0, 0.0), (0.6, 0.0), (1.3, 2.0)])
def test_fednova(weights: str, server_step: float, proximal: float, tmp_path: Path) -> None:
    shares, steps = RECORDS if weights == "records" else EQUAL, np.array([1, 5, 2])
    divisors = [np.sum((1 - STEP * proximal) ** np.arange(e)) for e in steps]
    theta, path = np.zeros(3), [np.zeros(3)]
    for _ in range(ROUNDS):
        moved = (ends(theta, list(steps), proximal) - theta) / np.array(divisors)[:, None]
        theta = theta + server_step * (shares @ steps) * (shares @ moved)
        path.append(theta)
    keys = {"steps-per-client": [1, 5, 2], "server-step": server_step, "proximal": proximal}
    found = iterates(keys, "fednova", weights, tmp_path)
    np.testing.assert_allclose(found, path, rtol=0, atol=1e-12)
    assert np.linalg.norm(path[-1]) > 0.3
