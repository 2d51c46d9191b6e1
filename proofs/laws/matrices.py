"""Integer matrices, lattices and linear equations: normal forms are canonical, equations are solved completely."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, permutations, product
from typing import Any

from layoutalg.integer.lattice import (
    Lattice,
    NoSolution,
    Solution,
    _is_hermite,
    kernel,
    reduce,
    solve,
    solve_mod,
)
from layoutalg.integer.matrix import (
    Hermite,
    Matrix,
    Smith,
    Vector,
    _subtracted,
    apply,
    bezout,
    determinant,
    hermite_basis,
    hnf,
    identity,
    multiply,
    snf,
    transpose,
)
from layoutalg.integer.matrix import is_unimodular as unimodular
from layoutalg.proofs.laws.engines import enumerated, integers, polynomials
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.trial import Trial

_UNITS = tuple(((a, b), (c, d)) for a, b, c, d in product((-1, 0, 1, 2), repeat=4) if a * d - b * c in (1, -1))


def matrices(rows: int, columns: int, least: int, most: int) -> Iterator[Matrix]:
    """All matrices of a size with entries in a range."""
    for entries in product(range(least, most + 1), repeat=rows * columns):
        yield tuple([entries[k * columns : (k + 1) * columns] for k in range(rows)])


def leibniz(A: Any) -> Any:
    """Return the determinant as the sum over all permutations."""
    total: Any = 0
    for order in permutations(range(len(A))):
        sign = (-1) ** sum(a > b for a, b in combinations(order, 2))
        total = total + sign * math.prod([A[k][place] for k, place in enumerate(order)])
    return total


def _symbols(trial: Trial, name: str, rows: int, columns: int) -> Any:
    return tuple([tuple([trial.integer(f"{name}{i}{j}") for j in range(columns)]) for i in range(rows)])


def _equal(trial: Trial, left: Any, right: Any, what: str) -> None:
    trial.claim(len(left) == len(right), what)
    for one, other in zip(left, right, strict=True):
        for a, b in zip(one, other, strict=True):
            trial.claim(a == b, what)


def _wrong_multiply(A: Matrix, B: Matrix) -> Matrix:
    """Multiply by the transpose."""
    return multiply(A, transpose(B))


def _ring(trial: Trial, multiply: Callable[[Any, Any], Any] = multiply) -> None:
    A, B, C = [_symbols(trial, name, 3, 3) for name in "ABC"]
    x = tuple([trial.integer(f"x{k}") for k in range(3)])
    _equal(trial, multiply(multiply(A, B), C), multiply(A, multiply(B, C)), "(A B) C = A (B C)")
    _equal(trial, [apply(multiply(A, B), x)], [apply(A, apply(B, x))], "(A B) x = A (B x)")
    _equal(trial, transpose(multiply(A, B)), multiply(transpose(B), transpose(A)), "(A B)^T = B^T A^T")
    _equal(trial, multiply(identity(3), A), A, "I A = A")


def _wrong_subtracted(row: Any, q: Any, base: Any) -> Any:
    """Leave the last entry as it is."""
    return [*_subtracted(row, q, base)[:-1], row[-1]]


def _operation(trial: Trial, subtracted: Callable[..., Any] = _subtracted) -> None:
    A, q = _symbols(trial, "A", 2, 2), trial.integer("q")
    changed = (tuple(subtracted(list(A[0]), q, list(A[1]))), *A[1:])
    for entry, a, b in zip(changed[0], A[0], A[1], strict=True):
        trial.claim(entry == a - q * b, "row - q base")
    trial.claim(leibniz(changed) == leibniz(A), "the determinant stays")


def _pairs() -> Iterator[tuple[int, int]]:
    yield from product(range(1, 61), repeat=2)


def _wrong_bezout(a: int, b: int) -> tuple[int, int, int]:
    """Forget to divide by the greatest common divisor before inverting."""
    return math.gcd(a, b), a % b, 1


def _combined(case: tuple[int, int], bezout: Callable[[int, int], tuple[int, int, int]] = bezout) -> str | None:
    (a, b), (g, x, y) = case, bezout(*case)
    return None if g == math.gcd(a, b) == x * a + y * b else "not the greatest common divisor"


def _several() -> Iterator[Matrix]:
    yield from matrices(2, 2, -3, 3)
    yield from matrices(2, 3, -1, 1)
    yield from matrices(3, 2, -1, 1)


def _rows_only(A: Matrix) -> Hermite:
    """Leave what is above the pivots."""
    found = hnf(A)
    if found.rank < 2 or len(found.H) != 2:
        return found
    add = ((1, 1), (0, 1))
    return Hermite(multiply(add, found.H), multiply(add, found.U))


def _hermite(A: Matrix, hnf: Callable[[Matrix], Hermite] = hnf) -> str | None:
    H, U = found = hnf(A)
    rank = found.rank
    if multiply(U, A) != H or abs(leibniz(U)) != 1:
        return "U A = H with U unimodular fails"
    if not _is_hermite(H[:rank]) or any(map(any, H[rank:])):
        return "this is no Hermite form"
    if hermite_basis(A, len(A[0])) != H[:rank]:
        return "the basis is another"
    turns = _UNITS[::5] if len(A) == 2 else ()
    return None if all(hnf(multiply(V, A)).H == H for V in turns) else "the same rows give another form"


def _unordered(A: Matrix) -> Smith:
    """Leave the diagonal in any order."""
    found = snf(A)
    if len(A) != 2 or len(A[0]) != 2:
        return found
    turn = ((0, 1), (1, 0))
    return Smith(multiply(multiply(turn, found.D), turn), multiply(turn, found.U), multiply(found.V, turn))


def _minors(A: Matrix, size: int) -> int:
    """Return the greatest common divisor of the minors of a size."""
    rows, columns = combinations(range(len(A)), size), list(combinations(range(len(A[0])), size))
    return math.gcd(*[leibniz([[A[i][j] for j in across] for i in down]) for down in rows for across in columns])


def _smith(A: Matrix, snf: Callable[[Matrix], Smith] = snf) -> str | None:
    D, U, V = found = snf(A)
    if multiply(multiply(U, A), V) != D or abs(leibniz(U)) != 1 or abs(leibniz(V)) != 1:
        return "U A V = D with U and V unimodular fails"
    if any(entry for i, row in enumerate(D) for j, entry in enumerate(row) if i != j):
        return "this is not diagonal"
    for size in range(1, min(len(A), len(A[0])) + 1):
        if math.prod([D[k][k] for k in range(size)]) != _minors(A, size):
            return "the product of the first entries is not the common divisor of the minors"
    return None if found.rank == hnf(A).rank else "another rank"


def _wrong_determinant(A: Matrix) -> int:
    """Forget the sign of a swap."""
    return abs(determinant(A)) if not A[0][0] else determinant(A)


def _expanded(A: Matrix, determinant: Callable[[Matrix], int] = determinant) -> str | None:
    value = determinant(A)
    return None if value == leibniz(A) and unimodular(A) == (abs(value) == 1) else "another determinant"


System = tuple[Matrix, Vector]
_BOX = tuple(product(range(-4, 5), repeat=2))


def _systems() -> Iterator[System]:
    for A in matrices(2, 2, -2, 2):
        for b in ((0, 0), (1, 2), (2, -2), (4, 2), (-3, 1)):
            yield A, b


def _wrong_solve(A: Matrix, b: Vector) -> Solution | NoSolution:
    """Forget the solutions of the homogeneous system."""
    found = solve(A, b)
    return found if isinstance(found, NoSolution) else Solution(found.particular, ())


def _solved(case: System, solve: Callable[[Matrix, Vector], Solution | NoSolution] = solve) -> str | None:
    (A, b), found = case, solve(*case)
    points = {x for x in _BOX if apply(A, x) == b}
    if isinstance(found, NoSolution):
        mixed = apply(transpose(A), found.row)
        value = sum([r * v for r, v in zip(found.row, b, strict=True)])
        m = found.modulus
        shown = not any(a % m if m else a for a in mixed) and (value % m if m else value) == found.value != 0
        return None if shown and not points else "the proof that there is none does not hold"
    if kernel(A) != found.basis:
        return "the kernel is another lattice"
    mine = {x for x in _BOX if not any(reduce([p - q for p, q in zip(x, found.particular, strict=True)], found.basis))}
    return None if mine == points and apply(A, found.particular) == b else "other solutions"


Modular = tuple[Matrix, Vector, int]


def _modular() -> Iterator[Modular]:
    for m in (2, 4, 6):
        for row in product(range(3), repeat=2):
            for other in product(range(2), repeat=2):
                for b in product(range(2), repeat=2):
                    yield (row, other), b, m


def _wrong_solve_mod(A: Matrix, b: Vector, m: int) -> Solution | NoSolution:
    """Read the second equation over the integers."""
    return solve_mod(A, b, (m, 0))


def _residues(case: Modular, solve_mod: Callable[..., Solution | NoSolution] = solve_mod) -> str | None:
    A, b, m = case
    found = solve_mod(A, b, m)
    points = {
        x for x in product(range(m), repeat=2) if all((v - w) % m == 0 for v, w in zip(apply(A, x), b, strict=True))
    }
    if isinstance(found, NoSolution):
        return "no solution" if points else None
    gaps = {x: [p - q for p, q in zip(x, found.particular, strict=True)] for x in product(range(m), repeat=2)}
    return None if {x for x, gap in gaps.items() if not any(reduce(gap, found.basis))} == points else "others"


def _lattices() -> Iterator[tuple[Lattice, Lattice]]:
    found = {Lattice.spanned_by(A) for A in matrices(2, 2, 0, 3)} | {Lattice.spanned_by([(2, -1)])}
    yield from product(sorted(found, key=lambda lattice: lattice.basis)[::3], repeat=2)


_PLACES = tuple(product(range(-2, 4), repeat=2))


def _points(lattice: Lattice) -> frozenset[Vector]:
    """Points of a box, found by going through combinations of the basis."""
    steps = product(range(-9, 10), repeat=lattice.rank)
    points = {
        tuple([sum([c * row[k] for c, row in zip(factors, lattice.basis, strict=True)]) for k in (0, 1)])
        for factors in steps
    }
    return frozenset([point for point in points if min(point) >= -2 and max(point) <= 3])


def _wrong_member(lattice: Lattice, vector: Vector) -> bool:
    """Ask for the basis itself."""
    return vector in lattice.basis


def _members(
    case: tuple[Lattice, Lattice], contains: Callable[[Lattice, Vector], bool] = Lattice.__contains__
) -> str | None:
    first, second = case
    if {x for x in _PLACES if contains(first, x)} != _points(first):
        return "membership is wrong"
    if (first == second) != (_points(first) == _points(second)):
        return "equality is wrong"
    representatives = {first.reduce(x) for x in _PLACES}
    if {first.reduce(x) for x in representatives} != representatives or 0 < first.index < len(representatives):
        return "the representatives are wrong"
    return None


_FORMS = "2 x 2 matrices with entries -3..3, 2 x 3 and 3 x 2 with entries -1..1"
_WHY = "eliminations take as many steps as the quotients say, so they end on numbers only"

LAWS = (
    Law(
        "matrices.ring",
        "(A B) C = A (B C), (A B) x = A (B x), (A B)^T = B^T A^T, I A = A.",
        tuple(f"layoutalg.integer.matrix.{name}" for name in ("multiply", "apply", "transpose", "identity")),
        polynomials(_ring, partial(_ring, multiply=_wrong_multiply), "all integer matrices; 3 x 3"),
    ),
    Law(
        "matrices.row_operation",
        "a row less q times another is what elimination writes, and the determinant stays.",
        ("layoutalg.integer.matrix._subtracted",),
        integers(_operation, partial(_operation, subtracted=_wrong_subtracted), "all integer matrices; 2 x 2"),
    ),
    Law(
        "matrices.bezout",
        "bezout(a, b) = (g, x, y) with g = gcd(a, b) = x a + y b.",
        ("layoutalg.integer.matrix.bezout",),
        enumerated(_pairs, _combined, partial(_combined, bezout=_wrong_bezout), "a, b = 1..60", 3600),
        _WHY,
    ),
    Law(
        "matrices.hermite",
        "U A = H, U unimodular, H in Hermite form, and hnf(V A) = H for unimodular V: H is canonical for the rows.",
        ("layoutalg.integer.matrix.hnf", "layoutalg.integer.matrix.hermite_basis"),
        enumerated(_several, _hermite, partial(_hermite, hnf=_rows_only), _FORMS, 3859),
        _WHY,
    ),
    Law(
        "matrices.smith",
        "U A V = D, U and V unimodular, D diagonal, and d_1 ... d_k is the common divisor of the k x k minors.",
        ("layoutalg.integer.matrix.snf",),
        enumerated(_several, _smith, partial(_smith, snf=_unordered), _FORMS, 3859),
        _WHY,
    ),
    Law(
        "matrices.determinant",
        "fraction-free elimination gives the sum over all permutations, and is_unimodular says whether it is 1 or -1.",
        ("layoutalg.integer.matrix.determinant", "layoutalg.integer.matrix.is_unimodular"),
        enumerated(
            partial(matrices, 3, 3, -1, 1),
            _expanded,
            partial(_expanded, determinant=_wrong_determinant),
            "all 3 x 3 matrices with entries -1..1",
            19683,
        ),
        _WHY,
    ),
    Law(
        "equations.solutions",
        "solve(A, b) is exactly the set of integer solutions of A x = b, or a combination of rows that has none.",
        tuple(f"layoutalg.integer.lattice.{name}" for name in ("solve", "kernel", "reduce")),
        enumerated(
            _systems,
            _solved,
            partial(_solved, solve=_wrong_solve),
            "2 x 2 systems with entries -2..2 and 5 right sides, solutions in -4..4",
            3125,
        ),
        _WHY,
    ),
    Law(
        "equations.residues",
        "solve_mod(A, b, m) is exactly the set of solutions modulo m.",
        ("layoutalg.integer.lattice.solve_mod",),
        enumerated(
            _modular, _residues, partial(_residues, solve_mod=_wrong_solve_mod), "2 x 2 systems modulo 2, 4 and 6", 432
        ),
        _WHY,
    ),
    Law(
        "lattices.sets",
        "membership, equality and representatives of lattices are those of sets.",
        tuple(f"layoutalg.integer.lattice.Lattice.{name}" for name in ("spanned_by", "reduce", "__contains__")),
        enumerated(
            _lattices,
            _members,
            partial(_members, contains=_wrong_member),
            "pairs of 16 lattices in Z^2 spanned by vectors with entries 0..3, points in -2..3",
            256,
        ),
        _WHY,
    ),
)
