"""Metrics in Python: they are recorded, ranked and part of ids, or fail with a traceback."""

from __future__ import annotations

import exactfed as ef
import numpy as np
import pytest


@ef.metric("test-largest-entry", symbol="max |θ|")
def largest_entry(theta):
    return np.max(np.abs(theta))


@ef.metric("test-client-spread")
def client_spread(theta, ends):
    assert ends.shape == (4, 3)
    return np.mean(np.sum((ends - theta) ** 2, axis=1))


def manifest(metrics, **changes):
    return {
        "title": "t",
        "seed": 1,
        "replicates": 3,
        "problem": {
            "quadratic": {
                "dimension": 3,
                "clients": 4,
                "noise": 0.1,
                "spectrum": {"from": 0.5, "to": 1.0},
                "gradient-heterogeneity": 1.0,
            }
        },
        "start": {"offset": 1.0},
        "budget": {"rounds": 6},
        "record": {"every": 1, "iterates": True, "metrics": metrics},
        "algorithm": {
            "fedavg": [{"step-size": 0.1, "local-steps": 3}],
            "scaffold": [{"step-size": 0.1, "local-steps": 3}],
        },
        **changes,
    }


@pytest.mark.engine
def test_values_are_those_of_the_function_and_rank(tmp_path):
    metrics = ["test-largest-entry", "test-client-spread"]
    of = manifest(metrics, compare={"metric": "test-largest-entry"})
    results = ef.run(of, out=tmp_path, progress=False)
    frame = results.frame()
    theta = np.array(frame["theta"].to_list())
    assert np.array_equal(frame["test_largest_entry"].to_numpy(), np.abs(theta).max(axis=1))
    spread = frame.filter(frame["label"] == "FedAvg").sort("replicate", "round")
    values = spread["test_client_spread"].to_numpy().reshape(3, 7)
    # At round 0 no client has made a step.
    assert np.all(values[:, 0] == 0.0) and np.all(values[:, 1:] > 0.0)
    ranking = results.ranking(all=True)
    final = frame.filter(frame["round"] == 6)
    means = [
        final.filter(final["label"] == label)["test_largest_entry"].mean()
        for label in ("FedAvg", "Scaffold")
    ]
    assert np.allclose(ranking["value"].to_numpy(), sorted(means), rtol=1e-12)
    again = ef.load(tmp_path)
    assert np.array_equal(again.frame()["test_largest_entry"].to_numpy(), np.abs(theta).max(axis=1))


def ids(of):
    return list(ef.plan(of).frame()["cell"])


def test_the_source_is_part_of_the_ids_of_cells_that_record_it():
    factor = 1.0

    def make():
        @ef.metric("test-scaled", source=f"factor = {factor}")
        def scaled(theta):
            return factor * theta[0]

        return scaled

    make()
    before, without = ids(manifest(["test-scaled"])), ids(manifest([]))
    factor = 2.0
    make()
    after = ids(manifest(["test-scaled"]))
    assert set(before).isdisjoint(after) and set(before).isdisjoint(without)
    assert ids(manifest([])) == without


@pytest.mark.engine
def test_what_raises_fails_with_its_traceback(tmp_path):
    @ef.metric("test-raises")
    def raises(theta):
        raise RuntimeError("no such number")

    with pytest.raises(ef.CellError, match=r'in raises\s+raise RuntimeError\("no such number"\)'):
        ef.run(manifest(["test-raises"]), out=tmp_path, progress=False)


@pytest.mark.parametrize(
    ("name", "said"),
    [("sq-error", "is built in"), ("Not a name", "must begin with a lower-case letter")],
)
def test_names_are_checked(name, said):
    with pytest.raises(ef.MetricError, match=said):
        ef.metric(name)(lambda theta: 0.0)


def test_parameters_are_checked():
    with pytest.raises(ef.MetricError, match="has 3 parameters"):
        ef.metric("test-three")(lambda theta, ends, more: 0.0)


def test_unknown_metrics_are_refused():
    with pytest.raises(ef.ManifestError, match="test-nowhere"):
        ef.plan(manifest(["test-nowhere"]))
