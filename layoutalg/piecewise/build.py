"""Layouts from pieces, ragged domains cut into full and partial tiles, padding, bank maps, least points.

Main definitions: ``from_pieces``, ``full_and_partial_tiles``, ``Tiles``, ``split``, ``padded``, ``addresses``,
``banks``, ``common_values``, ``lexmin``, ``lexmax``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from layoutalg.ground.errors import AdmissibilityError, Diagnostic, shown
from layoutalg.piecewise import functions, regions
from layoutalg.piecewise.layout import PiecewiseLayout
from layoutalg.piecewise.notation import malformed, prepared
from layoutalg.piecewise.points import VALUE_BITS, check
from layoutalg.piecewise.sets import PointSet


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

    Raises: MalformedError: LA783, LA784, LA780, LA781, LA782, LA785.

    Example:
        >>> L = from_pieces(("i",), [("0 <= i < N", "2i"), ("N <= i < 2N", "4N - 1 - i")], params=("N",))
        >>> L.graph(N=2)[1].ravel().tolist()
        [0, 2, 5, 4]
    """
    for argument, names in (("axes", axes), ("params", params)):
        if not isinstance(names, tuple | list) or not all(
            isinstance(name, str) and name.isidentifier() for name in names
        ):
            raise malformed(
                "LA785", "these are not names", argument, f"{argument} must be identifiers, not {shown(names)}"
            )
    if len({*axes, *params}) < len(axes) + len(params):
        because = f"a name may occur once in {[*axes, *params]}"
        raise malformed("LA785", "two axes or parameters have one name", "axes", because)
    head, point = f"[{', '.join(params)}] -> ", f"[{', '.join(axes)}]"
    if not isinstance(pieces, Iterable):
        raise malformed(
            "LA785", "there are no pieces", "pieces", f"pieces must be pairs (guard, values), not {shown(pieces)}"
        )
    listed = [_piece(entry) for entry in pieces]
    if not listed:
        raise malformed("LA785", "there are no pieces", "pieces", "pieces must hold at least one (guard, values)")
    known = PiecewiseLayout(f"{head}{{ {point} -> [0] }}", given=given)
    parts: list[str] = []
    guards: list[str] = []
    for index, (guard, values) in enumerate(listed):
        domain = known.restrict(PointSet(f"{head}{{ {point} : {guard} }}")).domain
        if domain.is_empty():
            because = f"no point satisfies the guard {guard!r} of piece {index}"
            witness: dict[str, object] = {"piece": index, "guard": guard}
            raise malformed("LA784", "a guard is inconsistent", guard, because, witness)
        guards.append(domain.text)
        parts.append(f"{point} -> [{', '.join(values)}] : {guard}")
    overlap = regions.overlap(guards, tuple(axes))
    if overlap is not None:
        before, index, shared = overlap
        because = f"the guards of pieces {before} and {index} both hold at {shared}"
        where, witness = listed[index][0], {"pieces": (before, index), "at": shared}
        raise malformed("LA783", "two pieces overlap", where, because, witness)
    widths = {len(values) for _, values in listed}
    if len(widths) != 1:
        because = f"the pieces have {sorted(widths)} values"
        raise malformed("LA785", "the pieces have different outputs", "pieces", because)
    return PiecewiseLayout(f"{head}{{ {'; '.join(parts)} }}", outputs, given)


def _piece(entry: object) -> tuple[str, tuple[str, ...]]:
    """Return a checked (guard, values), each a text that cannot close a bracket it did not open."""
    if not isinstance(entry, tuple) or len(entry) != 2:
        raise malformed("LA785", "this is not a piece", entry, "a piece is a pair (guard, values)")
    guard, values = entry
    listed = (values,) if isinstance(values, str) else values
    if not isinstance(listed, (tuple, list)):
        raise malformed("LA785", "this is not a piece", entry, "values must be texts")
    for text in (guard, *listed):
        if any(char in prepared(text, "piece") for char in "{};:[]"):
            raise malformed(
                "LA780", "a piece must be conditions and values", text, "it may not hold any of { } [ ] ; :"
            )
    return guard.strip() or "0 = 0", tuple(f"({prepared(text, 'piece')})" for text in listed)


@dataclass(frozen=True, slots=True)
class Tiles:
    """A ragged layout in two parts over the digits of one axis.

    Args:
        full: On full tiles only: every value of the inner digit is there.
        partial: On the rest.
        full_domain: Points of the full tiles, on the axes of the layout that was cut.
        partial_domain: The other points.
    """

    full: PiecewiseLayout
    partial: PiecewiseLayout
    full_domain: PointSet
    partial_domain: PointSet


def split(layout: PiecewiseLayout, axis: str, tile: int) -> PiecewiseLayout:
    """Return the layout with one axis as two digits, ``axis = tile * axis_tile + axis_in``.

    Raises: MalformedError: LA785.

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
        raise malformed(
            "LA785", "this is not an axis", layout.text, f"the axes are {list(layout.axes)}, not {shown(axis)}"
        )
    _positive("tile", tile)
    names = [part for name in layout.axes for part in ((f"{axis}_tile", f"{axis}_in") if name == axis else (name,))]
    if len({*names, *layout.params}) < len(names) + len(layout.params):
        because = f"the digits {axis}_tile, {axis}_in would repeat a name of {[*layout.axes, *layout.params]}"
        raise malformed("LA785", "the digits have no names of their own", layout.text, because)
    values = [f"{int(tile)}*{axis}_tile + {axis}_in" if name == axis else name for name in layout.axes]
    return PiecewiseLayout(f"{{ [{', '.join(names)}] -> [{', '.join(values)}] : 0 <= {axis}_in < {int(tile)} }}")


def full_and_partial_tiles(layout: PiecewiseLayout, axis: str, tile: int) -> Tiles:
    """Cut a ragged layout into its full tiles along one axis and the rest.

    Mathematically: with i = T t + r, the full tiles hold the digits (t, r) for which every (t, r') with 0 <= r' < T is
    in the domain (the other axes fixed); the partial ones hold the others. Both parts are on digits, so no guard needs
    a floor.

    Args:
        layout: Any layout; its domain may be ragged at either end or have holes.
        axis: The axis to cut.
        tile: T >= 1, in points.

    Raises: MalformedError: LA785. BudgetError: LA222.

    Example:
        >>> parts = full_and_partial_tiles(PiecewiseLayout("[N] -> { [i] -> [3i] : 0 <= i < N }"), "i", 12)
        >>> parts.full_domain.count(N=50), parts.partial_domain.count(N=50), parts.partial.domain.count(N=48)
        (48, 2, 0)
    """
    digits = _digits(layout, axis, tile)
    whole = layout.after(digits)
    ragged = PointSet(regions.partial_tiles(whole.domain.text, layout.axes.index(axis) + 1, int(tile)))
    full, partial = whole.without(ragged), whole.restrict(ragged)
    domains = [PointSet(functions.image_of(digits.text, part.domain.text)) for part in (full, partial)]
    plain = [layout.restrict(domain).domain for domain in domains]
    return Tiles(full, partial, plain[0], plain[1])


def padded(layout: PiecewiseLayout, interval: int, padding: int) -> PiecewiseLayout:
    """Return the layout with ``padding`` unused places after every ``interval`` places of its one output.

    Mathematically: v -> v + padding * floor(v / interval).

    Raises: MalformedError: LA785.

    Example:
        >>> padded(PiecewiseLayout("{ [i] -> [i] : 0 <= i < 10 }"), 4, 1).table().tolist()
        [0, 1, 2, 3, 5, 6, 7, 8, 10, 11]
    """
    _positive("interval", interval)
    _positive("padding", padding, 0)
    return _mapped(layout, f"v + {int(padding)}*floor(v/{int(interval)})")


def addresses(layout: PiecewiseLayout, element_bytes: int, base_bytes: int = 0) -> PiecewiseLayout:
    """Return the byte address of every point, given the layout of element offsets.

    Raises: MalformedError: LA785.

    Example:
        >>> addresses(PiecewiseLayout("{ [i] -> [3i] : 0 <= i < 10 }"), 2, 64).at(5)
        94
    """
    _positive("element_bytes", element_bytes)
    _positive("base_bytes", base_bytes, 0)
    return _mapped(layout, f"{int(element_bytes)}*v + {int(base_bytes)}", ("address_bytes",))


def banks(address: PiecewiseLayout, count: int = 32, word_bytes: int = 4) -> PiecewiseLayout:
    """Return the bank of the word that holds each byte address.

    An element wider than a word starts in this bank; its further words lie in the banks that follow.

    Args:
        address: A layout whose one output is a byte address, as ``addresses`` returns.
        count: Number of banks.
        word_bytes: Width of a bank, in bytes.

    Raises: MalformedError: LA785.

    Example:
        >>> rows = PiecewiseLayout("[N] -> { [i] -> [33i] : 0 <= i < N }")
        >>> banks(addresses(rows, 4)).graph(N=3)[1].ravel().tolist()
        [0, 1, 2]
    """
    _positive("count", count)
    _positive("word_bytes", word_bytes)
    return _mapped(address, f"floor(v/{int(word_bytes)}) mod {int(count)}", ("bank",))


def common_values(first: PiecewiseLayout, second: PiecewiseLayout) -> PointSet:
    """Return the values that both layouts take; outputs correspond by position.

    Mathematically: the intersection of the images, as a set: ``is_empty`` says whether the layouts are disjoint,
    ``sample`` gives a common value, ``count`` their number.

    Raises: MalformedError: LA785. BudgetError: LA222.

    Example:
        >>> rows, columns = (PiecewiseLayout(f"{{ [i] -> [{step}i] : 0 <= i < 8 }}") for step in (3, 5))
        >>> common_values(rows, columns).points().ravel().tolist()
        [0, 15]
    """
    check.kind(first, PiecewiseLayout, "first")
    check.kind(second, PiecewiseLayout, "second")
    return first.image.intersect(second.image)


def lexmin(points: PointSet) -> PiecewiseLayout:
    """Return the lexicographically least point of a set as a function of the parameters.

    Returns:
        A layout without axes, defined where the set has points.

    Raises: AdmissibilityError: LA786. MalformedError: LA785.

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
    found = regions.extreme(points.text, largest)
    if isinstance(found, str):
        return PiecewiseLayout(found, points.axes)
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
        because = f"it must have one output, not {list(layout.outputs)}"
        raise malformed("LA785", "this layout does not have one output", layout.text, because)
    step = PiecewiseLayout(f"{{ [v] -> [{value}] }}", outputs=outputs or layout.outputs)
    return step.after(layout)


def _positive(argument: str, value: object, least: int = 1) -> None:
    check.integer(value, argument, least, 2**VALUE_BITS)
