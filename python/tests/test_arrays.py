"""Arrays in memory as the bytes of an ``.npz`` file."""

import datetime
import decimal
import hashlib
import io
from collections.abc import Mapping
from pathlib import Path

import exactfed as ef
import numpy as np
import pytest
from exactfed._arrays import in_memory, to_npz

X = np.array([[0.5, -1.0, 0.0], [2.0, 0.0, 3.25]])
Y = np.array([0, 1])


def read(data: bytes) -> Mapping[str, np.ndarray]:
    return np.load(io.BytesIO(data))


def test_the_same_numbers_give_the_same_bytes():
    wanted = to_npz({"x": X, "y": Y})
    strided = np.zeros((4, 6))
    strided[::2, ::2] = X
    for x in [
        X.astype("f4"),
        X.astype("f2"),
        X.astype(">f8"),
        X.astype("g"),
        np.asfortranarray(X),
        strided[::2, ::2],
        X.tolist(),
        X.astype(object),
    ]:
        for y in [Y.astype(bool), Y.astype("i1"), Y.astype(">u4"), Y.astype(float), [0, 1]]:
            assert to_npz({"y": y, "x": x}) == wanted
    stored = read(wanted)
    assert stored.files == ["x", "y"]
    assert stored["x"].dtype == np.dtype("<f8") and stored["x"].flags.c_contiguous
    assert np.array_equal(stored["x"], X) and np.array_equal(stored["y"], Y)


def test_the_bytes_are_those_of_other_versions():
    """Python, NumPy and the platform must not change the hash, which cells are named by."""
    arrays = to_npz({"x": X, "y": Y, "client": [3, 4]})
    columns = to_npz({"b": [0.5, 1.0], "a": ["no", "yes"]})
    digest = hashlib.sha256(arrays + columns).hexdigest()
    assert digest == "efd10f33b03a273c5b4ad8e21ccfbbb7488c445126e6167ad7514070bb5fdfb0"


def test_labels_and_clients_may_be_texts():
    stored = read(to_npz({"x": X, "y": ["red", "tan"], "client": np.array(["b", "a"], object)}))
    assert stored["y"].dtype == np.dtype("<U3") and stored["y"].tolist() == ["red", "tan"]
    assert stored["client"].tolist() == ["b", "a"]


def test_other_arrays_keep_their_shapes():
    arrays = {"A": np.ones((2, 1, 2, 2)), "b": np.zeros((2, 1, 2)), "gamma": 0.5}
    stored = read(to_npz(arrays))
    assert stored.files == ["A", "b", "gamma"]
    assert all(stored[name].shape == np.shape(array) for name, array in arrays.items())


def test_columns_keep_their_order_and_their_texts():
    stored = read(to_npz({"z": [1, 2], "label": ["yes", "né"], "a": np.array([0.5, 1.5])}))
    assert stored.files == ["z", "label", "a"]
    assert stored["label"].tolist() == ["yes", "né"]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil"])
@pytest.mark.parametrize("container", ["matrix", "array"])
def test_sparse_matrices_are_stored_as_scipy_does(kind: str, container: str):
    sparse = pytest.importorskip("scipy.sparse")
    x = getattr(sparse, f"{kind}_{container}")(X)
    data = to_npz({"x": x, "y": Y})
    assert data == to_npz({"x": sparse.csr_matrix(X.astype("f4")), "y": Y})
    assert np.array_equal(sparse.load_npz(io.BytesIO(data)).toarray(), X)
    assert np.array_equal(read(data)["y"], Y)


def test_sparse_entries_are_added_up_and_sorted():
    sparse = pytest.importorskip("scipy.sparse")
    entries = ([3.25, 1.5, 0.5, 0.0, -1.0, 0.5], ([1, 1, 1, 0, 0, 0], [2, 0, 0, 2, 1, 0]))
    x = sparse.coo_matrix(entries, shape=(2, 3)).tocsr()
    before = x.copy()
    assert to_npz({"x": x, "y": Y}) == to_npz({"x": sparse.csr_matrix(X), "y": Y})
    assert (x != before).nnz == 0 and x.nnz == before.nnz, "the caller's matrix was changed"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_columns(library: str):
    frames = pytest.importorskip(library)
    columns = {"age": [31, 5], "bmi": [0.5, 2.0], "sick": [True, False], "site": ["a", "bb"]}
    wanted = to_npz(columns)
    assert to_npz(frames.DataFrame(columns)) == wanted
    if library == "pandas":
        categories = frames.DataFrame(columns).astype({"site": "category", "age": "Int64"})
        assert to_npz(categories) == wanted
    else:
        categories = frames.col("site").cast(frames.Categorical)
        assert to_npz(frames.DataFrame(columns).with_columns(categories)) == wanted
        with pytest.raises(TypeError, match="lazy frame"):
            to_npz(frames.LazyFrame(columns))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_missing_values_of_frames_are_nan_and_empty_texts(library: str):
    frames = pytest.importorskip(library)
    columns = {"a": [0.5, None, 2.0], "b": ["s", None, "t"], "c": [1, None, 3]}
    found = to_npz(frames.DataFrame(columns), "f")
    nan = float("nan")
    assert found == to_npz({"a": [0.5, nan, 2.0], "b": ["s", "", "t"], "c": [1.0, nan, 3.0]}, "f")
    with pytest.raises(ValueError, match=r'f\["a"\]\[1\] is inf'):
        to_npz(frames.DataFrame({"a": [0.5, float("inf")], "b": [1, 2]}), "f")


def records_of_a_frame(**further: list[object]) -> dict[str, list[object]]:
    numbers = [float(i * 7 % 11) for i in range(24)]
    return {"a": numbers, "label": [i % 2 for i in range(24)], **further}


MANIFEST = {
    "title": "t", "seed": 1, "replicates": 1, "start": {"zero": True}, "budget": {"rounds": 3},
    "algorithm": {"fedavg": {"step-size": 0.1, "local-steps": 2}},
}  # fmt: skip


def errors_on(frame: object, folder: Path, **settings: object) -> list[float]:
    dataset = {"file": "mine", "clients": 4, **settings}
    manifest = {**MANIFEST, "problem": {"logistic-dataset": {"l2": 0.1, "dataset": dataset}}}
    results = ef.run(manifest, out=folder, arrays={"mine": frame}, progress=False)
    return results.frame()["sq_error"].to_list()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_manifest_decides_on_missing_values_and_on_columns_of_dates(
    library: str, tmp_path: Path
):
    frames = pytest.importorskip(library)
    whole = records_of_a_frame()
    lacking = {**whole, "a": [None if i == 3 else x for i, x in enumerate(whole["a"])]}
    with pytest.raises(ef.ManifestError, match="column `a`: the value is missing; fill it in"):
        errors_on(frames.DataFrame(lacking), tmp_path / "refused")
    known = [x for x in lacking["a"] if x is not None]
    filled = {**whole, "a": [sum(known) / len(known) if x is None else x for x in lacking["a"]]}
    found = errors_on(frames.DataFrame(lacking), tmp_path / "mean", missing="mean")
    np.testing.assert_allclose(found, errors_on(frames.DataFrame(filled), tmp_path / "filled"))
    others = {
        "day": [datetime.datetime(2020, 1, 1)] * 24,
        "list": [[1, 2]] * 24,
        "price": [decimal.Decimal("1.5")] * 24,
    }
    expected = errors_on(frames.DataFrame(whole), tmp_path / "whole", features=["a"])
    with_others = frames.DataFrame(records_of_a_frame(**others))
    assert errors_on(with_others, tmp_path / "others", features=["a"]) == expected
    for name in ("day", "list"):
        with pytest.raises(ef.ManifestError, match=f"column `{name}` is of type"):
            errors_on(with_others, tmp_path / "used", features=["a", name])


def mine(**arrays: object) -> dict[str, object]:
    return {"x": X, "y": Y, **arrays}


BAD = [
    (mine(x=[[0.5, float("nan")], [1, 2]]), ValueError, 'm["x"][0, 1] is nan; every number must'),
    (mine(y=[0, float("-inf")]), ValueError, 'm["y"][1] is -inf'),
    (mine(x=X[0]), ValueError, 'm["x"] has the shape (3,); expected (n, d)'),
    (mine(y=X), ValueError, 'm["y"] has the shape (2, 3); expected (n,) = (2,)'),
    (mine(y=[0, 1, 1]), ValueError, 'm["y"] has 3 values, but "x" has 2 rows'),
    (mine(client=[1]), ValueError, 'm["client"] has 1 values, but "x" has 2 rows'),
    (mine(x=np.zeros((0, 3)), y=[]), ValueError, 'm["y"] is empty'),
    ({"x": X}, ValueError, 'm has "x" but no labels "y" (n,), only x'),
    (mine(x=[[1, 2], [3]]), ValueError, 'm["x"] is not an array of one shape'),
    (mine(x=X * 1j), TypeError, 'm["x"] has the type complex128; expected real numbers'),
    (mine(x=np.array([["a", "b"]] * 2)), TypeError, 'm["x"] holds text; features are numbers'),
    (mine(y=["a", ""]), ValueError, 'm["y"][1] is an empty text; nothing is filled in'),
    (mine(y=np.array([0, {}], dtype=object)), TypeError, 'm["y"][1] is of type dict'),
    (mine(y=np.array([0, "a"], dtype=object)), TypeError, 'm["y"][0] is of type int'),
    (mine(y=np.array([0, None])), ValueError, 'm["y"][1] is missing'),
    (mine(y=np.array([0, 2**53 + 1])), ValueError, 'm["y"][1] is beyond 2^53'),
    (mine(y=np.array([2**53 + 1, 0], dtype="u8")), ValueError, 'm["y"][0] is beyond 2^53'),
    (mine(y=[0, 10**30]), ValueError, 'm["y"][1] is beyond 2^53'),
    (mine(y=np.ma.array([0, 1], mask=[False, True])), ValueError, 'm["y"][1] is masked'),
    (mine(y=None), TypeError, 'm["y"] is of type NoneType; expected an array of numbers'),
    ({"a": [1, 2], "b": [1]}, ValueError, 'm["b"] has 1 values, but "a" has 2 rows'),
    ({"a": [["u"]], "b": [1, 2]}, TypeError, 'm["a"] holds text; only columns (n,) may'),
    ({"a": "no array"}, TypeError, 'm["a"] is of type str'),
    ({}, ValueError, "m has no array"),
    ({1: X}, TypeError, "the names in m are str; 1 is of type int"),
    (X, TypeError, "m is of type numpy.ndarray; expected a dict of arrays by name"),
    ("mine.csv", TypeError, "m is of type str"),
]


@pytest.mark.parametrize(("value", "error", "message"), BAD)
def test_what_is_wrong_is_named_with_its_place(value: object, error: type, message: str):
    with pytest.raises(error) as raised:
        to_npz(value, "m")
    assert message in str(raised.value)


def test_sparse_mistakes_are_named():
    sparse = pytest.importorskip("scipy.sparse")
    x = sparse.csr_matrix(X)
    with pytest.raises(ValueError, match=r'm\["x"\]\.data\[1\] is nan'):
        to_npz({"x": sparse.csr_matrix([[1, np.nan]]), "y": [1]}, "m")
    with pytest.raises(ValueError, match="has 3 values"):
        to_npz({"x": x, "y": [0, 1, 2]}, "m")
    with pytest.raises(TypeError, match=r'm."y". is a sparse matrix; only "x" may be one'):
        to_npz({"x": x, "y": x}, "m")
    with pytest.raises(ValueError, match="part of the sparse matrix"):
        to_npz({"x": x, "y": Y, "data": Y}, "m")


def test_files_in_memory_have_names_without_another_extension():
    files = in_memory({"mine": {"x": X, "y": Y}, "b.npz": b"PK\x03\x04"})
    assert files == {"mine": to_npz({"x": X, "y": Y}), "b.npz": b"PK\x03\x04"}
    assert in_memory(None) == {}
    with pytest.raises(ValueError, match=r'"a.CSV" is the name of another format'):
        in_memory({"a.CSV": {"x": X, "y": Y}})
    with pytest.raises(ValueError, match=r'arrays\["mine"\]\["y"\] has 1 values'):
        in_memory({"mine": {"x": X, "y": [1]}})


def manifest(problem: dict[str, object]) -> dict[str, object]:
    return {
        "title": "t",
        "seed": 1,
        "replicates": 2,
        "problem": problem,
        "start": {"zero": True},
        "budget": {"rounds": 10},
        "algorithm": {"fedavg": [{"step-size": 0.1, "local-steps": 2}]},
    }


def records(**settings: object) -> dict[str, object]:
    return manifest({"logistic-dataset": {"l2": 0.1, "dataset": {"file": "mine", **settings}}})


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 50)) * (rng.random((40, 50)) < 0.05)
    x[:, 0] += 0.25
    return x, x[:, 0] > x[:, 0].mean()


def test_arrays_give_the_results_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = data()
    np.savez("x.npz", x=x, y=y)
    (tmp_path / "mine").write_text("a file of this name is not read")
    arrays = {"mine": {"x": np.asfortranarray(x), "y": y.tolist()}}
    run = ef.run(records(clients=4), arrays=arrays, out="a")
    of_file = records(clients=4)
    of_file["problem"]["logistic-dataset"]["dataset"]["file"] = "x.npz"
    wanted = ef.run(of_file, out="b").digests()
    assert list(run.digests().values()) == list(wanted.values())
    again = ef.run(records(clients=4), arrays=arrays, out="a")
    assert again.digests() == run.digests()
    # Later, elsewhere, without the arrays.
    monkeypatch.chdir(tmp_path / "a")
    loaded = ef.load(tmp_path / "a")
    assert loaded.verify().equal == 1
    loaded.report(tmp_path / "pages")
    assert "FedAvg" in (tmp_path / "pages" / "experiment" / "report.html").read_text()


def test_sparse_matrices_and_frames_run(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    pandas = pytest.importorskip("pandas")
    x, y = data()

    def digest(value: object, **settings: object) -> str:
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        run = ef.run(records(**settings), arrays={"mine": value}, out=out)
        return next(iter(run.digests().values()))

    with (tmp_path / "mine.svm").open("w") as file:
        for row, label in zip(x, y, strict=True):
            pairs = [f"{j + 1}:{value!r}" for j, value in enumerate(row.tolist()) if value]
            print(int(label), *pairs, file=file)
    libsvm = records(clients=4)
    libsvm["problem"]["logistic-dataset"]["dataset"]["file"] = str(tmp_path / "mine.svm")
    [wanted] = ef.run(libsvm, out=tmp_path / "libsvm").digests().values()
    assert digest({"x": sparse.csc_matrix(x), "y": y}, clients=4) == wanted
    dense = digest({"x": x, "y": y}, clients=4)
    frame = pandas.DataFrame(x).rename(columns="x{}".format)
    frame["outcome"] = np.where(y, "yes", "no")
    assert digest(frame, clients=4, label="outcome") == dense


def test_names_that_do_not_fit_are_refused():
    x, y = data()
    arrays = {"mine": {"x": x, "y": y}}
    with pytest.raises(ef.ManifestError, match="no key names `mien` as a file"):
        ef.check(records(clients=4), arrays={**arrays, "mien": arrays["mine"]})
    with pytest.raises(ef.ManifestError, match="in memory there is mien"):
        ef.check(records(clients=4), arrays={"mien": arrays["mine"]})
    with pytest.raises(ef.ManifestError, match="distinct label"):
        ef.check(records(clients=4), arrays={"mine": {"x": x, "y": 0 * y}})


def test_atoms_are_read_from_arrays(tmp_path):
    a = np.tile(np.eye(2), (3, 1, 1, 1))
    arrays = {"A": a, "b": np.ones((3, 1, 2)), "p": np.ones((3, 1))}
    linear = manifest({"atoms": {"file": "mine"}})
    assert ef.exact(linear, arrays={"mine": arrays}).optimum.tolist() == [1, 1]
    with pytest.raises(ef.ManifestError, match="`b` has the shape"):
        ef.check(linear, arrays={"mine": {**arrays, "b": np.ones((3, 2))}})
