"""Local steps and mixing over a graph."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm
from ._graphs import metropolis, neighbours


@algorithm("Gossip")
def gossip(
    clients: Clients,
    theta: np.ndarray,
    gamma: float,
    H: int,
    graph: str = "ring",
    density: float = 0.3,
    graph_seed: int = 1,
) -> Iterator[np.ndarray]:
    """Decentralised SGD with local steps (after Koloskova et al. 2020): no server, a graph.

    Client k makes local steps from its own θ_k and takes Σ_l W_kl θ_l over itself and its
    neighbours; the estimate is Σ π_k θ_k. ``graph`` is "ring", "grid", "random" (a ring in random
    order and every other pair with probability ``density`` in [0, 1], from ``graph_seed``) or
    "complete". W has the weights of Metropolis and Hastings, which keep Σ π_k θ_k. "complete" is
    FedAvg if shares are equal. Each of two neighbours sends the other a vector.
    """
    joined = neighbours(graph, clients.n, density, graph_seed)
    mixing, sent = metropolis(joined, clients.shares), int(joined.sum())
    rows = theta + np.zeros((clients.n, clients.dim))
    while True:
        rows = mixing @ clients.local_steps(rows, gamma, H)
        clients.charge(1, vectors=sent)
        yield clients.mean(rows)
