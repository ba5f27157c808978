"""A small experiment that most tests share."""

from __future__ import annotations

from pathlib import Path

import exactfed as ef
import matplotlib
import pytest

matplotlib.use("agg")

ROOT = Path(__file__).resolve().parents[2]

MANIFEST = """\
title = "What do local steps cost FedAvg and Scaffold?"
seed = 1
replicates = 8

[problem.quadratic]
dimension = 3
clients = 6
spectrum = { from = 0.1, to = 1.0 }
gradient-heterogeneity = 3.0
hessian-heterogeneity = 0.05
noise = 0.1

[start]
offset = 1.0

[budget]
local-steps = 2000

[record]
points = 20

[[algorithm.fedavg]]
step-size = [0.02, 0.05]
local-steps = [10, 100]

[[algorithm.scaffold]]
step-size = [0.02, 0.05]
local-steps = [10, 100]

[[figure.convergence]]
id = "curves"
panels = ["local-steps"]
only = { step-size = 0.05 }
theory = ["exact-moments"]

[[figure.scaling]]
id = "over-gamma"
x = "step-size"

[[figure.winners]]
id = "map"
x = "step-size"
y = "local-steps"

[[claim.less]]
id = "scaffold-below"
statement = "With 100 local steps Scaffold ends below FedAvg"
left = { label = "Scaffold", local-steps = 100, step-size = 0.05 }
right = { label = "FedAvg", local-steps = 100, step-size = 0.05 }
"""


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> ef.Results:
    """The results of the manifest, in a folder of their own."""
    return ef.run(MANIFEST, out=tmp_path_factory.mktemp("small") / "results", name="small")
