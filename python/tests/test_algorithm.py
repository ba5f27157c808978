"""Algorithms in Python: the bits of the built-in ones, their place in results, their failures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import exactfed as ef
import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot

LOGISTIC = """
title = "t"
seed = 7
replicates = 3
[problem.logistic]
dimension = {dimension}
records = 20
clients = {clients}
data = {{ heterogeneous = {{ spread = 1.0, perturbation = 1.0 }} }}
l2 = 0.1
[start]
zero = true
[budget]
rounds = 200
"""

QUADRATIC = """
title = "t"
seed = 7
replicates = 2
[problem.quadratic]
dimension = 4
clients = 6
spectrum = { from = 0.5, to = 1.0 }
gradient-heterogeneity = 1.0
hessian-heterogeneity = 0.3
noise = 0.1
[start]
zero = true
[budget]
rounds = 600
"""


@ef.algorithm("FedAvg in Python", kind="own-fedavg")
def own_fedavg(clients, theta, gamma, H, cohort: int = 0):
    ends = None
    while True:
        if cohort:
            clients.cohort(cohort)
        ends = clients.local_steps(theta, gamma, H, out=ends)
        theta = clients.mean(ends)
        yield theta


@ef.algorithm("Scaffold in Python", kind="own-scaffold")
def own_scaffold(clients, theta, gamma, H):
    variates = clients.control_variates()
    while True:
        ends = clients.local_steps(theta, gamma, H, variates.corrections)
        theta = variates.learn(clients, theta, ends, gamma * H)
        yield theta


@ef.algorithm("FedAvg as a class", kind="class-fedavg")
class ClassFedAvg:
    def __init__(self, clients, gamma, theta, H):
        self.clients, self.theta, self.gamma, self.steps = clients, theta, gamma, H

    def round(self):
        self.theta = self.clients.mean(self.clients.local_steps(self.theta, self.gamma, self.steps))
        return self.theta


def entries(**kinds: str) -> str:
    """Tables of algorithms: γ, H and these further lines."""
    common = "step-size = 0.05\nlocal-steps = 5\n"
    return "".join(f"[[algorithm.{k.replace('_', '-')}]]\n{common}{v}\n" for k, v in kinds.items())


def digests(results: ef.Results) -> dict[str, str]:
    """The digest of the cell with each label."""
    cells = results.frame().select("cell", "label").unique()
    of = results.digests()
    return {label: of[cell] for cell, label in cells.iter_rows()}


@pytest.mark.parametrize("dimension, clients", [(8, 10), (1, 7), (5, 100)])
def test_fedavg_and_scaffold_have_the_digests_of_the_built_in_ones(tmp_path, dimension, clients):
    text = LOGISTIC.format(dimension=dimension, clients=clients)
    kinds = entries(fedavg="", scaffold="", own_fedavg="", own_scaffold="", class_fedavg="")
    found = digests(ef.run(text + kinds, out=tmp_path))
    assert found["FedAvg"] == found["FedAvg in Python"] == found["FedAvg as a class"]
    assert found["Scaffold"] == found["Scaffold in Python"] != found["FedAvg"]


def test_cohorts_are_those_of_the_built_in_algorithm(tmp_path):
    text = LOGISTIC.format(dimension=3, clients=10)
    found = digests(
        ef.run(text + entries(fedavg="cohort = 4", own_fedavg="cohort = 4"), out=tmp_path)
    )
    assert found["FedAvg"] == found["FedAvg in Python"]


def test_schemes_are_those_of_the_built_in_algorithm(tmp_path):
    coins = "participation = { bernoulli = [0.2, 0.4, 0.4, 0.6, 0.8, 1.0] }"
    kinds = entries(fedavg=f'label = "built in"\n{coins}', by_coins='label = "in Python"')
    frame = ef.run(QUADRATIC + kinds, out=tmp_path).frame().sort("replicate", "round")
    ours, theirs = (frame.filter(label=label) for label in ("in Python", "built in"))
    for column in ("communications", "oracle_calls", "vectors_sent"):
        assert ours[column].equals(theirs[column])
    np.testing.assert_allclose(ours["sq_error"], theirs["sq_error"], rtol=1e-9)


@ef.algorithm("FedAvg by coins", kind="by-coins")
def by_coins(clients, theta, gamma, H):
    while True:
        clients.cohort(participation={"bernoulli": [0.2, 0.4, 0.4, 0.6, 0.8, 1.0]})
        theta = theta + clients.mean(clients.local_steps(theta, gamma, H) - theta)
        yield theta


def test_the_algorithm_says_who_takes_part():
    plan = ef.plan(QUADRATIC + entries(fedavg=""))
    clients, theta = plan.clients(0, 0)
    clients.participate([4, 1], weights=[2.0, -1.0])
    assert clients.members.tolist() == [1, 4]
    ends = clients.local_steps(theta, 0.1, 3)
    moved = np.any(ends != theta, axis=1)
    assert moved.tolist() == [False, True, False, False, True, False]
    np.testing.assert_array_equal(clients.mean(ends), -ends[1] + 2.0 * ends[4])
    clients.participate(np.array([0, 5]))
    np.testing.assert_allclose(clients.mean(ends), (ends[0] + ends[5]) / 2, rtol=1e-15)
    clients.participate([])
    assert np.array_equal(clients.local_steps(theta, 0.1, 3), np.tile(theta, (6, 1)))
    with pytest.raises(ValueError, match="nobody takes part in this round"):
        clients.mean(ends)
    clients.participate([], weights=[])
    assert not clients.mean(ends).any()
    for indices, weights, message in [
        ([6], None, "whole numbers from 0 to 5, not 6"),
        ([-1], None, "whole numbers from 0 to 5, not -1"),
        ([0.5], None, "whole numbers from 0 to 5, not 0.5"),
        ([1, 1], None, "client 1 is named twice"),
        ([[1]], None, "indices has the shape"),
        ([0, 1], [1.0], r"weights has the shape \(1,\); expected \(2,\)"),
        ([0], [np.nan], "weights must be finite numbers, not NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            clients.participate(indices, weights)
    for size, scheme, message in [
        (None, None, "a cohort needs a size, or `participation` with a scheme"),
        (None, "rescaled", "`participation` has a meaning with `cohort` only"),
        (2, {"bernoulli": 0.5}, "`cohort` cannot be combined with"),
        (None, {"bernoulli": [0.5]}, "has 1 number, and there are 6 clients"),
        (2, "rescald", "participation is no scheme of manifests"),
        (None, {"cyclic": {"group": 2}}, "participation is no scheme of manifests"),
    ]:
        with pytest.raises(ValueError, match=message):
            clients.cohort(size, participation=scheme)


def test_linear_problems_too_and_any_number_of_threads(tmp_path):
    kinds = entries(fedavg="", own_fedavg="", scaffold="", own_scaffold="")
    results = ef.run(QUADRATIC + kinds, out=tmp_path / "one", threads=1)
    rows = results.frame()
    of = {label: rows.filter(label=label)["sq_error"] for label in rows["label"].unique()}
    assert of["FedAvg"].equals(of["FedAvg in Python"])
    assert of["Scaffold"].equals(of["Scaffold in Python"])
    assert results.digests() == ef.run(QUADRATIC + kinds, out=tmp_path / "two", threads=2).digests()


def test_a_key_of_one_s_own_is_an_axis(tmp_path):
    import exactfed.algorithms  # noqa: F401

    text = QUADRATIC + entries(fedavgm="momentum = [0.0, 0.5]", fedavg="")
    rows = ef.run(text, out=tmp_path).frame()
    assert rows.schema["momentum"] == pl.Float64
    last = rows.filter(pl.col("round") == 600)
    of = {key: part["sq_error"] for (key,), part in last.group_by("momentum")}
    assert set(of) == {None, 0.0, 0.5}
    np.testing.assert_allclose(of[0.0], of[None], rtol=1e-9)
    assert not np.allclose(of[0.5], of[None], rtol=1e-3)


def test_the_shipped_algorithms_converge_where_theory_says(tmp_path):
    """Without noise: FedDyn, Scaffold with momentum, and EF21 with one local step tend to θ*;
    FedAvgM and FedAdam to the limit of FedAvg. EF21 sends less."""
    import exactfed.algorithms  # noqa: F401

    kinds = entries(
        fedavg="", fedavgm="", fedadam="", feddyn="alpha = 0.5", scaffold_momentum="", ef21=""
    ).replace("0.05", "0.1")
    one = '[[algorithm.ef21]]\nlabel = "one"\nstep-size = 0.1\nlocal-steps = 1\n'
    rows = ef.run(
        QUADRATIC.replace("replicates = 2", 'replicates = 1\noracle = "exact"') + kinds + one,
        out=tmp_path,
    ).frame()
    last = rows.filter(pl.col("round") == 600)
    error = dict(last.select("label", "sq_error").iter_rows())
    for label in ("FedDyn", "Scaffold with momentum", "one"):
        assert error[label] < 1e-20, (label, error[label])
    for label in ("FedAvgM", "FedAdam", "EF21"):
        assert error[label] == pytest.approx(error["FedAvg"], rel=1e-6), label
    sent = dict(last.select("label", "bytes_sent").iter_rows())
    assert sent["one"] == 600 * 6 * (8 * 4 + 12)
    assert sent["FedAvgM"] == sent["FedAvg"] == 600 * 6 * 2 * 8 * 4


def test_results_are_those_of_a_source(tmp_path):
    text = LOGISTIC.format(dimension=2, clients=4) + entries(changing="")

    def define(factor: float, version: str = "1"):
        source = f"def changing(): return {factor}"

        @ef.algorithm("changing", source=source, version=version)
        def changing(clients, theta, gamma, H):
            while True:
                theta = factor * clients.mean(clients.local_steps(theta, gamma, H))
                yield theta

    ids = []
    for factor, version in [(1.0, "1"), (1.0, "1"), (0.5, "1"), (0.5, "2")]:
        define(factor, version)
        rows = ef.run(text, out=tmp_path).frame()
        ids.append(rows["cell"].unique().item())
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    every = ef.load(tmp_path).frame(earlier=True).unique("cell")
    assert every["source_hash"].n_unique() == 2
    assert sorted(every["algorithm_version"]) == ["1", "1", "2"]


FACTOR = 1.0


def scaled(theta):
    return FACTOR * theta


def test_constants_and_functions_that_it_uses_are_part_of_its_source(tmp_path, monkeypatch):
    local = 1.0

    @ef.algorithm("captures")
    def captures(clients, theta, gamma, H):
        while True:
            theta = local * scaled(clients.mean(clients.local_steps(theta, gamma, H)))
            yield theta

    text = LOGISTIC.format(dimension=2, clients=4) + entries(captures="")
    ids = []
    for factor, inner in [(1.0, 1.0), (1.0, 1.0), (0.5, 1.0), (0.5, 0.5)]:
        monkeypatch.setattr(sys.modules[__name__], "FACTOR", factor)
        local = inner
        rows = ef.run(text, out=tmp_path).frame().filter(pl.col("last_run"))
        ids.append(rows["cell"].unique().item())
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


def test_two_algorithms_of_one_name_are_refused(tmp_path):
    program = """
        import exactfed as ef

        @ef.algorithm("FedAvgM")
        def fedavgm(clients, theta, gamma, H):
            yield theta

        try:
            import exactfed.algorithms
        except ef.AlgorithmError as error:
            print(error)
    """
    (tmp_path / "own.py").write_text(textwrap.dedent(program))
    call = [sys.executable, "own.py"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    said = f"this process has defined fedavgm already, with other code ({tmp_path / 'own.py'}:4)"
    assert said in done.stdout, (done.stdout, done.stderr)


def test_a_file_is_imported_and_named_by_a_manifest(tmp_path):
    program = """
        import importlib, sys
        import exactfed as ef
        import twice

        ef.check("m.toml")
        ef.check("m.toml")
        own = open("twice.py").read()
        open("twice.py", "w").write(own.replace("yield theta", "yield 2 * theta"))
        try:
            ef.check("m.toml")
        except ef.ManifestError as error:
            print(error)
        importlib.reload(twice)
        ef.check("m.toml")
        print("reloaded")
    """
    own = 'import exactfed as ef\n\n@ef.algorithm("Twice", kind="twice")\n'
    own += "def twice(clients, theta, gamma, H):\n    while True:\n        yield theta\n"
    (tmp_path / "twice.py").write_text(own)
    (tmp_path / "m.toml").write_text('python = ["twice.py"]\n' + QUADRATIC + entries(twice=""))
    (tmp_path / "own.py").write_text(textwrap.dedent(program))
    call = [sys.executable, "-B", "own.py"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("reloaded\n"), (done.stdout, done.stderr)
    assert "this process has defined twice already, with other code" in done.stdout


def test_parameters_that_all_algorithms_have_say_their_name():
    with pytest.raises(ef.AlgorithmError, match=r"step_size is a key that all .*: name it gamma"):

        @ef.algorithm
        def named(clients, theta, step_size):
            yield theta


def test_its_keys_are_tuned(tmp_path):
    import exactfed.algorithms  # noqa: F401

    tune = """
    [tune]
    over = ["step-size", "momentum"]
    values = { step-size = [0.02, 0.1], momentum = [0.0, 0.5, 0.9] }
    evaluate = 5
    """
    kinds = "[[algorithm.fedavg]]\nlocal-steps = 5\n[[algorithm.fedavgm]]\nlocal-steps = 5\n"
    results = ef.run(QUADRATIC + textwrap.dedent(tune) + kinds, out=tmp_path)
    with pytest.warns(
        ef.ExactfedWarning, match=r"widen the range or the values in \[tune\] \(FedAvg"
    ):
        tuned = results.tuned()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results.ranking()
    assert set(tuned["label"]) == {"FedAvg", "FedAvgM"}
    assert tuned.filter(label="FedAvgM")["momentum"].item() in (0.0, 0.5, 0.9)
    assert tuned.schema["momentum"] == pl.Float64, "whichever is selected"
    figure = results.plot("tuning-momentum")
    [measured, ring] = figure.axes[0].lines[:2]
    assert measured.get_xdata().tolist() == [0.0, 0.5, 0.9] and len(ring.get_xdata()) == 1
    pyplot.close(figure)
    caption = results._figure("tuning-momentum", None, None)["caption"]
    assert "Every algorithm that has this setting began with the same 3 values." in caption
    # Without the algorithm, what is wrong is its kind and not what is tuned.
    unknown = QUADRATIC + textwrap.dedent(tune) + "[[algorithm.unheard-of]]\nlocal-steps = 5\n"
    with pytest.raises(ef.ManifestError, match="unknown key `unheard-of`"):
        ef.check(unknown)


def test_candidates_are_added_beyond_the_ends_of_a_range(tmp_path):
    """The best step size is far above the range, with an algorithm of one's own as without."""
    import exactfed.algorithms  # noqa: F401

    tune = '[tune]\nover = "step-size"\nrange = [1e-4, 1e-3]\n'
    fedavg = "[[algorithm.fedavg]]\nlocal-steps = 5\n"
    own = fedavg + "[[algorithm.fedavgm]]\nlocal-steps = 5\nmomentum = 0.0\n"
    largest = []
    for name, kinds in [("built-in", fedavg), ("own", own)]:
        rows = ef.run(QUADRATIC + tune + kinds, name=name, out=tmp_path).frame()
        largest.append(rows["step_size"].max())
    assert largest[0] == largest[1] > 1e-3


BROKEN = {
    "raises": ("raise ValueError('no more')", "ValueError: no more"),
    "shape": ("yield np.zeros(9)", "an array of shape (9,), and θ has the shape (2,)"),
    "text": ("yield 'abc'", "round 3: what it yielded must be an array of numbers"),
    "complex": ("yield theta + 1j", "round 3: what it yielded is complex; expected real numbers"),
    "no imaginary part": ("yield list(theta.astype(complex))", "what it yielded is complex"),
    "complex theta": ("clients.local_steps(theta + 0j, 0.1, 1)", "ValueError: theta is complex"),
    "complex field": ("clients.fields(theta + 1j)", "ValueError: theta is complex"),
    "complex rows": ("clients.mean(np.zeros((4, 2)) * 1j)", "ValueError: rows is complex"),
    "complex step": (
        "clients.local_steps(theta, np.complex128(0.1), 1)",
        "ValueError: gamma is complex",
    ),
    "complex steps": ("clients.local_steps(theta, 0.1, np.array(1j))", "ValueError: H is complex"),
    "complex pull": (
        "clients.local_steps(theta, 0.1, 1, proximal=np.complex64(1))",
        "ValueError: proximal is complex",
    ),
    "complex xi": (
        "clients.local_steps(theta, 0.1, 1, 1j * theta)",
        "ValueError: corrections is complex",
    ),
    "ends": ("return", "it ended before round 3"),
    "bad call": (
        "clients.local_steps(np.zeros(9), 0.1, 1)",
        "theta has the shape (9,); expected (2,) or (4, 2)",
    ),
    "steps": (
        "clients.local_steps(theta, 0.1, 0)",
        "H must be a whole number from 1 to 10⁹, not 0",
    ),
    "float": (
        "clients.local_steps(theta, 0.1, 2.5)",
        "H must be a whole number from 1 to 10⁹, not 2.5",
    ),
    "words": ("clients.local_steps(theta, 'small', 2)", "gamma must be an array of numbers"),
    "none": ("yield", "it yielded nothing: write `yield theta`"),
    "hangs": (
        "\n        while True: pass",
        "round 3: it was ended, since it yielded no estimate within 1 s in Python, the `patience` "
        "of its decorator",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_failing_algorithm_costs_its_cell_alone(tmp_path, name):
    code, said = BROKEN[name]
    source = (
        "def broken(clients, theta, gamma, H):\n    yield theta\n    yield theta\n"
        f"    if True: {code}\n    yield theta\n"
    )
    scope: dict = {"np": np}
    exec(source, scope)
    ef.algorithm("broken", source=source, patience=1)(scope["broken"])
    text = LOGISTIC.format(dimension=2, clients=4) + entries(fedavg="", broken="")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = ef.run(text, out=tmp_path)
    assert not [w for w in caught if issubclass(w.category, np.exceptions.ComplexWarning)]
    [warning] = [str(w.message) for w in caught if w.category is ef.CellFailedWarning]
    assert said in warning and "(broken)" in warning, warning
    assert set(results.frame()["label"]) == {"FedAvg"}
    with pytest.raises(ef.CellError, match="broken"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ef.run(LOGISTIC.format(dimension=2, clients=4) + entries(broken=""), out=tmp_path / "alone")


def test_what_is_no_number_diverges(tmp_path):
    @ef.algorithm("diverges")
    def diverges(clients, theta, gamma, H):
        while True:
            theta = theta + np.inf
            yield theta

    text = LOGISTIC.format(dimension=2, clients=4) + entries(diverges="")
    with pytest.warns(
        ef.ExactfedWarning, match="from round 1 on in replicate 0, and in 2 more runs"
    ):
        results = ef.run(text, out=tmp_path)
    assert set(results.frame()["outcome"]) == {"diverged"}


def test_what_is_no_number_is_a_warning_once_per_cell(tmp_path):
    """With the cell and the first round; not where θ only becomes large, as with any algorithm."""

    @ef.algorithm("turns")
    def turns(clients, theta, gamma, H, at: int, large: bool = False):
        for t in range(1, 10**9):
            theta = np.full(clients.dim, 1e200 if large else np.nan) if t == at else theta
            yield theta

    lines = 'at = [6, 11]\n[[algorithm.turns]]\nlabel = "large"\nstep-size = 0.05\n'
    lines += "local-steps = 5\nat = 3\nlarge = true\n"
    text = LOGISTIC.format(dimension=2, clients=4) + entries(turns=lines)
    for again in (False, True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results = ef.run(text, out=tmp_path)
        said = [str(w.message) for w in caught if issubclass(w.category, ef.ExactfedWarning)]
        assert len(said) == (0 if again else 2), said
        rows = results.frame()
        assert set(rows["outcome"]) == {"diverged"} and rows["cell"].n_unique() == 3
        cells = dict(rows.filter(~pl.col("large")).select("at", "cell").unique().iter_rows())
        # The second time there are none.
        for text_of, at in zip(sorted(said, key=len), (6, 11), strict=False):
            assert text_of == (
                f"cell {cells[at]} (turns): θ is not finite from round {at} on in replicate 0, "
                "and in 2 more runs; these runs end as diverged"
            )


@pytest.mark.parametrize(
    "source, said",
    [
        ("def f(clients, *more): yield", "can be no key"),
        ("def f(clients, beta=None): yield", "has the default None"),
        ("def f(clients, k: int = -1): yield", "whole numbers are 0 or more"),
        ("def f(clients, Big=1.0): yield", "lower-case"),
        ("def f(clients, label='a'): yield", "a meaning of its own"),
    ],
)
def test_parameters_that_no_manifest_could_name_are_refused(source, said):
    scope: dict = {}
    exec(source, scope)
    with pytest.raises(ef.AlgorithmError, match=said):
        ef.algorithm("mine", source=source)(scope["f"])
    with pytest.raises(ef.AlgorithmError, match="built in"):
        ef.algorithm("FedAvg", source="x")(lambda clients: None)
    exec("def sound(clients): yield", scope)
    with pytest.raises(ef.AlgorithmError, match="source cannot be found"):
        ef.algorithm("mine")(scope["sound"])


MOMENTUM = """
import exactfed as ef


@ef.algorithm("Heavy ball", kind="heavy-ball")
def heavy_ball(clients, theta, gamma, H, beta=0.5):
    velocity = 0.0
    while True:
        velocity = beta * velocity + clients.mean(clients.local_steps(theta, gamma, H)) - theta
        theta = theta + velocity
        yield theta
"""


def command(*arguments: str, folder) -> subprocess.CompletedProcess:
    """The command line, in a process of its own that ends within a minute."""
    call = [sys.executable, "-m", "exactfed", *arguments]
    return subprocess.run(call, cwd=folder, capture_output=True, text=True, timeout=60)


def test_the_command_line_runs_algorithms_of_a_file(tmp_path):
    (tmp_path / "own.py").write_text(MOMENTUM)
    text = 'python = ["own.py"]\n' + LOGISTIC.format(dimension=2, clients=4)
    claim = """
    [[claim.less]]
    id = "momentum"
    statement = "Momentum ends lower"
    left = { label = "Heavy ball" }
    right = { label = "FedAvg" }
    """
    (tmp_path / "m.toml").write_text(
        text + entries(fedavg="", heavy_ball="beta = 0.5") + textwrap.dedent(claim)
    )
    verify = ["verify", "--all", "--run-code", "own.py"]
    for arguments in (["check", "m.toml"], ["run", "m.toml"], verify):
        done = command(*arguments, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    assert "2 bit-identical" in done.stdout
    command("report", "--format", "md,html", folder=tmp_path)
    page = (tmp_path / "reports/m/report.md").read_text()
    assert "velocity = beta * velocity" in page and "Momentum ends lower" in page
    # Without the code, results are still read and drawn, and not run.
    (tmp_path / "own.py").unlink()
    assert command("export", "--out", "rows.parquet", folder=tmp_path).returncode == 0
    assert set(pl.read_parquet(tmp_path / "rows.parquet")["label"]) == {"FedAvg", "Heavy ball"}
    done = command("run", "m.toml", folder=tmp_path)
    assert done.returncode == 2 and "own.py" in done.stderr, done.stderr
    done = command("verify", "--all", folder=tmp_path)
    assert done.returncode != 0 and "not at hand" in done.stdout, done.stdout


def test_code_that_is_not_there_is_reported(tmp_path):
    text = 'python = ["own.py"]\n' + LOGISTIC.format(dimension=2, clients=4) + entries(own="")
    (tmp_path / "m.toml").write_text(text)
    done = command("check", "m.toml", folder=tmp_path)
    assert done.returncode == 2 and "there is no file own.py" in done.stderr, done.stderr
    (tmp_path / "own.py").write_text("import exactfed\n")
    done = command("check", "m.toml", folder=tmp_path)
    assert done.returncode == 2 and "defines no algorithm" in done.stderr, done.stderr
    with pytest.raises(ef.ManifestError, match=r"@exactfed.algorithm"):
        ef.check(LOGISTIC.format(dimension=2, clients=4) + entries(unheard_of=""))


def test_the_error_of_a_file_is_reported_with_its_place(tmp_path):
    (tmp_path / "own.py").write_text("import exactfed\n1 / 0\n")
    (tmp_path / "m.toml").write_text(
        'python = ["own.py"]\n' + LOGISTIC.format(dimension=2, clients=4) + entries(fedavg="")
    )
    done = command("check", "m.toml", folder=tmp_path)
    assert done.returncode == 2
    assert "m.toml:1:11" in done.stderr and "ZeroDivisionError" in done.stderr, done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_ends_an_algorithm_that_does_not_end(tmp_path):
    program = MOMENTUM + textwrap.dedent(
        """
        import itertools

        @ef.algorithm("endless", patience=600)
        def endless(clients, theta, gamma, H):
            yield theta
            print("waiting", flush=True)
            for _ in itertools.count():
                pass

        import sys
        try:
            ef.run(sys.argv[1], out="results")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    (tmp_path / "own.py").write_text(program)
    text = LOGISTIC.format(dimension=2, clients=4) + entries(fedavg="", endless="")
    call = [sys.executable, "own.py", text]
    with subprocess.Popen(call, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "waiting\n"
            child.send_signal(signal.SIGINT)
            rest, _ = child.communicate(timeout=30)
        finally:
            child.kill()
    assert "interrupted" in rest
    assert set(ef.load(tmp_path / "results").frame()["label"]) == {"FedAvg"}


def test_an_interruption_ends_the_rounds_of_its_run_alone(tmp_path):
    """Two runs go on in two threads; one is interrupted while both are in rounds that take long."""
    text = LOGISTIC.format(dimension=2, clients=4).replace("replicates = 3", "replicates = 1")
    unhurried_begun = threading.Event()
    unending_begun = threading.Event()
    found = {}

    @ef.algorithm("unhurried", patience=60)
    def unhurried(clients, theta, gamma, H):
        if not unhurried_begun.is_set():
            unhurried_begun.set()
            end = time.monotonic() + 6
            while time.monotonic() < end:
                time.sleep(0.02)
        while True:
            yield theta

    @ef.algorithm("unending", patience=60)
    def unending(clients, theta, gamma, H):
        if not unending_begun.is_set():
            unending_begun.set()
            end = time.monotonic() + 60
            while time.monotonic() < end:
                time.sleep(0.02)
        while True:
            yield theta

    def run_unhurried():
        found["results"] = ef.run(text + entries(unhurried=""), out=tmp_path / "unhurried")

    def interrupt(*_):
        if unending_begun.is_set():
            raise LookupError("mine")

    thread = threading.Thread(target=run_unhurried, daemon=True)
    thread.start()
    assert unhurried_begun.wait(30)
    manifest = text + entries(unending="")
    with pytest.raises(LookupError, match="mine"):
        ef.run(manifest, out=tmp_path / "unending", progress=interrupt)
    thread.join(60)
    assert not thread.is_alive()
    assert set(found["results"].frame()["label"]) == {"unhurried"}
    # The round that was ended is no failure of its cell: the cell is run with the next run.
    states = ef.plan(manifest, out=tmp_path / "unending").frame()["state"]
    assert set(states) == {"missing"}


def test_draws_of_one_s_own_are_those_of_the_replicate(tmp_path):
    @ef.algorithm("random")
    def random(clients, theta, gamma, H):
        while True:
            theta = clients.mean(clients.local_steps(theta, gamma, H))
            theta = theta + 0.01 * clients.rng.normal(size=clients.dim)
            yield theta

    text = LOGISTIC.format(dimension=2, clients=4) + entries(random="")
    one, two = (ef.run(text, out=tmp_path / name) for name in "ab")
    assert one.digests() == two.digests()
    last = one.frame().filter(pl.col("round") == 200)["sq_error"]
    assert last.n_unique() == 3


def test_the_mean_field_is_that_of_many_calls(tmp_path):
    seen = []

    @ef.algorithm("fields")
    def fields(clients, theta, gamma):
        while True:
            seen.append((clients.fields(theta, 200_000), clients.fields(np.tile(theta, (4, 1)))))
            yield theta

    text = LOGISTIC.format(dimension=2, clients=4).replace("rounds = 200", "rounds = 1")
    rows = ef.run(
        text.replace("replicates = 3", "replicates = 1")
        + "[[algorithm.fields]]\nstep-size = 1.0\n",
        out=tmp_path,
    ).frame()
    [(many, one)] = seen
    assert many.shape == one.shape == (4, 2)
    assert rows.filter(pl.col("round") == 1)["oracle_calls"].item() == 4 * 200_001
    # θ* is where the mean of the fields is 0, so θ_0 = 0 is not one, and a step against it helps.
    assert np.linalg.norm(many.mean(axis=0)) > 0.01


def test_algorithms_of_one_s_own_have_colours_of_their_own(tmp_path):
    pytest.importorskip("matplotlib")
    kinds = entries(fedavg="", own_fedavg="", own_scaffold="")
    figure = ef.run(QUADRATIC + kinds, out=tmp_path).plot()
    lines = {line.get_color() for axes in figure.axes for line in axes.get_lines()}
    assert len(lines) == 3, lines


@pytest.mark.engine
def test_the_page_of_the_shipped_algorithms_is_that_of_its_manifest(tmp_path, monkeypatch):
    root = Path(__file__).resolve().parents[2]
    monkeypatch.chdir(root)
    results = ef.run("examples/python/algorithms.toml", out=tmp_path / "results")
    page = results.report(tmp_path / "reports", formats=["md"])
    kept = root / "examples/python/reports/algorithms/report.md"
    assert page.with_suffix(".md").read_text("utf-8") == kept.read_text("utf-8")
    drawn, figures = (file.parent / "figures" for file in (page, kept))
    names = sorted(file.name for file in figures.glob("*.svg"))
    assert names and names == sorted(file.name for file in drawn.glob("*.svg"))
    for name in names:
        assert (drawn / name).read_bytes() == (figures / name).read_bytes(), name


NESTED = """
import exactfed as ef

@ef.algorithm("Nested", kind="nested-helper")
def nested(clients, theta, gamma, H):
    def step(t):
        return [factor() * (clients.mean(clients.local_steps(t, gamma, H)) - t) for _ in range(1)]

    while True:
        theta = theta + sum(step(theta))
        yield theta


def factor():
    return FACTOR
"""


def test_helpers_of_inner_functions_and_below_are_part_of_the_source(tmp_path):
    """What only an inner function or a comprehension uses decides the numbers too."""
    text = QUADRATIC.replace("600", "3") + (
        "[[algorithm.nested-helper]]\nstep-size = 0.1\nlocal-steps = 2\n"
    )
    (tmp_path / "m.toml").write_text('python = ["own.py"]\n' + text)

    def cells(factor: str) -> str:
        (tmp_path / "own.py").write_text(NESTED.replace("FACTOR", factor))
        command = [sys.executable, "-m", "exactfed", "run", "m.toml"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        digests = [sys.executable, "-m", "exactfed", "digest", "results"]
        done = subprocess.run(digests, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        return done.stdout

    one = cells("1.0")
    assert cells("1.0") == one
    assert cells("0.5") != one, "an earlier result was taken for another algorithm"
