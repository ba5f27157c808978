"""Rounds that are done again with real clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._rounds import SERVER, Array, Expression, Operation, Round, Traced


def replay(traced: Traced, clients: Any, theta: Array) -> Iterator[Array]:
    """θ_1, θ_2, …, as the program of the whole rounds has them, with the draws of these clients."""
    state: list[Array] = [np.array(theta, float)]
    number = 0
    while number < len(traced.whole) or traced.cycle:
        number += 1
        one = traced.round(number)
        values = _done(one, clients, state, traced)
        result = _value(one.result, values, SERVER, traced)
        yield result
        state = [
            _value(of, values, level, traced)
            for level, of in zip(one.next_levels, one.next, strict=True)
        ]


def _value(of: Expression, values: list[Array], level: str, traced: Traced) -> Array:
    d = traced.dimension
    out = np.zeros((d,) if level == SERVER else (traced.clients, d)) + of.constant
    for atom in sorted(of.terms):
        out = out + of.terms[atom] * values[atom]
    return np.ascontiguousarray(out)


def _done(one: Round, clients: Any, state: list[Array], traced: Traced) -> list[Array]:
    values = list(state)
    # The draws of the algorithm's own by number, the coins of masks, and the members.
    drawn: dict[Any, Any] = {"members": None, "scheme": None}
    for number, operation in enumerate(one.operations):
        if operation.atom is None:
            _draw(number, operation, clients, drawn, traced)
            continue

        def of(name: str, level: str, operation: Operation = operation) -> Any:
            inner = operation.inputs.get(name)
            return None if inner is None else _value(inner, values, level, traced)

        level = one.levels[operation.atom]
        values.append(_operation(operation, level, of, clients, drawn, traced))
    return values


def _draw(
    number: int, operation: Operation, clients: Any, drawn: dict[Any, Any], traced: Traced
) -> None:
    settings = operation.settings
    if operation.name == "draw":
        drawn["draw", settings["number"]] = clients.draw(settings["calls"])
    elif operation.name == "cohort":
        drawn["scheme"] = settings.get("scheme")
        if drawn["scheme"] is None:
            drawn["members"] = np.array(clients.cohort(settings["size"]))
        else:
            scheme = json.loads(drawn["scheme"])
            drawn["members"] = np.array(clients.cohort(settings["size"], participation=scheme))
    elif operation.name == "participate":
        clients.participate(settings["indices"], settings["weights"])
    elif operation.name == "generator":
        clients.rng  # noqa: B018  (the first use draws its seed)
    elif operation.name == "random":
        drawn[number] = clients.rng.random(settings["size"])
    elif operation.name == "binomial":
        drawn[number] = clients.rng.binomial(1, settings["probability"], settings["size"])
    elif operation.name == "below":
        uniform, p = drawn[settings["of"]], settings["probability"]
        drawn[settings["of"]] = uniform < p if settings["strict"] else uniform <= p
    elif operation.name == "compress":
        # The draws do not depend on what is compressed: Rand-k leaves what it draws of ones.
        shape = (traced.dimension,)
        if settings["level"] != SERVER:
            shape = (traced.clients, traced.dimension)
        left = clients.compress(np.ones(shape), settings["compressor"])
        drawn["mask", settings["mask"]] = np.asarray(left != 0, float)
    elif operation.name == "coins":
        coins = np.asarray(drawn[settings["of"]], float)
        drawn["mask", settings["mask"]] = coins.reshape(settings["shape"])


def _operation(
    operation: Operation, level: str, of: Any, clients: Any, drawn: dict[Any, Any], traced: Traced
) -> Array:
    settings = operation.settings
    name = operation.name
    out: Any
    if name == "steps":
        out = clients.local_steps(
            # A row of each client: the draws and the numbers are those of one vector for all.
            of("start", "clients"),
            settings["step"],
            settings["count"],
            of("correction", "clients"),
            batch=settings["batch"],
            proximal=settings["proximal"],
            anchor=of("anchor", SERVER),
        )
    elif name == "fields":
        kept = settings.get("draws")
        draws = settings["calls"] if kept is None else drawn["draw", kept]
        out = clients.fields(of("at", "clients"), draws)
    elif name == "meanfields":
        out = clients.mean_fields(of("at", "clients"))
    elif name == "sum":
        weights = settings["weights"]
        out = (traced.shares if isinstance(weights, str) else weights) @ of("rows", "clients")
    elif name == "members" and drawn["scheme"] is not None:
        out = clients.mean(of("rows", "clients"))
    elif name == "members":
        out = of("rows", "clients")[drawn["members"]].mean(axis=0)
    elif name == "select":
        out = of("other", "clients")
        out[drawn["members"]] = of("member", "clients")[drawn["members"]]
    elif name == "mix":
        out = settings["matrix"] @ of("rows", "clients")
    elif name == "matrix":
        matrix, rows = settings["matrix"], of("of", level)
        # A matrix of each client, or one for all.
        out = np.einsum("nij,nj->ni", matrix, rows) if matrix.ndim == 3 else rows @ matrix.T
    elif name == "normal":
        d = traced.dimension
        out = clients.rng.standard_normal((d,) if level == SERVER else (traced.clients, d))
    else:
        out = drawn["mask", settings["mask"]] * of("of", level)
    return np.asarray(out, float)
