"""The least pitches under coupled conditions: the lexicographic minimum of a set, by ISL.

Notation: pitches are named; a form is an integer combination of pitches, in bytes.

Lanes at bytes i p + j q, i < n and j < m, for pitches p and q are conflict-free if no two of them start at the same
place modulo 128 bytes; n m times the access size is at most 128.

Implementation notes: plain arithmetic checks that what ISL returns satisfies the conditions.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Diagnostic, InfeasibleError
from layoutalg.ground.limits import PLAN_SECONDS
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.piecewise import PointSet, lexmin
from layoutalg.piecewise.notation import WORDS
from layoutalg.synth.solving.accesses import CHECK
from layoutalg.targets.bank_counting import TURN_BYTES

Form: TypeAlias = tuple[tuple[str, int], ...]
LIMIT = 2**40
"""Largest pitch, constant or modulus, in bytes."""


@dataclass(frozen=True, slots=True)
class Multiple:
    """A form is congruent to ``rest`` modulo ``of``."""

    form: Form
    of: int
    rest: int = 0

    def holds(self, at: Mapping[str, int]) -> bool:
        """Whether it holds for these pitches."""
        return (_value(self.form, at) - self.rest) % self.of == 0

    def terms(self) -> list[str]:
        """Return the condition in the notation of ISL."""
        return [f"({_text(self.form)} - {self.rest}) mod {self.of} = 0"]

    def __str__(self) -> str:
        return f"({_text(self.form)}) mod {self.of} = {self.rest % self.of}"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A form is at least a number."""

    form: Form
    low: int

    def holds(self, at: Mapping[str, int]) -> bool:
        """Whether it holds for these pitches."""
        return _value(self.form, at) >= self.low

    def terms(self) -> list[str]:
        """Return the condition in the notation of ISL."""
        return [str(self)]

    def __str__(self) -> str:
        return f"{_text(self.form)} >= {self.low}"


@dataclass(frozen=True, slots=True)
class Spread:
    """Lanes that step by pitches start at different banks.

    Args:
        steps: Per pitch, the number of lanes that step by it.
        access_bytes: Bytes per lane.
    """

    steps: Form
    access_bytes: int

    def holds(self, at: Mapping[str, int]) -> bool:
        """Whether it holds for these pitches."""
        lanes = itertools.product(*(range(count) for _, count in self.steps))
        starts = [sum(i * at[name] for i, (name, _) in zip(lane, self.steps, strict=True)) for lane in lanes]
        places = {start % TURN_BYTES // self.access_bytes for start in starts}
        return len(places) == len(starts) and all(start % self.access_bytes == 0 for start in starts)

    def terms(self) -> list[str]:
        """Return the condition in the notation of ISL."""
        size, pitches = self.access_bytes, [name for name, _ in self.steps]
        found = [f"{name} mod {size} = 0" for name, count in self.steps if count > 1]
        if len(pitches) == 1:  # list the residues that spread the lanes
            fits = [rest for rest in range(0, TURN_BYTES, size) if self.holds({pitches[0]: rest})]
            return [*found, " or ".join(f"{pitches[0]} mod {TURN_BYTES} = {rest}" for rest in fits) or "1 = 0"]
        for difference in itertools.product(*(range(1 - count, count) for _, count in self.steps)):
            if difference > (0,) * len(difference):  # one of each pair of opposite signs
                form = tuple((name, step) for name, step in zip(pitches, difference, strict=True) if step)
                found.append(f"1 <= ({_text(form)}) mod {TURN_BYTES}")
        return found

    def __str__(self) -> str:
        lanes = " x ".join(f"{count} by {name}" for name, count in self.steps)
        return f"{lanes}, {self.access_bytes} bytes each, free of conflicts"


Condition: TypeAlias = Multiple | AtLeast | Spread


@dataclass(frozen=True, slots=True)
class Padding(Record, Shown, code="LA870", schema="layoutalg/padding/1", json="pitches=by_name objective"):
    """The least pitches.

    Args:
        pitches: The pitches, in bytes.
        objective: The minimised values, in order.
    """

    pitches: tuple[tuple[str, int], ...]
    objective: tuple[int, ...]

    @property
    def by_name(self) -> dict[str, int]:
        """The pitches by name."""
        return dict(self.pitches)

    def __getitem__(self, name: str) -> int:
        return self.by_name[name]

    def __str__(self) -> str:
        told = ", ".join(f"{name} = {value}" for name, value in self.pitches)
        return f"{told} bytes; minimal"


def least_padding(
    names: Sequence[str],
    conditions: Sequence[Condition],
    objective: Sequence[Mapping[str, int]] | None = None,
    *,
    seconds: float = PLAN_SECONDS,
) -> Padding:
    """Return the least pitches that satisfy all conditions.

    Mathematically: the lexicographic minimum of (objective, pitches) over the non-negative integers.

    Args:
        names: The pitches, most important first.
        conditions: The conditions.
        objective: Forms to minimise before the pitches themselves, in order.
        seconds: Wall-clock time limit.

    Example:
        >>> row, plane = (("row", 1),), (("plane", 1),)
        >>> print(least_padding(["row", "plane"], [
        ...     Multiple(row, 16), AtLeast(row, 256), Spread((("row", 8),), 16), Multiple(plane, 128),
        ...     AtLeast((("plane", 1), ("row", -5)), 0)]))
        row = 272, plane = 1408 bytes; minimal
    """
    asked = _checked(names, conditions, objective)
    with clock.within(clock.checked_seconds(seconds, "seconds")):
        found = _least(*asked)
    if found is None:
        core = conflict(asked[0], asked[1])
        because = "these cannot hold together: " + "; ".join(map(str, core))
        raise InfeasibleError(Diagnostic("LA873", "no pitches satisfy all conditions", tuple(asked[0]), because))
    values = tuple(_value(form, found) for form in asked[2])
    return Padding(tuple((name, found[name]) for name in asked[0]), values)


def _checked(
    names: Sequence[str], conditions: Sequence[Condition], objective: Sequence[Mapping[str, int]] | None
) -> tuple[tuple[str, ...], tuple[Condition, ...], tuple[Form, ...]]:
    if isinstance(names, str) or not names or len(set(names)) < len(names):
        raise CHECK.malformed("names", "must be distinct names", names)
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or name in WORDS:
            raise CHECK.malformed("names", f"must be identifiers, none of {', '.join(sorted(WORDS))}", name)
    forms = tuple(tuple(form.items()) for form in objective or ())
    for condition in conditions:
        if not isinstance(condition, Multiple | AtLeast | Spread):
            raise CHECK.malformed("conditions", "must be Multiple, AtLeast or Spread", condition)
        form = condition.steps if isinstance(condition, Spread) else condition.form
        forms += (form,)
        if isinstance(condition, Multiple) and not 1 <= condition.of < LIMIT:
            raise CHECK.malformed("conditions", f"must have a modulus in [1, {LIMIT})", condition.of)
        if isinstance(condition, Spread):
            lanes = 1
            for _, count in form:
                lanes *= CHECK.integer(count, "steps", 1, TURN_BYTES + 1)
            size = CHECK.integer(condition.access_bytes, "access_bytes", 1, TURN_BYTES + 1)
            if TURN_BYTES % size or lanes * size > TURN_BYTES:
                raise CHECK.malformed("access_bytes", f"must divide 128, at most 128 bytes for {lanes} lanes", size)
    for form in forms:
        for name, factor in form:
            if name not in names:
                raise CHECK.malformed("conditions", f"must use the names {', '.join(names)}", name)
            CHECK.integer(factor, f"the factor of {name}", -LIMIT, LIMIT)
    return tuple(names), tuple(conditions), tuple(tuple(form.items()) for form in objective or ())


def _points(names: Sequence[str], conditions: Sequence[Condition], objective: Sequence[Form] = ()) -> PointSet:
    """Return the values of the forms to minimise and the pitches, where all conditions hold."""
    axes = [f"least{index}" for index in range(len(objective))]
    terms = [f"{name} >= 0" for name in names]
    terms += [f"{axis} = {_text(form)}" for axis, form in zip(axes, objective, strict=True)]
    terms += [f"({term})" for condition in conditions for term in condition.terms()]
    return PointSet(f"{{ [{', '.join([*axes, *names])}] : {' and '.join(terms)} }}")


def _least(
    names: tuple[str, ...], conditions: tuple[Condition, ...], objective: tuple[Form, ...]
) -> dict[str, int] | None:
    """Return the least pitches, or None if there are none."""
    points = _points(names, conditions, objective)
    if points.is_empty():
        return None
    values = lexmin(points)()
    found = {name: int(values[name]) for name in names}
    broken = next((each for each in conditions if not each.holds(found)), None)
    if broken is not None:
        what = "ISL returned pitches that violate a condition"
        raise BudgetError(Diagnostic("LA874", what, (str(found),), str(broken)))
    return found


def conflict(names: tuple[str, ...], conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Return a minimal unsatisfiable subset of the conditions.

    Raises: BudgetError: LA001. MalformedError: LA870, if the conditions are satisfiable.

    Example:
        >>> row = (("row", 1),)
        >>> [str(each) for each in conflict(("row",), (
        ...     AtLeast(row, 16), Multiple(row, 128), Spread((("row", 8),), 16)))]
        ['(1*row) mod 128 = 0', '8 by row, 16 bytes each, free of conflicts']
    """
    if not _points(names, conditions).is_empty():
        raise CHECK.malformed("conditions", "must be unsatisfiable", [str(each) for each in conditions])
    core = list(conditions)
    for condition in tuple(core):
        fewer = [each for each in core if each is not condition]
        if _points(names, fewer).is_empty():
            core = fewer
    return tuple(core)


def _value(form: Sequence[tuple[str, int]], at: Mapping[str, int]) -> int:
    return sum(factor * at[name] for name, factor in form)


def _text(form: Sequence[tuple[str, int]]) -> str:
    return " + ".join(f"{factor}*{name}" for name, factor in form) or "0"
