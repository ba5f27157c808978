"""Problems whose losses are functions of the margins of records, as a base class."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._arrays import record_arrays
from ._problem import DescribedMargins, ProblemError
from ._record_files import Records, read_records

_INTERCEPTS = ("none", "first", "last")
_WEIGHTS = ("equal", "records")
#: Newton's method ends before, where its steps no longer make the gradient smaller.
_MOST_STEPS = 100
_SMALLEST_STEP = 2.0**-20


class MarginLoss(ABC):
    """A base class for problems with a loss of your own, of the margins of records of two classes.

    The loss of client k, which has n_k records with features x_i and labels y_i of -1 and 1, is
    f_k(θ) = 1/n_k Σ_i φ(y_i x_iᵀθ) + l2/2 ‖θ‖². A subclass with the decorator :func:`problem`
    states φ and its derivative φ′:

    - ``loss(margin)``: φ at each margin y_i x_iᵀθ of an array of shape (n,). It need not be convex;
    - ``slope(margin)``: φ′, in the same form. Each number must depend on its own margin alone;
    - ``curvature(margin)``: φ″ of a convex φ, which may be missing. With it θ* is known: it is the
      :meth:`minimiser`.

    The parameters below are keys of the manifest. A subclass may have an ``__init__`` of its own,
    whose parameters are the keys instead. It calls ``super().__init__`` with some of the parameters
    below, or :meth:`hold_records` with records that it makes.

    Parameters
    ----------
    file
        The records: LIBSVM text with any ending, also with ``.gz``, or an ``.npz`` file with the
        arrays ``x`` (n, d) and ``y`` (n,). A relative path begins at the folder of the Python file
        that defines the class; in a notebook, at the working directory. Features are stored with
        their zeros. Labels have two different values, of which the greater is 1 and the other -1.
        The content of the file is not in the ids of cells: raise the version of the problem when it
        changes.
    clients
        N. The records are divided into N parts in the order of the file; the sizes of the parts
        differ by at most 1, and the first parts are the larger ones. With 0 there is one client for
        each value of the array ``client`` (n,) of the ``.npz`` file, in sorted order.
    drop_rest
        Whether all N clients get the same number of records, so that the last ones of the file,
        fewer than N, are left out.
    weights
        How much clients count in every mean: ``"equal"``, or in proportion to their ``"records"``.
    features
        The number of features without the intercept; with 0 it is that of the file, which is the
        largest index in a LIBSVM file.
    intercept
        Where a feature that is always 1 is added: ``"none"``, ``"first"`` or, as in built-in
        problems, ``"last"``. The penalty includes its coefficient.
    l2
        The weight of the penalty l2/2 ‖θ‖².

    Attributes
    ----------
    clients, dim, records, shares
        N, d, n_k of each client, and their weights, as :func:`problem` says.
    l2
        The weight of the penalty.
    signed
        For each client an array (n_k, d) of the rows y_i x_iᵀ, which cannot be written to.

    Raises
    ------
    ProblemError
        If the file or a key is not as above.

    Examples
    --------
    >>> from os.path import abspath
    >>> import numpy as np
    >>> import exactfed as ef
    >>> @ef.problem("Squared hinge", kind="squared-hinge", source="a session without a file")
    ... class SquaredHinge(ef.MarginLoss):
    ...     def loss(self, margin):
    ...         return np.maximum(1 - margin, 0) ** 2
    ...
    ...     def slope(self, margin):
    ...         return -2 * np.maximum(1 - margin, 0)
    >>> x = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0], [1.0, 1.0]])
    >>> np.savez("four.npz", x=x, y=np.array([0, 1, 1, 0]))
    >>> hinge = SquaredHinge(abspath("four.npz"), clients=2, l2=0.1)
    >>> hinge.value(np.zeros((2, 2)), np.array([0, 1]))
    array([1., 1.])
    >>> hinge.grad(np.zeros((1, 2)), np.array([1]), np.array([1]))
    array([[2., 2.]])
    """

    clients: int
    dim: int
    records: list[int]
    shares: list[int] | None
    l2: float
    signed: list[NDArray[np.float64]]

    #: What the sources of subclasses do not show: raise it when the numbers below change.
    _exactfed_base: ClassVar = "exactfed.MarginLoss, version 1"
    #: The folder of the file that defines the class; ``None`` in a notebook.
    _folder: ClassVar[Path | None] = None
    #: φ″ of a subclass that has it.
    curvature: ClassVar[Callable[..., Any] | None] = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        # Now, since the module of a file that a manifest names is gone when instances are made.
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        cls._folder = Path(file).resolve().parent if file else None

    def __init__(
        self,
        file: str,
        clients: int = 0,
        drop_rest: bool = False,
        weights: str = "equal",
        features: int = 0,
        intercept: str = "none",
        l2: float = 0.0,
    ):
        if intercept not in _INTERCEPTS:
            raise ProblemError(f'intercept is "{intercept}"; expected {_listed(_INTERCEPTS)}')
        path = (self._folder or Path()) / file
        try:
            x, y, client_of_record = self.read(path)
        except ValueError as error:
            raise ProblemError(f"file: {error}") from None
        if features:
            x = _padded(x, features, path)
        if intercept != "none":
            x = np.insert(x, 0 if intercept == "first" else x.shape[1], 1.0, axis=1)
        if not clients and client_of_record is None:
            raise ProblemError(
                f"clients is 0: state the number of clients, since {path} has no array client that "
                "says which client has which record"
            )
        divided = clients or client_of_record
        self.hold_records(x, y, divided, drop_rest=drop_rest, weights=weights, l2=l2)

    @abstractmethod
    def loss(self, margin: NDArray[np.float64]) -> NDArray[np.float64]:
        """The loss φ at each margin, in an array of the same shape (n,)."""

    @abstractmethod
    def slope(self, margin: NDArray[np.float64]) -> NDArray[np.float64]:
        """The derivative φ′ at each margin, in an array of the same shape (n,)."""

    def read(self, path: Path) -> Records:
        """The records of a file: ``x`` (n, d), ``y`` (n,), and the client of each record or None.

        Override it to read another format, or to change the features. A ``ValueError`` says what is
        wrong with the file.
        """
        return read_records(path)

    def hold_records(
        self,
        x: ArrayLike,
        y: ArrayLike,
        clients: Any,
        *,
        drop_rest: bool = False,
        weights: str = "equal",
        l2: float = 0.0,
    ) -> None:
        """Divide records among the clients, for a subclass that makes its records.

        Parameters
        ----------
        x, y
            The features (n, d) and the labels (n,), of two different values.
        clients
            N, or the client of each record (n,), as numbers or texts.
        drop_rest, weights, l2
            As in the class.
        """
        if weights not in _WEIGHTS:
            raise ProblemError(f'weights is "{weights}"; expected {_listed(_WEIGHTS)}')
        if not 0 <= l2 < np.inf:
            raise ProblemError(f"l2 is {l2}; it must be 0 or more")
        given = {"x": x, "y": y} if np.ndim(clients) == 0 else {"x": x, "y": y, "client": clients}
        try:
            arrays = dict(record_arrays(given, "records"))
        except (TypeError, ValueError) as error:
            raise ProblemError(str(error)) from None
        if "x" not in arrays:
            raise ProblemError('records["x"] is a sparse matrix; expected an array (n, d)')
        parts = _parts(len(arrays["x"]), arrays.get("client", clients), drop_rest)
        rows = arrays["x"] * _signs(arrays["y"])[:, None]
        rows = rows[np.concatenate(parts)]
        # The library has a copy, which would not follow.
        rows.flags.writeable = False
        self.clients, self.dim, self.l2 = len(parts), rows.shape[1], float(l2)
        self.records = [len(part) for part in parts]
        self.shares = self.records if weights == "records" else None
        self.signed = np.split(rows, np.cumsum(self.records)[:-1])
        self._held = _native.NativeMargins(rows, self.records, self.l2)

    def margins(self, theta: NDArray[np.float64], client: int) -> NDArray[np.float64]:
        """The margins of all records of a client at one θ of shape (d,); their shape is (n_k,)."""
        # Without the threads of a matrix product, on whose number its bits may depend.
        return np.einsum("id,d->i", self.signed[client], theta)

    def grad(
        self, theta: NDArray[np.float64], k: NDArray[np.int64], draw: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The gradient of one record of each row's client, of shape (M, d), as of any problem."""
        return self._held.fields(theta, k, draw, self.slope)

    def mean_grad(self, theta: NDArray[np.float64], k: NDArray[np.int64]) -> NDArray[np.float64]:
        """The gradient over all records of each row's client, of shape (M, d)."""
        return self._held.mean_fields(theta, k, self.slope)

    def value(self, theta: NDArray[np.float64], k: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean loss of each row's client, of shape (M,)."""
        return self._held.losses(theta, k, self.loss)

    def _describe_margins(self) -> DescribedMargins | None:
        """The records and the functions of margins, from which the library computes all else.

        ``None`` if a subclass has a ``grad``, ``mean_grad`` or ``value`` of its own.
        """
        for name in ("grad", "mean_grad", "value"):
            if getattr(type(self), name) is not getattr(MarginLoss, name):
                return None
        return DescribedMargins(self._held, self.slope, self.loss)

    def mean_hessian(self, theta: NDArray[np.float64], k: NDArray[np.int64]) -> NDArray[np.float64]:
        """The Hessian of each row's client, of shape (M, d, d). It needs ``curvature``."""
        hessians = np.empty((len(k), self.dim, self.dim))
        for hessian, point, client in zip(hessians, theta, k, strict=True):
            signed = self.signed[client]
            curvatures = self.curvature(self.margins(point, client))
            hessian[:] = (signed.T * curvatures) @ signed / len(signed)
        return hessians + self.l2 * np.eye(self.dim)

    def minimiser(self, clients: ArrayLike | None = None) -> NDArray[np.float64]:
        """The minimiser of the mean loss of some clients by their weights, of shape (d,).

        It is found by Newton's method from 0, whose steps are halved until the gradient falls. It
        uses :meth:`mean_grad` and :meth:`mean_hessian`, and with them ``curvature``.

        Parameters
        ----------
        clients
            The indices of the clients; by default all.

        Raises
        ------
        ProblemError
            If the Hessian is not positive definite, so that there may be several minimisers, or
            none.
        """
        k = np.arange(self.clients) if clients is None else np.asarray(clients)
        weights = np.ones(len(k)) if self.shares is None else np.take(self.shares, k)
        weights = weights / weights.sum()
        theta = np.zeros(self.dim)
        gradient = self._mean_gradient(theta, k, weights)
        for _ in range(_MOST_STEPS):
            step = self._newton_step(theta, gradient, k, weights)
            scale = 1.0
            while scale >= _SMALLEST_STEP:
                candidate = theta - scale * step
                next_gradient = self._mean_gradient(candidate, k, weights)
                if np.linalg.norm(next_gradient) < np.linalg.norm(gradient):
                    break
                scale /= 2
            else:
                # No step makes the gradient smaller: it is 0 up to rounding.
                break
            theta, gradient = candidate, next_gradient
        return theta

    def _newton_step(
        self,
        theta: NDArray[np.float64],
        gradient: NDArray[np.float64],
        k: NDArray[np.int64],
        weights: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """The inverse of the mean Hessian of the clients ``k``, times the gradient."""
        hessian = np.zeros((self.dim, self.dim))
        for client, weight in zip(k, weights, strict=True):
            hessian += weight * self.mean_hessian(theta[None], np.array([client]))[0]
        if not _is_positive(hessian):
            raise ProblemError(
                "the minimiser is not known, since the mean Hessian is not positive definite. With "
                "l2 above 0 a convex loss has one minimiser; otherwise leave curvature out"
            )
        return np.linalg.solve(hessian, gradient)

    def _mean_gradient(
        self, theta: NDArray[np.float64], k: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The gradient of the mean loss of the clients ``k`` by these weights, of shape (d,)."""
        return np.einsum("k,kd->d", weights, self.mean_grad(np.tile(theta, (len(k), 1)), k))

    @property
    def optimum(self) -> Callable[[], NDArray[np.float64]] | None:
        """What computes θ*, if the subclass has ``curvature``."""
        return None if self.curvature is None else self.minimiser


def _is_positive(matrix: NDArray[np.float64]) -> bool:
    """Whether a symmetric matrix is positive definite by more than the rounding errors."""
    try:
        diagonal = np.diag(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        return False
    rounding = len(matrix) * np.finfo(np.float64).eps
    return bool(diagonal.min() ** 2 > rounding * diagonal.max() ** 2)


def _listed(words: tuple[str, ...]) -> str:
    """Words in quotes, the last one after "or"."""
    quoted = [f'"{word}"' for word in words]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _padded(x: NDArray[np.float64], features: int, path: Path) -> NDArray[np.float64]:
    """The features with columns of zeros at the end, so that there are as many as stated."""
    missing = features - x.shape[1]
    if missing < 0:
        raise ProblemError(f"features is {features}, but {path} has {x.shape[1]}")
    return np.hstack([x, np.zeros((len(x), missing))])


def _signs(labels: NDArray[Any]) -> NDArray[np.float64]:
    """1 for the greater of two labels, and -1 for the other."""
    different = np.unique(labels)
    if len(different) != 2:
        shown = ", ".join(str(label) for label in different[:5])
        more = ", …" if len(different) > 5 else ""
        raise ProblemError(
            f"the records have {len(different)} different labels, {shown}{more}; margins need two, "
            "such as -1 and 1, or 0 and 1"
        )
    return np.where(labels == different[1], 1.0, -1.0)


def _parts(records: int, clients: Any, drop_rest: bool) -> list[NDArray[np.int64]]:
    """The indices of the records of each client.

    ``clients`` is their number, or the client of each record.
    """
    if np.ndim(clients) > 0:
        if drop_rest:
            raise ProblemError("drop-rest is for a number of clients; the records name theirs")
        _, place, counts = np.unique(clients, return_inverse=True, return_counts=True)
        # The records of a client stay in their order.
        return np.split(np.argsort(place, kind="stable"), np.cumsum(counts)[:-1])
    if not 1 <= clients <= records:
        raise ProblemError(f"clients is {clients}; it must be from 1 to the {records} records")
    kept = records - records % clients if drop_rest else records
    return np.array_split(np.arange(kept), clients)
