"""What a local step costs on logistic regression that is built in, and on one of your own.

    python python/benchmarks/problems.py [COMPILER]

Prints microseconds of processor time per local step of all 10 clients of 20 replicates on dense
records with 123 features, the median of several differences of a long and a short run, with one
thread, and their ratio to the built-in problem. COMPILER is a C compiler, ``cc`` by default;
without one the compiled gradient is left out.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Threads of linear algebra would add their processor time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import exactfed as ef
import numpy as np

CLIENTS, RECORDS, FEATURES, L2 = 10, 3256, 123, 1e-3
STEPS = 50
LONG, SHORT = 1020, 20
REPEATS = 5

MANIFEST = """
title = "The cost of a step"
seed = 1
replicates = 20
{problem}
[start]
zero = true

[budget]
rounds = {rounds}

[record]
points = 2
metrics = ["sq-gradient"]
optimum = false

[[algorithm.fedavg]]
step-size = 0.01
local-steps = {steps}
"""

SOURCE = """
#include <math.h>
#include <stdint.h>

void grad(const double *theta, int64_t k, int64_t draw, double *out, void *data) {
    const double *x = (const double *)data + (k * RECORDS + draw) * FEATURES;
    double margin = 0;
    for (int i = 0; i < FEATURES; i++) margin += x[i] * theta[i];
    double slope = -1 / (1 + exp(margin));
    for (int i = 0; i < FEATURES; i++) out[i] = slope * x[i] + L2 * theta[i];
}
"""


def records() -> tuple[np.ndarray, np.ndarray]:
    """Features with about 14 ones in a row, as those of a9a, and labels of 0 and 1."""
    rng = np.random.default_rng(1)
    x = (rng.random((CLIENTS * RECORDS, FEATURES)) < 14 / FEATURES).astype(float)
    y = (x @ rng.standard_normal(FEATURES) + rng.standard_normal(len(x)) > 0).astype(float)
    return x, y


class Own:
    """What the problems below share: signed records of each client, and the loss."""

    clients, dim, records = CLIENTS, FEATURES, RECORDS

    def __init__(self):
        x, y = records()
        self.signed = (x * (2 * y - 1)[:, None]).reshape(CLIENTS, RECORDS, FEATURES)

    def mean_grad(self, theta, k):
        slopes = -1 / (1 + np.exp(np.einsum("mid,md->mi", self.signed[k], theta)))
        return np.einsum("mi,mid->md", slopes, self.signed[k]) / RECORDS + L2 * theta


@ef.problem("with NumPy", kind="with-numpy")
class WithNumPy(Own):
    def grad(self, theta, k, draw):
        x = self.signed[k, draw]
        slopes = -1 / (1 + np.exp(np.einsum("md,md->m", x, theta)))
        return slopes[:, None] * x + L2 * theta


@ef.problem("with margins", kind="with-margins")
class WithMargins(ef.MarginLoss):
    def __init__(self):
        x, y = records()
        self.hold_records(x, y, CLIENTS, l2=L2)

    def loss(self, margin):
        return np.logaddexp(0, -margin)

    def slope(self, margin):
        return -1 / (1 + np.exp(margin))


def define_compiled(folder: Path, compiler: str) -> None:
    """Compile the gradient and register a problem with it."""
    (folder / "logistic.c").write_text(SOURCE)
    library = folder / "logistic.so"
    sizes = [f"-DRECORDS={RECORDS}", f"-DFEATURES={FEATURES}", f"-DL2={L2}"]
    flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", *sizes]
    subprocess.run([compiler, *flags, "-o", library, folder / "logistic.c", "-lm"], check=True)
    function = ctypes.CDLL(str(library)).grad

    @ef.problem("compiled", kind="compiled", source=SOURCE)
    class Compiled(Own):
        grad = function

        def __init__(self):
            super().__init__()
            self.data = self.signed


def seconds(problem: str, rounds: int) -> float:
    """The processor time of a run."""
    text = MANIFEST.format(problem=problem, rounds=rounds, steps=STEPS)
    with tempfile.TemporaryDirectory() as out:
        begin = time.process_time()
        ef.run(text, out=out, threads=1, force=True)
        return time.process_time() - begin


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    x, y = records()
    np.savez(folder / "records.npz", x=x, y=y, client=np.repeat(np.arange(CLIENTS), RECORDS))
    built_in = (
        f"[problem.logistic-dataset]\nl2 = {L2}\nsampling = 'SAMPLING'\n"
        f"dataset = {{ file = '{folder}/records.npz', split = {{ column = 'client' }}, "
        "storage = 'dense' }"
    )
    problems = {
        "built in": built_in.replace("SAMPLING", "with-replacement"),
        "reshuffled": built_in.replace("SAMPLING", "reshuffled"),
        "MarginLoss": "[problem.with-margins]",
        "NumPy": "[problem.with-numpy]",
    }
    if compiler := shutil.which(sys.argv[1] if len(sys.argv) > 1 else "cc"):
        define_compiled(folder, compiler)
        problems["compiled"] = "[problem.compiled]"
    took: dict[str, list[float]] = {name: [] for name in problems}
    # One after the other, since the speed of a machine changes.
    for _ in range(REPEATS):
        for name, problem in problems.items():
            apart = seconds(problem, LONG) - seconds(problem, SHORT)
            took[name].append(apart / ((LONG - SHORT) * STEPS) * 1e6)
    print("microseconds a step of 200 rows, and the median ratio to the built-in problem")
    for name, times in took.items():
        ratios = [one / base for one, base in zip(times, took["built in"], strict=True)]
        print(f"  {name:11} {statistics.median(times):7.1f} {statistics.median(ratios):6.2f}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
