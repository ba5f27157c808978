"""Metrics in Python: a function that a decorator makes known to manifests."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, overload

from . import _native
from ._definition import Defined
from ._errors import ExactfedError

T = TypeVar("T", bound=Callable[..., Any])

#: All metrics of this process, by kind.
_defined: dict[str, Metric] = {}


class MetricError(ExactfedError):
    """What is wrong with a metric where it is defined."""


class Metric(Defined):
    """A metric that manifests may list in ``metrics`` of ``[record]``, and name as a built-in one.

    Calling it calls the function that it was made of.

    Attributes
    ----------
    kind
        Its name in manifests.
    name
        How figures and pages write it.
    version
        The version of its numbers.
    function
        What it was made of.
    """

    _family = "metric"
    _error = MetricError
    _naming = '"…"'
    _common: ClassVar = {}
    _all = _defined

    def _register_as(self, definition: str) -> None:
        _native.register_metric(definition, self.function)


@overload
def metric(name: T, /) -> Metric: ...
@overload
def metric(
    name: str | None = None,
    *,
    symbol: str | None = None,
    version: str = "1",
    source: str | None = None,
) -> Callable[[T], Metric]: ...
def metric(
    name: Any = None,
    *,
    symbol: str | None = None,
    version: str = "1",
    source: str | None = None,
) -> Any:
    """Make a function a metric that manifests may list in ``metrics`` of ``[record]``.

    The function receives θ_t, of shape (d,), at each recorded round, and returns a number, of which
    less is better. With a second parameter it also receives where the clients are at the end of
    their local steps, of shape (N, d); algorithms that do not tell, as those in Python, do not have
    such a metric. The metric may be drawn, ranked, claimed and tuned like a built-in one. At most
    eight metrics are known in a process.

    Parameters
    ----------
    name
        The name in manifests, lower-case letters and digits with ``-`` between words; by default
        that of the function.
    symbol
        How figures and pages write it; by default the name.
    version
        The version of the numbers. It enters the ids of cells that record the metric, together with
        the source of the function, of the functions and classes of the same module that it uses,
        and the constants and arrays that it names; raise it when anything else changes.
    source
        The source, where Python cannot find it.

    Raises
    ------
    MetricError
        If the name is no name of a metric or is taken, or the source cannot be found.

    Examples
    --------
    >>> import exactfed as ef
    >>> import numpy as np
    >>> @ef.metric("largest-entry", symbol="max |θ|")
    ... def largest_entry(theta):
    ...     return np.max(np.abs(theta))
    >>> largest_entry.kind
    'largest-entry'
    """

    def decorate(function: T) -> Metric:
        own = getattr(function, "__name__", "")
        parameters = list(inspect.signature(function).parameters.values())
        if not 1 <= len(parameters) <= 2:
            raise MetricError(
                f"the metric {name or own} has {len(parameters)} parameters: θ, and if it reads "
                "them the ends of the clients"
            )
        kind = name if isinstance(name, str) else own.replace("_", "-")
        definition = {
            "kind": kind,
            "name": symbol or kind,
            "version": str(version),
            "reads-clients": len(parameters) == 2,
        }
        return Metric(function, definition, source)

    return decorate(name) if callable(name) else decorate
