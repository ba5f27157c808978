"""Personalised logistic regression, FLIX (Yi, Condat and Richtárik 2023, arXiv:2305.13170)."""

import exactfed as ef
import numpy as np


@ef.problem("FLIX", kind="flix")
class Flix(ef.MarginLoss):
    """The mean over clients of f_k(α θ + (1 − α) x_k), with x_k the minimiser of f_k alone.

    f_k is the mean logistic loss of client k plus ``l2``/2 ‖x‖². The clients have parts of the file
    in its order, and an intercept.
    """

    def __init__(self, file: str, alpha: float, clients: int = 8, l2: float = 0.1):
        super().__init__(file, clients, intercept="first", l2=l2)
        # The f_k themselves have α = 1.
        self.alpha, self.fixed = 1.0, np.zeros((clients, self.dim))
        alone = np.array([self.minimiser([client]) for client in range(clients)])
        self.alpha, self.fixed = alpha, (1 - alpha) * alone

    def loss(self, margin):
        """The logistic loss."""
        return np.logaddexp(0, -margin)

    def slope(self, margin):
        """Its derivative, −σ(−m)."""
        return -1 / (1 + np.exp(margin))

    def curvature(self, margin):
        """Its second derivative."""
        return self.slope(margin) * (-1 - self.slope(margin))

    def mixed(self, theta, k):
        """The model α θ + (1 − α) x_k of each row's client, of shape (M, d)."""
        return self.alpha * theta + self.fixed[k]

    def grad(self, theta, k, draw):
        """The gradient of one record of each row's client."""
        return self.alpha * super().grad(self.mixed(theta, k), k, draw)

    def mean_grad(self, theta, k):
        """The mean of grad over all records of each row's client."""
        return self.alpha * super().mean_grad(self.mixed(theta, k), k)

    def mean_hessian(self, theta, k):
        """The derivative of mean_grad."""
        return self.alpha**2 * super().mean_hessian(self.mixed(theta, k), k)

    def value(self, theta, k):
        """The loss of each row's client."""
        return super().value(self.mixed(theta, k), k)


@ef.algorithm("Scafflix", kind="scafflix")
def scafflix(clients, theta, gamma, probability: float, seed: int = 0):
    """Scafflix with one step size for all clients: Scaffnew, with the coins of a seed of NumPy."""
    coins, variates = np.random.RandomState(seed), np.zeros((clients.n, clients.dim))
    while True:
        steps = 1
        while coins.random_sample() >= probability:
            steps += 1
        ends = clients.local_steps(theta, gamma, steps, -variates)
        theta = clients.mean(ends)
        variates += probability / gamma * (theta - ends)
        yield theta
