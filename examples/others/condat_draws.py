"""CompressedScaffnew of Condat, Agarský and Richtárik 2022 with draws that a seed gives."""

import exactfed as ef
import numpy as np
from exactfed.algorithms.compressed_scaffnew import compressed_scaffnew


class SeededClients:
    """The clients of a run, but for the generator of the algorithm's own draws."""

    def __init__(self, clients, seed):
        self.clients, self.rng = clients, np.random.default_rng(seed)

    def __getattr__(self, name):
        """Whatever else the algorithm asks of the clients."""
        return getattr(self.clients, name)


@ef.algorithm("CompressedScaffnew", kind="compressed-scaffnew-seeded", theory=False)
def seeded(clients, theta, gamma, probability: float, copies: int, seed: int = 0):
    """The algorithm that ships, with coins and orders of ``numpy.random.default_rng(seed)``."""
    return compressed_scaffnew(SeededClients(clients, seed), theta, gamma, probability, copies)
