"""QAvg of Jin et al. 2022 (arXiv:2204.02634) on the first of the authors' random environments."""

from pathlib import Path

import exactfed as ef
import numpy as np


@ef.problem("Q-learning, exact", kind="qavg-environments")
class Environments:
    """Each client has transitions of its own; θ is Q, and rewards are common."""

    file = np.load(Path(__file__).parent / "files/jin-qavg.npz")
    rewards = file["rewards"]
    transitions = file["transitions"]
    clients, dim, states = transitions.shape
    records = 1

    def grad(self, theta, k, draw):
        """Q(s, a) − r(s, a) − 0.9 Σ P_k(s' | s, a) max_b Q(s', b) of each row."""
        best = theta.reshape(len(theta), self.states, -1).max(axis=2)
        ahead = np.einsum("mis,ms->mi", self.transitions[k], best)
        return theta - self.rewards - 0.9 * ahead


@ef.algorithm("QAvg", kind="qavg")
def qavg(clients, theta, gamma, H):
    """A whole step to Q(V) of each client, H steps of size γ, and the mean of Q."""
    while True:
        starts = theta - clients.fields(theta)
        theta = clients.mean(clients.local_steps(starts, gamma, H))
        yield theta
