"""Local steps whose noise vanishes with the distance from an anchor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import Clients, algorithm


@algorithm("SVRG", kind="svrg", calls_per_step=2)
def svrg(
    clients: Clients, theta: np.ndarray, gamma: float, H: int, every: int = 1
) -> Iterator[np.ndarray]:
    """Local steps of SVRG (after Johnson and Zhang 2013; Konečný et al. 2016).

    The anchor w is θ_t in every ``every``-th round, from the first on, where the clients send their
    mean fields F̄_k(w). Client k then steps along F_k(θ; Z) − F_k(w; Z) + Σ π_l F̄_l(w), with one
    draw Z at both points. A step counts two gradients, a mean field one of each record.
    """
    number = 0
    while True:
        if number == 0:
            anchor, mean = theta, clients.mean(clients.mean_fields(theta))
            clients.charge(2, vectors=4 * clients.n)
        points = theta + np.zeros((clients.n, clients.dim))
        for _ in range(H):
            draw = clients.draw()
            noise = clients.fields(points, draw) - clients.fields(anchor, draw)
            points = points - gamma * (noise + mean)
        theta = clients.mean(points)
        number = (number + 1) % every
        yield theta
