"""What theory knows of a cell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._manifest import Manifest, Overrides, _plain, read
from ._native import exact as _exact
from ._results import Results

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Bound:
    """A published bound, or equality, for a cell.

    Attributes
    ----------
    name, formula
        The source with its number, and the formula that is used.
    quantity
        What it bounds, as the columns and metrics of manifests are named: ``sq-error``.
    proved
        Whether it is a proved bound. Otherwise universal constants are 1 and higher orders are
        left out.
    values : array of shape (R,)
        Its value at each recorded round; NaN where its conditions fail.
    unmet : list of str
        The conditions that fail at the last recorded round.
    """

    name: str
    formula: str
    quantity: str
    proved: bool
    values: Array
    unmet: list[str]


class Exact:
    """What theory knows of one cell on one instance; made by :func:`exact`.

    Each value is a float, an array, or ``None`` where theory does not know it; :meth:`why` says
    why. R is the number of recorded rounds (``rounds``), N that of clients, d that of entries of
    θ. Values have the units of the problem: θ those of the features' coefficients, squared errors
    their squares. H_c is the Jacobian of client c's mean field F̄_c at θ*, A = Σ π_c H_c their
    mean, C_c the covariance of its noise at θ* and C = N Σ π_c² C_c. The sources are SCAFFLSA
    (federated linear stochastic approximation), RR (federated Richardson-Romberg), SLIDES and
    BOOK.

    The rounds of your own algorithm are traced up to the budget, or until its complete state is the
    same again, which proves that they repeat. Where it is never the same, as that of an algorithm
    which counts its rounds, limits and what is stationary assume that it goes on as in the last
    half of the rounds: an algorithm that changes after the budget has other ones. Where its rounds
    have a period, they are those of a round that is drawn from the period: ``limit``, ``bias`` and
    ``stationary_sq_error`` are means over it, and ``stationary_covariance`` is around the mean.

    Attributes
    ----------
    cell : str
        The id of the cell.
    name : str
        Its label, with the settings that distinguish it.
    rounds : array of int of shape (R,)
        The recorded rounds t.
    bounds : dict of str to Bound
        The published bounds that are about its algorithm, by name.
    program : str or None
        The rounds of your own algorithm, as a linear program in text; ``None`` where they are
        none, which :meth:`why` explains, and for built-in algorithms.
    optimum : array of shape (d,) or None
        θ*, the zero of the mean of the clients' mean fields, or the one of least length if there
        are several.
    optimum_error : float or None
        A bound on the distance of ``optimum`` from θ*, with all rounding errors.
    shares : array of shape (N,) or None
        π_c, the weight of each client in every mean; their sum is 1.
    client_optima : array of shape (N, d) or None
        θ_c*, the zero of each client's mean field; not known if a client has none or several.
    client_fields : array of shape (N, d) or None
        F̄_c(θ*), each client's mean field at θ*.
    start : array of shape (d,) or None
        θ_0.
    zeta1 : float or None
        ζ₁, the root mean square of ‖F̄_c(θ*)‖ (RR A2).
    zeta2 : float or None
        ζ₂, the root mean square of ‖H_c − A‖ (RR A2).
    mu : float or None
        μ, the smallest eigenvalue of the symmetric part of A = Σ π_c H_c.
    smoothness : float or None
        L, the largest spectral norm of a client's H_c.
    noise : float or None
        Σ π_c tr C_c, the noise at θ*.
    drift : float or None
        ‖θ* − Σ π_c θ_c^(H)‖/(γH), after local steps without noise from θ* (SLIDES).
    limit : array of shape (d,) or None
        lim E θ_t (SCAFFLSA Theorem 4.1, (24)).
    bias : array of shape (d,) or None
        lim E θ_t − θ* (SCAFFLSA Theorem 4.1, (24)).
    mean : array of shape (R, d) or None
        E θ_t, exact moments.
    covariance : array of shape (R, d, d) or None
        Cov θ_t, exact moments.
    sq_error : array of shape (R,) or None
        E‖θ_t − θ*‖², exact moments.
    sq_error_limit : array of shape (R,) or None
        E‖θ_t − lim E θ‖², exact moments.
    sq_error_average : array of shape (R,) or None
        E‖t⁻¹ Σ_{s≤t} θ_s − θ*‖², exact moments.
    sq_error_clients : array of shape (R,) or None
        E Σ π_c ‖θ_c − θ*‖² after the local steps, exact moments.
    lyapunov : array of shape (R,) or None
        E ψ_t (SCAFFLSA (51), under a coin (45)), exact moments.
    sq_coupling : array of shape (R,) or None
        E‖θ_t − θ'_t‖² of two runs on the same draws, θ' from θ*, exact moments.
    stationary_covariance : array of shape (d, d) or None
        lim Cov θ_t, exact moments.
    stationary_cross_covariance : array of shape (N, d, d) or None
        lim Cov(θ_t, ξ_c), exact moments.
    stationary_variate_covariance : array of shape (N, d, d) or None
        lim Cov(ξ_c), exact moments.
    stationary_variate_pair_covariance : array of shape (N, d, d) or None
        lim Cov(ξ_c, ξ_c'), c' the client after c, exact moments.
    stationary_sq_error : float or None
        lim E‖θ_t − θ*‖², exact moments.
    stationary_sq_error_clients : float or None
        lim E Σ π_c ‖θ_c − θ*‖², exact moments.
    stationary_lyapunov : float or None
        lim E ψ_t (SCAFFLSA (51), under a coin (45)), exact moments.
    mean_radius : float or None
        Spectral radius of a round's map of the mean.
    square_radius : float or None
        Spectral radius of a round's map of second moments: they diverge from 1 on, and it is
        infinite if they are infinite after one round.
    reach : float or None
        γ(H − 1)Nλ, λ the largest diagonal entry of A: the first order holds where it is
        small.
    first_order_bias : array of shape (d,) or None
        (γ(H − 1)/2) b_h − (γ/2N) A⁻¹∇³f[X], A X + X Aᵀ = C, without b_h under control
        variates (RR Theorem 4 with the signs that hold).
    first_order_bias_printed : array of shape (d,) or None
        The same with the signs that RR's first version prints in Table 1.
    second_order_bias : array of shape (d,) or None
        The first order and the next term, the clients' own variance within a round.
    closure_bias : array of shape (d,) or None
        The field's curvature on the exact moments of its linearisation, beyond the first
        order.
    identity_bias : array of shape (d,) or None
        The expression of RR's Proposition 2 with all its factors.
    identity_bias_printed : array of shape (d,) or None
        The expression of RR's Proposition 2 as it is printed.
    first_order_covariance : array of shape (d, d) or None
        (γ/N) X, A X + X Aᵀ = C (SLIDES, expansion of covariance).
    first_order_cross_covariance : array of shape (N, d, d) or None
        Cov(θ, ξ_c) to first order (SLIDES, with the sign that holds).
    first_order_cross_covariance_printed : array of shape (N, d, d) or None
        The same with the sign that SLIDES prints.
    first_order_variate_covariance : array of shape (N, d, d) or None
        Cov(ξ_c) = ((1 − 2/N) C_c + C/N)/H (SLIDES).
    first_order_variate_pair_covariance : array of shape (N, d, d) or None
        Cov(ξ_c, ξ_c') = (C − C_c − C_c')/(NH), c' the client after c (SLIDES).
    clt : array of shape (R,) or None
        tr(A⁻¹CA⁻ᵀ)/(NHt) of the mean of t estimates (Polyak and Juditsky 1992).
    contraction : array of shape (R,) or None
        (1 − γμ)^{Ht} ‖θ_0 − θ*‖², of ``sq_coupling`` (RR Propositions 1 and 3).
    contraction_printed : array of shape (R,) or None
        (1 − γμ)^{2Ht} ‖θ_0 − θ*‖², as SLIDES prints it.
    """

    cell: str
    name: str
    rounds: NDArray[np.int64]
    bounds: dict[str, Bound]
    program: str | None
    optimum: Array | None
    optimum_error: float | None
    shares: Array | None
    client_optima: Array | None
    client_fields: Array | None
    start: Array | None
    zeta1: float | None
    zeta2: float | None
    mu: float | None
    smoothness: float | None
    noise: float | None
    drift: float | None
    limit: Array | None
    bias: Array | None
    mean: Array | None
    covariance: Array | None
    sq_error: Array | None
    sq_error_limit: Array | None
    sq_error_average: Array | None
    sq_error_clients: Array | None
    lyapunov: Array | None
    sq_coupling: Array | None
    stationary_covariance: Array | None
    stationary_cross_covariance: Array | None
    stationary_variate_covariance: Array | None
    stationary_variate_pair_covariance: Array | None
    stationary_sq_error: float | None
    stationary_sq_error_clients: float | None
    stationary_lyapunov: float | None
    mean_radius: float | None
    square_radius: float | None
    reach: float | None
    first_order_bias: Array | None
    first_order_bias_printed: Array | None
    second_order_bias: Array | None
    closure_bias: Array | None
    identity_bias: Array | None
    identity_bias_printed: Array | None
    first_order_covariance: Array | None
    first_order_cross_covariance: Array | None
    first_order_cross_covariance_printed: Array | None
    first_order_variate_covariance: Array | None
    first_order_variate_pair_covariance: Array | None
    clt: Array | None
    contraction: Array | None
    contraction_printed: Array | None

    def __init__(self, found: tuple[Any, ...]) -> None:
        self.cell, self.name, rounds, values, bounds, (self.program, self._no_program) = found
        self.rounds = np.array(rounds, dtype=np.int64)
        self.bounds = {bound[0]: Bound(*bound) for bound in bounds}
        self._why: dict[str, str | None] = {}
        for name, shape, numbers, why in values:
            self._why[name] = why
            value = None if numbers is None else numbers.reshape(shape)
            setattr(self, name, float(value) if value is not None and not shape else value)

    def why(self, name: str) -> str | None:
        """Why a value is not known; ``None`` if it is known."""
        if name == "program":
            return self._no_program
        if name not in self._why:
            known = ", ".join(self._why)
            raise AttributeError(f"there is no value {name!r}, only {known}")
        return self._why[name]

    def known(self) -> list[str]:
        """The names of the values that are known."""
        return [name for name, why in self._why.items() if why is None]

    def __repr__(self) -> str:
        return f"Exact({self.name!r}, {len(self.known())} of {len(self._why)} values known)"


def _scalar(value: Any) -> Any:
    """A value of a selection, in which every number is a float, and a flag a text."""
    if isinstance(value, list):
        return [_scalar(item) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return float(value) if isinstance(value, int) else value


def exact(
    manifest: Manifest | Results,
    *,
    cell: str | None = None,
    label: str | None = None,
    settings: Mapping[str, Any] | None = None,
    instance: int = 0,
    name: str | None = None,
    set: Overrides = None,
    replicates: int | None = None,
    arrays: Mapping[str, Any] | None = None,
) -> Exact:
    """Compute what theory knows of one cell of a manifest; nothing is run or written.

    Parameters
    ----------
    manifest
        A path, a text or a dict, as for :func:`exactfed.run`; so are ``name``, ``set``,
        ``replicates`` and ``arrays``. Or :class:`Results`, which alone have the further candidates
        and the fresh runs of ``[tune]``: ``cell`` is then any id of their last run.
    cell, label, settings
        Which cell: the beginning of its id, its label, and settings as in a claim,
        ``{"local-steps": 10}``. Of a manifest with one cell none is needed.
    instance
        The number of the instance, from 0, where the cell has several.

    Raises
    ------
    ManifestError
        If the manifest is not valid.
    ExactfedError
        If no cell or several are selected; the message lists them.

    Examples
    --------
    >>> import exactfed as ef
    >>> e = ef.exact({
    ...     "title": "Exact", "seed": 1, "replicates": 4,
    ...     "problem": {"lms": {"dimension": 2, "clients": 5, "noise": 0.1,
    ...                         "spectrum": {"from": 0.5, "to": 1.0}}},
    ...     "start": {"zero": True},
    ...     "algorithm": {"fedavg": [{"step-size": 0.05, "local-steps": 10}]},
    ...     "budget": {"rounds": 100}, "record": {"every": 50},
    ... })
    >>> e.rounds.tolist(), e.limit.shape, e.covariance.shape
    ([0, 50, 100], (2,), (3, 2, 2))
    >>> bool(np.allclose(e.limit - e.optimum, e.bias))
    True
    >>> e.optimum_error is None, e.why("optimum_error")
    (True, 'it is known for mean losses of records; otherwise θ* solves a linear system with rounded coefficients')
    """  # noqa: E501 (the output of an example is one line)
    wanted = {key.replace("_", "-"): _scalar(_plain(v, key)) for key, v in (settings or {}).items()}
    if label is not None:
        wanted["label"] = label
    if not isinstance(manifest, Results):
        plan = read(manifest, name, set, replicates, arrays)
    elif name is set is replicates is arrays is None:
        plan = manifest._native.plan()
    else:
        raise TypeError("results have their own name, settings, replicates and arrays")
    return Exact(_exact(plan, cell or "", json.dumps(wanted), instance))
