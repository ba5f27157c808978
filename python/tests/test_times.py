"""The comparison of processor times with the committed table (scripts/check_times.py)."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/check_times.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="needs the scripts of the repository")


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Calls the script with times in seconds, and returns its exit code and what it prints."""
    spec = importlib.util.spec_from_file_location("check_times", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "processor_name", lambda: "A processor with AVX-512")
    table, times, log = tmp_path / "times.toml", tmp_path / "times", tmp_path / "log"
    table.write_text(
        '[times."Another"]\n"tests" = 1.00\n\n[times."A processor with AVX-512"]\n"tests" = 50.00\n'
        '"reproduce" = 100.00\n"a/b" = 3.00\n\n[[entry]]\nsum = 150.0\n'
    )
    log.write_text(
        "a/b: 5 cells, 1.00e7 steps in 4.0 s, 2.50e6 steps/s\na/b: its frontiers took 2.0 s, and are kept\n"
    )

    def call(*rows):
        times.write_text("".join(f"{name}\t{seconds}\n" for name, seconds in rows))
        code = script.main(table, times, log)
        return code, capsys.readouterr().out

    return call


def test_times_are_compared_in_units_of_the_reference_loop(check):
    # On a machine that is half as fast both the unit and all times are twice as long.
    code, text = check(("unit", 4.0), ("tests", 200.0), ("reproduce", 408.0))
    assert code == 0 and "1.013 times that of the table; 1.050 is allowed" in text


def test_a_sum_that_has_grown_by_more_than_a_twentieth_fails(check):
    code, text = check(("unit", 2.0), ("tests", 120.0), ("reproduce", 200.0))
    assert code == 1 and "error: processor times have grown" in text
    assert "tests: 60.00 units, 50.00 in the table (1.20 times)" in text


def test_an_unsteady_machine_is_allowed_as_much_as_its_unit_varies(check):
    code, text = check(("unit", 2.0), ("unit", 2.2), ("tests", 120.0), ("reproduce", 230.0))
    assert code == 0 and "1.155 is allowed" in text


def test_what_was_not_measured_is_not_compared(check):
    # Kept results are not computed again.
    code, text = check(("unit", 1.0), ("tests", 51.0), ("build from nothing", 500.0))
    assert code == 0 and "the sum over tests is 1.020 times" in text


def test_times_that_the_table_lacks_are_not_compared(check):
    code, text = check(("unit", 1.0), ("other", 51.0))
    assert code == 0 and "none of the compared times was measured" in text
