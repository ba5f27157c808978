"""FedAvg with server momentum."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("FedAvgM")
def fedavgm(
    clients: Clients, theta: np.ndarray, gamma: float, H: int, momentum: float = 0.9
) -> Iterator[np.ndarray]:
    """FedAvg with server momentum (Hsu, Qi and Brown 2019, Algorithm 1).

    v ← βv + (Σ π_k θ_k − θ_t) and θ_{t+1} = θ_t + v, β = ``momentum`` in [0, 1).
    """
    velocity = np.zeros(clients.dim)
    ends = None
    while True:
        ends = clients.local_steps(theta, gamma, H, out=ends)
        velocity = momentum * velocity + (clients.mean(ends) - theta)
        theta = theta + velocity
        yield theta
