"""Scaffold with momentum at the server."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("Scaffold with momentum", kind="scaffold-momentum")
def scaffold_momentum(
    clients: Clients, theta: np.ndarray, gamma: float, H: int, momentum: float = 0.9
) -> Iterator[np.ndarray]:
    """Scaffold (Karimireddy et al. 2020, Algorithm 1, option II) with the server step of FedAvgM.

    v ← βv + (Σ π_k θ_k − θ_t) and θ_{t+1} = θ_t + v, β = ``momentum`` in [0, 1).
    """
    variates = clients.control_variates()
    velocity = np.zeros(clients.dim)
    ends = None
    while True:
        ends = clients.local_steps(theta, gamma, H, variates.corrections, out=ends)
        mean = variates.learn(clients, theta, ends, gamma * H)
        velocity = momentum * velocity + (mean - theta)
        theta = theta + velocity
        yield theta
