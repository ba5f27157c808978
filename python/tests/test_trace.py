"""Tracing of algorithms: the program is what the code does, or a refusal says why not."""

from __future__ import annotations

import json
import time

import exactfed as ef
import numpy as np
import own_algorithms
import pytest
from exactfed import _trace, algorithms
from exactfed._trace import NotTraced
from own_algorithms import COHORTS, DRAWS, OWN

COMMON = {
    "title": "t",
    "seed": 7,
    "replicates": 2,
    "start": {"zero": True},
    "budget": {"rounds": 40},
    "algorithm": {"fedavg": [{"step-size": 0.1, "local-steps": 3}]},
}
SPECTRUM = {"from": 0.5, "to": 1.0}
PROBLEMS = {
    "quadratic": {
        "dimension": 4, "clients": 6, "spectrum": SPECTRUM, "gradient-heterogeneity": 1.0,
        "hessian-heterogeneity": 0.3, "noise": 0.1,
    },
    "lms": {"dimension": 3, "clients": 5, "spectrum": SPECTRUM, "noise": 0.1, "model-spread": 0.5},
}  # fmt: skip


def real_clients(problem="quadratic", run=0, **changes):
    table = {**PROBLEMS[problem], **changes}
    plan = ef.plan({**COMMON, "problem": {problem: table}})
    clients, theta = plan.clients(0, run)
    return clients, theta + np.linspace(1.0, 2.0, len(theta))


def begun(algorithm, gamma=0.1, H=3):
    return lambda clients, theta: algorithm(clients, theta, gamma, H)


def apart(algorithm, problem="quadratic", rounds=8, **changes):
    """The largest difference of the program and the code on the same draws, and the program."""
    (one, theta), (two, _) = real_clients(problem, **changes), real_clients(problem, **changes)
    start = begun(algorithm)
    traced = _trace.trace(start, one.n, one.dim, None, rounds)
    run, worst = start(one, theta.copy()), 0.0
    again = _trace.replay(traced, two, theta)
    for _ in range(rounds):
        found, expected = np.array(next(run)), next(again)
        worst = max(worst, np.max(np.abs(found - expected)) / max(1.0, np.max(np.abs(found))))
    assert valid(traced, rounds)
    return worst, traced


def valid(traced, rounds):
    """Whether the JSON is consistent: atoms are known, levels fit, all rounds are there."""
    program = json.loads(traced.json())
    assert program["cycle"] or len(program["order"]) == rounds
    state = program["rounds"][program["order"][0]]["state"]
    assert state in (["server"], [])
    for index in program["order"] + program["order"][-program["cycle"] :] * bool(program["cycle"]):
        one = program["rounds"][index]
        assert one["state"] == state or not state
        known = len(one["state"])
        for operation in one["operations"]:
            for part in operation.values():
                if isinstance(part, dict):
                    assert all(atom < known for atom, _ in part["terms"])
            known += 1
        assert all(atom < known for of in [one["result"], *one["next"]] for atom, _ in of["terms"])
        state = [None] * len(one["next"])
        if one is not program["rounds"][program["order"][-1]]:
            state = program["rounds"][program["order"][program["order"].index(index) + 1]]["state"]
        else:
            state = one["state"] if program["cycle"] == 1 else state
        if None in state:
            break
        assert len(state) == len(one["next"])
    return True


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", [*OWN, *COHORTS, *DRAWS])
def test_the_program_is_what_the_code_does(name, problem):
    worst, _ = apart({**OWN, **COHORTS, **DRAWS}[name], problem)
    assert worst < 1e-12


def test_random_algorithms_too():
    for seed in range(100):
        worst, _ = apart(own_algorithms.random_algorithm(seed), rounds=5)
        assert worst < 1e-12, seed
