"""Draws of the clients that are kept: what they are, and the algorithms that are made of them."""

from __future__ import annotations

import exactfed as ef
import exactfed.algorithms
import numpy as np
import pytest

RECORDS = 12


def arrays():
    """Ridge regression of three clients with 3, 4 and 5 records."""
    rng = np.random.default_rng(4)
    client = np.repeat([0, 1, 2], [3, 4, 5])
    x = rng.normal(size=(RECORDS, 2))
    y = x @ [1.0, -2.0] + 0.7 * client + rng.normal(size=RECORDS)
    return {"x": x, "y": y, "client": client}


FILES = {"records": arrays()}


def manifest(algorithm=None, *, rounds=6, replicates=1, problem=None, **settings):
    dataset = {"file": "records", "split": {"column": "client"}, "intercept": False}
    ridge = {"l2": 0.3, "dataset": {**dataset, "standardise": False}, **settings}
    return {
        "title": "Draws",
        "seed": 3,
        "replicates": replicates,
        "problem": problem or {"least-squares-dataset": ridge},
        "start": {"offset": 1.0},
        "budget": {"rounds": rounds},
        "record": {"every": 1},
        "algorithm": algorithm or {"fedavg": {"step-size": 0.1, "local-steps": 2}},
    }


QUADRATIC = {
    "quadratic": {
        "dimension": 3, "clients": 4, "noise": 0.3, "multiplicative-noise": 0.2,
        "gradient-heterogeneity": 1.0, "spectrum": {"from": 0.5, "to": 1.0},
    }
}  # fmt: skip
MARKOV = {
    "garnet": {
        "states": 10, "actions": 2, "branching": 3, "features": 3, "discount": 0.9, "clients": 4,
        "heterogeneity": "independent", "noise": {"markov": {"burn-in": 10}},
    }
}  # fmt: skip


def clients_of(problem=None, run=0, **settings):
    files = None if problem else FILES
    plan = ef.plan(manifest(problem=problem, **settings), arrays=files)
    return plan.clients(0, run)


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"batch": 2}, {"sampling": "reshuffled"}, {"sampling": "reshuffled", "batch": 2},
        {"problem": QUADRATIC}, {"problem": MARKOV},
    ],
)  # fmt: skip
def test_fields_of_a_draw_are_fields(settings):
    (one, theta), (two, _) = clients_of(**settings), clients_of(**settings)
    other = theta + np.arange(one.n)[:, None]
    kept = []
    for calls in (1, 3, 1, 8):
        wanted = one.fields(theta, calls)
        draw = two.draw(calls)
        assert draw.calls == calls and draw.members.tolist() == list(range(one.n))
        two.fields(other, draw)
        assert np.array_equal(two.fields(theta, draw), wanted)
        kept.append((draw, wanted))
        two._end_round()
    # They can be kept over rounds, and both clients go on with the same draws.
    for draw, wanted in kept:
        assert np.array_equal(two.fields(theta, draw), wanted)
    assert np.array_equal(two.local_steps(theta, 0.1, 5), one.local_steps(theta, 0.1, 5))


@pytest.mark.parametrize("batch", [1, 2])
def test_indices_are_the_records_of_the_gradient(batch):
    clients, theta = clients_of(batch=batch)
    data = arrays()
    assert clients.records.tolist() == [3, 4, 5]
    draw = clients.draw(3)
    assert draw.indices.shape == (3, 3 * batch)
    found = clients.fields(theta, draw)
    for k in range(3):
        own = np.flatnonzero(data["client"] == k)[draw.indices[k]]
        x, y = data["x"][own], data["y"][own]
        gradient = x.T @ (x @ theta - y) / len(own) + 0.3 * theta
        np.testing.assert_allclose(found[k], gradient, rtol=1e-12)
    full = clients.mean_fields(theta)
    for k in range(3):
        x, y = (data[name][data["client"] == k] for name in ("x", "y"))
        gradient = x.T @ (x @ theta - y) / len(y) + 0.3 * theta
        np.testing.assert_allclose(full[k], gradient, rtol=1e-12)


def test_passes_have_every_record_once_and_short_batches_have_gaps():
    clients, _ = clients_of(sampling="reshuffled", batch=2)
    indices = clients.draw(6).indices
    assert sorted(indices[1, :4]) == sorted(indices[1, 4:8]) == [0, 1, 2, 3]
    # Client 0 has three records, so that each second batch has one.
    assert indices[0].tolist()[3::4] == [-1] * 3 and np.sum(indices[0] == -1) == 3
    assert sorted(indices[0, [0, 1, 2]]) == [0, 1, 2]
    for settings in ({"problem": QUADRATIC}, {"problem": MARKOV}):
        clients, _ = clients_of(**settings)
        assert clients.draw().indices is None and clients.records is None


def test_a_draw_is_of_those_who_take_part():
    clients, theta = clients_of()
    everybody = clients.draw()
    (member,) = clients.cohort(1)
    draw = clients.draw()
    rows = draw.indices
    assert draw.members.tolist() == [member]
    assert (rows[np.arange(3) != member] == -1).all() and rows[member, 0] >= 0
    assert np.count_nonzero(clients.fields(theta, everybody).any(axis=1)) == 1
    assert np.count_nonzero(clients.fields(theta, draw).any(axis=1)) == 1
    clients._end_round()
    with pytest.raises(ValueError, match="takes part in this round and did not when the draw"):
        clients.fields(theta, draw)
    other, _ = clients_of()
    with pytest.raises(ValueError, match="of another run"):
        other.fields(theta, draw)
    with pytest.raises(ValueError, match="calls must be a whole number"):
        clients.draw(0)
    with pytest.raises(TypeError):
        clients.fields(theta, "a draw")


def test_evaluations_are_gradients_and_mean_fields_count_their_records(tmp_path):
    @ef.algorithm("Counted", kind="counted-draws", source="counted")
    def counted(clients, theta, gamma):
        while True:
            draw = clients.draw(2)
            rows = clients.fields(theta, draw) - clients.fields(0 * theta, draw)
            theta = theta - gamma * clients.mean(rows + clients.mean_fields(0 * theta))
            yield theta

    of = manifest({"counted-draws": {"step-size": 0.1}}, rounds=2)
    frame = ef.run(of, out=tmp_path, arrays=FILES, progress=False).frame()
    assert frame["oracle_calls"].to_list() == [0, 24, 48]  # 3 clients · 4 gradients + 12 records
    assert frame["sequential_calls"].to_list() == [0, 9, 18]  # 4 + the 5 records of client 2


def test_losses_are_those_of_the_records_and_count_them(tmp_path):
    clients, theta = clients_of()
    data = arrays()
    found = clients.losses(theta)
    for k in range(3):
        x, y = (data[name][data["client"] == k] for name in ("x", "y"))
        np.testing.assert_allclose(found[k], np.mean((x @ theta - y) ** 2) / 2, rtol=1e-12)
    clients.participate([0, 2])
    assert np.isnan(clients.losses(theta)[1]) and not np.isnan(clients.losses(theta)[[0, 2]]).any()
    with pytest.raises(ValueError, match="theta has the shape"):
        clients.losses(theta[:-1])
    quadratics, start = clients_of(problem=QUADRATIC)
    with pytest.raises(ValueError, match="have no losses"):
        quadratics.losses(start)

    @ef.algorithm("Power of choice", kind="power-of-choice", source="choice")
    def power_of_choice(clients, theta, gamma, H):
        while True:
            losses = clients.losses(theta)
            clients.participate(np.argsort(losses)[-2:])
            theta = theta + clients.mean(clients.local_steps(theta, gamma, H) - theta)
            yield theta

    keys = {"power-of-choice": {"step-size": 0.1, "local-steps": 2}}
    results = ef.run(manifest(keys, rounds=2), out=tmp_path, arrays=FILES, progress=False)
    frame = results.frame()
    # 12 records for the losses, and 2 gradients of each of the two clients.
    assert frame["oracle_calls"].to_list() == [0, 16, 32]


def test_variance_reduction_reaches_the_optimum(tmp_path):
    """With gradients of single records, steps of a constant size leave noise, and these do not."""

    @ef.algorithm("SAGA", kind="saga-of-the-test", source="saga")
    def saga(clients, theta, gamma):
        n = np.arange(clients.n)
        table = np.zeros((clients.n, clients.records.max(), clients.dim))
        mean = np.zeros((clients.n, clients.dim))
        while True:
            draw = clients.draw()
            record = draw.indices[:, 0]
            new = clients.fields(theta, draw)
            change = new - table[n, record]
            theta = theta - gamma * clients.mean(change + mean)
            mean = mean + change / clients.records[:, None]
            table[n, record] = new
            yield theta

    of = manifest(
        {
            "svrg": {"step-size": 0.05, "local-steps": 1},
            "vr-proxskip": {"step-size": 0.05, "probability": 0.3, "refresh": 0.2},
            "saga-of-the-test": {"step-size": 0.05},
            "storm": {"step-size": 0.05, "weight": 0.0},
            "fedavg": {"step-size": 0.05, "local-steps": 1},
        },
        rounds=1500,
    )
    of["record"] = {"every": 1500}
    frame = ef.run(of, out=tmp_path, arrays=FILES, progress=False).frame()
    last = {label: part["sq_error"][-1] for (label,), part in frame.group_by("label")}
    assert last["FedAvg"] > 1e-3, last
    for label in ("SVRG", "ProxSkip-LSVRG", "SAGA"):
        assert last[label] < 1e-20, last


def test_own_rounds_on_passes_are_those_of_the_engine(tmp_path):
    @ef.algorithm("Own FedAvg", kind="own-fedavg-on-passes", source="own")
    def own(clients, theta, gamma, H):
        while True:
            theta = clients.mean(clients.local_steps(theta, gamma, H))
            yield theta

    @ef.algorithm("Own gradients", kind="own-gradients-on-passes", source="gradients")
    def gradients(clients, theta, gamma, H):
        while True:
            points = np.tile(theta, (clients.n, 1))
            for _ in range(H):
                points = points - gamma * clients.fields(points, clients.draw())
            theta = clients.mean(points)
            yield theta

    table = {"step-size": 0.1, "local-steps": 3}
    kinds = ("fedavg", "own-fedavg-on-passes", "own-gradients-on-passes")
    for batch in (1, 2):
        of = manifest(dict.fromkeys(kinds, table), sampling="reshuffled", batch=batch)
        frame = ef.run(of, out=tmp_path / str(batch), arrays=FILES, progress=False).frame()
        errors = {label: part["sq_error"].to_list() for (label,), part in frame.group_by("label")}
        assert errors["FedAvg"] == errors["Own FedAvg"]
        np.testing.assert_allclose(errors["FedAvg"], errors["Own gradients"], rtol=1e-12)
        with_replacement = ef.run(
            manifest({"fedavg": table}, batch=batch),
            out=tmp_path / f"{batch}-with", arrays=FILES, progress=False,
        ).frame()  # fmt: skip
        assert with_replacement["sq_error"].to_list() != errors["FedAvg"]


def standard_errors(frame, label, exact):
    """The largest distance over rounds of the mean of 400 runs from the exact error."""
    rows = frame.filter(frame["label"] == label).sort("replicate", "round")
    runs = rows["sq_error"].to_numpy().reshape(400, -1)
    apart = np.abs(runs.mean(axis=0) - exact.sq_error)
    # Rounds without noise have rounding errors alone.
    error = runs.std(axis=0, ddof=1) / 20
    return np.max(np.where(apart <= 1e-9 * exact.sq_error, 0, apart / (error + 1e-300)))


@pytest.mark.parametrize("batch", [1, 2])
def test_exact_errors_of_shared_draws_on_records(batch, tmp_path):
    entries = {
        "svrg": {"step-size": 0.1, "local-steps": 3},
        "storm": [
            {"step-size": 0.2, "weight": 0.3, "label": "STORM"},
            {"step-size": 0.2, "weight": 0.0, "calls": 2, "label": "SARAH"},
        ],
    }
    of = manifest(entries, replicates=400, batch=batch)
    frame = ef.run(of, out=tmp_path, arrays=FILES, progress=False).frame()
    for label in ("SVRG", "STORM", "SARAH"):
        exact = ef.exact(of, label=label, arrays=FILES)
        assert exact.sq_error is not None, exact.why("sq_error")
        assert standard_errors(frame, label, exact) < 4.5, label


def test_exact_errors_of_whole_passes_and_a_reason_without(tmp_path):
    @ef.algorithm("Momentum over passes", kind="momentum-over-passes", source="passes")
    def passes(clients, theta, gamma):
        velocity = 0.0
        while True:
            ends = clients.local_steps(theta, gamma, clients.records)
            velocity = 0.5 * velocity + clients.mean(ends) - theta
            theta = theta + velocity
            yield theta

    entries = {
        "momentum-over-passes": {"step-size": 0.1},
        "fedavg": [
            {"step-size": 0.1, "local-epochs": 1.0, "label": "whole"},
            {"step-size": 0.1, "local-steps": 2, "label": "parts"},
        ],
        "svrg": {"step-size": 0.1, "local-steps": 2},
    }
    of = manifest(entries, replicates=400, sampling="reshuffled")
    frame = ef.run(of, out=tmp_path, arrays=FILES, progress=False).frame()
    for label in ("Momentum over passes", "whole"):
        exact = ef.exact(of, label=label, arrays=FILES)
        assert exact.sq_error is not None, exact.why("sq_error")
        assert standard_errors(frame, label, exact) < 4.5, label
    for label in ("parts", "SVRG"):
        exact = ef.exact(of, label=label, arrays=FILES)
        assert "whole passes" in exact.why("sq_error"), exact.why("sq_error")
