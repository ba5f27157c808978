"""Losses of margins: their numbers, the records of files, the parts of clients, and messages."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import exactfed as ef
import numpy as np
import pytest

CLIENTS, RECORDS, DIM, L2 = 4, 12, 3, 0.1
X = np.random.default_rng(3).standard_normal((CLIENTS * RECORDS, DIM))
Y = np.random.default_rng(4).integers(0, 2, CLIENTS * RECORDS)
CLIENT = np.sort(np.arange(CLIENTS * RECORDS) % 7 % CLIENTS)
K = np.array([0, 2, 1, 2])
THETA = np.random.default_rng(5).standard_normal((len(K), DIM))


class Sigmoid(ef.MarginLoss):
    """A loss that is not convex, with a slope that is zero far away."""

    def loss(self, margin):
        return 1 / (1 + np.exp(margin))

    def slope(self, margin):
        return -self.loss(margin) * (1 - self.loss(margin))

    def curvature(self, margin):
        return self.slope(margin) * (2 * self.loss(margin) - 1)


@ef.problem("Logistic loss", kind="logistic-margin")
class Logistic(ef.MarginLoss):
    def loss(self, margin):
        return np.log1p(np.exp(-margin))

    def slope(self, margin):
        return -1 / (1 + np.exp(margin))

    def curvature(self, margin):
        return self.slope(margin) * (-1 - self.slope(margin))


@ef.problem("Squared hinge of drawn records", kind="drawn-hinge")
class DrawnHinge(ef.MarginLoss):
    def __init__(self, rng, scale: float = 1.0, l2: float = 0.1):
        self.scale = scale
        x = rng.standard_normal((30, 2))
        self.hold_records(x, x[:, 0] > rng.standard_normal(30), 3, l2=l2)

    def loss(self, margin):
        return np.maximum(self.scale - margin, 0) ** 2

    def slope(self, margin):
        return -2 * np.maximum(self.scale - margin, 0)


@ef.problem("Half the square", kind="margin-square")
class HalfSquare(ef.MarginLoss):
    def loss(self, margin):
        return (1 - margin) ** 2 / 2

    def slope(self, margin):
        return margin - 1


def manifest(problem: str, more: str = "", metrics: str = '"train-loss", "sq-gradient"') -> str:
    return f"""
title = "t"
seed = 7
replicates = 2
{more}
{problem}
[start]
zero = true
[budget]
rounds = 20
[record]
iterates = true
metrics = [{metrics}]
[[algorithm.fedavg]]
step-size = 0.2
local-steps = 3
[[algorithm.scaffold]]
step-size = 0.2
local-steps = 3
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "records.npz"
    np.savez(path, x=X, y=Y, client=CLIENT)
    return path


def of_archive(archive: Path, kind: str = "logistic-margin", more: str = "") -> str:
    return f"[problem.{kind}]\nfile = '{archive}'\n{more}"


def held(y=Y, clients: object = CLIENT, **settings) -> Sigmoid:
    """A problem with the records of this file."""
    problem = Sigmoid.__new__(Sigmoid)
    problem.hold_records(X[: len(y)], y, clients, **settings)
    return problem


@pytest.mark.parametrize("oracle", ["exact", "stochastic"])
def test_the_logistic_loss_has_the_numbers_of_the_built_in_problem(oracle, archive, tmp_path):
    metrics = '"train-loss", "sq-gradient", "suboptimality"'
    more = f'oracle = "{oracle}"'
    keys = f'l2 = {L2}\nintercept = "last"\nweights = "records"'
    own = ef.run(
        manifest(of_archive(archive, more=keys), more, metrics), out=tmp_path / "own", name="own"
    )
    dataset = (
        f"[problem.logistic-dataset]\nl2 = {L2}\n"
        f'dataset = {{ file = "{archive}", split = {{ column = "client" }}, intercept = true, '
        'weights = "records" }'
    )
    built_in = ef.run(manifest(dataset, more, metrics), out=tmp_path / "built-in", name="built-in")
    frames = [one.frame().sort("label", "replicate", "round") for one in (own, built_in)]
    iterates = [np.array(frame["theta"].to_list()) for frame in frames]
    assert np.abs(iterates[0]).max() > 0.1 and iterates[0].shape[1] == DIM + 1
    assert np.abs(iterates[0] - iterates[1]).max() < 1e-12
    for name in ("sq_gradient", "sq_error", "suboptimality"):
        assert (frames[0][name] - frames[1][name]).abs().max() < 1e-12, name
    # The losses of problems in Python have the penalty, and those of built-in ones do not.
    penalties = L2 / 2 * (iterates[0] ** 2).sum(axis=1)
    losses = [frame["train_loss"].to_numpy() for frame in frames]
    assert np.abs(losses[0] - penalties - losses[1]).max() < 1e-12


def test_gradients_and_hessians_are_derivatives():
    problem = held(l2=L2)
    width = 1e-5
    gradients = problem.mean_grad(THETA, K)
    hessians = problem.mean_hessian(THETA, K)
    for i in range(DIM):
        step = width * np.eye(DIM)[i]
        rise = problem.value(THETA + step, K) - problem.value(THETA - step, K)
        assert np.allclose(rise / (2 * width), gradients[:, i], rtol=1e-8, atol=1e-10)
        turn = problem.mean_grad(THETA + step, K) - problem.mean_grad(THETA - step, K)
        assert np.allclose(turn / (2 * width), hessians[:, i], rtol=1e-8, atol=1e-9)
    for row, (theta, client) in enumerate(zip(THETA, K, strict=True)):
        count = problem.records[client]
        all_draws = np.tile(theta, (count, 1)), np.full(count, client), np.arange(count)
        assert np.allclose(problem.grad(*all_draws).mean(axis=0), gradients[row], rtol=1e-13)


def test_values_and_gradients_are_those_of_the_formulas():
    problem = held(l2=L2)
    signs = 2.0 * Y - 1
    for row, (theta, client) in enumerate(zip(THETA, K, strict=True)):
        own = client == CLIENT
        margins = signs[own] * (X[own] @ theta)
        assert np.allclose(problem.margins(theta, client), margins, rtol=1e-14)
        value = problem.loss(margins).mean() + L2 / 2 * theta @ theta
        assert np.isclose(problem.value(THETA, K)[row], value, rtol=1e-14)
        one = problem.slope(margins[1]) * signs[own][1] * X[own][1] + L2 * theta
        found = problem.grad(THETA, K, np.ones(len(K), dtype=int))[row]
        assert np.allclose(found, one, rtol=1e-13)


class Halved(Sigmoid):
    def grad(self, theta, k, draw):
        return super().grad(theta, k, draw) / 2


def test_the_library_takes_what_a_subclass_computes_itself():
    assert held()._describe_margins() is not None
    problem = Halved.__new__(Halved)
    problem.hold_records(X, Y, CLIENT)
    assert problem._describe_margins() is None
    draws = np.zeros(len(K), dtype=int)
    assert (problem.grad(THETA, K, draws) == held().grad(THETA, K, draws) / 2).all()


def test_records_that_are_held_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        held().signed[0][0, 0] = 1.0


def test_clients_and_draws_that_do_not_exist_are_refused():
    problem, draws = held(), np.zeros(len(K), dtype=int)
    for arguments, said in [
        (
            (THETA, K + CLIENTS, draws),
            f"k has the number {CLIENTS}; it must be from 0 to {CLIENTS - 1}",
        ),
        ((THETA, K, draws - 1), "draw has the number -1; it must be from 0 to"),
        ((THETA, K, draws[1:]), r"draw has the shape \(\d,\); expected \(\d,\)"),
        ((THETA[:, 1:], K, draws), r"theta has the shape"),
    ]:
        with pytest.raises(ValueError, match=said):
            problem.grad(*arguments)


def test_rows_are_divided_in_their_order():
    y = Y[:11]
    rows = X[:11] * (2.0 * y - 1)[:, None]
    for drop_rest, counts in [(False, [4, 4, 3]), (True, [3, 3, 3])]:
        problem = held(y, 3, drop_rest=drop_rest)
        assert problem.records == counts and problem.shares is None
        assert (np.concatenate(problem.signed) == rows[: sum(counts)]).all()
    names = np.array(["b", "a", "b", "c", "a", "b", "b", "c", "a", "a", "b"])
    problem = held(y, names, weights="records")
    assert problem.records == problem.shares == [4, 5, 2]
    for name, signed in zip("abc", problem.signed, strict=True):
        assert (signed == rows[names == name]).all()


def test_the_greater_label_is_positive():
    signs = 2.0 * Y - 1
    for labels in (Y, signs, Y + 1, Y.astype(bool), np.where(Y == 1, "yes", "no")):
        assert (np.concatenate(held(labels).signed) == X * signs[:, None]).all()
    for labels, said in [
        (Y + np.arange(len(Y)) % 2, r"3 different labels, 0.0, 1.0, 2.0; margins need two"),
        (np.ones(len(Y)), r"1 different labels, 1.0; margins need two"),
        (np.arange(len(Y)), r"48 different labels, 0.0, 1.0, 2.0, 3.0, 4.0, …; margins need two"),
        (np.where(Y == 1, np.nan, 0.0), r'records\["y"\]\[\d+\] is nan; every number must be fin'),
        (Y[:, None], r'records\["y"\] has the shape \(48, 1\); expected \(n,\) = \(48,\)'),
    ]:
        with pytest.raises(ef.ProblemError, match=said):
            held(labels)


TEXT = "+1 1:0.5 3:2 # a comment\n\n-1 2:-1e2\n-1\n"


def test_libsvm_text_is_read(tmp_path):
    rows = np.array([[0.5, 0.0, 2.0], [0.0, 100.0, 0.0], [0.0, 0.0, 0.0]])
    (tmp_path / "one.svm").write_text(TEXT)
    zero = TEXT.replace("1:0.5 3:", "0:0.5 2:").replace("2:-", "1:-")
    (tmp_path / "zero.txt").write_text(zero)
    with gzip.open(tmp_path / "one.libsvm.gz", "wt") as file:
        file.write(TEXT)
    for name in ("one.svm", "zero.txt", "one.libsvm.gz"):
        path = str(tmp_path / name)
        assert (np.concatenate(Sigmoid(path, clients=2).signed) == rows).all()
        ones = [[1.0], [-1.0], [-1.0]]
        first = Sigmoid(path, clients=2, intercept="first")
        assert (np.concatenate(first.signed) == np.hstack([ones, rows])).all()
        last = Sigmoid(path, clients=2, intercept="last", features=5)
        padded = np.hstack([rows, np.zeros((3, 2)), ones])
        assert last.dim == 6 and (np.concatenate(last.signed) == padded).all()


@pytest.mark.parametrize(
    "text, said",
    [
        ("1 1:2\nx 1:2\n", "line 2 is not label index:value …, with numbers"),
        ("1 1:2\n-1 1\n", "line 2 is not label index:value"),
        ("1 1:2\n-1 1:2:3\n", "line 2 is not label index:value"),
        ("1 1:x\n", "line 1 is not label index:value"),
        ("1 2:1 1:1\n", "the indices of line 1 do not rise from 0 or 1"),
        ("1 2:1 2:1\n", "the indices of line 1 do not rise"),
        ("1 -1:1\n", "the indices of line 1 do not rise"),
        ("# nothing\n", "has no records of LIBSVM"),
        ("1 1:2\n-1 999999999999999999:1\n", "there is no memory for them"),
        ("1 1:2\n-1 1:inf\n", r'wrong.svm\["x"\]\[1, 0\] is inf; every number must be finite'),
        (b"\xff\xfe1 1:2\n", "cannot be read: 'utf-8' codec"),
    ],
)
def test_mistakes_of_a_text_are_named(text, said, tmp_path):
    path = tmp_path / "wrong.svm"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ef.ProblemError, match=said):
        Sigmoid(str(path), clients=1)


def test_mistakes_of_an_archive_are_named(tmp_path):
    path = tmp_path / "wrong.npz"
    for arrays, said in [
        ({"features": X, "y": Y}, r'has no array "x" \(n, d\), only features, y'),
        ({"x": X}, 'has "x" but no labels "y"'),
        ({"x": X, "y": Y[1:]}, r'wrong.npz\["y"\] has 47 values, but "x" has 48 rows'),
        ({"x": X.astype(object), "y": Y}, "Object arrays cannot be loaded"),
        ({"x": X, "y": Y, "client": CLIENT[1:]}, r'wrong.npz\["client"\] has 47 values'),
    ]:
        np.savez(path, **arrays)
        with pytest.raises(ef.ProblemError, match=said):
            Sigmoid(str(path))
    path.write_text("1 1:2\n")
    with pytest.raises(ef.ProblemError, match=r"wrong\.npz is not an \.npz file"):
        Sigmoid(str(path))


def test_mistakes_of_keys_are_reported_before_the_first_cell(archive):
    text = archive.with_name("two.svm")
    text.write_text("1 1:2\n-1 2:2\n")
    for problem, said in [
        (of_archive(archive.with_name("none.npz")), "file: there is no file .*none.npz"),
        (of_archive(text), "clients is 0: state the number of clients, since .*two.svm has no ar"),
        (of_archive(text, more="clients = 3"), "clients is 3; it must be from 1 to the 2 records"),
        (of_archive(text, more="clients = 1\nfeatures = 1"), "features is 1, but .*two.svm has 2"),
        (
            of_archive(archive, more='intercept = "yes"'),
            'intercept is "yes"; expected "none", "first" or "last"',
        ),
        (of_archive(archive, more='weights = "all"'), 'weights is "all"; expected "equal" or "rec'),
        (of_archive(archive, more="l2 = -1.0"), "l2 is -1.0; it must be 0 or more"),
        (of_archive(archive, more="drop-rest = true"), "drop-rest is for a number of clients"),
        (of_archive(archive, more="clent = 3"), "did you mean `clients`"),
    ]:
        with pytest.raises(ef.ManifestError, match=said):
            ef.check(manifest(problem))


def test_a_slope_of_another_loss_is_refused(archive):
    @ef.problem("Wrong slope", kind="wrong-slope")
    class WrongSlope(Logistic.function):
        def slope(self, margin):
            return 1 / (1 + np.exp(margin))

    @ef.problem("No slope", kind="no-slope")
    class NoSlope(ef.MarginLoss):
        def loss(self, margin):
            return margin**2

    with pytest.raises(ef.ManifestError, match="value and grad disagree"):
        ef.check(manifest(of_archive(archive, "wrong-slope")))
    # Python 3.12 and later put the name in quotation marks.
    with pytest.raises(ef.ManifestError, match=r"abstract method '?slope"):
        ef.check(manifest(of_archive(archive, "no-slope")))


def test_with_a_curvature_the_minimiser_is_found():
    problem = Logistic.function.__new__(Logistic.function)
    problem.hold_records(X, Y, CLIENT, weights="records", l2=1e-3)
    assert problem.optimum() == pytest.approx(problem.minimiser(range(CLIENTS)), rel=1e-12)
    pooled = Logistic.function.__new__(Logistic.function)
    pooled.hold_records(X, Y, 1, l2=1e-3)
    assert np.abs(problem.optimum() - pooled.optimum()).max() < 1e-12
    assert np.abs(pooled.mean_grad(pooled.optimum()[None], np.array([0]))).max() < 1e-15
    one = problem.minimiser([2])
    assert np.abs(problem.mean_grad(one[None], np.array([2]))).max() < 1e-15
    assert np.abs(one - problem.optimum()).max() > 0.1
    # One coordinate is left open by a column of zeros, or by one that is the sum of others.
    for column in (np.zeros(len(X)), X[:, 0] + X[:, 2]):
        flat = Logistic.function.__new__(Logistic.function)
        flat.hold_records(np.insert(X, 1, column, axis=1), Y, CLIENT)
        with pytest.raises(ef.ProblemError, match="the minimiser is not known, since the mean H"):
            flat.optimum()
    assert DrawnHinge(rng=np.random.default_rng(1)).optimum is None


def test_a_subclass_may_make_its_records(tmp_path):
    text = manifest("[problem.drawn-hinge]\nscale = [0.5, 1.0]")
    results = ef.run(text, out=tmp_path, set={"instances": 2}, name="drawn")
    frame = results.frame()
    assert frame["cell"].n_unique() == 4 and frame["train_loss"].is_finite().all()
    assert results.verify()


def test_a_quadratic_loss_of_the_margin_has_exact_theory(archive):
    text = manifest(of_archive(archive, "margin-square", f"l2 = {L2}"), metrics='"sq-gradient"')
    exact = ef.exact(text, label="FedAvg")
    weights = 1 / (CLIENTS * np.bincount(CLIENT)[CLIENT])
    hessian = (X.T * weights) @ X + L2 * np.eye(DIM)
    optimum = np.linalg.solve(hessian, X.T @ (weights * (2.0 * Y - 1)))
    assert np.abs(exact.optimum - optimum).max() < 1e-12


FILE = """
import exactfed as ef
import numpy as np

@ef.problem("Mine", kind="mine")
class Mine(ef.MarginLoss):
    def loss(self, margin):
        return np.maximum(SCALE - margin, 0) ** 2

    def slope(self, margin):
        return -2 * np.maximum(SCALE - margin, 0)
"""


def test_paths_begin_at_the_folder_of_the_python_file(tmp_path, monkeypatch):
    folder, other = tmp_path / "code", tmp_path / "manifests"
    (folder / "data").mkdir(parents=True)
    other.mkdir()
    (folder / "data/two.svm").write_text("1 1:2\n-1 2:2\n1 1:1 2:1\n")
    (folder / "mine.py").write_text(FILE.replace("SCALE", "1"))
    text = manifest(
        '[problem.mine]\nfile = "data/two.svm"\nclients = 2\nl2 = 0.1',
        'python = ["../code/mine.py"]',
    )
    (other / "mine.toml").write_text(text)
    monkeypatch.chdir(tmp_path)

    def exactfed(*arguments: str) -> str:
        command = [sys.executable, "-m", "exactfed", *arguments]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    first = exactfed("run", "manifests/mine.toml")
    assert "2 cells" in first, first
    # Only what the results vouch for runs: the class, which finds its file again.
    assert "not run" not in exactfed("verify", "--run-code", "code/mine.py")
    exported = exactfed("export", "--out", "rows.csv", "--run-code", "code/mine.py")
    assert "2 cells of 1 experiment" in exported
    # Another loss makes other cells.
    assert "all 2 cells are done" in exactfed("run", "manifests/mine.toml")
    (folder / "mine.py").write_text(FILE.replace("SCALE", "2"))
    assert "2 cells" in exactfed("run", "manifests/mine.toml")


def test_ids_depend_on_the_loss_and_on_the_version_of_the_base_class(archive, monkeypatch):
    source = Logistic._source()
    assert "np.log1p(np.exp(-margin))" in source
    assert source.endswith("\n# exactfed.MarginLoss, version 1\n")
    text = manifest(of_archive(archive))

    def ids() -> list[str]:
        return ef.plan(text).frame()["cell"].to_list()

    before = ids()
    monkeypatch.setattr(ef.MarginLoss, "_exactfed_base", "exactfed.MarginLoss, version 2")
    assert not set(before) & set(ids())
    monkeypatch.undo()
    assert ids() == before
