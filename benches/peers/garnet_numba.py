"""FedLSA and SCAFFLSA on a Garnet problem in numba: what exactfed is measured against.

    NUMBA_NUM_THREADS=1 python benches/peers/garnet_numba.py

prints one JSON object a line: nanoseconds of wall time per client step, the
best of three repeats after a warm-up. With --check it prints the mean squared
error of all ways of writing the local steps instead, which must agree.

Three peers. "numba": the local steps as the algorithm reads, loops over arrays.
"numba, folded": the same with the step size in the tables and whole numbers to
draw with. "numba, unrolled": folded, written out for d = 8 and two clients at a
time, so that their chains of dependent operations overlap.
"""

import json
import sys
import time

import numpy as np
from numba import get_num_threads, njit, prange

STATES, ACTIONS, BRANCHING, FEATURES, DISCOUNT, SPREAD = 30, 2, 2, 8, 0.95, 0.02
STEP_SIZE = 0.1
U = np.uint64
WORKLOADS = [(100, 1000, 50), (10, 100, 5000), (10, 10, 20000), (10, 1, 100000)]


def kernels(rng, clients):
    """State kernels (N, S, S) under the uniform policy: one graph, weights perturbed."""
    graph = np.zeros((STATES, ACTIONS, STATES))
    for row in graph.reshape(-1, STATES):
        row[rng.permutation(STATES)[:BRANCHING]] = 1.0
    noise = rng.uniform(0.0, SPREAD, (clients, *graph.shape))
    weights = graph * (1.0 + noise)
    return (weights / weights.sum(-1, keepdims=True)).mean(2)


def stationary(kernel):
    """The stationary law of one kernel."""
    equations = kernel.T - np.eye(STATES)
    equations[-1] = 1.0
    law = np.linalg.solve(equations, np.eye(STATES)[-1])
    return np.maximum(law, 0.0) / np.maximum(law, 0.0).sum()


def alias(weights):
    """Walker's table: the share of each column that it keeps, and its other outcome."""
    share = weights / weights.mean()
    other = np.arange(len(share))
    poor = [i for i in range(len(share)) if share[i] < 1.0]
    rich = [i for i in range(len(share)) if share[i] >= 1.0]
    while poor and rich:
        low, high = poor.pop(), rich[-1]
        other[low] = high
        share[high] -= 1.0 - share[low]
        if share[high] < 1.0:
            poor.append(rich.pop())
    for i in poor + rich:
        share[i] = 1.0
    return share, other


def instance(clients, seed=1):
    """Tables over the pairs (s, s') that some client visits."""
    rng = np.random.default_rng(seed)
    kernel = kernels(rng, clients)
    reward = rng.uniform(size=STATES) + rng.uniform(0.0, SPREAD, (clients, STATES))
    phi = rng.uniform(size=(STATES, FEATURES))
    phi /= phi.sum(1, keepdims=True)
    pairs = np.stack([stationary(k) for k in kernel])[:, :, None] * kernel
    here, there = np.nonzero(pairs.max(0))
    weights = pairs[:, here, there]
    change = phi[here] - DISCOUNT * phi[there]
    matrix = np.einsum("cm,mi,mj->ij", weights, phi[here], change)
    vector = np.einsum("cm,cm,mi->i", weights, reward[:, here], phi[here])
    shares, others = zip(*[alias(w) for w in weights], strict=True)
    return {
        "optimum": np.linalg.solve(matrix, vector),
        "change": np.ascontiguousarray(change),
        "phi": np.ascontiguousarray(phi[here]),
        "reward": np.ascontiguousarray(reward[:, here]),
        "threshold": np.array(shares),
        "other": np.array(others),
    }


def folded(problem):
    """The same tables times the step size, with 32-bit thresholds."""
    limits = np.minimum(problem["threshold"] * 2.0**32, 2.0**32).astype(U)
    change, reward = STEP_SIZE * problem["change"], STEP_SIZE * problem["reward"]
    others = problem["other"].astype(U)
    return problem | {"change": change, "reward": reward, "threshold": limits, "other": others}


@njit(inline="always")
def advance(state):
    state ^= state << U(13)
    state ^= state >> U(7)
    return state ^ (state << U(17))


@njit(fastmath=True)
def direct(theta, xi, change, phi, reward, threshold, other, states, ends, c, steps):
    """H local steps of client c: theta <- theta - step size (error phi(s) - xi)."""
    pairs, state, at = threshold.shape[1], states[c], theta.copy()
    for _ in range(steps):
        state = advance(state)
        place = (state >> U(11)) * (pairs * 2.0**-53)
        i = int(place)
        if place - i >= threshold[c, i]:
            i = other[c, i]
        error = -reward[c, i]
        for k in range(FEATURES):
            error += change[i, k] * at[k]
        for k in range(FEATURES):
            at[k] -= STEP_SIZE * (error * phi[i, k] - xi[c, k])
    states[c] = state
    ends[c] = at


@njit(fastmath=True)
def plain(theta, xi, change, phi, reward, threshold, other, states, ends, c, steps):
    """H local steps of client c; the correction is already times the step size."""
    pairs, state = U(threshold.shape[1]), states[c]
    limits, others, rewards = threshold[c], other[c], reward[c]
    at, drift = theta.copy(), xi[c]
    for _ in range(steps):
        state = advance(state)
        i = ((state >> U(32)) * pairs) >> U(32)
        if (state & U(0xFFFFFFFF)) >= limits[i]:
            i = others[i]
        error = -rewards[i]
        for k in range(FEATURES):
            error += change[i, k] * at[k]
        for k in range(FEATURES):
            at[k] = (at[k] + drift[k]) - error * phi[i, k]
    states[c] = state
    ends[c] = at


def unrolled():
    """The same for clients c and c + 1, every coordinate a variable of its own."""
    both, all_k, body = (0, 1), range(FEATURES), []
    for j in both:
        body.append(f" s{j} = states[c+{j}]")
        body += [f" t{j}_{k} = theta[{k}]; x{j}_{k} = xi[c+{j},{k}]" for k in all_k]
    body.append(" for _ in range(steps):")
    for j in both:
        dot = " + ".join(f"change[i{j},{k}] * t{j}_{k}" for k in all_k)
        body += [
            f"  s{j} = advance(s{j})",
            f"  i{j} = ((s{j} >> U(32)) * pairs) >> U(32)",
            f"  if (s{j} & U(0xFFFFFFFF)) >= threshold[c+{j},i{j}]: i{j} = other[c+{j},i{j}]",
            f"  e{j} = {dot} - reward[c+{j},i{j}]",
        ]
    for j in both:
        body += [f"  t{j}_{k} = (t{j}_{k} + x{j}_{k}) - e{j} * phi[i{j},{k}]" for k in all_k]
    for j in both:
        body.append(f" states[c+{j}] = s{j}")
        body += [f" ends[c+{j},{k}] = t{j}_{k}" for k in all_k]
    arguments = "theta, xi, change, phi, reward, threshold, other, states, ends, c, steps"
    head = [f"def local({arguments}):", " pairs = U(threshold.shape[1])"]
    names = {"U": U, "advance": advance}
    exec("\n".join(head + body), names)
    return njit(fastmath=True)(names["local"])


def engine(local, together, length, parallel):
    """T rounds around some local steps; returns the squared errors. `length` is
    the step size, or 1 where the corrections are already times it."""

    def run(theta, optimum, change, phi, reward, threshold, other, states, steps, rounds, control):
        clients = states.size
        ends, xi = np.zeros((clients, FEATURES)), np.zeros((clients, FEATURES))
        errors = np.zeros(rounds)
        for t in range(rounds):
            for b in prange(clients // together):
                c = b * together
                local(theta, xi, change, phi, reward, threshold, other, states, ends, c, steps)
            theta[:] = 0.0
            for c in range(clients):
                for k in range(FEATURES):
                    theta[k] += ends[c, k] / clients
            if control:
                for c in range(clients):
                    for k in range(FEATURES):
                        xi[c, k] += (theta[k] - ends[c, k]) / (length * steps)
            for k in range(FEATURES):
                errors[t] += (theta[k] - optimum[k]) ** 2
        return errors

    return njit(parallel=parallel, fastmath=True)(run)


def call(run, problem, steps, rounds, control):
    tables = [problem[name] for name in ("change", "phi", "reward", "threshold", "other")]
    clients = len(problem["reward"])
    states = np.arange(1, clients + 1, dtype=U) * U(0x9E3779B97F4A7C15)
    start = problem["optimum"] + 1.0
    return run(start, problem["optimum"], *tables, states, steps, rounds, control)


def seconds(run, *arguments):
    begin = time.perf_counter()
    call(run, *arguments)
    return time.perf_counter() - begin


def best(runs, problem, steps, rounds, control):
    """Seconds of the fastest of three calls of the run that wins a short trial."""
    for run in runs:
        call(run, problem, steps, 2, control)
    winner = min(runs, key=lambda run: seconds(run, problem, steps, rounds // 20, control))
    return min(seconds(winner, problem, steps, rounds, control) for _ in range(3))


def main():
    direct_tables = {clients: instance(clients) for clients in (10, 100)}
    folded_tables = {clients: folded(problem) for clients, problem in direct_tables.items()}
    ways = {
        "numba": (direct, 1, STEP_SIZE, direct_tables),
        "numba, folded": (plain, 1, 1.0, folded_tables),
        "numba, unrolled": (unrolled(), 2, 1.0, folded_tables),
    }
    for peer, (local, together, length, problems) in ways.items():
        runs = [engine(local, together, length, parallel) for parallel in (False, True)]
        if "--check" in sys.argv:
            tails = [
                call(runs[0], problems[100], 1000, 1000, c)[100:].mean() for c in (False, True)
            ]
            print(f"{peer}: mean squared error of FedLSA {tails[0]:.3e}, SCAFFLSA {tails[1]:.3e}")
            continue
        for clients, steps, rounds in WORKLOADS:
            # prange costs some microseconds a round: short rounds do without it.
            worth = get_num_threads() > 1 and clients * steps >= 1000
            tried = runs if worth else runs[:1]
            for name, control in (("fedlsa", False), ("scafflsa", True)):
                spent = best(tried, problems[clients], steps, rounds, control)
                row = {
                    "peer": peer,
                    "workload": f"{name} d={FEATURES} N={clients} H={steps}",
                    "threads": get_num_threads(),
                    "ns_per_step": round(1e9 * spent / (clients * steps * rounds), 3),
                }
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
