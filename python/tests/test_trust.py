"""What results of somebody else can and cannot do: they run no code unasked, and of a file that is
named nothing but what the hash in the ids of their cells covers."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import exactfed as ef
import pytest

MANIFEST = """\
python = ["payload.py"]
title = "t"
seed = 1
replicates = 2
[problem.quadratic]
dimension = 2
clients = 3
spectrum = { from = 0.5, to = 1.0 }
noise = 0.1
[start]
zero = true
[budget]
rounds = 10
[[algorithm.fedavg]]
step-size = 0.05
local-steps = 2
[[algorithm.mine]]
step-size = [0.05, 0.1]
local-steps = 2
"""

#: What a file of Python begins with, and its algorithm.
IMPORTS = "import exactfed as ef\nimport numpy as np\n"
HELPER = "FACTOR = 1.0\n\n\ndef scaled(theta):\n    return FACTOR * theta\n"
MINE = '''
@ef.algorithm("Mine", kind="mine")
def mine(clients, theta, gamma, H, power: int = 2):
    """Local steps.
   \x20
    This line follows one of blanks.
    """
    while True:
        theta = np.asarray(scaled(clients.mean(clients.local_steps(theta, gamma, H))))
        yield theta
'''
SOUND = IMPORTS + HELPER + MINE
#: What no statement may do: it leaves a file.
EVIL = "open('RAN', 'a').write('x')"


def command(*arguments: str, folder: Path, **options) -> subprocess.CompletedProcess:
    """The command line, in a process of its own that ends within a minute."""
    call = [sys.executable, "-m", "exactfed", *arguments]
    return subprocess.run(call, cwd=folder, capture_output=True, text=True, timeout=60, **options)


def reseal(file: Path, *changes: tuple[str, str]) -> None:
    """Change a file of results, and its checksum with it."""
    text = file.read_text().rpartition("# sha256 ")[0]
    for before, after in changes:
        assert before in text, (before, text)
        text = text.replace(before, after)
    file.write_text(f"{text}# sha256 {hashlib.sha256(text.encode()).hexdigest()}\n")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of the manifest, as their author has it."""
    folder = tmp_path_factory.mktemp("sound")
    (folder / "payload.py").write_text(SOUND)
    (folder / "e.toml").write_text(MANIFEST)
    done = command("run", "e.toml", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def stranger(sound: Path, tmp_path: Path) -> Path:
    """A folder with these results alone, which say that their code is beside them."""
    results = tmp_path / "results"
    subprocess.run(["cp", "-r", sound / "results", results], check=True, timeout=60)
    (results / "e" / "payload.py").write_text(SOUND + EVIL + "\n")
    reseal(
        results / "e" / "experiment.toml", ('manifest = "e.toml"', 'manifest = "results/e/e.toml"')
    )
    return tmp_path


EXPERIMENT = "results/e/experiment.toml"
#: Commands that read results, or the manifest that results keep, with their exit codes.
COMMANDS = {
    "verify": (["verify"], 4),
    "verify all": (["verify", "--all"], 4),
    "report": (["report"], 0),
    "digest": (["digest"], 0),
    "export": (["export", "--out", "rows.csv"], 0),
    "merge": (["merge", "results", "--out", "merged"], 0),
    "diff": (["diff", "results", "results"], 0),
    "check": (["check", EXPERIMENT], 0),
    "plan": (["plan", EXPERIMENT], 0),
    "run again": (["run", EXPERIMENT], 0),
    "run elsewhere": (["run", EXPERIMENT, "--out", "other"], 2),
    "watch": (["watch", EXPERIMENT, "--out", "other"], 2),
    "submit": (["submit", "--slurm", "--dry-run", EXPERIMENT, "--out", "other"], 2),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("code", ['"payload.py"', '"results.e.payload"', '"results/e/payload.py"'])
def test_no_command_runs_code_that_results_name(stranger: Path, name: str, code: str) -> None:
    reseal(stranger / EXPERIMENT, ('python = ["payload.py"]', f"python = [{code}]"))
    if "/" in code:
        reseal(stranger / EXPERIMENT, ('manifest = "results/e/e.toml"', 'manifest = "e.toml"'))
    arguments, code = COMMANDS[name]
    done = command(*arguments, folder=stranger)
    assert not list(stranger.rglob("RAN"))
    assert done.returncode == code, (done.stdout, done.stderr)
    if name.startswith("verify"):
        assert "1 of 3 cells run again: 1 bit-identical, 0 different" in done.stdout, done.stdout
        assert "2 cells left out: the code of `mine` is not at hand" in done.stdout
        cells = [line.split()[0] for line in command("digest", folder=stranger).stdout.splitlines()]
        assert sum(f"{cell} (Mine)" in done.stdout for cell in cells) == 2
    elif code == 2:
        assert "results run no code" in done.stderr, done.stderr


def test_the_manifest_of_results_is_not_theirs_from_within_their_folder(stranger: Path) -> None:
    """The path of the manifest that is named has no part of the results folder."""
    reseal(stranger / EXPERIMENT, ('manifest = "results/e/e.toml"', 'manifest = "e.toml"'))
    done = command("run", "experiment.toml", "--out", "../../other", folder=stranger / "results/e")
    assert done.returncode == 2 and "results run no code" in done.stderr, done.stderr
    assert not list(stranger.rglob("RAN"))


def test_loaded_results_run_no_code(stranger: Path) -> None:
    program = """
        import exactfed as ef
        results = ef.load("results")
        found = results.verify(None)
        assert (found.equal, found.different, found.not_comparable) == (1, 0, 2), found.text
        assert not found and "left out" in found.text
        results.frame(), results.claims(), results.ranking(), results.failures(), results.digests()
        results.report("pages")
        len(ef.plan("results/e/experiment.toml", out="results").frame())
        assert len(ef.run("results/e/experiment.toml", out="results").digests()) == 3
        try:
            ef.run("results/e/experiment.toml", out="other")
        except ef.ManifestError as error:
            assert "results run no code" in str(error)
            print("refused")
    """
    call = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(call, cwd=stranger, capture_output=True, text=True, timeout=60)
    assert done.stdout == "refused\n", done.stderr
    assert not list(stranger.rglob("RAN"))


def test_a_file_that_is_named_runs_as_far_as_its_hash_goes(stranger: Path) -> None:
    call = ["verify", "--all", "--run-code", "results/e/payload.py"]
    done = command(*call, folder=stranger)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "3 of 3 cells run again: 3 bit-identical" in done.stdout
    line = len((SOUND + EVIL).splitlines())
    assert f"payload.py:{line}: not run, since no hash covers it: open(" in done.stdout
    assert not list(stranger.rglob("RAN"))


#: Files that would run what no hash covers, and whether the algorithm is as it was nevertheless.
FORGED = {
    "statement": (f"{EVIL}\n{SOUND}", True),
    "condition": (f"{SOUND}if True:\n    {EVIL}\n", True),
    "try": (f"try:\n    {EVIL}\nfinally:\n    pass\n{SOUND}", True),
    "loop": (f"for x in [{EVIL}]:\n    pass\n{SOUND}", True),
    "another function": (f"{SOUND}\n@print\n@lambda f: {EVIL}\ndef more(): pass\n", True),
    "another class": (f"{SOUND}\nclass More:\n    {EVIL}\n", True),
    "value": (f"X = {EVIL}\n{SOUND}", True),
    "unpacked": (f"X, Y = [{EVIL}, 1]\n{SOUND}", True),
    "annotated": (f"X: {EVIL} = 1\n{SOUND}", True),
    "a module beside it": (f"import beside\n{SOUND}", True),
    "a module of the folder": (
        f"import results.e.beside\nfrom results.e import beside\n{SOUND}",
        True,
    ),
    "a relative module": (f"from . import beside\nfrom .beside import x\n{SOUND}", True),
    "in a list": (f"import exactfed, beside\n{SOUND}", True),
    "one line": (f"import exactfed; {EVIL}\n{SOUND}", True),
    "separators in a comment": (f"# \x0c\x0b\x1c\u2028\u2029\x85 x\n{EVIL}\n{SOUND}", True),
    "carriage returns": (f"{SOUND}# x\r{EVIL}\r\n", True),
    "decorator": (SOUND.replace("@ef", f"@lambda f: {EVIL} or f\n@ef"), False),
    "default": (SOUND.replace("power: int = 2", f"power: int = {EVIL}"), False),
    "annotation": (SOUND.replace("power: int", f"power: {EVIL}"), False),
    "body": (SOUND.replace("while True:", f"while {EVIL}:"), False),
    "helper": (SOUND.replace("return FACTOR", f"return {EVIL} or FACTOR"), False),
    "separators in the body": (
        SOUND.replace("    while", f"    # \u2028\n    {EVIL}\n    while"),
        False,
    ),
    "constant": (SOUND.replace("FACTOR = 1.0", "FACTOR = 2.0"), False),
    "another name for a module": (
        f"import subprocess as np\n{SOUND}".replace("import numpy as np\n", ""),
        False,
    ),
    "another name for a function": (f"from os import system as scaled\n{IMPORTS}{MINE}", False),
    "everything of a module": (f"{SOUND}from os import *\n", True),
    "the name of the algorithm": (f"{SOUND}mine = {EVIL}\nmine.x = {EVIL}\n", True),
}


@pytest.mark.parametrize("name", FORGED)
def test_nothing_runs_that_no_hash_covers(stranger: Path, name: str) -> None:
    text, whole = FORGED[name]
    for folder in (stranger, stranger / "results" / "e"):
        (folder / "beside.py").write_text(f"{EVIL}\nx = 1\n")
    (stranger / "own.py").write_bytes(text.encode())
    done = command("verify", "--all", "--run-code", "own.py", folder=stranger)
    assert not list(stranger.rglob("RAN")), done.stdout
    if whole:
        assert done.returncode == 0 and "3 bit-identical" in done.stdout, (done.stdout, done.stderr)
        reasons = ("no hash covers it", "beside is not in a folder of installed modules")
        assert any(f": not run, since {reason}" in done.stdout for reason in reasons), done.stdout
    elif done.returncode == 2:
        assert "nothing of it is run" in done.stderr
    else:
        assert done.returncode == 4 and "0 different" in done.stdout, (done.stdout, done.stderr)


def test_a_file_that_cannot_be_loaded_is_reported(stranger: Path) -> None:
    (stranger / "broken.py").write_text("def f(:\n")
    (stranger / "other.py").write_text(f"{IMPORTS}{EVIL}\n")
    (stranger / "folder.py").mkdir()
    for file, said in [
        ("nowhere.py", "there is no such file"),
        ("folder.py", "there is no such file"),
        ("broken.py", "it is not Python"),
        ("results.e.payload", "a file of Python is expected"),
        ("other.py", "nothing of it is run"),
    ]:
        done = command("verify", "--run-code", file, folder=stranger)
        assert done.returncode == 2, done.stdout
        assert f"error: --run-code {file}: " in done.stderr and said in done.stderr, done.stderr
    assert not list(stranger.rglob("RAN"))
    results = ef.load(stranger / "results")
    for wrong in (True, False):
        with pytest.raises(ef.ExactfedError, match="must name the files"):
            results.verify(run_code=wrong)  # type: ignore[arg-type]


def test_caches_that_need_code_are_left_out_as_its_cells_are(tmp_path: Path) -> None:
    figure = '[[figure.convergence]]\ntheory = ["exact-moments"]\n'
    (tmp_path / "payload.py").write_text(SOUND.replace("np.asarray", ""))
    (tmp_path / "e.toml").write_text(MANIFEST + figure)
    for arguments in (["run", "e.toml"], ["report"]):
        done = command(*arguments, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("results/.moments/*"))) == 3
    done = command("verify", "--all", folder=tmp_path)
    assert done.returncode == 4, done.stdout
    assert "2 cells left out" in done.stdout and ": 0 different" in done.stdout, done.stdout
    done = command("verify", "--all", "--run-code", "payload.py", folder=tmp_path)
    assert done.returncode == 0 and "3 bit-identical" in done.stdout, done.stdout


def test_the_source_of_an_algorithm_has_its_hash(stranger: Path) -> None:
    """Pages show the source: with another one than ran, no command reads the experiment."""
    reseal(stranger / EXPERIMENT, ("return FACTOR * theta", "return theta"))
    for arguments, code in [
        (["report"], 2),
        (["verify"], 4),
        (["verify", "--run-code", "results/e/payload.py"], 4),
        (["run", EXPERIMENT, "--out", "other"], 2),
        (["digest"], 4),
    ]:
        done = command(*arguments, folder=stranger)
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        said = done.stdout + done.stderr
        assert "does not have the hash" in said, (arguments, said)
    assert not list(stranger.rglob("RAN"))
    with pytest.raises(ef.ExactfedError, match="does not have the hash"):
        ef.load(stranger / "results")


def test_algorithms_of_this_process_are_verified_without_a_word(tmp_path: Path) -> None:
    text = MANIFEST.replace('python = ["payload.py"]\n', "").replace("mine", "of-this-process")

    def define(factor: float) -> None:
        @ef.algorithm("Mine", kind="of-this-process")
        def mine(clients, theta, gamma, H):
            while True:
                theta = factor * clients.mean(clients.local_steps(theta, gamma, H))
                yield theta

    define(1.0)
    results = ef.run(text, out=tmp_path / "results")
    assert results.verify(None).equal == 3
    # With other code the cells are left out: what it computes says nothing of them.
    define(0.5)
    found = ef.load(tmp_path / "results").verify(None)
    assert (found.equal, found.different, found.not_comparable) == (1, 0, 2), found.text
    assert "or is not what made them" in found.text


def test_files_can_be_named_in_python(stranger: Path) -> None:
    (stranger / "own.py").write_text(SOUND.replace("numpy as np", "numpy as np\nimport math"))
    program = """
        import exactfed as ef, pathlib
        results = ef.load("results")
        assert not results.verify(None)
        for named in ("own.py", ["own.py"], pathlib.Path("own.py")):
            found = results.verify(None, run_code=named)
            assert (found.equal, bool(found)) == (3, True), found.text
        # It is known from now on.
        assert results.verify(None)
    """
    call = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(call, cwd=stranger, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_shipped_algorithms_need_no_flag(tmp_path: Path) -> None:
    text = MANIFEST.replace('"payload.py"', '"exactfed.algorithms"').replace("mine", "fedavgm")
    (tmp_path / "m.toml").write_text(text)
    assert command("run", "m.toml", folder=tmp_path).returncode == 0
    done = command("verify", "--all", folder=tmp_path)
    assert done.returncode == 0 and "3 bit-identical" in done.stdout, (done.stdout, done.stderr)
    again = ["run", "results/m/experiment.toml", "--out", "other"]
    assert command(*again, folder=tmp_path).returncode == 0


def test_a_user_names_the_code_of_stored_experiments(stranger: Path) -> None:
    (stranger / "own.py").write_text(SOUND)
    call = ["run", EXPERIMENT, "--out", "other", "--python", "own.py"]
    done = command(*call, folder=stranger)
    assert done.returncode == 0, done.stderr
    digests = command("digest", folder=stranger).stdout
    assert command("digest", "other", folder=stranger).stdout == digests != ""
    done = command("run", EXPERIMENT, "--out", "other", "--python", "nowhere.py", folder=stranger)
    assert done.returncode == 2 and "--python nowhere.py: there is no file" in done.stderr
    assert not list(stranger.rglob("RAN"))


@pytest.mark.skipif(os.name == "nt", reason="Slurm")
def test_submitted_tasks_load_the_code_of_the_manifest(sound: Path, tmp_path: Path) -> None:
    """Tasks read a manifest in results; the script that calls them names its code."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "payload.py").write_text(SOUND)
    (tmp_path / "code" / "e.toml").write_text(MANIFEST)
    sbatch = tmp_path / "bin" / "sbatch"
    sbatch.parent.mkdir()
    sbatch.write_text("#!/bin/sh\necho 1\n")
    sbatch.chmod(0o755)
    env = os.environ | {"PATH": f"{sbatch.parent}:{os.environ['PATH']}"}
    call = ["submit", "--slurm", "code/e.toml", "--tasks", "1"]
    done = command(*call, folder=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    job = tmp_path / "results" / ".slurm" / "1"
    task = env | {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_JOB_ID": "1"}
    call = ["sh", str(job / "task.sh")]
    done = subprocess.run(call, cwd=tmp_path, env=task, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (done.stdout, done.stderr)
    found = command("digest", str(job / "tasks" / "1"), folder=tmp_path).stdout
    assert found == command("digest", folder=sound).stdout != ""
