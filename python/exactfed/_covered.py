"""Files of Python of which nothing runs but what the source of an algorithm in results contains.

The ids of cells contain a hash of the source: the text of the functions and classes of an
algorithm, and the constants that they name. A file has more than that, so its statements are
compared with the source before any of them runs. Left out is every statement other than

- functions and classes that are the same in the source, decorators included;
- ``NAME = constant`` and ``NAME: type = constant``, where the source has this name with this
  constant;
- imports of installed modules under their own names, with ``numpy as np`` and ``exactfed`` under
  any name. These lines are in no hash.
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import linecache
import os
import site
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

from ._definition import CodeError, register_again

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def load_covered(code: os.PathLike[str], sources: list[str]) -> list[str]:
    """Run of a file of Python what these sources of algorithms contain.

    Returns a line for each statement that was left out.
    """
    path = os.fspath(code)
    if not path.endswith(".py"):
        raise CodeError("a file of Python is expected, whose name ends in .py")
    if not os.path.isfile(path):
        raise CodeError("there is no such file")
    try:
        # Read once: what is compared is what runs.
        text = importlib.util.decode_source(Path(path).read_bytes())
        statements = ast.parse(text, path).body
    except OSError as error:
        raise CodeError(f"it cannot be read: {error.strerror}") from None
    except (SyntaxError, ValueError) as error:
        raise CodeError(f"it is not Python: {error}") from None
    # As Python counts lines: str.splitlines finds others in strings and comments.
    lines = [line + "\n" for line in text.split("\n")]
    known = {definition for source in sources for definition in _definitions(source)}
    constants = {line for source in sources for line in source.split("\n") if line[:2] == "# "}
    kept, left_out = [], []
    for statement in statements:
        if _is_covered(statement, known, constants):
            kept.append(statement)
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            line = lines[statement.lineno - 1].strip()
            left_out.append(f"{path}:{statement.lineno}: not run, {_why(statement)}: {line}")
    if not any(isinstance(statement, _DEFINITIONS) for statement in kept):
        raise CodeError(
            "nothing of it is run: it defines no algorithm and no problem with a source whose hash "
            "stored cells without code have"
        )
    _run(path, text, lines, kept)
    return left_out


def _is_covered(statement: ast.stmt, known: set[str], constants: set[str]) -> bool:
    if isinstance(statement, _DEFINITIONS):
        return _tree(statement) in known
    if isinstance(statement, ast.Import):
        return all(_is_plain(name) and _is_installed(name.name) for name in statement.names)
    if isinstance(statement, ast.ImportFrom):
        plain = all(name.asname is None and name.name != "*" for name in statement.names)
        return plain and statement.level == 0 and _is_installed(statement.module or "")
    target: ast.expr
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.annotation, ast.Name):
        target = statement.target
    else:
        return False
    try:
        value = ast.literal_eval(statement.value) if statement.value else None
    except (ValueError, TypeError):
        return False
    return isinstance(target, ast.Name) and f"# {target.id} = {value!r}" in constants


def _why(statement: ast.stmt) -> str:
    """Why a statement is not covered."""
    if isinstance(statement, ast.Import) and all(map(_is_plain, statement.names)):
        absent = [name.name for name in statement.names if not _is_installed(name.name)]
        return f"since {absent[0]} is not in a folder of installed modules of this Python"
    return "since no hash covers it"


def _tree(definition: ast.AST) -> str:
    """What a definition is to Python, without white space at the ends of lines of descriptions.

    Sources are kept without it.
    """
    definition = copy.deepcopy(definition)
    for node in ast.walk(definition):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str):
                node.value.value = "\n".join(line.rstrip() for line in text.split("\n"))
    return ast.dump(definition)


def _definitions(source: str) -> list[str]:
    """The definitions of a source; none of a text that was given in its place."""
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError):
        return []
    return [_tree(statement) for statement in statements if isinstance(statement, _DEFINITIONS)]


def _is_plain(name: ast.alias) -> bool:
    """Whether an import gives a module its own name, or one that every reader knows."""
    known = name.name == "exactfed" or (name.name, name.asname) == ("numpy", "np")
    return known or name.asname is None


def _is_installed(module: str) -> bool:
    """Whether a module is of Python, of this package or installed; it is not imported."""
    top = module.partition(".")[0]
    try:
        found = importlib.util.find_spec(top)
    except ValueError:
        return False
    if top == "exactfed" or (found and found.origin in ("built-in", "frozen")):
        return True
    if found is None:
        return False
    # Where Python finds it now: a file of the working directory may have the name of any module.
    places = [*(found.submodule_search_locations or [])] or [found.origin or ""]
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [sysconfig.get_path(kind) for kind in kinds]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    roots = [Path(folder).resolve() for folder in folders]
    return all(
        any(Path(place).resolve().is_relative_to(root) for root in roots) for place in places
    )


def _run(path: str, text: str, lines: list[str], statements: list[ast.stmt]) -> None:
    """Run these statements of a file."""
    # The name that the file has where a manifest names it, so that a definition replaces itself.
    module = ModuleType(f"exactfed_algorithms.{os.path.abspath(path)}")
    module.__file__ = path
    # Without a time of change, so that inspect finds the text that was compared.
    linecache.cache[path] = (len(text), None, lines, path)
    program = compile(ast.Module(statements, type_ignores=[]), path, "exec", dont_inherit=True)
    sys.modules[module.__name__] = module
    try:
        exec(program, module.__dict__)
        # Functions below a definition that it uses were not there when it was made.
        register_again()
    finally:
        del sys.modules[module.__name__]
