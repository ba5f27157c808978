"""Algorithms in Python: a function or a class that a decorator makes known to manifests."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar, overload

from . import _native, _trace
from ._definition import Defined
from ._errors import ExactfedError
from ._native import Clients

T = TypeVar("T", bound=Callable[..., Any])

#: All algorithms of this process, by kind.
_defined: dict[str, Algorithm] = {}


class AlgorithmError(ExactfedError):
    """What is wrong with an algorithm where it is defined."""


class Algorithm(Defined):
    """An algorithm that manifests may name as ``[[algorithm.<kind>]]``.

    Calling it calls the function or class that it was made of.

    Attributes
    ----------
    kind
        Its name in manifests.
    name
        Its name in figures.
    version
        The version of its numbers.
    function
        What it was made of.
    """

    _family = "algorithm"
    _error = AlgorithmError
    _common: ClassVar = {"theta": None, "gamma": "step-size", "H": "local-steps"}
    _all = _defined

    def __init__(
        self,
        function: Callable[..., Any],
        definition: dict[str, Any],
        source: str | None,
        patience: int,
        theory: bool,
    ):
        self._theory, self._patience = theory, patience
        super().__init__(function, definition, source)

    def _arguments(self) -> tuple[Any, ...]:
        return self._patience, self._theory

    def _register_as(self, definition: str) -> None:
        _native.register_algorithm(definition, self._start, self._program, self._patience)

    @classmethod
    def _parameters_of(cls, function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
        """The parameters of a function or a class after the first, which is the clients."""
        parameters = list(inspect.signature(function).parameters.values())
        return {parameter.name: parameter for parameter in parameters[1:]}

    def _start(
        self, clients: Any, theta: Any, gamma: float, steps: int, values: dict[str, Any]
    ) -> Iterator[Any]:
        common = {"theta": theta, "gamma": gamma, "H": steps}
        given = {name: common[name] for name in self._common if name in self._parameters}
        values = self._arguments_of(values)
        made = self.function(clients, **given, **values)
        if inspect.isclass(self.function):
            return _rounds(made)
        if not hasattr(made, "__next__"):
            raise TypeError(
                f"{self.name} returned {type(made).__name__}: an algorithm is a generator, which "
                "yields θ after every round, or a class whose method round() returns it"
            )
        return made

    def _program(
        self,
        clients: Clients,
        again: Clients,
        theta: Any,
        gamma: float,
        steps: int,
        values: dict[str, Any],
        rounds: int,
    ) -> tuple[bool, str]:
        """The rounds as a linear program in JSON, or why they are none."""
        if not self._theory:
            return False, f"theory=False switches the exact theory of {self.name} off"

        def start(clients: Any, theta: Any) -> Iterator[Any]:
            return self._start(clients, theta, gamma, steps, dict(values))

        try:
            return True, _trace.checked(start, clients, again, theta, rounds).json()
        except _trace.NotTraced as refusal:
            return False, f"there is no exact theory of {self.name}: {refusal}"


def _rounds(algorithm: Any) -> Iterator[Any]:
    while True:
        yield algorithm.round()


@overload
def algorithm(name: T, /) -> Algorithm: ...
@overload
def algorithm(
    name: str | None = None,
    *,
    kind: str | None = None,
    version: str = "1",
    communications: int = 1,
    vectors: int = 2,
    calls_per_step: int = 1,
    patience: float = 60.0,
    theory: bool = True,
    source: str | None = None,
) -> Callable[[T], Algorithm]: ...
def algorithm(
    name: Any = None,
    *,
    kind: str | None = None,
    version: str = "1",
    communications: int = 1,
    vectors: int = 2,
    calls_per_step: int = 1,
    patience: float = 60.0,
    theory: bool = True,
    source: str | None = None,
) -> Any:
    """Make a generator function or a class an algorithm that manifests may name.

    A function receives the :class:`Clients` of a run, and by name those of these that it has as
    parameters: ``theta`` (θ_0, of shape (d,)), ``gamma`` (γ, ``step-size`` in the manifest), ``H``
    (``local-steps``). Every other parameter is a key of ``[[algorithm.<kind>]]``, with ``-`` for
    ``_``, of the type of its annotation or default. It yields θ_1, θ_2, … (arrays of shape (d,)),
    one after every round, as often as it is asked to. A class receives the same, and its method
    ``round()`` returns them.

    Parameters
    ----------
    name
        The name in figures; by default that of the function.
    kind
        The name in manifests; by default the name in lower-case letters.
    version
        The version of the numbers. It enters the ids of cells, together with the source of the
        function, of the functions and classes of the same module that it uses, and the constants
        and arrays that it names; raise it when anything else changes.
    communications
        Communications of a round.
    vectors
        Vectors of d numbers that each participating client and the server send each other in a
        round. :meth:`Clients.charge` counts what all send together in a single round instead.
    calls_per_step
        Gradients that a client evaluates, in all, for each gradient of its local steps. It only
        plans how many rounds a budget of gradients pays for; what is done is counted.
    patience
        The seconds that a round may take in Python, local steps apart, before it is ended and its
        cell fails; the warning names them.
    theory
        Whether its rounds are traced for the exact theory of linear problems (:func:`exact`).
    source
        The source, where Python cannot find it.

    Raises
    ------
    AlgorithmError
        If a parameter can be no key, a name is taken, or the source cannot be found.

    Examples
    --------
    >>> import exactfed as ef
    >>> @ef.algorithm("FedAvg of my own")
    ... def fedavg(clients, theta, gamma, H):
    ...     while True:
    ...         theta = clients.mean(clients.local_steps(theta, gamma, H))
    ...         yield theta
    >>> fedavg.kind
    'fedavg-of-my-own'
    """

    def decorate(function: T) -> Algorithm:
        definition = {
            **Algorithm._define(function, name, kind, version),
            "has-local-steps": "H" in Algorithm._parameters_of(function),
            "price": {
                "communications": communications,
                "vectors": vectors,
                "calls-per-step": calls_per_step,
            },
        }
        return Algorithm(function, definition, source, max(1, round(patience)), theory)

    return decorate(name) if callable(name) else decorate
