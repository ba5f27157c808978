"""The algorithms that ship: they converge, contain the ones they generalise, and have exact errors.

``EXACTFED_RUNS`` is the number of runs of each, 400 by default.
"""

from __future__ import annotations

import exactfed as ef
import exactfed.algorithms as shipped
import numpy as np
import pytest
from exact_runs import MOST, QUADRATIC, RUNS, late_mean, standard_errors
from exactfed.algorithms._graphs import metropolis, neighbours

GRAPHS = ("ring", "grid", "random", "complete")

#: A label, and the kind with its keys; the exact errors of all of these are known.
LINEAR = {
    "client-momentum": ("client-momentum", {}),
    "delayed": ("delayed", {}),
    "delayed, most 4": ("delayed", {"most": 4}),
    "diana": ("diana", {}),
    "diana, rate 0.2": ("diana", {"rate": 0.2}),
    "ef21, identity": ("ef21", {"compressor": "identity"}),
    "fedac": ("fedac", {"mu": 0.4}),
    "fedac, variant 2": ("fedac", {"mu": 0.4, "variant": 2}),
    "fedavgm": ("fedavgm", {"momentum": 0.6}),
    "feddyn": ("feddyn", {"alpha": 0.8}),
    "fedfista": ("fedfista", {}),
    "fedfista, restart 4": ("fedfista", {"restart": 4}),
    "fednesterov": ("fednesterov", {"momentum": 0.6}),
    **{f"gossip, {graph}": ("gossip", {"graph": graph}) for graph in GRAPHS},
    **{f"gradient-tracking, {graph}": ("gradient-tracking", {"graph": graph}) for graph in GRAPHS},
    "gradient-tracking, calls 3": ("gradient-tracking", {"calls": 3}),
    "masked": ("masked", {}),
    "masked, probability 0.2": ("masked", {"probability": 0.2}),
    "mimelite": ("mimelite", {}),
    "private": ("private", {"scale": 0.3}),
    "scaffold-momentum": ("scaffold-momentum", {"momentum": 0.5}),
    "storm": ("storm", {"weight": 0.3}),
    "storm, calls 3": ("storm", {"calls": 3}),
    "svrg": ("svrg", {}),
    "svrg, every 3": ("svrg", {"every": 3}),
    "svrg-anchor": ("svrg-anchor", {}),
    "svrg-anchor, every 2": ("svrg-anchor", {"every": 2, "calls": 3}),
}
#: The keys of the others, why their trace stops, and the expression where it does.
NONLINEAR = {
    "compressed-scaffnew": ({}, "draws of the algorithm's own", "clients.rng.geometric"),
    "ef21": ({}, "top-k:1 depends on the sizes of coordinates, which is not linear", "track("),
    "fedbuff": ({}, "a part of the clients is not traced", "local_steps(starts, gamma, H)"),
    "fedexp": ({"epsilon": 0.1}, "a power is not linear", "changes**2"),
    "marina": ({}, "depends on a draw", "clients.rng.random() < probability"),
    "topk": ({}, "top-k:1 depends on the sizes of coordinates, which is not linear", "send("),
    "vr-proxskip": (
        {"probability": 0.3, "refresh": 0.2},
        "draws of the algorithm's own",
        "clients.rng.geometric",
    ),
}
#: What each is with which keys: a built-in algorithm.
SAME = {
    "client-momentum": ({"momentum": 0.0}, "fedavg"),
    "delayed": ({"most": 0}, "fedavg"),
    "ef21": ({"compressor": "identity"}, "fedavg"),
    "fedbuff": ({"buffer": 6}, "fedavg"),
    "fedfista": ({"restart": 1}, "fedavg"),
    "fednesterov": ({"momentum": 0.0}, "fedavg"),
    "gossip": ({"graph": "complete"}, "fedavg"),
    "masked": ({"probability": 1.0}, "fedavg"),
    "mimelite": ({"momentum": 0.0}, "fedavg"),
    "private": ({"scale": 0.0}, "fedavg"),
    "svrg-anchor": ({"every": 1, "calls": 4}, "fedlin"),
    "topk": ({"keep": 3}, "fedavg"),
}
#: Those without exact errors, and those that have a single local step.
WITHOUT_THEORY = ("fedbuff", "topk")
SINGLE_STEPS = (
    "compressed-scaffnew",
    "diana",
    "gradient-tracking",
    "marina",
    "storm",
    "vr-proxskip",
)
#: Those whose draws are in another order than the built-in algorithm's.
OTHER_DRAWS = ("mimelite", "svrg-anchor")


def manifest(entries, rounds=9, replicates=2, step_size=0.15, local_steps=4, **problem):
    """Entries are pairs of a kind and its keys, by label."""
    of = {
        "title": "Algorithms that ship",
        "seed": 11,
        "replicates": replicates,
        "instance": "fixed",
        "problem": {
            "quadratic": {**QUADRATIC, **problem},
        },
        "start": {"offset": 1.0},
        "algorithm": {},
        "budget": {"rounds": rounds},
        "record": {"every": 1},
    }
    for label, (kind, keys) in entries.items():
        table = {"step-size": step_size, "label": label, **keys}
        if kind not in SINGLE_STEPS:
            table.setdefault("local-steps", local_steps)
        of["algorithm"].setdefault(kind, []).append(table)
    return of


def by_label(results):
    """The rows of each label, by replicate and round."""
    rows = results.frame().sort("replicate", "round")
    return {label: part for (label,), part in rows.group_by("label")}


def test_all_that_ship_are_tested():
    kinds = {getattr(shipped, name).kind for name in shipped.__all__}
    linear = {kind for kind, _ in LINEAR.values()}
    assert kinds == linear | set(NONLINEAR)


def test_each_runs_and_converges(tmp_path):
    """With little noise, the error falls far below that of the start."""
    entries = {**LINEAR, **{kind: (kind, keys) for kind, (keys, _, _) in NONLINEAR.items()}}
    entries["private"] = ("private", {})
    settings = {"noise": 0.01, "multiplicative-noise": 0.0, "gradient-heterogeneity": 0.5}
    of = manifest(entries, rounds=150, step_size=0.1, **settings)
    found = by_label(ef.run(of, out=tmp_path, progress=False))
    assert set(found) == set(entries)
    for label, rows in found.items():
        errors = rows.filter(replicate=0)["sq_error"].to_numpy()
        assert errors[0] > 1 and errors[-1] < 0.01 * errors[0], (label, errors[-1])
    # What corrects for the heterogeneity of the clients has a smaller error than FedAvg.
    last = {label: rows["sq_error"][-1] for label, rows in found.items()}
    corrected = ("gradient-tracking, ring", "svrg", "svrg-anchor", "scaffold-momentum")
    for label in (*corrected, "vr-proxskip"):
        assert last[label] < 0.1 * last["gossip, complete"], label


@pytest.mark.parametrize("name", sorted(SAME))
def test_it_contains_what_it_generalises(name, tmp_path):
    keys, other = SAME[name]
    of = manifest({name: (name, keys), other: (other, {})}, dimension=3)
    if name not in WITHOUT_THEORY:
        mine, theirs = (ef.exact(of, label=label) for label in (name, other))
        np.testing.assert_allclose(mine.sq_error, theirs.sq_error, rtol=1e-12)
        np.testing.assert_allclose(mine.mean, theirs.mean, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(mine.bias, theirs.bias, rtol=1e-9, atol=1e-12)
    if name in OTHER_DRAWS:
        of["oracle"] = "exact"
    found = by_label(ef.run(of, out=tmp_path, progress=False))
    errors = [found[label]["sq_error"].to_numpy() for label in (name, other)]
    np.testing.assert_allclose(*errors, rtol=1e-12)


def test_what_has_one_local_step_is_fedavg_without_graph_and_compression(tmp_path):
    entries = {
        "tracking": ("gradient-tracking", {"graph": "complete"}),
        "diana": ("diana", {"compressor": "identity"}),
        "marina": ("marina", {"compressor": "rand-k:1", "probability": 1.0}),
        "fedavg": ("fedavg", {"local-steps": 1}),
    }
    found = by_label(ef.run(manifest(entries), out=tmp_path, progress=False))
    for label in entries:
        errors = [found[one]["sq_error"].to_numpy() for one in (label, "fedavg")]
        np.testing.assert_allclose(*errors, rtol=1e-11)


@pytest.mark.parametrize(
    "kind, keys", [("storm", {"weight": 1.0}), ("vr-proxskip", {"probability": 1, "refresh": 1})]
)
def test_single_steps_without_reduction_are_fedavg_with_one_local_step(kind, keys, tmp_path):
    """With a coin that always ends the round and moves the anchor, if there is no noise."""
    entries = {"reduced": (kind, keys), "fedavg": ("fedavg", {"local-steps": 1})}
    of = manifest(entries)
    if kind == "vr-proxskip":
        of["oracle"] = "exact"
    else:
        mine, theirs = (ef.exact(of, label=label) for label in entries)
        np.testing.assert_allclose(mine.sq_error, theirs.sq_error, rtol=1e-12)
    found = by_label(ef.run(of, out=tmp_path, progress=False))
    errors = [found[label]["sq_error"].to_numpy() for label in entries]
    np.testing.assert_allclose(*errors, rtol=1e-12)


@pytest.mark.engine
def test_runs_have_the_exact_error(tmp_path):
    of = manifest(LINEAR, replicates=RUNS)
    found = by_label(ef.run(of, out=tmp_path, progress=False))
    distances = {}
    for label in LINEAR:
        exact = ef.exact(of, label=label)
        assert exact.sq_error is not None, exact.why("sq_error")
        distances[label] = standard_errors(found[label]["sq_error"], exact.sq_error)
    assert len(distances) == len(LINEAR) and max(distances.values()) < MOST, distances
    # They are not all 0: the runs differ from the exact error as they must.
    assert np.mean([z > 0.5 for z in distances.values()]) > 0.8


@pytest.mark.engine
@pytest.mark.parametrize("label", sorted(LINEAR))
def test_what_comes_to_rest_is_the_limit_of_long_runs(label):
    exact = ef.exact(manifest({label: LINEAR[label]}, rounds=1200), label=label)
    if label == "fedfista":
        assert "do not repeat" in exact.why("stationary_sq_error")
        return
    assert exact.stationary_sq_error is not None, exact.why("stationary_sq_error")
    assert exact.square_radius < 1
    late = late_mean(exact.sq_error)
    # What removes all noise comes to rest at 0.
    np.testing.assert_allclose(exact.stationary_sq_error, late, rtol=1e-8, atol=1e-200)


@pytest.mark.parametrize("name", sorted(NONLINEAR))
def test_what_is_not_linear_says_where(name):
    keys, why, expression = NONLINEAR[name]
    exact = ef.exact(manifest({name: (name, keys)}), label=name)
    reason = exact.why("sq_error")
    assert exact.sq_error is None and exact.program is None
    assert "there is no exact theory of" in reason and why in reason and expression in reason, (
        reason
    )


def test_what_a_round_sends(tmp_path):
    """Vectors and bytes of rounds 1 and 2, of 6 clients in 2 dimensions."""
    expected = {
        "client-momentum": ([12, 12], [192, 192], [1, 1]),
        "compressed-scaffnew": ([12, 12], [128, 128], [1, 1]),
        "diana": ([12, 12], [144, 144], [1, 1]),
        "ef21": ([12, 12], [168, 168], [1, 1]),
        "fedac": ([24, 24], [384, 384], [1, 1]),
        "fedbuff": ([4, 4], [64, 64], [1, 1]),
        "gossip, ring": ([12, 12], [192, 192], [1, 1]),
        "gossip, grid": ([14, 14], [224, 224], [1, 1]),
        "gossip, complete": ([30, 30], [480, 480], [1, 1]),
        "gradient-tracking, ring": ([24, 24], [384, 384], [1, 1]),
        "masked": ([12, 12], [144, 144], [1, 1]),
        "mimelite": ([24, 24], [384, 384], [1, 1]),
        "svrg, every 3": ([24, 12], [384, 192], [2, 1]),
        "svrg-anchor": ([24, 12], [384, 192], [2, 1]),
        "topk": ([12, 12], [168, 168], [1, 1]),
    }
    entries = {label: LINEAR.get(label, (label, {})) for label in expected}
    found = by_label(ef.run(manifest(entries, rounds=2), out=tmp_path, progress=False))
    for label, costs in expected.items():
        rows = found[label].filter(replicate=0)
        columns = [rows[c] for c in ("vectors_sent", "bytes_sent", "communications")]
        assert tuple(c.diff()[1:].to_list() for c in columns) == costs, label


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 9, 12])
def test_mixing_keeps_the_mean_and_leads_to_agreement(graph, n):
    shares = np.random.default_rng(n).dirichlet(np.full(n, 3.0))
    for pi in (np.full(n, 1 / n), shares):
        joined = neighbours(graph, n, 0.2, 5)
        mixing = metropolis(joined, pi)
        assert not joined.diagonal().any() and np.array_equal(joined, joined.T)
        assert np.all(mixing >= 0) and np.all(mixing[~joined & ~np.eye(n, dtype=bool)] == 0)
        np.testing.assert_allclose(mixing.sum(axis=1), 1)
        np.testing.assert_allclose(pi @ mixing, pi)
        assert np.sum(np.abs(np.linalg.eigvals(mixing)) > 1 - 1e-9) == 1
    assert np.allclose(metropolis(neighbours("complete", n, 0, 0), np.full(n, 1 / n)), 1 / n)


def test_graphs():
    assert [int(neighbours(g, 12, 0.0, 3).sum()) // 2 for g in GRAPHS] == [12, 17, 12, 66]
    grid = neighbours("grid", 7, 0.0, 0)  # Rows of 0 1 2, 3 4 5 and 6.
    pairs = [(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (3, 6), (4, 5)]
    assert [tuple(pair) for pair in np.argwhere(np.triu(grid)).tolist()] == pairs
    seeds = [neighbours("random", 12, 0.3, seed) for seed in (1, 1, 2)]
    assert np.array_equal(seeds[0], seeds[1]) and not np.array_equal(seeds[0], seeds[2])
    assert neighbours("random", 12, 1.0, 1).sum() == 132
    with pytest.raises(ValueError, match='not "star"'):
        neighbours("star", 4, 0.3, 1)
