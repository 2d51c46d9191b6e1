"""Build hierarchical layouts: reshape, permute, tile, user bijections, distribution over levels.

The functions combine with ``@`` and ``then``. Sizes are arbitrary: a tile that does not divide pads the box and adds a
guard for the real points.

References: LEGO, arXiv 2505.08091, for the four operations (group by, order by, tile by, user bijection); the
definitions are this library's own.

Example:
    Tiles in row-major order, elements of a tile in column-major order:

    >>> tiled = tile(Box.of(col=4, row=4), {"col": 2, "row": 2}, inner=("row", "col"), outer=("col", "row"))
    >>> str(tiled.target)
    'row_in:2, col_in:2, col_out:2, row_out:2'
    >>> tiled.table().reshape(4, 4).tolist()
    [[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15]]

    A user's bijection: the anti-diagonals of a 3 x 3 tile stored one after the other.

    >>> cells = sorted(((i + j, i, j) for i in range(3) for j in range(3)))
    >>> place = {(i, j): k for k, (_, i, j) in enumerate(cells)}
    >>> skewed = reindex(Box.of(j=3, i=3), [place[i, j] for i in range(3) for j in range(3)])
    >>> skewed.table().reshape(3, 3).tolist()
    [[0, 1, 3], [2, 4, 6], [5, 7, 8]]
    >>> (skewed @ ~skewed).is_identity
    True

    A brick layout: 8 x 8 x 8 cells in bricks of 4 x 4 x 4, each brick contiguous.

    >>> bricks = tile(Box.of(x=8, y=8, z=8), {"x": 4, "y": 4, "z": 4})
    >>> bricks.digits()
    {'x': ((4, 1), (2, 64)), 'y': ((4, 4), (2, 128)), 'z': ((4, 16), (2, 256))}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout
from layoutalg.f2.carry import one_swizzle
from layoutalg.ground.check import refuse
from layoutalg.ground.digits import chained, merge, shared_bits, split_at, weights
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError, shown
from layoutalg.ground.layout import Layout
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.bijection import (
    Bijection,
    DigitMap,
    TableMap,
    canonical,
    check_points,
    compose,
    identity,
    local,
)
from layoutalg.hierarchy.layout import Guard, HierarchicalLayout
from layoutalg.hierarchy.levels import LEVELS, Box, check, hierarchy, integer, malformed, require


def read_mapping(mapping: object, size: int) -> Bijection:
    """Return a user's bijection of [0, size) in canonical form, verified.

    Args:
        mapping: A bijection of this package, a layout of any family (linear, CuTe and swizzled ones without
            enumeration), a list, tuple, range or array of the values, or a function of the index.
        size: Expected number of points.

    Example:
        >>> read_mapping(CuteLayout((2, 3), (3, 1)), 6)
        DigitMap(modes=((2, 3), (3, 1)))
        >>> read_mapping(ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout((4, 3))), 12)
        DigitMap(modes=((2, 1), (2, (1, 2)), (3, 4)))
        >>> read_mapping(lambda index: 5 * index % 6, 6).at(1)
        5
    """
    found: Bijection
    if isinstance(mapping, DigitMap | TableMap):
        found = mapping
    elif isinstance(mapping, LinearLayout):
        _same_size(mapping.size, size, mapping)
        if mapping.in_bits != mapping.out_bits:
            raise _no_bijection(mapping, f"{mapping.in_bits} input bits, {mapping.out_bits} output bits", {})
        found = DigitMap.from_bits(mapping.columns, mapping.constant)
    elif isinstance(mapping, CuteLayout | ComposedLayout):
        _same_size(mapping.size, size, mapping)
        found = _read_cute(mapping) if isinstance(mapping, CuteLayout) else _read_swizzled(mapping)
    elif isinstance(mapping, Layout):
        _same_size(mapping.size, size, mapping)
        check_points(size, str(mapping))
        values = mapping.table()
        if values.ndim != 1:
            raise malformed("mapping", "must have integer values", mapping)
        found = TableMap(tuple(values.tolist()))
    elif isinstance(mapping, (tuple, list, np.ndarray)):
        if isinstance(mapping, np.ndarray) and mapping.ndim != 1:
            raise malformed("mapping", "must be a one-dimensional array", mapping)
        found = TableMap(tuple(mapping.tolist() if isinstance(mapping, np.ndarray) else mapping))
    elif isinstance(mapping, range):
        # not len(), which refuses ranges longer than a machine word
        _same_size(max(0, -((mapping.start - mapping.stop) // mapping.step)), size, mapping)
        check_points(size)
        found = TableMap(tuple(mapping))
    elif callable(mapping):
        found = _read_function(mapping, size)
    else:
        raise malformed("mapping", "must be a layout, a function or a sequence of values", mapping)
    _same_size(found.size, size, mapping)
    return canonical(found)


def _read_function(function: Callable[[int], object], size: int) -> TableMap:
    check_points(size, "evaluating a function point by point")
    values = []
    for index in range(size):
        try:
            values.append(function(index))
        except Exception as error:
            raise malformed("mapping", f"must have a value at {index}", error) from error
    return TableMap(tuple(values))  # type: ignore[arg-type]


def _read_cute(layout: CuteLayout) -> DigitMap:
    merged = merge(layout.flat)
    broken = chained((stride, extent) for extent, stride in layout.flat if extent > 1)
    if broken is not None:
        because = f"in ascending order, the next stride must be {broken[1]}, not {broken[0]}"
        raise _no_bijection(layout, because, {"stride": broken[0]})
    return DigitMap(merged)


def _read_swizzled(layout: ComposedLayout) -> Bijection:
    """Return a stack of swizzles as a digit map if every period divides the size and no offset intervenes, or a table.

    A swizzle then permutes each aligned block of one period, so it acts on the low digit of the value.
    """
    size, stages = layout.size, [*reversed(layout.stages)]
    merged = merge(layout.base.flat)
    plain = chained((abs(stride), extent) for extent, stride in layout.base.flat if extent > 1) is None
    whole = all(size % swizzle.period == 0 for swizzle, _ in stages) and not any(offset for _, offset in stages[1:])
    found: Bijection = DigitMap(merged) if plain else identity(size)
    if not plain or not whole or found.at(0) != stages[0][1]:
        check_points(size, str(layout))
        return TableMap(tuple(layout.table().tolist()))
    for swizzle, _ in stages:
        columns = swizzle.matrix_columns(swizzle.period.bit_length() - 1)
        found = compose(local(DigitMap.from_bits(columns), 1, size // swizzle.period), found)
    return found


def _no_bijection(mapping: object, because: str, witness: dict[str, object]) -> AdmissibilityError:
    return refuse("LA752", "this layout is not a bijection onto an interval from 0", because, witness or None, mapping)


def _same_size(actual: int, size: int, mapping: object) -> None:
    if actual != size:
        because = f"{actual} points, but the box has {size}"
        witness = {"actual": actual, "expected": size}
        raise MalformedError(
            Diagnostic("LA750", "the mapping has the wrong number of points", (shown(mapping),), because, witness)
        )


def unswizzled(mapping: DigitMap) -> tuple[Swizzle, DigitMap] | None:
    """Return a swizzle and a plain digit map with ``mapping(x) == swizzle(plain(x))``, or None.

    A swizzle acts on the bits of the value, i.e. the target digits below the first odd extent.

    Example:
        >>> unswizzled(DigitMap(((4, 1), (2, (1, 4)), (2, (2, 8)), (3, 16))))
        (Swizzle(2, 0, 2), DigitMap(modes=((48, 1),)))
    """
    low = 1
    for weight, extent in sorted((weight, extent) for extent, stride in mapping.pieces() for weight in weights(stride)):
        if weight == low:
            low *= extent & -extent
    pieces = split_at(mapping.modes, (), [low])
    if pieces is None or max(shared_bits(pieces), default=0) >= low:
        return None
    columns: list[int] = []
    for extent, stride in pieces:
        if max(weights(stride)) < low:
            columns += [sum(weights(stride)) << bit for bit in range(extent.bit_length() - 1)]
    found = one_swizzle(columns)
    if found is None or low > 2**62:
        return None
    swizzle = Swizzle(*found)
    undone = local(DigitMap.from_bits(swizzle.matrix_columns(low.bit_length() - 1)), 1, mapping.size // low)
    plain = compose(undone, mapping)
    return (swizzle, plain) if isinstance(plain, DigitMap) and plain.is_plain else None


def reshape(source: Box, target: Box) -> HierarchicalLayout:
    """Return the layout that keeps the flat index and splits it into other axes (group by).

    Example:
        >>> reshape(Box.of(i=6), Box.of(a=2, b=3))(i=5)
        {'a': 1, 'b': 2}
    """
    if not isinstance(source, Box) or not isinstance(target, Box):
        raise malformed("boxes", "must be two Box values", (source, target))
    return HierarchicalLayout(source, target, maps.identity(source.size))


def permute(box: Box, names: str | Sequence[str]) -> HierarchicalLayout:
    """Return the layout that keeps the coordinates and reorders the axes, fastest first (order by).

    Example:
        >>> permute(Box.of(row=2, col=3), ("col", "row"))(row=1, col=2)
        {'col': 2, 'row': 1}
    """
    order = check.names(names, "names", require(box, Box, "box").names, whole=True)
    target = Box(tuple((name, box.dims[name]) for name in order))
    return HierarchicalLayout(box, target, DigitMap(tuple((extent, target.stride(name)) for name, extent in box.axes)))


def tile(
    box: Box,
    tiles: Mapping[str, int],
    *,
    inner: str | Sequence[str] | None = None,
    outer: str | Sequence[str] | None = None,
) -> HierarchicalLayout:
    """Return the layout from a tensor to its tiles (tile by); every axis x becomes ``x_in`` and ``x_out``.

    Mathematically: x = x_in + tile * x_out. The target lists the ``_in`` axes, then the ``_out`` axes.

    Args:
        tiles: Tile extent per axis; absent axes are not tiled (one tile of the whole extent).
        inner: Order of the axes inside a tile, fastest first; default the order of ``box``.
        outer: Order of the tiles, fastest first; default the order of ``box``.

    Returns:
        A layout of the tensor rounded up to whole tiles, guarded to the real points if a tile does not divide.

    Example:
        >>> ragged = tile(Box.of(x=5), {"x": 4})
        >>> str(ragged), ragged.active()
        ('x 8:1 -> x_in:4, x_out:2 | x<5', 5)
    """
    names = require(box, Box, "box").names
    if not isinstance(tiles, Mapping) or not set(tiles) <= set(names):
        raise malformed("tiles", f"must map axes among {list(names)} to extents", tiles)
    sizes = {name: integer(tiles.get(name, extent), f"tiles[{name!r}]", 1) for name, extent in box.axes}
    counts = {name: -(-extent // sizes[name]) for name, extent in box.axes}
    orders = [
        names if order is None else check.names(order, argument, names, whole=True)
        for argument, order in (("inner", inner), ("outer", outer))
    ]
    padded = Box(tuple((name, sizes[name] * counts[name]) for name in box.names))
    target = Box(
        (
            *((f"{name}_in", sizes[name]) for name in orders[0]),
            *((f"{name}_out", counts[name]) for name in orders[1]),
        )
    )
    modes = []
    for name in box.names:
        modes += [(sizes[name], target.stride(f"{name}_in")), (counts[name], target.stride(f"{name}_out"))]
    layout = HierarchicalLayout(padded, target, DigitMap(tuple(modes)))
    return restrict(layout, source=box.dims)


def reindex(box: Box, mapping: object, axes: str | Sequence[str] | None = None) -> HierarchicalLayout:
    """Return a user's bijection of the flat index of a box, or of some of its axes; verified.

    Args:
        mapping: A layout, a function of the index or a sequence of values; see ``mapping.read_mapping``.
        axes: The axes to permute, fastest first, or a single one; the others keep their coordinates. None for all.

    Example:
        >>> reindex(Box.of(x=4), [2, 3, 0, 1]).map
        DigitMap(modes=((2, 1), (2, -2)))
        >>> reindex(Box.of(register=2, lane=3), [1, 2, 0], "lane")(register=1, lane=2)
        {'register': 1, 'lane': 0}
    """
    names = require(box, Box, "box").names
    if axes is None:
        return HierarchicalLayout(box, box, read_mapping(mapping, box.size))
    chosen = check.names(axes, "axes", names)
    front = permute(box, (*chosen, *(name for name in names if name not in chosen)))
    size = Box(tuple((name, box.dims[name]) for name in chosen)).size
    acting = maps.local(read_mapping(mapping, size), 1, box.size // size)
    whole: HierarchicalLayout = front.inverse() @ HierarchicalLayout(front.target, front.target, acting) @ front
    return whole


def distribute(tensor: Box, **levels: Sequence[tuple[str, int]]) -> HierarchicalLayout:
    """Return the layout that distributes a tensor over the levels: which element each register holds.

    Args:
        levels: Per level (``register``, ``lane``, ``warp``, ``cta``, ``cluster``) its digits as (axis, extent), fastest
            first. The digits of one axis, taken register first, are its digits from fast to slow.

    Returns:
        A layout from the box of levels to the tensor, rounded up to what the levels cover and guarded to the real
        elements if that is more.

    Example:
        >>> tensor = Box.of(col=16, row=16)
        >>> blocked = distribute(tensor, register=[("col", 4)], lane=[("col", 4), ("row", 8)], warp=[("row", 2)])
        >>> blocked(register=1, lane=5, warp=1, cta=0, cluster=0)
        {'col': 5, 'row': 9}
        >>> distribute(Box.of(x=50), register=[("x", 2)], lane=[("x", 32)]).active()
        50
    """
    unknown = [name for name in levels if name not in LEVELS]
    if unknown:
        raise malformed("levels", f"must be among {list(LEVELS)}", unknown[0])
    covered = dict.fromkeys(require(tensor, Box, "tensor").names, 1)
    pieces: list[tuple[str, int, int]] = []
    extents = dict.fromkeys(LEVELS, 1)
    for level in LEVELS[::-1]:
        given = levels.get(level, ())
        if not isinstance(given, (tuple, list)):
            raise malformed(level, "must be a sequence of (axis, extent) pairs", given)
        for entry in given:
            if (
                not isinstance(entry, (tuple, list))
                or len(entry) != 2
                or not (isinstance(entry[0], str) and entry[0] in covered)
            ):
                raise malformed(level, f"must be (axis, extent) pairs with axes among {list(tensor.names)}", entry)
            extent = integer(entry[1], f"{level}: {entry[0]}", 1)
            pieces.append((entry[0], extent, covered[entry[0]]))
            covered[entry[0]] *= extent
            extents[level] *= extent
    for name, extent in tensor.axes:
        if covered[name] < extent:
            because = f"axis {name} has {extent} elements, the levels cover {covered[name]}"
            witness = {"axis": name, "coordinate": covered[name]}
            raise refuse("LA759", "the levels do not cover the tensor", because, witness, f"distribute({tensor})")
    padded = Box(tuple((name, covered[name]) for name in tensor.names))
    modes = tuple((extent, padded.stride(name) * weight) for name, extent, weight in pieces)
    layout = HierarchicalLayout(hierarchy(**extents), padded, DigitMap(modes))
    return restrict(layout, target=tensor.dims)


def restrict(
    layout: HierarchicalLayout,
    *,
    source: Mapping[str, int] | None = None,
    target: Mapping[str, int] | None = None,
) -> HierarchicalLayout:
    """Return the layout guarded to coordinates below bounds (a partial tile).

    ``source`` and ``target`` map axes to the number of allowed coordinates; absent axes are unrestricted.

    Example:
        >>> part = restrict(reindex(Box.of(x=4), [3, 2, 1, 0]), target={"x": 3})
        >>> part.table().tolist(), part.inverse().table().tolist()
        ([-1, 2, 1, 0], [3, 2, 1, -1])
    """
    guards = list(require(layout, HierarchicalLayout, "layout").guards)
    for argument, bounds, box, acting in (
        ("source", source, layout.source, maps.identity(layout.size)),
        ("target", target, layout.target, layout.map),
    ):
        if bounds is None:
            continue
        if not isinstance(bounds, Mapping) or not set(bounds) <= set(box.names):
            raise malformed(argument, f"must map axes among {list(box.names)} to bounds", bounds)
        limits = (
            integer(bounds.get(name, extent), f"{argument}[{name!r}]", 0, extent + 1) for name, extent in box.axes
        )
        guards.append(Guard(acting, box, tuple(limits)))
    return HierarchicalLayout(layout.source, layout.target, layout.map, tuple(guards))
