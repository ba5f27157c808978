"""FedDyn: a regulariser that follows each client."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("FedDyn")
def feddyn(
    clients: Clients, theta: np.ndarray, gamma: float, H: int, alpha: float = 0.1
) -> Iterator[np.ndarray]:
    """FedDyn (Acar et al. 2021, Algorithm 1) with H local steps for the minimisation.

    Client k follows F_k(θ) − g_k + α(θ − θ_t), then g_k ← g_k − α(θ_k − θ_t). The server keeps
    h ← h − α Σ π_k (θ_k − θ_t), and θ_{t+1} = Σ π_k θ_k − h/α. α = ``alpha``, above 0.
    """
    gradients = np.zeros((clients.n, clients.dim))
    drift = np.zeros(clients.dim)
    ends = None
    while True:
        ends = clients.local_steps(theta, gamma, H, -gradients, proximal=alpha, out=ends)
        gradients -= alpha * (ends - theta)
        mean = clients.mean(ends)
        drift -= alpha * (mean - theta)
        theta = mean - drift / alpha
        yield theta
