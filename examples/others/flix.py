"""Personalised logistic regression, FLIX (Yi, Condat and Richtárik 2023, arXiv:2305.13170)."""

from pathlib import Path

import exactfed as ef
import numpy as np


def newton(parts, fixed, alpha, l2):
    """The minimiser of the mean of the losses at α θ + a fixed point of each part."""
    theta = np.zeros(parts[0].shape[1])
    for _ in range(12):
        slope, curvature = np.zeros_like(theta), np.zeros((len(theta), len(theta)))
        for part, point in zip(parts, fixed, strict=True):
            s = 1 / (1 + np.exp(part @ (alpha * theta + point)))
            slope += -(s @ part) / len(part) + l2 * (alpha * theta + point)
            curvature += (part.T * (s * (1 - s))) @ part / len(part) + l2 * np.eye(len(theta))
        theta = theta - np.linalg.solve(alpha * curvature, slope)
    return theta


@ef.problem("FLIX", kind="flix")
class Flix:
    """The mean over clients of f_k(α θ + (1 − α) x_k), with x_k the minimiser of f_k alone.

    f_k is the mean logistic loss of client k plus ``l2``/2 ‖x‖². The clients have parts of the file
    in its order, and an intercept.
    """

    def __init__(self, file: str, features: int, alpha: float, clients: int = 8, l2: float = 0.1):
        lines = (Path(__file__).parent / "files" / file).read_text().splitlines()
        signed = np.zeros((len(lines), features + 1))  # y x, with the intercept first
        for row, line in zip(signed, lines, strict=True):
            label, *entries = line.split()
            pairs = np.array([entry.split(":") for entry in entries], dtype=float)
            row[0], row[pairs[:, 0].astype(int)] = 1.0, pairs[:, 1]
            row *= float(label)
        self.parts = np.array_split(signed, clients)
        self.records = [len(part) for part in self.parts]
        self.clients, self.dim, self.alpha, self.l2 = clients, features + 1, alpha, l2
        self.alone = [newton([part], [0.0], 1.0, l2) for part in self.parts]

    def optimum(self):
        """The minimiser of the mean."""
        fixed = [(1 - self.alpha) * alone for alone in self.alone]
        return newton(self.parts, fixed, self.alpha, self.l2)

    def mixed(self, theta, client):
        """The model α θ + (1 − α) x_k of a client."""
        return self.alpha * theta + (1 - self.alpha) * self.alone[client]

    def grad(self, theta, k, draw):
        """The gradient of one record of each row's client."""
        rows = []
        for at, client, record in zip(theta, k, draw, strict=True):
            point, record = self.mixed(at, client), self.parts[client][record]
            pull = -1 / (1 + np.exp(np.einsum("d,d->", record, point)))
            rows.append(self.alpha * (pull * record + self.l2 * point))
        return np.array(rows)

    def mean_grad(self, theta, k):
        """The mean of grad over all records of each row's client."""
        rows = []
        for at, client in zip(theta, k, strict=True):
            point, part = self.mixed(at, client), self.parts[client]
            pull = -1 / (1 + np.exp(np.einsum("id,d->i", part, point))) / len(part)
            rows.append(self.alpha * (np.einsum("i,id->d", pull, part) + self.l2 * point))
        return np.array(rows)

    def value(self, theta, k):
        """The loss of each row's client."""
        rows = []
        for at, client in zip(theta, k, strict=True):
            point = self.mixed(at, client)
            losses = np.logaddexp(0, -np.einsum("id,d->i", self.parts[client], point))
            rows.append(np.mean(losses) + self.l2 / 2 * np.sum(point**2))
        return np.array(rows)


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
