"""What code names: the globals, the parts of modules and the imports that it can reach."""

from __future__ import annotations

import dis
import functools
from dataclasses import dataclass, field, replace
from types import CodeType

_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
_CELLS = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_PARTS = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR")
_NAMED = (*_GLOBALS, *_PARTS, "IMPORT_FROM", "STORE_GLOBAL", "DELETE_GLOBAL")
_SKIPPED = ("CACHE", "PRECALL", "PUSH_NULL", "EXTENDED_ARG", "NOP", "RESUME", "KW_NAMES")


@dataclass(frozen=True)
class Chain:
    """A name and the attributes that follow it at once: ``np.linalg.norm``.

    ``kind`` is ``"global"``, ``"cell"`` or ``"import"``. ``call`` is what the next instructions do
    with the value: ``"none"`` if they call it without arguments or load ``None``, ``"some"`` if
    they load something else, as an argument is, and ``""`` otherwise.
    """

    kind: str
    name: str
    parts: tuple[str, ...]
    line: int
    instruction: int
    call: str


@dataclass
class Names:
    """What a piece of code names."""

    chains: list[Chain] = field(default_factory=list)
    #: Local names of imported modules.
    aliases: dict[str, str] = field(default_factory=dict)
    #: Attributes and other names, with the line and the instruction of one use.
    used: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: Those of them that are attributes.
    attributes: set[str] = field(default_factory=set)
    #: Attributes with two underscores that it sets.
    special: set[str] = field(default_factory=set)
    #: Constants that could be names, which getattr may be given.
    texts: set[str] = field(default_factory=set)


@functools.lru_cache(maxsize=4096)
def names_of(code: CodeType) -> Names:
    """What this code names, without the code of inner functions."""
    found = Names()
    all_of_it = [one for one in dis.get_instructions(code) if one.opname not in _SKIPPED]
    found.aliases = _aliases(all_of_it)
    line = code.co_firstlineno
    chains: dict[Chain, Chain] = {}
    for place, one in enumerate(all_of_it):
        line = _line(one, line)
        kind, name = _head(one, found.aliases)
        begun = [_chain(all_of_it, place, kind, name, line)] if kind else []
        for chain in begun + _imports(all_of_it, place, line):
            # One of those that differ in their places alone.
            chains.setdefault(replace(chain, line=0, instruction=0), chain)
        if one.opname in _NAMED or one.opname.startswith("LOAD_SUPER_ATTR"):
            found.used.setdefault(one.argval, (line, one.offset))
            if one.opname not in _GLOBALS:
                found.attributes.add(one.argval)
            if one.opname in ("STORE_ATTR", "DELETE_ATTR") and _is_special(one.argval):
                found.special.add(one.argval)
    found.chains = list(chains.values())
    found.texts = {part for part in code.co_consts if isinstance(part, str) and part.isidentifier()}
    return found


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _line(one: dis.Instruction, before: int) -> int:
    positions = getattr(one, "positions", None)
    if positions is not None and positions.lineno is not None:
        return int(positions.lineno)
    # A line in Python 3.10, and a truth in 3.13.
    begins = one.starts_line
    return begins if type(begins) is int else before


def _aliases(all_of_it: list[dis.Instruction]) -> dict[str, str]:
    """What ``import module as name`` in a function binds."""
    found = {}
    for place, one in enumerate(all_of_it[:-1]):
        after = all_of_it[place + 1]
        if one.opname == "IMPORT_NAME" and after.opname in ("STORE_FAST", "STORE_DEREF"):
            whole = place >= 1 and all_of_it[place - 1].argval is None
            name = one.argval.partition(".")[0] if whole else one.argval
            found[after.argval] = "." * _level(all_of_it, place) + name
    return found


def _level(all_of_it: list[dis.Instruction], place: int) -> int:
    level = all_of_it[place - 2].argval if place >= 2 else 0
    return level if isinstance(level, int) else 0


def _imports(all_of_it: list[dis.Instruction], place: int, line: int) -> list[Chain]:
    """What an import statement takes, where it does not bind a local name to a module."""
    one = all_of_it[place]
    if one.opname != "IMPORT_NAME" or all_of_it[place + 1].opname in ("STORE_FAST", "STORE_DEREF"):
        return []
    module = "." * _level(all_of_it, place) + one.argval
    taken = all_of_it[place - 1].argval if place >= 1 else None
    parts = [(name,) for name in taken] if isinstance(taken, tuple) else [()]
    return [Chain("import", module, part, line, one.offset, "") for part in parts]


def _head(one: dis.Instruction, aliases: dict[str, str]) -> tuple[str, str]:
    """Where a chain begins: what kind of name, and which; "" where none begins."""
    if one.opname in _GLOBALS:
        return "global", one.argval
    if one.opname.startswith("LOAD_FAST") or one.opname in _CELLS:
        name = one.argval[-1] if isinstance(one.argval, tuple) else one.argval
        if name in aliases:
            return "import", aliases[name]
        return ("cell", name) if one.opname in _CELLS else ("", "")
    return "", ""


def _chain(all_of_it: list[dis.Instruction], place: int, kind: str, name: str, line: int) -> Chain:
    parts = []
    after = place + 1
    while after < len(all_of_it) and all_of_it[after].opname in _PARTS:
        parts.append(all_of_it[after].argval)
        after += 1
        if not all_of_it[after - 1].opname.startswith("LOAD"):
            break
    offset = all_of_it[after - 1].offset
    return Chain(kind, name, tuple(parts), line, offset, _call(all_of_it, after))


def _call(all_of_it: list[dis.Instruction], after: int) -> str:
    one = all_of_it[after] if after < len(all_of_it) else None
    if one is None:
        return ""
    if one.opname.startswith("CALL"):
        return "none" if one.arg == 0 else ""
    if one.opname == "LOAD_CONST" and one.argval is None:
        return "none"
    return "some" if one.opname.startswith(("LOAD", "BUILD")) else ""
