"""The exact errors of algorithms of one's own, against many runs of them.

``EXACTFED_RUNS`` is the number of runs of each, 400 by default; 20 000 of all take about fifty
minutes.
"""

from __future__ import annotations

import exactfed as ef
import numpy as np
import own_algorithms as own
import pytest
from exact_runs import MOST, QUADRATIC, RUNS, late_mean, standard_errors

NAMED = {
    **own.OWN,
    **own.COHORTS,
    **own.CHOOSERS,
    **own.DRAWS,
    **own.KEPT_DRAWS,
    **own.MATRICES,
}
RANDOM = {f"random {seed}": own.random_algorithm(seed) for seed in range(100)}


def kind(name: str) -> str:
    return "exact-own-" + "".join(c if c.isalnum() else "-" for c in name.lower())


for _name, _function in {**NAMED, **RANDOM}.items():
    ef.algorithm(_name, kind=kind(_name), source=_name)(_function)


def manifest(names, rounds=9):
    table = {"step-size": 0.15, "local-steps": 4}
    return {
        "title": "Own algorithms",
        "seed": 11,
        "replicates": RUNS,
        "instance": "fixed",
        "problem": {
            "quadratic": QUADRATIC,
        },
        "start": {"offset": 1.0},
        "algorithm": {kind(name): [{**table, "label": name}] for name in names},
        "budget": {"rounds": rounds},
        "record": {"every": 1},
    }


def worst(names, tmp_path):
    """The largest distance of the mean over runs from the exact error, in standard errors."""
    of = manifest(names)
    frame = ef.run(of, out=tmp_path, progress=False).frame()
    found = {}
    for name in names:
        exact = ef.exact(of, label=name)
        assert exact.sq_error is not None, exact.why("sq_error")
        rows = frame.filter(frame["label"] == name).sort("replicate", "round")
        found[name] = standard_errors(rows["sq_error"], exact.sq_error)
    return found


@pytest.mark.engine
@pytest.mark.parametrize("names", [list(NAMED), list(RANDOM)], ids=["named", "random"])
def test_runs_have_the_exact_error(names, tmp_path):
    found = worst(names, tmp_path)
    assert len(found) == len(names) and max(found.values()) < MOST, found
    # They are not all 0: the runs differ from the exact error as they must.
    assert np.mean([z > 0.5 for z in found.values()]) > 0.8


@pytest.mark.engine
@pytest.mark.parametrize("name", sorted(NAMED))
def test_what_comes_to_rest_is_the_limit_of_long_runs(name):
    exact = ef.exact(manifest([name], rounds=3000), label=name)
    assert exact.sq_error is not None, exact.why("sq_error")
    if exact.stationary_sq_error is None:
        assert "do not repeat" in exact.why("stationary_sq_error"), name
        return
    late = late_mean(exact.sq_error)
    # What removes all noise comes to rest at 0.
    np.testing.assert_allclose(exact.stationary_sq_error, late, rtol=1e-8, atol=1e-100)
    assert exact.square_radius is not None and exact.square_radius < 1


def constant(clients, theta, gamma, H):
    while True:
        yield np.full(clients.dim, 0.25)


def shrunk(clients, theta, gamma, H):
    while True:
        theta = clients.mean(clients.local_steps(theta, gamma, H)) * 0.0
        yield theta


def noise_alone(clients, theta, gamma, H):
    while True:
        yield 0.5 * clients.rng.standard_normal(clients.dim)


def memoryless(clients, theta, gamma, H):
    while True:
        yield 0.1 * clients.mean(clients.local_steps(np.zeros(clients.dim), gamma, H))


def one_then_memoryless(clients, theta, gamma, H):
    start = theta
    while True:
        theta = clients.mean(clients.local_steps(start, gamma, H))
        start = np.zeros(clients.dim)
        yield theta


MEMORYLESS = {
    f.__name__: f for f in (constant, shrunk, noise_alone, memoryless, one_then_memoryless)
}

for _name, _function in MEMORYLESS.items():
    ef.algorithm(_name, kind=kind(_name), source=_name)(_function)


@pytest.mark.parametrize("name", sorted(MEMORYLESS))
def test_rounds_that_read_nothing_of_those_before_are_at_rest(name, tmp_path):
    of = manifest([name])
    exact = ef.exact(of)
    frame = ef.run(of, out=tmp_path, progress=False).frame().sort("replicate", "round")
    assert standard_errors(frame["sq_error"], exact.sq_error) < MOST
    assert abs(exact.stationary_sq_error / exact.sq_error[-1] - 1) < 1e-12
    assert exact.square_radius == 0


def alternating(every):
    """Every second round has many steps of a small size."""

    @ef.algorithm("Alternating")
    def alternating(clients, theta, gamma, H):
        number = 0
        while True:
            number += 1
            step, count = (gamma, H) if number % 2 else (gamma / 20, 8 * H)
            theta = clients.mean(clients.local_steps(theta, step, count))
            yield theta

    of = manifest([], rounds=401)
    of["algorithm"] = {"alternating": [{"step-size": 0.15, "local-steps": 20}]}
    of["problem"] = {"quadratic": {**QUADRATIC, "gradient-heterogeneity": 0.3}}
    of["record"] = {"every": every, "averages": ["bias", "covariance"]}
    return of


def test_rest_of_a_period_is_the_mean_of_its_phases():
    exact = ef.exact(alternating(1))
    errors, means, covariances = (
        late[-2:] for late in (exact.sq_error, exact.mean, exact.covariance)
    )
    assert np.ptp(np.log(errors)) > np.log(2), errors
    same = {"rtol": 1e-10, "atol": 1e-13}
    np.testing.assert_allclose(exact.stationary_sq_error, errors.mean(), **same)
    np.testing.assert_allclose(exact.limit, means.mean(axis=0), **same)
    np.testing.assert_allclose(exact.bias, means.mean(axis=0) - exact.optimum, **same)
    between = np.cov(means.T, bias=True)
    np.testing.assert_allclose(
        exact.stationary_covariance, covariances.mean(axis=0) + between, **same
    )
    assert "every 2nd after it" in exact.program


@pytest.mark.engine
@pytest.mark.parametrize("every", [1, 2, 3])
def test_runs_of_a_period_have_the_predicted_rest(every, tmp_path):
    """At all rounds, at those of one phase, and at those of both, which has a last of either."""
    claims = {
        "error": {"prediction": "stationary", "at": "stationary"},
        "end": {"prediction": "stationary", "margin": 0.3},
        "spread": {"metric": "variance", "prediction": "stationary"},
        "mean": {"average": "bias", "prediction": "exact-bias", "margin": 0.2},
    }
    of = alternating(every)
    of["claim"] = {
        "matches": [
            {"id": key, "statement": key, "of": {"label": "Alternating"}, "margin": 0.05, **claim}
            for key, claim in claims.items()
        ]
    }
    found = ef.run(of, out=tmp_path, progress=False).claims()
    assert set(found["verdict"]) == {"supported"}, found


def test_theory_can_be_switched_off():
    @ef.algorithm("Untraced", theory=False)
    def untraced(clients, theta, gamma, H):
        while True:
            theta = clients.mean(clients.local_steps(theta, gamma, H))
            yield theta

    of = manifest(["FedAvg"])
    of["algorithm"] = {"untraced": [{"step-size": 0.1, "local-steps": 2}]}
    exact = ef.exact(of)
    assert exact.sq_error is None and exact.program is None
    assert exact.why("sq_error") == "theory=False switches the exact theory of Untraced off"
