"""Yogi at the server."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("FedYogi")
def fedyogi(
    clients: Clients,
    theta: np.ndarray,
    gamma: float,
    H: int,
    server_step: float = 0.01,
    beta1: float = 0.9,
    beta2: float = 0.99,
    tau: float = 1e-3,
) -> Iterator[np.ndarray]:
    """Yogi on the mean of the clients' changes (Reddi et al. 2021, Algorithm 2).

    With Δ = Σ π_k θ_k − θ_t: m ← β₁m + (1 − β₁)Δ, v ← v − (1 − β₂)Δ² sign(v − Δ²), both by
    coordinates, and θ_{t+1} = θ_t + η m/(√v + τ), η = ``server_step`` above 0, β₁ and β₂ in
    [0, 1), τ above 0. v begins at τ². Δ² is not linear, so that there is no exact theory.
    """
    mean, square = np.zeros(clients.dim), np.full(clients.dim, tau**2)
    ends = None
    while True:
        ends = clients.local_steps(theta, gamma, H, out=ends)
        change = clients.mean(ends) - theta
        mean = beta1 * mean + (1 - beta1) * change
        square -= (1 - beta2) * change**2 * np.sign(square - change**2)
        theta = theta + server_step * mean / (np.sqrt(square) + tau)
        yield theta
