"""FedAvg with Nesterov's momentum at the server."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("FedNesterov")
def fednesterov(
    clients: Clients, theta: np.ndarray, gamma: float, H: int, momentum: float = 0.9
) -> Iterator[np.ndarray]:
    """Nesterov's method (after Nesterov 1983) with a round of FedAvg for the gradient step.

    Clients begin at y = θ_t + β(θ_t − θ_{t−1}), and θ_{t+1} = Σ π_k θ_k; β = ``momentum`` in
    [0, 1) is constant. β = 0 is FedAvg.
    """
    previous, ends = theta, None
    while True:
        ahead = theta + momentum * (theta - previous)
        ends = clients.local_steps(ahead, gamma, H, out=ends)
        previous, theta = theta, clients.mean(ends)
        yield theta
