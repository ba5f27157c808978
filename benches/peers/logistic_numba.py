"""FedAvg and Scaffold on regularised logistic regression in numba, batch one.

    NUMBA_NUM_THREADS=1 python benches/peers/logistic_numba.py

prints one JSON object a line: nanoseconds of wall time per client step, the
best of three repeats after a warm-up. With --check it prints the optimum's
first coordinate and where all ways of writing the local steps end.

Three peers. "numba": the local steps as the algorithm reads, loops over arrays.
"numba, folded": the same with records times their labels and the step size in
what the steps read. "numba, unrolled": folded, written out for this d and two
clients at a time, up to d = 10.
"""

import json
import sys
import time

import numpy as np
from numba import get_num_threads, njit, prange

CLIENTS, RECORDS, STEPS, ROUNDS = 10, 200, 100, 2000
DIMENSIONS = (2, 10, 50)
STEP_SIZE, RIDGE = 0.01, 0.1
U = np.uint64


def records(d, seed=1):
    """Two blobs a client: records, and their labels 1 and -1."""
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(RECORDS) % 2 == 0, 1.0, -1.0)
    x = labels[:, None] / np.sqrt(d) + 3.0 * rng.normal(size=(CLIENTS, RECORDS, d))
    return np.ascontiguousarray(x), np.tile(labels, (CLIENTS, 1))


@njit(inline="always")
def advance(state):
    state ^= state << U(13)
    state ^= state >> U(7)
    return state ^ (state << U(17))


@njit(fastmath=True)
def direct(theta, xi, x, labels, states, ends, c, steps):
    """H local steps of client c: theta <- theta - step size (gradient + xi)."""
    n, d, state, at = x.shape[1], theta.size, states[c], theta.copy()
    for _ in range(steps):
        state = advance(state)
        i = int((state >> U(11)) * (n * 2.0**-53))
        margin = 0.0
        for k in range(d):
            margin += x[c, i, k] * at[k]
        weight = labels[c, i] / (1.0 + np.exp(labels[c, i] * margin))
        for k in range(d):
            at[k] -= STEP_SIZE * (RIDGE * at[k] - weight * x[c, i, k] + xi[c, k])
    states[c] = state
    ends[c] = at


@njit(fastmath=True)
def plain(theta, xi, z, _, states, ends, c, steps):
    """H local steps of client c; the correction is already times the step size."""
    n, d, state = U(z.shape[1]), theta.size, states[c]
    at, mine, drift, shrink = theta.copy(), z[c], xi[c], 1.0 - STEP_SIZE * RIDGE
    for _ in range(steps):
        state = advance(state)
        record = mine[((state >> U(32)) * n) >> U(32)]
        margin = 0.0
        for k in range(d):
            margin += record[k] * at[k]
        weight = STEP_SIZE / (1.0 + np.exp(margin))
        for k in range(d):
            at[k] = (shrink * at[k] - drift[k]) + weight * record[k]
    states[c] = state
    ends[c] = at


def unrolled(d):
    """The same for clients c and c + 1, every coordinate a variable of its own."""
    both, all_k, body = (0, 1), range(d), []
    for j in both:
        body.append(f" s{j} = states[c+{j}]")
        body += [f" t{j}_{k} = theta[{k}]; x{j}_{k} = xi[c+{j},{k}]" for k in all_k]
    body.append(" for _ in range(steps):")
    for j in both:
        dot = " + ".join(f"z[c+{j},i{j},{k}] * t{j}_{k}" for k in all_k)
        body += [
            f"  s{j} = advance(s{j})",
            f"  i{j} = ((s{j} >> U(32)) * n) >> U(32)",
            f"  m{j} = {dot}",
        ]
    body += [f"  w{j} = STEP_SIZE / (1.0 + np.exp(m{j}))" for j in both]
    for j in both:
        step = "  t{0}_{1} = (shrink * t{0}_{1} - x{0}_{1}) + w{0} * z[c+{0},i{0},{1}]"
        body += [step.format(j, k) for k in all_k]
    for j in both:
        body.append(f" states[c+{j}] = s{j}")
        body += [f" ends[c+{j},{k}] = t{j}_{k}" for k in all_k]
    head = [
        "def local(theta, xi, z, _, states, ends, c, steps):",
        " n, shrink = U(z.shape[1]), 1.0 - STEP_SIZE * RIDGE",
    ]
    names = {"U": U, "np": np, "advance": advance, "STEP_SIZE": STEP_SIZE, "RIDGE": RIDGE}
    exec("\n".join(head + body), names)
    return njit(fastmath=True)(names["local"])


def engine(local, together, length, parallel):
    """T rounds around some local steps; returns the last iterate. `length` is
    the step size, or 1 where the corrections are already times it."""

    def run(theta, x, labels, states, steps, rounds, control):
        clients, d = states.size, theta.size
        ends, xi = np.zeros((clients, d)), np.zeros((clients, d))
        for _ in range(rounds):
            for b in prange(clients // together):
                local(theta, xi, x, labels, states, ends, b * together, steps)
            theta[:] = 0.0
            for c in range(clients):
                for k in range(d):
                    theta[k] += ends[c, k] / clients
            if control:
                for c in range(clients):
                    for k in range(d):
                        xi[c, k] += (ends[c, k] - theta[k]) / (length * steps)
        return theta

    return njit(parallel=parallel, fastmath=True)(run)


def call(run, data, rounds, control):
    states = np.arange(1, CLIENTS + 1, dtype=U) * U(0x9E3779B97F4A7C15)
    return run(np.zeros(data[0].shape[2]), *data, states, STEPS, rounds, control)


def seconds(run, *arguments):
    begin = time.perf_counter()
    call(run, *arguments)
    return time.perf_counter() - begin


def best(runs, data, control):
    """Seconds of the fastest of three calls of the run that wins a short trial."""
    for run in runs:
        call(run, data, 2, control)
    winner = min(runs, key=lambda run: seconds(run, data, ROUNDS // 20, control))
    return min(seconds(winner, data, ROUNDS, control) for _ in range(3))


def optimum(z):
    """Newton's method on the mean of all clients' objectives."""
    theta = np.zeros(z.shape[2])
    rows = z.reshape(-1, z.shape[2])
    for _ in range(50):
        weight = 1.0 / (1.0 + np.exp(rows @ theta))
        gradient = RIDGE * theta - rows.T @ weight / len(rows)
        curvature = (rows * (weight * (1.0 - weight))[:, None]).T @ rows / len(rows)
        theta -= np.linalg.solve(curvature + RIDGE * np.eye(len(theta)), gradient)
    return theta


def main():
    for d in DIMENSIONS:
        x, labels = records(d)
        times_labels = (labels[:, :, None] * x, labels)
        ways = {
            "numba": (direct, 1, STEP_SIZE, (x, labels)),
            "numba, folded": (plain, 1, 1.0, times_labels),
        }
        if d <= 10:
            ways["numba, unrolled"] = (unrolled(d), 2, 1.0, times_labels)
        for peer, (local, together, length, data) in ways.items():
            tried = (False, True) if get_num_threads() > 1 else (False,)
            runs = [engine(local, together, length, parallel) for parallel in tried]
            if "--check" in sys.argv:
                ends = [call(runs[0], data, ROUNDS, c)[0] for c in (False, True)]
                print(f"{peer}, d = {d}: optimum {optimum(times_labels[0])[0]:.4f}, ends {ends}")
                continue
            for name, control in (("fedavg", False), ("scaffold", True)):
                spent = best(runs, data, control)
                row = {
                    "peer": peer,
                    "workload": f"{name} logistic d={d}",
                    "threads": get_num_threads(),
                    "ns_per_step": round(1e9 * spent / (CLIENTS * STEPS * ROUNDS), 3),
                }
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
