"""Tracing of algorithms: the program is what the code does, or a refusal says why not."""

from __future__ import annotations

import json
import re
import sys
from types import SimpleNamespace

import exactfed as ef
import numpy as np
import own_algorithms
import pytest
from exactfed import _trace, algorithms
from exactfed._trace import NotTraced
from own_algorithms import CHOOSERS, COHORTS, DRAWS, KEPT_DRAWS, MATRICES, OWN

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
@pytest.mark.parametrize("name", [*OWN, *COHORTS, *CHOOSERS, *DRAWS, *KEPT_DRAWS])
def test_the_program_is_what_the_code_does(name, problem):
    all_named = {**OWN, **COHORTS, **CHOOSERS, **DRAWS, **KEPT_DRAWS}
    worst, _ = apart(all_named[name], problem)
    assert worst < 1e-12


def test_random_algorithms_too():
    for seed in range(100):
        worst, _ = apart(own_algorithms.random_algorithm(seed), rounds=5)
        assert worst < 1e-12, seed


def steps(clients, theta, gamma, H):
    return clients.local_steps(theta, gamma, H)


def step(clients, theta, gamma, H):
    return clients.mean(clients.local_steps(theta, gamma, H))


def argument_in_place(c, t, g, H):
    other = t
    while True:
        t -= 0.5 * (t - step(c, t, g, H))
        yield 0.5 * t + 0.5 * other


def older_name_of_a_buffer(c, t, g, H):
    ends, old = None, np.zeros((c.n, c.dim)) + 0 * t
    while True:
        ends = c.local_steps(t, g, H, out=ends)
        t = c.mean(ends) + 0.1 * c.mean(old)
        old = ends
        yield t


def out_of_ufuncs(c, t, g, H):
    total = np.zeros(c.dim)
    while True:
        np.multiply(total, 0.5, out=total)
        total = np.add(total, step(c, t, g, H) - t, out=total)
        t = t + 0.3 * total
        yield t


def one_row_in_place(c, t, g, H):
    while True:
        ends = steps(c, t, g, H)
        ends[2] -= t
        ends[2] *= 0.5
        ends[2] = ends[2] + t
        t = c.mean(ends)
        yield t


def loop_over_clients(c, t, g, H):
    while True:
        ends, total = steps(c, t, g, H), 0
        for k in range(c.n):
            total = total + c.shares[k] * ends[k]
        t = total
        yield t


def sum_of_rows(c, t, g, H):
    while True:
        t = sum(steps(c, t, g, H)) / c.n
        yield t


def closures_and_namespaces(c, t, g, H):
    kept = {"v": SimpleNamespace(x=0.0)}

    def move(change):
        kept["v"].x = 0.6 * kept["v"].x + change
        return kept["v"].x

    while True:
        t = t + move(step(c, t, g, H) - t)
        yield t


def sums_of_many_names(c, t, g, H):
    w = np.linspace(1, 2, c.n)
    w /= w.sum()
    while True:
        a = np.einsum("k,ki->i", w, steps(c, t, g, H))
        b = np.average(steps(c, t, g, H), axis=0, weights=w)
        t = 0.5 * a + 0.25 * b + 0.25 * np.tensordot(w, steps(c, t, g, H), 1)
        yield t


def rolled(c, t, g, H):
    rows = np.tile(t, (c.n, 1))
    while True:
        rows = 0.5 * rows + 0.5 * np.roll(c.local_steps(rows, g, H), 1, axis=0)
        t = rows.mean(axis=0)
        yield t


def permuted(c, t, g, H):
    rows = np.broadcast_to(t, (c.n, c.dim)).copy()
    while True:
        rows = c.local_steps(rows, g, H)[[1, 2, 3, 4, 5, 0]]
        yield np.mean(rows, axis=0)


def zeros_like(c, t, g, H):
    z = np.zeros_like(t)
    z[:] = t
    while True:
        z[...] = step(c, z, g, H)
        yield z


def growing_list(c, t, g, H):
    past = [t]
    while True:
        past.append(step(c, past[-1], g, H))
        yield sum(past) / len(past)


def buffer(c, t, g, H):
    kept = np.zeros(c.dim)
    while True:
        kept[:] = step(c, t, g, H) - t
        t = t + kept
        yield t


def swallowed(c, t, g, H):
    while True:
        t = step(c, t, g, H)
        # What is refused must not be lost in a handler of the algorithm.
        try:  # noqa: SIM105
            t = t / np.linalg.norm(t)
        except Exception:
            pass
        yield t


def asarray(c, t, g, H):
    while True:
        t = np.asarray(step(c, t, g, H))
        yield t


def finite(c, t, g, H):
    while True:
        t = step(c, t, g, H)
        yield t if np.isfinite(t).all() else 0 * t


def concatenated(c, t, g, H):
    both = np.concatenate([t, t])
    while True:
        t = step(c, t, g, H)
        yield t + 0 * both[: c.dim]


def alias_of_zeros(c, t, g, H):
    x = np.zeros(c.dim)
    y = x
    while True:
        x += step(c, t, g, H) - t
        t = t + 0.5 * y
        yield t


def fewer_steps(c, t, g, H):
    number = 0
    while True:
        number += 1
        t = step(c, t, g, max(1, H // number))
        yield t


def changes_what_it_yielded(c, t, g, H):
    while True:
        t = step(c, t, g, H)
        yield t
        t *= 0.9


def row_view_written(c, t, g, H):
    while True:
        ends = steps(c, t, g, H)
        row = ends[-1]
        row += 1.0
        ends *= 0.5
        t = c.mean(ends) + 0.1 * row
        yield t


def row_view_kept(c, t, g, H):
    ends = None
    row = 0.0
    while True:
        old = row
        ends = c.local_steps(t, g, H, out=ends)
        row = ends[1]
        t = c.mean(ends) + 0.1 * row - 0.1 * old
        yield t


def broadcast_view(c, t, g, H):
    rows = np.broadcast_to(t, (c.n, c.dim))
    while True:
        t += 0.5 * (c.mean(c.local_steps(rows, g, H)) - t)
        yield 1.0 * t


def newaxis_view(c, t, g, H):
    wide = t[None, :]
    while True:
        t += 0.5 * (step(c, t, g, H) - t)
        yield 0.5 * t + 0.5 * wide[0]


def stacked(c, t, g, H):
    while True:
        ends = steps(c, t, g, H)
        t = np.stack([0.5 * row + 0.5 * t for row in ends]).mean(axis=0)
        yield t


def copied_to(c, t, g, H):
    kept = np.zeros_like(t)
    while True:
        np.copyto(kept, step(c, t, g, H))
        t = t + 0.5 * (kept - t)
        yield t


def chosen_by_a_constant(c, t, g, H):
    chosen = np.arange(c.n)[:, None] % 2 == 0
    while True:
        t = c.mean(np.where(chosen, steps(c, t, g, H), t))
        yield t


def schedule_in_a_for(c, t, g, H):
    """The iterator of the loop has no name, and equal values come in unequal order."""
    for factor in [1.0, 1.0, 1.0, 0.5] * 50:
        t = step(c, t, g * factor, H)
        yield t


def iterator_of_its_own(c, t, g, H):
    """A method of what is not seen otherwise."""
    following = iter([1.0, 1.0, 1.0, 0.5] * 50).__next__
    left = [0.5, 1.0, 1.0, 1.0] * 50
    take = left.pop
    del left
    while True:
        t = step(c, t, g * following() * take(), H)
        yield t


def copied_to_zeros(c, t, g, H):
    kept = np.zeros(c.dim)
    while True:
        np.copyto(kept, step(c, t, g, H))
        t = 1.0 * kept
        yield t


def single_precision(c, t, g, H):
    kept = np.zeros(c.dim, dtype=np.float32)
    while True:
        kept += step(c, t, g, H) - t
        t = t + kept
        yield t


def rounded(c, t, g, H):
    while True:
        t = step(c, t, g, H).astype(np.float32)
        yield t


def whole_numbers(c, t, g, H):
    kept = np.zeros(c.dim, dtype=int)
    while True:
        kept += step(c, t, g, H)
        yield t


def default_argument(c, t, g, H, kept=np.zeros(4)):  # noqa: B008
    while True:
        kept += step(c, t, g, H) - t
        t = t + 0.1 * kept
        yield t


CALLS = {"number": 0}


def state_of_the_module(c, t, g, H):
    while True:
        CALLS["number"] += 1
        t = t + (step(c, t, g, H) - t) / CALLS["number"]
        yield t


def unseeded(c, t, g, H):
    while True:
        t = step(c, t, g, H) + 0.1 * np.random.normal(size=c.dim)
        yield t


def mean_square(c, t, g, H):
    while True:
        change = step(c, t, g, H) - t
        t = t + change / (1 + change @ change)
        yield t


def clipped(c, t, g, H):
    while True:
        change = steps(c, t, g, H) - t
        norms = np.linalg.norm(change, axis=1, keepdims=True)
        t = t + c.mean(change * np.minimum(1, 1 / norms))
        yield t


def median(c, t, g, H):
    while True:
        t = np.median(steps(c, t, g, H), axis=0)
        yield t


def compares(c, t, g, H):
    while True:
        t = step(c, t, g, H) if t[0] < 1 else t
        yield t


def greater(c, t, g, H):
    while True:
        change = step(c, t, g, H) - t
        t = t + change * (change > 0)
        yield t


def coin_in_an_if(c, t, g, H):
    while True:
        if c.rng.random() < 0.5:
            t = step(c, t, g, H)
        yield t


def chosen_client(c, t, g, H):
    while True:
        t = steps(c, t, g, H)[c.rng.integers(c.n)]
        yield t


def two_masks(c, t, g, H):
    while True:
        a, b = (c.rng.random(c.dim) < 0.5 for _ in range(2))
        t = t + a * (b * (step(c, t, g, H) - t))
        yield t


def server_mask_of_rows(c, t, g, H):
    while True:
        t = c.mean((c.rng.random(c.dim) < 0.5) * steps(c, t, g, H))
        yield t


def mask_counted(c, t, g, H):
    while True:
        mask = c.rng.random(c.n) < 0.5
        t = t + (mask[:, None] * (steps(c, t, g, H) - t)).sum(axis=0) / max(1, mask.sum())
        yield t


def draw_of_an_earlier_round(c, t, g, H):
    draw = c.draw()
    while True:
        t = t - g * c.mean(c.fields(t, draw))
        yield t


def table_of_records(c, t, g, H):
    while True:
        draw = c.draw()
        t = t - g * c.mean(c.fields(t, draw)) * len(draw.indices)
        yield t


def clients_of_a_draw(c, t, g, H):
    while True:
        t = t - g * c.mean(c.fields(t, c.draw())) * len(c.draw().members)
        yield t


def mask_through_the_mean(c, t, g, H):
    while True:
        mask = c.rng.random((c.n, 1)) < 0.5
        sent = c.mean(mask * steps(c, t, g, H))
        t = c.mean(mask * sent)
        yield t


def feedback_of_members(c, t, g, H):
    """Compressors made inside and outside of the algorithm; members alone change their memories."""
    memories = c.error_feedback(ef.rand_k(3))
    while True:
        c.cohort(4)
        kept = c.compress(c.mean(memories.memory), THREE)
        sent = memories.send(c, steps(c, t, g, H), t)
        t = t + 0.5 * c.mean(sent) + 0.1 * kept
        yield t


THREE = ef.Compressor("rand-k:3:indices")


def dithered(c, t, g, H):
    while True:
        t = t + c.mean(c.compress(steps(c, t, g, H) - t, "qsgd:4"))
        yield t


def signs(c, t, g, H):
    while True:
        t = t + c.mean(c.compress(steps(c, t, g, H) - t, "sign"))
        yield t


def compressed_twice(c, t, g, H):
    while True:
        sent = c.compress(t, "rand-k:2")
        t = c.mean(c.compress(steps(c, sent, g, H), "rand-k:2"))
        yield t


def late_mask(c, t, g, H):
    mask = c.rng.random(c.dim) < 0.5
    while True:
        t = t + mask * (step(c, t, g, H) - t)
        yield t


def sliced_members(c, t, g, H):
    while True:
        members = c.cohort(3)
        t = steps(c, t, g, H)[members[:2]].mean(axis=0)
        yield t


def loop_over_members(c, t, g, H):
    while True:
        total = 0
        ends = steps(c, t, g, H)
        for k in c.cohort(3):
            total = total + ends[k]
        t = total / 3
        yield t


def participants_by_chance(c, t, g, H):
    while True:
        c.participate(c.rng.random(c.n) < 0.5)
        t = step(c, t, g, H)
        yield t


def participants_of_a_cohort(c, t, g, H):
    while True:
        members = c.cohort(3)
        c.participate(members)
        t = step(c, t, g, H)
        yield t


def weights_of_theta(c, t, g, H):
    while True:
        c.participate(range(c.n), weights=t)
        t = step(c, t, g, H)
        yield t


def participants_twice(c, t, g, H):
    while True:
        c.participate([0, 1])
        c.participate([2])
        t = step(c, t, g, H)
        yield t


def normalised_coins(c, t, g, H):
    while True:
        if len(c.cohort(participation={"bernoulli-normalised": 0.5})):
            t = step(c, t, g, H)
        yield t


def rows_of_a_scheme(c, t, g, H):
    while True:
        members = c.cohort(2, participation="with-replacement")
        t = steps(c, t, g, H)[members].mean(axis=0)
        yield t


def last_coordinate(c, t, g, H):
    while True:
        t = step(c, t, g, H)
        t[-1] = 0.0
        yield t


def some_rows(c, t, g, H):
    while True:
        t = steps(c, t, g, H)[:3].mean(axis=0)
        yield t


def float_of_one(c, t, g, H):
    while True:
        t = step(c, t, g, H) * min(1.0, 1 / float(np.sum(t)))
        yield t


def ends_early(c, t, g, H):
    yield step(c, t, g, H)


TRACED = [
    argument_in_place, older_name_of_a_buffer, out_of_ufuncs, one_row_in_place, loop_over_clients,
    sum_of_rows, closures_and_namespaces, sums_of_many_names, rolled, permuted, zeros_like,
    growing_list, fewer_steps, changes_what_it_yielded, row_view_written, row_view_kept,
    broadcast_view, newaxis_view, stacked, copied_to, chosen_by_a_constant, schedule_in_a_for,
    iterator_of_its_own, feedback_of_members,
]  # fmt: skip
REFUSED = {
    buffer: "the numbers of an array are asked for",
    swallowed: "np.linalg.norm is not linear",
    asarray: "the numbers of an array are asked for",
    finite: "np.isfinite is not linear",
    concatenated: "np.concatenate is not linear, or not traced",
    copied_to_zeros: "np.copyto into an array",
    single_precision: "of type float32 is changed in place",
    rounded: "astype(float32) rounds",
    whole_numbers: "of type int64 is changed in place",
    default_argument: "another name, or keeps its name",
    alias_of_zeros: "another name, or keeps its name",
    state_of_the_module: "changes CALLS, which its runs share",
    unseeded: "numpy.random.normal, which draws from a generator that all runs share",
    mean_square: "a product of two arrays",
    clipped: "np.linalg.norm is not linear",
    median: "np.median is not linear",
    compares: "single coordinates of θ are not traced",
    greater: "a comparison is not linear",
    coin_in_an_if: "the path of the algorithm depends on a draw",
    chosen_client: "draws of the algorithm's own other than normal ones and masks",
    two_masks: "products of two random masks",
    server_mask_of_rows: "a random mask of the server times rows",
    mask_counted: "the attribute .sum of a random mask",
    mask_through_the_mean: "multiplied with the mask again",
    late_mask: "a random mask of an earlier round",
    dithered: "the variance of what the compressor qsgd:4 sends depends on the sizes",
    signs: "the compressor sign depends on the sizes of coordinates, which is not linear",
    compressed_twice: "products of two random masks",
    sliced_members: "the indices of a drawn cohort",
    loop_over_members: "the indices of a drawn cohort",
    participants_by_chance: "the clients that take part depend on draws",
    participants_of_a_cohort: "the clients that take part depend on draws",
    weights_of_theta: "their weights depend on θ, which is not linear",
    participants_twice: "two choices of the clients that take part in a round",
    normalised_coins: 'the scheme {"bernoulli-normalised": 0.5} is not traced',
    rows_of_a_scheme: "rows of clients that a scheme draws",
    last_coordinate: "a part of an array is assigned",
    some_rows: "a part of the clients is not traced",
    float_of_one: "a sum over coordinates is not traced",
    ends_early: "the algorithm ended",
    draw_of_an_earlier_round: "a draw of an earlier round is used",
    table_of_records: "tables of records are not traced",
    clients_of_a_draw: "the clients of a draw are asked for",
}


@pytest.mark.parametrize("algorithm", TRACED, ids=lambda of: of.__name__)
def test_idioms_that_are_traced(algorithm):
    worst, _ = apart(algorithm, rounds=12)
    assert worst < 1e-12


@pytest.mark.parametrize("algorithm", REFUSED, ids=lambda of: of.__name__)
def test_idioms_that_are_refused(algorithm):
    CALLS["number"] = 0
    with pytest.raises(NotTraced) as found:
        _trace.trace(begun(algorithm), 6, 4, None, 10)
    assert REFUSED[algorithm] in found.value.why
    if algorithm is default_argument:
        assert not np.any(algorithm.__defaults__[0])


def refusal(algorithm):
    with pytest.raises(NotTraced) as found:
        _trace.trace(begun(algorithm.function), 6, 4, None, 10)
    return re.sub(r"py:\d+", "py:…", str(found.value))


def divides_by_squares(clients, theta, gamma, H):
    while True:
        change = clients.mean(clients.local_steps(theta, gamma, H)) - theta
        theta = theta + change / (1 + change**2)
        yield theta


@pytest.mark.skipif(sys.version_info < (3, 11), reason="columns are not known")
def test_refusals_name_the_expression():
    assert refusal(SimpleNamespace(function=divides_by_squares)) == (
        "a power is not linear\n"
        "  test_trace.py:…\n"
        "    theta = theta + change / (1 + change**2)\n"
        "                                  ^^^^^^^^^"
    )
    assert refusal(algorithms.topk) == (
        "the compressor top-k:1 depends on the sizes of coordinates, which is not linear\n"
        "  topk.py:…\n"
        "    sent = memories.send(clients, ends, theta)\n"
        "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"
    )


def traced(algorithm, rounds, n=6, d=4):
    return _trace.trace(begun(algorithm), n, d, None, rounds)


def test_rounds_that_repeat_are_traced_once():
    few = traced(OWN["fedavg"], 10_000)
    assert len(few.whole) <= 3 and (few.order, few.cycle) == ([0], 1)
    three = traced(OWN["svrg"], 10_000)
    assert len(three.whole) <= 8 and three.cycle == 3
    last = traced(OWN["window"], 10_000)
    assert len(last.whole) < 10 and last.cycle == 1
    assert len(traced(OWN["fista"], 100).order) == 100
    for algorithm in (schedule_in_a_for, iterator_of_its_own):
        assert len(traced(algorithm, 100).whole) == 100


def test_named_clients_are_rounds_of_a_cycle():
    turns = traced(CHOOSERS["in_turn"], 10_000)
    assert (turns.cycle, len(turns.rounds)) == (6, 6)
    three = traced(CHOOSERS["scaffold_in_turn"], 10_000)
    assert three.cycle == 3
    coins = json.loads(traced(CHOOSERS["coins"], 10).json())["rounds"][-1]
    assert (coins["cohort"], coins["participation"]) == (None, {"bernoulli": 0.4})
    rescaled = json.loads(traced(CHOOSERS["rescaled"], 10).json())["rounds"][-1]
    assert (rescaled["cohort"], rescaled["participation"]) == (2, "rescaled")


def test_state_that_nothing_reads_is_dropped():
    program = json.loads(traced(OWN["FedAvgM"], 100).json())
    assert program["rounds"][-1]["state"] == ["server", "server"]


def test_draws_are_shared_by_what_evaluates_them():
    """A draw at one point alone is no shared one, and others are numbered in their order."""

    def several(c, t, g, H):
        w = t
        while True:
            draws = [c.draw(k + 1) for k in range(4)]
            rows = c.fields(t, draws[0]) - c.fields(w, draws[2]) + c.fields(t, draws[2])
            rows = rows + c.fields(w, draws[3]) + c.fields(t, draws[3])
            w, t = t, t - g * c.mean(rows)
            yield t

    program = traced(several, 100)
    assert program.cycle == 1
    operations = json.loads(program.json())["rounds"][-1]["operations"]
    fields = [(o["calls"], o.get("draws")) for o in operations if o["op"] == "fields"]
    assert fields == [(1, None), (3, 0), (3, 0), (4, 1), (4, 1)]
    assert apart(several)[0] < 1e-12


def test_many_rows_are_one_sum():
    for algorithm in (sum_of_rows, loop_over_clients):
        program = json.loads(traced(algorithm, 5, n=1000).json())
        operations = program["rounds"][-1]["operations"]
        assert [operation["op"] for operation in operations] == ["steps", "sum"]
        assert operations[1]["weights"] == "shares"


def test_unequal_shares():
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    program = json.loads(_trace.trace(begun(OWN["scaffold"]), 4, 2, shares, 10).json())
    sums = [o for o in program["rounds"][-1]["operations"] if o["op"] == "sum"]
    assert sums and all(one["weights"] == "shares" for one in sums)
    of_rows = _trace.trace(begun(loop_over_clients), 4, 2, shares, 10)
    assert json.loads(of_rows.json())["rounds"][0]["operations"][1]["weights"] == "shares"
    with pytest.raises(NotTraced, match="unequal shares"):
        _trace.trace(begun(COHORTS["cohort_fedavg"]), 4, 2, shares, 10)


ONE_CLIENT = {"clients": 1, "gradient-heterogeneity": 0.0, "hessian-heterogeneity": 0.0}


@pytest.mark.parametrize("changes", [ONE_CLIENT, {"dimension": 1}, {"dimension": 6}])
def test_one_client_one_dimension_and_as_many_of_both(changes):
    for name in ("FedDyn", "scaffold", "fedavg", "nesterov", "private", "lazy_communication"):
        worst, _ = apart({**OWN, **DRAWS}[name], **changes)
        assert worst < 1e-12, name


def test_the_check_with_real_clients():
    def differs(c, t, g, H):
        real = type(c) is ef.Clients
        while True:
            t = step(c, t, 0.5 * g if real else g, H)
            yield t

    def fails(c, t, g, H):
        if type(c) is ef.Clients:
            raise RuntimeError("no")
        while True:
            t = step(c, t, g, H)
            yield t

    def run(algorithm):
        (one, theta), (two, _) = real_clients(), real_clients()
        return _trace.checked(begun(algorithm), one, two, theta, 40)

    for algorithm in (*OWN.values(), *DRAWS.values()):
        assert run(algorithm).json()
    with pytest.raises(NotTraced, match="differ in round 1"):
        run(differs)
    with pytest.raises(NotTraced, match="raises RuntimeError: no"):
        run(fails)


@pytest.mark.parametrize("problem", list(PROBLEMS))
def test_a_matrix_of_each_client_is_one_operation_however_it_is_written(problem):
    programs = []
    for algorithm in MATRICES.values():
        worst, traced = apart(algorithm, problem)
        assert worst < 1e-12
        programs.append(json.loads(traced.json()))
    n, d = programs[0]["clients"], programs[0]["dimension"]
    assert programs[0] == programs[1] == programs[2]
    operations = programs[0]["rounds"][-1]["operations"]
    matrices = [one for one in operations if one["op"] == "matrix"]
    assert matrices and all(len(one["matrix"]) == n * d * d for one in matrices)
    assert len(operations) == 3 * 3 + 1


@pytest.mark.parametrize(
    ("product", "said"),
    [
        (lambda a, rows: (a @ rows[..., None])[:, 0], r"only \[..., 0\] is traced"),
        (lambda a, rows: 2.0 * rows[..., None], "only a product with matrices"),
        (lambda a, rows: np.einsum("kij,lj->ki", a, rows), "is not traced"),
    ],
)
def test_other_uses_of_matrices_of_clients_are_refused(product, said):
    def algorithm(clients, theta, gamma, H):
        a = np.ones((clients.n, clients.dim, clients.dim))
        while True:
            theta = clients.mean(product(a, clients.local_steps(theta, gamma, H)))
            yield theta

    with pytest.raises(NotTraced, match=said):
        apart(algorithm)
