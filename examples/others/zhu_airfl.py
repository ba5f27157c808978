"""Linear regression of Zhu et al. 2021 (AirFL): Gaussian records of one linear model."""

import exactfed as ef
import numpy as np


@ef.problem("Linear regression", kind="airfl-regression")
class Regression:
    """The mean squared error of each client's records, as one draw."""

    def __init__(self, rng, clients: int = 25, dim: int = 100, each: int = 500, gap: float = 1.0):
        self.clients, self.dim, self.records = clients, dim, 1
        x = rng.standard_normal((clients, each, dim))
        noise = 0.25 * rng.standard_normal((clients, each))
        truth = rng.standard_normal(dim)
        self.a = np.einsum("kid,kie->kde", x, x) / each
        bias = np.einsum("kid,ki->kd", x, noise) / each
        # The truth is scaled: f(0) − f(truth) is gap without the noise, which adds 0.1 % at most.
        truth *= np.sqrt(2 * gap / np.einsum("d,kde,e->", truth, self.a / clients, truth))
        self.b = np.einsum("kde,e->kd", self.a, truth) + bias
        labels = np.einsum("kid,d->ki", x, truth) + noise
        self.c = np.mean(labels**2, axis=1) / 2

    def grad(self, theta, k, draw):
        """The gradient of each row's client."""
        return np.einsum("mij,mj->mi", self.a[k], theta) - self.b[k]

    def value(self, theta, k):
        """Half the mean squared error of each row's client."""
        squares = np.einsum("mi,mij,mj->m", theta, self.a[k], theta)
        return squares / 2 - np.einsum("mi,mi->m", self.b[k], theta) + self.c[k]
