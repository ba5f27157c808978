"""Changes under random masks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("Masked")
def masked(
    clients: Clients, theta: np.ndarray, gamma: float, H: int, probability: float = 0.5
) -> Iterator[np.ndarray]:
    """FedAvg with unbiased random masks of the changes (after Konečný et al. 2016).

    θ_{t+1} = θ_t + Σ π_k M_k ∘ (θ_k − θ_t)/p, where each coordinate of M_k is 1 with probability
    p = ``probability``, in (0, 1], and 0 otherwise, independently. p = 1 is FedAvg. A client sends
    pd numbers on average, and these are counted; it sends no indices: the server draws the same
    masks.
    """
    n, d = clients.n, clients.dim
    sent = 8 * n * d + round(8 * probability * n * d)
    ends = None
    while True:
        ends = clients.local_steps(theta, gamma, H, out=ends)
        mask = clients.rng.random((n, d)) < probability
        clients.charge(1, vectors=2 * n, bytes=sent)
        theta = theta + clients.mean(mask * (ends - theta) / probability)
        yield theta
