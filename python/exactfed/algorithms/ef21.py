"""Compressed differences with error feedback."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("EF21")
def ef21(
    clients: Clients, theta: np.ndarray, gamma: float, H: int, keep: int = 1
) -> Iterator[np.ndarray]:
    """EF21 (Richtárik, Sokolov and Fatkhullin 2021, Algorithm 2) on the mean field of local steps.

    Client k sends the ``keep`` largest coordinates of (θ_t − θ_k)/(γH) − g_k, by which it and the
    server change g_k; then θ_{t+1} = θ_t − γH Σ π_k g_k. With H = 1 this is EF21. A coordinate is
    sent as a number of 8 bytes and an index of 4; θ is sent down whole.
    """
    n, d = clients.n, clients.dim
    keep = min(keep, d)
    sent = n * (8 * d + 12 * keep)
    estimates = np.zeros((n, d))
    rows = np.arange(n)[:, None]
    ends = None
    while True:
        ends = clients.local_steps(theta, gamma, H, out=ends)
        change = (theta - ends) / (gamma * H) - estimates
        largest = np.argpartition(np.abs(change), d - keep, axis=1)[:, d - keep :]
        estimates[rows, largest] += change[rows, largest]
        clients.charge(1, vectors=2 * n, bytes=sent)
        theta = theta - gamma * H * clients.mean(estimates)
        yield theta
