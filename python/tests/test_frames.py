"""Frames equal what the exported files hold, bit for bit."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import exactfed as ef
import pandas as pd
import polars as pl
import pyarrow
import pytest
from conftest import MANIFEST
from polars.testing import assert_frame_equal
from pyarrow import parquet


def export(results: ef.Results, to: Path) -> Path:
    command = [sys.executable, "-m", "exactfed", "export", str(results.path)]
    command += ["--experiment", results.experiment, "--out", str(to), "--quiet"]
    subprocess.run(command, check=True, timeout=120)
    return to


def test_frames_equal_the_export(results: ef.Results, tmp_path: Path) -> None:
    file = export(results, tmp_path / "rows.parquet")
    frame, exported = results.frame(), pl.read_parquet(file)
    assert frame.height == 8 * 8 * 21
    assert frame.schema == exported.schema
    assert_frame_equal(frame, exported, check_exact=True)
    assert {"algorithm_local_steps", "algorithm_step_size", "rounds"} <= set(frame.columns)
    assert frame.schema["algorithm_step_size"] == pl.Float64
    assert frame["sq_error"].to_numpy().tobytes() == exported["sq_error"].to_numpy().tobytes()

    pandas, exported = results.frame("pandas"), pd.read_parquet(file)
    pd.testing.assert_frame_equal(pandas, exported, check_exact=True)
    assert pandas["sq_error"].to_numpy().tobytes() == exported["sq_error"].to_numpy().tobytes()

    assert pyarrow.table(results).num_rows == parquet.read_table(file).num_rows


def test_frames_have_the_last_run_alone(tmp_path: Path) -> None:
    out = tmp_path / "results"
    ef.run(MANIFEST, out=out, name="small", replicates=2)
    changed = {"problem.quadratic.noise": 0.2, "budget.local-steps": 1000}
    results = ef.run(MANIFEST, out=out, name="small", replicates=2, set=changed)
    every = results.frame(earlier=True)
    file = export(results, tmp_path / "rows.parquet")
    assert_frame_equal(every, pl.read_parquet(file), check_exact=True)
    pandas = results.frame("pandas", earlier=True)
    pd.testing.assert_frame_equal(pandas, pd.read_parquet(file), check_exact=True)
    last = results.frame()
    assert last["cell"].n_unique() == 8 and every["cell"].n_unique() == 16
    assert last["last_run"].all() and last["local_step"].max() == 1000
    assert_frame_equal(last, every.filter("last_run"), check_exact=True)
    assert pyarrow.table(results).num_rows == len(results.frame("pandas")) == last.height
    assert_frame_equal(pl.DataFrame(results), last, check_exact=True)


def test_a_last_run_without_results(tmp_path: Path) -> None:
    """Cells of earlier runs are no substitute for those that failed."""

    @ef.algorithm("Fails on request", kind="breaks")
    def breaks(clients, theta, gamma, H, fails=False):  # type: ignore[no-untyped-def]
        while True:
            if fails:
                raise RuntimeError("requested")
            yield theta

    own = (
        MANIFEST.split("[[algorithm")[0]
        + "[[algorithm.breaks]]\nstep-size = 0.1\nlocal-steps = 2\n"
    )
    ef.run(own + "fails = false\n", out=tmp_path, name="own", replicates=1)
    with pytest.raises(ef.CellError):
        ef.run(own + "fails = true\n", out=tmp_path, name="own", replicates=1)
    results = ef.load(tmp_path)
    with pytest.raises(ef.ExactfedError, match=r"earlier=True"):
        results.frame()
    assert results.frame(earlier=True)["cell"].n_unique() == 1


def test_a_group_by_over_cells_mixes_none(results: ef.Results) -> None:
    frame = results.frame()
    key = ["algorithm", "algorithm_step_size", "algorithm_local_steps", "last_run"]
    assert frame.group_by(key).agg(pl.col("cell").n_unique())["cell"].to_list() == [1] * 8


def test_all_lists_and_nulls(tmp_path: Path) -> None:
    """Columns of lists, and those that only some cells have."""
    manifest = {
        "title": "Lists",
        "seed": 3,
        "replicates": 2,
        "problem": {
            "lms": {
                "dimension": 2,
                "clients": 4,
                "spectrum": {"from": 0.5, "to": 2.0},
                "model-spread": 0.5,
                "noise": 0.1,
            }
        },
        "start": {"zero": True},
        "budget": {"rounds": 10},
        "record": {"iterates": True, "every": 5, "metrics": ["correction-sum"]},
        "algorithm": {
            "fedavg": [{"step-size": 0.1, "local-steps": 2}],
            "scaffold": [{"step-size": 0.1, "local-steps": 2}],
        },
    }
    results = ef.run(manifest, out=tmp_path / "results")
    file = export(results, tmp_path / "rows.parquet")
    assert_frame_equal(results.frame(), pl.read_parquet(file), check_exact=True)
    pd.testing.assert_frame_equal(results.frame("pandas"), pd.read_parquet(file), check_exact=True)
    assert results.frame()["theta"].dtype == pl.List(pl.Float64)


def test_tables_have_the_numbers_of_the_pages(results: ef.Results, tmp_path: Path) -> None:
    claims = results.claims()
    assert claims["claim"].to_list() == ["scaffold-below"]
    assert claims["verdict"].to_list() == ["supported"]
    assert claims["high"][0] < 1.0 and claims["low"][0] < claims["value"][0] < claims["high"][0]
    record = results.report(tmp_path / "reports").with_name("record.toml").read_text()
    for key, column in [("estimate", "value"), ("low", "low"), ("high", "high")]:
        assert f"{key} = {claims[column][0]!r}\n" in record
    ranking = results.ranking()
    assert ranking.height == 4
    best = ranking.filter(step_size=0.05, local_steps=100)
    assert best["best"].to_list() == ["Scaffold"] and best["separation"].to_list() == ["larger"]
    assert results.frontier().height == 0
    assert results.failures().height == 0


def test_what_was_tuned(tmp_path: Path) -> None:
    manifest = {
        "title": "Tuned",
        "seed": 5,
        "replicates": 4,
        "problem": {
            "quadratic": {
                "dimension": 2,
                "clients": 4,
                "noise": 1.0,
                "spectrum": {"from": 0.5, "to": 1.0},
            }
        },
        "start": {"offset": 1.0},
        "budget": {"rounds": 40},
        "tune": {"over": "step-size", "range": [0.01, 0.3]},
        "algorithm": {"fedavg": [{"local-steps": 4}], "scaffold": [{"local-steps": 4}]},
    }
    try:
        results = ef.run(manifest, out=tmp_path / "results", name="tuned")
    except ef.ManifestError as e:
        raise AssertionError(str(e)) from e
    results.report(tmp_path / "reports")
    csv = pl.read_csv(tmp_path / "reports/tuned/tuned.csv")
    tuned = results.tuned()
    assert tuned["label"].to_list() == csv["label"].to_list()
    assert tuned["step_size"].to_list() == csv["selected"].to_list()
    assert described(ef.Results.tuned) == [c for c in tuned.columns if c != "step_size"]
    rows = results.frame()
    assert set(rows["fresh"]) == {None, True} and rows["last_run"].all()
    assert_frame_equal(rows, results.frame(earlier=True), check_exact=True)
    for column in ["tuning_value", "value", "low", "high", "gain"]:
        for own, printed in zip(tuned[column], csv[column], strict=True):
            assert abs(own - printed) <= 1e-8 * abs(printed)


def test_runs_and_instances_are_named(results: ef.Results, tmp_path: Path) -> None:
    ranking = results.ranking()
    assert ranking["runs"].to_list() == [8] * 4 and ranking["instances"].to_list() == [None] * 4
    tune = '[tune]\nover = "step-size"\nrange = [0.02, 0.05]\n'
    kinds = "".join(f"[[algorithm.{kind}]]\nlocal-steps = 10\n" for kind in ("fedavg", "scaffold"))
    text = MANIFEST.split("[[algorithm")[0] + tune + kinds
    text = text.replace("replicates = 8", "replicates = 2\ninstances = 3")
    tuned = ef.run(text, out=tmp_path)
    assert tuned.tuned()["runs"].to_list() == [6, 6]
    ranking = tuned.ranking()
    assert ranking["runs"].to_list() == [6] and ranking["instances"].to_list() == [3]
    assert "replicates" not in tuned.tuned().columns + ranking.columns
    every = tuned.ranking(all=True)
    assert every["runs"].to_list() == [6, 6] and every["instances"].to_list() == [3, 3]
    assert every["ratio"].to_list() == [None, ranking["ratio"][0]]


def test_a_ranking_by_accuracy_agrees_with_what_was_tuned(tmp_path: Path) -> None:
    """Both have the accuracy as their value, of which the largest is best, and not ‖θ − θ*‖²."""
    records = [(i % 5, i * 7 % 11, (i % 5 + i * 7 % 11 + i % 3) > 7) for i in range(60)]
    lines = "".join(f"{x},{y},{'b' if is_b else 'a'}\n" for x, y, is_b in records)
    (tmp_path / "records.csv").write_text("x,y,kind\n" + lines)
    (tmp_path / "m.toml").write_text("""
title = "Tuned by accuracy"
seed = 1
replicates = 1
instances = 4
[problem.softmax-dataset]
l2 = 0.1
dataset = { file = "records.csv", label = "kind", clients = 3, split = "iid", test = 0.3 }
[start]
zero = true
[budget]
rounds = 6
[record]
metrics = ["test-accuracy"]
[tune]
over = "step-size"
values = [1e-6, 0.3]
metric = "test-accuracy"
[[algorithm.fedavg]]
local-steps = 2
[[algorithm.fedavg]]
label = "slow"
local-steps = 1
""")
    results = ef.run(tmp_path / "m.toml", out=tmp_path / "results")
    tuned, ranking = results.tuned(), results.ranking(all=True)
    by_label = dict(zip(tuned["label"], tuned["value"], strict=True))
    assert ranking["value"].to_list() == [by_label[label] for label in ranking["label"]]
    assert all(0.0 <= value <= 1.0 for value in by_label.values())
    first = results.ranking()
    assert first["value"].to_list() == ranking["value"].to_list()[:1]
    assert first["ratio"][0] is None or first["ratio"][0] >= 1.0


def test_the_ranking_of_all_algorithms(results: ef.Results) -> None:
    best, every = results.ranking(), results.ranking(all=True)
    axes = ["step_size", "local_steps"]
    assert axes == every.columns[:2] and every.height == 8
    first, second = every.filter(rank=1), every.filter(rank=2)
    assert_frame_equal(first.select(*axes, "value"), best.select(*axes, "value"), check_exact=True)
    assert first["label"].to_list() == best["best"].to_list()
    assert first["separation"].to_list() == ["best"] * 4 and first["ratio"].null_count() == 4
    for own, shown in [("name", "next"), ("ratio", "ratio"), ("ratio_low", "low")]:
        assert second[own].to_list() == best[shown].to_list()
    assert second["separation"].to_list() == best["separation"].to_list()
    leaders = every.filter("leads").group_by(axes, maintain_order=True).agg("name")
    assert ["; ".join(names) for names in leaders["name"]] == best["leaders"].to_list()
    assert (every["low"] < every["value"]).all() and (every["value"] < every["high"]).all()
    # The mean is that of the rows of the cell.
    last = results.frame().filter(pl.col("local_step") == 2000)
    means = last.group_by("cell").agg(pl.col("sq_error").mean())
    joined = every.join(means, on="cell")
    assert joined.height == 8 and (joined["value"] / joined["sq_error"] - 1).abs().max() < 1e-12


def test_algorithms_that_are_not_ranked_are_in_the_ranking(tmp_path: Path) -> None:
    entries = "".join(
        f"[[algorithm.{kind}]]\nlabel = {label!r}\nlocal-steps = 10\nstep-size = {step}\n"
        for kind, label, step in [
            ("fedavg", "wild", 90.0),
            ("fedavg", "A", 0.05),
            ("scaffold", "B", 0.05),
        ]
    )
    text = MANIFEST.split("[[algorithm")[0].replace("replicates = 8", "replicates = 3") + entries
    every = ef.run(text, out=tmp_path).ranking(all=True)
    assert every["rank"].to_list() == [1, 2, None] and every["label"][2] == "wild"
    assert every["separation"].to_list()[::2] == ["best", "diverged"]
    assert not every["leads"][2] and every["value"].null_count() == every["runs"].null_count() == 1


def test_whole_numbers_that_were_selected_are_integers(tmp_path: Path) -> None:
    tune = '[tune]\nover = ["step-size", "local-steps"]\n'
    tune += "values = { step-size = [0.02, 0.05], local-steps = [5, 10] }\n"
    text = MANIFEST.split("[[algorithm")[0].replace("replicates = 8", "replicates = 2") + tune
    tuned = ef.run(text + "[[algorithm.fedavg]]\n[[algorithm.scaffold]]\n", out=tmp_path).tuned()
    assert tuned.schema["local_steps"] == pl.Int64 and tuned.schema["step_size"] == pl.Float64
    assert set(tuned["local_steps"]) <= {5, 10}


def described(method: Any, section: str = "Columns") -> list[str]:
    """The columns that a docstring describes, without those of settings."""
    _, _, rest = inspect.getdoc(method).partition(f"\n{section}\n---")
    assert rest, f"{method} has a section {section}"
    body = re.split(r"\n\n\S", rest.partition("\n")[2])[0]
    names = [line for line in body.split("\n") if line and not line.startswith(" ")]
    return [name for line in names for name in line.split(", ") if name[0] != "<"]


def test_docstrings_describe_all_columns(results: ef.Results, tmp_path: Path) -> None:
    settings = ["step_size", "local_steps"]
    every = "Columns with ``all=True``"
    frames = [
        (ef.Results.claims, "Columns", results.claims()),
        (ef.Results.ranking, "Columns", results.ranking()),
        (ef.Results.ranking, every, results.ranking(all=True)),
        (ef.Results.failures, "Columns", results.failures()),
        (ef.Plan.frame, "Columns", ef.plan(MANIFEST, out=tmp_path).frame()),
        (ef.Diff.frame, "Columns", ef.diff(results, results).frame()),
    ]
    for method, section, frame in frames:
        columns = [name.removeprefix("algorithm_") for name in frame.columns]
        # A ranking at no target has none of these.
        at_target = ("reached", "median", "median_low", "median_high")
        names = [name for name in described(method, section) if name not in at_target]
        assert names == [name for name in columns if name not in settings]


def test_frames_without_an_optimum(tmp_path: Path) -> None:
    """With ``record.optimum = false`` there is no error, and losses take its place."""
    manifest = {
        "title": "t", "seed": 1, "replicates": 3, "start": {"zero": True}, "budget": {"rounds": 5},
        "problem": {"logistic": {"dimension": 2, "records": 20, "clients": 3, "l2": 0.1,
                                 "data": {"noisy": {"spread": 2.0}}}},
        "record": {"metrics": ["train-loss"]},
        "algorithm": {
            kind: {"step-size": 0.1, "local-steps": 2} for kind in ("fedavg", "scaffold")
        },
    }  # fmt: skip
    with_optimum = ef.run(manifest, out=tmp_path / "with", name="t")
    left_out = {"record.optimum": False}
    without = ef.run(manifest, out=tmp_path / "without", name="t", set=left_out)
    frame, other = without.frame(), with_optimum.frame()
    assert "sq_error" not in frame.columns and "sq_error" in other.columns
    losses = [of.select("label", "replicate", "round", "train_loss") for of in (frame, other)]
    assert_frame_equal(*losses, check_exact=True)
    last = frame.filter(pl.col("round") == 5).group_by("label").agg(pl.col("train_loss").mean())
    best = last.sort("train_loss").row(0)
    ranking = without.ranking().row(0, named=True)
    assert (ranking["best"], ranking["value"]) == pytest.approx(best)
    with pytest.raises(ef.ExactfedError, match=r"record\.optimum = false"):
        ef.exact(manifest, set=left_out, label="FedAvg")
