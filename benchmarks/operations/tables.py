"""The arithmetic of the judges: strided, swizzled and xor tables, what is strided, what tiles a range.

Notation: a table lists the value at every flat coordinate, first mode fastest. Nothing here calls the library; ``read``
looks at the fields of its values alone.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import cache
from typing import Any

Tree = Any


def leaves(tree: Tree) -> list[Any]:
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else [tree]


def size_of(tree: Tree) -> int:
    return math.prod(leaves(tree))


def depth_of(tree: Tree) -> int:
    return 1 + max((depth_of(part) for part in tree), default=0) if isinstance(tree, tuple) else 0


def like(tree: Tree, flat: Sequence[Any]) -> Tree:
    """The entries of a flat sequence nested like a tree."""
    rest = iter(flat)

    def build(part: Tree) -> Tree:
        return tuple(build(sub) for sub in part) if isinstance(part, tuple) else next(rest)

    return build(tree)


def parts(tree: Tree) -> tuple[Tree, ...]:
    """The top-level modes."""
    return tree if isinstance(tree, tuple) else (tree,)


def values(shape: Tree, stride: Tree) -> list[int]:
    """The table of strides over a box."""
    table = [0]
    for extent, step in zip(leaves(shape), leaves(stride), strict=True):
        table = [value + step * digit for digit in range(extent) for value in table]
    return table


def swizzled(value: int, bits: int, base: int, shift: int) -> int:
    """Bit base + k is xored with bit base + shift + k, for the bits read; a negative shift reads the low ones."""
    low, high = base, base + abs(shift)
    source, target = (high, low) if shift > 0 else (low, high)
    found = value
    for place in range(bits):
        if shift:
            found ^= (value >> (source + place) & 1) << (target + place)
    return found


def read(layout: Any) -> list[int]:
    """The table of a CuTe layout, or of stages over one, from its fields."""
    kind = type(layout).__name__
    if kind == "ComposedLayout":
        outer = layout.outer
        fields = (outer.bits, outer.base, outer.shift)
        return [swizzled(value + layout.offset, *fields) for value in read(layout.inner)]
    if kind != "CuteLayout":
        raise TypeError(f"not a layout of strides: {kind}")
    return values(layout.shape, layout.stride)


def bottom(layout: Any) -> Any:
    while type(layout).__name__ == "ComposedLayout":
        layout = layout.inner
    return layout


@cache
def primes(number: int) -> tuple[int, ...]:
    return tuple(p for p in range(2, number + 1) if number % p == 0 and all(p % q for q in range(2, p)))


def is_strided(table: Sequence[int]) -> bool:
    """Whether some box and strides have this table, which starts at 0: every chain of prime extents is followed."""
    size = len(table)
    if size and table[0]:
        return False
    reached, waiting = {1}, [1]
    while waiting:
        weight = waiting.pop()
        if weight == size:
            return True
        for prime in primes(size // weight):
            wide = weight * prime
            if wide in reached:
                continue
            step = table[weight]
            if all(table[i] == table[i % weight] + i // weight * step for i in range(weight, wide)):
                reached.add(wide)
                waiting.append(wide)
    return size == 0


def fits(shape: Tree, table: Sequence[int]) -> bool:
    """Whether strides over some refinement of a shape, leaf by leaf, have this table, which starts at 0."""
    extents = leaves(shape)
    if not table:
        return True
    weight, sums = 1, [0]
    for extent in extents:
        column = [table[weight * digit] for digit in range(extent)]
        if not is_strided(column):
            return False
        sums = [value + step for step in column for value in sums]
        weight *= extent
    return sums == list(table)


def tiling(image: Sequence[int], bound: int) -> tuple[int, list[int]] | None:
    """The least n >= bound and the starts of the copies of a set of numbers (with 0) that fill [0, n) exactly."""
    pattern = sorted(image)
    if pattern[0] or len(set(pattern)) != len(pattern):
        return None
    limit = bound + 2 * pattern[-1] + 2  # a tiling ends at a multiple of its period, which is at most 2 * the greatest
    covered: set[int] = set()
    starts: list[int] = []
    free = 0
    while True:
        while free in covered:
            free += 1
        if free >= bound and len(covered) == free:
            return free, starts
        if free > limit:
            return None
        for value in pattern:
            if value + free in covered:
                return None
            covered.add(value + free)
        starts.append(free)


def unravel(index: int, shape: Tree) -> Tree:
    """The natural coordinate of a flat index."""
    digits = []
    for extent in leaves(shape):
        index, digit = divmod(index, extent) if extent else (index, 0)
        digits.append(digit)
    return like(shape, digits)


def ravel(coord: Tree, shape: Tree) -> int:
    """The flat index of a coordinate that may stop at any depth of a shape."""
    if not isinstance(coord, tuple):
        return int(coord)
    total, weight = 0, 1
    for part, mode in zip(coord, shape, strict=True):
        total += weight * ravel(part, mode)
        weight *= size_of(mode)
    return total


def any_coordinate(index: int, shape: Tree, rng: random.Random) -> Tree:
    """A coordinate of a flat index that stops at a random depth."""
    if not isinstance(shape, tuple) or rng.random() < 0.3:
        return index
    coord = []
    for mode in shape:
        index, part = divmod(index, size_of(mode))
        coord.append(any_coordinate(part, mode, rng))
    return tuple(coord)


def nested(flat: Sequence[int], rng: random.Random, level: int = 0) -> Tree:
    """A random nesting of a list of leaves."""
    if len(flat) == 1 and rng.random() < 0.8:
        return flat[0]
    if len(flat) <= 2 or level == 3 or rng.random() < 0.5:
        return tuple(flat)
    cut = rng.randrange(1, len(flat))
    return nested(flat[:cut], rng, level + 1), nested(flat[cut:], rng, level + 1)


def factors(size: int, rng: random.Random, ones: float = 0.1) -> list[int]:
    """Extents with this product, some of them 1."""
    extents = []
    while size > 1:
        extent = rng.choice([n for n in range(2, size + 1) if size % n == 0])
        extents.append(extent)
        size //= extent
    while rng.random() < ones:
        extents.insert(rng.randrange(len(extents) + 1), 1)
    return extents or [1]


def parity(number: int) -> int:
    return number.bit_count() & 1


def xored(columns: Sequence[int], constant: int, index: int) -> int:
    """constant xor the columns of the bits of an index."""
    for place, column in enumerate(columns):
        if index >> place & 1:
            constant ^= column
    return constant


def spans(vectors: Sequence[int]) -> set[int]:
    """All xors of some vectors."""
    found = {0}
    for vector in vectors:
        if vector not in found:
            found |= {value ^ vector for value in found}
    return found
