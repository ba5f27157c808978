"""Gradient tracking over a graph."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm
from ._graphs import metropolis, neighbours


@algorithm("Gradient tracking", kind="gradient-tracking")
def gradient_tracking(
    clients: Clients,
    theta: np.ndarray,
    gamma: float,
    graph: str = "ring",
    density: float = 0.3,
    graph_seed: int = 1,
    calls: int = 1,
) -> Iterator[np.ndarray]:
    """Distributed stochastic gradient tracking (Pu and Nedić 2021; after Nedić et al. 2017).

    θ_k ← Σ_l W_kl (θ_l − γy_l), then y_k ← Σ_l W_kl y_l + f_k − f_k', where f_k is client k's field
    at its new θ_k, as the mean of ``calls`` draws (1 or more), and f_k' that of the round before.
    y_k begins at f_k; the estimate is Σ π_k θ_k. ``graph``, ``density`` and ``graph_seed`` as of
    gossip. "complete" is FedAvg with one local step, if shares are equal. Each of two neighbours
    sends the other two vectors.
    """
    joined = neighbours(graph, clients.n, density, graph_seed)
    mixing, sent = metropolis(joined, clients.shares), 2 * int(joined.sum())
    rows = theta + np.zeros((clients.n, clients.dim))
    tracker = fields = clients.fields(rows, calls=calls)
    while True:
        rows = mixing @ (rows - gamma * tracker)
        before, fields = fields, clients.fields(rows, calls=calls)
        tracker = mixing @ tracker + fields - before
        clients.charge(1, vectors=sent)
        yield clients.mean(rows)
