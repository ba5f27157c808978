"""SARSA on two Garnet environments (Mangold, Berthier and Moulines 2026, arXiv:2512.17688)."""

import exactfed as ef
import numpy as np


@ef.problem("SARSA on Garnet", kind="sarsa-garnet")
class SarsaOnGarnet:
    """The mean field of SARSA under a softmax policy, with a number for each state and action."""

    def __init__(self, states: int = 10, actions: int = 3, branching: int = 2, clients: int = 2):
        self.clients, self.dim, self.records = clients, states * actions, 1
        self.shape = (states, actions)
        pairs = list(np.ndindex(self.shape))
        self.rewards, self.kernels = [], np.zeros((clients, states, actions, states))
        for client, kernel in enumerate(self.kernels):
            rng = np.random.default_rng(client)
            reached = [rng.choice(states, branching, replace=False) for _ in pairs]
            chances = rng.uniform(size=(states, actions, branching))
            chances /= chances.sum(axis=2, keepdims=True)
            for (s, a), following in zip(pairs, reached, strict=True):
                kernel[s, a, following] = chances[s, a]
            self.rewards.append(rng.uniform(size=self.shape))

    def grad(self, theta, k, draw, discount=0.9, temperature=2.0):
        """The mean of Q(s, a) − r − γ Q(s', a') at (s, a) over the stationary distribution."""
        fields = []
        for values, client in zip(theta.reshape(-1, *self.shape), k, strict=True):
            policy = np.exp((values - values.max(axis=1, keepdims=True)) / temperature)
            policy /= policy.sum(axis=1, keepdims=True)
            kernel = self.kernels[client]
            chain = np.einsum("sa,sat->st", policy, kernel)
            visits = np.linalg.matrix_power(chain, 10_000).mean(axis=0)
            ahead = kernel @ (policy * values).sum(axis=1)
            apart = values - self.rewards[client] - discount * ahead
            fields.append((visits[:, None] * policy * apart).ravel())
        return np.array(fields)
