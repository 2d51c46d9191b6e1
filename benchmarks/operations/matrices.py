"""Integer matrices: normal forms, solutions over Z and modulo numbers, lattices. Judged by multiplying and counting."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise

from layoutalg import integer
from layoutalg.integer import Lattice
from operations.record import draws, expect, operation

Matrix = list[list[int]]


@dataclass(frozen=True)
class System:
    """A matrix, a right side and moduli."""

    rows: Matrix
    right: list[int]
    moduli: list[int]

    @property
    def layout(self) -> str:
        return f"{self.rows} x = {self.right} mod {self.moduli}"


@draws("matrix")
def draw(rng: random.Random) -> System:
    height, width = rng.randint(1, 4), rng.randint(1, 4)
    spread = rng.choice((1, 3, 9))
    rows = [[rng.randint(-spread, spread) for _ in range(width)] for _ in range(height)]
    if height > 1 and rng.random() < 0.3:
        rows[-1] = [2 * a for a in rows[0]]
    right = [rng.randint(-9, 9) for _ in rows]
    if rng.random() < 0.5:
        point = [rng.randint(-3, 3) for _ in range(width)]
        right = times(rows, point)
    modulus = rng.choice((2, 3, 4, 6))
    return System(
        rows, right, [modulus] * height if rng.random() < 0.5 else [rng.choice((0, 2, 3, 4, 6)) for _ in rows]
    )


def times(rows: Matrix, vector: list[int]) -> list[int]:
    return [sum(a * x for a, x in zip(row, vector, strict=True)) for row in rows]


def multiplied(left: Matrix, right: Matrix) -> Matrix:
    return [
        [sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*right, strict=True)] for row in left
    ]


def determinant(rows: Matrix) -> int:
    if not rows:
        return 1
    first = rows[0]
    return sum(
        (-1) ** k * a * determinant([row[:k] + row[k + 1 :] for row in rows[1:]]) for k, a in enumerate(first) if a
    )


def lists(matrix: object) -> Matrix:
    return [list(row) for row in matrix]  # type: ignore[attr-defined]


@operation("matrix", weight=2)
def hermite(one: System, rng: random.Random) -> None:
    found = integer.hnf(one.rows)
    H, U = lists(found.H), lists(found.U)
    expect(multiplied(U, one.rows) == H and abs(determinant(U)) == 1, f"hnf({one.rows}) = {found}")
    pivots = [next((k for k, a in enumerate(row) if a), None) for row in H]
    used = [p for p in pivots if p is not None]
    expect(used == sorted(set(used)) and pivots[: len(used)] == used, f"hnf({one.rows}) is no echelon form: {H}")
    for place, pivot in enumerate(used):
        expect(H[place][pivot] > 0, f"hnf({one.rows}): {H}")
        expect(all(0 <= H[above][pivot] < H[place][pivot] for above in range(place)), f"hnf({one.rows}): {H}")
    expect(found.rank == len(used), f"the rank of {H}")


@operation("matrix", weight=2)
def smith(one: System, rng: random.Random) -> None:
    found = integer.snf(one.rows)
    D, U, V = lists(found.D), lists(found.U), lists(found.V)
    expect(multiplied(multiplied(U, one.rows), V) == D, f"snf({one.rows})")
    expect(abs(determinant(U)) == 1 == abs(determinant(V)), f"snf({one.rows}): not unimodular")
    expect(all(a == 0 for i, row in enumerate(D) for j, a in enumerate(row) if i != j), f"snf({one.rows}): {D}")
    diagonal = [D[k][k] for k in range(min(len(D), len(D[0])))]
    expect(all(a >= 0 for a in diagonal), f"snf({one.rows}): {D}")
    expect(all(b % a == 0 if a else b == 0 for a, b in pairwise(diagonal)), f"{D}")
    expect(list(found.invariants) == [a for a in diagonal if a] and found.rank == len(found.invariants), "invariants")
    size = min(len(one.rows), len(one.rows[0]))
    square = [row[:size] for row in one.rows[:size]]
    expect(integer.is_unimodular(square) == (abs(determinant(square)) == 1), f"is_unimodular({square})")


@operation("matrix", weight=2)
def kernel(one: System, rng: random.Random) -> None:
    basis = lists(integer.kernel(one.rows))
    expect(all(not any(times(one.rows, row)) for row in basis), f"kernel({one.rows}) = {basis}")
    width = len(one.rows[0])
    lattice = Lattice.spanned_by(basis, width)
    expect(lists(lattice.basis) == basis, f"kernel({one.rows}) = {basis} is not canonical")
    for _ in range(4):
        vector = [rng.randint(-3, 3) for _ in range(width)]
        expect((vector in lattice) == (not any(times(one.rows, vector))), f"{vector} and kernel({one.rows})")


@operation("matrix", weight=2)
def solve(one: System, rng: random.Random) -> None:
    found = integer.solve(one.rows, one.right)
    if isinstance(found, integer.NoSolution):
        refutes(found, one, [0] * len(one.rows))
        return
    expect(times(one.rows, list(found.particular)) == one.right, f"solve: {one.layout} gave {found}")
    expect(lists(found.basis) == lists(integer.kernel(one.rows)), f"solve: {one.layout} gave the basis {found.basis}")


def refutes(found: object, one: System, moduli: list[int]) -> None:
    """row A = 0 and row b = value != 0, modulo the modulus, each row read modulo its own."""
    row, modulus, value = list(found.row), found.modulus, found.value  # type: ignore[attr-defined]
    columns = [sum(r * a for r, a in zip(row, column, strict=True)) for column in zip(*one.rows, strict=True)]
    total = sum(r * b for r, b in zip(row, one.right, strict=True))
    zero = [c % modulus if modulus else c for c in columns]
    kept = all((r * m) % modulus == 0 if modulus else r * m == 0 for r, m in zip(row, moduli, strict=True))
    off = (total - value) % modulus if modulus else total - value
    expect(not any(zero) and not off and kept, f"{one.layout}: {found} proves nothing")
    expect(value % modulus if modulus else value, f"{one.layout}: {found} proves nothing")


@operation("matrix", weight=2)
def solve_mod(one: System, rng: random.Random) -> None:
    found = integer.solve_mod(one.rows, one.right, one.moduli)
    if isinstance(found, integer.NoSolution):
        refutes(found, one, one.moduli)
    else:
        off = [a - b for a, b in zip(times(one.rows, list(found.particular)), one.right, strict=True)]
        expect(not any(v % m if m else v for v, m in zip(off, one.moduli, strict=True)), f"{one.layout} gave {found}")


@operation("matrix", weight=2)
def lattice(one: System, rng: random.Random) -> None:
    """Members by a small search, reduce, index."""
    width = len(one.rows[0])
    found = Lattice.spanned_by(one.rows)
    expect(all(row in found for row in one.rows), f"{found} misses a generator of {one.rows}")
    mix = [rng.randint(-2, 2) for _ in one.rows]
    member = [sum(c * row[k] for c, row in zip(mix, one.rows, strict=True)) for k in range(width)]
    expect(not any(found.reduce(member)), f"{found}.reduce({member})")
    vector = [rng.randint(-5, 5) for _ in range(width)]
    rest = found.reduce(vector)
    moved = [a + b for a, b in zip(vector, member, strict=True)]
    expect(found.reduce(moved) == rest, f"{found}.reduce is not constant on cosets")
    expect([a - b for a, b in zip(vector, rest, strict=True)] in found, f"{found}.reduce({vector}) = {rest}")
    expect(found.rank == len(found.basis), "rank")
    square = lists(found.basis)
    expect(found.index == (abs(determinant(square)) if len(square) == width else 0), f"index of {found}")
