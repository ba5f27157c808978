"""Problems in Python: the numbers of built-in ones, exact theory, the bits, and what is refused."""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import exactfed as ef
import numpy as np
import pytest
from exactfed._problem import _record_memory

ROOT = Path(__file__).resolve().parents[2]
CLIENTS, RECORDS, DIM, L2 = 4, 12, 3, 0.1
X = np.random.default_rng(3).standard_normal((CLIENTS, RECORDS, DIM))
Y = np.where(np.random.default_rng(4).random((CLIENTS, RECORDS)) < 0.5, -1.0, 1.0)
ALGORITHMS = """
[[algorithm.fedavg]]
step-size = 0.2
local-steps = 3
[[algorithm.scaffold]]
step-size = 0.2
local-steps = 3
[[algorithm.fedprox]]
step-size = 0.2
local-steps = 3
proximal = 0.5
[[algorithm.minibatch-sgd]]
step-size = 0.2
batch = 3
"""


def manifest(problem: str, algorithms: str = ALGORITHMS, more: str = "") -> str:
    return f"""
title = "t"
seed = 7
replicates = 3
{more}
[problem.{problem}
[start]
zero = true
[budget]
rounds = 20
[record]
iterates = true
metrics = ["train-loss", "sq-gradient"]
{algorithms}"""


@ef.problem("Logistic regression of my own", kind="own-logistic")
class OwnLogistic:
    clients, dim, records = CLIENTS, DIM, RECORDS

    def grad(self, theta, k, draw):
        x, y = X[k, draw], Y[k, draw]
        margin = y * np.einsum("md,md->m", x, theta)
        return L2 * theta - (y / (1 + np.exp(margin)))[:, None] * x

    def value(self, theta, k):
        margin = Y[k] * np.einsum("mid,md->mi", X[k], theta)
        return np.log1p(np.exp(-margin)).mean(axis=1) + L2 / 2 * (theta**2).sum(axis=1)


def iterates(results: ef.Results) -> np.ndarray:
    frame = results.frame().sort("label", "replicate", "round")
    return np.array([list(theta) for theta in frame["theta"]])


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> ef.Results:
    return ef.run(manifest("own-logistic]"), out=tmp_path_factory.mktemp("own"))


def test_logistic_regression_has_the_trajectory_of_the_built_in_one(own, tmp_path):
    dataset = (
        'logistic-dataset]\nl2 = 0.1\ndataset = { file = "mine", split = { column = "client" } }'
    )
    arrays = {
        "x": X.reshape(-1, DIM),
        "y": Y.ravel(),
        "client": np.repeat(np.arange(CLIENTS), RECORDS),
    }
    built_in = ef.run(manifest(dataset), out=tmp_path, arrays={"mine": arrays})
    a, b = iterates(own), iterates(built_in)
    assert a.shape == b.shape and np.abs(a).max() > 0.1
    assert np.abs(a - b).max() < 1e-12, np.abs(a - b).max()
    gradients = [one.frame().sort("label", "replicate", "round") for one in (own, built_in)]
    apart = (gradients[0]["sq_gradient"] - gradients[1]["sq_gradient"]).abs().max()
    assert apart < 1e-12


def test_without_an_optimum_losses_are_compared(own, tmp_path):
    frame = own.frame()
    assert "sq_error" not in frame.columns or frame["sq_error"].is_null().all()
    assert frame["train_loss"].is_finite().all()
    page = own.report(tmp_path, formats=["md"]).with_suffix(".md").read_text("utf-8")
    assert "θ\\* is not known of this problem" in page
    assert "def value(self, theta, k):" in page and "The problem" in page


@pytest.mark.parametrize("needs", ["offset", "metric"])
def test_what_needs_the_optimum_says_that_it_is_not_known(needs):
    text = manifest("own-logistic]")
    if needs == "offset":
        text = text.replace("zero = true", "offset = 1.0")
    else:
        text = text.replace('"train-loss"', '"suboptimality"')
    with pytest.raises(ef.ManifestError, match=r"needs θ\*, which is not known of `own-logistic`"):
        ef.plan(text)


def test_without_a_metric_there_is_nothing_to_compare():
    text = manifest("own-logistic]").replace('metrics = ["train-loss", "sq-gradient"]', "")
    said = r'θ\* of `own-logistic` is not known, .* write metrics = \["train-loss"\]'
    with pytest.raises(ef.ManifestError, match=said):
        ef.plan(text)


def test_bits_depend_neither_on_threads_nor_on_other_runs(own, tmp_path):
    text = manifest("own-logistic]")
    one = ef.run(text, out=tmp_path / "one", threads=1)
    two = ef.run(text, out=tmp_path / "two", threads=2)
    alone = ef.run(text, out=tmp_path / "alone", replicates=1)
    assert one.digests() == two.digests() == own.digests()
    first = own.frame().filter(own.frame()["replicate"] == 0)["theta"].to_list()
    assert alone.frame()["theta"].to_list() == first


def test_epochs_are_passes_over_the_records(own, tmp_path):
    epochs = ALGORITHMS.partition("[[algorithm.scaffold]]")[0].replace(
        "local-steps = 3", "local-epochs = 0.25"
    )
    results = ef.run(manifest("own-logistic]", epochs), out=tmp_path)
    fedavg = own.frame().filter(own.frame()["label"] == "FedAvg")
    assert results.frame()["theta"].to_list() == fedavg["theta"].to_list()


A = np.random.default_rng(5).standard_normal((CLIENTS, RECORDS, DIM, DIM)) / 3 + np.eye(DIM)
B = np.random.default_rng(6).standard_normal((CLIENTS, RECORDS, DIM))
AFFINE = """
[[algorithm.fedavg]]
step-size = 0.05
local-steps = 4
[[algorithm.scaffold]]
step-size = 0.05
local-steps = 4
"""


@ef.problem("An affine field", kind="own-affine")
class OwnAffine:
    clients, dim, records = CLIENTS, DIM, RECORDS

    def grad(self, theta, k, draw):
        return np.einsum("mij,mj->mi", A[k, draw], theta) - B[k, draw]


def test_an_affine_field_has_the_exact_theory_of_its_atoms():
    def text(problem: str) -> str:
        return manifest(problem, AFFINE).replace('metrics = ["train-loss", "sq-gradient"]', "")

    p = np.full((CLIENTS, RECORDS), 1 / RECORDS)
    atoms = text('atoms]\nfile = "lsa"')
    for label in ("FedAvg", "Scaffold"):
        own = ef.exact(text("own-affine]"), label=label)
        same = ef.exact(atoms, label=label, arrays={"lsa": {"A": A, "b": B, "p": p}})
        for name in ("optimum", "client_optima", "limit", "sq_error", "stationary_sq_error"):
            a, b = np.asarray(getattr(own, name)), np.asarray(getattr(same, name))
            assert np.abs(a - b).max() <= 1e-12 * np.abs(b).max(), (label, name)


def test_frontiers_take_an_affine_field():
    text = """
title = "t"
seed = 1
replicates = 1
[problem.own-affine]
[[frontier]]
id = "f"
algorithms = ["fedavg"]
targets = [0.5]
step-size = { from = 1e-2, to = 1.0, points = 5 }
"""
    ef.check(text)
    with pytest.raises(ef.ManifestError, match="`own-logistic` is not linear"):
        ef.plan(text.replace("own-affine", "own-logistic"))


SOURCE = r"""
#include <stdint.h>
#include <math.h>
struct data { const double *x, *y; };
void grad(const double *theta, int64_t k, int64_t draw, double *field, void *pointer) {
    const struct data *data = pointer;
    const double *x = data->x + (k * 12 + draw) * 3;
    double along = 0;
    for (int i = 0; i < 3; i++) along += x[i] * theta[i];
    double y = data->y[k * 12 + draw];
    double pull = y / (1 + exp(y * along));
    for (int i = 0; i < 3; i++) field[i] = 0.1 * theta[i] - pull * x[i];
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> ctypes.CDLL:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "grad.c").write_text(SOURCE)
    library = folder / "grad.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", library, folder / "grad.c", "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def test_a_compiled_function_has_the_trajectory_of_the_one_in_numpy(own, library, tmp_path):
    class Data(ctypes.Structure):
        _fields_ = [("x", ctypes.c_void_p), ("y", ctypes.c_void_p)]

    x, y = np.ascontiguousarray(X), np.ascontiguousarray(Y)

    class Compiled(OwnLogistic.function):
        grad = library.grad

        def __init__(self):
            self.data = ctypes.pointer(Data(x.ctypes.data, y.ctypes.data))

    ef.problem("Compiled", kind="own-compiled", source="grad.c")(Compiled)
    text = manifest("own-compiled]")
    one = ef.run(text, out=tmp_path / "one", threads=1)
    two = ef.run(text, out=tmp_path / "two", threads=2)
    assert one.digests() == two.digests()
    assert np.abs(iterates(one) - iterates(own)).max() < 1e-12


def refused(**attributes) -> str:
    """What a problem with these attributes is refused with."""

    def grad(self, theta, k, draw):
        return np.tanh(theta - k[:, None] - np.asarray(draw, float)[:, None])

    usual = {"clients": 3, "dim": 2, "records": 5, "grad": grad}
    made = type("Refused", (), {**usual, **attributes})
    ef.problem("Refused", kind="refused", source=repr(attributes))(made)
    with pytest.raises(ef.ManifestError) as error:
        ef.plan(manifest("refused]"))
    assert "problem.refused" in str(error.value), error.value
    return str(error.value)


def test_attributes_are_checked():
    for attributes, said in [
        ({"clients": "3"}, "clients is '3': an instance of a problem states it as a whole number"),
        ({"clients": 0}, "clients is 0; it must be from 1 to"),
        ({"dim": None}, "dim is None"),
        ({"records": [5, 5]}, "records has 2 numbers; expected one for each of the 3 clients"),
        ({"records": 0.5}, "records says how many records each client has"),
        ({"records": [5, 0, 5]}, "client 1 has no records"),
        ({"shares": [1.0, -1.0, 1.0]}, "shares must be 3 positive numbers"),
        ({"grad": None}, "grad is missing: a method grad(theta, k, draw), or a compiled function"),
        ({"value": 3}, "value is int, and no method"),
        ({"records": None}, "give mean_grad(theta, k), or state how many records"),
    ]:
        assert said in refused(**attributes), attributes


def test_functions_are_checked():
    counter = iter(range(10**9))

    def random(self, theta, k, draw):
        return theta + next(counter)

    def product(self, theta, k, draw):
        return theta - theta.sum(axis=0) / 3

    def shape(self, theta, k, draw):
        return theta[:, 0]

    def raises(self, theta, k, draw):
        return theta[:, self.missing]

    def value(self, theta, k):
        return (theta**2).sum(axis=1)

    for attributes, said in [
        ({"grad": random}, "grad is no function of its arguments: for client 0 and draw"),
        ({"grad": product}, "grad must treat rows independently: row 0 of 23 (client 0, draw"),
        ({"grad": shape}, "grad returned an array of shape (23,); expected (23, 2)"),
        ({"grad": raises}, "AttributeError: 'Refused' object has no attribute 'missing'"),
        ({"grad": lambda self, theta, k, draw: 1j * theta}, "what grad returned is complex"),
        ({"value": value}, "value and grad disagree: the derivative of value along"),
        ({"mean_grad": lambda self, theta, k: theta}, "mean_grad and grad disagree: in coordinate"),
    ]:
        assert said in refused(**attributes), attributes


def test_a_stated_optimum_is_measured_from_and_checked(tmp_path):
    def with_optimum(kind: str, optimum) -> str:
        made = type("Stated", (OwnLogistic.function,), {"optimum": optimum})
        ef.problem("Stated", kind=kind, source=kind)(made)
        return manifest(f"{kind}]").replace('"train-loss"', '"suboptimality"')

    theta = np.zeros(DIM)
    rows = np.repeat(np.arange(CLIENTS), RECORDS), np.tile(np.arange(RECORDS), CLIENTS)
    for _ in range(20000):
        step = OwnLogistic.function().grad(np.tile(theta, (len(rows[0]), 1)), *rows).mean(axis=0)
        theta = theta - 0.5 * step
    results = ef.run(with_optimum("stated", lambda self: theta), out=tmp_path)
    frame = results.frame()
    apart = [((np.array(list(row)) - theta) ** 2).sum() for row in frame["theta"]]
    assert np.allclose(frame["sq_error"], apart, rtol=1e-12)
    assert (frame["suboptimality"] > 0).all()
    page = results.report(tmp_path / "pages", formats=["md"]).with_suffix(".md").read_text("utf-8")
    assert "no more is known of its fields there, so that theory predicts nothing" in page
    with pytest.raises(ef.ExactfedError, match="there is no theory of `stated`"):
        ef.exact(with_optimum("stated", lambda self: theta), label="FedAvg")
    with pytest.raises(ef.ManifestError, match="optimum is not the optimum: the norm of the mean"):
        ef.check(with_optimum("misstated", theta + 0.1))
    # Nobody asks for it where the manifest leaves it out.
    never = with_optimum("never", lambda self: 1 / 0).replace('"suboptimality"', '"train-loss"')
    ef.check(never, set={"record.optimum": False})
    with pytest.raises(ef.ManifestError, match="ZeroDivisionError"):
        ef.check(never)


def test_data_are_made_from_the_seed(tmp_path):
    @ef.problem("Seeded", kind="seeded")
    class Seeded:
        def __init__(self, rng, spread: float, clients: int = 2):
            self.clients, self.dim, self.records = clients, 1, 6
            self.points = spread * rng.standard_normal((clients, 6, 1))

        def grad(self, theta, k, draw):
            return theta - self.points[k, draw]

    text = manifest("seeded]\nspread = [1.0, 2.0]", AFFINE.partition("[[algorithm.scaffold]]")[0])
    text = text.replace('metrics = ["train-loss", "sq-gradient"]', "")
    results = ef.run(text, out=tmp_path, set={"instances": 2})
    assert results.frame()["cell"].n_unique() == 2
    assert results.verify()
    with pytest.raises(ef.ManifestError, match="did you mean `spread`"):
        ef.plan(text.replace("spread", "spred"))
    with pytest.raises(ef.ManifestError, match="must not depend on the seed"):

        @ef.problem("Uneven", kind="uneven")
        class Uneven(Seeded.function):
            def __init__(self, seed):
                super().__init__(np.random.default_rng(seed), 1.0, 2 + seed % 2)

        uneven = text.replace("seeded]\nspread = [1.0, 2.0]", "uneven]")
        ef.check(uneven, set={"instances": 4})


def test_a_problem_of_a_file_is_run_and_reported_on_the_command_line(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import exactfed as ef\n\n"
        "print('this statement has an effect')\n\n"
        "@ef.problem('Mine', kind='mine')\n"
        "class Mine:\n"
        "    clients, dim, records = 2, 1, 3\n\n"
        "    def grad(self, theta, k, draw):\n"
        "        return theta - draw[:, None]\n"
    )
    text = manifest("mine]", AFFINE, more='python = ["mine.py"]')
    (tmp_path / "mine.toml").write_text(text.replace('"train-loss", ', ""))

    def exactfed(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "exactfed", *arguments]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    done = exactfed("run", "mine.toml")
    assert done.returncode == 0, done.stderr
    refused = exactfed("report")
    assert "`mine`: the code of this problem is not at hand" in refused.stdout + refused.stderr
    done = exactfed("report", "--run-code", "mine.py")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "reports/mine/report.md").read_text()
    assert "exactfed run mine.toml\nexactfed report --run-code mine.py\n" in page, page
    assert "this statement" not in done.stdout and "not run, since no hash covers it" in done.stderr
    done = exactfed("verify", "--run-code", "mine.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_run_in_which_a_function_fails_says_where(tmp_path):
    calls = []

    @ef.problem("Fails", kind="fails-late")
    class Fails:
        clients, dim, records = 2, 1, 3

        def grad(self, theta, k, draw):
            calls.append(k)
            if len(calls) > 400:
                raise ValueError("too late")
            return np.tanh(theta)

    text = manifest("fails-late]", AFFINE).replace('metrics = ["train-loss", "sq-gradient"]', "")
    text = text.replace("[record]", '[record]\nmetrics = ["sq-gradient"]')
    with pytest.warns(ef.CellFailedWarning, match="ValueError: too late"):
        results = ef.run(text, out=tmp_path, threads=1)
    assert len(results.failures()) >= 1


def test_properties_enter_the_hash_of_the_source():
    rate = 0.5

    def helper():
        return rate

    class Held:
        @property
        def records(self):
            return helper()

    problem = ef.problem("Held", kind="held")(Held)
    assert "# rate = 0.5" in problem._source() and "def helper():" in problem._source()


def test_definitions_are_checked():
    with pytest.raises(ef.ProblemError, match="is for a class"):
        ef.problem("f", kind="function")(lambda rng: None)
    with pytest.raises(ef.ProblemError, match="built in"):
        ef.problem("Quadratic", kind="quadratic", source="x")(
            type("A", (), {"__init__": lambda self: None})
        )


@pytest.mark.parametrize("name", ["phase-retrieval", "two-layer-network", "q-learning", "sarsa"])
def test_the_examples_have_their_verdicts(name, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    results = ef.run(f"examples/python/{name}.toml", out=tmp_path)
    claims = results.claims()
    # Slopes over the number of clients are not decided by the replicates that the manifests state.
    undecided = name in ("q-learning", "sarsa")
    wanted = "inconclusive" if undecided else "supported"
    assert len(claims) and (claims["verdict"] == wanted).all(), claims
    assert all(math.isfinite(x) for x in results.frame()["round"])
    # The command of the page: its hash covers all that the problem needs of the file.
    code = f"examples/python/{name.replace('-', '_')}.py"
    report = ["report", str(tmp_path), "--out", str(tmp_path / "pages"), "--run-code", code]
    done = subprocess.run(
        [sys.executable, "-m", "exactfed", *report], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and "not run" not in done.stderr, done.stderr


def test_large_systems_are_solved_while_a_problem_is_built(tmp_path):
    """OpenBLAS needs more stack than threads have by default: the process ended with a signal."""
    (tmp_path / "large.py").write_text(
        "import exactfed as ef\n"
        "import numpy as np\n\n"
        "@ef.problem('Large', kind='large')\n"
        "class Large:\n"
        "    def __init__(self, rng):\n"
        "        self.clients, self.dim, self.records = 1, 300, 1\n"
        "        a = rng.standard_normal((300, 300))\n"
        "        self.a = a @ a.T / 300 + np.eye(300)\n"
        "        self.b = np.linalg.solve(self.a, np.ones(300))\n\n"
        "    def grad(self, theta, k, draw):\n"
        "        return np.einsum('ij,mj->mi', self.a, theta) - self.b\n"
    )
    text = manifest("large]", "[[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 2\n")
    text = 'python = ["large.py"]\ninstance = "per-replicate"\n' + text.replace(
        '"train-loss", ', ""
    )
    (tmp_path / "large.toml").write_text(text)
    check = [sys.executable, "-m", "exactfed", "check", "large.toml"]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_records_and_draws_are_known_to_algorithms():
    @ef.problem("Known", kind="known-records")
    class Known:
        clients, dim, records = 2, 1, [3, 5]

        def grad(self, theta, k, draw):
            return theta - (10.0 * k + draw)[:, None]

    of = manifest("known-records]", "[[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 2\n")
    clients, theta = ef.plan(of.replace('"train-loss", ', "")).clients(0, 0)
    assert clients.records.tolist() == [3, 5]
    draw = clients.draw(4)
    assert draw.indices.shape == (2, 4) and (draw.indices[0] < 3).all()
    found = clients.fields(theta, draw)
    wanted = theta - (10.0 * np.arange(2) + draw.indices.mean(axis=1))[:, None]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("part", [slice(None), slice(None, None, 2)])
def test_records_of_compiled_gradients_are_found_by_client_and_draw(part):
    data = np.arange(3 * 4 * 5.0).reshape(3, 4, 5)[part]
    clients = len(data)
    found = _record_memory(data, clients, [4] * clients)
    assert found is not None and found.length == 5 * 8
    for client in range(clients):
        for draw in range(4):
            place = found.first + client * found.client_bytes + draw * found.record_bytes
            assert place == data[client, draw].ctypes.data


def test_other_data_of_compiled_gradients_is_not_read_ahead():
    data = np.zeros((3, 4, 5))
    for other in (None, 7, data[0], data[:2], data[:, :3], np.zeros(3)):
        assert _record_memory(other, 3, [4, 4, 4]) is None
    assert _record_memory(data, 3, None) is None
