"""FedAvg on regularised softmax regression with ten classes, in numba and in numpy.

    NUMBA_NUM_THREADS=1 python benches/peers/softmax_numba.py

5000 records of d = 8, 64 and 784 features, partitioned evenly among twenty clients; steps of one
record and of 32. "numpy" computes a step with the matrix products of its BLAS, and the clients on a
pool of threads. See timing.py for what is printed; a step is one step, of one record or of 32.
"""

import os

# Clients run in parallel, so that each product has one thread.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import get_num_threads
from timing import CLIENTS, STEPS, draw, engines, measure

RECORDS, CLASSES, DIMENSIONS, BATCHES = 5000, 10, (8, 64, 784), (1, 32)
STEP_SIZE, RIDGE = 0.1, 0.01


def records(d, batch, seed=1):
    """Records of each client, their classes, and the batch."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(CLIENTS, RECORDS // CLIENTS, d)) / np.sqrt(d)
    return x, rng.integers(CLASSES, size=x.shape[:2]), batch


def local(theta, tables, _, states, ends, c, steps):
    """theta <- theta - step size (mean gradient of a batch + ridge theta)."""
    x, labels, batch = tables
    n, d = x.shape[1], x.shape[2]
    ends[c] = theta
    at, pull, powers = ends[c].reshape((CLASSES, d)), np.zeros((CLASSES, d)), np.zeros(CLASSES)
    for _ in range(steps):
        if batch > 1:
            for k in range(CLASSES):
                for j in range(d):
                    pull[k, j] = RIDGE * at[k, j]
        for _ in range(batch):
            i = draw(states, c, n)
            row, largest, total = x[c, i], -np.inf, 0.0
            for k in range(CLASSES):
                score = 0.0
                for j in range(d):
                    score += row[j] * at[k, j]
                powers[k] = score
                largest = max(largest, score)
            for k in range(CLASSES):
                powers[k] = np.exp(powers[k] - largest)
                total += powers[k]
            for k in range(CLASSES):
                weight = (powers[k] / total - (1.0 if labels[c, i] == k else 0.0)) / batch
                if batch > 1:
                    for j in range(d):
                        pull[k, j] += weight * row[j]
                else:
                    for j in range(d):
                        at[k, j] -= STEP_SIZE * (weight * row[j] + RIDGE * at[k, j])
        if batch > 1:
            for k in range(CLASSES):
                for j in range(d):
                    at[k, j] -= STEP_SIZE * pull[k, j]


def by_products(theta, x, labels, batch, rng):
    """The same steps of one client in numpy; returns where it ends."""
    at, order = theta.reshape(CLASSES, -1).copy(), np.arange(batch)
    for _ in range(STEPS):
        drawn = rng.integers(len(x), size=batch)
        rows = x[drawn]
        powers = rows @ at.T
        powers -= powers.max(1, keepdims=True)
        np.exp(powers, out=powers)
        powers /= powers.sum(1, keepdims=True)
        powers[order, labels[drawn]] -= 1.0
        at -= STEP_SIZE * (powers.T @ rows / batch + RIDGE * at)
    return at.ravel()


def numpy_run(each):
    """T rounds in numpy; `each` maps a function over the clients."""

    def run(start, tables, rounds):
        x, labels, batch = tables
        generators = [np.random.default_rng(c) for c in range(CLIENTS)]
        theta, clients = start, range(CLIENTS)
        for _ in range(rounds):

            def local_end(c, at=theta):
                return by_products(at, x[c], labels[c], batch, generators[c])

            ends = each(local_end, clients)
            theta = np.mean(list(ends), 0)
        return theta

    return run


def main():
    threads = get_num_threads()
    each = [map] + ([ThreadPoolExecutor(threads).map] if threads > 1 else [])
    ways = [*engines(local), ("numpy", [numpy_run(way) for way in each])]
    for d in DIMENSIONS:
        for batch in BATCHES:
            tables = records(d, batch)
            for peer, runs in ways:
                workload = f"fedavg softmax d={d} batch={batch}"
                measure(peer, workload, runs, np.zeros(CLASSES * d), tables)


if __name__ == "__main__":
    main()
