"""What theory knows of a cell, as arrays."""

from pathlib import Path
from typing import Any

import exactfed as ef
import numpy as np
import pytest
from exactfed import _native

LINEAR: dict[str, Any] = {
    "title": "t",
    "seed": 11,
    "replicates": 400,
    "problem": {
        "lms": {
            "dimension": 2,
            "clients": 3,
            "spectrum": {"from": 0.5, "to": 1.5},
            "covariances": "rotated",
            "model-spread": 0.5,
            "noise": 0.2,
        }
    },
    "start": {"offset": 1.0},
    "budget": {"rounds": 40},
    "record": {"every": 10, "metrics": ["sq-error-average"]},
    "algorithm": {
        "fedavg": [{"step-size": 0.05, "local-steps": [1, 5]}],
        "scaffold": [{"step-size": 0.05, "local-steps": 5}],
    },
}


def test_runs_agree_with_it(tmp_path: Path):
    frame = ef.run(LINEAR, out=tmp_path).frame()
    for steps in (1, 5):
        e = ef.exact(LINEAR, label="FedAvg", settings={"local_steps": steps})
        runs = frame.filter((frame["label"] == "FedAvg") & (frame["local_steps"] == steps))
        for name in ("sq_error", "sq_error_average", "sq_error_limit"):
            for t, wanted in zip(e.rounds, getattr(e, name), strict=True):
                sample = runs.filter(runs["round"] == int(t))[name].to_numpy()
                assert len(sample) == 400
                error = sample.std(ddof=1) / np.sqrt(len(sample))
                assert abs(sample.mean() - wanted) <= 4 * error + 1e-9 * wanted, (name, t)


def test_values_are_consistent():
    e = ef.exact(LINEAR, label="Scaffold")
    assert e.rounds.tolist() == [0, 10, 20, 30, 40]
    assert np.array_equal(e.limit, e.optimum) and np.array_equal(e.bias, np.zeros(2))
    spread = e.mean - e.optimum
    squares = (spread**2).sum(axis=1) + np.trace(e.covariance, axis1=1, axis2=2)
    assert np.allclose(squares, e.sq_error, rtol=1e-12, atol=0)
    assert np.allclose(e.shares @ e.client_fields, 0, atol=1e-14)
    assert np.isclose(e.zeta1, np.sqrt((e.client_fields**2).sum(axis=1).mean()))
    assert e.stationary_cross_covariance.shape == (3, 2, 2)
    bound = e.bounds["SCAFFLSA, Theorem 5.3 (B.5)"]
    assert bound.quantity == "lyapunov" and bound.values.shape == (5,)
    holds = ~np.isnan(bound.values)
    assert (bound.values[holds] >= e.lyapunov[holds]).all()
    assert holds[-1] == (not bound.unmet)
    for name in e.known():
        assert isinstance(getattr(e, name), (float, np.ndarray)) and e.why(name) is None
    assert e.identity_bias is None and e.why("identity_bias").startswith("it is known for FedAvg")
    with pytest.raises(AttributeError, match="there is no value 'means'"):
        e.why("means")


def test_every_value_is_documented():
    for name, axes, meaning in _native.theory_kinds():
        shape = f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"
        kind = f"array of shape {shape}" if axes else "float"
        doc = " ".join(ef.Exact.__doc__.replace("``", "`").split())
        assert f" {name} : {kind} or None " in doc
        assert meaning[1:] in doc, name
        assert ef.Exact.__annotations__[name] == f"{'Array' if axes else 'float'} | None"


def test_a_field_that_is_not_linear_has_fewer():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 3))
    y = x[:, 0] + 0.3 * rng.normal(size=60) > 0
    manifest = {
        "title": "t",
        "seed": 1,
        "replicates": 1,
        "problem": {"logistic-dataset": {"l2": 0.1, "dataset": {"file": "mine", "clients": 3}}},
        "start": {"zero": True},
        "budget": {"rounds": 5},
        "algorithm": {"fedavg": [{"step-size": 0.1, "local-steps": 2}]},
    }
    e = ef.exact(manifest, arrays={"mine": {"x": x.astype("f4"), "y": y}})
    assert e.mean is None and e.why("mean").startswith("the field of the problem is not linear: it")
    assert "linear" not in e.why("program") and "your own" in e.why("program")
    assert e.client_optima.shape == (3, 3) and e.first_order_bias.shape == (3,)
    assert repr(e).startswith("Exact('FedAvg', ")


@ef.algorithm("Own", kind="own-of-exact")
def own(clients, theta, gamma, H):
    while True:
        theta = clients.mean(clients.local_steps(theta, gamma, H))
        yield theta


def test_of_an_algorithm_of_ones_own_the_instance_is_known():
    table = {"step-size": 0.05, "local-steps": 5}
    e = ef.exact({**LINEAR, "algorithm": {"own-of-exact": table}})
    built_in = ef.exact(LINEAR, label="Scaffold")
    assert np.array_equal(e.client_optima, built_in.client_optima) and e.zeta1 == built_in.zeta1
    # It is FedAvg.
    known = ef.exact(LINEAR, label="FedAvg", settings={"local-steps": 5})
    assert np.allclose(e.covariance, known.covariance, rtol=1e-12, atol=0)
    assert np.allclose(e.limit, known.limit, rtol=1e-12, atol=0) and not e.bounds
    assert e.program is not None and "H = 5" in e.program and known.program is None
    assert e.why("first_order_bias") == "it is known of built-in algorithms alone"
    assert e.why("program") is None and "your own" in known.why("program")


@ef.algorithm("Signs", kind="signs-of-exact")
def signs(clients, theta, gamma):
    while True:
        theta = theta - gamma * np.sign(clients.mean(clients.local_steps(theta, gamma, 1)))
        yield theta


def test_why_its_rounds_are_no_program():
    e = ef.exact({**LINEAR, "algorithm": {"signs-of-exact": {"step-size": 0.05}}})
    assert e.program is None and e.why("program") == e.why("mean") and "sign" in e.why("program")


def test_cells_of_results(tmp_path: Path):
    entries = {kind: [{"local-steps": 5}] for kind in ("fedavg", "scaffold")}
    tune = {"over": "step-size", "range": [0.001, 0.002], "evaluate": 3}
    results = ef.run({**LINEAR, "replicates": 2, "algorithm": entries, "tune": tune}, out=tmp_path)
    last = results.frame().filter(round=40)
    assert last["step_size"].max() > 0.002, "candidates were added"
    for row in last.unique("cell").iter_rows(named=True):
        e = ef.exact(results, cell=row["cell"])
        assert e.cell == row["cell"] and e.name.startswith(row["label"])
    with pytest.raises(TypeError, match="results have their own"):
        ef.exact(results, cell=last["cell"][0], replicates=3)


@pytest.mark.engine
def test_why_there_is_no_spectral_radius():
    quadratic = {
        "dimension": 5, "clients": 10, "spectrum": {"from": 0.1, "to": 1.0}, "noise": 0.05,
        "gradient-heterogeneity": 1.0, "hessian-heterogeneity": 0.09,
    }  # fmt: skip
    scaffold = {"scaffold": [{"step-size": 0.316, "local-steps": 10}]}
    e = ef.exact({**LINEAR, "seed": 1, "problem": {"quadratic": quadratic}, "algorithm": scaffold})
    assert e.square_radius is None and e.stationary_sq_error is not None
    assert e.why("square_radius") == "the growth of second moments does not settle"


def test_one_cell_is_selected():
    with pytest.raises(ef.ExactfedError, match="several cells are selected") as several:
        ef.exact(LINEAR, label="FedAvg")
    assert str(several.value).count("H = ") == 2
    with pytest.raises(ef.ExactfedError, match="no cell is selected"):
        ef.exact(LINEAR, label="FedProx")
    with pytest.raises(ef.ExactfedError, match="the cell has 1 instance"):
        ef.exact(LINEAR, label="Scaffold", instance=1)
    with pytest.raises(ef.ManifestError, match="unknown key"):
        ef.exact({**LINEAR, "sed": 1})
    scaffold = ef.exact(LINEAR, label="Scaffold")
    assert ef.exact(LINEAR, cell=scaffold.cell[:8]).name == scaffold.name
