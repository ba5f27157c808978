"""TD learning with a discount and features of each agent (Zhu, Heath and Mitra 2025)."""

import exactfed as ef
import numpy as np


@ef.problem("TD with discounts and features per agent", kind="td-per-agent")
class TdPerAgent:
    """The mean fields A_k θ − b_k of TD(0), with the source's draws of the agents for seed 0."""

    def __init__(self, clients: int = 200, states: int = 100, features: int = 50):
        self.clients, self.dim, self.records = clients, features, 1
        self.agents, self.a, self.b = [], [], []
        rng = np.random.RandomState(0)
        discounts = rng.uniform(0.5, 0.99, clients)
        rng.rand(states, features)  # common features, which the source draws and does not use
        for discount in discounts:
            kernel = rng.rand(states, states) + rng.rand(states, states)
            kernel /= kernel.sum(axis=1, keepdims=True)
            rewards, phi = 2 * rng.rand(states), rng.rand(states, features)
            visits = np.linalg.matrix_power(kernel, 16)[0] * phi.T
            self.a.append(visits @ (phi - discount * kernel @ phi))
            self.b.append(visits @ rewards)
            self.agents.append((discount, kernel.cumsum(axis=1), rewards, phi))

    def grad(self, theta, k, draw):
        """The mean field of each row's agent."""
        return np.array([self.a[i] @ row - self.b[i] for i, row in zip(k, theta, strict=True)])


@ef.algorithm("FedHSA", kind="fedhsa-chains", vectors=4, theory=False)
def fedhsa_chains(clients, theta, gamma, H):
    """Local steps along the agents' chains, corrected by the mean of the fields at the first."""
    agents, states = np.arange(clients.n), np.zeros(clients.n, dtype=int)
    discounts, sums, rewards, phi = map(np.array, zip(*TdPerAgent(clients.n).agents, strict=True))
    while True:
        ends = np.tile(theta, (clients.n, 1))
        for step in range(H):
            ahead = (sums[agents, states] < clients.rng.random((clients.n, 1))).sum(axis=1)
            here = phi[agents, states]
            apart = here - discounts[:, None] * phi[agents, ahead]
            values = np.einsum("kd,kd->k", apart, ends) - rewards[agents, states]
            fields = values[:, None] * here
            if step == 0:
                corrections = clients.mean(fields) - fields
            ends -= gamma * (fields + corrections)
            states = ahead
        theta = clients.mean(ends)
        yield theta
