"""Graphs of clients, for algorithms without a server.

The ids of cells do not contain this file: raise the versions of the algorithms with it.
"""

from __future__ import annotations

import numpy as np


def neighbours(graph: str, n: int, density: float, seed: int) -> np.ndarray:
    """Which clients are neighbours, of shape (N, N).

    ``ring``; ``grid``, of ⌈√N⌉ columns, filled row by row; ``random``, a ring in random order to
    which every other pair is joined with probability ``density``; or ``complete``.
    """
    joined = np.zeros((n, n), dtype=bool)
    k = np.arange(n)
    if graph == "ring":
        joined[k, (k + 1) % n] = True
    elif graph == "grid":
        columns = int(np.ceil(np.sqrt(n)))
        right, below = k[(k + 1) % columns != 0], k[:-columns]
        right = right[right + 1 < n]
        joined[right, right + 1] = joined[below, below + columns] = True
    elif graph == "random":
        draws = np.random.default_rng(seed)
        order = draws.permutation(n)
        joined = np.triu(draws.random((n, n)) < density)
        joined[order, np.roll(order, 1)] = True
    elif graph == "complete":
        joined[:] = True
    else:
        raise ValueError(f'graph is "ring", "grid", "random" or "complete", not "{graph}"')
    joined |= joined.T
    joined[k, k] = False
    return joined


def metropolis(joined: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The weights W of Metropolis and Hastings, of shape (N, N): Σ_l W_kl = 1, and π W = π.

    With d_k neighbours, W_kl = min(1/(1 + d_k), π_l/(π_k (1 + d_l))) for neighbours k and l.
    """
    most = 1 / (1 + joined.sum(axis=1))
    weights: np.ndarray = joined * np.minimum(most[:, None], shares / shares[:, None] * most)
    weights += np.diag(1 - weights.sum(axis=1))
    return weights
