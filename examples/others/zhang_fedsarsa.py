"""FedSARSA's environments (Zhang, Wang, Mitra and Anderson 2024, arXiv:2401.15273)."""

import exactfed as ef
import numpy as np

STATES = 100
GROUPS = 5


def environments(clients, heterogeneity):
    """Rewards and running sums of transitions: client 1's own, and perturbed ones of the others."""
    rng = np.random.RandomState(0)
    rewards, kernel = rng.rand(STATES), rng.rand(STATES, STATES)
    rewards = np.where(rewards > 0.95, rewards * 10, rewards / 10)
    rewards = 10 * (rewards - rewards.min()) / (rewards.max() - rewards.min())
    kernel = np.where(kernel > 0.7, kernel * 10, kernel / 10)
    kernel /= kernel.sum(axis=1, keepdims=True)
    all_rewards, kernels = [rewards], [kernel]
    for _ in range(clients - 1):
        signs = 2.0 * (rng.rand(STATES) > 0.5) - 1
        changed = np.clip(rewards + heterogeneity * signs * rewards, -rewards, rewards)
        moved = kernel + heterogeneity * (2 * rng.rand(STATES, STATES) - 1) * kernel
        moved += heterogeneity * (2.0 * (rng.rand(STATES, STATES) > 0.5) - 1) * moved
        moved = np.maximum(moved, 0)
        all_rewards.append(changed)
        kernels.append(moved / moved.sum(axis=1, keepdims=True))
    return np.array(all_rewards), np.array(kernels)


@ef.problem("FedSARSA", kind="fedsarsa")
class FedSarsa:
    """States s and actions a, both 1 to 100, with one unknown for each pair of their groups."""

    def __init__(self, clients: int = 1, heterogeneity: float = 0.0, discount: float = 0.2):
        self.clients, self.dim, self.discount = clients, GROUPS**2, discount
        self.rewards, self.kernels = environments(clients, heterogeneity)
        sums = np.cumsum(self.kernels, axis=2).reshape(-1, STATES)
        self.sums = (np.arange(len(sums))[:, None] + np.minimum(sums, 1)).ravel()

    def act(self, theta, state, uniform):
        """Actions of the policy, a softmax of a hundredth of the values, and their unknowns."""
        rows, first = np.arange(len(theta)), GROUPS * ((state + 1) % GROUPS)
        weights = np.exp(0.01 * theta[rows[:, None], first[:, None] + np.arange(GROUPS)])
        sums = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
        group = np.minimum((uniform[:, :1] >= sums).sum(axis=1), GROUPS - 1)
        action = GROUPS * (20 * uniform[:, 1]).astype(int) + np.where(group, group, GROUPS)
        return action, first + np.floor(action / 100 * 100 % GROUPS).astype(int)

    def move(self, k, state, action, uniform):
        """The next state: that of the client's kernel, moved on by the action."""
        reached = np.searchsorted(self.sums, STATES * k + state + uniform, side="right") % STATES
        return (reached + action) % STATES

    def grad(self, theta, k, draw):
        """The field at the third state of a chain from a state that is drawn evenly."""
        rows, u = np.arange(len(theta)), uniforms(draw, 12)
        state = (STATES * u[:, 0]).astype(int)
        for i in range(1, 7, 3):
            action, _ = self.act(theta, state, u[:, i : i + 2])
            state = self.move(k, state, action, u[:, i + 2])
        action, here = self.act(theta, state, u[:, 7:9])
        following = self.move(k, state, action, u[:, 9])
        _, there = self.act(theta, following, u[:, 10:12])
        ahead = self.rewards[k, state] + self.discount * theta[rows, there]
        field = np.zeros_like(theta)
        field[rows, here] = theta[rows, here] - ahead
        return field

    def mean_grad(self, theta, k):
        """The mean of grad over the draws at each row's policy."""
        states, actions, fields = np.arange(STATES), np.arange(1, STATES + 1), []
        unknowns = np.floor(actions / 100 * 100 % GROUPS).astype(int)
        unknowns = GROUPS * ((states + 1) % GROUPS)[:, None] + unknowns
        for row, rewards, kernel in zip(theta, self.rewards[k], self.kernels[k], strict=True):
            weights = np.exp(0.01 * row.reshape(GROUPS, GROUPS))[(states + 1) % GROUPS]
            policy = (weights / weights.sum(axis=1, keepdims=True))[:, actions % GROUPS] / 20
            moves = kernel[:, (states - actions[:, None]) % STATES]
            chain = np.einsum("sa,sat->st", policy, moves)
            visits = np.linalg.matrix_power(chain, 20).mean(axis=0)
            values = (policy * row[unknowns]).sum(axis=1)
            apart = row[unknowns] - rewards[:, None] - self.discount * moves @ values
            pairs = visits[:, None] * policy
            fields.append(np.bincount(unknowns.ravel(), (pairs * apart).ravel(), self.dim))
        return np.array(fields)


def uniforms(seeds, count):
    """``count`` numbers in [0, 1) from each seed of 64 bits: SplitMix64 (Steele et al. 2014)."""
    z = seeds[:, None] + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53
