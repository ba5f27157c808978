"""Compressors: their texts, moments and bits, keys that are compressors, and what ships on them."""

from __future__ import annotations

import heapq
import pickle

import exactfed as ef
import exactfed.algorithms as shipped
import numpy as np
import pytest

MANIFEST = {
    "title": "Compressed messages",
    "seed": 3,
    "replicates": 2,
    "problem": {
        "quadratic": {
            "dimension": 5,
            "clients": 6,
            "spectrum": {"from": 0.2, "to": 1.0},
            "gradient-heterogeneity": 1.0,
            "hessian-heterogeneity": 0.05,
            "noise": 0.1,
        }
    },
    "start": {"offset": 1.0},
    "budget": {"rounds": 30},
    "record": {"every": 1},
}
ALL = [
    "identity", "rand-k:2", "rand-k:2:indices", "top-k:2", "qsgd:4", "qsgd:4:max",
    "natural-dithering:4", "natural-dithering:4:max", "natural", "sign",
]  # fmt: skip


@ef.algorithm("Compressed changes", kind="compressed-changes")
def compressed_changes(clients, theta, gamma, H, compressor: ef.Compressor = ef.rand_k(1)):
    """FedAvg whose changes are compressed."""
    while True:
        change = clients.local_steps(theta, gamma, H) - theta
        theta = theta + clients.mean(clients.compress(change, compressor))
        yield theta


def real_clients(**changes):
    """The clients of a run that a user steps through, and θ_0."""
    manifest = {
        **MANIFEST,
        **changes,
        "algorithm": {"fedavg": [{"step-size": 0.1, "local-steps": 2}]},
    }
    return ef.plan(manifest).clients()


def manifest(**tables):
    """A manifest with these algorithms, a table or a list of tables for each kind."""
    common = {"step-size": 0.1, "local-steps": 2}
    kinds = {kind.replace("_", "-"): tables for kind, tables in tables.items()}
    return {
        **MANIFEST,
        "algorithm": {
            kind: [{**common, **table} for table in (all if isinstance(all, list) else [all])]
            for kind, all in kinds.items()
        },
    }


def test_compressors_are_made_by_functions_and_texts():
    made = {
        ef.identity(): "identity",
        ef.rand_k(3): "rand-k:3",
        ef.rand_k(3, indices=True): "rand-k:3:indices",
        ef.top_k(2): "top-k:2",
        ef.qsgd(levels=4): "qsgd:4",
        ef.qsgd(4, norm="max"): "qsgd:4:max",
        ef.natural_dithering(8): "natural-dithering:8",
        ef.natural_dithering(8, norm="max"): "natural-dithering:8:max",
        ef.natural(): "natural",
        ef.sign(): "sign",
    }
    for compressor, text in made.items():
        assert str(compressor) == text and compressor.name == text.split(":")[0]
        assert ef.Compressor(text) == compressor and eval(repr(compressor), vars(ef)) == compressor
        assert pickle.loads(pickle.dumps(compressor)) == compressor
        assert (compressor.omega(10) is not None) is compressor.unbiased
    assert len(made) == 10


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: ef.Compressor("rank-k:3"), '"rank-k" is no compressor; compressors are identity'),
        (lambda: ef.rand_k(0), "rand-k takes a whole number from 1 to 4294967295"),
        (lambda: ef.top_k(-1), "top-k takes a whole number from 1 to 4294967295"),
        (lambda: ef.qsgd(4, norm="l2"), 'the norm is "euclidean" or "max", not "l2"'),
        (lambda: ef.natural_dithering(1001), "from 1 to 1000"),
        (lambda: ef.Compressor("sign:2"), 'sign does not take "2": write sign'),
    ],
)
def test_what_is_no_compressor(make, said):
    with pytest.raises(ValueError) as found:
        make()
    assert said in str(found.value)


def test_omega_and_bits_are_those_of_the_formulas():
    d = 16
    expected = {
        "identity": (0, 64 * d),
        "rand-k:2": (d / 2 - 1, 64 * 2),
        "rand-k:2:indices": (d / 2 - 1, 96 * 2),
        "top-k:2": (None, 96 * 2),
        "qsgd:4": (min(d / 16, np.sqrt(d) / 4), 64 + d * 4),
        "qsgd:4:max": (min(d / 64, 5 / 8), 64 + d * 4),
        "natural-dithering:4": (1 / 8 + 0.5 * 0.5, 64 + d * 4),
        "natural-dithering:4:max": (1 / 8 + 0.5 * 0.5, 64 + d * 4),
        "natural": (1 / 8, 12 * d),
        "sign": (None, 64 + d),
    }
    assert list(expected) == ALL
    for text, (omega, bits) in expected.items():
        of = ef.Compressor(text)
        assert of.bits(d) == bits and of.omega(d) == (omega and pytest.approx(omega, rel=1e-15))


@pytest.mark.engine
@pytest.mark.parametrize("text", [text for text in ALL if ef.Compressor(text).unbiased])
def test_messages_of_clients_and_server_are_unbiased(text):
    """The mean is x within four standard errors, and E ‖C(x) − x‖² is at most ω ‖x‖²."""
    clients, _ = real_clients()
    rows = np.random.default_rng(5).normal(size=(6, 5))
    omega = ef.Compressor(text).omega(5)
    for x in (rows, rows[0]):
        draws = np.array([clients.compress(x, text) for _ in range(4000)])
        errors = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
        assert np.all(np.abs(draws.mean(axis=0) - x) <= 4 * errors + 1e-12)
        squares = np.sum((draws - x) ** 2, axis=-1)
        spread = squares.std(axis=0, ddof=1) / np.sqrt(len(draws))
        bound = omega * np.sum(x**2, axis=-1)
        assert np.all(squares.mean(axis=0) <= bound + 4 * spread + 1e-12)
        if text.startswith("rand-k"):
            assert np.all(squares.mean(axis=0) >= bound - 4 * spread - 1e-12)


def test_messages_of_clients_and_server_have_draws_of_their_own():
    (one, _), (two, _) = real_clients(), real_clients()
    rows = np.ones((6, 5))
    for _ in range(20):
        sent = one.compress(rows, "rand-k:1")
        # Other messages and draws between them change nothing.
        two.compress(rows[0], "rand-k:1")
        two.rng.random(3)
        two.fields(rows[0])
        np.testing.assert_array_equal(sent, two.compress(rows, "rand-k:1"))
    assert len({tuple(row) for row in sent}) > 1


def test_shapes_are_checked():
    clients, _ = real_clients()
    memories = clients.error_feedback("top-k:1")
    for call in (
        lambda: clients.compress(np.ones(4), "natural"),
        lambda: clients.compress(np.ones((5, 5)), "natural"),
        lambda: memories.send(clients, np.ones(5)),
        lambda: memories.send(clients, np.ones((6, 5)), np.ones((6, 5))),
        lambda: memories.track(clients, np.ones((6, 4))),
    ):
        with pytest.raises(ValueError, match="the shape"):
            call()
    with pytest.raises(TypeError, match="compressor must be a Compressor or a text"):
        clients.compress(np.ones(5), 3)
    for indices in ([6], [-1], [0, 0]):
        with pytest.raises(ValueError, match="client"):
            clients.participate(indices)


def test_those_who_take_part_send_and_remember():
    clients, theta = real_clients()
    memories = clients.error_feedback(ef.top_k(1))
    clients.participate([4, 1])
    assert clients.members.tolist() == [1, 4]
    ends = clients.local_steps(theta, 0.1, 2)
    sent = memories.send(clients, ends, theta)
    moved = np.any(ends != theta, axis=1)
    assert moved.tolist() == [False, True, False, False, True, False]
    assert np.count_nonzero(sent, axis=1).tolist() == [0, 1, 0, 0, 1, 0]
    np.testing.assert_allclose(sent + memories.memory, ends - theta, atol=1e-15)


def test_a_run_counts_bits(tmp_path):
    """Per round: θ down, 40 bytes a client, and 6 messages of the compressor up."""
    tables = [{"compressor": text, "label": text} for text in ALL]
    results = ef.run(manifest(compressed_changes=tables), out=tmp_path, progress=False)
    frame = results.frame().filter(replicate=0).sort("round")
    for text in ALL:
        rows = frame.filter(label=text)
        bits = np.arange(31) * (6 * 5 * 64 + 6 * ef.Compressor(text).bits(5))
        assert rows["bytes_sent"].to_list() == [-(-int(all) // 8) for all in bits], text
        assert rows["vectors_sent"].to_list() == list(range(0, 31 * 12, 12))
        assert set(rows["compressor"]) == {text}


def test_charges_add_to_messages(tmp_path):
    @ef.algorithm("Charged", source="charged")
    def charged(clients, theta, gamma, H):
        while True:
            clients.charge(1, vectors=6, bits=3)
            sent = clients.compress(clients.local_steps(theta, gamma, H) - theta, "sign")
            theta = theta + clients.mean(sent)
            yield theta

    frame = ef.run(manifest(charged={}), out=tmp_path, progress=False).frame()
    rows = frame.filter(replicate=0).sort("round")
    # 6 · 69 + 3 bits are 52.125 bytes.
    assert rows["bytes_sent"][:4].to_list() == [0, 53, 105, 157]
    assert rows["vectors_sent"][:3].to_list() == [0, 12, 24]


def test_digests_do_not_depend_on_threads(tmp_path):
    tables = {
        "compressed_changes": [{"compressor": text, "label": text} for text in ALL],
        "topk": {"keep": 2},
        "ef21": [{"compressor": text, "label": f"EF21 {text}"} for text in ("top-k:1", "sign")],
    }
    found = []
    for threads in (1, 4):
        out = tmp_path / str(threads)
        run = ef.run(manifest(**tables), out=out, threads=threads, progress=False)
        found.append(run.digests())
    assert found[0] == found[1] and len(found[0]) == 13


def test_a_key_is_a_compressor(tmp_path):
    axis = {"compressor": ["rand-k: 2", "qsgd:4"]}
    results = ef.run(manifest(compressed_changes=axis), out=tmp_path, progress=False)
    assert set(results.frame()["compressor"]) == {"rand-k:2", "qsgd:4"}
    one, two = (
        ef.plan(manifest(compressed_changes={"compressor": text})).frame()["cell"].to_list()
        for text in ("rand-k: 2", "rand-k:2")
    )
    assert one == two
    for bad, said in (("rand-k", "as in rand-k:3"), ("top:3", '"top" is no compressor')):
        with pytest.raises(ef.ManifestError, match="compressor") as found:
            ef.check(manifest(compressed_changes={"compressor": bad}))
        assert said in str(found.value)
    with pytest.raises(ef.AlgorithmError, match="the default of the parameter own: top-k takes"):

        @ef.algorithm("Bad default", source="bad")
        def bad_default(clients, theta, gamma, own: ef.Compressor = "top-k"):
            yield theta


def test_a_required_compressor_and_one_of_the_module(tmp_path):
    @ef.algorithm("Own compressor", kind="own-compressor")
    def own_compressor(clients, theta, gamma, H, of: ef.Compressor):
        while True:
            assert isinstance(of, ef.Compressor)
            sent = clients.compress(clients.local_steps(theta, gamma, H) - theta, of)
            theta = theta + clients.mean(clients.compress(sent, MODULE))
            yield theta

    with pytest.raises(ef.ManifestError, match="lacks the key `of`"):
        ef.check(manifest(own_compressor={}))
    ef.run(manifest(own_compressor={"of": "natural"}), out=tmp_path, progress=False)
    assert "# MODULE = Compressor" in own_compressor._known()["source"]


MODULE = ef.qsgd(16)


@pytest.mark.parametrize("kind", ["diana", "marina"])
def test_biased_compressors_are_refused_where_they_must_be_unbiased(kind):
    assert getattr(shipped, kind).kind == kind
    of = manifest(fedavg={})
    of["algorithm"][kind] = [{"step-size": 0.1, "compressor": "top-k:1"}]
    with pytest.raises(ef.ManifestError) as found:
        ef.check(of)
    assert "top-k:1 is biased, and the compressor must be unbiased" in str(found.value)
    assert "rand-k:K[:indices]" in str(found.value)
    with pytest.raises(ef.AlgorithmError, match="top-k:1"):

        @ef.algorithm("Biased default", source="biased")
        def biased(clients, theta, gamma, own: ef.UnbiasedCompressor = ef.top_k(1)):
            yield theta


# The shipped algorithms against other code for the same rounds, on the same clients.


def exact_clients():
    return real_clients(oracle="exact")


def rounds(algorithm, count, **keys):
    """The estimates of an algorithm, of clients without noise."""
    clients, theta = exact_clients()
    run = algorithm(clients, theta, **keys)
    out = []
    for _ in range(count):
        out.append(np.array(next(run)))
        clients._end_round()
    return np.array(out)


def test_compressed_scaffnew_is_its_definition_and_converges():
    gamma, p, s = 0.8, 0.3, 3
    found = rounds(shipped.compressed_scaffnew, 400, gamma=gamma, probability=p, copies=s)
    clients, theta = exact_clients()
    n, d = clients.n, clients.dim
    eta = n * (s - 1) / (s * (n - 1))
    h = np.zeros((n, d))
    for estimate in found[:20]:
        points = np.tile(theta, (n, 1))
        for _ in range(clients.rng.geometric(p)):
            points = points - gamma * (clients.fields(points) - h)
        order = clients.rng.permutation(n)
        sets = [
            [k for k in range(n) if order[k] in {(s * coordinate + j) % n for j in range(s)}]
            for coordinate in range(d)
        ]
        after = np.array([points[ks, i].mean() for i, ks in enumerate(sets)])
        for i, ks in enumerate(sets):
            for k in ks:
                h[k, i] += p * eta / gamma * (after[i] - points[k, i])
        assert {len(ks) for ks in sets} == {s}
        sent = [sum(k in ks for ks in sets) for k in range(n)]
        assert max(sent) - min(sent) <= 1 and sum(sent) == s * d
        theta = after
        np.testing.assert_allclose(estimate, theta, rtol=1e-10, atol=1e-12)
    optimum = ef.exact(manifest(fedavg={})).optimum
    assert np.linalg.norm(found[-1] - optimum) < 1e-9 * np.linalg.norm(found[0] - optimum)


def test_marina_and_diana_converge_without_noise():
    optimum = ef.exact(manifest(fedavg={})).optimum
    for algorithm, text in (
        (shipped.diana, "rand-k:2"), (shipped.diana, "qsgd:2"), (shipped.diana, "natural"),
        (shipped.marina, "rand-k:2"), (shipped.marina, "natural-dithering:3"),
    ):  # fmt: skip
        found = rounds(algorithm, 800, gamma=0.3, compressor=ef.Compressor(text))
        distance = np.linalg.norm(found - optimum, axis=1)
        assert distance[-1] < 1e-9 * distance[0], (algorithm.kind, text)


def test_fedexp_has_the_step_of_its_authors():
    H, gamma, epsilon = 3, 0.4, 0.01
    for least, last_two in ((1.0, True), (0.0, False)):
        keys = {"epsilon": epsilon, "least": least, "last_two": last_two}
        found = rounds(shipped.fedexp, 10, gamma=gamma, H=H, **keys)
        clients, theta = exact_clients()
        before, steps = None, []
        for estimate in found:
            changes = clients.local_steps(theta, gamma, H) - theta
            mean = changes.mean(axis=0)
            square = np.mean([change @ change for change in changes])
            step = max(least, 0.5 * square / (mean @ mean + clients.n * epsilon))
            steps.append(step)
            before, theta = theta if steps[1:] else None, theta + step * mean
            expected = theta if before is None or not last_two else (theta + before) / 2
            np.testing.assert_allclose(estimate, expected, rtol=1e-11)
        assert len(set(steps)) > 1
    # At the optimum of equal clients nothing moves.
    equal = {**MANIFEST["problem"]["quadratic"], "gradient-heterogeneity": 0.0}
    clients, theta = real_clients(oracle="exact", problem={"quadratic": equal})
    optimum = theta - 1.0 / np.sqrt(5)
    run = shipped.fedexp(clients, theta, gamma=1.0, H=400)
    last = [next(run) for _ in range(20)][-1]
    assert np.all(np.isfinite(last)) and last.shape == optimum.shape


@pytest.mark.parametrize("variant", [1, 2])
def test_fedac_has_the_parameters_of_its_authors(variant):
    H, eta, mu = 3, 0.2, 0.3
    found = rounds(shipped.fedac, 10, gamma=eta, H=H, mu=mu, variant=variant)
    clients, theta = exact_clients()
    gamma = max(eta, np.sqrt(eta / (mu * H)))
    alpha, beta = (1 / (gamma * mu), 1 / (gamma * mu) + 1)
    if variant == 2:
        alpha = 3 / (2 * gamma * mu) - 1 / 2
        beta = 2 * alpha * alpha / (alpha - 1)
    w = np.tile(theta, (clients.n, 1))
    w_ag = w.copy()
    for step in range(10 * H):
        w_md = (1 / beta) * w + (1 - 1 / beta) * w_ag
        gradient = clients.fields(w_md)
        w_ag = w_md - eta * gradient
        w = (1 - 1 / alpha) * w + (1 / alpha) * w_md - gamma * gradient
        if (step + 1) % H == 0:
            w[:], w_ag[:] = w.mean(axis=0), w_ag.mean(axis=0)
            np.testing.assert_allclose(found[step // H], w_ag[0], rtol=1e-11)
    for bad in ({"variant": 3}, {"mu": 50.0}):
        with pytest.raises(ValueError, match="α is above 1"):
            rounds(shipped.fedac, 1, gamma=eta, H=H, **{"mu": mu, **bad})


@pytest.mark.parametrize("damped", [True, False])
@pytest.mark.parametrize("speeds, buffer", [("1, 0.5, 0.25", 2), ("3, 2", 7), ("1", 4)])
def test_fedbuff_is_a_queue_of_events(speeds, buffer, damped):
    H, gamma, server = 2, 0.2, 0.7
    keys = {"buffer": buffer, "speeds": speeds, "server_step": server, "damped": damped}
    found = rounds(shipped.fedbuff, 25, gamma=gamma, H=H, **keys)
    clients, theta = exact_clients()
    speed = [float(part) for part in speeds.split(",")]
    times = [1 / speed[k % len(speed)] for k in range(clients.n)]
    events = [(times[k], k) for k in range(clients.n)]
    heapq.heapify(events)
    models, moves = dict.fromkeys(range(clients.n), (theta, 0)), 0
    waiting, held, got = [], [], []
    while moves < 25:
        now, k = heapq.heappop(events)
        if waiting and now > waiting[0][0]:
            # What the server has after all arrivals of an earlier moment.
            for _, j in waiting:
                models[j] = theta, moves
            waiting = []
        start, version = models[k]
        end = start
        for _ in range(H):
            end = end - gamma * clients.fields(np.tile(end, (clients.n, 1)))[k]
        held.append((end - start) / np.sqrt(1 + moves - version if damped else 1))
        waiting.append((now, k))
        heapq.heappush(events, (now + times[k], k))
        if len(held) == buffer:
            theta, moves, held = theta + server * np.mean(held, axis=0), moves + 1, []
            got.append(theta)
    np.testing.assert_allclose(found, got, rtol=1e-9)
    with pytest.raises(ValueError, match="speeds are numbers above 0"):
        rounds(shipped.fedbuff, 1, gamma=gamma, H=H, speeds="1, 0")
