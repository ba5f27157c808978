"""Makes data files of the manifests in the folder above from the settings of publications.

`python make.py` writes the .npz files next to this script (numpy). They are too large to be part of
this project.
"""

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


if __name__ == "__main__":
    linear_regression()
