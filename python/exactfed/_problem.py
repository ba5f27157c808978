"""Problems in Python: a class that a decorator makes known to manifests."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, overload

import numpy as np

from . import _native
from ._definition import Defined
from ._errors import ExactfedError

T = TypeVar("T", bound=type)

#: All problems of this process, by kind.
_defined: dict[str, Problem] = {}


class ProblemError(ExactfedError):
    """What is wrong with a problem where it is defined, or with an instance of it."""


class Problem(Defined):
    """A problem that manifests may name as ``[problem.<kind>]``.

    Calling it calls the class that it was made of.

    Attributes
    ----------
    kind
        Its name in manifests.
    name
        Its name on pages.
    version
        The version of its numbers.
    function
        The class that it was made of.
    """

    _family = "problem"
    _error = ProblemError
    _common: ClassVar = {"rng": None, "seed": None}
    _all = _defined

    def __init__(self, made_of: type, definition: dict[str, Any], source: str | None):
        if not inspect.isclass(made_of):
            raise ProblemError("@exactfed.problem is for a class, whose instances are problems")
        super().__init__(made_of, definition, source)

    def _register_as(self, definition: str) -> None:
        uses_seed = not self._parameters.isdisjoint(self._common)
        _native.register_problem(definition, self._build, uses_seed)

    def _source(self) -> str:
        """The source, followed by the version of a base class of this package."""
        base = getattr(self.function, "_exactfed_base", None)
        return super()._source() + (f"\n# {base}\n" if isinstance(base, str) else "")

    def _getters(self) -> list[Callable[..., Any]]:
        """The functions behind the properties of the class."""
        found: list[Callable[..., Any]] = []
        for part in vars(self.function).values():
            if isinstance(part, functools.cached_property):
                found.append(part.func)
            elif isinstance(part, property) and part.fget is not None:
                found.append(part.fget)
        return found

    def _build(self, values: dict[str, Any], seed: int) -> _Described:
        """An instance for the values of the keys, described for the library."""
        given = self._arguments_of(values)
        if "seed" in self._parameters:
            given["seed"] = seed
        if "rng" in self._parameters:
            given["rng"] = np.random.Generator(np.random.PCG64(seed))
        return _described(self.function(**given))


@dataclass(frozen=True)
class _RecordMemory:
    """Where the records lie that a compiled function reads, in bytes."""

    first: int
    client_bytes: int
    record_bytes: int
    #: How many bytes a record has.
    length: int


@dataclass(frozen=True)
class DescribedMargins:
    """A loss of the margins of records, as the library takes it."""

    records: _native.NativeMargins
    slope: Callable[..., Any]
    loss: Callable[..., Any]


@dataclass(frozen=True)
class _Described:
    """An instance of a problem as the library takes it."""

    clients: int
    dim: int
    #: How many records each client has; without it draws are seeds.
    records: list[int] | None
    shares: list[float] | None
    #: The field: a function of Python, a loss of margins, or the address of a compiled function
    #: and of its data, with the place of its records.
    grad: Callable[..., Any] | None
    margins: DescribedMargins | None
    address: int
    data: int
    record_memory: _RecordMemory | None
    mean_grad: Callable[..., Any] | None
    value: Callable[..., Any] | None
    #: θ*, or what computes it.
    optimum: Any
    #: What owns the memory at the addresses.
    instance: Any


def _described(made: Any) -> _Described:
    """Read the attributes of an instance, each with one error if it is not what it should be."""
    clients, dim = _whole(made, "clients"), _whole(made, "dim")
    grad = getattr(made, "grad", None)
    address = _address(grad)
    margins = made._describe_margins() if hasattr(made, "_describe_margins") else None
    if not address and not margins and not callable(grad):
        raise ProblemError("grad is missing: a method grad(theta, k, draw), or a compiled function")
    records = _records(made, clients)
    return _Described(
        clients=clients,
        dim=dim,
        records=records,
        shares=_shares(made),
        grad=None if address or margins else grad,
        margins=margins,
        address=address,
        data=_data(made) if address else 0,
        record_memory=_record_memory(getattr(made, "data", None), clients, records),
        mean_grad=_function(made, "mean_grad"),
        value=_function(made, "value"),
        optimum=getattr(made, "optimum", None),
        instance=made,
    )


def _whole(made: Any, name: str) -> int:
    """An attribute that is a whole number."""
    value = getattr(made, name, None)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 0:
        return int(value)
    raise ProblemError(f"{name} is {value!r}: an instance of a problem states it as a whole number")


def _records(made: Any, clients: int) -> list[int] | None:
    """How many records each client has, from one number for all or one for each."""
    value = getattr(made, "records", None)
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind not in "iu" or array.ndim > 1 or (array < 0).any():
        raise ProblemError(
            "records says how many records each client has: a whole number, or one for each client"
        )
    return [int(array)] * clients if array.ndim == 0 else [int(count) for count in array]


def _shares(made: Any) -> list[float] | None:
    value = getattr(made, "shares", None)
    if value is None:
        return None
    try:
        return [float(share) for share in value]
    except (TypeError, ValueError) as error:
        raise ProblemError(f"shares must be one number for each client: {error}") from None


def _function(made: Any, name: str) -> Callable[..., Any] | None:
    """A method that may be missing."""
    value = getattr(made, name, None)
    if value is None or callable(value):
        return value
    raise ProblemError(f"{name} is {type(value).__name__}, and no method")


def _address(function: Any) -> int:
    """The address of a compiled function; 0 of anything else.

    It is a ``cfunc`` of numba (which has the attribute ``address``), a function of ctypes, or a
    pointer of cffi.
    """
    if isinstance(address := getattr(function, "address", None), int):
        return address
    return _pointer(function) or 0


def _pointer(value: Any) -> int | None:
    """The address that a pointer of ctypes or cffi holds; ``None`` of anything else."""
    if type(value).__module__ == "_cffi_backend":
        ffi = importlib.import_module("cffi").FFI()
        return int(ffi.cast("uintptr_t", value))
    if not any(base.__module__ in ("_ctypes", "ctypes") for base in type(value).__mro__):
        return None
    ctypes = importlib.import_module("ctypes")
    try:
        return ctypes.cast(value, ctypes.c_void_p).value or 0
    except (TypeError, ctypes.ArgumentError):
        # A number or a structure, and no pointer.
        return None


def _data(made: Any) -> int:
    """The address that a compiled function gets as its last argument; 0 without ``data``."""
    value = getattr(made, "data", None)
    if value is None:
        return 0
    if isinstance(value, np.ndarray):
        return int(value.ctypes.data)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    address = _pointer(value)
    if address is None:
        raise ProblemError(
            "data is what the compiled function gets: an array, an address, or a pointer"
        )
    return address


def _record_memory(data: Any, clients: int, records: list[int] | None) -> _RecordMemory | None:
    """Where ``data[k, draw]`` lies, if the first two axes of an array are clients and records."""
    if not isinstance(data, np.ndarray) or data.ndim < 2 or not records:
        return None
    if data.shape[:2] != (clients, max(records)):
        return None
    client_bytes, record_bytes, *_ = data.strides
    length = data.itemsize if data.ndim == 2 else data[0, 0].nbytes
    return _RecordMemory(int(data.ctypes.data), client_bytes, record_bytes, length)


def _quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function at a drawn point, where it may overflow, without a warning of NumPy."""
    with np.errstate(all="ignore"):
        return function(*arguments)


@overload
def problem(name: T, /) -> Problem: ...
@overload
def problem(
    name: str | None = None,
    *,
    kind: str | None = None,
    version: str = "1",
    source: str | None = None,
) -> Callable[[T], Problem]: ...
def problem(
    name: Any = None,
    *,
    kind: str | None = None,
    version: str = "1",
    source: str | None = None,
) -> Any:
    """Make a class a problem that manifests may name.

    Every parameter of the class is a key of ``[problem.<kind>]``, with ``-`` for ``_``, of the type
    of its annotation or default; but ``rng`` is a :class:`numpy.random.Generator` from which data
    are to be made, and ``seed`` a whole number for the same purpose. An instance has

    - ``clients`` and ``dim``: N and d, which must not depend on the seed;
    - ``records``: how many records each client has, one number or one for each client. A draw is
      then the index of a record, uniformly. Without it a draw is 64 random bits (``uint64``);
    - ``grad(theta, k, draw)``: the gradient of M rows, of shape (M, d), at ``theta`` of shape
      (M, d), of the clients ``k`` and with the draws ``draw`` of shape (M,). Rows must not depend
      on each other, and everything random must come from the draw. Or a compiled function,
      ``void grad(const double *theta, int64_t k, int64_t draw, double *out, void *data)``, as a
      ``cfunc`` of numba, a function of ctypes or a pointer of cffi, which is called for one row at
      a time, by several threads, without Python's interpreter. It gets ``data``, an array or a
      pointer. Where ``data[k, draw]`` are the records, in an array whose first two axes are clients
      and records, the next one is read from memory while the function is called.

    and may have

    - ``value(theta, k)``: the mean loss of the clients ``k``, of shape (M,), at ``theta`` of shape
      (M, d). It is recorded as ``train-loss``;
    - ``mean_grad(theta, k)``: the mean of ``grad`` over all draws, of shape (M, d). By default it
      is the mean over all records;
    - ``optimum``: θ*, of shape (d,), or a method that returns it, which is called only where
      something needs θ*;
    - ``shares``: the weights of the clients in every mean, N positive numbers.

    Parameters
    ----------
    name
        The name on pages; by default that of the class.
    kind
        The name in manifests; by default the name in lower-case letters.
    version
        The version of the numbers. It enters the ids of cells, together with the source of the
        class, as for :func:`algorithm`; raise it when anything else changes, such as a data file.
    source
        The source, where Python cannot find it.

    Raises
    ------
    ProblemError
        If a parameter can be no key, a name is taken, or the source cannot be found.

    Examples
    --------
    >>> import numpy as np
    >>> import exactfed as ef
    >>> @ef.problem("Location", kind="location", source="a session without a file")
    ... class Location:
    ...     def __init__(self, rng, clients: int = 4, dim: int = 2):
    ...         self.clients, self.dim, self.records = clients, dim, 10
    ...         self.points = rng.standard_normal((clients, 10, dim))
    ...
    ...     def grad(self, theta, k, draw):
    ...         return theta - self.points[k, draw]
    >>> Location.kind
    'location'
    """

    def decorate(made_of: Any) -> Problem:
        return Problem(made_of, Problem._define(made_of, name, kind, version), source)

    return decorate(name) if inspect.isclass(name) else decorate
