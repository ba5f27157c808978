"""FedAvg on regularised logistic regression with d = 2 to 784 dense features in numba, batch one.

    NUMBA_NUM_THREADS=1 python benches/peers/logistic_wide_numba.py

5000 records, partitioned evenly among twenty clients. See timing.py for what is printed.
"""

import numpy as np
from timing import CLIENTS, draw, engines, measure

RECORDS, DIMENSIONS = 5000, (2, 10, 50, 123, 300, 617, 784)
STEP_SIZE, RIDGE = 0.1, 0.01


def records(d, seed=1):
    """Records of each client and their labels 1 and -1."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(CLIENTS, RECORDS // CLIENTS, d)) / np.sqrt(d)
    labels = np.where(x @ rng.normal(size=d) + 0.5 * rng.normal(size=x.shape[:2]) > 0, 1.0, -1.0)
    return x, labels


def local(theta, tables, _, states, ends, c, steps):
    """theta <- theta - step size (gradient of one record + ridge theta)."""
    x, labels = tables
    at, n, d = ends[c], x.shape[1], theta.size
    at[:] = theta
    for _ in range(steps):
        i = draw(states, c, n)
        row, margin = x[c, i], 0.0
        for k in range(d):
            margin += row[k] * at[k]
        weight = labels[c, i] / (1.0 + np.exp(labels[c, i] * margin))
        for k in range(d):
            at[k] -= STEP_SIZE * (RIDGE * at[k] - weight * row[k])


def main():
    ways = engines(local)
    for d in DIMENSIONS:
        for peer, runs in ways:
            measure(peer, f"fedavg wide logistic d={d}", runs, np.zeros(d), records(d))


if __name__ == "__main__":
    main()
