"""FedAvg and Scaffold on logistic regression over sparse records in numba, batch one.

    NUMBA_NUM_THREADS=1 python benches/peers/sparse_numba.py

Twenty clients. See timing.py for what is printed. Two peers, both with fastmath. "numba": a
coordinate is brought up to date when a record has it, with a counter per coordinate and tables of
what the penalty and the correction did since. "numba, folded": theta is a v - b xi with two numbers
a and b of the step, so that a step adds to v alone.
"""

import numpy as np
from timing import CLIENTS, draw, engine, measure, tried

STEP_SIZE, RIDGE = 0.1, 0.01
# d, non-zeros, records of a client, H.
WORKLOADS = (
    (123, 14, 250, 100),
    (4000, 60, 250, 100),
    (47_236, 75, 1000, 100),
    (47_236, 75, 1000, 1000),
)


def records(d, nonzeros, count, seed=1):
    """Columns and values (times the label) of each record.

    The feature j occurs with the frequency 1/(j + 1).
    """
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


def just_in_time(theta, data, xi, states, ends, c, steps):
    columns, values, offsets, count = data
    d, at = theta.size, ends[c]
    last, mine = np.zeros(d, np.int32), xi[c]
    power, drift = np.ones(steps + 1), np.zeros(steps + 1)
    for i in range(steps):
        power[i + 1] = power[i] * (1.0 - STEP_SIZE * RIDGE)
        drift[i + 1] = drift[i] * (1.0 - STEP_SIZE * RIDGE) + STEP_SIZE
    at[:] = theta
    for i in range(steps):
        r = c * count + draw(states, c, count)
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


def scaled(theta, data, xi, states, ends, c, steps):
    columns, values, offsets, count = data
    d, v, mine = theta.size, ends[c], xi[c]
    a, b, shrink = 1.0, 0.0, 1.0 - STEP_SIZE * RIDGE
    v[:] = theta
    for _ in range(steps):
        r = c * count + draw(states, c, count)
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


def main():
    ways = {"numba": just_in_time, "numba, folded": scaled}
    for d, nonzeros, count, steps in WORKLOADS:
        data = records(d, nonzeros, count)
        for peer, local in ways.items():
            for name, length in (("fedavg", 0.0), ("scaffold", STEP_SIZE * steps)):
                runs = [engine(local, True, way, length, steps) for way in tried()]
                workload = f"{name} sparse d={d} H={steps}"
                measure(peer, workload, runs, np.zeros(d), data, steps)


if __name__ == "__main__":
    main()
