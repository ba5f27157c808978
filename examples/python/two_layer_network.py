"""A two-layer network whose first layer is trained.

The network of S. S. Du, X. Zhai, B. Póczos and A. Singh, "Gradient Descent Provably Optimizes
Over-parameterized Neural Networks", ICLR 2019, (1): f(W, a, x) = m^(−1/2) Σ_r a_r max(w_rᵀx, 0),
with signs a_r that stay as they are. θ is W − W₀, the m × p numbers by which W has moved from its
Gaussian start W₀, so that runs begin at 0. The loss ½ (f − y)² is not convex, and θ* is not known.
"""

import exactfed as ef
import numpy as np


@ef.problem("Two-layer network", kind="two-layer-network")
class TwoLayerNetwork:
    """Inputs of length 1 and Gaussian labels; the inputs of a client are near a point of its own.

    With ``spread`` 0 all clients have one distribution of inputs.
    """

    def __init__(
        self,
        rng,
        hidden: int = 200,
        inputs: int = 10,
        clients: int = 4,
        records: int = 3,
        spread: float = 0.0,
    ):
        self.clients, self.dim, self.records = clients, hidden * inputs, records
        self.start = rng.standard_normal((hidden, inputs))
        self.signs = rng.choice([-1.0, 1.0], hidden) / np.sqrt(hidden)
        centres = spread * rng.standard_normal((clients, 1, inputs))
        x = centres + rng.standard_normal((clients, records, inputs))
        self.x = x / np.sqrt(np.sum(x**2, axis=2, keepdims=True))
        self.y = rng.standard_normal((clients, records))

    def weights(self, theta):
        """W of each row, of shape (M, m, p)."""
        return self.start + theta.reshape(len(theta), *self.start.shape)

    def grad(self, theta, k, draw):
        """Of shape (M, d): (f − y) a_r 1[w_rᵀx > 0] x / √m for each hidden unit r."""
        x = self.x[k, draw]
        before = np.einsum("mrp,mp->mr", self.weights(theta), x)
        outputs = np.einsum("mr,r->m", np.maximum(before, 0.0), self.signs)
        pull = (outputs - self.y[k, draw])[:, None] * self.signs * (before > 0)
        return np.einsum("mr,mp->mrp", pull, x).reshape(theta.shape)

    def value(self, theta, k):
        """The mean loss of each row's client, of shape (M,)."""
        before = np.einsum("mrp,mip->mir", self.weights(theta), self.x[k])
        outputs = np.einsum("mir,r->mi", np.maximum(before, 0.0), self.signs)
        return np.mean((outputs - self.y[k]) ** 2, axis=1) / 2
