"""FedLSA on Garnet problems, TD(0) with d = 2 to 256 features, in numba.

    NUMBA_NUM_THREADS=1 python benches/peers/td_wide_numba.py

Twenty clients whose kernels and rewards are perturbed by 0.02; A = 2, b = 2, discount 0.95, uniform
policy. The pair (s, s') of a step is one draw from the client's alias table; the rows of both
states are read from one table of features. See timing.py for what is printed.
"""

import numpy as np
from garnet_numba import alias
from timing import CLIENTS, U, draw, engines, measure

ACTIONS, BRANCHING, DISCOUNT, SPREAD, STEP_SIZE = 2, 2, 0.95, 0.02, 0.1
SIZES = [(30, 2), (30, 8), (100, 16), (300, 32), (1000, 64), (1000, 128), (2000, 256)]


def stationary(probabilities, successors):
    """The stationary distribution by iteration; rows of successors and their probabilities."""
    states = len(successors)
    mu = np.full(states, 1.0 / states)
    for _ in range(500):
        flow = (mu[:, None] * probabilities).ravel()
        mu = 0.5 * mu + 0.5 * np.bincount(successors.ravel(), flow, states)
    return mu


def instance(states, features, seed=1):
    """The features, the pairs (s, s') that all clients share, and each client's rewards and alias
    table over the pairs."""
    rng = np.random.default_rng(seed)
    phi = rng.uniform(size=(states, features))
    phi /= phi.sum(1, keepdims=True)
    successors = np.array([rng.permutation(states)[:BRANCHING] for _ in range(states * ACTIONS)])
    successors = successors.reshape(states, -1)
    common, shares, others = rng.uniform(size=states), [], []
    for _ in range(CLIENTS):
        weights = 1.0 + rng.uniform(0.0, SPREAD, (states, ACTIONS, BRANCHING))
        probabilities = (weights / weights.sum(-1, keepdims=True) / ACTIONS).reshape(states, -1)
        pairs = stationary(probabilities, successors)[:, None] * probabilities
        share, other = alias(pairs.ravel())
        shares.append(share)
        others.append(other.astype(U))
    here = np.repeat(np.arange(states), ACTIONS * BRANCHING)
    reward = common + rng.uniform(0.0, SPREAD, (CLIENTS, states))
    return phi, here, successors.ravel().copy(), reward, np.array(shares), np.array(others)


def local(theta, tables, _, states, ends, c, steps):
    """theta <- theta + step size (r + discount phi(s')'theta - phi(s)'theta) phi(s)."""
    phi, here, there, reward, shares, others = tables
    at, d, pairs = ends[c], theta.size, here.size
    at[:] = theta
    for _ in range(steps):
        i = draw(states, c, pairs)
        if draw(states, c, 1 << 32) * 2.0**-32 >= shares[c, i]:
            i = others[c, i]
        s, row, following = here[i], phi[here[i]], phi[there[i]]
        value, later = 0.0, 0.0
        for k in range(d):
            value += row[k] * at[k]
            later += following[k] * at[k]
        size = STEP_SIZE * (reward[c, s] + DISCOUNT * later - value)
        for k in range(d):
            at[k] += size * row[k]


def main():
    ways = engines(local)
    for states, features in SIZES:
        tables = instance(states, features)
        for peer, runs in ways:
            workload = f"fedlsa wide S={states} d={features}"
            measure(peer, workload, runs, np.zeros(features), tables)


if __name__ == "__main__":
    main()
