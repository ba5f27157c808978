"""FEDL of Dinh et al. 2021 (arXiv:1910.13067)."""

import exactfed as ef
import numpy as np


@ef.algorithm("FEDL", kind="fedl", vectors=4)
def fedl(clients, theta, gamma, H, eta=0.1):
    """Local steps along F_k(θ) − F_k(θ_t) + η m, with m the mean field at the last ends."""
    corrections = np.zeros((clients.n, clients.dim))
    while True:
        ends = clients.local_steps(theta, gamma, H, corrections=corrections)
        mean = clients.mean(clients.fields(ends))
        theta = clients.mean(ends)
        corrections = eta * mean - clients.fields(theta)
        yield theta
