"""Programs with state in odd places: their exact errors are those of their runs, or are refused.

``EXACTFED_PROGRAMS`` is the number of programs, 24 by default, and ``EXACTFED_RUNS`` that of the
runs of each, 400 by default. 300 of them take about five minutes.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings

import exactfed as ef
import numpy as np
import odd_programs
import pytest
from exact_runs import MOST, QUADRATIC, RUNS, standard_errors

COUNT = int(os.environ.get("EXACTFED_PROGRAMS", "24"))
ROUNDS = 24


def manifest(kind):
    return {
        "title": "Odd programs",
        "seed": 3,
        "replicates": RUNS,
        "instance": "fixed",
        "problem": {"quadratic": {**QUADRATIC, "clients": 3}},
        "start": {"offset": 1.0},
        "algorithm": {kind: [{"step-size": 0.15}]},
        "budget": {"rounds": ROUNDS},
        "record": {"every": 1},
    }


def loaded(folder, name, source):
    (folder / f"{name}.py").write_text(source, encoding="utf-8")
    return importlib.import_module(name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    before = dict(os.environ)
    numpy_options, limit = np.get_printoptions(), sys.getrecursionlimit()
    filters = list(warnings.filters)
    yield tmp_path
    sys.setrecursionlimit(limit)
    np.set_printoptions(**numpy_options)
    warnings.filters[:] = filters
    for name in set(os.environ) - set(before):
        del os.environ[name]


def distance(seed, folder):
    """The place of a program, and how far its runs are from the exact error; a text if refused."""
    helper, name = f"odd_helper_{seed}", f"odd_program_{seed}"
    loaded(folder, helper, odd_programs.HELPER)
    place, source = odd_programs.program(seed, ROUNDS, helper, str(folder / f"odd_{seed}.txt"))
    kind = f"odd-{seed}"
    ef.algorithm(kind, kind=kind)(loaded(folder, name, source).rule)
    of = manifest(kind)
    before = ef.exact(of)
    results = ef.run(of, out=folder / kind, progress=False, threads=1)
    # Pages ask for it when the runs are over.
    after = ef.exact(of)
    runs = results.frame().sort("replicate", "round")["sq_error"]
    known = [one for one in (before, after) if one.sq_error is not None]
    if not known:
        return place, before.why("sq_error")
    if place.is_followed and len(known) < 2:
        return place, f"once: {before.why('sq_error')}, {after.why('sq_error')}"
    return place, max(standard_errors(runs, one.sq_error) for one in known)


def test_runs_have_the_exact_error_or_there_is_none(folder):
    wrong, refused, followed = {}, {}, []
    for seed in range(COUNT):
        place, found = distance(seed, folder)
        if isinstance(found, str):
            assert not place.is_followed, (seed, place.name, found)
            assert "there is no exact theory of" in found, (seed, place.name, found)
            refused[place.name] = found
        elif found < MOST:
            followed.append(place.name)
        else:
            wrong[seed, place.name] = found
    assert not wrong, wrong
    assert len(refused) > COUNT / 4 and len(followed) > COUNT / 8, (len(refused), followed)
    if COUNT > 200:
        print(f"{len(refused)} kinds refused, {len(followed)} programs followed: {followed}")
