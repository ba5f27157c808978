"""Makes files of the manifests in the folder above from the settings of publications.

`python make.py` writes the .npz files and karimireddy.csv next to this script (numpy). No file of
another project is needed. README.md says where the published numbers come from.
"""

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent


def save(name, matrices, vectors):
    """Write clients with the mean fields A θ − b: `matrices` is (N, d, d), `vectors` (N, d)."""
    ones = np.ones((len(vectors), 1))
    np.savez(FOLDER / name, A=matrices[:, None], b=vectors[:, None], p=ones)


def fedavg_theorem4(clients=5, length=4, penalty=2e-4):
    """Write the quadratics of Theorem 4 of Li, Huang, Yang, Wang and Zhang 2020.

    The unknowns are a chain of clients · length + 1. Client k holds the differences of `length`
    neighbours, the first client also the start of the chain and the linear term, and the last one
    its end.
    """
    dimension = clients * length + 1
    matrices = np.zeros((clients, dimension, dimension))
    for client in range(clients):
        for i in range(client * length, (client + 1) * length):
            matrices[client, i : i + 2, i : i + 2] += [[2.0, -2.0], [-2.0, 2.0]]
        matrices[client] += 2.0 * penalty * np.eye(dimension)
    matrices[0, 0, 0] += 2.0
    matrices[-1, -1, -1] += 2.0
    vectors = np.zeros((clients, dimension))
    vectors[0, 0] = 2.0
    save("li-theorem4.npz", matrices, vectors)


def quadratic_game(clients=20, records=100, half=10, lowest=0.01, highest=1.0, seed=20230608):
    """Write a quadratic game as in Zhang, Choudhury, Stich and Loizou 2023, section 5.1.

    x minimises and y maximises. Each client has the mean of `records` games with random
    eigenvalues and directions. The authors' code draws its game without a seed, so that this one
    is another draw of the same distribution.
    """
    rng = np.random.default_rng(seed)

    def mean_matrix(least):
        total = np.zeros((half, half))
        for _ in range(records):
            values = rng.uniform(least, highest, half)
            directions, _ = np.linalg.qr(rng.standard_normal((half, half)))
            total += (directions * values) @ directions.T
        return total / records

    matrices = np.zeros((clients, 2 * half, 2 * half))
    vectors = np.zeros((clients, 2 * half))
    for client in range(clients):
        own, other, coupling = mean_matrix(lowest), mean_matrix(lowest), mean_matrix(0.0)
        matrices[client] = np.block([[own, coupling], [-coupling, other]])
        vectors[client] = -rng.standard_normal((records, 2 * half)).mean(axis=0)
    save("zhang-game.npz", matrices, vectors)


def lower_bound(gradients=(1, 10, 100), rounds=(1, 5, 20), start=1.0):
    """Write numbers of runs on f_1 = x² + G x and f_2 = −G x of Karimireddy et al. 2020.

    FedAvg has a closed form: K steps of γ multiply the distance of x from the minimiser −G/2 of
    f_1 by (1 − 2γ)^K, and move x by γ K G on f_2. Scaffold is their Algorithm 1 with option II,
    full gradients and control variates that start at 0. Numbers with |x| below G/1000 are left
    out: there the digits that the gradients ±G take from x are no longer negligible.
    """

    def fedavg(x, large, gamma, steps):
        first = (1 - 2 * gamma) ** steps * (x + large / 2) - large / 2
        return (first + x + gamma * steps * large) / 2

    def scaffold(x, own, large, gamma, steps):
        local = np.array([x, x])
        for _ in range(steps):
            gradients = np.array([2 * local[0] + large, -large])
            local = local - gamma * (gradients - own + own.mean())
        return local.mean(), own - own.mean() + (x - local) / (steps * gamma)

    lines = ["label,gradient-heterogeneity,local-steps,step-size,round,value"]
    for large in gradients:
        for steps in (2, 10):
            for gamma in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5):
                ends = {"FedAvg": start, "Scaffold": start}
                own = np.zeros(2)
                for t in range(1, max(rounds) + 1):
                    ends["FedAvg"] = fedavg(ends["FedAvg"], large, gamma, steps)
                    ends["Scaffold"], own = scaffold(ends["Scaffold"], own, large, gamma, steps)
                    lines += [
                        f"{label},{large},{steps},{gamma},{t},{float(x * x)!r}"
                        for label, x in ends.items()
                        if t in rounds and abs(x) >= large / 1000
                    ]
    (FOLDER / "karimireddy.csv").write_text("\n".join(lines) + "\n")


def federated_least_squares(clients=100, records=100, features=4, penalty=1e-3, seed=20201012):
    """Write least squares as in the code of Al-Shedivat, Gillenwater, Xing and Rostamizadeh 2021.

    Each client has records of its own linear model, with Gaussian features, coefficients uniform
    on [0, 100] and no noise; a column of ones is appended. The draw is another one than theirs.
    """
    rng = np.random.default_rng(seed)
    dimension = features + 1
    matrices = np.zeros((clients, dimension, dimension))
    vectors = np.zeros((clients, dimension))
    for client in range(clients):
        rows = np.hstack([rng.standard_normal((records, features)), np.ones((records, 1))])
        labels = rows[:, :features] @ (100.0 * rng.random(features))
        matrices[client] = rows.T @ rows / records + penalty * np.eye(dimension)
        vectors[client] = rows.T @ labels / records
    save("al-shedivat-fedavg.npz", matrices, vectors)


if __name__ == "__main__":
    fedavg_theorem4()
    quadratic_game()
    lower_bound()
    federated_least_squares()
