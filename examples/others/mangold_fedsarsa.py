"""SARSA on two Garnet environments (Mangold, Berthier and Moulines 2026, arXiv:2512.17688)."""

from pathlib import Path

import exactfed as ef
import numpy as np


@ef.problem("SARSA on Garnet", kind="sarsa-garnet")
class SarsaOnGarnet:
    """The mean field of SARSA under a softmax policy, with a number for each state and action."""

    file = np.load(Path(__file__).parent / "files/mangold-fedsarsa.npz")
    kernels = file["kernels"]
    rewards = file["rewards"]
    clients, states, actions = rewards.shape
    dim, records = states * actions, 1

    def grad(self, theta, k, draw, discount=0.9, temperature=2.0):
        """The mean of Q(s, a) − r − γ Q(s', a') at (s, a) over the stationary distribution."""
        values = theta.reshape(-1, self.states, self.actions)
        policy = np.exp((values - values.max(axis=2, keepdims=True)) / temperature)
        policy /= policy.sum(axis=2, keepdims=True)
        chain = np.einsum("msa,msat->mst", policy, self.kernels[k])
        visits = np.linalg.matrix_power(chain, 10_000).mean(axis=1)
        ahead = np.einsum("msat,mt->msa", self.kernels[k], (policy * values).sum(axis=2))
        apart = values - self.rewards[k] - discount * ahead
        return (visits[:, :, None] * policy * apart).reshape(theta.shape)
