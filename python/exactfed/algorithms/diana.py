"""Compressed differences of gradients from memories."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, UnbiasedCompressor, algorithm, rand_k


@algorithm("DIANA")
def diana(
    clients: Clients,
    theta: np.ndarray,
    gamma: float,
    compressor: UnbiasedCompressor = rand_k(1),
    rate: float = 0.0,
) -> Iterator[np.ndarray]:
    """DIANA (Mishchenko et al. 2019), without momentum and proximal map.

    Client k has the gradient g_k at θ_t and sends m_k = C(g_k − h_k). The server goes to
    θ_{t+1} = θ_t − γ Σ π_k (h_k + m_k), and both keep h_k ← h_k + α m_k, h_k = 0 at first. C is
    ``compressor``, which must be unbiased, and α = ``rate``, by default 1/(1 + ω). θ is sent down
    whole.
    """
    omega = compressor.omega(clients.dim) or 0.0
    memories = clients.error_feedback(compressor)
    while True:
        fields = clients.fields(theta)
        estimates = memories.track(clients, fields, rate or 1 / (1 + omega))
        theta = theta - gamma * clients.mean(estimates)
        yield theta
