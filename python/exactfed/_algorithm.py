"""Algorithms in Python: a function or a class that a decorator makes known to manifests."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import os
import re
import runpy
import textwrap
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar, overload
from weakref import WeakKeyDictionary

import numpy as np

from . import _native, _threads, _trace
from ._errors import ExactfedError
from ._native import Clients

T = TypeVar("T", bound=Callable[..., Any])

#: Parameters that are no keys of their own: what they are called in manifests.
_COMMON = {"theta": "start", "gamma": "step-size", "H": "local-steps"}
_TYPES = {bool: "flag", int: "whole", float: "number", str: "text"}
_NAMES = {"bool": bool, "int": int, "float": float, "str": str}
_CONSTANTS = (bool, int, float, complex, str, bytes, tuple, frozenset, type(None), np.generic)

#: All algorithms of this process, by kind.
_defined: dict[str, Algorithm] = {}


class AlgorithmError(ExactfedError):
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

    def __init__(
        self,
        function: Callable[..., Any],
        definition: dict[str, Any],
        source: str | None,
        patience: int,
        theory: bool,
    ):
        self.function, self._theory = function, theory
        self.kind: str = definition["kind"]
        self.name: str = definition["name"]
        self.version: str = definition["version"]
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", self.kind)
        self._parameters = frozenset(_parameters(function))
        self._definition, self._given, self._patience = definition, source, patience
        # Where it is defined: a definition that is run again replaces itself.
        self._place = (function.__module__, getattr(function, "__qualname__", ""))
        self._where = _where(function)
        other = _defined.get(self.kind)
        if other is not None and other._place != self._place:
            if other._known() != self._known():
                raise AlgorithmError(
                    f"this process has defined {self.kind} already, with other code "
                    f"({other._where}): give one of the two another name in manifests, "
                    '@exactfed.algorithm("…", kind="…")'
                )
            # The same file, imported and named by a manifest: a reload replaces both.
            self._place = other._place
        self._register()
        _defined[self.kind] = self
        _threads.inherit()

    def _known(self) -> dict[str, Any]:
        """Its definition as it is now: what its source uses may have another value."""
        return {**self._definition, "source": _source(self.function, self._given)}

    def _register(self) -> None:
        definition = json.dumps(self._known())
        try:
            _native.register_algorithm(definition, self._start, self._program, self._patience)
        except ValueError as error:
            raise AlgorithmError(str(error)) from None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<exactfed algorithm {self.kind}: {self.name}, version {self.version}>"

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


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a function or a class after the first, which is the clients."""
    parameters = list(inspect.signature(function).parameters.values())
    return {parameter.name: parameter for parameter in parameters[1:]}


def _where(function: Callable[..., Any]) -> str:
    """The file and the line of a definition, or its module."""
    try:
        return f"{inspect.getsourcefile(function)}:{inspect.getsourcelines(function)[1]}"
    except (OSError, TypeError):
        return function.__module__


def _key(parameter: inspect.Parameter) -> dict[str, Any]:
    """The key of a manifest that a parameter is."""
    name, default = parameter.name, parameter.default
    for common in ("gamma", "H"):
        if name.replace("_", "-") == _COMMON[common]:
            raise AlgorithmError(
                f"the parameter {name} is a key that all algorithms have: name it {common}"
            )
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise AlgorithmError(
            f"the parameter {parameter} can be no key of a manifest: name each one"
        )
    annotation: Any = parameter.annotation
    annotation = _NAMES.get(annotation, annotation) if isinstance(annotation, str) else annotation
    of: Any = annotation if annotation in _TYPES else float
    if default is not parameter.empty:
        of = annotation if annotation in _TYPES else type(default)
        if of is float and type(default) is int:
            default = float(default)
        if of not in _TYPES or type(default) is not of:
            raise AlgorithmError(
                f"the parameter {name} has the default {default!r}: a key of a manifest is a "
                "number, a string, True or False, of the type that its annotation says"
            )
        if isinstance(default, int) and default < 0:
            raise AlgorithmError(
                f"the parameter {name} has the default {default}: whole numbers are 0 or more; "
                f"write {float(default)} if it is any number"
            )
    key: dict[str, Any] = {"name": name.replace("_", "-"), "type": _TYPES[of]}
    if default is not parameter.empty:
        key["default"] = default
    return key


def _source(function: Callable[..., Any], given: str | None) -> str:
    """The source, followed by the constants and the functions beside it that it uses."""
    if given is not None:
        return _tidy(given)
    source = _text(function)
    if source is None:
        raise AlgorithmError(
            "its source cannot be found, and results are identified by it: define it in a "
            "file or a notebook, or give source="
        )
    used: dict[str, str] = {}
    _collect(function, function.__module__, used)
    return source + "".join(f"\n{used[name]}" for name in sorted(used))


#: The sources of functions and classes when they were first asked for: a file may change while its
#: code runs.
_texts: WeakKeyDictionary[Any, str | None] = WeakKeyDictionary()


def _text(function: Callable[..., Any]) -> str | None:
    if function not in _texts:
        try:
            _texts[function] = _tidy(inspect.getsource(function))
        except (OSError, TypeError):
            _texts[function] = None
    return _texts[function]


def _tidy(source: str) -> str:
    lines = textwrap.dedent(source).strip().splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _collect(function: Any, module: str, used: dict[str, str]) -> None:
    """Collect what a function or the methods of a class use, by name."""
    parts = vars(function).values() if inspect.isclass(function) else [function]
    if inspect.isclass(function):
        parts = [*parts, *(base for base in function.__bases__ if base.__module__ == module)]
    for part in parts:
        part = inspect.unwrap(getattr(part, "__func__", part))
        if inspect.isclass(part) and part is not function:
            _add(part.__name__, part, module, used)
        if not inspect.isfunction(part):
            continue
        names = inspect.getclosurevars(part)
        for name, value in {**names.globals, **names.nonlocals}.items():
            _add(name, value, module, used)


def _add(name: str, value: Any, module: str, used: dict[str, str]) -> None:
    if name in used:
        return
    if isinstance(value, Algorithm):
        value = value.function
    if isinstance(value, np.ndarray):
        content = np.ascontiguousarray(value).tobytes()
        digest = hashlib.sha256(content).hexdigest()[:16]
        used[name] = f"# {name} = array of {value.dtype}, shape {value.shape}, sha256 {digest}\n"
    elif isinstance(value, _CONSTANTS):
        used[name] = f"# {name} = {value!r}\n"
    elif callable(value) and getattr(value, "__module__", None) == module:
        text = _text(value)
        if text is not None:
            used[name] = text
            _collect(value, module, used)


def register_again() -> None:
    """Make all algorithms known as they are now."""
    for known in list(_defined.values()):
        known._register()


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
        shown = name if isinstance(name, str) else getattr(function, "__name__", "")
        parameters = _parameters(function)
        definition = {
            "kind": kind or re.sub(r"[^a-z0-9]+", "-", shown.lower()).strip("-"),
            "name": shown,
            "version": str(version),
            "keys": [_key(p) for p in parameters.values() if p.name not in _COMMON],
            "has-local-steps": "H" in parameters,
            "price": {
                "communications": communications,
                "vectors": vectors,
                "calls-per-step": calls_per_step,
            },
        }
        return Algorithm(function, definition, source, max(1, round(patience)), theory)

    return decorate(name) if callable(name) else decorate


class CodeError(Exception):
    """Why Python code that a manifest names cannot be loaded."""


def load_code(code: os.PathLike[str]) -> None:
    """Run a file of Python, or import a module, which registers the algorithms that it defines."""
    name = os.fspath(code)
    if not name.endswith(".py"):
        importlib.import_module(name)
        return
    if not os.path.isfile(name):
        raise CodeError(f"there is no file {name}")
    known = set(_defined)
    # A name of its own, so that a definition of the file replaces itself when it is run again.
    module = f"exactfed_algorithms.{os.path.abspath(name)}"
    try:
        runpy.run_path(name, run_name=module)
    except Exception as error:
        # The user's part of the traceback.
        error.__traceback__ = _below(error.__traceback__, name)
        raise
    own = any(known.function.__module__ == module for known in _defined.values())
    if not own and set(_defined) == known:
        raise CodeError(f"{name} defines no algorithm: no @exactfed.algorithm is in it")


def _below(found: TracebackType | None, file: str) -> TracebackType | None:
    """The traceback from the first frame of a file on."""
    inner = found
    while inner is not None and inner.tb_frame.f_code.co_filename != file:
        inner = inner.tb_next
    return inner or found
