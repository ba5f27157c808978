"""Linear regression and FEDL of Dinh et al. 2021 (arXiv:1910.13067)."""

import exactfed as ef
import numpy as np


@ef.problem("Linear regression", kind="fedl-regression")
class Regression:
    """The authors' records with the seed 0; a client's is its mean squared error, as one draw."""

    def __init__(self, kappa: float = 1.4, clients: int = 100, features: int = 40):
        rng = np.random.RandomState(0)
        self.clients, self.dim, self.records = clients, features + 1, 1
        counts = rng.lognormal(4, 2, clients).astype(int) + 500
        scale, mean, spread = rng.uniform(0.1, 10), rng.uniform(-0.1, 0.1), rng.uniform(0, 0.01)
        centre = rng.normal(mean, spread, features)
        axes = np.arange(1.0, features + 1) ** (-np.log(kappa) / np.log(features) / 2)
        x = np.concatenate(
            [rng.multivariate_normal(centre, scale * np.diag(axes), n) for n in counts]
        )
        x /= np.sqrt(np.linalg.norm(x.T @ x, 2) / len(x))
        y = x @ rng.rand(features) + np.sqrt(0.05) * rng.randn(len(x))
        x = np.hstack([x, np.ones((len(x), 1))])
        train = (0.75 * counts).astype(int)
        starts = counts.cumsum() - counts
        parts = [slice(i, i + m) for i, m in zip(starts, train, strict=True)]
        self.a = np.array([2 * x[part].T @ x[part] / len(x[part]) for part in parts])
        self.b = np.array([2 * x[part].T @ y[part] / len(x[part]) for part in parts])
        self.c = np.array([np.mean(y[part] ** 2) for part in parts])
        self.shares = train / train.sum()

    def grad(self, theta, k, draw):
        """The gradient of each row's client."""
        return np.einsum("mij,mj->mi", self.a[k], theta) - self.b[k]

    def value(self, theta, k):
        """The mean squared error of each row's client."""
        squares = np.einsum("mi,mij,mj->m", theta, self.a[k], theta)
        return squares / 2 - np.einsum("mi,mi->m", self.b[k], theta) + self.c[k]


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
