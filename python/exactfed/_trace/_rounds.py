"""Rounds as linear programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
#: A factor of an atom: for everything, one per coordinate (d,), per client (N, 1), or each (N, d).
Coefficient = float | Array

SERVER, CLIENTS, MEMBERS = "server", "clients", "members"


def is_zero(coefficient: Coefficient) -> bool:
    """Whether a coefficient is 0 everywhere."""
    return coefficient == 0.0 if isinstance(coefficient, float) else not np.any(coefficient)


def _bits(coefficient: Coefficient) -> Any:
    if isinstance(coefficient, float):
        return coefficient + 0.0
    return coefficient.shape, (coefficient + 0.0).tobytes()


def _smallest(coefficient: Coefficient) -> Any:
    """The smallest form of a coefficient, as JSON has it."""
    if isinstance(coefficient, float):
        return coefficient + 0.0
    array = coefficient + 0.0
    if np.all(array == array.flat[0]):
        return float(array.flat[0])
    if array.ndim == 1:
        return {"entries": array.tolist()}
    if np.all(array == array[:1]):
        return {"entries": array[0].tolist()}
    if np.all(array == array[:, :1]):
        return {"clients": array[:, 0].tolist()}
    return {"rows": array.ravel().tolist()}


@dataclass(frozen=True)
class Expression:
    """A constant and atoms times their coefficients."""

    terms: dict[int, Coefficient]
    constant: Coefficient

    def key(self) -> Any:
        """Equal for equal expressions."""
        terms = tuple((atom, _bits(self.terms[atom])) for atom in sorted(self.terms))
        return terms, _bits(self.constant)

    def renamed(self, names: dict[int, int]) -> Expression:
        """With other numbers of the atoms."""
        return Expression({names[a]: c for a, c in self.terms.items()}, self.constant)

    def json(self) -> Any:
        """As the format of programs has it."""
        terms = [[atom, _smallest(self.terms[atom])] for atom in sorted(self.terms)]
        return {"terms": terms, "constant": _smallest(self.constant)}

    def text(self, names: list[str]) -> str:
        """As a sum."""
        parts = []
        for atom in sorted(self.terms):
            factor = _shown(self.terms[atom])
            parts.append(names[atom] if factor == "1" else f"{factor}·{names[atom]}")
        if not parts or not is_zero(self.constant):
            parts.append(_shown(self.constant))
        return " + ".join(parts)


def _shown(value: Any) -> str:
    if isinstance(value, (bool, str)) or value is None:
        return str(value).lower()
    array = np.asarray(value, float)
    if array.size and np.all(array == array.flat[0]):
        return f"{array.flat[0]:.6g}"
    return f"<{'×'.join(str(length) for length in array.shape)}>"


@dataclass(frozen=True)
class Operation:
    """What a round does: an operation that makes an atom, or a draw (no atom) for the replay."""

    name: str
    atom: int | None
    inputs: dict[str, Expression]
    settings: dict[str, Any]

    def key(self) -> Any:
        """Equal for equal operations."""
        inputs = tuple((name, of.key()) for name, of in self.inputs.items())
        return self.name, self.atom, inputs, setting_key(self.settings)

    def json(self) -> Any:
        """As the format of programs has it."""
        out: dict[str, Any] = {"op": self.name}
        out |= {name: of.json() for name, of in self.inputs.items()}
        if self.name == "steps":
            out |= {name: None for name in ("correction", "anchor") if name not in out}
        for name, value in self.settings.items():
            out[name] = value.ravel().tolist() if isinstance(value, np.ndarray) else value
        return out


def setting_key(settings: dict[str, Any]) -> Any:
    """Equal for equal settings of an operation."""
    return tuple(
        (name, (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value)
        for name, value in settings.items()
    )


@dataclass(frozen=True)
class Mask:
    """Coins that are 1 with a probability, for each row, each entry or a subset of the entries."""

    probability: float
    each: str
    level: str

    def json(self) -> Any:
        """As the format of programs has it."""
        return {"probability": self.probability, "each": self.each, "level": self.level}


@dataclass(frozen=True)
class Round:
    """The linear program of a round; ``levels`` are those of its atoms, first of the state."""

    state: int
    levels: list[str]
    operations: list[Operation]
    next: list[Expression]
    next_levels: list[str]
    result: Expression
    cohort: int | None
    masks: list[Mask]
    #: The scheme that draws the cohort, as JSON; None for the default.
    scheme: str | None = None

    def key(self) -> Any:
        """Equal for equal rounds."""
        operations = tuple(operation.key() for operation in self.operations)
        after = tuple(of.key() for of in self.next), tuple(self.next_levels)
        before = self.state, tuple(self.levels), self.cohort, self.scheme, tuple(self.masks)
        return before, operations, after, self.result.key()

    def needs(self, kept: Iterable[int]) -> set[int]:
        """The atoms on which the result and these parts of the next state depend."""
        atoms = set(self.result.terms)
        for part in kept:
            atoms |= set(self.next[part].terms)
        for operation in reversed(self.operations):
            if operation.atom in atoms:
                for of in operation.inputs.values():
                    atoms |= set(of.terms)
        return atoms

    def pruned(self, before: set[int], kept: set[int]) -> Round:
        """With these parts of the state before and after alone, and what they need."""
        atoms = self.needs(kept)
        done = [operation for operation in self.operations if operation.atom in atoms]
        order = sorted(before) + [o.atom for o in done if o.atom is not None]
        names = {atom: place for place, atom in enumerate(order)}
        used = sorted({o.settings["mask"] for o in done if o.name == "mask"})
        evaluated = [o.settings["draws"] for o in done if "draws" in o.settings]
        # What is evaluated at one point alone shares its draw with nothing.
        shared = sorted({draw for draw in evaluated if evaluated.count(draw) > 1})
        operations = [_renamed(operation, names, used, shared) for operation in done]
        has_cohort = any(_of_cohort(operation) for operation in done)
        return Round(
            len(before),
            [self.levels[atom] for atom in order],
            operations,
            [self.next[part].renamed(names) for part in sorted(kept)],
            [self.next_levels[part] for part in sorted(kept)],
            self.result.renamed(names),
            self.cohort if has_cohort else None,
            [self.masks[index] for index in used],
            self.scheme if has_cohort else None,
        )

    def json(self) -> Any:
        """As the format of programs has it."""
        scheme = None if self.scheme is None else json.loads(self.scheme)
        decides_size = isinstance(scheme, dict) and "bernoulli" in scheme
        return {
            "state": self.levels[: self.state],
            "cohort": None if decides_size else self.cohort,
            **({} if scheme is None else {"participation": scheme}),
            "masks": [mask.json() for mask in self.masks],
            "operations": [operation.json() for operation in self.operations],
            "next": [of.json() for of in self.next],
            "result": self.result.json(),
        }

    def text(self) -> str:
        """The round for readers: s and v are the state, m and r what operations make."""
        kinds = ("sv", "mr")
        names = [
            kinds[atom >= self.state][level == CLIENTS] + str(atom)
            for atom, level in enumerate(self.levels)
        ]
        lines = ["state: " + (", ".join(names[: self.state]) or "none")]
        if self.cohort is not None:
            lines.append(f"cohort of {self.cohort}" if self.scheme is None else self.scheme)
        for operation in self.operations:
            inputs = [f"{name}={of.text(names)}" for name, of in operation.inputs.items()]
            settings = [f"{name}={_shown(value)}" for name, value in operation.settings.items()]
            left = "" if operation.atom is None else f"{names[operation.atom]} = "
            lines.append(f"{left}{operation.name}({', '.join(inputs + settings)})")
        for place, (level, of) in enumerate(zip(self.next_levels, self.next, strict=True)):
            lines.append(f"{'v' if level == CLIENTS else 's'}{place}' = {of.text(names)}")
        return "\n".join([*lines, f"yield {self.result.text(names)}"])


def _of_cohort(operation: Operation) -> bool:
    return operation.name in ("members", "select") or operation.settings.get("members") is True


def _renamed(
    operation: Operation, names: dict[int, int], masks: list[int], draws: list[int]
) -> Operation:
    settings = dict(operation.settings)
    if operation.name == "mask":
        settings["mask"] = masks.index(settings["mask"])
    if "draws" in settings:
        draw = settings.pop("draws")
        if draw in draws:
            settings["draws"] = draws.index(draw)
    inputs = {name: of.renamed(names) for name, of in operation.inputs.items()}
    atom = None if operation.atom is None else names[operation.atom]
    return Operation(operation.name, atom, inputs, settings)


@dataclass
class Traced:
    """The rounds of an algorithm, as linear programs.

    Attributes
    ----------
    whole
        The rounds with all that the algorithm computed; the last ``cycle`` of them repeat.
    rounds, order
        The different rounds without what nothing depends on, and which of them each round is.
    """

    clients: int
    dimension: int
    shares: Array
    whole: list[Round]
    cycle: int
    rounds: list[Round] = field(default_factory=list)
    order: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        known: dict[Any, int] = {}
        for pruned in _without_waste(self.whole, self.cycle):
            index = known.setdefault(pruned.key(), len(known))
            if index == len(self.rounds):
                self.rounds.append(pruned)
            self.order.append(index)
        while self.cycle and len(self.order) > self.cycle:
            if self.order[-1] != self.order[-1 - self.cycle]:
                break
            self.order.pop()

    def round(self, number: int) -> Round:
        """The whole program of a round; the first has the number 1."""
        at = number - 1
        if at >= len(self.whole):
            begin = len(self.whole) - self.cycle
            at = begin + (at - begin) % self.cycle
        return self.whole[at]

    def work(self) -> float:
        """About how many multiplications a round costs on real arrays, on average."""
        calls = 1.0
        for one in self.whole:
            for operation in one.operations:
                count = operation.settings.get("count", operation.settings.get("calls", 1))
                calls += float(np.mean(count * operation.settings.get("batch", 1)))
        return calls / len(self.whole) * self.clients * self.dimension

    def json(self) -> str:
        """The program without what nothing depends on."""
        program = {
            "clients": self.clients,
            "dimension": self.dimension,
            "rounds": [one.json() for one in self.rounds],
            "order": self.order,
            "cycle": self.cycle,
        }
        return json.dumps(program, separators=(",", ":"), allow_nan=False)

    def text(self) -> str:
        """The program for readers."""
        last = f", of which the last {self.cycle} repeat" if self.cycle else ""
        head = f"rounds {', '.join(str(index) for index in self.order)}{last}"
        parts = [f"round {index}\n{one.text()}" for index, one in enumerate(self.rounds)]
        return "\n\n".join([head, *parts])


def _without_waste(whole: list[Round], cycle: int) -> list[Round]:
    kept: set[int] = set()
    # What the repeated rounds read of what they leave: a fixed point.
    while cycle:
        before = kept
        for one in reversed(whole[-cycle:]):
            before = {atom for atom in one.needs(before) if atom < one.state}
        if before <= kept:
            break
        kept |= before
    out = []
    for one in reversed(whole):
        before = {atom for atom in one.needs(kept) if atom < one.state}
        out.append(one.pruned(before, kept))
        kept = before
    return out[::-1]


def repetition(whole: list[Round], most: int = 24) -> int:
    """The period of at least the last half of the rounds, or 0."""
    keys: dict[Any, int] = {}
    names = [keys.setdefault(one.key(), len(keys)) for one in whole]
    for period in range(1, min(most, len(names) // 2) + 1):
        compared = len(names) - max(len(names) // 2, period)
        if all(names[-i] == names[-i - period] for i in range(1, compared + 1)):
            return period
    return 0
