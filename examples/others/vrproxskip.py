"""ProxSkip-LSVRG as the code of Malinovsky, Yi and Richtárik 2022 has it (arXiv:2207.04338)."""

import exactfed as ef
import numpy as np


@ef.algorithm("ProxSkip-LSVRG, coded", kind="vr-proxskip-coded", calls_per_step=2)
def vr_proxskip_coded(clients, theta, gamma, probability: float, refresh: float):
    """Each client throws a coin for its anchor once in a round, in place of once in a step."""
    points = np.tile(theta, (clients.n, 1))
    shift = np.zeros_like(points)
    anchor, mean = points, clients.mean_fields(points)
    while True:
        for _ in range(clients.rng.geometric(probability)):
            draw = clients.draw()
            estimate = clients.fields(points, draw) - clients.fields(anchor, draw) + mean
            points = points - gamma * (estimate - shift)
        theta = clients.mean(points)
        shift = shift + probability / gamma * (theta - points)
        points = np.tile(theta, (clients.n, 1))
        moved = clients.rng.random(clients.n) < refresh
        if moved.any():
            anchor = np.where(moved[:, None], points, anchor)
            mean = clients.mean_fields(anchor)
        yield theta
