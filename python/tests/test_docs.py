"""The code of the documents runs as it stands, and so do the examples of the docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import duckdb
import exactfed as ef
import pytest
from conftest import MANIFEST, ROOT
from matplotlib import pyplot


def blocks(document: str, *languages: str) -> list[tuple[str, str]]:
    """The code blocks of a document in these languages, each with its language."""
    text = (ROOT / document).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for block in found if block[0] in languages]


def shell(line: str) -> str:
    """What a line of a shell that calls exactfed prints."""
    words = line.split("#")[0].split()
    if words[0] == "exactfed":
        words[:1] = ["python", "-m", "exactfed"]
    if words[0] == "python":
        words[0] = sys.executable
    merged = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8"}
    return subprocess.run(words, check=True, timeout=300, **merged).stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    pyplot.close("all")


@pytest.mark.parametrize(
    "document, least", [("README.md", 1), ("docs/PYTHON.md", 6), ("docs/EXTENDING.md", 3)]
)
def test_the_blocks_of_a_page_run_in_their_order(
    folder: Path, monkeypatch: pytest.MonkeyPatch, document: str, least: int
) -> None:
    found = blocks(document, "python")
    assert len(found) >= least
    page = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", page)
    for i, (_, code) in enumerate(found):
        # A file of a module, since the source of an algorithm is part of its results, and Python
        # finds that of a class by its module.
        page.__file__ = str(folder / f"block_{i}.py")
        Path(page.__file__).write_text(code, encoding="utf-8")
        exec(compile(code, page.__file__, "exec"), vars(page))


def test_the_snippets_that_read_exports(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ef.run(MANIFEST, name="scafflsa/fig1-high")
    sections = "# Reading results in Python and SQL"
    text = (ROOT / "docs/FORMAT.md").read_text(encoding="utf-8")
    assert sections in text
    sql = 0
    for language, code in blocks("docs/FORMAT.md", "sh", "python", "sql"):
        if language == "sh":
            for line in code.splitlines():
                shell(line)
        elif language == "python":
            exec(compile(code, "docs/FORMAT.md", "exec"), {})
            assert "scaffold" in capsys.readouterr().out.lower()
        else:
            rows = duckdb.sql(code).fetchall()
            # A row for each cell and recorded round.
            assert len(rows) == 8 * 21
            sql += 1
    assert sql == 1


def test_the_recipes_with_python(folder: Path) -> None:
    """Their commands print what the page shows; tests/suite/tutorial.rs runs the other recipes."""
    run = 0
    for language, code in blocks("docs/RECIPES.md", "toml", "python", "console"):
        if code.startswith("# "):
            (folder / code.splitlines()[0].removeprefix("# ")).write_text(code, encoding="utf-8")
        for typed in code.split("$ ")[1:] if language == "console" else []:
            line, shown = typed.split("\n", 1)
            if line.startswith("python"):
                assert re.fullmatch(re.escape(shown).replace("…", ".*"), shell(line)), line
                run += 1
    assert run >= 4
    verdict = "**supported** | With momentum FedAvg ends at half of the error or less | 0.131"
    assert verdict in (folder / "reports/momentum/report.md").read_text(encoding="utf-8")
    verdict = "**supported** | After 200 kB natural compression is below no compression | 0.0141"
    assert verdict in (folder / "reports/bits/report.md").read_text(encoding="utf-8")


def test_the_snippet_of_the_tutorial(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ef.run(MANIFEST)
    shell("exactfed export --out rows.parquet")
    ((_, code),) = blocks("docs/TUTORIAL.md", "python")
    exec(compile(code.replace("10_000", "2_000"), "docs/TUTORIAL.md", "exec"), {})
    assert "shape: (8, 6)" in capsys.readouterr().out


def test_the_numbers_of_troubleshooting(folder: Path) -> None:
    page = (ROOT / "docs/TROUBLESHOOTING.md").read_text(encoding="utf-8")
    code = next(
        code for _, code in blocks("docs/TROUBLESHOOTING.md", "python") if "def detectable" in code
    )
    names: dict[str, object] = {}
    exec(compile(code, "docs/TROUBLESHOOTING.md", "exec"), names)
    table = re.findall(
        r"^\| \**(\d+)\** \| \**([\d.]+)\** \| \**([\d.]+)\** \| \**([\d.]+)\** \|$",
        page,
        re.MULTILINE,
    )
    assert len(table) == 7
    for n, *ratios in table:
        for spread, ratio in zip((0.1, 0.3, 1.0), ratios, strict=True):
            assert names["detectable"](int(n), spread) == pytest.approx(float(ratio), rel=0.006)
    # What the command line writes where it cannot ask.
    subprocess.run(
        [sys.executable, "-m", "exactfed", "init"], check=True, stdin=subprocess.DEVNULL, timeout=60
    )
    number = r"([\d.]+)"
    rows = re.findall(
        rf"^\| (\d+) \| {number} \| {number} \[{number}, {number}\] \| (\w+)", page, re.MULTILINE
    )
    assert [row[0] for row in rows] == ["5", "10", "20", "40"]
    for replicates, spread, *numbers, verdict in rows:
        results = ef.run("mine.toml", replicates=int(replicates))
        claim = results.claims().row(0, named=True)
        found = [claim[name] for name in ("value", "low", "high")]
        assert found == pytest.approx([float(text) for text in numbers], rel=0.005)
        assert claim["verdict"] == verdict
        last = results.frame().filter(local_step=10_000, local_steps=100)
        pairs = last.pivot(on="label", index="replicate", values="sq_error")
        assert (pairs["Scaffold"] / pairs["FedAvg"]).log().std() == pytest.approx(
            float(spread), abs=0.006
        )


@pytest.mark.parametrize(
    "name", [module.name for module in pkgutil.iter_modules(ef.__path__) if module.name[0] == "_"]
)
def test_examples_of_docstrings(name: str, folder: Path) -> None:
    if name == "__main__":
        pytest.skip("it is the command line")
    module = importlib.import_module(f"exactfed.{name}")
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.failed == 0


def test_the_page_of_the_interface_is_that_of_the_docstrings() -> None:
    command = [sys.executable, "scripts/api.py"]
    page = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    stored = (ROOT / "docs/API.md").read_text(encoding="utf-8")
    assert stored == page.stdout.decode("utf-8"), "python scripts/api.py > docs/API.md"


def test_every_name_has_a_docstring() -> None:
    for name in ef.__all__:
        if name != "__version__":
            assert (getattr(ef, name).__doc__ or "").strip(), name
