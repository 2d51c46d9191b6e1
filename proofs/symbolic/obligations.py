"""The conditions on sizes under which a symbolic map realises its problem, derived from the map alone.

A plan is right if every step of ``proofs.tensormap.checker`` passes. Box, element strides, swizzle, copies, origin
terms, tile and shared layout are numbers here, so the sizes matter only as follows:

  1. target rules: extents must be integers in 1 to 2^31, strides multiples of 16 bytes in [0, 2^40); all other rules
     involve only numbers and hold at all sizes if at one;
  2. the walk of the boxes through shared memory and the XOR do not involve the tensor, so one size suffices;
  3. a walked element at coordinates c + a u has the byte address base + sum (c_j + sum_i a_ji u_i) stride_j, which must
     be (offset + sum (e_i t_i + m_i u_i) S_i) * bytes. Both are affine in u with polynomial coefficients: equal at all
     sizes and origins iff the polynomials are, monomial by monomial;
  4. the engine's and the problem's bounds tests are intervals of u along each tile dimension, with ends that are floors
     of affine functions of that dimension's bound: equal for all bounds iff over one period (``residues``);
  5. the map must end within the tensor, and copies start within 32 bits: polynomial inequalities;
  6. stores: rows of whole chunks, and no two elements at one address.

The returned conjunction is sufficient, and each part is necessary for this map, except for the groups in
``sufficient_only``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from layoutalg.ground.conditions import Condition, at_least, divisible
from layoutalg.ground.limits import PROBLEM_EXTENT
from layoutalg.ground.polynomial import ONE, Monomial, Polynomial, number, total
from layoutalg.ground.record import Checked
from layoutalg.proofs.symbolic.guard import Clause
from layoutalg.proofs.symbolic.plan import SymbolicPlan, evaluated
from layoutalg.proofs.symbolic.residues import Axis, Residues, as_congruence, residues
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.tensormap.walk import (
    ADDRESS_LIMIT,
    IntArray,
    MismatchError,
    UndecidedError,
    Walk,
    coefficients,
    first,
    promotion,
    walk,
)
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits

STRIDE_LIMIT_BYTES = limits.STRIDE_LIMIT_BYTES
_COORDINATE_LIMIT = 2**31


@dataclass(frozen=True, slots=True)
class Obligations(Checked, code="LA374"):
    """The conditions on sizes."""

    clauses: tuple[Clause, ...]  # clauses of the guard, not yet minimal
    oob: str  # the class that then holds at all sizes
    # further conditions that make the class exact; None if there are no such conditions
    exact_where: tuple[Condition, ...] | None
    sufficient_only: tuple[str, ...] = ()  # groups of clauses that may refuse sizes at which the map is right


def obligations(plan: SymbolicPlan, instance: TensorMapPlan) -> Obligations:
    """Return the conditions on sizes.

    Args:
        plan: The map, its copies and the problem; guard and class are ignored.
        instance: The plan at some sizes, proved.

    Raises:
        MismatchError: this map is wrong at all sizes.
        UndecidedError: a case outside the groups above.
    """
    walked, moves = walk(instance), coefficients(instance)
    _check_addresses(plan, walked, moves)
    clauses: list[Clause] = [
        (entry,) for entry in (*_statement(plan), *_rules(plan), *_reach(plan), *_starts(plan, instance))
    ]
    bounds, oob, exact_where = _bounds(plan, instance, walked, moves)
    clauses += [(entry,) for entry in bounds]
    sufficient: tuple[str, ...] = ()
    if plan.problem.pattern.direction == "store":
        if oob == "lost":
            raise MismatchError("a tile over the edge would write foreign elements", oob=oob)
        stored, certain = _store(plan)
        clauses += stored
        sufficient = () if certain else ("stores to distinct addresses",)
    return Obligations(tuple(clauses), oob, exact_where, sufficient)


def _at_most(value: Polynomial, bound: int) -> Condition:
    return Condition("nonnegative", number(bound) - value)


def _statement(plan: SymbolicPlan) -> Iterator[Condition]:
    """Yield the conditions that the problem is valid: integers within its limits."""
    tensor = plan.problem.tensor
    for extent, (low, high) in zip(evaluated(tensor.shape), plan.problem.bounds, strict=True):
        (top,) = evaluated((high,))
        yield from (Condition("integral", extent), Condition("integral", top))
        yield from (at_least(extent, top), at_least(top, low + 1), _at_most(extent, PROBLEM_EXTENT))
    for stride in evaluated(tensor.strides):
        yield from (Condition("integral", stride), _at_most(stride, PROBLEM_EXTENT))
        yield at_least(stride, -PROBLEM_EXTENT)


def _rules(plan: SymbolicPlan) -> Iterator[Condition]:
    """Yield the target's rules for extents and strides."""
    for extent in evaluated(plan.tensor_map.dims):
        yield from (Condition("integral", extent), at_least(extent, 1), _at_most(extent, limits.MAX_DIM))
    for stride in evaluated(plan.tensor_map.strides_bytes):
        yield Condition("integral", stride)
        yield divisible(stride, limits.GLOBAL_ALIGN_BYTES)
        yield from (at_least(stride, 0), _at_most(stride, STRIDE_LIMIT_BYTES - limits.GLOBAL_ALIGN_BYTES))


def _reach(plan: SymbolicPlan) -> Iterator[Condition]:
    """Yield the condition that the map covers no byte outside the tensor."""
    pattern, tm = plan.problem.pattern, plan.tensor_map
    strides = evaluated(plan.problem.tensor.strides)
    for stride in strides:
        if any(value < 0 for _, value in stride.monomials):
            raise UndecidedError(f"undecided whether the stride {stride} is negative")
    extents = evaluated(plan.problem.tensor.shape)
    end = total([(n - 1) * stride for n, stride in zip(extents, strides, strict=True)])
    end = (end + pattern.base_elem_offset + 1) * pattern.element_bytes
    dims = evaluated(tm.dims)
    last = dims[0] * hardware.element_bytes(tm.dtype) + tm.base_address
    last = last + total([(n - 1) * step for n, step in zip(dims[1:], evaluated(tm.strides_bytes), strict=True)])
    if tm.base_address < pattern.base_elem_offset * pattern.element_bytes:
        raise MismatchError("the map reaches before the tensor", got_first_byte=tm.base_address)
    yield at_least(end, last)


def _starts(plan: SymbolicPlan, instance: TensorMapPlan) -> Iterator[Condition]:
    """Yield the conditions that origins in bounds have 32-bit start coordinates, for stores nonnegative ones."""
    problem = plan.problem
    floor = 0 if problem.pattern.direction == "store" else -_COORDINATE_LIMIT
    for j, terms in enumerate(plan.origin_map):
        low, high = (extreme(issue.coords[j] for issue in instance.issues) for extreme in (min, max))
        named = []
        for dim, top, bottom in terms:
            multiple = problem.origin_multiple[dim]
            if multiple and not isinstance(problem.bounds[dim][1], int):
                named.append((dim, top * multiple // bottom, multiple))
            elif multiple:
                ends = [top * multiple // bottom * u for u in (0, (problem.bounds[dim][1] - 1) // multiple)]
                low, high = low + min(ends), high + max(ends)
        if not named:
            continue
        if len(named) > 1:
            raise UndecidedError("two origins with symbolic bounds move one coordinate")
        ((dim, step, multiple),) = named
        if problem.bounds[dim][0]:
            raise UndecidedError("a lower bound above 0 with a symbolic upper bound")
        steps = (_COORDINATE_LIMIT - 1 - high) // step if step > 0 else (low - floor) // -step if step else None
        if (low if step >= 0 else _COORDINATE_LIMIT - 1) < (floor if step >= 0 else high) or (steps or 0) < 0:
            raise MismatchError("a start coordinate is out of range", map_dim=j, coordinate=low)
        if steps is not None:
            yield _at_most(evaluated((problem.bounds[dim][1],))[0], multiple * (steps + 1))


def _check_addresses(plan: SymbolicPlan, walked: Walk, moves: list[dict[int, int]]) -> None:
    """Check, as polynomials, that every walked element has its tile element's address at every origin."""
    pattern = plan.problem.pattern
    steps = (number(pattern.element_bytes), *evaluated(plan.tensor_map.strides_bytes))
    wanted = [stride * pattern.element_bytes for stride in evaluated(plan.problem.tensor.strides)]
    base = plan.tensor_map.base_address - pattern.base_elem_offset * pattern.element_bytes
    scale = math.lcm(*[factor.denominator for value in (*steps, *wanted) for _, factor in value.monomials])
    for key in sorted({key for value in (*steps, *wanted) for key, _ in value.monomials} | {()}):
        parts = [(axis, _coefficient(step, key)) for axis, step in zip(walked.coords, steps, strict=True)]
        parts += [
            (axis, -_coefficient(stride, key) * step)
            for axis, stride, step in zip(walked.tile_coords, wanted, pattern.element_strides, strict=True)
        ]
        used = [(axis, int(factor * scale)) for axis, factor in parts if factor]
        if sum(abs(factor) * int(np.abs(axis).max()) for axis, factor in used) + abs(base * scale) >= ADDRESS_LIMIT:
            raise UndecidedError("addresses exceed 62 bits")
        got = np.full(walked.addresses.size, 0 if key else base * scale, dtype=np.int64)
        for axis, factor in used:
            got += axis * factor
        row = first(got != 0)
        if row is not None:
            monomial = str(Polynomial(((key, Fraction(1)),)))
            raise MismatchError("wrong global element", tile=walked.tile_at(row), monomial=monomial)
    for dim, multiple in enumerate(plan.problem.origin_multiple):
        slope = total([steps[j] * row[dim] for j, row in enumerate(moves) if dim in row])
        if multiple and slope != wanted[dim] * multiple:
            raise MismatchError("wrong global element", origin=f"dimension {dim}", expected=str(wanted[dim] * multiple))


def _coefficient(value: Polynomial, key: Monomial) -> Fraction:
    return next((factor for monomial, factor in value.monomials if monomial == key), Fraction(0))


def _bounds(
    plan: SymbolicPlan, instance: TensorMapPlan, walked: Walk, moves: list[dict[int, int]]
) -> tuple[list[Condition], str, tuple[Condition, ...] | None]:
    """Return the conditions on the bounds, the resulting class, and further conditions that make it exact."""
    problem, ratio = plan.problem, promotion(instance)
    extents = [value * (ratio if j == 0 else 1) for j, value in enumerate(evaluated(plan.tensor_map.dims))]
    if any(len(row) > 1 for row in moves):
        raise UndecidedError("two origins move one coordinate of the map")
    wanted, engine = np.ones(walked.addresses.size, dtype=np.bool_), np.ones(walked.addresses.size, dtype=np.bool_)
    still = [j for j, row in enumerate(moves) if not row]
    needs: list[Condition] = []
    exact: list[Condition] | None = []
    oob = "exact"
    for dim, (low, high) in enumerate(problem.bounds):
        reach = walked.tile_coords[dim] * problem.pattern.element_strides[dim]
        (top,) = evaluated((high,))
        mine = [j for j, row in enumerate(moves) if dim in row]
        if not problem.origin_multiple[dim]:
            _fixed(wanted, reach, low, high, top, still, walked, extents)
            continue
        found = _moved(plan, walked, moves, dim, mine, extents)
        for name, kept in (("covered", found.covered), ("exact", found.exact), ("weak", found.weak)):
            if name == "covered":
                needs += _congruent(top, kept, found) or []
                if kept != found.whole and as_congruence(kept, found.period) is None:
                    raise UndecidedError("the sizes at which the map covers the tile form several residue classes")
            elif name == "exact" and kept != found.covered:
                more = _congruent(top, kept, found)
                exact = None if exact is None or more is None else [*exact, *more]
                oob = "weak" if oob != "lost" else oob
            elif name == "weak" and kept != found.covered:
                oob = "lost"
    for j in still:
        constant = extents[j].as_int()
        if constant is not None:
            engine &= (walked.coords[j] >= 0) & (walked.coords[j] < constant)
    if (wanted & ~engine).any():
        raise MismatchError("an element in bounds is out of bounds for the map")
    if (engine & ~wanted).any():
        oob, exact = "lost", None
    return needs, oob, None if exact is None or oob == "exact" else tuple(exact)


def _congruent(top: Polynomial, kept: frozenset[int], found: Residues) -> list[Condition] | None:
    """Return the conditions for a bound to have these residues; None if that is not a congruence."""
    if kept == frozenset(range(found.period)):
        return []
    one = as_congruence(kept, found.period)
    return None if one is None else [divisible(top - one[1], one[0])]


def _moved(
    plan: SymbolicPlan, walked: Walk, moves: list[dict[int, int]], dim: int, mine: list[int], extents: list[Polynomial]
) -> Residues:
    """Return what holds at which residues of a tile dimension's bound, for a dimension with moving origin."""
    problem = plan.problem
    low, high = problem.bounds[dim]
    (top,) = evaluated((high,))
    if not mine:
        raise UndecidedError(f"the origin of dimension {dim} moves no coordinate of the map")
    reach = walked.tile_coords[dim] * problem.pattern.element_strides[dim]
    rows = _different([reach, *(walked.coords[j] for j in mine)])
    if isinstance(high, int):
        return _numbers(rows, [(moves[j][dim], extents[j]) for j in mine], problem.origin_multiple[dim], low, high)
    axes = []
    for j in mine:
        found = _affine(extents[j], top)
        if found is None:
            raise UndecidedError(f"the extent {extents[j]} is not a multiple of the bound {top}")
        axes.append(Axis(moves[j][dim], *found))
    return residues(rows[0], list(rows[1:]), axes, problem.origin_multiple[dim], low)


def _different(columns: list[IntArray]) -> IntArray:
    """Return the distinct rows of these columns, as one row per column."""
    key = np.zeros(columns[0].size, dtype=np.int64)
    for column in columns:
        low, high = int(column.min()), int(column.max())
        key = key * (high - low + 1) + (column - low)
    _, chosen = np.unique(key, return_index=True)
    return np.stack([column[chosen] for column in columns])


def _numbers(rows: IntArray, axes: list[tuple[int, Polynomial]], multiple: int, low: int, high: int) -> Residues:
    """Return the same for numeric bound and extents: one residue, period 1."""
    reach = rows[0]
    first_wanted, last_wanted = -((reach - low) // multiple), (high - 1 - reach) // multiple
    some = first_wanted <= last_wanted
    start, stop = np.full(reach.size, -(2**61)), np.full(reach.size, 2**61)
    for coordinate, (step, extent) in zip(rows[1:], axes, strict=True):
        constant = extent.as_int()
        if constant is None or step <= 0:
            raise UndecidedError("a symbolic extent along a dimension with a numeric bound")
        start = np.maximum(start, -(coordinate // step))
        stop = np.minimum(stop, (constant - 1 - coordinate) // step)
    if (some & ((start > first_wanted) | (stop < last_wanted))).any():
        raise MismatchError("an element in bounds is out of bounds for the map")
    one, none = frozenset({0}), frozenset[int]()
    foreign = (start <= stop) & (~some | (start < first_wanted) | (stop > last_wanted))
    start, stop = np.maximum(start, -(-low // multiple)), np.minimum(stop, (high - 1) // multiple)
    beyond = (start <= stop) & (~some | (start < first_wanted) | (stop > last_wanted))
    return Residues(1, one, one, none if foreign.any() else one, none if beyond.any() else one)


def _fixed(
    wanted: np.ndarray, reach: IntArray, low: int, high: object, top: Polynomial, still: list[int], walked: Walk,
    extents: list[Polynomial],
) -> None:  # fmt: skip
    """Handle a tile dimension fixed at origin 0: a symbolic bound must be the extent of some fixed coordinate."""
    if isinstance(high, int):
        wanted &= (reach >= low) & (reach < high)
        return
    for j in still:
        coordinate = walked.coords[j]
        shift = coordinate - reach
        if (
            (shift == shift[0]).all()
            and extents[j] == top + int(shift[0])
            and ((coordinate >= 0) == (reach >= low)).all()
        ):
            return
    raise UndecidedError(f"no coordinate of the map has the bound {top} as its extent")


def _affine(extent: Polynomial, top: Polynomial) -> tuple[Fraction, Fraction] | None:
    """Return (alpha, beta) with extent = alpha top + beta for a symbolic bound, or None."""
    key, factor = next((entry for entry in reversed(top.monomials) if entry[0]), ((), Fraction(0)))
    alpha = _coefficient(extent, key) / factor if factor else Fraction(0)
    rest = (extent - top * number(alpha)).constant
    return None if not alpha or rest is None else (alpha, rest)


def _store(plan: SymbolicPlan) -> tuple[list[Clause], bool]:
    """Return the clauses for storing whole chunks and each global element once, and whether they are necessary."""
    problem, tm = plan.problem, plan.tensor_map
    inner = evaluated(tm.dims)[0] * hardware.element_bytes(tm.dtype)
    clauses: list[Clause] = [(divisible(inner, limits.STORE_CHUNK_BYTES),)]
    moving = [dim for dim, extent in enumerate(problem.pattern.tile) if extent > 1]
    steps = {
        dim: stride * problem.pattern.element_strides[dim]
        for dim, stride in enumerate(evaluated(problem.tensor.strides))
    }
    moving.sort(key=lambda dim: sum(value * 3 ** sum(p for _, p in key) for key, value in steps[dim].monomials))
    # sorted by step, each step must exceed the reach of the earlier ones, within the tile or within bounds
    for place, dim in enumerate(moving[1:], 1):
        before = moving[:place]
        ways = []
        for inside in (True, False):  # the reach within the tile, or within bounds
            reach = []
            for other in before:
                (top,) = evaluated((problem.bounds[other][1],))
                step = problem.pattern.element_strides[other]
                count = (
                    number(problem.pattern.tile[other] - 1) if inside else (top - 1 - problem.bounds[other][0]) / step
                )
                reach.append(steps[other] * count)
            ways.append(at_least(steps[dim], total(reach) + ONE))
        low, high = problem.bounds[dim]
        (top,) = evaluated((high,))
        ways.append(_at_most(top, low + problem.pattern.element_strides[dim]))  # only one element in bounds
        clauses.append(tuple(ways))
    two = len(moving) <= 2 and all(step == 1 for step in problem.pattern.element_strides)
    return clauses, two and (not moving or steps[moving[0]].as_int() == 1)
