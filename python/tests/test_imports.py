"""Modules of the package are in an order: each imports only what is before it, at its top."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import exactfed as ef
import pytest

#: Imports that functions may have, since what they import needs a package that users may lack
#: (matplotlib, pyarrow) or that looks at the terminal and the notebook when it is imported (tqdm).
OPTIONAL = {"exactfed._looks", "exactfed._plot", "pyarrow", "tqdm.auto"}


def package_sources() -> dict[str, ast.Module]:
    """The parsed modules of the package by name; a package stands for its ``__init__``."""
    folder = Path(ef.__file__).parent
    modules = {}
    # The compiled module has a stub for its source.
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.pyi")]):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        modules[name] = ast.parse(path.read_text("utf-8"))
    return modules


def imported_modules(
    node: ast.Import | ast.ImportFrom, name: str, is_package: bool, modules: set[str]
) -> list[str]:
    """The full names of the modules that a statement of the module ``name`` imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ""
    if node.level:
        parts = name.split(".")
        keep = len(parts) - node.level + is_package
        base = ".".join([*parts[:keep], *([node.module] if node.module else [])])
    # `from . import _plan` imports a module, and `from . import main` a name of the package.
    inner = [f"{base}.{alias.name}" for alias in node.names]
    return [full if full in modules else base for full in inner]


def is_import(statement: ast.stmt) -> bool:
    """Whether a statement is an import, or imports in ``try`` for an error with a hint."""
    if isinstance(statement, ast.Try):
        return all(is_import(inner) for inner in statement.body)
    return isinstance(statement, (ast.Import, ast.ImportFrom))


def late_imports(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    """The imports that are not in the block of imports with which the module begins."""
    body = tree.body
    first = 1 if body and isinstance(body[0], ast.Expr) else 0
    last = next((k for k in range(first, len(body)) if not is_import(body[k])), len(body))
    return [
        node
        for statement in body[last:]
        for node in ast.walk(statement)
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not only_for_types(statement)
    ]


def only_for_types(statement: ast.stmt) -> bool:
    """Whether a statement is ``if TYPE_CHECKING:``, which follows the other imports."""
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"


def import_graph(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """The modules of the package that each module imports, in functions and for types too."""
    packages = {name.rpartition(".")[0] for name in trees}
    return {
        name: {
            full
            for node in ast.walk(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for full in imported_modules(node, name, name in packages, set(trees))
            if full in trees
        }
        for name, tree in trees.items()
    }


def test_modules_import_in_no_circle() -> None:
    graph = import_graph(package_sources())
    assert "exactfed._trace._symbols" in graph["exactfed._trace._arithmetic"]
    TopologicalSorter(graph).prepare()


def test_imports_are_at_the_top() -> None:
    trees = package_sources()
    packages = {name.rpartition(".")[0] for name in trees}
    late = {
        f"{name}:{node.lineno} imports {full}"
        for name, tree in trees.items()
        for node in late_imports(tree)
        for full in imported_modules(node, name, name in packages, set(trees))
        if full not in OPTIONAL
    }
    assert not late


def test_a_circle_and_a_late_import_are_found() -> None:
    one = ast.parse('"""One."""\nfrom . import two\n')
    two = ast.parse("import os\nx = os.sep\nfrom .one import name\n")
    with pytest.raises(CycleError):
        TopologicalSorter(
            import_graph({"p": ast.Module([], []), "p.one": one, "p.two": two})
        ).prepare()
    assert late_imports(one) == []
    assert [node.lineno for node in late_imports(two)] == [3]
