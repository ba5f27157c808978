#!/usr/bin/env python3
"""Compares noiseless runs of exactfed with the same iterations in numpy.

    scripts/check_numpy.py [--all] [--keep FOLDER] [EXACTFED]

Needs numpy; scikit-learn, if it is installed, computes every optimum once more. The script
generates small data sets, lets exactfed (target/release/exactfed) run all algorithms on them
with `oracle = "exact"`, and recomputes every iterate from the algorithms' formulas, which are the
functions from `fixed_rounds` to `averaged` below. Each theta_t, and the optimum, must agree to
1e-10. Records name their client, so that numpy knows who holds what; in the LIBSVM file, which
cannot name clients, each client holds one record. --all adds problems and keys that older
versions do not have: softmax regression, sparse .npz files and `weights = "records"`. Prints one
line per comparison; exit code 1 if one differs.

Not compared: cohorts, which are drawn at random, and batches, which change nothing without noise.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

PROGRAM = "target/release/exactfed"
TOLERANCE = 1e-10
# Of scikit-learn, whose solvers stop earlier.
LOOSE = 1e-6
ROUNDS, STEPS, PROXIMAL, COIN, BURN_IN = 12, 5, 0.7, 0.3, 0.25
UNEQUAL = [1, 5, 2]
BETA1, BETA2, TAU = 0.8, 0.95, 0.02


# Problems: the mean field of each client, and the optimum by Newton's method.


class Problem:
    """Clients with records x (n, d) and labels y (n,), a ridge, and the clients' weights.

    A subclass has `slopes(theta, x, y)`, the gradient without the ridge, and `curvature`, the
    Hessian without it, both as means over the records.
    """

    def __init__(self, clients, l2, weights):
        self.clients, self.l2 = clients, l2
        sizes = np.array([len(y) for _, y in clients], float)
        sizes = sizes if weights == "records" else np.ones(len(sizes))
        self.weights = sizes / sizes.sum()

    def field(self, k, theta):
        return self.slopes(theta, *self.clients[k]) + self.l2 * theta

    def mean(self, rows):
        return np.tensordot(self.weights, np.asarray(rows), 1)

    def fields(self, theta):
        return [self.field(k, theta) for k in range(len(self.clients))]

    def optimum(self):
        theta = np.zeros(self.size())
        for _ in range(50):
            hessian = self.mean([self.curvature(theta, x, y) for x, y in self.clients])
            hessian += self.l2 * np.eye(len(theta))
            theta = theta - np.linalg.solve(hessian, self.mean(self.fields(theta)))
        return theta

    def size(self):
        return self.clients[0][0].shape[1]

    def smoothness(self):
        """A bound on the largest eigenvalue of every client's Hessian."""
        return max(np.linalg.eigvalsh(x.T @ x / len(y))[-1] for x, y in self.clients) + self.l2


class LeastSquares(Problem):
    """1/2 E (x'theta - y)^2 + l2/2 |theta|^2."""

    kind = "least-squares-dataset"

    def slopes(self, theta, x, y):
        return x.T @ (x @ theta - y) / len(y)

    def curvature(self, _, x, y):
        return x.T @ x / len(y)

    def by_library(self, x, y, weights):
        from sklearn.linear_model import Ridge

        return Ridge(alpha=self.l2, fit_intercept=False).fit(x, y, weights).coef_


class Logistic(Problem):
    """E log(1 + exp(-y x'theta)) + l2/2 |theta|^2, y = -1 or 1."""

    kind = "logistic-dataset"

    def slopes(self, theta, x, y):
        return -x.T @ (y / (1 + np.exp(y * (x @ theta)))) / len(y)

    def curvature(self, theta, x, y):
        p = 1 / (1 + np.exp(-y * (x @ theta)))
        return (x * (p * (1 - p))[:, None]).T @ x / len(y)

    def by_library(self, x, y, weights):
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            C=1 / self.l2, fit_intercept=False, tol=1e-13, max_iter=10_000, solver="newton-cg"
        )
        return model.fit(x, y, weights).coef_.ravel()


class Softmax(Logistic):
    """E [log sum_k exp(theta_k'x) - theta_y'x] + l2/2 |theta|^2; theta has one class after the
    other."""

    kind = "softmax-dataset"
    classes = 4

    def probabilities(self, theta, x):
        scores = x @ theta.reshape(self.classes, -1).T
        powers = np.exp(scores - scores.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

    def slopes(self, theta, x, y):
        return ((self.probabilities(theta, x) - np.eye(self.classes)[y]).T @ x).ravel() / len(y)

    def curvature(self, theta, x, y):
        p = self.probabilities(theta, x)
        blocks = np.einsum("ik,kl->ikl", p, np.eye(self.classes)) - np.einsum("ik,il->ikl", p, p)
        size = self.size()
        return np.einsum("ikl,ia,ib->kalb", blocks, x, x).reshape(size, size) / len(y)

    def size(self):
        return self.classes * super().size()


# Algorithms, from their formulas. Each returns theta_0, ..., theta_T.


def fixed_rounds(
    problem,
    step,
    steps=(STEPS,),
    normalised=False,
    server_step=1.0,
    proximal=0.0,
    variates=None,
    progress=False,
    second_moment=None,
):
    """Rounds in which client k takes E_k steps theta <- theta - step_k (F_k(theta) + xi_k +
    proximal (theta - theta_t)), with xi_k = mean c - c_k. The variates c_k are those of FedLin
    ("fresh": F_k(theta_t), measured before the steps), of Scaffold's option I ("one": the same,
    after them) or option II ("two": c_k - mean c + (theta_t - theta_k) / (step_k E_k)), or 0. With
    `progress`, the server follows the mean of (theta_k - theta_t) / a_k, times the mean of the E_k,
    where a_k is the sum of (1 - step_k proximal)^j over j < E_k (FedNova). With `second_moment`, a
    function of v and the change, the server is adaptive (FedAdam)."""
    n = len(problem.clients)
    counts = [steps[k % len(steps)] for k in range(n)]
    sizes = [step / count if normalised else step for count in counts]
    theta = np.zeros(problem.size())
    c, path = np.zeros((n, len(theta))), [theta]
    m, v = np.zeros(len(theta)), np.full(len(theta), TAU**2)
    for _ in range(ROUNDS):
        if variates == "fresh":
            c = np.array(problem.fields(theta))
        xi, ends = problem.mean(c) - c, []
        for k in range(n):
            at = theta
            for _ in range(counts[k]):
                pull = proximal * (at - theta)
                at = at - sizes[k] * (problem.field(k, at) + xi[k] + pull)
            ends.append(at)
        if variates == "one":
            c = np.array(problem.fields(theta))
        if variates == "two":
            moved = [(theta - ends[k]) / (sizes[k] * counts[k]) for k in range(n)]
            c = c - problem.mean(c) + moved
        if progress:
            kept = [(1 - sizes[k] * proximal) ** np.arange(counts[k]) for k in range(n)]
            per_step = [(ends[k] - theta) / kept[k].sum() for k in range(n)]
            change = problem.mean(np.array(counts, dtype=float)) * problem.mean(per_step)
        else:
            change = problem.mean(ends) - theta
        if second_moment:
            m, v = BETA1 * m + (1 - BETA1) * change, second_moment(v, change)
            change = m / (np.sqrt(v) + TAU)
        theta = theta + server_step * change
        path.append(theta)
    return path


def adagrad(v, change):
    return v + change**2


def adam(v, change):
    return BETA2 * v + (1 - BETA2) * change**2


def yogi(v, change):
    return v - (1 - BETA2) * change**2 * np.sign(v - change**2)


def minibatch(problem, step):
    """One step of the server along the mean field."""
    return fixed_rounds(problem, step, steps=(1,))


def by_coin(problem, step, gaps, ends=None):
    """Scaffold under random communication (Scaffnew): after each gap of local steps the clients
    communicate, and xi_k <- xi_k + (p / step)(theta_k - mean theta). Returns the mean of the
    clients after each of `ends` local steps; by default after each communication."""
    n = len(problem.clients)
    talks = np.cumsum(gaps)
    ends = [0, *talks] if ends is None else ends
    at, xi = np.zeros((n, problem.size())), np.zeros((n, problem.size()))
    path = {0: at[0]}
    for t in range(1, max(ends) + 1):
        at = np.array([at[k] - step * (problem.field(k, at[k]) + xi[k]) for k in range(n)])
        mean = problem.mean(at)
        if t in talks:
            xi = xi + COIN / step * (at - mean)
            at = np.tile(mean, (n, 1))
        path[t] = mean
    return [path[t] for t in ends]


def weighted(path, weight, other, other_weight):
    """A weighted sum of two runs, round by round."""
    return [weight * a + other_weight * b for a, b in zip(path, other, strict=True)]


def over_steps(problem, step, printed):
    """Richardson-Romberg over H and 2H, with the weights that sum to one or those printed."""
    h = STEPS
    first = (2 * h - 1) / (h - 1) if printed else (2 * h - 1) / h
    second = -1 if printed else (1 - h) / h
    once, twice = (fixed_rounds(problem, step, steps=(m * h,)) for m in (1, 2))
    return weighted(once, first, twice, second)


def over_step_size(run, step):
    """Richardson-Romberg over step and 2 step."""
    return weighted(run(step), 2, run(2 * step), -1)


def averaged(path):
    """The mean of the iterates after the burn-in; until then the iterate."""
    start = int(BURN_IN * ROUNDS) + 1
    return [path[t] if t < start else np.mean(path[start : t + 1], 0) for t in range(len(path))]


# Manifests, and the run in numpy that each of their algorithms must equal.


def algorithms(indexed):
    """Pairs of an algorithm's lines in a manifest and a function (problem, step, gaps) that
    computes the same in numpy. `indexed`: whether the order of the clients is known."""

    def rounds(**terms):
        return lambda problem, step, _: fixed_rounds(problem, step, **terms)

    def doubled(**terms):
        return lambda problem, step, _: over_step_size(
            lambda s: fixed_rounds(problem, s, **terms), step
        )

    h, coin = f"local-steps = {STEPS}", f"communication-probability = {COIN}"
    proximal = f"proximal = {PROXIMAL}"
    first = f"beta1 = {BETA1}\ntau = {TAU}"
    both = f"{first}\nbeta2 = {BETA2}"
    length = round(1 / COIN)
    clock = [length * t for t in range(ROUNDS + 1)]
    every = [
        ("fedavg", h, rounds()),
        ("fedavg", f"{h}\nserver-step = 0.6", rounds(server_step=0.6)),
        (
            "fedavg",
            f"{h}\naverage = {{ burn-in = {BURN_IN} }}",
            lambda problem, step, _: averaged(fixed_rounds(problem, step)),
        ),
        ("fedprox", f"{h}\n{proximal}", rounds(proximal=PROXIMAL)),
        ("fedlin", h, rounds(variates="fresh")),
        ("scaffold", h, rounds(variates="two")),
        ("scaffold", f'{h}\nvariates = "option-one"', rounds(variates="one")),
        ("scaffold", f"{h}\nserver-step = 0.6", rounds(variates="two", server_step=0.6)),
        (
            "scaffold",
            f'{coin}\nclock = "steps"',
            lambda problem, step, gaps: by_coin(problem, step, gaps, clock),
        ),
        ("fednova", f"{h}\n{proximal}", rounds(progress=True, proximal=PROXIMAL)),
        ("fedadagrad", f"{h}\n{first}", rounds(server_step=0.01, second_moment=adagrad)),
        ("fedadam", f"{h}\n{both}", rounds(server_step=0.01, second_moment=adam)),
        ("fedyogi", f"{h}\n{both}", rounds(server_step=0.01, second_moment=yogi)),
        ("scaffnew", coin, by_coin),
        ("minibatch-sgd", "batch = 3", lambda problem, step, _: minibatch(problem, step)),
        ("richardson-romberg", h, doubled()),
        ("richardson-romberg", f'{h}\nover = "scaffold"', doubled(variates="two")),
        ("richardson-romberg", f'{h}\nover = "fedlin"', doubled(variates="fresh")),
        (
            "richardson-romberg",
            f"{h}\nover = {{ fedprox = {{ {proximal} }} }}",
            doubled(proximal=PROXIMAL),
        ),
        ("richardson-romberg", f'{h}\nover = "minibatch-sgd"', doubled(steps=(1,))),
        (
            "richardson-romberg",
            f"over = {{ scaffnew = {{ {coin} }} }}",
            lambda problem, step, gaps: over_step_size(lambda s: by_coin(problem, s, gaps), step),
        ),
        (
            "richardson-romberg",
            f'{h}\nextrapolate = "local-steps"',
            lambda problem, step, _: over_steps(problem, step, False),
        ),
        (
            "richardson-romberg",
            f'{h}\nextrapolate = "local-steps-printed"',
            lambda problem, step, _: over_steps(problem, step, True),
        ),
        (
            "richardson-romberg",
            f'{h}\nover = "scaffold"\naverage = {{ burn-in = {BURN_IN} }}',
            lambda problem, step, _: averaged(
                over_step_size(lambda s: fixed_rounds(problem, s, variates="two"), step)
            ),
        ),
    ]
    unequal = f"steps-per-client = {UNEQUAL}"
    for kind, variates in (("fedavg", None), ("scaffold", "two"), ("fedlin", "fresh")):
        for normalised in (False, True) if indexed else ():
            key = f"\nnormalised = {str(normalised).lower()}"
            run = rounds(steps=UNEQUAL, normalised=normalised, variates=variates)
            every.append((kind, unequal + key, run))
    if indexed:
        every.append(("fednova", unequal, rounds(steps=UNEQUAL, progress=True)))
        keys = f"{unequal}\nserver-step = 0.6\n{proximal}"
        run = rounds(steps=UNEQUAL, progress=True, server_step=0.6, proximal=PROXIMAL)
        every.append(("fednova", keys, run))
    return every


def manifest(case, start, cells):
    """A manifest of these (kind, lines) with labels that number them."""
    text = [
        f'title = "check"\nseed = 1\nreplicates = 1\noracle = "exact"\n'
        f"[problem.{case.problem.kind}]\nl2 = {case.problem.l2}\n"
        f'[problem.{case.problem.kind}.dataset]\nfile = "{case.file}"\n{case.split}\n'
        f"[start]\n{start}\n[budget]\nrounds = {ROUNDS}\n"
        f"[record]\nevery = 1\niterates = true\n"
    ]
    for i, (kind, lines) in enumerate(cells):
        text.append(f'[[algorithm.{kind}]]\nlabel = "{i}"\nstep-size = {case.step}\n{lines}\n')
    return "\n".join(text)


class Refused(Exception):
    """exactfed did not run a manifest, and why."""


class Case:
    """A problem and the data file with which a manifest describes it."""

    def __init__(self, name, problem, file, split, indexed=True):
        self.name, self.problem, self.file, self.indexed = name, problem, file, indexed
        self.split = split
        # Richardson-Romberg takes steps of twice this size.
        self.step = round(0.25 / problem.smoothness(), 6)


def run(program, work, case, start, cells):
    """What exactfed recorded of each cell: theta_0, ..., theta_T and the local steps."""
    (work / "check.toml").write_text(manifest(case, start, cells))
    results, rows = f"results-{case.name}-{len(cells)}", "rows.csv"
    for arguments in (["run", "check.toml", "--out", results], ["export", results, "--out", rows]):
        done = subprocess.run(
            [program, *arguments, "--quiet"], cwd=work, capture_output=True, text=True, timeout=300
        )
        if done.returncode:
            raise Refused(f"exactfed {arguments[0]} failed: {done.stderr.strip()}")
    paths = [([], []) for _ in cells]
    with open(work / rows, newline="") as file:
        for row in csv.DictReader(file):
            theta, steps = paths[int(row["label"])]
            theta.append(np.array(row["theta"].split(), float))
            steps.append(int(row["local_step"]))
    return paths


def difference(ours, theirs):
    """The largest difference of two lists of vectors, relative to entries above 1."""
    if len(ours) != len(theirs):
        return np.inf
    return max(
        np.max(np.abs(a - b) / np.maximum(1, np.abs(b))) for a, b in zip(ours, theirs, strict=True)
    )


def compare(program, work, case):
    """Rows of the table: case, what is compared, the difference, and what is allowed."""
    known = algorithms(case.indexed)
    paths = run(program, work, case, "zero = true", [(kind, lines) for kind, lines, _ in known])
    coin = next(i for i, (kind, *_) in enumerate(known) if kind == "scaffnew")
    gaps = np.diff(paths[coin][1])
    for (kind, lines, reference), (path, _) in zip(known, paths, strict=True):
        found = difference(path, reference(case.problem, case.step, gaps))
        yield case.name, f"{kind}: {', '.join(lines.splitlines())}", found, TOLERANCE
    # An offset of 0 from the optimum: theta_0 is the optimum itself.
    ((path, _),) = run(program, work, case, "offset = 0.0", [("fedavg", "local-steps = 1")])
    found = difference(path[:1], [case.problem.optimum()])
    yield case.name, "optimum, by Newton's method in numpy", found, TOLERANCE
    try:
        clients, weights = case.problem.clients, case.problem.weights
        x, y = (np.concatenate(column) for column in zip(*clients, strict=True))
        each = np.concatenate(
            [np.full(len(y), w / len(y)) for w, (_, y) in zip(weights, clients, strict=True)]
        )
        library = case.problem.by_library(x, y, each)
        yield case.name, "optimum, by scikit-learn", difference(path[:1], [library]), LOOSE
    except ImportError:
        pass


# Data sets.

BY_CLIENT = 'split = { column = "client" }'
WEIGHTS = [("equal", BY_CLIENT), ("records", BY_CLIENT + '\nweights = "records"')]


def held(x, y, client):
    return [(x[client == k], y[client == k]) for k in range(client.max() + 1)]


def records(rng, d, sizes):
    """Features of clients that differ, and the client of each record, in shuffled order."""
    client = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centre = rng.normal(size=(len(sizes), d))
    return (rng.normal(size=(len(client), d)) + centre[client]) / np.sqrt(d), client


def signs(rng, x):
    return np.where(x @ rng.normal(size=x.shape[1]) + 0.3 * rng.normal(size=len(x)) > 0, 1.0, -1.0)


def sparse_records(rng, n, d, nonzeros):
    x = np.zeros((n, d))
    for row in x:
        row[rng.permutation(d)[:nonzeros]] = rng.normal(size=nonzeros)
    return x


def dense_cases(work, rng, extended):
    for d, sizes in ((7, [5, 9, 14, 30]), (41, [20, 3, 60]), (130, [25, 10, 40])):
        x, client = records(rng, d, sizes)
        classes = np.resize(np.arange(Softmax.classes), len(x))
        line = x @ rng.normal(size=d) + rng.normal(size=len(x))
        labels = {Logistic: signs(rng, x), LeastSquares: line}
        if extended:
            labels[Softmax] = classes
        for problem, y in labels.items():
            file = f"{problem.kind}-{d}.npz"
            np.savez(work / file, x=x, y=y, client=client)
            for weights, split in WEIGHTS if extended else WEIGHTS[:1]:
                clients = problem(held(x, y, client), 0.05, weights)
                yield Case(f"{problem.kind} d={d} {weights}", clients, file, split)


def sparse_cases(work, rng, extended):
    n, d = 24, 60
    x = sparse_records(rng, n, d, 6)
    x[0, d - 1] = 1.0
    y = signs(rng, x)
    with open(work / "sparse.libsvm", "w", encoding="ascii") as file:
        for row, label in zip(x, y, strict=True):
            pairs = " ".join(f"{j + 1}:{float(row[j])!r}" for j in np.flatnonzero(row))
            file.write(f"{label:+.0f} {pairs}\n")
    # As many clients as records: whichever client holds a record, the mean is the same.
    yield Case(
        "LIBSVM, one record each",
        Logistic(held(x, y, np.arange(n)), 0.05, "equal"),
        "sparse.libsvm",
        f"clients = {n}",
        indexed=False,
    )
    if not extended:
        return
    sizes = [20, 3, 60]
    x = sparse_records(rng, sum(sizes), 200, 8)
    y, client = signs(rng, x), rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    rows, columns = np.nonzero(x)
    np.savez(
        work / "sparse.npz",
        data=x[rows, columns],
        indices=columns.astype(np.int32),
        indptr=np.searchsorted(rows, np.arange(len(x) + 1)).astype(np.int32),
        shape=np.array(x.shape),
        y=y,
        client=client,
    )
    for weights, split in WEIGHTS:
        clients = Logistic(held(x, y, client), 0.05, weights)
        yield Case(f"sparse npz {weights}", clients, "sparse.npz", split)


def main():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("program", nargs="?", default=PROGRAM, metavar="EXACTFED")
    parser.add_argument("--all", action="store_true", help="also what older versions do not have")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep data and results here")
    chosen = parser.parse_args()
    program = Path(chosen.program).resolve()
    if not program.is_file():
        parser.error(f"{program} does not exist: run make build")
    failed = total = 0
    with tempfile.TemporaryDirectory() as scratch:
        work = chosen.keep or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(1)
        cases = [*dense_cases(work, rng, chosen.all), *sparse_cases(work, rng, chosen.all)]
        for case in cases:
            try:
                for name, what, found, allowed in compare(program, work, case):
                    wrong = not found <= allowed
                    said = "DIFFERS" if wrong else "ok"
                    print(f"{said:7} {found:8.1e}  {name}: {what}", flush=True)
                    failed, total = failed + wrong, total + 1
            except Refused as why:
                print(f"FAILED            {case.name}: {why}", flush=True)
                failed, total = failed + 1, total + 1
    print(f"{failed} of {total} differ" if failed else f"all {total} agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
