"""Processor times (scripts/measure.py) and their comparison (scripts/check_times.py)."""

import importlib.util
import subprocess
import sys
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
        '"reproduce" = 100.00\n"a/b" = 3.00\n\n[seconds."A processor with AVX-512"]\n'
        '"tests" = 25.0\n"reproduce" = 50.0\n\n[[entry]]\nsum = 150.0\n'
    )
    log.write_text(
        "a/b: 5 cells, 1.00e7 steps in 4.0 s, 2.50e6 steps/s\n"
        "a/b: its frontiers took 2.0 s, and are kept\n"
    )

    def call(*rows):
        times.write_text("".join(f"{name}\t{seconds}\t{speed}\n" for name, seconds, speed in rows))
        code = script.main(table, times, log)
        return code, capsys.readouterr().out

    return call


def test_times_are_compared_in_units_of_the_reference_loop(check):
    # On a machine that is half as fast all takes twice as long. Only one of the two ran next to
    # other work.
    code, text = check(("tests", 100.0, 0.5), ("reproduce", 408.0, 0.25))
    assert code == 0 and "is 1.013 times that of the table in units" in text


def test_a_sum_that_has_grown_by_more_than_is_allowed_fails(check):
    code, text = check(("tests", 30.0, 2.0), ("reproduce", 54.0, 2.0))
    assert code == 1 and "error: processor times have grown" in text
    assert "tests: 60.00 units, 50.00 in the table (1.20 times)" in text


def test_a_loop_that_became_faster_is_no_growth(check):
    code, text = check(("tests", 25.0, 4.0), ("reproduce", 50.0, 4.0))
    assert (
        code == 0 and "2.000 times that of the table in units, and 1.000 times in seconds" in text
    )


def test_experiments_are_shown_in_the_unit_of_their_run(check):
    # 4 + 2 seconds by the clock, of which the frontiers are another row.
    code, text = check(("reproduce", 50.0, 2.0))
    assert code == 0 and "  a/b: 8.00 units, 3.00 in the table (2.67 times)" in text


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        # Kept results are not computed again.
        (
            [("tests", 51.0, 1.0), ("build from nothing", 500.0, 9.0)],
            "the sum over tests is 1.020 times",
        ),
        ([("other", 51.0, 1.0)], "none of the compared times was measured"),
    ],
)
def test_what_only_one_side_has_is_not_compared(check, rows, wanted):
    code, text = check(*rows)
    assert code == 0 and wanted in text


MEASURE = SCRIPT.with_name("measure.py")


def measure(tmp_path, *command):
    """What scripts/measure.py writes of a command, with a loop of a twentieth of a second."""
    loop = tmp_path / "loop"
    loop.write_text(f"#!{sys.executable}\nimport time\nwhile time.process_time() < 0.05: pass\n")
    loop.chmod(0o755)
    times = tmp_path / "times"
    done = subprocess.run([sys.executable, MEASURE, loop, times, "it", *command], timeout=60)
    name, seconds, speed = times.read_text().split("\t")
    assert name == "it"
    return done.returncode, float(seconds), float(speed)


def test_the_processor_time_of_a_command_includes_its_children(tmp_path):
    spin = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.3: pass'"
    code, seconds, speed = measure(
        tmp_path, "sh", "-c", f"{spin} & {spin}; wait; sleep 0.5; exit 3"
    )
    assert code == 3
    assert 0.6 <= seconds < 1.5, "two children of 0.3 s, and no time of sleep"
    assert 2 < speed <= 20, "a run of the loop takes 0.05 s, and the start of the interpreter"


def test_a_loop_that_cannot_run_is_reported_before_the_command_begins(tmp_path):
    begun = tmp_path / "begun"
    done = subprocess.run(
        [sys.executable, MEASURE, tmp_path / "none", tmp_path / "times", "it", "touch", begun],
        capture_output=True,
        timeout=60,
    )
    assert done.returncode != 0 and not begun.exists()


def test_a_command_that_a_signal_ends_has_the_exit_code_of_a_shell(tmp_path):
    assert measure(tmp_path, "sh", "-c", "kill -9 $$")[0] == 137
