"""Noise on the changes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("Private")
def private(
    clients: Clients, theta: np.ndarray, gamma: float, H: int, scale: float = 0.01
) -> Iterator[np.ndarray]:
    """FedAvg with Gaussian noise on each client's change (after McMahan et al. 2018).

    θ_{t+1} = Σ π_k (θ_k + σz_k), z_k standard normal and independent, σ = ``scale``, 0 or more.
    σ = 0 is FedAvg. Changes are not clipped, which is not linear: what σ is worth as privacy
    depends on a bound of the changes that is known otherwise.
    """
    ends = None
    while True:
        ends = clients.local_steps(theta, gamma, H, out=ends)
        noise = scale * clients.rng.standard_normal((clients.n, clients.dim))
        theta = clients.mean(ends + noise)
        yield theta
