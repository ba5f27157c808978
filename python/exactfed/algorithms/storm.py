"""Stochastic recursive momentum."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("STORM", kind="storm", calls_per_step=2)
def storm(
    clients: Clients, theta: np.ndarray, gamma: float, weight: float = 0.1, calls: int = 1
) -> Iterator[np.ndarray]:
    """STORM with constant settings (Cutkosky and Orabona 2019).

    θ_{t+1} = θ_t − γ v_t with v_t = F(θ_t; Z_t) + (1 − ``weight``) (v_{t−1} − F(θ_{t−1}; Z_t)),
    where F is the mean over the clients and each averages ``calls`` draws at both points. With a
    weight of 1 it is mini-batch SGD, with 0 SARAH (Nguyen et al. 2017) without restarts.
    """
    velocity, previous = 0.0, None
    while True:
        draw = clients.draw(calls)
        fields = clients.fields(theta, draw)
        if previous is not None:
            fields = fields - (1 - weight) * clients.fields(previous, draw)
        velocity = clients.mean(fields) + (1 - weight) * velocity
        previous, theta = theta, theta - gamma * velocity
        yield theta
