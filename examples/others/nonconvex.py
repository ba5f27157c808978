"""Binary classification with a loss that is not convex (Gorbunov et al. 2021, arXiv:2102.07845)."""

import exactfed as ef
import numpy as np


@ef.problem("Classification, not convex", kind="nonconvex-classification")
class Classification(ef.MarginLoss):
    """The loss of a record with the margin m = y xᵀθ is (1 − σ(m))²."""

    def loss(self, margin):
        """(1 − σ(m))²."""
        return (1 / (1 + np.exp(margin))) ** 2

    def slope(self, margin):
        """The derivative of the loss, −2 (1 − σ(m))² σ(m)."""
        s = 1 / (1 + np.exp(-margin))
        return -2 * (1 - s) ** 2 * s


@ef.algorithm("DIANA as coded", kind="diana-as-coded")
def diana_as_coded(clients, theta, gamma, compressor: ef.UnbiasedCompressor = ef.rand_k(1)):
    """DIANA that moves along the memories after their update, as the authors' script does."""
    memories = np.zeros((clients.n, clients.dim))
    rate = 1 / (1 + compressor.omega(clients.dim))
    while True:
        sent = clients.compress(clients.fields(theta) - memories, compressor)
        memories = memories + rate * sent
        theta = theta - gamma * clients.mean(memories)
        yield theta
