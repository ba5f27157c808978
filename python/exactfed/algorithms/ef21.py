"""Compressed differences with error feedback."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, Compressor, algorithm, top_k


@algorithm("EF21")
def ef21(
    clients: Clients,
    theta: np.ndarray,
    gamma: float,
    H: int,
    keep: int = 0,
    compressor: Compressor = top_k(1),
) -> Iterator[np.ndarray]:
    """EF21 (Richtárik, Sokolov and Fatkhullin 2021, Algorithm 2) on the mean field of local steps.

    Client k sends C((θ_t − θ_k)/(γH) − g_k), by which it and the server change g_k; then
    θ_{t+1} = θ_t − γH Σ π_k g_k. With H = 1 this is EF21. C is ``compressor``; ``keep`` above 0 is
    short for ``top-k:keep``. θ is sent down whole.
    """
    memories = clients.error_feedback(top_k(keep) if keep else compressor)
    ends = None
    while True:
        ends = clients.local_steps(theta, gamma, H, out=ends)
        estimates = memories.track(clients, (theta - ends) / (gamma * H))
        theta = theta - gamma * H * clients.mean(estimates)
        yield theta
