"""What tracing a round of an algorithm costs, for its exact theory.

    python python/benchmarks/tracing.py

Prints milliseconds of processor time per round, which is traced twice, the least of several runs,
of three shipped algorithms; 1 is the most that it should cost.
"""

from __future__ import annotations

import time

import numpy as np
from exactfed import _trace
from exactfed.algorithms import fedavgm, feddyn, scaffold_momentum


def milliseconds(algorithm, n, d=5, rounds=100):
    """The least time of a round."""

    def start(clients, theta):
        # A count that changes keeps the rounds from being found equal.
        for count, estimate in enumerate(algorithm(clients, theta, 0.05, 5), 1):
            yield estimate + 0.0 * np.full(d, count)

    best = np.inf
    for _ in range(7):
        begin = time.process_time()
        traced = _trace.trace(start, n, d, None, rounds)
        best = min(best, (time.process_time() - begin) / len(traced.whole))
    return 1e3 * best


if __name__ == "__main__":
    print("algorithm               N = 10   N = 1000")
    for algorithm in (fedavgm, feddyn, scaffold_momentum):
        times = [milliseconds(algorithm, n) for n in (10, 1000)]
        print(f"{algorithm.name:22} {times[0]:7.2f} {times[1]:10.2f}")
