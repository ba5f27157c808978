"""All that decides what an algorithm does next: its state, and what its runs share."""

from __future__ import annotations

import array
import functools
import gc
import hashlib
import importlib.util
import logging
import random
import sys
import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._native import Compressor
from . import _known
from ._clients import SymbolicClients, SymbolicFeedback, SymbolicVariates
from ._code import Chain, names_of
from ._draws import Generator, SymbolicDraw
from ._indices import Members
from ._masks import Masked, Uniform
from ._recorder import Recorder
from ._refusal import NotTraced, note, place_in
from ._symbols import Symbol

_PLAIN = frozenset((type(None), bool, int, str, bytes, range, type(Ellipsis), type(NotImplemented)))
_NUMBERS = (float, complex, np.finfo, np.iinfo)
_NATIVE = (types.MethodDescriptorType, types.WrapperDescriptorType)
_DESCRIPTORS = (*_NATIVE, types.GetSetDescriptorType, types.MemberDescriptorType)
_DESCRIPTORS += (types.ClassMethodDescriptorType,)
#: Iterators that say what they iterate over and where they are.
_ITERATORS = tuple(
    type(one)
    for one in (
        iter([]), iter(()), iter(range(0)), iter(range(1 << 70)), iter(""), iter(b""), iter({}),
        iter({}.values()), iter({}.items()), reversed([]), enumerate([]), zip(), map(abs, []),
        filter(None, []),
    )
)  # fmt: skip
_GENERATORS = (
    random.Random, np.random.Generator, np.random.RandomState, np.random.PCG64,
    np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64,
)  # fmt: skip
#: What reads a field of a named tuple.
_FIELD = type(namedtuple("_", "x").x)
#: Classes in C whose objects contain others and nothing else, and which classes may extend.
_CONTAINERS = (dict, list, tuple, set, frozenset, deque, int, float, str, bytes, BaseException)
#: Parts of a class that say nothing of what its objects do.
_SKIPPED = frozenset(
    """
    __dict__ __weakref__ __doc__ __module__ __qualname__ __annotations__ __annotate__ __slots__
    __annotate_func__ __annotations_cache__ __firstlineno__ __static_attributes__ __match_args__
    __dataclass_fields__ __dataclass_params__ __abstractmethods__ _abc_impl __parameters__
    __orig_bases__ __classcell__ __hash__ _member_type_ __protocol_attrs__
    """.split()
)
#: The generators of the modules random and np.random.
_RUNS_SHARE = (random._inst, np.random.mtrand._rand)  # type: ignore[attr-defined]
_SHARED = "draws from a generator that all runs share: draw from clients.rng"


class Unknown(Exception):
    """What an algorithm reaches, of which it is not known what it does or keeps."""


@dataclass
class State:
    """What an algorithm can read when it goes on, symbols by their atoms.

    Attributes
    ----------
    shared
        What all of its runs reach.
    own
        What this run reaches besides.
    generators
        The states of the generators of random numbers among it.
    names
        Where code names what is shared: the places of the beginning and the end, and the name.
    is_whole
        Whether it is all seen. Where two of one run are equal then, what follows is the same.
    """

    shared: tuple[Any, ...]
    own: tuple[Any, ...]
    generators: tuple[Any, ...]
    names: list[tuple[int, int, str]]
    is_whole: bool

    def changed(self, other: State) -> str | None:
        """The name of the first thing that is shared and differs; ``None`` if nothing does."""
        if self.shared == other.shared:
            return None
        pairs = zip(self.shared, other.shared, strict=False)
        place = next((k for k, (one, two) in enumerate(pairs) if one != two), len(self.shared))
        around = [(end - begin, name) for begin, end, name in self.names if begin <= place < end]
        return min(around)[1] if around else "a default, a closure or an attribute of its own"


def state_of(start: Any, run: Any, recorder: Recorder) -> State:
    """The state of a run between two rounds.

    Raises
    ------
    NotTraced
        If something is reached that is not known to do the same in every run.
    """
    walk = _Walk(recorder)
    try:
        walk.visit(start)
        walk.visit_loose_modules()
        shared = len(walk.found)
        if not walk.is_whole:
            raise Unknown("an iterator that its runs share")
        walk.is_shared = False
        walk.visit(run)
        walk.visit_loose_modules()
        if walk.by_name and (hidden := walk.texts & _known.HIDDEN):
            raise Unknown(_said(f".{min(hidden)}"))
    except Unknown as unknown:
        raise note(NotTraced(f"it uses {unknown}", walk.place())) from None
    found = walk.found
    own, shared_part = tuple(found[shared:]), tuple(found[:shared])
    return State(shared_part, own, tuple(walk.generators), walk.names, walk.is_whole)


class _Walk:
    """Collects what can be reached from an object."""

    def __init__(self, recorder: Recorder):
        self.recorder, self.pure = recorder, _known.pure()
        self.found: list[Any] = []
        self.generators: list[Any] = []
        self.names: list[tuple[int, int, str]] = []
        self.is_whole = self.is_shared = True
        self.places: dict[int, int] = {}
        #: What was visited: the identity of what is gone may be that of something else.
        self.kept: list[Any] = []
        self.codes: set[Any] = set()
        #: Modules that are used otherwise than by an attribute, and those that were looked at.
        self.loose: dict[int, types.ModuleType] = {}
        self.used: dict[str, Any] = {}
        self.texts: set[str] = set()
        self.by_name = False
        self.at: Any = None

    def place(self) -> str:
        """The line that reaches what was visited last."""
        return "" if self.at is None else place_in(*self.at)

    # Values.

    def visit(self, value: Any) -> None:
        kind, put = type(value), self.found.append
        if kind in _PLAIN:
            put((kind, value))
            return
        if kind in _NUMBERS:
            put((kind, str(value) if kind is not float else repr(value)))
            return
        if id(value) in self.pure:
            self.by_name = self.by_name or id(value) in _known.BY_NAME
            put(id(value))
            # An attribute may have been added to it.
            for name, part in getattr(value, "__dict__", _NONE).items():
                if name[:2] != "__" and type(part) in _MUTABLE:
                    self.visit(part)
            return
        is_number = issubclass(kind, np.generic) and not value.dtype.hasobject
        if is_number and value.dtype.metadata is None:
            put((kind, value.tobytes()))
            return
        place = self.places.get(id(value))
        put((kind.__name__, place))
        if place is None:
            self.places[id(value)] = len(self.places)
            self.kept.append(value)
            inside = _INSIDE.get(kind)
            if inside is not None:
                inside(self, value)
            else:
                self.visit_other(kind, value)

    def visit_each(self, values: Any) -> None:
        for value in values:
            self.visit(value)

    # A class may have its own ways to iterate: those of its base are asked.

    def visit_list(self, value: Any) -> None:
        self.visit_each([None, *list.__iter__(value)])

    def visit_tuple(self, value: Any) -> None:
        self.visit_each([None, *tuple.__iter__(value)])

    def visit_deque(self, value: Any) -> None:
        self.visit_each([value.maxlen, *deque.__iter__(value)])

    def visit_dict(self, value: Any) -> None:
        self.found.append(dict.__len__(value))
        for key, part in dict.items(value):
            self.visit(key)
            self.visit(part)

    def visit_default_dict(self, value: Any) -> None:
        self.visit(value.default_factory)
        self.visit_dict(value)

    def visit_ordered_dict(self, value: Any) -> None:
        self.visit(vars(value))
        self.visit_dict(value)

    def visit_set(self, value: Any) -> None:
        parts = list(set.__iter__(value) if isinstance(value, set) else frozenset.__iter__(value))
        if not all(map(_is_plain, parts)):
            raise Unknown("a set of what is neither a number nor a text")
        # In the order of its table, which tells what it contained before.
        self.found.append(tuple(map(repr, parts)))

    def visit_array(self, value: Any) -> None:
        if value.dtype.hasobject:
            self.found.append(value.shape)
            self.visit_each(value.flat)
            return
        form = value.dtype.str, value.shape, value.strides, value.flags.num
        self.found.append((form, self.recorder.content_of(value)))
        self.visit(value.dtype)
        if value.base is not None:
            self.visit(value.base)

    def visit_symbol(self, value: Symbol) -> None:
        value.read()
        self.found.append((value.level, value.shape, value.row))
        if value.base is not None:
            self.visit(value.base)
            return
        if value.sums:
            self.is_whole = False
        terms = tuple((a, np.shape(c), np.asarray(c).tobytes()) for a, c in value.terms.items())
        self.found.append((terms, np.shape(value.constant), np.asarray(value.constant).tobytes()))

    def visit_generator(self, value: Any) -> None:
        frame = value.gi_frame
        if frame is None:
            self.found.append("ended")
            return
        self.found.append((value.__name__, value.__qualname__))
        self.found.append((frame.f_lasti, _local_names(frame)))
        known = {id(frame.f_globals), id(frame.f_builtins), id(frame.f_code), id(frame)}
        if frame.f_trace is not None:
            # A debugger, or what measures coverage.
            known.add(id(frame.f_trace))
        # Where code names these modules, it is looked at what it takes of them.
        imported = names_of(frame.f_code).aliases.values()
        known |= {id(_imported(name, frame.f_globals)) for name in imported}
        # Also what a loop holds that has no name, such as the iterator of a for.
        inside = [*gc.get_referents(value), *gc.get_referents(frame)]
        self.visit_each([part for part in inside if id(part) not in known])
        self.visit_code(frame.f_code, frame.f_globals, frame.f_builtins, {})

    def visit_function(self, value: Any) -> None:
        self.found += [value.__name__, value.__qualname__, value.__module__, value.__code__]
        cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
        for name, cell in cells.items():
            self.found.append(name)
            self.visit(cell)
        self.visit_each(value.__defaults__ or ())
        self.visit(value.__kwdefaults__)
        self.visit(vars(value))
        self.visit_code(value.__code__, value.__globals__, value.__builtins__, cells)

    def visit_cell(self, value: Any) -> None:
        try:
            inner = value.cell_contents
        except ValueError:
            self.found.append("empty")
            return
        # What a cell has of a module is looked at where code names it.
        if type(inner) is not types.ModuleType:
            self.visit(inner)

    def visit_method(self, value: Any) -> None:
        if any(value.__self__ is one for one in _RUNS_SHARE):
            raise Unknown(f"{value.__name__}(), which {_SHARED}")
        self.visit(value.__self__)
        if type(value.__self__) is not np.errstate:
            self.visit(value.__func__)

    def visit_builtin(self, value: Any) -> None:
        """A function in C, or a method of an object."""
        owner = value.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            module = getattr(value, "__module__", None)
            raise Unknown(_said(f"{module}.{value.__name__}" if module else value.__name__))
        if any(owner is one for one in _RUNS_SHARE):
            raise Unknown(f"{value.__name__}(), which {_SHARED}")
        self.found.append(value.__name__)
        self.visit(owner)

    def visit_draws(self, value: Any) -> None:
        """A generator of random numbers."""
        if isinstance(value, np.random.Generator):
            seeds = getattr(value.bit_generator, "seed_seq", None)
            state: Any = value.bit_generator.state, getattr(seeds, "n_children_spawned", None)
        elif isinstance(value, np.random.BitGenerator):
            state = value.state
        elif isinstance(value, random.Random):
            state = value.getstate()
        else:
            state = value.get_state(legacy=False)
        with np.printoptions(threshold=sys.maxsize):
            digest = hashlib.blake2b(repr(state).encode()).digest()
        self.found.append(digest)
        self.generators.append(digest)

    def visit_iterator(self, value: Any) -> None:
        self.visit_each(value.__reduce__()[1:])

    def visit_cached(self, value: Any) -> None:
        """A function with functools.lru_cache.

        What it keeps is state of the run that made it. Where runs share it, it may keep more, as
        it would compute the same again, but nothing that it keeps may change.
        """
        self.visit(value.__wrapped__)
        self.visit(vars(value))
        for part in _kept_by(value):
            if not self.is_shared:
                self.visit(part)
            elif not _is_plain(part):
                of = _Walk(self.recorder)
                of.visit(part)
                if not of.is_whole:
                    raise Unknown("an iterator that a cache keeps for all runs")
                self.recorder.keep_cached(part, of.found)

    def visit_logger(self, value: Any) -> None:
        """Records that are written are not read, but a logger has attributes."""
        plain = {name: part for name, part in vars(value).items() if _is_plain(part)}
        self.visit((plain, len(value.handlers), len(value.filters)))

    def visit_nothing(self, value: Any) -> None:
        """What keeps nothing that an algorithm can read."""

    def visit_dtype(self, value: Any) -> None:
        """A type of numbers; what was attached to it may change."""
        self.found.append(str(value))
        parts = [] if value.fields is None else [part[0] for part in value.fields.values()]
        self.visit_each(
            [dict(value.metadata or {}), value.base if value.subdtype else None, *parts]
        )

    def visit_expired(self, value: Any) -> None:
        """Draws of a round that is over: what else is asked of them than a shape is refused."""
        self.found.append(value.shape)

    def visit_kept_draw(self, value: Any) -> None:
        """A draw of the clients: one of a round that is over cannot be evaluated."""
        self.found.append((value.number, value.calls))

    def visit_variates(self, value: Any) -> None:
        """Control variates, or memories of compressed messages."""
        self.visit(value._own)
        self.visit(str(getattr(value, "_compressor", "")))

    def visit_module(self, value: types.ModuleType) -> None:
        self.loose.setdefault(id(value), value)

    def visit_algorithm(self, value: Any) -> None:
        """What the decorator made of a function: attributes may have been added to it."""
        skipped = ("_definition", "_parameters", "_given", "_place", "_where", "__doc__")
        self.visit_each([part for name, part in vars(value).items() if name not in skipped])

    def visit_other(self, kind: type, value: Any) -> None:
        if issubclass(kind, type):
            self.visit_class(value)
        elif isinstance(value, np.dtype):
            self.visit_dtype(value)
        elif kind.__module__ == "exactfed._algorithm" and kind.__name__ == "Algorithm":
            self.visit_algorithm(value)
        elif kind.__module__ == "itertools":
            # Their place cannot be seen: what they do is decided by what they were made of.
            self.is_whole = False
            self.visit_each(gc.get_referents(value))
        elif issubclass(kind, _DESCRIPTORS):
            self.visit(value.__objclass__)
        elif kind.__module__ != "typing":
            self.visit_instance(kind, value)

    def visit_instance(self, kind: type, value: Any) -> None:
        """An object of a class in Python: its attributes, and what it contains.

        Nothing of the class is called on the way, which could change its objects.
        """
        containers = [base for base in _CONTAINERS if issubclass(kind, base)]
        bases = [base for base in kind.__mro__[:-1] if not any(base is one for one in _CONTAINERS)]
        if any(map(_is_native, bases)) and not containers:
            raise Unknown(_said(f"an object of type {kind.__module__}.{kind.__qualname__}"))
        self.visit(kind)
        try:
            self.visit(dict(object.__getattribute__(value, "__dict__")))
        except AttributeError:
            self.found.append(())
        for base in kind.__mro__:
            for name, part in vars(base).items():
                if type(part) is types.MemberDescriptorType and name not in _SKIPPED:
                    self.visit(_slot(part, value))
        for base in containers:
            inside = _INSIDE.get(base)
            if inside is not None:
                inside(self, value)
            elif base is BaseException:
                self.visit_exception(value)
            else:
                self.found.append(base.__repr__(value))

    def visit_exception(self, value: BaseException) -> None:
        self.visit(value.args)
        for base in type(value).__mro__:
            for name, part in sorted(vars(base).items()):
                if isinstance(part, types.GetSetDescriptorType) and not name.startswith("__"):
                    # Such as the characters that were written before writing blocked.
                    self.visit(getattr(value, name, None))

    # Classes and code.

    def visit_class(self, value: type) -> None:
        self.found += [value.__name__, value.__qualname__, value.__module__]
        root = _root(value.__module__)
        if any(value is one for one in (*_CONTAINERS, *_INSIDE)):
            return
        is_known = root in _known.ROOTS or root in ("numpy", "exactfed")
        is_own = root == "exactfed" and value.__name__ != "Clients"
        if is_known and not is_own and _is_itself(value):
            return
        if root == "builtins" and issubclass(value, BaseException) and _is_itself(value):
            return
        if root in sys.stdlib_module_names or _is_native(value):
            raise Unknown(_said(f"{value.__module__}.{value.__qualname__}"))
        self.visit_each([base for base in value.__bases__ if base is not object])
        if type(value) is not type:
            self.visit(type(value))
        for name, part in sorted(vars(value).items()):
            own = issubclass(type(part), _DESCRIPTORS) and part.__objclass__ is value
            if name in _SKIPPED or own:
                continue
            self.found.append(name)
            self.visit(part)

    def visit_property(self, value: Any) -> None:
        self.visit_each((value.fget, value.fset, value.fdel))

    def visit_code(
        self, code: types.CodeType, names: dict[str, Any], builtins: Any, cells: dict[str, Any]
    ) -> None:
        """What a piece of code and its inner functions can reach by names."""
        # Functions of one piece of code may have other modules in their cells.
        modules = frozenset(
            (name, id(inner))
            for name, cell in cells.items()
            if type(inner := _content(cell)) is types.ModuleType
        )
        if (id(code), id(names), modules) in self.codes:
            return
        self.codes.add((id(code), id(names), modules))
        module = str(names.get("__name__", ""))
        root = _root(module)
        if root in _known.ROOTS or module == "exactfed._algorithm":
            return
        if root == "numpy" or root in sys.stdlib_module_names or _is_of_exactfed(module):
            raise Unknown(_said(f"{module}.{code.co_name}"))
        before, of = self.at, names_of(code)
        for name, (line, instruction) in of.used.items():
            self.by_name = self.by_name or name in _known.INDIRECT
            hidden = name in of.attributes and name in _known.HIDDEN
            special = name in of.special and name not in ("__class__", "__dict__")
            if hidden or special or name == "__builtins__":
                self.at = code, names, line, instruction
                raise Unknown(_said(f".{name}"))
            self.used.setdefault(name, (code, names, line, instruction))
        self.texts |= of.texts
        for chain in of.chains:
            self.at = code, names, chain.line, chain.instruction
            self.visit_chain(chain, names, builtins, cells)
        self.at = before
        inner = dict(cells)
        inner |= {name: _imported(module, names) for name, module in of.aliases.items()}
        for part in code.co_consts:
            if isinstance(part, types.CodeType):
                self.visit_code(part, names, builtins, inner)

    def visit_chain(
        self, chain: Chain, names: dict[str, Any], builtins: Any, cells: dict[str, Any]
    ) -> None:
        value, said = _MISSING, chain.name
        if chain.kind == "import":
            value = _imported(chain.name, names)
        elif chain.kind == "global":
            value = names.get(chain.name, _MISSING)
            if value is _MISSING:
                value = builtins.get(chain.name, _MISSING)
        else:
            value = _content(cells.get(chain.name, _MISSING))
            if type(value) is not types.ModuleType:
                return
        begin = len(self.found)
        self.found.append(chain.name)
        for part in chain.parts:
            if type(value) is not types.ModuleType:
                break
            value, said = self.module_part(value, part), f"{said}.{part}"
        if value is _MISSING:
            self.found.append(None)
            return
        self.visit_named(value, said, chain.call)
        self.names.append((begin, len(self.found), said))

    def module_part(self, module: types.ModuleType, name: str) -> Any:
        """An attribute of a module."""
        value = vars(module).get(name, _MISSING)
        if name in _known.INDIRECT:
            self.visit_module(module)
        elif value is _MISSING:
            self.visit(vars(module).get("__getattr__"))
        elif module.__name__ in ("random", "numpy.random") and not _is_seeded(value):
            if not isinstance(value, types.ModuleType):
                raise Unknown(f"{module.__name__}.{name}, which {_SHARED}")
        elif not isinstance(value, types.ModuleType) and id(value) not in self.pure:
            listed = module.__name__ in _known.LISTED and type(value) not in _PLAIN
            if listed or (_is_library(module) and not _is_seeded(value)):
                raise Unknown(_said(f"{module.__name__}.{name}"))
        return value

    def visit_named(self, value: Any, said: str, call: str) -> None:
        """What code names."""
        if _is_seeded(value):
            if call != "some":
                raise Unknown(f"{said} without a seed, or under another name")
            self.found.append(said)
        elif type(value) is types.BuiltinFunctionType and id(value) not in self.pure:
            owner = value.__self__
            if owner is None or isinstance(owner, types.ModuleType):
                raise Unknown(_said(said))
            self.visit(value)
        else:
            self.visit(value)

    def visit_loose_modules(self) -> None:
        """What could be reached of modules that are used otherwise than by an attribute.

        It is what has the name of any attribute in the code, or all of a module where attributes
        are found by names that are computed.
        """
        looked: set[tuple[int, str]] = set()
        while True:
            names = set(self.used) | (self.texts if self.by_name else set())
            todo = [
                (module, name)
                for module in list(self.loose.values())
                for name in self.names_in_module(module, names)
                if (id(module), name) not in looked
            ]
            if not todo:
                return
            for module, name in todo:
                looked.add((id(module), name))
                self.at = self.used.get(name, self.at)
                begin = len(self.found)
                self.found.append(name)
                value = self.module_part(module, name)
                if _is_seeded(value):
                    raise Unknown(f"{module.__name__}.{name} under another name")
                self.visit(value)
                self.names.append((begin, len(self.found), f"{module.__name__}.{name}"))

    def names_in_module(self, module: types.ModuleType, names: set[str]) -> list[str]:
        if self.by_name and not _is_library(module):
            return [name for name in vars(module) if not name.startswith("__")]
        return sorted(names & vars(module).keys())


_MISSING: Any = object()
_NONE: dict[str, Any] = {}
#: Numbers and what contains them, as attributes that are added have them.
_MUTABLE = (bool, int, float, str, bytes, tuple, list, dict, set, np.ndarray)


def _said(what: str) -> str:
    return f"{what}, and it is not known that this does the same in every run"


def _root(module: Any) -> str:
    return str(module).partition(".")[0]


def _is_of_exactfed(module: str) -> bool:
    """Whether it is the package itself, without the algorithms that ship."""
    return _root(module) == "exactfed" and not module.startswith("exactfed.algorithms")


def _is_library(module: types.ModuleType) -> bool:
    root = _root(module.__name__)
    return root in sys.stdlib_module_names or root in ("numpy", "scipy")


def _is_seeded(value: Any) -> bool:
    return any(value is one for one in _known.SEEDED)


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return type(value) in _PLAIN or type(value) in _NUMBERS


def _is_native(kind: Any) -> bool:
    """Whether a class is not written in Python: its objects may have a state that is not seen."""
    return any(
        isinstance(part, _NATIVE) and part.__objclass__ is kind for part in vars(kind).values()
    )


def _kept_by(cached: Any) -> list[Any]:
    """The arguments and the results that functools.lru_cache keeps."""
    parts = [part for part in gc.get_referents(cached) if part is not vars(cached)]
    if cached.cache_parameters()["maxsize"] is None:
        parts = [result for part in parts if type(part) is dict for result in part.values()]
    elif cached.cache_info().currsize == 0:
        return []
    inner = "_lru_list_elem"
    return [
        part
        for part in parts
        if part is not cached.__wrapped__
        and not isinstance(part, type)
        and not (type(part) is dict and {type(one).__name__ for one in part.values()} == {inner})
    ]


def _content(cell: Any) -> Any:
    """What is in a cell; a module that a name is known to be is itself."""
    if type(cell) is not types.CellType:
        return cell
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _local_names(frame: types.FrameType) -> tuple[str, ...]:
    """The local variables that have a value: which of them has which is not seen otherwise."""
    values = frame.f_locals
    names = tuple(values)
    if type(values) is dict:
        # Before Python 3.13 the frame keeps these references, which would be state.
        values.clear()
    return names


def _slot(part: types.MemberDescriptorType, value: Any) -> Any:
    try:
        return part.__get__(value)
    except AttributeError:
        return "no value"


def _is_itself(value: type) -> bool:
    """Whether a class is that of its name in the module that it says it is of."""
    return getattr(sys.modules.get(value.__module__), value.__name__, None) is value


def _imported(name: str, names: dict[str, Any]) -> Any:
    """The module that an import statement gives."""
    if name.startswith("."):
        name = importlib.util.resolve_name(name, str(names.get("__package__") or ""))
    module = sys.modules.get(name)
    if module is None:
        if name not in _known.LISTED and _root(name) not in _known.ROOTS:
            raise Unknown(f"the module {name}, which is not imported before the algorithm runs")
        module = importlib.import_module(name)
    return module


_INSIDE: dict[type, Any] = {
    Symbol: _Walk.visit_symbol,
    np.ndarray: _Walk.visit_array,
    list: _Walk.visit_list,
    tuple: _Walk.visit_tuple,
    deque: _Walk.visit_deque,
    dict: _Walk.visit_dict,
    defaultdict: _Walk.visit_default_dict,
    OrderedDict: _Walk.visit_ordered_dict,
    types.MappingProxyType: lambda walk, value: walk.visit(dict(value)),
    **dict.fromkeys((set, frozenset), _Walk.visit_set),
    slice: lambda walk, value: walk.visit_each((value.start, value.stop, value.step)),
    types.GeneratorType: _Walk.visit_generator,
    types.FunctionType: _Walk.visit_function,
    types.CellType: _Walk.visit_cell,
    types.MethodType: _Walk.visit_method,
    types.BuiltinFunctionType: _Walk.visit_builtin,
    types.MethodWrapperType: lambda walk, value: walk.visit(value.__self__),
    types.ModuleType: _Walk.visit_module,
    functools.partial: lambda walk, value: walk.visit_each(
        (value.func, value.args, value.keywords, vars(value))
    ),
    type(functools.lru_cache(abs)): _Walk.visit_cached,
    functools.cached_property: lambda walk, value: walk.visit(value.func),
    property: _Walk.visit_property,
    staticmethod: lambda walk, value: walk.visit_each((value.__func__, dict(vars(value)))),
    classmethod: lambda walk, value: walk.visit_each((value.__func__, dict(vars(value)))),
    types.SimpleNamespace: lambda walk, value: walk.visit(dict(vars(value))),
    bytearray: lambda walk, value: walk.visit(bytes(value)),
    array.array: lambda walk, value: walk.visit((value.typecode, value.tobytes())),
    **dict.fromkeys((object, _FIELD), _Walk.visit_nothing),
    logging.Logger: _Walk.visit_logger,
    np.errstate: _Walk.visit_nothing,
    np.ufunc: lambda walk, value: _refuse_ufunc(value),
    **dict.fromkeys((SymbolicVariates, SymbolicFeedback), _Walk.visit_variates),
    SymbolicDraw: _Walk.visit_kept_draw,
    Compressor: lambda walk, value: walk.found.append(str(value)),
    **dict.fromkeys((SymbolicClients, Generator, Recorder), _Walk.visit_nothing),
    **dict.fromkeys((Members, Masked, Uniform), _Walk.visit_expired),
    **dict.fromkeys(_ITERATORS, _Walk.visit_iterator),
    **dict.fromkeys(_GENERATORS, _Walk.visit_draws),
}


def _refuse_ufunc(value: Any) -> None:
    raise Unknown(_said(f"the function {value.__name__} of entries"))
