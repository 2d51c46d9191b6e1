"""Factors of linear layouts: division by a tile, quotients by axes that stay in place, repetition, vector width.

``direct_sum(B, divide_left(A, B)) == A`` and ``direct_sum(divide_right(A, B), B) == A`` whenever the quotient exists;
it keeps every axis of A and is then unique.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import reduce
from itertools import pairwise
from operator import or_

from layoutalg.f2.axes import (
    AxisBits,
    as_names,
    bad_argument,
    field,
    fields,
    fields_check,
    flag,
    gather,
    log2,
    move,
    moves,
    place,
    unpack,
)
from layoutalg.f2.layout import LinearLayout, columns_of, linear, map_in, restricted, trusted
from layoutalg.f2.reshape import identity_1d
from layoutalg.ground.check import refuse
from layoutalg.ground.errors import AdmissibilityError


def divide_left(layout: LinearLayout, tile: LinearLayout) -> LinearLayout:
    """Return C with ``tile * C == layout``; C keeps all axes of ``layout``.

    Exists if the lowest bits of each axis act as ``tile`` does and no other bit affects the output bits of ``tile``.

    Args:
        tile: Its axes are among those of ``layout``, in the same order.

    Example:
        >>> A = LinearLayout.from_bases({"reg": [(1,), (4,), (2,)]}, {"o": 8})
        >>> str(divide_left(A, LinearLayout.from_bases({"reg": [(1,)]}, {"o": 2})))
        'F2[reg=(2)(1) -> o:4]'
    """
    return _divide(layout, tile, left=True)


def divide_right(layout: LinearLayout, tile: LinearLayout) -> LinearLayout:
    """Return C with ``C * tile == layout``: like ``divide_left``, with the tile in the highest bits of each axis.

    Example:
        >>> A = LinearLayout.from_bases({"reg": [(2,), (1,), (4,)]}, {"o": 8})
        >>> str(divide_right(A, LinearLayout.from_bases({"reg": [(1,)]}, {"o": 2})))
        'F2[reg=(2)(1) -> o:4]'
    """
    return _divide(layout, tile, left=False)


def _divide(layout: LinearLayout, tile: LinearLayout, *, left: bool) -> LinearLayout:
    what = f"the layout is not divisible by the tile from the {'left' if left else 'right'}"
    outside = outside_tile(layout, tile, "LA247", what, left=left, gaps=False)
    tile_in, tile_out = dict(tile.in_axes), dict(tile.out_axes)
    places = []
    for name, low, bits in fields(layout.out_axes):
        cut = tile_out.get(name, 0)
        places.append((low + cut if left else low, bits - cut))
    columns = tuple(gather(column, places) for column in outside if column is not None)
    inputs = tuple((name, bits - tile_in.get(name, 0)) for name, bits in layout.in_axes)
    outputs = tuple((name, bits - tile_out.get(name, 0)) for name, bits in layout.out_axes)
    return trusted(inputs, outputs, columns, gather(layout.constant, places))


def outside_tile(
    layout: LinearLayout, tile: LinearLayout, code: str, what: str, *, left: bool, gaps: bool
) -> list[int | None]:
    """Return the column of each input bit, None for the bits of the tile; raise if the tile does not divide.

    The tile must occupy the lowest (``left``) or highest bits of its axes, and the other input bits must not affect its
    output bits: all of them, or with ``gaps`` only those that it uses.

    Raises: MalformedError: LA241. AdmissibilityError: ``code``, with the offending axis or input bit.
    """
    check_fits(layout, tile, code, what, ordered=not gaps)

    def fail(because: str, **witness: object) -> AdmissibilityError:
        return refuse(code, what, because, witness, layout, tile)

    along = moves(tile.out_axes, layout.out_axes, {} if left else room_below(layout.out_axes, tile.out_axes))
    images, constant = [move(column, along) for column in tile.columns], move(tile.constant, along)
    taken = reduce(or_, images, constant) if gaps else move((1 << tile.out_bits) - 1, along)
    inside = {name: (low, bits) for name, low, bits in fields(tile.in_axes)}
    first = {} if left else room_below(layout.in_axes, tile.in_axes)
    answer: list[int | None] = []
    for name, low, bits in fields(layout.in_axes):
        place_in_tile, cut = inside.get(name, (0, 0))
        for bit in range(bits):
            column, number = layout.columns[low + bit], bit - first.get(name, 0)
            belongs = 0 <= number < cut
            expected = images[place_in_tile + number] if belongs else column & ~taken
            if column != expected:
                point, wanted = unpack(column, layout.out_axes), unpack(expected, layout.out_axes)
                because = f"{name}[{bit}] maps to {point}, the tile needs {wanted}"
                raise fail(because, axis=name, bit=bit, image=point, expected=wanted, inside_tile=belongs)
            answer.append(None if belongs else column)
    if layout.constant & taken != constant:
        raise fail("the affine parts differ on the bits of the tile", layout=layout.offset, tile=tile.offset)
    return answer


def check_fits(layout: LinearLayout, tile: LinearLayout, code: str, what: str, *, ordered: bool) -> None:
    """Refuse a tile whose axes are missing, smaller or (``ordered``) in a different order in the layout."""
    linear(layout, "layout")
    linear(tile, "tile")
    sides = ("input", layout.in_axes, tile.in_axes), ("output", layout.out_axes, tile.out_axes)
    for side, have, want in sides:
        sizes, order = dict(have), [name for name, _ in have]
        for name, bits in want:
            if sizes.get(name, -1) < bits:
                size = 1 << sizes[name] if name in sizes else None
                because = f"the tile needs {side} axis {name!r} of size {1 << bits}, the layout has {size}"
                raise refuse(code, what, because, {"axis": name, "tile": 1 << bits, "layout": size}, layout, tile)
        for (before, _), (name, _) in pairwise(want):
            if ordered and order.index(name) < order.index(before):
                because = f"the {side} axes of the tile are in a different order"
                raise refuse(code, what, because, {"axis": name}, layout, tile)


def room_below(axes: AxisBits, tile: AxisBits) -> dict[str, int]:
    """Return how many bits of each axis are below the tile if it occupies the highest ones."""
    cut = dict(tile)
    return {name: bits - cut[name] for name, bits in axes if name in cut}


def is_trivial_over(layout: LinearLayout, names: str | Iterable[str]) -> bool:
    """Whether the axes stay in place: the layout is the identity on them, without mixing them with other axes.

    Mathematically: ``layout = id_names x (a layout of the other axes)``, affine part included. An axis that only one
    side has does not stay in place.

    Example:
        >>> is_trivial_over(LinearLayout.identity({"lane": 2, "warp": 2}), "warp")
        True
    """
    return _why_not_in_place(linear(layout, "layout"), names) is None


def quotient(layout: LinearLayout, names: str | Iterable[str]) -> LinearLayout:
    """Drop axes over which the layout is trivial (see ``is_trivial_over``).

    Example:
        >>> str(quotient(LinearLayout.identity({"lane": 2, "warp": 2}), "warp"))
        'F2[lane=(1) -> lane:2]'
    """
    dropped = as_names(names, "names")
    moved = _why_not_in_place(linear(layout, "layout"), dropped)
    if moved is not None:
        raise refuse("LA248", "the layout is not trivial over these axes", moved[0], moved[1], layout)
    ins, outs = (set(dims) - set(dropped) for dims in (layout.in_dims, layout.out_dims))
    return restricted(layout, ins, outs)


def _why_not_in_place(layout: LinearLayout, names: str | Iterable[str]) -> tuple[str, dict[str, object]] | None:
    """Return why the axes do not stay in place, or None if they do."""
    wanted = as_names(names, "names")
    ins, outs = dict(layout.in_axes), dict(layout.out_axes)
    for name in wanted:
        if name not in ins and name not in outs:
            raise bad_argument("names", f"must be among {sorted({*ins, *outs})}", name)
    for name in wanted:
        if ins.get(name) != outs.get(name):
            sizes = {"input_size": layout.in_dims.get(name), "output_size": layout.out_dims.get(name)}
            return f"axis {name!r} is not the same on both sides", {"axis": name, **sizes}
    inside = sum(((1 << bits) - 1) << low for name, low, bits in fields(layout.out_axes) if name in wanted)
    places = {name: low for name, low, _ in fields(layout.out_axes)}
    for name, low, bits in fields(layout.in_axes):
        for bit in range(bits):
            column = layout.columns[low + bit]
            good = column == 1 << places[name] + bit if name in wanted else not column & inside
            if not good:
                image = unpack(column, layout.out_axes)
                return f"{name}[{bit}] maps to {image}", {"axis": name, "bit": bit, "image": image}
    if layout.constant & inside:
        return f"the affine part {layout.offset} changes them", {"offset": layout.offset}
    return None


def is_identity_on(layout: LinearLayout, name: str) -> bool:
    """Whether output axis ``name`` equals input axis ``name`` and depends on nothing else.

    Weaker than ``is_trivial_over``: other outputs may also depend on the input axis.

    Example:
        >>> is_identity_on(LinearLayout.from_bases({"a": [(1, 1)], "b": [(0, 1)]}, {"a": 2, "b": 2}), "a")
        True
    """
    where = place(linear(layout, "layout").out_axes, name, "name")
    if dict(layout.in_axes).get(name) != where[1] or field(layout.constant, where):
        return False
    return all(
        field(layout.columns[low + bit], where) == (1 << bit if axis == name else 0)
        for axis, low, bits in fields(layout.in_axes)
        for bit in range(bits)
    )


def repetitions(layout: LinearLayout, tile: LinearLayout) -> LinearLayout:
    """Return where each copy of a tile starts: the layout with the tile's part set to zero.

    Mathematically: R with ``layout(x) = R(x) xor tile(x mod tile)``, where R ignores the lowest bits of each axis
    (those of ``tile``) and never sets an output bit that ``tile`` uses, so the xor is also a sum. Unlike in
    ``divide_left``, the output bits of the tile may be interleaved with others.

    Example:
        >>> A = LinearLayout.from_bases({"reg": [(2,), (1,), (4,)]}, {"o": 8})
        >>> str(repetitions(A, LinearLayout.from_bases({"reg": [(2,)]}, {"o": 4})))
        'F2[reg=(0)(1)(4) -> o:8]'
    """
    outside = outside_tile(layout, tile, "LA257", "the layout does not repeat the tile", left=True, gaps=True)
    used = reduce(or_, tile.columns, tile.constant)
    rest = layout.constant & ~move(used, moves(tile.out_axes, layout.out_axes))
    return trusted(layout.in_axes, layout.out_axes, tuple(column or 0 for column in outside), rest)


def num_consecutive(layout: LinearLayout) -> int:
    """Return the longest aligned run of the first input axis that is contiguous on the first output axis.

    Mathematically: the largest power of two V such that on the first axes ``layout(a V + v) = layout(a V) + v`` for
    v < V, the other output axes do not change, and ``layout(a V)`` is a multiple of V; 1 if a side has no axes.

    Example:
        >>> num_consecutive(LinearLayout.from_bases({"reg": [(1,), (2,), (8,)], "lane": [(4,)]}, {"o": 16}))
        4
    """
    linear(layout, "layout")
    if not layout.in_axes or not layout.out_axes:
        return 1
    first_in, first_out = layout.in_axes[0][1], layout.out_axes[0][1]
    run = 0
    while run < min(first_in, first_out) and layout.columns[run] == 1 << run:
        run += 1
    others = reduce(or_, layout.columns[run:], layout.constant) & ((1 << first_out) - 1)
    aligned = (others & -others).bit_length() - 1 if others else first_out
    return 1 << min(run, aligned)


VECTOR_BITS = 128
"""Bits of the widest load or store of one thread."""


def _bits_of(axis: str, bits: int, sources: Iterable[int]) -> LinearLayout:
    """Return the map to an axis whose bit i goes to bit ``sources[i]``."""
    columns = tuple(1 << source for source in sources)
    return trusted(((axis, len(columns)),), ((axis, bits),), columns, 0)


def permutation_for_divide(
    layout: LinearLayout, tile: LinearLayout, *, left: bool = True, register: str = "register"
) -> LinearLayout:
    """Return a permutation P of the register bits such that ``tile`` divides ``map_in(layout, P)``.

    Complete: each register bit of the tile needs a register bit of the layout with the same image, and the images left
    over are the same for every matching, so a greedy match finds a permutation whenever one exists.

    Args:
        tile: As for ``divide_left`` (``divide_right`` if not ``left``).
        left: Divide from the left.

    Example:
        >>> L = LinearLayout.from_bases({"register": [(2,), (1,)]}, {"offset": 4})
        >>> permutation_for_divide(L, identity_1d(2, "register", "offset")).columns
        (2, 1)
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
    permutation = _bits_of(register, bits, chosen + free if left else free + chosen)
    outside_tile(map_in(layout, permutation), tile, "LA256", what, left=left, gaps=False)
    return permutation


def drop_broadcast(layout: LinearLayout, axis: str = "register") -> LinearLayout:
    """Return the map D that drops the bits of an axis that do not affect the value.

    ``[values[i] for i in D.table()]`` drops duplicate registers, ``left_inverse(D)`` restores them in the same way.

    Example:
        >>> drop_broadcast(LinearLayout.from_bases({"register": [(0,), (1,)]}, {"o": 2})).columns
        (2,)
    """
    columns = columns_of(linear(layout, "layout"), axis, "axis")
    return _bits_of(axis, len(columns), [bit for bit, column in enumerate(columns) if column])


def largest_vectorisation(
    layout: LinearLayout,
    element_bits: int,
    *,
    max_elements: int | None = None,
    register: str = "register",
    offset: str = "offset",
) -> tuple[int, LinearLayout]:
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
        >>> width, permutation = largest_vectorisation(L, 32)
        >>> width, permutation.columns
        (4, (2, 4, 1))
    """
    _, bits = place(linear(layout, "layout").in_axes, register, "register")
    place(layout.out_axes, offset, "offset")
    if log2(element_bits, "element_bits") > log2(VECTOR_BITS, "vector"):
        raise bad_argument("element_bits", f"must be at most {VECTOR_BITS}", element_bits)
    limit = VECTOR_BITS // fields_check.integer(element_bits, "element_bits")
    if max_elements is not None:
        limit = min(limit, 1 << log2(max_elements, "max_elements"))
    stay = _bits_of(register, bits, range(bits))
    while limit > 1:
        tile = identity_1d(limit, register, offset)
        with suppress(AdmissibilityError):
            if max_elements is None:
                return limit, permutation_for_divide(layout, tile, register=register)
            divide_left(layout, tile)
            return limit, stay
        limit //= 2
    return 1, stay


def additive_strides(layout: LinearLayout, register: str = "register") -> tuple[int, LinearLayout]:
    """Return which register bits only add to the address, so that they can be immediate offsets.

    Mathematically: the largest set S of register bits whose columns use no output bit that a column outside S (of any
    axis) or the affine part uses; columns in S may share output bits with each other. Then
    ``layout(s xor x) = layout(x) + M s`` for s in S and x outside S, as integers over the packed output.

    Returns:
        (2**|S|, a permutation that moves S to the lowest register bits).

    Example:
        >>> L = LinearLayout.from_bases({"register": [(1,), (4,)], "lane": [(3,)]}, {"o": 8})
        >>> count, permutation = additive_strides(L)
        >>> count, permutation.columns
        (2, (2, 1))
    """
    low, bits = place(linear(layout, "layout").in_axes, register, "register")
    used = reduce(or_, layout.columns[:low] + layout.columns[low + bits :], layout.constant)
    rest = list(range(bits))
    while meeting := [bit for bit in rest if layout.columns[low + bit] & used]:
        used = reduce(or_, [layout.columns[low + bit] for bit in meeting], used)
        rest = [bit for bit in rest if bit not in meeting]
    order = rest + [bit for bit in range(bits) if bit not in rest]
    return 1 << len(rest), _bits_of(register, bits, order)
