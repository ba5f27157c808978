"""FedAvg and Scaffold on regularised logistic regression on sparse records in numba, batch one.

    NUMBA_NUM_THREADS=1 python benches/peers/sparse_numba.py

5000 records of 14 non-zeros among d = 123 features, as in a9a, and 20000 of 75 among 47236, as in
rcv1, partitioned evenly among twenty clients. The shrinking by the ridge, and the dense corrections
of Scaffold, are kept in two factors, so that a step touches the non-zeros alone. See timing.py for
what is printed.
"""

import numpy as np

from timing import CLIENTS, STEPS, draw, engines, measure

SIZES = [(5000, 123, 14), (20_000, 47_236, 75)]
STEP_SIZE, RIDGE = 0.1, 0.01


def records(n, d, nonzeros, seed=1):
    """Feature indices and values of each client's records, and labels 1 and -1. Frequent features
    are those of low index, as in texts."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, d + 1)
    keys = rng.choice(d, size=(n, 2 * nonzeros), p=frequency / frequency.sum())
    indices = np.empty((n, nonzeros), np.int32)
    for row, key in zip(indices, keys):
        distinct = np.unique(key)
        while len(distinct) < nonzeros:
            distinct = np.union1d(distinct, rng.integers(d, size=nonzeros))
        row[:] = np.sort(rng.choice(distinct, nonzeros, replace=False))
    values = np.abs(rng.normal(size=indices.shape))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    labels = np.where((values * rng.normal(size=d)[indices]).sum(1) > 0, 1.0, -1.0)
    shape = (CLIENTS, n // CLIENTS)
    return indices.reshape(*shape, -1), values.reshape(*shape, -1), labels.reshape(shape)


def fedavg(theta, tables, _, states, ends, c, steps):
    """theta <- theta - step size (gradient of one record + ridge theta), with theta = scale at."""
    indices, values, labels = tables
    at, n, nonzeros, d = ends[c], labels.shape[1], indices.shape[2], theta.size
    at[:] = theta
    scale = 1.0
    for _ in range(steps):
        i = draw(states, c, n)
        where, row, margin = indices[c, i], values[c, i], 0.0
        for j in range(nonzeros):
            margin += row[j] * at[where[j]]
        weight = labels[c, i] / (1.0 + np.exp(labels[c, i] * scale * margin))
        scale *= 1.0 - STEP_SIZE * RIDGE
        weight *= STEP_SIZE / scale
        for j in range(nonzeros):
            at[where[j]] += weight * row[j]
    for k in range(d):
        at[k] *= scale


def scaffold(theta, tables, xi, states, ends, c, steps):
    """The same with the correction xi, theta = scale at - drift xi."""
    indices, values, labels = tables
    at, own, n, nonzeros, d = ends[c], xi[c], labels.shape[1], indices.shape[2], theta.size
    at[:] = theta
    scale, drift = 1.0, 0.0
    for _ in range(steps):
        i = draw(states, c, n)
        where, row, margin = indices[c, i], values[c, i], 0.0
        for j in range(nonzeros):
            margin += row[j] * (scale * at[where[j]] - drift * own[where[j]])
        weight = labels[c, i] / (1.0 + np.exp(labels[c, i] * margin))
        scale *= 1.0 - STEP_SIZE * RIDGE
        drift = drift * (1.0 - STEP_SIZE * RIDGE) + STEP_SIZE
        weight *= STEP_SIZE / scale
        for j in range(nonzeros):
            at[where[j]] += weight * row[j]
    for k in range(d):
        at[k] = scale * at[k] - drift * own[k]


def main():
    algorithms = {"fedavg": engines(fedavg), "scaffold": engines(scaffold, STEP_SIZE * STEPS)}
    for n, d, nonzeros in SIZES:
        tables = records(n, d, nonzeros)
        for name, ways in algorithms.items():
            for peer, runs in ways:
                workload = f"{name} sparse logistic d={d} nonzeros={nonzeros}"
                measure(peer, workload, runs, np.zeros(d), tables)


if __name__ == "__main__":
    main()
