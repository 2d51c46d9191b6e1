"""Evaluate the conditions and sums of a parsed text at arrays of points.

A quantified integer that occurs linearly in a conjunction is decided by its bounds and divisibility; others by trying
all values that interval arithmetic leaves for the points at hand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from layoutalg.ground import clock
from layoutalg.piecewise.clauses import Array, Atom, Clause, Condition, Linear, UnreadError
from layoutalg.piecewise.spans import narrowed

SAFE = 2**61
TRIES = 2**16


def shape_of(params: Mapping[str, Array], places: Sequence[Array]) -> tuple[int, ...]:
    return np.broadcast_shapes(*(np.shape(array) for array in (*params.values(), *places)))


def atoms_at(
    clause: Clause, params: Mapping[str, Array], places: Sequence[Array], given: int | None = None
) -> list[Array | None]:
    """Return the values of the atoms; None for those that depend on a quantified integer or an unknown place.

    Args:
        clause: The clause.
        params: Values of the parameters.
        places: Values of the first places.
        given: Number of known places; None for all.
    """
    known: list[Array | None] = []
    for atom in clause.atoms:
        if atom.kind != "variable":
            known.append(_rounded(atom, known))
        elif atom.name.startswith("#"):
            place = int(atom.name[1:])
            known.append(places[place] if place < (len(places) if given is None else given) else None)
        else:
            known.append(params.get(atom.name))
    return known


def positions(lengths: Sequence[int]) -> list[Array]:
    """Return all points of a box, one array per axis, last axis fastest; numpy itself is limited to 64 axes.

    Example:
        >>> [line.tolist() for line in positions([2, 1, 3])]
        [[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0], [0, 1, 2, 0, 1, 2]]
    """
    wide = [length for length in lengths if length != 1]
    lines = iter(np.indices(wide).reshape(len(wide), -1) if wide else ())
    still = np.zeros(math.prod(lengths), dtype=np.int64)
    return [still if length == 1 else next(lines) for length in lengths]


def _reach(value: Array) -> int:
    """Return the largest magnitude in an array, at least 1."""
    return max(abs(int(value.min())), abs(int(value.max())), 1) if value.size else 1


def _total(linear: Linear, known: Sequence[Array | None]) -> tuple[Any, int]:
    """Return the numerator of a sum and a bound on its magnitude; (None, 0) if an atom is unknown."""
    reach = max(abs(linear.constant), linear.denominator)
    values = []
    for atom, a in linear.terms:
        value = known[atom]
        if value is None:
            return None, 0
        values.append((a, value))
        reach += abs(a) * _reach(value)
    kind: Any = object if reach >= SAFE else np.int64
    total: Any = np.asarray(linear.constant, dtype=kind)
    for a, value in values:
        total = total + a * value.astype(kind)
    return np.asarray(total), reach


def exact(linear: Linear, known: Sequence[Array | None], shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the value of a sum and where it is an integer."""
    total, _ = _total(linear, known)
    total = np.broadcast_to(total, shape)
    if linear.denominator == 1:
        return total, np.ones(shape, dtype=bool)
    return total // linear.denominator, np.asarray(total % linear.denominator == 0, dtype=bool)


def unknown(linear: Linear, known: Sequence[Array | None]) -> bool:
    return any(known[atom] is None for atom, _ in linear.terms)


def holds_at(
    clause: Clause, params: Mapping[str, Array], places: Sequence[Array], known: list[Array | None] | None = None
) -> Array:
    """Return where the condition of a clause is true and the places equal the tuple entries."""
    known = atoms_at(clause, params, places) if known is None else known
    shape = shape_of(params, places)
    inside = np.asarray(_decided(clause, clause.condition, known, shape), dtype=bool)
    inside = np.broadcast_to(inside, shape).copy()
    for value, place in zip(places, clause.places, strict=False):
        if len(place.terms) == 1 and clause.atoms[place.terms[0][0]].name.startswith("#") and not place.constant:
            atom, factor = place.terms[0]
            if factor == 1 and place.denominator == 1 and known[atom] is value:
                continue
        if unknown(place, known):
            raise UnreadError("a place is not known")
        total, whole = exact(place, known, shape)
        inside &= whole & np.asarray(total == value, dtype=bool)
    return inside


def _decided(clause: Clause, condition: Condition, known: list[Array | None], shape: tuple[int, ...]) -> Array:
    kind = condition[0]
    if kind in {"all", "any"}:
        answer = np.full(shape, kind == "all")
        for part in condition[1]:
            found = _decided(clause, part, known, shape)
            answer = answer & found if kind == "all" else answer | found
        return answer
    if kind == "not":
        return ~_decided(clause, condition[1], known, shape)
    if kind == "some":
        return _some(clause, condition, known, shape)
    total, _ = _total(condition[1], known)
    if total is None:
        raise UnreadError("a quantifier reaches outside its condition")
    return np.broadcast_to(np.asarray(total == 0 if kind == "zero" else total >= 0, dtype=bool), shape)


def _some(clause: Clause, condition: Condition, known: list[Array | None], shape: tuple[int, ...]) -> Array:
    """Decide quantified integers: one that occurs linearly by its bounds, others by trying all possible values."""
    _, names, inner = condition
    if 0 in shape:
        return np.zeros(shape, dtype=bool)
    if inner[0] == "any":
        answer = np.zeros(shape, dtype=bool)
        for part in inner[1]:
            answer = answer | _some(clause, ("some", names, part), known, shape)
        return answer
    answer = np.ones(shape, dtype=bool)
    for own, parts in _grouped(clause, names, inner):
        group: Condition = ("all", tuple(parts))
        if not own:
            answer = answer & _decided(clause, group, known, shape)
            continue
        found = _linear_some(clause, own[0], group, known, shape) if len(own) == 1 else None
        answer = answer & (_tried_some(clause, own, group, known, shape) if found is None else found)
    return answer


def _grouped(clause: Clause, names: Sequence[str], inner: Condition) -> list[tuple[list[str], list[Condition]]]:
    """Split a conjunction into groups that share no quantified integer, each with its integers."""
    own = {clause.known[Atom("variable", name)]: name for name in names}
    below: list[set[int]] = []
    for place, atom in enumerate(clause.atoms):
        within = {place} if place in own else set()
        below.append(within.union(*(below[k] for part in atom.sums for k, _ in part.terms)))
    flat: list[Condition] = []
    waiting = [inner]
    while waiting:
        part = waiting.pop()
        if part[0] == "all":
            waiting += part[1]
        else:
            flat.append(part)
    groups: list[tuple[set[int], list[Condition]]] = []
    for part in flat:
        used, mine = _used(part, below), [part]
        apart = []
        for others, listed in groups:
            if used & others:
                used, mine = used | others, mine + listed
            else:
                apart.append((others, listed))
        groups = [*apart, (used, mine)]
    return [([own[place] for place in sorted(used)], parts) for used, parts in groups]


def _used(condition: Condition, below: Sequence[set[int]]) -> set[int]:
    """Return the quantified integers that a condition depends on."""
    if condition[0] in {"all", "any"}:
        return set().union(*(_used(part, below) for part in condition[1]))
    if condition[0] == "not":
        return _used(condition[1], below)
    if condition[0] == "some":
        return _used(condition[2], below)
    return set().union(*(below[k] for k, _ in condition[1].terms))


def _linear_some(
    clause: Clause, name: str, inner: Condition, known: list[Array | None], shape: tuple[int, ...]
) -> Array | None:
    """Decide one quantified integer in a conjunction of sums without a floor of it; None for other conditions."""
    own = clause.known[Atom("variable", name)]
    if any(_depends(clause, place, own) for place in range(own + 1, len(clause.atoms))):
        return None
    flat: list[Condition] = []
    waiting = [inner]
    while waiting:
        part = waiting.pop()
        if part[0] == "all":
            waiting += part[1]
        elif part[0] in {"zero", "least"}:
            flat.append(part)
        else:
            return None
    holds = np.ones(shape, dtype=bool)
    low: Any = None
    high: Any = None
    fixed: list[tuple[int, Array]] = []
    for part in flat:
        factor = dict(part[1].terms).get(own, 0)
        rest = Linear(tuple((k, a) for k, a in part[1].terms if k != own), part[1].constant)
        found, _ = _total(rest, known)
        if found is None:
            return None
        total = np.broadcast_to(found.astype(object), shape)
        if not factor:
            holds = holds & np.asarray(total == 0 if part[0] == "zero" else total >= 0, dtype=bool)
        elif part[0] == "zero":
            fixed.append((factor, total))
        elif factor > 0:  # x >= -total / factor, rounded up
            bound = -(total // factor)
            low = bound if low is None else np.maximum(low, bound)
        else:
            bound = total // -factor
            high = bound if high is None else np.minimum(high, bound)
    if fixed:
        factor, total = fixed[0]
        holds = holds & np.asarray(total % factor == 0, dtype=bool)
        value = -total // factor
        low = value if low is None else np.maximum(low, value)
        high = value if high is None else np.minimum(high, value)
        for factor, total in fixed[1:]:
            holds = holds & np.asarray(factor * value + total == 0, dtype=bool)
    if low is not None and high is not None:
        holds = holds & np.asarray(low <= high, dtype=bool)
    return holds


def _depends(clause: Clause, place: int, own: int) -> bool:
    """Return whether an atom directly uses a variable."""
    return any(atom == own for part in clause.atoms[place].sums for atom, _ in part.terms)


def _tried_some(
    clause: Clause, names: Sequence[str], inner: Condition, known: list[Array | None], shape: tuple[int, ...]
) -> Array:
    """Decide quantified integers by trying all values that interval arithmetic leaves for these points."""
    own = [clause.known[Atom("variable", name)] for name in names]
    spans: list[tuple[int | None, int | None]] = [(None, None)] * len(clause.atoms)
    for place, value in enumerate(known):
        if value is not None and value.size:
            spans[place] = (int(value.min()), int(value.max()))
    found = narrowed(clause, inner, spans)
    if found is None:
        return np.zeros(shape, dtype=bool)
    lines, count = [], 1
    for place in own:
        low, high = found[place]
        if low is None or high is None:
            raise UnreadError("a quantified integer without bounds")
        lines.append((low, high))
        count *= high - low + 1
    size = int(np.prod(shape, dtype=np.int64))
    if count * size > TRIES:
        if size <= 1 or count > TRIES:
            raise UnreadError("too many values of quantified integers")
        return _halved(clause, names, inner, known, shape, size)
    grid = positions([high - low + 1 for low, high in lines])
    longer = (*shape, 1)
    fuller: list[Array | None] = []
    for place, value in enumerate(known):
        if place in own:
            at = own.index(place)
            line = grid[at].astype(object if max(map(abs, lines[at])) >= SAFE else np.int64) + lines[at][0]
            fuller.append(line.reshape((1,) * len(shape) + (-1,)))
        elif value is None:
            fuller.append(None)
        else:
            fuller.append(np.broadcast_to(value, shape).reshape(longer) if np.ndim(value) else value)
    for place, atom in enumerate(clause.atoms):
        if fuller[place] is None and atom.sums:
            fuller[place] = _rounded(atom, fuller)
    return np.asarray(_decided(clause, inner, fuller, (*shape, len(grid[0]))).any(axis=-1), dtype=bool)


def _halved(
    clause: Clause, names: Sequence[str], inner: Condition, known: list[Array | None], shape: tuple[int, ...], size: int
) -> Array:
    """Decide the points in two halves: fewer points have fewer values to try."""
    flat = [None if value is None else np.broadcast_to(value, shape).reshape(-1) for value in known]
    clock.check("quantified integers")
    parts = []
    for half in (slice(0, size // 2), slice(size // 2, size)):
        mine = [None if value is None else value[half] for value in flat]
        parts.append(_tried_some(clause, names, inner, mine, (len(range(size)[half]),)))
    return np.concatenate(parts).reshape(shape)


def _rounded(atom: Atom, known: Sequence[Array | None]) -> Array | None:
    """Return the value of an atom, None if one of its sums is unknown."""
    parts = [_total(part, known)[0] for part in atom.sums]
    if any(part is None for part in parts):
        return None
    if atom.kind == "floor":
        return np.asarray(parts[0] // atom.sums[0].denominator)
    if atom.kind == "mod":
        value = parts[0] if atom.modulus < SAFE else parts[0].astype(object)
        return np.asarray(value % atom.modulus)
    answer = parts[0]
    for other in parts[1:]:
        answer = np.minimum(answer, other) if atom.kind == "min" else np.maximum(answer, other)
    return np.asarray(answer)
