"""QAvg of Jin et al. 2022 (arXiv:2204.02634) on the first of the authors' random environments."""

import exactfed as ef
import numpy as np


@ef.problem("Q-learning, exact", kind="qavg-environments")
class Environments:
    """Each client has transitions of its own; θ is Q, and rewards are common."""

    def __init__(self, states: int = 5, actions: int = 5, clients: int = 5, discount: float = 0.9):
        self.states, self.actions, self.discount = states, actions, discount
        self.clients, self.dim, self.records = clients, states * actions, 1
        rng = np.random.RandomState(101)
        seeds = rng.randint(low=0, high=1000000, size=16000)
        self.rewards = rng.uniform(size=self.dim)
        rng, transitions = np.random.RandomState(seeds[0]), []
        for _ in range(clients):
            reached = rng.binomial(1, 0.2, size=(self.dim, states))
            for row in reached:
                if not row.any():
                    row[rng.randint(states)] = 1
            chances = reached * rng.uniform(size=(self.dim, states))
            transitions.append(chances / chances.sum(axis=1, keepdims=True))
        self.transitions = np.array(transitions)

    def grad(self, theta, k, draw):
        """Q(s, a) − r(s, a) − γ Σ P_k(s' | s, a) max_b Q(s', b) of each row."""
        best = theta.reshape(len(theta), self.states, self.actions).max(axis=2)
        ahead = np.einsum("mis,ms->mi", self.transitions[k], best)
        return theta - self.rewards - self.discount * ahead


@ef.algorithm("QAvg", kind="qavg")
def qavg(clients, theta, gamma, H):
    """A whole step to Q(V) of each client, H steps of size γ, and the mean of Q."""
    while True:
        starts = theta - clients.fields(theta)
        theta = clients.mean(clients.local_steps(starts, gamma, H))
        yield theta
