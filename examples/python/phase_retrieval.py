"""Phase retrieval: a signal from the squares of its products with known vectors.

The loss of E. J. Candès, X. Li and M. Soltanolkotabi, "Phase Retrieval via Wirtinger Flow: Theory
and Algorithms", IEEE Transactions on Information Theory 61(4), 2015, for real numbers, up to its
factor: f(θ) = 1/(4n) Σ ((xᵢᵀθ)² − yᵢ)². It is not convex. Its minimisers are the signal and its
negative, so that no single θ* is stated, and runs are compared by their losses.
"""

import exactfed as ef
import numpy as np


@ef.problem("Phase retrieval", kind="phase-retrieval")
class PhaseRetrieval:
    """Every client measures the same signal, of length 1, along vectors of its own."""

    def __init__(self, rng, dim: int = 10, clients: int = 5, records: int = 100):
        self.dim, self.clients, self.records = dim, clients, records
        signal = rng.standard_normal(dim)
        signal /= np.sqrt(np.sum(signal**2))
        self.x = rng.standard_normal((clients, records, dim))
        self.y = np.einsum("kid,d->ki", self.x, signal) ** 2

    def grad(self, theta, k, draw):
        """Of shape (M, d), for M rows: ((xᵀθ)² − y) xᵀθ x."""
        x = self.x[k, draw]
        along = np.einsum("md,md->m", x, theta)
        return ((along**2 - self.y[k, draw]) * along)[:, None] * x

    def value(self, theta, k):
        """The mean loss of each row's client, of shape (M,)."""
        along = np.einsum("mid,md->mi", self.x[k], theta)
        return np.mean((along**2 - self.y[k]) ** 2, axis=1) / 4
