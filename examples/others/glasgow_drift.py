"""A loss with two curvatures (Glasgow, Yuan and Ma 2022, arXiv:2111.03741)."""

import exactfed as ef
import numpy as np


@ef.problem("Two curvatures", kind="two-curvatures")
class TwoCurvatures:
    """f(θ) = ``left`` θ²/2 below 0 and ``right`` θ²/2 above, for all clients; noise ±``noise``."""

    def __init__(self, clients: int, left: float = 0.5, right: float = 1.0, noise: float = 0.1):
        self.clients, self.dim, self.records, self.optimum = clients, 1, 2, np.zeros(1)
        self.left, self.right, self.noise = left, right, noise

    def grad(self, theta, k, draw):
        """The slope with a sign of the noise for each of the two draws."""
        return self.mean_grad(theta, k) + self.noise * (2.0 * draw[:, None] - 1.0)

    def mean_grad(self, theta, k):
        """The slope."""
        return np.where(theta > 0, self.right, self.left) * theta

    def value(self, theta, k):
        """The loss."""
        return np.where(theta > 0, self.right, self.left)[:, 0] * theta[:, 0] ** 2 / 2
