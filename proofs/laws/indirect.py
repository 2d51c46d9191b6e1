"""Runtime indices: tiles of groups, permutations, page tables. The index arrays are any functions with their axioms.

Implementation notes: an array is an uninterpreted function by Ackermann's reduction: a new integer for each argument,
equal where arguments are; axioms are assumed at the arguments that occur, which is weaker than everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from layoutalg.proofs.laws.law import INTEGERS, Law, stated
from layoutalg.proofs.laws.term import Condition, every, implies
from layoutalg.proofs.laws.trial import Trial

LAWS: list[Law] = []
law = partial(stated, LAWS)
Axiom = Callable[[Any, Any, Any, Any], Condition]


class Array:
    """Any function from integers to integers, with axioms on pairs (i, v(i)), (j, v(j))."""

    def __init__(self, trial: Trial, name: str, *axioms: Axiom) -> None:
        self.trial, self.name, self.axioms = trial, name, axioms
        self.seen: list[tuple[Any, Any]] = []

    def __call__(self, index: Any) -> Any:
        value = self.trial.integer(f"{self.name}{len(self.seen)}")
        for other, known in self.seen:
            self.trial.assume(implies(index == other, value == known))
            for axiom in self.axioms:
                self.trial.assume(axiom(index, value, other, known), axiom(other, known, index, value))
        self.seen.append((index, value))
        return value


def _monotone(i: Any, v: Any, j: Any, w: Any) -> Condition:
    return implies(i <= j, v <= w)


def _injective(i: Any, v: Any, j: Any, w: Any) -> Condition:
    return implies(v == w, i == j)


def _row(trial: Trial, offsets: Array, tile: Any, name: str) -> tuple[Any, Any, Any, Any]:
    """Any row of any tile of any group: its number, group, tile and place in the tile."""
    group, number, place = trial.integer(f"{name}g"), trial.integer(f"{name}k"), trial.digit(f"{name}j", tile)
    start, end = offsets(group), offsets(group + 1)
    row = start + tile * number + place
    trial.assume(number >= 0, row < end)
    return row, group, number, place


@law("routed.disjoint", INTEGERS, "any monotone offsets, any tile height")
def _disjoint(trial: Trial) -> None:
    """Rows of different tiles or groups differ: row j of tile k of group g is offsets(g) + k T + j below the end."""
    tile, offsets = trial.extent("T"), Array(trial, "offsets", _monotone)
    one, g, k, i = _row(trial, offsets, tile, "a")
    other, h, m, j = _row(trial, offsets, tile, "b")
    trial.claim(implies(one == other, g == h), "groups do not overlap")
    trial.divides(tile * k + i, tile, k, i)
    trial.divides(tile * m + j, tile, m, j)
    trial.assume(g == h, one == other)
    trial.claim(tile * k + i == tile * m + j, "the same place in the group")
    trial.claim(implies(k < m, tile * k + tile <= tile * m), "a later tile begins behind the earlier one")
    trial.claim(implies(m < k, tile * m + tile <= tile * k), "an earlier tile ends before the later one")
    trial.claim(every(k == m, i == j), "the same tile and row")


@law("routed.cover", INTEGERS, "any monotone offsets, any tile height")
def _cover(trial: Trial) -> None:
    """Row r of a group is row (r - offsets(g)) mod T of its tile (r - offsets(g)) div T, which begins in the group."""
    tile, offsets = trial.extent("T"), Array(trial, "offsets", _monotone)
    group, number, place = trial.integer("g"), trial.integer("k"), trial.digit("j", tile)
    start, end = offsets(group), offsets(group + 1)
    row = start + tile * number + place
    trial.assume(start <= row, row < end)
    trial.divides(row - start, tile, number, place)
    trial.claim((row - start) // tile == number, "the tile")
    trial.claim(every(number * tile >= 0, start + number * tile < end), "it begins in the group")


@law("permutation.inverse", INTEGERS, "any permutation, any values")
def _inverse(trial: Trial) -> None:
    """Gathering by pi and then scattering by pi gives the values back; so does gathering by the inverse."""
    j = trial.integer("j")
    inverse = Array(trial, "inverse")
    i = inverse(j)
    pi = Array(trial, "pi", _injective)
    trial.assume(pi(i) == j)
    x = Array(trial, "x")
    gathered = Array(trial, "y")
    trial.assume(gathered(i) == x(pi(i)))
    trial.claim(gathered(inverse(j)) == x(j), "y(inverse(j)) = x(j)")


@law("paged.injective", INTEGERS, "any injective page table, any page stride of at least a page")
def _paged(trial: Trial) -> None:
    """Where the table is injective and pages do not overlap, equal bytes are the same entry and byte of the page."""
    stride, table = trial.extent("S"), Array(trial, "table", _injective)
    p, a, q, b = trial.integer("p"), trial.digit("a", stride), trial.integer("q"), trial.digit("b", stride)
    one, other = table(p), table(q)
    trial.claim(implies(one < other, stride * one + stride <= stride * other), "the later page is behind")
    trial.claim(implies(other < one, stride * other + stride <= stride * one), "the earlier page is before")
    trial.claim(implies(stride * one + a == stride * other + b, every(p == q, a == b)), "the same entry and byte")


@law("runs.bytes", INTEGERS, "any row size, any run with step 1")
def _runs(trial: Trial) -> None:
    """A run of rows v(i + j) = v(i) + j is one run of bytes: byte x of it is byte x mod R of row x div R."""
    size, i, length = trial.extent("R"), trial.integer("i"), trial.extent("n")
    first = trial.integer("v")
    row, inside = trial.digit("j", length), trial.digit("x", size)
    trial.divides(size * row + inside, size, row, inside)
    byte = size * row + inside
    trial.claim(size * first + byte == size * (first + byte // size) + byte % size, "the byte of the source")
    trial.claim(size * i + byte == size * (i + row) + inside, "the byte of the destination")
