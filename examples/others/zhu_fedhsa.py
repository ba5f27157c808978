"""FedHSA with autoregressive noise (Zhu, Heath and Mitra 2025, arXiv:2504.11645)."""

from pathlib import Path

import exactfed as ef
import numpy as np


@ef.algorithm("FedHSA", kind="fedhsa")
def fedhsa(clients, theta, gamma, H, corrected: bool = True):
    """Local steps along fields with noise, corrected by the mean of those at the first step."""
    drawn = dict(np.load(Path(__file__).parent / "files/zhu-fedhsa.npz"))
    noise = drawn["noise"]
    while True:
        ends = np.tile(theta, (clients.n, 1))
        corrections = np.zeros_like(noise)
        if corrected:
            fields = clients.fields(theta) + noise
            corrections = clients.mean(fields) - fields
        for _ in range(H):
            ends = clients.local_steps(ends, gamma, 1, noise + corrections)
            fresh = clients.rng.normal(0, 0.5, noise.shape)
            noise = np.einsum("kij,kj->ki", drawn["chains"], noise) + fresh
        theta = clients.mean(ends)
        clients.charge(1 + corrected, vectors=(2 + 2 * corrected) * clients.n)
        yield theta
