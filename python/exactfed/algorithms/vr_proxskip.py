"""Communication by a coin, with variance-reduced local steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("ProxSkip-LSVRG", kind="vr-proxskip", calls_per_step=2)
def vr_proxskip(
    clients: Clients, theta: np.ndarray, gamma: float, probability: float, refresh: float
) -> Iterator[np.ndarray]:
    """ProxSkip with the estimator of L-SVRG (Malinovsky, Yi and Richtárik 2022).

    Clients step along F_k(θ_k; Z) − F_k(w_k; Z) + F̄_k(w_k) − h_k. After each step, a coin of
    probability ``refresh`` moves the anchors w_k of all clients to where they stood before it, and
    one of ``probability`` ends the round. Then h_k grows by p/γ (θ_{t+1} − θ_k). Both coins are
    thrown once for all clients. A step counts two gradients, a mean field one of each record.
    """
    shift = np.zeros((clients.n, clients.dim))
    points = theta + shift
    anchor, mean = points, clients.mean_fields(points)
    while True:
        for _ in range(clients.rng.geometric(probability)):
            draw = clients.draw()
            estimate = clients.fields(points, draw) - clients.fields(anchor, draw) + mean
            before, points = points, points - gamma * (estimate - shift)
            if clients.rng.random() < refresh:
                anchor, mean = before, clients.mean_fields(before)
        theta = clients.mean(points)
        shift = shift + probability / gamma * (theta - points)
        points = theta + np.zeros_like(points)
        yield theta
