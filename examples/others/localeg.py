"""Local extragradient, a baseline of Zhang, Choudhury, Stich and Loizou 2023 (arXiv:2306.05100)."""

import exactfed as ef
import numpy as np


@ef.algorithm("Local EG", kind="local-eg")
def local_eg(clients, theta, gamma, H):
    """In each local step the field is taken at a point one step ahead."""
    while True:
        points = np.tile(theta, (clients.n, 1))
        for _ in range(H):
            ahead = points - gamma * clients.fields(points)
            points = points - gamma * clients.fields(ahead)
        theta = clients.mean(points)
        yield theta
