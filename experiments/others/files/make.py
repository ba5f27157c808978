"""Makes the data files of the manifests in the folder above from the settings of publications.

`python make.py` writes the .npz files next to this script (numpy). No file of another project is
needed. README.md says where the published numbers come from.
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


if __name__ == "__main__":
    fedavg_theorem4()
    quadratic_game()
