"""Prints docs/API.md: the names of the package `exactfed`, from their docstrings.

    python scripts/api.py > docs/API.md

It needs the installed package. A test (python/tests/test_docs.py) compares the file with this text.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import exactfed as ef

HEAD = """# Python API

Generated from the docstrings of the package `exactfed` by `scripts/api.py`; \
[Python](PYTHON.md) is the
guide. `help(ef.run)` prints the same texts.
"""
UNDERLINED = re.compile(r"^(.+)\n-{3,}$", re.MULTILINE)


def main() -> None:
    print(page(), end="")


def page() -> str:
    # The annotation is described with the class of compressors.
    left_out = ("__version__", "UnbiasedCompressor")
    public = [(name, getattr(ef, name)) for name in ef.__all__ if name not in left_out]
    functions = [(name, it) for name, it in public if not inspect.isclass(it)]
    classes = [(name, it) for name, it in public if inspect.isclass(it)]
    errors = [(name, it) for name, it in classes if issubclass(it, Exception)]
    others = [entry for entry in classes if entry not in errors]
    parts = [HEAD, *(entry("##", f"ef.{name}", it) for name, it in functions)]
    parts += [of_class(name, it) for name, it in others]
    parts += ["## Exceptions and warnings\n", *(exception(name, it) for name, it in errors)]
    return "\n".join(parts)


def of_class(name: str, it: type) -> str:
    members = [(own, value) for own, value in vars(it).items() if not own.startswith("_")]
    data = [(own, value) for own, value in members if inspect.isdatadescriptor(value)]
    # Rust gives them in no order.
    listed = [f"- `{own}`: {in_line(inspect.getdoc(value))}\n" for own, value in sorted(data)]
    methods = [(own, value) for own, value in members if inspect.isroutine(value)]
    parts = [f"## `ef.{name}`\n\n{text(it)}"]
    if listed:
        parts.append("**Properties**\n\n" + "".join(listed))
    parts += [entry("###", f"{name}.{own}", value) for own, value in methods]
    return "\n".join(parts)


def entry(level: str, name: str, it: Any) -> str:
    called = f"\n```python\n{name}{signature(it)}\n```\n" if callable(it) else ""
    return f"{level} `{name}`\n{called}\n{text(it)}"


def exception(name: str, it: type) -> str:
    base = ", ".join(f"`{base.__name__}`" for base in it.__bases__)
    return f"### `ef.{name}`\n\nOf {base}. {text(it)}"


def signature(it: Any) -> str:
    """The parameters, a line each where they are many; the same in every version of Python."""
    parameters = list(inspect.signature(it).parameters.values())
    shown, keywords = [], False
    for parameter in parameters:
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords:
            shown.append("*")
            keywords = True
        one = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        one += parameter.name
        if parameter.annotation is not parameter.empty:
            one += f": {parameter.annotation}"
        if parameter.default is not parameter.empty:
            equals = " = " if parameter.annotation is not parameter.empty else "="
            one += f"{equals}{parameter.default!r}"
        shown.append(one)
    line = f"({', '.join(shown)})"
    return line if len(line) < 80 else "(\n" + "".join(f"    {one},\n" for one in shown) + ")"


def text(it: Any) -> str:
    """A docstring as Markdown."""
    doc = inspect.getdoc(it) or ""
    sections = UNDERLINED.split(doc)
    parts = [prose(sections[0])]
    for title, body in zip(sections[1::2], sections[2::2], strict=True):
        body = prose(body.strip("\n")) if title == "Examples" else items(body.strip("\n"))
        parts.append(f"**{plain(title)}**\n\n{body}")
    return "\n".join(parts)


def items(body: str) -> str:
    """A section of names, each with an indented description, as a list."""
    lines = []
    for block in re.split(r"\n(?=\S)", body):
        head, *rest = block.split("\n")
        names, _, kind = head.partition(" : ")
        names = ", ".join(f"`{name}`" for name in names.split(", "))
        lines.append(f"- {names}" + (f" ({plain(kind)})" if kind else "") + f": {in_line(rest)}\n")
    return "".join(lines)


def in_line(described: str | list[str] | None) -> str:
    lines = described.split("\n") if isinstance(described, str) else described or []
    return plain(" ".join(line.strip() for line in lines if line.strip()))


def prose(body: str) -> str:
    """Paragraphs, with examples as code."""
    parts = []
    for block in body.strip("\n").split("\n\n"):
        code = block.startswith(">>>")
        parts.append(f"```python\n{block}\n```\n" if code else f"{plain(block)}\n")
    return "\n".join(parts)


def plain(body: str) -> str:
    """The roles and literals of reStructuredText as code, and its signs outside of code escaped."""
    body = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", body).replace("``", "`")
    pieces = body.split("`")
    pieces[::2] = [re.sub(r"([*<_])", r"\\\1", piece) for piece in pieces[::2]]
    pieces[::2] = [re.sub(r"docs/(\w+\.md)", r"[\1](\1)", piece) for piece in pieces[::2]]
    return "`".join(pieces)


if __name__ == "__main__":
    main()
