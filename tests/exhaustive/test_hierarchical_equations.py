"""What docs/hierarchical_equations.md claims, on all small cases: every criterion against all candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, permutations, product

import numpy as np
import pytest

from layoutalg.f2 import LinearLayout, solve, solve_outer
from layoutalg.ground.errors import AdmissibilityError
from layoutalg.hierarchy import (
    Box,
    DigitMap,
    Guard,
    HierarchicalLayout,
    crossing_ranks,
    hierarchy,
    preserves_blocks,
    reindex,
    solve_conversion,
)

Permutation = tuple[int, ...]
Graph = frozenset[tuple[int, int]]
Move = Callable[[Permutation], Permutation]


def after(outer: Permutation, inner: Permutation) -> Permutation:
    return tuple([outer[value] for value in inner])


def back(given: Permutation) -> Permutation:
    return tuple(sorted(range(len(given)), key=lambda k: given[k]))


def cycles(given: Permutation) -> Counter[int]:
    """How many cycles of each length."""
    seen: set[int] = set()
    found: Counter[int] = Counter()
    for start in range(len(given)):
        length = 0
        while start not in seen:
            seen.add(start)
            start, length = given[start], length + 1
        found[length] += bool(length)
    return +found


def keeping(blocks: int, size: int) -> list[Permutation]:
    """The wreath product: all permutations that map every block onto a block."""
    inner = list(permutations(range(size)))
    return [
        tuple([size * outer[k] + each[k][x] for k in range(blocks) for x in range(size)])
        for outer in permutations(range(blocks))
        for each in product(inner, repeat=blocks)
    ]


def classes(
    elements: Iterable[Permutation], moves: list[Callable[[Permutation], Permutation]]
) -> dict[Permutation, int]:
    """The orbits under some moves, numbered."""
    number: dict[Permutation, int] = {}
    for start in elements:
        if start in number:
            continue
        number[start], todo = len(number), [start]
        while todo:
            here = todo.pop()
            for move in moves:
                there = move(here)
                if there not in number:
                    number[there] = number[start]
                    todo.append(there)
    return number


def counts(given: Permutation, size: int) -> list[list[int]]:
    """How many points go from block i to block j."""
    blocks = len(given) // size
    found = [[0] * blocks for _ in range(blocks)]
    for x, y in enumerate(given):
        found[x // size][y // size] += 1
    return found


def least(matrix: list[list[int]]) -> tuple[tuple[int, ...], ...]:
    """The matrix up to permutations of rows and of columns, by trying all."""
    order = range(len(matrix))
    return min(
        tuple([tuple([matrix[i][j] for j in columns]) for i in rows])
        for rows in permutations(order)
        for columns in permutations(order)
    )


def graphs(count: int) -> Iterator[Graph]:
    edges = list(combinations(range(count), 2))
    return (frozenset(chosen) for k in range(len(edges) + 1) for chosen in combinations(edges, k))


def shape(graph: Graph, count: int) -> tuple[tuple[int, int], ...]:
    """The graph up to isomorphism, by trying all."""
    return min(
        tuple(sorted(tuple(sorted((names[a], names[b]))) for a, b in graph))  # type: ignore[misc]
        for names in permutations(range(count))
    )


def same_partition(first: Iterable[object], second: Iterable[object]) -> bool:
    pairs = set(zip(first, second, strict=True))
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def test_one_unknown_has_one_solution() -> None:
    box = Box.of(x=12)
    maps = [DigitMap(((2, 6), (3, 2), (2, 1))), DigitMap(((3, -4), (4, 1))), DigitMap(((2, 1), (2, (1, 2)), (3, 4)))]
    for one, two in product(maps, repeat=2):
        before, wanted = (HierarchicalLayout(box, box, each) for each in (one, two))
        assert solve_conversion(before, wanted) @ before == wanted
        assert before @ solve_conversion(before.inverse(), wanted.inverse()).inverse() == wanted


def layouts(inputs: str, outputs: str) -> list[LinearLayout]:
    axes = ((inputs, 2),), ((outputs, 2),)
    return [
        LinearLayout(*axes, columns, constant) for columns in product(range(4), repeat=2) for constant in range(0, 4, 3)
    ]


def test_two_sided_equations_over_f2() -> None:
    """A X C = B is solvable exactly where C has an outer and A then an inner solution; all X are tried."""
    unknown = [LinearLayout(x.in_axes, x.out_axes, x.columns, c) for x in layouts("c", "a")[::2] for c in range(4)]
    outers, inners, wanted = layouts("a", "o")[::3], layouts("i", "c")[::3], layouts("i", "o")[::3]
    for A, C in product(outers, inners):
        possible = {(*(A @ X @ C).columns, (A @ X @ C).constant) for X in unknown}
        for B in wanted:
            try:
                X = solve(A, solve_outer(C, B)).particular
            except AdmissibilityError:
                assert (*B.columns, B.constant) not in possible
            else:
                assert A @ X @ C == B


def test_count_matrices_are_the_double_cosets() -> None:
    """Y A X = B with X, Y keeping blocks: exactly where the matrices of counts agree up to rows and columns."""
    for blocks, size in ((3, 2), (2, 3)):
        generators = keeping(blocks, size)[:: 5 if blocks == 3 else 7]
        moves = [lambda a, g=g: after(g, a) for g in generators] + [lambda a, g=g: after(a, g) for g in generators]
        number = classes(permutations(range(6)), moves)
        assert same_partition(number.values(), [least(counts(each, size)) for each in number])
        inside = classes(
            permutations(range(6)),
            [
                move
                for g in keeping(blocks, size)
                if all(x // size == y // size for x, y in enumerate(g))
                for move in (lambda a, g=g: after(g, a), lambda a, g=g: after(a, g))
            ],
        )
        assert same_partition(inside.values(), [str(counts(each, size)) for each in inside])


def test_graphs_are_count_matrices() -> None:
    found = list(graphs(4))
    matrices = []
    for graph in found:
        links = [[int((min(i, j), max(i, j)) in graph) for j in range(4)] for i in range(4)]
        for i, row in enumerate(links):
            row[i] = 8 - sum(row)
        matrices.append(links)
    assert same_partition([shape(graph, 4) for graph in found], [least(matrix) for matrix in matrices])


def test_graphs_are_conjugate_involutions() -> None:
    found, group = list(graphs(3)), keeping(3, 2)
    darts = []
    for graph in found:
        free = {vertex: iter((2 * vertex, 2 * vertex + 1)) for vertex in range(3)}
        values = list(range(6))
        for a, b in sorted(graph):
            one, two = next(free[a]), next(free[b])
            values[one], values[two] = two, one
        darts.append(tuple(values))
    orbits = [min(after(after(x, each), back(x)) for x in group) for each in darts]
    assert same_partition([shape(graph, 3) for graph in found], orbits)


def test_conjugation_is_the_cycle_type() -> None:
    every = list(permutations(range(5)))
    number = classes(every, [lambda a, g=g: after(after(g, a), back(g)) for g in every[1::7]])
    assert same_partition(number.values(), [str(sorted(cycles(each).items())) for each in number])


def product_type(given: Permutation, size: int) -> tuple[object, ...]:
    """Per cycle of blocks its length and the cycle type of once around, seen from a block on it."""
    found, seen = [], set[int]()
    for block in range(len(given) // size):
        if block in seen:
            continue
        length, around, here = 0, list(range(size * block, size * block + size)), block
        while here not in seen:
            seen.add(here)
            around = [given[x] for x in around]
            here, length = around[0] // size, length + 1
        found.append((length, tuple(sorted(cycles(tuple([x - size * block for x in around])).items()))))
    return tuple(sorted(found))


@pytest.mark.parametrize(("blocks", "size"), [(3, 2), (2, 3)])
def test_conjugation_inside_a_wreath_product_is_the_type_of_the_cycle_products(blocks: int, size: int) -> None:
    group = keeping(blocks, size)
    number = classes(group, [lambda a, g=g: after(after(g, a), back(g)) for g in group])
    assert same_partition(number.values(), [product_type(each, size) for each in number])


def test_roots_of_permutations() -> None:
    every = list(permutations(range(6)))
    squares = {after(each, each) for each in every}
    for each in every:
        assert (each in squares) == all(count % 2 == 0 for length, count in cycles(each).items() if length % 2 == 0)


def signed_type(places: Permutation, signs: tuple[int, ...]) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    seen: set[int] = set()
    for start in range(len(places)):
        length, sign, here = 0, 0, start
        while here not in seen:
            seen.add(here)
            sign ^= signs[here]
            here, length = places[here], length + 1
        found[length, sign] += bool(length)
    return +found


@pytest.mark.parametrize("count", [2, 3, 4])
def test_roots_of_digit_maps(count: int) -> None:
    """Digits of one extent: reversed cycles, and cycles of even length, come in pairs."""
    every = [(p, s) for p in permutations(range(count)) for s in product(range(2), repeat=count)]
    squares = {(after(p, p), tuple([s[k] ^ s[p[k]] for k in range(count)])) for p, s in every}
    for p, s in every:
        paired = [number % 2 == 0 for (length, sign), number in signed_type(p, s).items() if sign or length % 2 == 0]
        assert ((p, s) in squares) == all(paired)


def test_colourings_are_systems_over_three_points() -> None:
    group = list(permutations(range(3)))
    swap, turn = (1, 0, 2), (1, 2, 0)
    swaps = {after(after(y, swap), back(y)) for y in group}
    turns = {after(after(z, turn), back(z)) for z in group}
    for graph in graphs(4):
        solvable = any(
            all(x in swaps for x in chosen) and all(after(chosen[a], chosen[b]) in turns for a, b in graph)
            for chosen in product(group, repeat=4)
        )
        colourable = any(all(c[a] != c[b] for a, b in graph) for c in product(range(3), repeat=4))
        assert solvable == colourable


def test_a_transposition_of_a_box_is_an_involution_only_where_it_is_square() -> None:
    for q, r in product(range(2, 12), repeat=2):
        turned = HierarchicalLayout(Box.of(x=q * r), Box.of(x=q * r), DigitMap(((q, r), (r, 1))))
        assert (turned @ turned).is_identity == (q == r)


def clause(literals: tuple[int, int, int]) -> Guard:
    """Not all three of three bits differ from these values."""
    modes = tuple([(2, -(1 << k) if value else 1 << k) for k, value in enumerate(literals)])
    return Guard(DigitMap(modes), Box.of(clause=8), (7,))


def test_guards_are_clauses() -> None:
    box = Box.of(x=8)
    every = list(product(range(2), repeat=3))
    for chosen in (*combinations(every, 3), every, every[1:]):
        layout = HierarchicalLayout(box, box, DigitMap(((8, 1),)), tuple([clause(each) for each in chosen]))
        points = [all(any((x >> k & 1) == each[k] for k in range(3)) for each in chosen) for x in range(8)]
        assert layout.active() == sum(points)
        assert [value >= 0 for value in layout.table().tolist()] == points


def test_block_keeping_is_decided_as_by_all_points() -> None:
    box = hierarchy(lane=3, register=2)
    for given in permutations(range(6)):
        kept = all(len({given[2 * k] // 2, given[2 * k + 1] // 2}) == 1 for k in range(3))
        assert bool(preserves_blocks(reindex(box, given), "register|lane")) == kept


def times(A: Permutation, B: Permutation) -> Permutation:
    """The product of two matrices over F2 by their columns."""
    return tuple([int(np.bitwise_xor.reduce([A[k] for k in range(len(A)) if b >> k & 1] or [0])) for b in B])


REGULAR = [A for A in product(range(1, 8), repeat=3) if A[0] ^ A[1] and A[2] not in (A[0], A[1], A[0] ^ A[1])]


def test_corners_decide_inside_blocks_over_f2() -> None:
    """Y A X = B with X, Y moving points inside blocks only, one or two bits inside."""

    def span(vectors: Iterable[int]) -> frozenset[int]:
        found = {0}
        for each in vectors:
            found |= {each ^ other for other in found}
        return frozenset(found)

    for inside in (1, 2):
        same = [A for A in REGULAR if all(A[k] >> inside == (1 << k) >> inside for k in range(3))]
        moves = [lambda a, g=g: times(g, a) for g in same] + [lambda a, g=g: times(a, g) for g in same]
        number = classes(REGULAR, moves)
        corners = []
        for A in number:
            image = span(column >> inside for column in A[:inside])
            corners.append((image, tuple([min(column >> inside ^ each for each in image) for column in A[inside:]])))
        assert same_partition(number.values(), corners)


def test_ranks_are_the_double_cosets_over_f2() -> None:
    """All invertible 3 by 3 matrices, levels of one bit and of two: equal ranks, and no others, meet."""
    for levels in ((1, 1, 1), (1, 2), (2, 1)):
        ends = [sum(levels[: k + 1]) for k in range(len(levels))]
        keep = [A for A in REGULAR if all(A[column] >> end == 0 for end in ends for column in range(end))]
        moves = [lambda a, g=g: times(g, a) for g in keep] + [lambda a, g=g: times(a, g) for g in keep]
        number = classes(REGULAR, moves)
        assert same_partition(number.values(), [crossing_ranks(DigitMap.from_bits(A), levels) for A in number])
