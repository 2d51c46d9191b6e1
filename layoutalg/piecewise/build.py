"""Build layouts: from pieces, as full and partial tiles, with padding, as bank maps, as lexicographic optima."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.piecewise import operations
from layoutalg.piecewise.layout import PiecewiseLayout
from layoutalg.piecewise.notation import malformed, prepared
from layoutalg.piecewise.points import VALUE_BITS, check
from layoutalg.piecewise.sets import PointSet
from layoutalg.piecewise.value import Value

PIECES = 1 << 16
"""Limit on the pieces of one layout."""


def from_pieces(
    axes: Sequence[str],
    pieces: Iterable[tuple[str, str | Sequence[str]]],
    params: Sequence[str] = (),
    given: str = "",
    outputs: tuple[str, ...] = (),
) -> PiecewiseLayout:
    """Return the layout of guarded pieces.

    Args:
        axes: Names of the inputs.
        pieces: Pairs (guard, values): conditions on axes and parameters, and one affine expression per output.
        params: Names of the parameters.
        given: Constraints on the parameters.
        outputs: Names of the outputs.

    Example:
        >>> L = from_pieces(("i",), [("0 <= i < N", "2i"), ("N <= i < 2N", "4N - 1 - i")], params=("N",))
        >>> L.graph(N=2)[1].ravel().tolist()
        [0, 2, 5, 4]
    """
    taken: list[str] = []
    for argument, names in (("axes", axes), ("params", params)):
        if not isinstance(names, tuple | list):
            raise check.malformed(argument, "must be identifiers", names)
        for name in names:
            taken.append(check.name(name, argument, taken))
    head, point = f"[{', '.join(params)}] -> ", f"[{', '.join(axes)}]"
    listed = [_piece(entry) for entry in check.entries(pieces, "pieces", PIECES, "must be pairs (guard, values)")]
    if not listed:
        raise check.malformed("pieces", "must contain at least one pair (guard, values)", pieces)
    known = PiecewiseLayout(f"{head}{{ {point} -> [0] }}", given=given)
    parts: list[str] = []
    guards: list[Value] = []
    for index, (guard, values) in enumerate(listed):
        domain = known.restrict(PointSet(f"{head}{{ {point} : {guard} }}")).domain
        if domain.is_empty():
            because = f"no point satisfies the guard {guard!r} of piece {index}"
            witness: dict[str, object] = {"piece": index, "guard": guard}
            raise malformed("LA784", "a guard is never true", guard, because, witness)
        guards.append(domain.value)
        parts.append(f"{point} -> [{', '.join(values)}] : {guard}")
    overlap = operations.overlap(guards)
    if overlap is not None:
        before, index, shared = overlap
        because = f"the guards of pieces {before} and {index} are both true at {shared}"
        where, witness = listed[index][0], {"pieces": (before, index), "at": shared}
        raise malformed("LA783", "two pieces overlap", where, because, witness)
    widths = {len(values) for _, values in listed}
    if len(widths) != 1:
        raise check.malformed("pieces", "must all have the same number of values", sorted(widths))
    return PiecewiseLayout(f"{head}{{ {'; '.join(parts)} }}", outputs, given)


def _piece(entry: object) -> tuple[str, tuple[str, ...]]:
    """Return a checked (guard, values), with no characters that could break out of the piece."""
    guard, values = entry if isinstance(entry, tuple) and len(entry) == 2 else (None, None)
    listed = (values,) if isinstance(values, str) else values
    if not isinstance(listed, (tuple, list)):
        raise check.malformed("a piece", "must be a pair (guard, values) of texts", entry)
    for text in (guard, *listed):
        if any(char in prepared(text, "piece") for char in "{};:[]"):
            because = "it must not contain any of { } [ ] ; :"
            raise malformed("LA780", "a piece must be conditions and values", text, because)
    return str(guard).strip() or "0 = 0", tuple(f"({prepared(text, 'piece')})" for text in listed)


@dataclass(frozen=True, slots=True)
class Tiles:
    """A ragged layout split in two, over the digits of one axis.

    Args:
        full: The layout on full tiles, where the inner digit takes every value.
        partial: The layout on the rest.
        full_domain: Points of the full tiles, on the axes of the original layout.
        partial_domain: The other points.
    """

    full: PiecewiseLayout
    partial: PiecewiseLayout
    full_domain: PointSet
    partial_domain: PointSet


def split(layout: PiecewiseLayout, axis: str, tile: int) -> PiecewiseLayout:
    """Return the layout with one axis split into two digits, ``axis = tile * axis_tile + axis_in``.

    Example:
        >>> split(PiecewiseLayout("[N] -> { [i] -> [i] : 0 <= i < N }"), "i", 4)(i_tile=2, i_in=1, N=12)
        {'y0': 9}
    """
    digits = _digits(layout, axis, tile)
    return layout.after(digits)


def _digits(layout: PiecewiseLayout, axis: str, tile: int) -> PiecewiseLayout:
    """Return the map from digits to the axes of a layout."""
    check.kind(layout, PiecewiseLayout, "layout")
    if not isinstance(axis, str) or axis not in layout.axes:
        raise check.malformed("axis", f"must be one of {list(layout.axes)}", axis)
    tile = _positive("tile", tile)
    names = [part for name in layout.axes for part in ((f"{axis}_tile", f"{axis}_in") if name == axis else (name,))]
    if len({*names, *layout.params}) < len(names) + len(layout.params):
        because = f"the digits {axis}_tile, {axis}_in clash with a name in {[*layout.axes, *layout.params]}"
        raise malformed("LA785", "the names of the digits are taken", layout.text, because)
    values = [f"{tile}*{axis}_tile + {axis}_in" if name == axis else name for name in layout.axes]
    return PiecewiseLayout(f"{{ [{', '.join(names)}] -> [{', '.join(values)}] : 0 <= {axis}_in < {tile} }}")


def full_and_partial_tiles(layout: PiecewiseLayout, axis: str, tile: int) -> Tiles:
    """Split a ragged layout into its full tiles along one axis and the rest.

    Mathematically: with i = T t + r, the full part has the digits (t, r) for which every (t, r') with 0 <= r' < T is in
    the domain (other axes fixed); the partial part has the others. Both parts use digits, so no guard needs a floor.

    Args:
        layout: Any layout; its domain may be ragged at either end or have holes.
        axis: The axis to split.
        tile: T >= 1, in points.

    Example:
        >>> parts = full_and_partial_tiles(PiecewiseLayout("[N] -> { [i] -> [3i] : 0 <= i < N }"), "i", 12)
        >>> parts.full_domain.count(N=50), parts.partial_domain.count(N=50), parts.partial.domain.count(N=48)
        (48, 2, 0)
    """
    digits = _digits(layout, axis, tile)
    whole = layout.after(digits)
    ragged = PointSet.of(operations.partial_tiles(whole.domain.value, layout.axes.index(axis) + 1, int(tile)))
    full, partial = whole.without(ragged), whole.restrict(ragged)
    values = [
        part
        for name in layout.axes
        for part in ((f"floor({name}/{tile})", f"{name} mod {tile}") if name == axis else (name,))
    ]
    cut = PiecewiseLayout(f"{{ [{', '.join(layout.axes)}] -> [{', '.join(values)}] }}").value
    domains = [PointSet.of(operations.domain(operations.within(cut, part.domain.value))) for part in (full, partial)]
    return Tiles(full, partial, domains[0], domains[1])


def padded(layout: PiecewiseLayout, interval: int, padding: int) -> PiecewiseLayout:
    """Return the layout with ``padding`` unused values after every ``interval`` values of its single output.

    Mathematically: v -> v + padding * floor(v / interval).

    Example:
        >>> padded(PiecewiseLayout("{ [i] -> [i] : 0 <= i < 10 }"), 4, 1).table().tolist()
        [0, 1, 2, 3, 5, 6, 7, 8, 10, 11]
    """
    return _mapped(layout, f"v + {_positive('padding', padding, 0)}*floor(v/{_positive('interval', interval)})")


def addresses(layout: PiecewiseLayout, element_bytes: int, base_bytes: int = 0) -> PiecewiseLayout:
    """Return the layout of byte addresses for a layout of element offsets.

    Example:
        >>> addresses(PiecewiseLayout("{ [i] -> [3i] : 0 <= i < 10 }"), 2, 64).at(5)
        94
    """
    size, base = _positive("element_bytes", element_bytes), _positive("base_bytes", base_bytes, 0)
    return _mapped(layout, f"{size}*v + {base}", ("address_bytes",))


def banks(address: PiecewiseLayout, count: int = 32, word_bytes: int = 4) -> PiecewiseLayout:
    """Return the bank of the word at each byte address.

    An element wider than a word starts in this bank and continues in the next ones.

    Args:
        address: A layout whose single output is a byte address, as ``addresses`` returns.
        count: Number of banks.
        word_bytes: Width of a bank.

    Example:
        >>> rows = PiecewiseLayout("[N] -> { [i] -> [33i] : 0 <= i < N }")
        >>> banks(addresses(rows, 4)).graph(N=3)[1].ravel().tolist()
        [0, 1, 2]
    """
    width, count = _positive("word_bytes", word_bytes), _positive("count", count)
    return _mapped(address, f"floor(v/{width}) mod {count}", ("bank",))


def lexmin(points: PointSet) -> PiecewiseLayout:
    """Return the lexicographically least point of a set as a function of the parameters.

    The result is a layout without axes, defined where the set is nonempty.

    Example:
        >>> lexmin(PointSet("[N] -> { [i] : N <= 2i and i < 100 }"))(N=7)
        {'i': 4}
    """
    return _extreme(points, False)


def lexmax(points: PointSet) -> PiecewiseLayout:
    """Return the lexicographically greatest point as a function of the parameters; see ``lexmin``."""
    return _extreme(points, True)


def _extreme(points: PointSet, largest: bool) -> PiecewiseLayout:
    check.kind(points, PointSet, "points")
    found = operations.extreme(points.value, largest)
    if isinstance(found, Value):
        return PiecewiseLayout.of(found, points.axes)
    raise AdmissibilityError(
        Diagnostic(
            code="LA786",
            what="this set has no lexicographic optimum",
            where=(f"{'lexmax' if largest else 'lexmin'}({points.text[:200]})",),
            because=f"it is unbounded {'above' if largest else 'below'}",
            witness={"point": {**found[0], **dict(zip(points.axes, found[1], strict=True))}},
        )
    )


def _mapped(layout: PiecewiseLayout, value: str, outputs: tuple[str, ...] = ()) -> PiecewiseLayout:
    check.kind(layout, PiecewiseLayout, "layout")
    if len(layout.outputs) != 1:
        raise check.malformed("layout", "must have one output", list(layout.outputs))
    step = PiecewiseLayout(f"{{ [v] -> [{value}] }}", outputs=outputs or layout.outputs)
    return step.after(layout)


def _positive(argument: str, value: object, least: int = 1) -> int:
    return check.integer(value, argument, least, 2**VALUE_BITS)
