"""Makes data files of the manifests in the folder above from the settings of publications.

`python make.py` writes the .npz files next to this script (numpy). The small ones are part of this
project; those of records are too large.
"""

from heapq import heapify, heappop, heappush
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent


def linear_regression(clients=20, records=30, dimension=1000, spread=0.1, seed=0):
    """Write the records of Jhunjhunwala, Wang and Joshi 2023, section 6, with the notebook's draws.

    Each client has a linear model and a mean of its features of its own. Features have length 1 and
    a client's labels together too. The notebook sums over the records of a client, where exactfed
    has means: hence the factor √30, by which gradients are those of the notebook.
    """
    draws = np.random.RandomState(seed)
    model_means = draws.normal(0, spread, clients)
    feature_means = draws.normal(0, spread, clients)
    centres = [draws.normal(mean, 1, dimension) for mean in feature_means]
    x, y = [], []
    for client in range(clients):
        model = draws.normal(model_means[client], 1, dimension)
        features = centres[client] + draws.standard_normal((records, dimension))
        labels = features @ model
        x.append(features / np.linalg.norm(features, axis=1, keepdims=True))
        y.append(labels / np.linalg.norm(labels))
    factor = np.sqrt(records)
    np.savez(
        FOLDER / "jhunjhunwala-fedexp.npz",
        x=factor * np.concatenate(x),
        y=factor * np.concatenate(y),
        client=np.repeat(np.arange(clients), records),
    )


def softmax_regression(name, sizes, features, classes, rng, alpha=1.0, beta=1.0):
    """Write synthetic records of clients that have models of their own and `sizes` records."""
    clients = len(sizes)
    scales = np.arange(1, features + 1) ** -0.6  # the standard deviations of the features
    model_means = alpha * rng.standard_normal(clients)
    feature_means = beta * rng.standard_normal(clients)
    x, y = [], []
    for client, records in enumerate(sizes):
        centre = feature_means[client] + rng.standard_normal(features)
        weights = model_means[client] + rng.standard_normal((features, classes))
        intercepts = model_means[client] + rng.standard_normal(classes)
        own = centre + scales * rng.standard_normal((records, features))
        x.append(own)
        y.append(np.argmax(own @ weights + intercepts, axis=1))
    np.savez(
        FOLDER / name,
        x=np.concatenate(x),
        y=np.concatenate(y),
        client=np.repeat(np.arange(clients), sizes),
    )


def mixed_records(clients=100, features=100, few=34, seed=20230209):
    """Write records as DataGeneration.m of Zhou and Li 2023 draws them, who set no seed.

    A third of ``clients``, rounded up, is the number of *records* with Student's distribution with
    5 degrees of freedom, and of those that are uniform on [-5, 5]; the others are normal.
    """
    rng = np.random.default_rng(seed)
    counts = rng.integers(50, 151, clients)
    records = rng.standard_normal((counts.sum(), features + 1))
    records[:few] = rng.standard_t(5, (few, features + 1))
    records[few : 2 * few] = rng.uniform(-5, 5, (few, features + 1))
    records = rng.permutation(records)
    np.savez(
        FOLDER / "zhou-fedadmm.npz",
        x=records[:, :-1],
        y=records[:, -1],
        client=np.repeat(np.arange(clients), counts),
    )


def equal_clients(seed=20211108):
    """Write the synthetic records of Acar et al. 2021: 200 of each of 20 clients.

    The authors' script draws them without a seed, so that these are another draw.
    """
    softmax_regression("acar-feddyn.npz", [200] * 20, 30, 5, np.random.default_rng(seed))


def unequal_clients(seed=20181214):
    """Write the training records of Synthetic(1, 1) of T. Li et al. 2020, without a test set.

    The authors' script draws them without a seed, so that these are another draw.
    """
    rng = np.random.default_rng(seed)
    sizes = (rng.lognormal(4, 2, 30).astype(int) + 50) * 9 // 10
    softmax_regression("li-fedprox.npz", sizes, 60, 10, rng)


def hundred_clients(seed=20200430):
    """Write the training records of Synthetic(0, 0) of X. Li et al. 2020, for 100 clients.

    The authors' script draws them without a seed, so that these are another draw.
    """
    rng = np.random.default_rng(seed)
    sizes = (rng.lognormal(4, 2, 100).astype(int) + 50) * 9 // 10
    softmax_regression("li-schemes.npz", sizes, 60, 10, rng, 0.0, 0.0)


def random_environments(states=5, actions=5, clients=5, seed=101):
    """Write the first environments of Jin et al. 2022, with the draws of QAvg_random_MDP.py.

    All clients have the rewards of a state and an action. From each pair a client reaches states
    that coins of 0.2 select, or one that is drawn evenly if they select none.
    """
    pairs = states * actions
    draws = np.random.RandomState(seed)
    seeds = draws.randint(low=0, high=1000000, size=16000)
    rewards = draws.uniform(size=pairs)
    draws = np.random.RandomState(seeds[0])
    transitions = []
    for _ in range(clients):
        reached = draws.binomial(1, 0.2, size=(pairs, states))
        for row in reached:
            if not row.any():
                row[draws.randint(states)] = 1
        chances = reached * draws.uniform(size=(pairs, states))
        transitions.append(chances / chances.sum(axis=1, keepdims=True))
    np.savez(FOLDER / "jin-qavg.npz", transitions=transitions, rewards=rewards)


def garnet_environments(states=10, actions=3, branching=2, clients=2):
    """Write the Garnet environments of Mangold, Berthier and Moulines 2026.

    The environment of client k has the seed k. From each state and action one reaches `branching`
    states that are drawn without replacement.
    """
    kernels, rewards = np.zeros((clients, states, actions, states)), []
    pairs = list(np.ndindex(states, actions))
    for client, kernel in enumerate(kernels):
        rng = np.random.default_rng(client)
        reached = [rng.choice(states, branching, replace=False) for _ in pairs]
        chances = rng.uniform(size=(states, actions, branching))
        chances /= chances.sum(axis=2, keepdims=True)
        for (state, action), following in zip(pairs, reached, strict=True):
            kernel[state, action, following] = chances[state, action]
        rewards.append(rng.uniform(size=(states, actions)))
    np.savez(FOLDER / "mangold-fedsarsa.npz", kernels=kernels, rewards=rewards)


def quadratics_with_chains(clients=20, dimension=10, heterogeneity=100.0, seed=0):
    """Write the quadratics of Zhu, Heath and Mitra 2025, and what their noise starts and moves by.

    The fields A_k θ − b_k are in the form of `problem.atoms`, each with one atom. The noise of a
    client starts at its row of `noise`, and its matrix in `chains` carries it on.
    """
    draws = np.random.RandomState(seed)
    draws.randn(dimension)  # the start, which the manifest has
    a, b, noise, chains = [], [], [], []
    for _ in range(clients):
        root = draws.randn(dimension, dimension)
        square = root.T @ root / dimension
        a.append(square + (1 - np.linalg.eigvalsh(square)[0]) * np.eye(dimension))
        vector = draws.randn(dimension)
        b.append(vector + heterogeneity * draws.randn(dimension))
    for _ in range(clients):
        noise.append(draws.rand(dimension))
        chain = draws.randn(dimension, dimension)
        chains.append(chain / np.max(np.abs(np.linalg.eigvals(chain))) / 1.2)
    np.savez(
        FOLDER / "zhu-fedhsa.npz",
        A=np.array(a)[:, None],
        b=np.array(b)[:, None],
        p=np.ones((clients, 1)),
        noise=noise,
        chains=chains,
    )


def conditioned_records(kappa, clients=100, features=40, seed=0):
    """Write the training records of Dinh et al. 2021, by generate_linear_regession_update.py.

    A user trains on the first three quarters of its records. The squares there are not halved, as
    they are in exactfed: hence the factor √2.
    """
    rng = np.random.RandomState(seed)
    counts = rng.lognormal(4, 2, clients).astype(int) + 500
    scale, mean, spread = rng.uniform(0.1, 10), rng.uniform(-0.1, 0.1), rng.uniform(0, 0.01)
    centre = rng.normal(mean, spread, features)
    axes = np.arange(1.0, features + 1) ** (-np.log(kappa) / np.log(features) / 2)
    covariance = scale * np.diag(axes)
    x = np.concatenate([rng.multivariate_normal(centre, covariance, n) for n in counts])
    x /= np.sqrt(np.linalg.norm(x.T @ x, 2) / len(x))
    y = x @ rng.rand(features) + np.sqrt(0.05) * rng.randn(len(x))
    x = np.hstack([x, np.ones((len(x), 1))])
    place = np.concatenate([np.arange(n) for n in counts])
    client = np.repeat(np.arange(clients), counts)
    train = place < (0.75 * counts).astype(int)[client]
    np.savez(
        FOLDER / f"dinh-fedl-kappa-{kappa:g}.npz",
        x=np.sqrt(2) * x[train],
        y=np.sqrt(2) * y[train],
        client=client[train],
    )


def arrivals_at_random(clients=100, buffer=10, rounds=200, seed=0):
    """Write in which order changes arrive in FedBuff of Ortega and Jafarkhani 2023, by their draws.

    Every client always works, for a time of |z| with a Gaussian z. Of each arrival the file has the
    round in which the client began, 0 for the start, and its number; a round has `buffer` of them.
    """
    draws = np.random.RandomState(seed)
    working = [(abs(draws.normal()), 0, client) for client in range(clients)]
    heapify(working)
    arrivals = []
    for t in range(1, rounds + 1):
        for _ in range(buffer):
            now, began, client = heappop(working)
            arrivals.append((began, client))
            heappush(working, (now + abs(draws.normal()), t, client))
    np.savez(
        FOLDER / "ortega-fedbuff.npz",
        arrivals=np.reshape(arrivals, (rounds, buffer, 2)).astype(np.int16),
    )


if __name__ == "__main__":
    linear_regression()
    mixed_records()
    equal_clients()
    unequal_clients()
    hundred_clients()
    random_environments()
    garnet_environments()
    quadratics_with_chains()
    conditioned_records(1.4)
    conditioned_records(5)
    arrivals_at_random()
