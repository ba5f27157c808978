"""Federated SARSA: TD learning of the policy that follows the estimate itself.

On-policy federated SARSA with linear features, as C. Zhang, H. Wang, A. Mitra and J. Anderson,
"Finite-Time Analysis of On-Policy Heterogeneous Federated Reinforcement Learning", ICLR 2024,
study it, after S. Zou, T. Xu and Y. Liang, "Finite-Sample Analysis for SARSA with Linear Function
Approximation", NeurIPS 2019. The policy is the softmax of the estimated values, so that the
distribution of the draws depends on θ: a draw is a state and an action of the stationary
distribution of the policy at θ, the next state, and the next action. The field is
−(r + γ φ(s', a')ᵀθ − φ(s, a)ᵀθ) φ(s, a). It is no gradient and not affine. Both papers draw along
trajectories; here the draws of a step are independent of those before it.
"""

import exactfed as ef
import numpy as np


@ef.problem("SARSA", kind="sarsa")
class Sarsa:
    """Environments of Dirichlet transitions; ``heterogeneity`` mixes in one of the client's own."""

    def __init__(
        self,
        rng,
        states: int = 4,
        actions: int = 2,
        features: int = 3,
        clients: int = 4,
        discount: float = 0.5,
        temperature: float = 1.0,
        heterogeneity: float = 0.0,
    ):
        self.clients, self.dim = clients, features
        self.discount, self.temperature = discount, temperature
        shared = rng.dirichlet(np.ones(states), (states, actions))
        own = rng.dirichlet(np.ones(states), (clients, states, actions))
        self.transitions = (1 - heterogeneity) * shared + heterogeneity * own
        self.rewards = rng.random((states, actions))
        self.features = rng.standard_normal((states, actions, features)) / np.sqrt(features)

    def policy(self, theta):
        """The probability of each action in each state, of shape (M, S, A)."""
        values = np.einsum("saf,mf->msa", self.features, theta) / self.temperature
        weights = np.exp(values - values.max(axis=2, keepdims=True))
        return weights / weights.sum(axis=2, keepdims=True)

    def visits(self, policy, k):
        """The stationary probability of each state under each row's policy, of shape (M, S)."""
        moves = np.einsum("msa,msat->mst", policy, self.transitions[k])
        states = np.full(moves.shape[:2], 1 / moves.shape[1])
        for _ in range(60):
            states = np.einsum("ms,mst->mt", states, moves)
        return states

    def grad(self, theta, k, draw):
        """The field of each row, with the state, action, next state and next action of its draw."""
        rows = np.arange(len(theta))
        policy = self.policy(theta)
        u = uniforms(draw, 4)
        state = pick(self.visits(policy, k), u[:, 0])
        action = pick(policy[rows, state], u[:, 1])
        following = pick(self.transitions[k, state, action], u[:, 2])
        next_action = pick(policy[rows, following], u[:, 3])
        here, there = self.features[state, action], self.features[following, next_action]
        apart = np.einsum("mf,mf->m", here - self.discount * there, theta)
        return (apart - self.rewards[state, action])[:, None] * here

    def mean_grad(self, theta, k):
        """The mean of grad over the draws at each row's policy."""
        policy = self.policy(theta)
        pairs = self.visits(policy, k)[:, :, None] * policy
        values = np.einsum("saf,mf->msa", self.features, theta)
        ahead = np.einsum("msat,mtb,mtb->msa", self.transitions[k], policy, values)
        apart = values - self.rewards - self.discount * ahead
        return np.einsum("msa,msa,saf->mf", pairs, apart, self.features)


def pick(probabilities, uniform):
    """The index that each row's uniform number falls on, of shape (M,)."""
    chosen = (uniform[:, None] >= np.cumsum(probabilities, axis=1)).sum(axis=1)
    return np.minimum(chosen, probabilities.shape[1] - 1)


INCREMENT = 0x9E3779B97F4A7C15
FIRST_FACTOR = 0xBF58476D1CE4E5B9
SECOND_FACTOR = 0x94D049BB133111EB


def uniforms(seeds, count):
    """``count`` numbers in [0, 1) from each seed of 64 bits: SplitMix64 (Steele et al. 2014)."""
    z = seeds[:, None] + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(INCREMENT)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST_FACTOR)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND_FACTOR)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)) * 2.0**-53
