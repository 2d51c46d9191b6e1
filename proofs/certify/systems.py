"""Certificates that no candidate fits: systems of linear equations in values of a layout, none solvable.

An instruction that carries a layout f picks one of finitely many candidates (a register of its fragment, a major and a
swizzle, a dimension) and some integers (a start, pitches), which imposes linear equations on these integers and values
of f. Kind ``none-of`` lists the candidates with their equations and claims that none has an integer solution. A system
over Z is unsolvable iff some combination of its equations reads 0 = b with b != 0, possibly modulo m; that combination
is the evidence. That the list is complete and each candidate imposes its equations is part of the rule named by the
refusal, not of the certificate; the tests substitute carried layouts for f.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError
from layoutalg.integer.lattice import NoSolution, solve
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.evidence import first, proved
from layoutalg.proofs.certify.points import evaluated
from layoutalg.proofs.certify.stages import Stages, listed

IntArray: TypeAlias = npt.NDArray[np.int64]
Known: TypeAlias = "IntArray | int"


class Equation(NamedTuple):
    """``sum of factor * unknown = sum of coefficient * value + known`` for every i, modulo ``modulus`` unless 0."""

    terms: tuple[tuple[int, int, int], ...]  # (coefficient, k, output): an output of f at the k-th point
    known: Known = 0  # the constant, per i or for all
    factors: tuple[Known, ...] = ()  # one per unknown, each per i or for all
    modulus: int = 0  # modulus of both sides; only without unknowns


class System(NamedTuple):
    """A candidate's equations."""

    points: tuple[IntArray, ...]  # for each k, the point of f per i: arrays of equal length, at least one
    equations: tuple[Equation, ...]  # the equations, for every i
    after: Stages | None = None  # stages applied to each value of f first, such as undoing a swizzle


def none_of(f: IntArray, systems: Sequence[System | Iterable[System]]) -> Certificate | None:
    """Return a certificate that no system of linear equations has an integer solution; None if one may have.

    Kind ``none-of``: for every candidate a listed combination of its equations is 0 = b, b not 0, over the integers or
    modulo some m.

    Args:
        f: The layout by flat coordinate: int64[point] or int64[point, output].
        systems: The candidates; for one with several systems, the first unsolvable one is used.

    Example:
        >>> i = np.arange(8)
        >>> rows = System((i, i - i % 4), (Equation(((1, 0, 0), (-1, 1, 0)), -(i % 4)),))  # fours are contiguous
        >>> none_of(2 * i, [rows]).check().certificate["claim"]
        'f is none of 1 candidates'
        >>> none_of(i, [rows]) is None
        True
    """
    values = f.reshape(len(f), -1)
    chosen: list[System] = []
    sums: list[list[Any]] = []
    for forced in systems:
        for system in (forced,) if isinstance(forced, System) else forced:
            clock.check("a certificate of a refusal")
            found = excluded(rows_of(values, system))
            if found is not None:
                chosen.append(system)
                sums.append(found)
                break
        else:
            return None
    statement = {"f": _function(values), "candidates": [_system(one, values.shape[1]) for one in chosen]}
    return proved("none-of", statement, [{"sums": sums}], f"{len(chosen)} candidates") if chosen else None


def excluded(rows: IntArray) -> list[Any] | None:
    """Return an unsatisfiable combination of equations as [modulus, [[factor, i, row], ...]], or None.

    Args:
        rows: int64[i, equation, unknowns + 1], the value last.

    Example:
        >>> excluded(np.array([[[2, 0]], [[2, 4]], [[4, 3]]]))
        [0, [[-1, 0, 0], [1, 1, 0]]]
        >>> excluded(np.array([[[2, 4]], [[4, 8]], [[6, 12]]])), excluded(np.array([[[2, 3]]]))
        (None, [2, [[1, 0, 0]]])
    """
    many, unknowns = rows.shape[1], rows.shape[2] - 1
    flat = rows.reshape(-1, unknowns + 1)
    left, right = flat[:, :-1], flat[:, -1]
    if not unknowns:
        odd = np.argwhere(rows[:, :, 0].T).tolist()  # the first equation, then the first i
        return [0, [[1, odd[0][1], odd[0][0]]]] if odd else None
    chosen: list[int] = []
    point, basis = np.zeros(unknowns, dtype=object), np.eye(unknowns, dtype=object)
    while True:
        if max((abs(int(entry)) for entry in (*point, *basis.reshape(-1))), default=0) < 2**20:
            point, basis = point.astype(np.int64), basis.astype(np.int64)
        wrong = np.flatnonzero((left @ point != right) | (left @ basis.T != 0).any(axis=1))
        if not len(wrong):
            return None
        chosen.append(int(wrong[0]))
        found = solve(left[chosen].tolist(), right[chosen].tolist(), unknowns)
        if isinstance(found, NoSolution):
            pairs = zip(found.row, chosen, strict=True)
            return [found.modulus, [[factor, *divmod(at, many)] for factor, at in pairs if factor]]
        point = np.array(found.particular, dtype=object)
        basis = np.array(found.basis, dtype=object).reshape(-1, unknowns)


def overlap(f: IntArray) -> Certificate | None:
    """Return a certificate that two points have one value, or None.

    Example:
        >>> overlap(np.array([4, 0, 4])).check().certificate["claim"]
        'f(0) = f(2)'
    """
    order = np.argsort(f, kind="stable")
    same = np.flatnonzero(f[order][1:] == f[order][:-1])
    if not len(same):
        return None
    points = sorted(int(point) for point in order[same[0] : same[0] + 2])
    statement = {"f": _function(f.reshape(-1, 1)), "codomain": int(f.max()) + 1, "side": "left"}
    return first("no-inverse", statement, [{"points": points}], "two elements at one place")


def missed(f: IntArray, value: int) -> Certificate | None:
    """Return a certificate that a number is not a value; None if it is.

    Example:
        >>> missed(np.array([0, 1, 3]), 2).check().certificate["claim"]
        '2 is not taken: [0] at 3 points'
    """
    if (f == value).any():
        return None
    tell = [["pieces", [[[], [[[1], -value, "="]], [[[0], 1]]], [[], [], [[[0], 0]]]]]]
    statement = {"f": _function(f.reshape(-1, 1)), "codomain": value + 1, "side": "right"}
    evidence = {"missed": value, "invariant": tell, "by": {"by": "table"}}
    try:
        return first("no-inverse", statement, [evidence], "a place that no element has")
    except BudgetError:
        return None


def _function(values: IntArray) -> dict[str, Any]:
    """Return the layout as a function, several outputs side by side."""
    columns = [listed(np.ascontiguousarray(values[:, k])).stages for k in range(values.shape[1])]
    return {"size": len(values), "stages": columns[0] if len(columns) == 1 else [["fork", *columns]]}


def _system(system: System, outputs: int) -> dict[str, Any]:
    """Return a candidate's equations in the checker's form."""
    count = 1 + len(system.points) * outputs  # i, then the values of f
    size = len(system.points[0])
    parts: Stages = []
    for place in range(1, count):
        parts.append([_picked(count, place), *(system.after or [])])
    known: list[Known] = []

    def place_of(array: Known) -> int | None:
        """Return the position of a known function among the values; None for a constant."""
        if isinstance(array, int):
            return None
        for at, other in enumerate(known):
            if other is array or np.array_equal(other, array):
                return at + count - 1
        known.append(array)
        return len(known) + count - 2

    rows: list[dict[int, int]] = []
    constants: list[int] = []
    moduli: list[int] = []
    for equation in system.equations:
        for factor in equation.factors:
            at = place_of(factor)
            rows.append({} if at is None else {at: 1})
            constants.append(factor if isinstance(factor, int) else 0)
            moduli.append(0)
        row: dict[int, int] = {}
        for coefficient, k, output in equation.terms:
            row[k * outputs + output] = row.get(k * outputs + output, 0) + coefficient
        at = place_of(equation.known)
        if at is not None:
            row[at] = 1
        rows.append(row)
        constants.append(equation.known if isinstance(equation.known, int) else 0)
        moduli.append(equation.modulus)
    parts += [[_picked(count, 0), *listed(np.asarray(array)).stages] for array in known]
    width = max(1, len(parts))
    matrix = [[row.get(place, 0) for place in range(width)] for row in rows]
    stages: Stages = [["fork", *parts]] if parts else [_picked(count, 0)]
    stages.append(["affine", matrix, constants])
    if any(moduli):
        stages.append(["mod", moduli])
    found = [listed(points).stages for points in system.points]
    at_stages = found[0] if len(found) == 1 else [["fork", *found]]
    unknowns = len(system.equations[0].factors)
    return {"size": size, "at": at_stages, "unknowns": unknowns, "rows": stages}


def _picked(count: int, place: int) -> list[Any]:
    """Return the stage that selects one of several numbers."""
    return ["affine", [[int(at == place) for at in range(count)]], [0]]


def rows_of(values: IntArray, system: System) -> IntArray:
    """Return the equations of a candidate, int64[i, equation, unknowns + 1].

    Args:
        values: The layout, int64[point, output].
        system: The candidate.
    """
    size = len(system.points[0])
    given = [values[points] for points in system.points]
    if system.after:
        given = [np.stack([_through(system.after, column) for column in part.T], axis=1) for part in given]
    answer = []
    for equation in system.equations:
        value = np.zeros(size, dtype=np.int64) + equation.known
        for coefficient, k, output in equation.terms:
            value = value + coefficient * given[k][:, output]
        if equation.modulus:
            value = value % equation.modulus
        factors = [np.zeros(size, dtype=np.int64) + factor for factor in equation.factors]
        answer.append(np.stack([*factors, value], axis=1))
    return np.stack(answer, axis=1)


def _through(stages: Stages, values: IntArray) -> IntArray:
    (found, *_), _ = evaluated(stages, [np.ascontiguousarray(values)])
    return found.astype(np.int64)


def numbers(f: IntArray, *candidates: Sequence[tuple[int, int]]) -> Certificate | None:
    """Return a certificate that for no candidate one integer n solves ``factor * n = number`` for all its pairs.

    Like ``none_of``, but for numbers in the candidates instead of f: 24 rows are not a multiple of 64; a width of 32
    bits is neither 8 nor 16 (factor 0, nonzero numbers).

    Example:
        >>> numbers(np.arange(4), [(64, 24)], [(0, 32 - 16)]).check().certificate["claim"]
        'f is none of 2 candidates'
        >>> numbers(np.arange(4), [(8, 24), (1, 3)]) is None
        True
    """
    at = (np.zeros(1, dtype=np.int64),)
    return none_of(f, [System(at, tuple(Equation((), b, (a,)) for a, b in pairs)) for pairs in candidates])
