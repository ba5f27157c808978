"""exactfed: federated optimisation algorithms from TOML manifests, compared with exact theory.

:func:`run` runs a manifest and returns its :class:`Results`; :func:`load` opens those of an earlier
run; :func:`plan` and :func:`check` look at a manifest without running it; :func:`diff` compares two
sets of results; :func:`exact` is what theory knows of a cell. The command line is :func:`main`, or
``python -m exactfed``.
"""

from __future__ import annotations

from ._algorithm import Algorithm, AlgorithmError, algorithm
from ._command_line import main
from ._definition import UnbiasedCompressor
from ._diff import Diff, diff
from ._errors import (
    CellError,
    CellFailedWarning,
    Diagnostic,
    ExactfedError,
    ExactfedWarning,
    ManifestError,
)
from ._exact import Bound, Exact, exact
from ._margin_loss import MarginLoss
from ._metric import Metric, MetricError, metric
from ._native import (
    Clients,
    Compressor,
    ControlVariates,
    Draw,
    ErrorFeedback,
    __version__,
    identity,
    natural,
    natural_dithering,
    qsgd,
    rand_k,
    sign,
    top_k,
)
from ._plan import Plan, check, plan
from ._problem import Problem, ProblemError, problem
from ._results import Results, Verification, load
from ._run import run

__all__ = [
    "Algorithm",
    "AlgorithmError",
    "Bound",
    "CellError",
    "CellFailedWarning",
    "Clients",
    "Compressor",
    "ControlVariates",
    "Diagnostic",
    "Diff",
    "Draw",
    "ErrorFeedback",
    "Exact",
    "ExactfedError",
    "ExactfedWarning",
    "ManifestError",
    "MarginLoss",
    "Metric",
    "MetricError",
    "Plan",
    "Problem",
    "ProblemError",
    "Results",
    "UnbiasedCompressor",
    "Verification",
    "__version__",
    "algorithm",
    "check",
    "diff",
    "exact",
    "identity",
    "load",
    "main",
    "metric",
    "natural",
    "natural_dithering",
    "plan",
    "problem",
    "qsgd",
    "rand_k",
    "run",
    "sign",
    "top_k",
]
