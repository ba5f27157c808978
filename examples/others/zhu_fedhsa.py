"""FedHSA on quadratics with autoregressive noise (Zhu, Heath and Mitra 2025, arXiv:2504.11645)."""

import exactfed as ef
import numpy as np


def drawn(clients=20, dim=10, heterogeneity=100.0):
    """The start, matrices and vectors, and first states and matrices of the noise: with seed 0."""
    rng = np.random.RandomState(0)
    start, a, b, states, chains = rng.randn(dim), [], [], [], []
    for _ in range(clients):
        root = rng.randn(dim, dim)
        square = root.T @ root / dim
        a.append(square + (1 - np.linalg.eigvalsh(square)[0]) * np.eye(dim))
        b.append(rng.randn(dim))
        b[-1] += heterogeneity * rng.randn(dim)
    for _ in range(clients):
        states.append(rng.rand(dim))
        chain = rng.randn(dim, dim)
        chains.append(chain / np.max(np.abs(np.linalg.eigvals(chain))) / 1.2)
    return start, np.array(a), np.array(b), np.array(states), np.array(chains)


@ef.problem("Quadratics", kind="fedhsa-quadratics")
class Quadratics:
    """The fields A_k θ − b_k, without noise."""

    def __init__(self):
        _, self.a, self.b, _, _ = drawn()
        self.clients, self.dim, self.records = len(self.b), self.b.shape[1], 1

    def grad(self, theta, k, draw):
        """The field of each row's client."""
        return np.einsum("mij,mj->mi", self.a[k], theta) - self.b[k]


@ef.algorithm("FedHSA", kind="fedhsa")
def fedhsa(clients, theta, gamma, H, corrected: bool = True):
    """Local steps along fields with noise, corrected by the mean of those at the first step."""
    _, _, _, noise, chains = drawn()
    while True:
        ends, corrections = np.tile(theta, (clients.n, 1)), np.zeros_like(noise)
        if corrected:
            fields = clients.fields(theta) + noise
            corrections = clients.mean(fields) - fields
        for _ in range(H):
            ends = clients.local_steps(ends, gamma, 1, noise + corrections)
            fresh = clients.rng.standard_normal(noise.shape)
            noise = np.einsum("kij,kj->ki", chains, noise) + 0.5 * fresh
        theta = clients.mean(ends)
        clients.charge(1 + corrected, vectors=(2 + 2 * corrected) * clients.n)
        yield theta
