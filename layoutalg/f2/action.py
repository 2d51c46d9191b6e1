"""Permute and drop bits of one input axis; find the register permutation that a tile needs.

An action is itself a layout, ``action.as_layout()``, and applying it is composition with that layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TypeVar

import numpy as np

from layoutalg.f2 import matrix
from layoutalg.f2.axes import argument_check, bad_argument, fields_check, flag, log2, move, moves, place, unpack, width
from layoutalg.f2.build import identity_1d
from layoutalg.f2.divide import check_fits, divide_left, outside_tile, room_below
from layoutalg.f2.layout import LinearLayout, trusted
from layoutalg.f2.steps import columns_of, linear, recolumned
from layoutalg.ground import limits, memory
from layoutalg.ground.check import refuse
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic

_T = TypeVar("_T")
VECTOR_BITS = 128
"""Bits of the widest load or store of one thread."""


@dataclass(frozen=True, slots=True)
class ColumnAction:
    """New bit i of an axis is old bit ``sources[i]``; old bits that do not occur are dropped (fixed at 0).

    Args:
        axis: Input axis.
        bits: Number of bits of the axis before the action.
        sources: Distinct numbers below ``bits``.

    Example:
        >>> swap = ColumnAction("reg", 2, (1, 0))
        >>> swap.apply_values("abcd"), str(swap.apply(LinearLayout.from_bases({"reg": [(1,), (2,)]}, {"o": 4})))
        (('a', 'c', 'b', 'd'), 'F2[reg=(2)(1) -> o:4]')
    """

    axis: str
    bits: int
    sources: tuple[int, ...]

    def __post_init__(self) -> None:
        fields_check.name(self.axis, "axis")
        bits = width(argument_check.integer(self.bits, "bits", 0), "bits")
        if not isinstance(self.sources, tuple):
            raise bad_argument("sources", "must be a tuple of integers", self.sources)
        sources = tuple([argument_check.integer(source, "sources", 0, bits) for source in self.sources])
        if len(set(sources)) != len(sources):
            raise bad_argument("sources", "must be distinct", sources)
        object.__setattr__(self, "bits", bits)
        object.__setattr__(self, "sources", sources)

    @classmethod
    def identity(cls, axis: str, bits: int) -> ColumnAction:
        """Return the identity action.

        Example:
            >>> ColumnAction.identity("reg", 2).is_identity
            True
        """
        empty = cls(axis, bits, ())
        return cls(axis, bits, tuple(range(empty.bits)))

    @property
    def is_identity(self) -> bool:
        """Nothing is moved or dropped."""
        return self.sources == tuple(range(self.bits))

    @property
    def is_permutation(self) -> bool:
        """Nothing is dropped."""
        return len(self.sources) == self.bits

    def as_layout(self) -> LinearLayout:
        """Return the map from new to old coordinates of the axis.

        Example:
            >>> str(ColumnAction("reg", 3, (2, 0)).as_layout())
            'F2[reg=(4)(1) -> reg:8]'
        """
        columns = tuple(1 << source for source in self.sources)
        return trusted(((self.axis, len(self.sources)),), ((self.axis, self.bits),), columns, 0)

    def apply(self, layout: LinearLayout) -> LinearLayout:
        """Return the layout with the axis mapped through ``as_layout()`` first."""
        low, bits = place(linear(layout, "layout").in_axes, self.axis, "axis")
        if bits != self.bits:
            raise bad_argument("layout", f"input axis {self.axis!r} must have {self.bits} bits", bits)
        return recolumned(layout, self.axis, [layout.columns[low + source] for source in self.sources])

    def apply_values(self, values: Sequence[_T]) -> tuple[_T, ...]:
        """Return the values at their new coordinates: ``new[x] = old[as_layout()(x)]``.

        Args:
            values: One per old coordinate of the axis.

        Raises: MalformedError: LA241. BudgetError: LA211, LA002.
        """
        given = _listed(values, self.bits, self.bits)
        places = matrix.table([1 << source for source in self.sources])
        return tuple(given[place] for place in map(int, places))

    def broadcast_values(self, values: Sequence[_T]) -> tuple[_T, ...]:
        """Return the values at the old coordinates; coordinates that differ only in dropped bits share a value.

        Inverts ``apply_values`` if the values do not depend on the dropped bits.

        Args:
            values: One per new coordinate of the axis.

        Raises: MalformedError: LA241. BudgetError: LA211, LA002.

        Example:
            >>> ColumnAction("reg", 2, (1,)).broadcast_values("ab")
            ('a', 'a', 'b', 'b')
        """
        given = _listed(values, len(self.sources), self.bits)
        number = {source: index for index, source in enumerate(self.sources)}
        places = matrix.table([1 << number[bit] if bit in number else 0 for bit in range(self.bits)])
        return tuple(given[place] for place in map(int, places))

    def inverse(self) -> ColumnAction:
        """Return the action that undoes this one.

        Raises: AdmissibilityError: LA258.

        Example:
            >>> ColumnAction("reg", 3, (1, 2, 0)).inverse().sources
            (2, 0, 1)
        """
        if not self.is_permutation:
            dropped = next(bit for bit in range(self.bits) if bit not in self.sources)
            because = f"{self!r} drops bit {dropped} of {self.axis}"
            witness = {"axis": self.axis, "bit": dropped}
            raise refuse("LA258", "an action that drops bits has no inverse", because, witness)
        order = sorted(range(self.bits), key=lambda index: self.sources[index])
        return ColumnAction(self.axis, self.bits, tuple(order))

    def then(self, later: ColumnAction) -> ColumnAction:
        """Return the action of this one followed by ``later``: ``later.apply(self.apply(L))``.

        Example:
            >>> ColumnAction("reg", 3, (2, 0)).then(ColumnAction("reg", 2, (1,))).sources
            (0,)
        """
        if not isinstance(later, ColumnAction) or (later.axis, later.bits) != (self.axis, len(self.sources)):
            raise bad_argument("later", f"must act on {len(self.sources)} bits of {self.axis!r}", later)
        return ColumnAction(self.axis, self.bits, tuple(self.sources[index] for index in later.sources))


def _listed(values: Sequence[_T], bits: int, widest: int) -> Sequence[_T]:
    """Return ``values`` if there are ``2 ** bits`` of them and an axis of ``widest`` bits can be enumerated."""
    if widest > limits.F2_TABLE_BITS:
        because = f"{widest} bits, the limit is {limits.F2_TABLE_BITS}"
        raise BudgetError(Diagnostic("LA211", "the axis is too large to list its values", ("values",), because))
    if not isinstance(values, Sequence) and not (isinstance(values, np.ndarray) and values.ndim):
        raise bad_argument("values", "must be a sequence", values)
    try:
        count = len(values)
    except OverflowError:  # a range may be too long for len()
        raise bad_argument("values", f"must have {1 << bits} entries", values) from None
    if count != 1 << bits:
        raise bad_argument("values", f"must have {1 << bits} entries", count)
    memory.reserve("the values along an axis", 1 << widest, 64)  # places, the growing tuple and its values
    return values


def permutation_for_divide(
    layout: LinearLayout, tile: LinearLayout, *, left: bool = True, register: str = "register"
) -> ColumnAction:
    """Return a permutation of the register bits after which ``tile`` divides the layout.

    Complete: each register bit of the tile needs a register bit of the layout with the same image, and the images left
    over are the same for every matching, so a greedy match finds a permutation whenever one exists.

    Args:
        tile: As for ``divide_left`` (``divide_right`` if not ``left``).
        left: Divide from the left.

    Raises: MalformedError: LA241. AdmissibilityError: LA256.

    Example:
        >>> L = LinearLayout.from_bases({"register": [(2,), (1,)]}, {"offset": 4})
        >>> permutation_for_divide(L, identity_1d(2, "register", "offset")).sources
        (1, 0)
    """
    low, bits = place(linear(layout, "layout").in_axes, register, "register")
    flag(left, "left")
    what = "no permutation of the registers makes the layout divisible by the tile"
    check_fits(layout, tile, "LA256", what, ordered=True)
    along = moves(tile.out_axes, layout.out_axes, {} if left else room_below(layout.out_axes, tile.out_axes))
    wanted = columns_of(tile, register, "register") if register in tile.in_dims else ()
    free = list(range(bits))
    chosen: list[int] = []
    for index, column in enumerate(wanted):
        image = move(column, along)
        match = next((bit for bit in free if layout.columns[low + bit] == image), None)
        if match is None:
            point = unpack(image, layout.out_axes)
            because = f"no unused register bit maps to {point}, as bit {index} of the tile does"
            raise refuse("LA256", what, because, {"bit": index, "image": point}, layout, tile)
        free.remove(match)
        chosen.append(match)
    action = ColumnAction(register, bits, tuple(chosen + free if left else free + chosen))
    outside_tile(action.apply(layout), tile, "LA256", what, left=left, gaps=False)
    return action


def drop_broadcast(layout: LinearLayout, axis: str = "register") -> ColumnAction:
    """Return the action that drops the bits of an axis that do not affect the value.

    ``apply_values`` then removes duplicate registers and ``broadcast_values`` restores them.

    Example:
        >>> drop_broadcast(LinearLayout.from_bases({"register": [(0,), (1,)]}, {"o": 2})).sources
        (1,)
    """
    columns = columns_of(linear(layout, "layout"), axis, "axis")
    return ColumnAction(axis, len(columns), tuple(bit for bit, column in enumerate(columns) if column))


def largest_vectorisation(
    layout: LinearLayout,
    element_bits: int,
    *,
    max_elements: int | None = None,
    register: str = "register",
    offset: str = "offset",
) -> tuple[int, ColumnAction]:
    """Return the widest vector access from registers to an offset axis, and the register permutation it needs.

    Mathematically: the largest power of two v with ``v * element_bits <= 128`` such that, after a permutation of the
    register bits, the identity of size v from register to offset divides the layout from the left. With
    ``max_elements`` the registers are not permuted.

    Args:
        element_bits: Bits per element, power of two up to 128.
        max_elements: Upper bound for v, power of two; forbids permutations.

    Returns:
        (v, permutation), v in elements; (1, identity) if nothing wider works.

    Example:
        >>> L = LinearLayout.from_bases({"register": [(4,), (1,), (2,)], "lane": [(8,)]}, {"offset": 16})
        >>> width, action = largest_vectorisation(L, 32)
        >>> width, action.sources
        (4, (1, 2, 0))
    """
    _, bits = place(linear(layout, "layout").in_axes, register, "register")
    place(layout.out_axes, offset, "offset")
    if log2(element_bits, "element_bits") > log2(VECTOR_BITS, "vector"):
        raise bad_argument("element_bits", f"must be at most {VECTOR_BITS}", element_bits)
    limit = VECTOR_BITS // fields_check.integer(element_bits, "element_bits")
    if max_elements is not None:
        limit = min(limit, 1 << log2(max_elements, "max_elements"))
    stay = ColumnAction.identity(register, bits)
    while limit > 1:
        tile = identity_1d(limit, register, offset)
        with suppress(AdmissibilityError):
            if max_elements is None:
                return limit, permutation_for_divide(layout, tile, register=register)
            divide_left(layout, tile)
            return limit, stay
        limit //= 2
    return 1, stay


def additive_strides(layout: LinearLayout, register: str = "register") -> tuple[int, ColumnAction]:
    """Return which register bits only add to the address, so that they can be immediate offsets.

    Mathematically: the largest set S of register bits whose columns use no output bit that a column outside S (of any
    axis) or the affine part uses; columns in S may share output bits with each other. Then
    ``layout(s xor x) = layout(x) + M s`` for s in S and x outside S, as integers over the packed output.

    Returns:
        (2**|S|, a permutation that moves S to the lowest register bits).

    Example:
        >>> L = LinearLayout.from_bases({"register": [(1,), (4,)], "lane": [(3,)]}, {"o": 8})
        >>> count, action = additive_strides(L)
        >>> count, action.sources
        (2, (1, 0))
    """
    low, bits = place(linear(layout, "layout").in_axes, register, "register")
    used = reduce(or_, layout.columns[:low] + layout.columns[low + bits :], layout.constant)
    rest = list(range(bits))
    while meeting := [bit for bit in rest if layout.columns[low + bit] & used]:
        used = reduce(or_, [layout.columns[low + bit] for bit in meeting], used)
        rest = [bit for bit in rest if bit not in meeting]
    order = rest + [bit for bit in range(bits) if bit not in rest]
    return 1 << len(rest), ColumnAction(register, bits, tuple(order))
