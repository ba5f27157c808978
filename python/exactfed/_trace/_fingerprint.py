"""Whether an algorithm is where it was some rounds before."""

from __future__ import annotations

import functools
import gc
import inspect
import types
from collections import deque
from typing import Any

import numpy as np

from ._clients import SymbolicClients, SymbolicVariates
from ._indices import Members
from ._masks import Generator, Masked, Uniform
from ._recorder import Recorder
from ._symbols import Symbol

_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis))
_OPAQUE = (types.ModuleType, types.CodeType, types.FrameType, np.ufunc)
_NATIVE = (types.MethodDescriptorType, types.WrapperDescriptorType, types.BuiltinFunctionType)
_OURS = (Recorder, SymbolicClients, Generator, Members, Masked, Uniform, np.random.Generator)


class Unknown(Exception):
    """An object that cannot be compared."""


def fingerprint(run: Any, recorder: Recorder) -> Any:
    """What a suspended generator can read, symbols by their atoms; ``None`` if it is not known.

    Where two are equal, what follows is the same: nothing else decides what the algorithm does.
    """
    if not isinstance(run, types.GeneratorType):
        return None
    try:
        found: list[Any] = []
        _Walk(found, recorder).visit(run)
        return tuple(found)
    except Unknown:
        return None


def _is_native(kind: Any) -> bool:
    """Whether a class is not written in Python: its objects may have a state that is not seen."""
    return any(isinstance(part, _NATIVE) for part in vars(kind).values())


class _Walk:
    def __init__(self, found: list[Any], recorder: Recorder):
        self.found, self.recorder = found, recorder
        self.places: dict[int, int] = {}
        self.kept: list[Any] = []

    def visit(self, value: Any) -> None:
        value = self.recorder.known(value)
        kind, put = type(value), self.found.append
        if kind in _PLAIN or isinstance(value, np.generic) and kind is not np.void:
            put((kind, repr(value) if kind is not str else value))
            return
        if kind in _OPAQUE or value is np or isinstance(value, _OPAQUE):
            put(id(value) if kind is not types.FrameType else "frame")
            return
        if kind is types.BuiltinMethodType:
            self.found.append(value.__name__)
            self.visit(value.__self__)
            return
        place = self.places.get(id(value))
        put((kind, place))
        if place is not None:
            return
        self.places[id(value)] = len(self.places)
        self.kept.append(value)
        self.inside(kind, value)

    def inside(self, kind: type, value: Any) -> None:
        if kind is Symbol:
            self.symbol(value)
        elif kind is np.ndarray:
            if value.dtype == object or not value.flags.owndata and value.base is None:
                raise Unknown
            self.found.append((value.dtype.str, value.shape, value.tobytes()))
            if value.base is not None:
                self.visit(value.base)
        elif kind in (list, tuple, deque):
            self.found.append((len(value), getattr(value, "maxlen", None)))
            self.each(value)
        elif kind is dict:
            self.found.append(len(value))
            self.each([part for pair in value.items() for part in pair])
        elif kind in (set, frozenset):
            if not all(type(part) in _PLAIN for part in value):
                raise Unknown
            self.found.append(tuple(sorted(map(repr, value))))
        elif kind is types.GeneratorType:
            self.generator(value)
        else:
            self.other(kind, value)

    def each(self, values: Any) -> None:
        for value in values:
            self.visit(value)

    def other(self, kind: type, value: Any) -> None:
        if kind is types.FunctionType:
            self.function(value)
        elif kind is types.CellType:
            try:
                self.visit(value.cell_contents)
            except ValueError:
                self.found.append("empty")
        elif kind is types.MethodType:
            self.each((value.__func__, value.__self__))
        elif kind is functools.partial:
            self.each((value.func, value.args, value.keywords))
        elif kind is types.SimpleNamespace or kind is SymbolicVariates:
            self.visit({k: v for k, v in vars(value).items() if not isinstance(v, _OURS)})
        elif isinstance(value, type):
            self.class_of(value)
        elif kind in _OURS and kind is not np.random.Generator:
            # Their state ends with the round, or is none.
            if kind in (Members, Masked, Uniform):
                raise Unknown
        else:
            self.instance(kind, value)

    def symbol(self, value: Symbol) -> None:
        value.read()
        self.found.append((value.level, value.shape, value.row))
        if value.base is not None:
            self.visit(value.base)
            return
        if value.sums:
            raise Unknown
        terms = tuple((a, np.shape(c), np.asarray(c).tobytes()) for a, c in value.terms.items())
        self.found.append((terms, np.shape(value.constant), np.asarray(value.constant).tobytes()))

    def generator(self, value: Any) -> None:
        frame = value.gi_frame
        if frame is None or value.gi_yieldfrom is not None:
            raise Unknown
        self.found.append(frame.f_lasti)
        known = (id(frame.f_globals), id(frame.f_builtins))
        # Also what a loop holds that has no name, such as the iterator of a for.
        inside = [frame.f_code, *gc.get_referents(value), *gc.get_referents(frame)]
        self.each([part for part in inside if id(part) not in known])
        self.globals(frame.f_code, frame.f_globals)

    def function(self, value: Any) -> None:
        self.found.append(id(value.__code__))
        self.each(value.__closure__ or ())
        self.each(value.__defaults__ or ())
        self.visit(value.__kwdefaults__ or {})
        self.visit(dict(vars(value)))
        if not value.__code__.co_filename.startswith("<frozen"):
            self.globals(value.__code__, value.__globals__)

    def globals(self, code: types.CodeType, names: dict[str, Any]) -> None:
        module = str(names.get("__name__", ""))
        if module.split(".")[0] in ("numpy", "exactfed") and ".algorithms" not in module:
            return
        inner = [code, *(part for part in code.co_consts if isinstance(part, types.CodeType))]
        used = {name for part in inner for name in part.co_names if name in names}
        for name in sorted(used):
            self.found.append(name)
            self.visit(names[name])

    def class_of(self, value: type) -> None:
        self.found.append(id(value))
        module = value.__module__.split(".")[0]
        if module in ("builtins", "numpy", "collections", "exactfed", "typing", "types"):
            return
        for name, part in sorted(vars(value).items()):
            if not name.startswith("__") and not inspect.isdatadescriptor(part):
                self.found.append(name)
                self.visit(part.__func__ if isinstance(part, (staticmethod, classmethod)) else part)

    def instance(self, kind: type, value: Any) -> None:
        """An object of a class in Python: its attributes."""
        if type(kind) is not type or any(map(_is_native, kind.__mro__[:-1])):
            raise Unknown
        self.visit(kind)
        self.visit(dict(getattr(value, "__dict__", {})))
        for base in kind.__mro__:
            slots = vars(base).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, name) and name not in ("__dict__", "__weakref__"):
                    self.visit(getattr(value, name))
