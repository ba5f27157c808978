"""The synthetic experiment of Crawshaw and Liu 2024 (NeurIPS): clients that come periodically."""

import exactfed as ef
import numpy as np


@ef.problem("Two clients in four unknowns", kind="periodic-clients")
class TwoClients:
    """Quadratics that differ in θ₄, with two curvatures in θ₃, whose gradient has noise."""

    fourth, pull = np.array([2.0, 1.0]), np.array([16.0, -16.0])

    def __init__(self, sigma: float = 1.0, steep: float = 16.0):
        self.clients, self.dim, self.sigma, self.steep = 2, 4, sigma, steep
        self.optimum = np.array([1.0, steep**-0.5, 0.0, 0.0])

    def mean_grad(self, theta, k):
        """The gradient of each row's client."""
        g = theta - self.optimum
        g[:, 1] *= self.steep
        g[:, 2] = self.steep / 4 * (theta[:, 2] + np.maximum(theta[:, 2], 0))
        g[:, 3] = self.fourth[k] / 2 * theta[:, 3] + self.pull[k]
        return g

    def grad(self, theta, k, draw):
        """The same with a Gaussian number in the third coordinate (Box and Muller 1958)."""
        g = self.mean_grad(theta, k)
        if self.sigma:
            radius = np.sqrt(-2 * np.log(((draw >> np.uint64(32)) + 0.5) * 2.0**-32))
            angle = (draw & np.uint64(0xFFFFFFFF)) * (2 * np.pi * 2.0**-32)
            g[:, 2] += self.sigma * (radius * np.cos(angle))
        return g

    def value(self, theta, k):
        """The loss of each row's client."""
        one, two, three, four = (theta - self.optimum).T
        halves = one**2 + self.steep * (two**2 + (three**2 + np.maximum(three, 0) ** 2) / 4)
        return halves / 2 + self.fourth[k] / 4 * four**2 + self.pull[k] * four


@ef.algorithm("Amplified Scaffold", kind="amplified")
def amplified(clients, theta, gamma, H, factor: float, corrected: bool, period: int = 480):
    """Clients in turn, each for its part of a period, whose change is multiplied at its end."""
    corrections, anchor = np.zeros((clients.n, clients.dim)), theta
    while True:
        fields = np.zeros_like(corrections)
        for t in range(period):
            k = clients.n * t // period
            clients.participate([k])
            ends = clients.local_steps(theta, gamma, H, corrections)
            fields[k] += (theta - ends[k]) / (gamma * H) - corrections[k]
            theta = clients.mean(ends)
            if t == period - 1:
                theta = anchor = anchor + factor * (theta - anchor)
            yield theta
        if corrected:
            fields *= clients.n / period
            corrections = np.mean(fields, axis=0) - fields
