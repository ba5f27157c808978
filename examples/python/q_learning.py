"""Federated Q-learning, whose field has a maximum over actions.

Synchronous federated Q-learning of J. Woo, G. Joshi and Y. Chi, "The Blessing of Heterogeneity in
Federated Q-Learning: Linear Speedup and Beyond", ICML 2023: at each step every client
draws the next state s' of every pair of a state s and an action a, and updates
Q(s, a) ← (1 − η) Q(s, a) + η (r(s, a) + γ max_b Q(s', b)). θ is Q, of S A numbers, and the field is
θ minus the bracket. It is no gradient and not affine; its root Q* is found by value iteration.
"""

import exactfed as ef
import numpy as np

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


@ef.problem("Q-learning", kind="q-learning")
class QLearning:
    """All clients have one environment, of Dirichlet transitions and uniform rewards."""

    def __init__(
        self, rng, states: int = 5, actions: int = 3, clients: int = 4, discount: float = 0.8
    ):
        self.states, self.actions, self.discount = states, actions, discount
        self.clients, self.dim = clients, states * actions
        self.transitions = rng.dirichlet(np.ones(states), self.dim)
        self.cumulative = np.cumsum(self.transitions, axis=1)
        self.rewards = rng.random(self.dim)

    def best(self, theta):
        """max_b Q(s, b) of each row and state, of shape (M, S)."""
        return theta.reshape(len(theta), self.states, self.actions).max(axis=2)

    def grad(self, theta, k, draw):
        """Q(s, a) − r(s, a) − γ max_b Q(s', b), with a drawn s' for each pair (s, a)."""
        drawn = uniforms(draw, self.dim)[:, :, None] >= self.cumulative
        following = np.minimum(drawn.sum(axis=2), self.states - 1)
        best = np.take_along_axis(self.best(theta), following, axis=1)
        return theta - self.rewards - self.discount * best

    def mean_grad(self, theta, k):
        """The mean of grad over next states."""
        best = np.einsum("is,ms->mi", self.transitions, self.best(theta))
        return theta - self.rewards - self.discount * best

    def optimum(self):
        """Q*, where value iteration no longer moves."""
        theta = np.zeros((1, self.dim))
        for _ in range(1000):
            theta = theta - self.mean_grad(theta, None)
        return theta[0]
