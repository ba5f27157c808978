"""What algorithms, problems and metrics in Python have in common.

A decorator makes them known to manifests. The parameters of a function or a class become keys of
its table, and a hash of its source enters the ids of cells.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import os
import re
import runpy
import textwrap
from collections.abc import Callable
from types import CodeType, FunctionType, TracebackType
from typing import Annotated, Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from . import _threads
from ._errors import ExactfedError
from ._native import Compressor

#: The annotation of a parameter that must be unbiased.
UnbiasedCompressor = Annotated[Compressor, "unbiased"]
_COMPRESSORS = {Compressor: "compressor", UnbiasedCompressor: "unbiased-compressor"}
_TYPES: dict[Any, str] = {bool: "flag", int: "whole", float: "number", str: "text", **_COMPRESSORS}
_NAMES: dict[str, Any] = {"bool": bool, "int": int, "float": float, "str": str}
_MODULES = ("", "ef.", "exactfed.")
_NAMES |= {f"{module}Compressor": Compressor for module in _MODULES}
_NAMES |= {f"{module}UnbiasedCompressor": UnbiasedCompressor for module in _MODULES}
_CONSTANTS = (bool, int, float, complex, str, bytes, tuple, frozenset, type(None), np.generic)
_CONSTANTS += (Compressor,)


class Defined:
    """A function or a class that manifests may name. A subclass says what it is to exactfed.

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

    #: "algorithm", "problem" or "metric": the name of the decorator.
    _family: ClassVar[str]
    #: What is raised if manifests cannot name it.
    _error: ClassVar[type[ExactfedError]]
    #: The arguments of the decorator by which manifests get another name for it.
    _naming: ClassVar[str] = '"…", kind="…"'
    #: Parameters that are no keys of their own, with the key of manifests that each stands for.
    _common: ClassVar[dict[str, str | None]]
    #: All of this process, by kind.
    _all: ClassVar[dict[str, Any]]

    def __init__(
        self, function: Callable[..., Any], definition: dict[str, Any], source: str | None
    ):
        self.function = function
        self.kind: str = definition["kind"]
        self.name: str = definition["name"]
        self.version: str = definition["version"]
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", self.kind)
        self._parameters = frozenset(self._parameters_of(function))
        self._definition, self._given = definition, source
        # Where it is defined: a definition that is run again replaces itself.
        self._place = (function.__module__, getattr(function, "__qualname__", ""))
        self._where = where(function)
        other = self._all.get(self.kind)
        if other is not None and other._place != self._place:
            if other._known() != self._known():
                raise self._error(
                    f"this process has defined {self.kind} already, with other code "
                    f"({other._where}): give one of the two another name in manifests, "
                    f"@exactfed.{self._family}({self._naming})"
                )
            # The same file, imported and named by a manifest: a reload replaces both.
            self._place = other._place
        self._register()
        self._all[self.kind] = self
        _threads.inherit()

    def _known(self) -> dict[str, Any]:
        """Its definition as it is now: what its source uses may have another value."""
        return {**self._definition, "source": self._source()}

    def _register(self) -> None:
        """Make it known to the library as it is now."""
        try:
            self._register_as(json.dumps(self._known()))
        except ValueError as error:
            raise self._error(str(error)) from None

    def _register_as(self, definition: str) -> None:
        """Make it known to the library under this definition, which is JSON."""
        raise NotImplementedError

    @classmethod
    def _parameters_of(cls, function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
        """The parameters of a function or a class from which keys are made."""
        return dict(inspect.signature(function).parameters)

    @classmethod
    def _define(
        cls, function: Callable[..., Any], name: Any, kind: str | None, version: str
    ) -> dict[str, Any]:
        """The definition of a function or a class: its names, its version and its keys."""
        shown = name if isinstance(name, str) else getattr(function, "__name__", "")
        parameters = cls._parameters_of(function).values()
        return {
            "kind": kind or re.sub(r"[^a-z0-9]+", "-", shown.lower()).strip("-"),
            "name": shown,
            "version": str(version),
            "keys": [cls._key(p) for p in parameters if p.name not in cls._common],
        }

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<exactfed {self._family} {self.kind}: {self.name}, version {self.version}>"

    @classmethod
    def _key(cls, parameter: inspect.Parameter) -> dict[str, Any]:
        """The key of a manifest that a parameter is."""
        name, default = parameter.name, parameter.default
        for common, called in cls._common.items():
            if name.replace("_", "-") == called:
                raise cls._error(
                    f"the parameter {name} is a key that all {cls._family}s have: name it {common}"
                )
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise cls._error(
                f"the parameter {parameter} can be no key of a manifest: name each one"
            )
        annotation: Any = parameter.annotation
        if isinstance(annotation, str):
            annotation = _NAMES.get(annotation, annotation)
        of: Any = annotation if annotation in _TYPES else float
        if default is not parameter.empty:
            of = annotation if annotation in _TYPES else type(default)
            if of is float and type(default) is int:
                default = float(default)
            if of in _COMPRESSORS and type(default) is str:
                default = cls._compressor(name, default)
            wanted = Compressor if of in _COMPRESSORS else of
            if of not in _TYPES or type(default) is not wanted:
                raise cls._error(
                    f"the parameter {name} has the default {default!r}: a key of a manifest is a "
                    "number, a string, True or False, or a Compressor, of the type that its "
                    "annotation says"
                )
            if of is UnbiasedCompressor and not default.unbiased:
                raise cls._error(f"the parameter {name} has the default {default}: it is biased")
            if isinstance(default, int) and default < 0:
                raise cls._error(
                    f"the parameter {name} has the default {default}: whole numbers are 0 or more; "
                    f"write {float(default)} if it is any number"
                )
        key: dict[str, Any] = {"name": name.replace("_", "-"), "type": _TYPES[of]}
        if default is not parameter.empty:
            key["default"] = str(default) if of in _COMPRESSORS else default
        return key

    @classmethod
    def _compressor(cls, name: str, text: str) -> Compressor:
        """The default of a parameter that is a compressor."""
        try:
            return Compressor(text)
        except ValueError as error:
            raise cls._error(f"the default of the parameter {name}: {error}") from None

    def _arguments_of(self, values: dict[str, Any]) -> dict[str, Any]:
        """The arguments that the values of keys stand for: a manifest has compressors as text."""
        types = {key["name"].replace("-", "_"): key["type"] for key in self._definition["keys"]}
        return {
            name: Compressor(value) if types[name] in _COMPRESSORS.values() else value
            for name, value in values.items()
        }

    def _source(self) -> str:
        """The source, followed by the constants and the functions of its module that it uses."""
        if self._given is not None:
            return _tidy(self._given)
        source = _text(self.function)
        if source is None:
            raise self._error(
                "its source cannot be found, and results are identified by it: define it in a "
                "file or a notebook, or give source="
            )
        used: dict[str, str] = {}
        for part in (self.function, *self._getters()):
            _collect(part, self.function.__module__, used)
        return source + "".join(f"\n{used[name]}" for name in sorted(used))

    def _arguments(self) -> tuple[Any, ...]:
        """What makes it again, after its function, its definition and its source."""
        return ()

    def _getters(self) -> list[Callable[..., Any]]:
        """Functions of a class that are none of its methods, and that its results depend on."""
        return []


def where(function: Callable[..., Any]) -> str:
    """The file and the line of a definition, or its module."""
    try:
        return f"{inspect.getsourcefile(function)}:{inspect.getsourcelines(function)[1]}"
    except (OSError, TypeError):
        return function.__module__


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
        for name, value in _values_used(part).items():
            _add(name, value, module, used)


def _values_used(function: FunctionType) -> dict[str, Any]:
    """What a function names of its module and of the functions around it, by name.

    It may be a function, a lambda or a comprehension inside of it that does.
    """
    names = set()
    open_codes = [function.__code__]
    while open_codes:
        code = open_codes.pop()
        names.update(code.co_names)
        open_codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    of_module = function.__globals__
    values = {name: of_module[name] for name in sorted(names) if name in of_module}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            # The name has no value yet, as that of the function itself while it is decorated.
            continue
    return values


def _add(name: str, value: Any, module: str, used: dict[str, str]) -> None:
    if name in used:
        return
    if isinstance(value, Defined):
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


def families() -> list[type[Defined]]:
    """What there may be several of by kind: algorithms, problems and metrics."""
    return Defined.__subclasses__()


def all_defined() -> list[Defined]:
    """All algorithms, problems and metrics of this process."""
    return [one for family in families() for one in family._all.values()]


def register_again() -> None:
    """Make all algorithms, problems and metrics known as they are now."""
    for one in all_defined():
        one._register()


class CodeError(Exception):
    """Why Python code that a manifest names cannot be loaded."""


def load_code(code: os.PathLike[str]) -> None:
    """Run a file of Python, or import a module, which registers what it defines."""
    name = os.fspath(code)
    if not name.endswith(".py"):
        importlib.import_module(name)
        register_again()
        return
    if not os.path.isfile(name):
        raise CodeError(f"there is no file {name}")
    known = {family: set(family._all) for family in families()}
    # A name of its own, so that a definition of the file replaces itself when it is run again.
    module = f"exactfed_algorithms.{os.path.abspath(name)}"
    try:
        runpy.run_path(name, run_name=module)
    except Exception as error:
        # The user's part of the traceback.
        error.__traceback__ = _below(error.__traceback__, name)
        raise
    # Functions below a definition that it uses were not there when it was made.
    register_again()
    own = any(one.function.__module__ == module for one in all_defined())
    if not own and all(set(family._all) == kinds for family, kinds in known.items()):
        raise CodeError(
            f"{name} defines no algorithm, problem or metric: neither @exactfed.algorithm nor "
            "@exactfed.problem nor @exactfed.metric is in it"
        )


def _below(found: TracebackType | None, file: str) -> TracebackType | None:
    """The traceback from the first frame of a file on."""
    inner = found
    while inner is not None and inner.tb_frame.f_code.co_filename != file:
        inner = inner.tb_next
    return inner or found
