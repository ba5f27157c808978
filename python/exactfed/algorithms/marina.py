"""Compressed differences of gradients from those of the round before."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, UnbiasedCompressor, algorithm, rand_k


@algorithm("MARINA")
def marina(
    clients: Clients,
    theta: np.ndarray,
    gamma: float,
    compressor: UnbiasedCompressor = rand_k(1),
    probability: float = 0.0,
) -> Iterator[np.ndarray]:
    """MARINA (Gorbunov et al. 2021) with full gradients: for ``oracle = "exact"``.

    θ_{t+1} = θ_t − γ g_t. In the first round, and then with the probability p = ``probability``,
    by default 1/(1 + ω), all clients send their gradients g_k(θ_t), and g_t is their mean;
    otherwise they send C(g_k(θ_t) − g_k(θ_{t−1})), and g_t is g_{t−1} and the mean of what was
    sent. C is ``compressor``, which must be unbiased. θ is sent down whole.
    """
    omega = compressor.omega(clients.dim) or 0.0
    probability = probability or 1 / (1 + omega)
    before, estimate = None, theta
    while True:
        fields = clients.fields(theta)
        if before is None or clients.rng.random() < probability:
            estimate = clients.mean(fields)
        else:
            estimate = estimate + clients.mean(clients.compress(fields - before, compressor))
        before = fields
        theta = theta - gamma * estimate
        yield theta
