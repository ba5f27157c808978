"""Binary classification with a loss that is not convex (Gorbunov et al. 2021, arXiv:2102.07845)."""

from pathlib import Path

import exactfed as ef
import numpy as np


def slope(margin):
    """The derivative of (1 − σ(m))² at the margin m."""
    s = 1 / (1 + np.exp(-margin))
    return -2 * (1 - s) ** 2 * s


@ef.problem("Classification, not convex", kind="nonconvex-classification")
class Classification:
    """The mean of (1 − σ(y xᵀθ))² over a client's records, plus ``l2``/2 ‖θ‖².

    The clients have equal parts of the file, in its order, without the records that are left over.
    """

    def __init__(self, file: str, features: int, clients: int = 5, l2: float = 0.0):
        lines = (Path(__file__).parent / "files" / file).read_text().splitlines()
        self.records = len(lines) // clients
        self.clients, self.dim, self.l2 = clients, features + 1, l2
        signed = np.zeros((clients * self.records, self.dim))  # y x, with the intercept first
        for row, line in zip(signed, lines, strict=False):
            label, *entries = line.split()
            pairs = np.array([entry.split(":") for entry in entries], dtype=float)
            row[0], row[pairs[:, 0].astype(int)] = 1.0, pairs[:, 1]
            row *= float(label)
        self.signed = signed.reshape(clients, self.records, self.dim)

    def margins(self, theta, client):
        """Of each record of a client, y xᵀθ, without the threads of a matrix product."""
        return np.einsum("id,d->i", self.signed[client], theta)

    def grad(self, theta, k, draw):
        """Of shape (M, d): −2 (1 − s)² s y x with s = σ(y xᵀθ)."""
        signed = self.signed[k, draw]
        pull = slope(np.einsum("md,md->m", signed, theta))
        return pull[:, None] * signed + self.l2 * theta

    def mean_grad(self, theta, k):
        """The mean of grad over all records, row by row."""
        rows = [
            np.einsum("i,id->d", slope(self.margins(at, c)), self.signed[c])
            for c, at in zip(k, theta, strict=True)
        ]
        return np.array(rows) / self.records + self.l2 * theta

    def value(self, theta, k):
        """The loss of each row's client, of shape (M,)."""
        margins = np.array([self.margins(at, c) for c, at in zip(k, theta, strict=True)])
        losses = np.mean((1 / (1 + np.exp(margins))) ** 2, axis=1)
        return losses + self.l2 / 2 * np.sum(theta**2, axis=1)


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
