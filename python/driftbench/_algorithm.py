"""Algorithms in Python: a function or a class that a decorator makes known to manifests."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import runpy
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, overload

from . import _native
from ._errors import DriftbenchError

T = TypeVar("T", bound=Callable[..., Any])

#: Parameters that are no keys of their own: what they are called in manifests.
_COMMON = {"theta": "start", "gamma": "step-size", "H": "local-steps"}
_TYPES = {bool: "flag", int: "whole", float: "number", str: "text"}
_NAMES = {"bool": bool, "int": int, "float": float, "str": str}


class AlgorithmError(DriftbenchError):
    """What is wrong with an algorithm where it is defined."""


class Algorithm:
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

    def __init__(self, function: Callable[..., Any], definition: dict[str, Any], patience: int):
        self.function = function
        self.kind: str = definition["kind"]
        self.name: str = definition["name"]
        self.version: str = definition["version"]
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", self.kind)
        self._parameters = frozenset(_parameters(function))
        try:
            _native.register_algorithm(json.dumps(definition), self._start, patience)
        except ValueError as error:
            raise AlgorithmError(str(error)) from None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<driftbench algorithm {self.kind}: {self.name}, version {self.version}>"

    def _start(
        self, clients: Any, theta: Any, gamma: float, steps: int, values: dict[str, Any]
    ) -> Iterator[Any]:
        common = {"theta": theta, "gamma": gamma, "H": steps}
        given = {name: common[name] for name in _COMMON if name in self._parameters}
        made = self.function(clients, **given, **values)
        if inspect.isclass(self.function):
            return _rounds(made)
        if not hasattr(made, "__next__"):
            raise TypeError(
                f"{self.name} returned {type(made).__name__}: an algorithm is a generator, which "
                "yields θ after every round, or a class whose method round() returns it"
            )
        return made


def _rounds(algorithm: Any) -> Iterator[Any]:
    while True:
        yield algorithm.round()


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a function or a class after the first, which is the clients."""
    parameters = list(inspect.signature(function).parameters.values())
    return {parameter.name: parameter for parameter in parameters[1:]}


def _key(parameter: inspect.Parameter) -> dict[str, Any]:
    """The key of a manifest that a parameter is."""
    name, default = parameter.name, parameter.default
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise AlgorithmError(f"the parameter {parameter} can be no key of a manifest: name each one")
    annotation = parameter.annotation
    annotation = _NAMES.get(annotation, annotation) if isinstance(annotation, str) else annotation
    if default is parameter.empty:
        of = annotation if annotation in _TYPES else float
    else:
        of = annotation if annotation in _TYPES else type(default)
        if of is float and type(default) is int:
            default = float(default)
        if of not in _TYPES or type(default) is not of:
            raise AlgorithmError(
                f"the parameter {name} has the default {default!r}: a key of a manifest is a "
                "number, a string, True or False, of the type that its annotation says"
            )
        if of is int and default < 0:
            raise AlgorithmError(
                f"the parameter {name} has the default {default}: whole numbers are 0 or more; "
                f"write {float(default)} if it is any number"
            )
    key: dict[str, Any] = {"name": name.replace("_", "-"), "type": _TYPES[of]}
    if default is not parameter.empty:
        key["default"] = default
    return key


def _source(function: Callable[..., Any], source: str | None) -> str:
    if source is None:
        try:
            source = textwrap.dedent(inspect.getsource(function))
        except (OSError, TypeError):
            raise AlgorithmError(
                "its source cannot be found, and results are identified by it: define it in a "
                "file or a notebook, or give source="
            ) from None
    return "\n".join(line.rstrip() for line in source.strip().splitlines()) + "\n"


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
        The version of the numbers. Together with the source of the function it enters the ids of
        cells; raise it when something else changes that the function calls.
    communications
        Communications of a round.
    vectors
        Vectors of d numbers that each client of the cohort and the server send each other in a
        round. :meth:`Clients.charge` counts what a single round sends instead.
    calls_per_step
        Oracle calls that a client makes for each of its local steps. It only plans how many
        rounds a budget of gradients pays for; what is done is counted.
    patience
        The seconds that a round may take in Python, local steps apart, before it is ended and its
        cell fails.
    source
        The source, where Python cannot find it.

    Raises
    ------
    AlgorithmError
        If a parameter can be no key, a name is taken, or the source cannot be found.

    Examples
    --------
    >>> import driftbench as db
    >>> @db.algorithm("FedAvg of my own")
    ... def fedavg(clients, theta, gamma, H):
    ...     while True:
    ...         theta = clients.mean(clients.local_steps(theta, gamma, H))
    ...         yield theta
    >>> fedavg.kind
    'fedavg-of-my-own'
    """

    def decorate(function: T) -> Algorithm:
        shown = name if isinstance(name, str) else getattr(function, "__name__", "")
        parameters = _parameters(function)
        definition = {
            "kind": kind or re.sub(r"[^a-z0-9]+", "-", shown.lower()).strip("-"),
            "name": shown,
            "version": str(version),
            "source": _source(function, source),
            "keys": [_key(p) for p in parameters.values() if p.name not in _COMMON],
            "has-local-steps": "H" in parameters,
            "price": {
                "communications": communications,
                "vectors": vectors,
                "calls-per-step": calls_per_step,
            },
        }
        return Algorithm(function, definition, max(1, round(patience)))

    return decorate(name) if callable(name) else decorate


def load_code(code: os.PathLike[str]) -> None:
    """Run a file of Python, or import a module, which registers the algorithms that it defines."""
    name = os.fspath(code)
    if name.endswith(".py"):
        runpy.run_path(name, run_name="driftbench_algorithms")
    else:
        importlib.import_module(name)
