"""FedProx with a server step, a baseline of Jhunjhunwala et al. 2023 (arXiv:2301.09604)."""

import exactfed as ef


@ef.algorithm("FedProx", kind="fedprox-server")
def fedprox_server(clients, theta, gamma, H, proximal: float, server_step: float):
    """The server goes ``server_step`` times as far as the mean of the clients."""
    while True:
        ends = clients.local_steps(theta, gamma, H, proximal=proximal)
        theta = theta + server_step * (clients.mean(ends) - theta)
        yield theta
