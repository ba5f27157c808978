"""Frames equal what the exported files hold, bit for bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import driftbench as db
import pandas as pd
import polars as pl
import pyarrow
from polars.testing import assert_frame_equal
from pyarrow import parquet


def export(results: db.Results, to: Path) -> Path:
    command = [sys.executable, "-m", "driftbench", "export", str(results.path)]
    command += ["--experiment", results.experiment, "--out", str(to), "--quiet"]
    subprocess.run(command, check=True, timeout=120)
    return to


def test_frames_equal_the_export(results: db.Results, tmp_path: Path) -> None:
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


def test_a_group_by_over_cells_mixes_none(results: db.Results) -> None:
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
    results = db.run(manifest, out=tmp_path / "results")
    file = export(results, tmp_path / "rows.parquet")
    assert_frame_equal(results.frame(), pl.read_parquet(file), check_exact=True)
    pd.testing.assert_frame_equal(results.frame("pandas"), pd.read_parquet(file), check_exact=True)
    assert results.frame()["theta"].dtype == pl.List(pl.Float64)


def test_tables_have_the_numbers_of_the_pages(results: db.Results, tmp_path: Path) -> None:
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
        results = db.run(manifest, out=tmp_path / "results", name="tuned")
    except db.ManifestError as e:
        raise AssertionError(str(e)) from e
    results.report(tmp_path / "reports")
    csv = pl.read_csv(tmp_path / "reports/tuned/tuned.csv")
    tuned = results.tuned()
    assert tuned["label"].to_list() == csv["label"].to_list()
    assert tuned["step_size"].to_list() == csv["selected"].to_list()
    for column in ["tuning_value", "value", "low", "high", "gain"]:
        for own, printed in zip(tuned[column], csv[column], strict=True):
            assert abs(own - printed) <= 1e-8 * abs(printed)
