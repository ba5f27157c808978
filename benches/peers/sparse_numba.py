"""FedAvg and Scaffold on logistic regression over sparse records in numba, batch one.

    NUMBA_NUM_THREADS=1 python benches/peers/sparse_numba.py

prints one JSON object a line: nanoseconds of wall time per client step, the
best of three repeats after a warm-up. With --check it prints where both ways of writing
the local steps end.

Two peers. "numba": a coordinate is brought up to date when a record has it, with a counter per
coordinate and tables of what the penalty and the correction did since. "numba, folded": theta is
a v - b xi with two numbers a and b of the step, so that a step adds to v alone.
"""

import json
import sys
import time

import numpy as np
from numba import get_num_threads, njit, prange

CLIENTS, STEP_SIZE, RIDGE = 20, 0.1, 0.01
# d, non-zeros, records of a client, H, rounds.
WORKLOADS = ((123, 14, 250, 100, 500), (47_236, 75, 1000, 100, 20), (47_236, 75, 1000, 1000, 4))
U = np.uint64


def records(d, nonzeros, count, seed=1):
    """Columns and values (times the label) of each record; features j have frequencies 1/(j + 1)."""
    rng = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, d + 1)
    total = CLIENTS * count
    columns = np.empty((total, nonzeros), dtype=np.int32)
    for i in range(total):
        drawn = rng.choice(d, 4 * nonzeros, p=weights / weights.sum())
        known = np.unique(drawn)
        while known.size < nonzeros:
            known = np.unique(np.append(known, rng.integers(d)))
        columns[i] = np.sort(rng.choice(known, nonzeros, replace=False))
    values = np.abs(rng.normal(size=(total, nonzeros)))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    values *= np.where(rng.random(total) < 0.5, 1.0, -1.0)[:, None]
    offsets = np.arange(total + 1) * nonzeros
    return columns.ravel(), values.ravel(), offsets, count


@njit(inline="always")
def advance(state):
    state ^= state << U(13)
    state ^= state >> U(7)
    return state ^ (state << U(17))


@njit(fastmath=True)
def just_in_time(theta, xi, data, states, ends, c, steps):
    columns, values, offsets, count = data
    d, state, at = theta.size, states[c], ends[c]
    last, mine = np.zeros(d, np.int32), xi[c]
    power, drift = np.ones(steps + 1), np.zeros(steps + 1)
    for i in range(steps):
        power[i + 1] = power[i] * (1.0 - STEP_SIZE * RIDGE)
        drift[i + 1] = drift[i] * (1.0 - STEP_SIZE * RIDGE) + STEP_SIZE
    at[:] = theta
    for i in range(steps):
        state = advance(state)
        r = c * count + int((state >> U(11)) * (count * 2.0**-53))
        margin = 0.0
        for m in range(offsets[r], offsets[r + 1]):
            j = columns[m]
            age = i - last[j]
            at[j] = power[age] * at[j] - drift[age] * mine[j]
            margin += values[m] * at[j]
        weight = 1.0 / (1.0 + np.exp(margin))
        for m in range(offsets[r], offsets[r + 1]):
            j = columns[m]
            at[j] -= STEP_SIZE * (RIDGE * at[j] - weight * values[m] + mine[j])
            last[j] = i + 1
    for j in range(d):
        age = steps - last[j]
        at[j] = power[age] * at[j] - drift[age] * mine[j]
    states[c] = state


@njit(fastmath=True)
def scaled(theta, xi, data, states, ends, c, steps):
    columns, values, offsets, count = data
    d, state, v, mine = theta.size, states[c], ends[c], xi[c]
    a, b, shrink = 1.0, 0.0, 1.0 - STEP_SIZE * RIDGE
    v[:] = theta
    for _ in range(steps):
        state = advance(state)
        r = c * count + int((state >> U(11)) * (count * 2.0**-53))
        along, pull = 0.0, 0.0
        for m in range(offsets[r], offsets[r + 1]):
            along += values[m] * v[columns[m]]
            pull += values[m] * mine[columns[m]]
        weight = STEP_SIZE / (1.0 + np.exp(a * along - b * pull))
        a, b = shrink * a, shrink * b + STEP_SIZE
        for m in range(offsets[r], offsets[r + 1]):
            v[columns[m]] += weight / a * values[m]
    for j in range(d):
        v[j] = a * v[j] - b * mine[j]
    states[c] = state


def engine(local, parallel):
    """T rounds around some local steps; returns the last iterate."""

    def run(theta, data, states, steps, rounds, control):
        clients, d = states.size, theta.size
        ends, xi = np.zeros((clients, d)), np.zeros((clients, d))
        for _ in range(rounds):
            for c in prange(clients):
                local(theta, xi, data, states, ends, c, steps)
            theta[:] = 0.0
            for c in range(clients):
                for k in range(d):
                    theta[k] += ends[c, k] / clients
            if control:
                for c in range(clients):
                    for k in range(d):
                        xi[c, k] += (ends[c, k] - theta[k]) / (STEP_SIZE * steps)
        return theta

    return njit(parallel=parallel, fastmath=True)(run)


def call(run, d, data, steps, rounds, control):
    states = np.arange(1, CLIENTS + 1, dtype=U) * U(0x9E3779B97F4A7C15)
    return run(np.zeros(d), data, states, steps, rounds, control)


def seconds(*arguments):
    begin = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - begin


def main():
    ways = {"numba": just_in_time, "numba, folded": scaled}
    runs = {peer: engine(local, get_num_threads() > 1) for peer, local in ways.items()}
    for d, nonzeros, count, steps, rounds in WORKLOADS:
        data = records(d, nonzeros, count)
        for peer, run in runs.items():
            for name, control in (("fedavg", False), ("scaffold", True)):
                if "--check" in sys.argv:
                    end = call(run, d, data, steps, rounds, control)
                    print(f"{peer}, {name}, d = {d}, H = {steps}: {end[:3]}, {np.linalg.norm(end)}")
                    continue
                call(run, d, data, 2, 1, control)
                spent = min(seconds(run, d, data, steps, rounds, control) for _ in range(3))
                row = {
                    "peer": peer,
                    "workload": f"{name} sparse d={d} H={steps}",
                    "threads": get_num_threads(),
                    "ns_per_step": round(1e9 * spent / (CLIENTS * steps * rounds), 3),
                }
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
