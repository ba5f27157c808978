"""What the peers for wide problems share: the engine of FedAvg around some local steps, and the
measurement of all ways of compiling it.

N = 20 clients, H local steps (100 by default) and the mean of the clients after them, in 64-bit
floating point. Draws come from xorshift64, one state per client, as in garnet_numba.py. Every
program prints one JSON object per line; with --check it prints the norm of the last iterate
instead, on which all ways must agree up to rounding ("numpy" draws other records, and agrees
roughly).
"""

import json
import sys
import time

import numpy as np
from numba import get_num_threads, njit, prange

CLIENTS, STEPS = 20, 100
U = np.uint64
# Seconds of a measurement.
SPAN = 0.3
# "numba" may reorder sums and fuse operations, as in the other peers; "strict" may not.
WAYS = {"numba": True, "numba, strict": False}


@njit(inline="always")
def draw(states, c, n):
    """A number below n from the state of client c."""
    state = states[c]
    state ^= state << U(13)
    state ^= state >> U(7)
    state ^= state << U(17)
    states[c] = state
    return ((state >> U(32)) * U(n)) >> U(32)


def engine(local, fastmath, parallel, length=0.0, steps=STEPS):
    """T rounds around the steps `local(theta, tables, xi, states, ends, c, steps)`, which writes
    where client c ends to ends[c]. Returns the last iterate. If `length`, the step size times H,
    is above 0, the corrections xi are updated as Scaffold does; else they stay 0."""
    steps_of = njit(fastmath=fastmath)(local)

    def run(start, tables, rounds):
        theta = start.copy()
        ends, states = np.zeros((CLIENTS, theta.size)), np.zeros(CLIENTS, U)
        xi = np.zeros((CLIENTS, theta.size))
        for c in range(CLIENTS):
            states[c] = U(c + 1) * U(0x9E3779B97F4A7C15)
        for _ in range(rounds):
            for c in prange(CLIENTS):
                steps_of(theta, tables, xi, states, ends, c, steps)
            for k in range(theta.size):
                theta[k] = 0.0
            for c in range(CLIENTS):
                for k in range(theta.size):
                    theta[k] += ends[c, k] / CLIENTS
            if length > 0.0:
                for c in range(CLIENTS):
                    for k in range(theta.size):
                        xi[c, k] += (ends[c, k] - theta[k]) / length
        return theta

    return njit(parallel=parallel, fastmath=fastmath)(run)


def tried():
    """Whether clients run in parallel: the ways to try."""
    return (False, True) if get_num_threads() > 1 else (False,)


def engines(local):
    """Pairs of a peer's name and its runs, on one thread and on several."""
    every = WAYS.items()
    return [(peer, [engine(local, fast, way) for way in tried()]) for peer, fast in every]


def seconds(run, *arguments):
    begin = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - begin


def measure(peer, workload, runs, start, tables, steps=STEPS):
    """Prints nanoseconds of wall time per client step: the best of three repeats of the run that
    wins a short trial, after a call that compiles it."""
    if "--check" in sys.argv:
        for run in runs:
            norm = np.linalg.norm(run(start, tables, 20))
            print(f"{workload}, {peer}: the last iterate has the norm {norm:.12g}")
        return
    for run in runs:
        run(start, tables, 1)
    trial = {run: min(seconds(run, start, tables, 2) for _ in range(3)) / 2 for run in runs}
    winner = min(runs, key=trial.get)
    rounds = max(1, int(SPAN / trial[winner]))
    spent = min(seconds(winner, start, tables, rounds) for _ in range(3))
    row = {
        "peer": peer,
        "workload": workload,
        "threads": get_num_threads(),
        "ns_per_step": round(1e9 * spent / (CLIENTS * steps * rounds), 3),
    }
    print(json.dumps(row), flush=True)
