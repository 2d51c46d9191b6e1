"""Layouts of every family as functions for the stand-alone checker: stages from integers to integers.

The stages are those of ``layoutalg.proofs.checker``. A function also records its digits, from which evidence is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from layoutalg.bridges.digits import swizzle_sources
from layoutalg.bridges.normal import ONE_OF, AnyFamily, normal
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout
from layoutalg.ground.check import Checker
from layoutalg.ground.digits import shared_bits
from layoutalg.ground.layout import read
from layoutalg.ground.listed import ListedLayout
from layoutalg.hierarchy import DigitMap, HierarchicalLayout
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.piecewise.pieces import Form, Piece
from layoutalg.proofs.certify.stages import Function, Stages

check = Checker("LA426", "invalid claim about layouts")


def function(layout: object, argument: str = "f") -> Function:
    """Return a layout of any family as a function of its flat coordinate.

    Args:
        layout: The layout; if piecewise, its domain must be a box from the origin.
        argument: Its name in messages.

    Example:
        >>> import layoutalg as la
        >>> function(la.parse("Sw<1,0,1> o 0 o (2,2):(2,1)")).document()
        {'size': 4, 'stages': [['split', [2, 2]], ['affine', [[2, 1]], [0]], ['xor', [1, 3], 0]]}
    """
    return _closed(_layout(layout, argument), argument)


def functions(f: object, g: object) -> tuple[Function, Function]:
    """Return two layouts as functions on the same kind of domain.

    The domain is flat coordinates; if one layout is piecewise and partial or parametric, it is all parameters, by name,
    and all coordinates, by position.
    """
    layouts = [_layout(layout, argument) for argument, layout in (("f", read(f, like=g)), ("g", read(g, like=f)))]
    if any(isinstance(layout, PiecewiseLayout) and not layout.is_total for layout in layouts):
        opened = [layout for layout in layouts if isinstance(layout, PiecewiseLayout)]
        if len(opened) < 2:
            rule = "must be piecewise because the other layout is partial or parametric"
            raise check.malformed("f" if layouts[0] not in opened else "g", rule, type(layouts[0]).__name__)
        names = tuple(dict.fromkeys([name for layout in opened for name in layout.params]))
        left, right = (_opened(layout, names) for layout in opened)
        return left, right
    left, right = (_closed(layout, argument) for layout, argument in zip(layouts, "fg", strict=True))
    return left, right


def _layout(layout: object, argument: str) -> AnyFamily:
    found = normal(read(layout))
    if found is None:
        raise check.malformed(argument, f"must be a {ONE_OF}", layout)
    return found


def _closed(layout: AnyFamily, argument: str) -> Function:
    """Return a layout as a function of its flat coordinate."""
    if isinstance(layout, CuteLayout):
        extents, strides = [list(part) for part in zip(*layout.flat, strict=True)] if layout.flat else ([], [])
        return Function(_strided(extents, strides, 0), layout.size, tuple(extents))
    if isinstance(layout, ComposedLayout):
        return _composed(layout)
    if isinstance(layout, LinearLayout):
        stages: Stages = [["xor", list(layout.columns), layout.constant]]
        return Function(stages, layout.size, (2,) * layout.in_bits)
    if isinstance(layout, IntegerLayout):
        return _integer(layout)
    if isinstance(layout, HierarchicalLayout):
        return _hierarchical(layout)
    if isinstance(layout, ListedLayout):
        return Function([["table", list(layout.values)]], layout.size, (layout.size,))
    if not layout.is_total:
        raise check.malformed(argument, "must be total on a box", str(layout)[:200])
    extents = [extent for _, extent in layout.inputs]
    whole = _pieces(layout.value.pieces, max(1, len(extents)), range(len(extents)))
    start: Stages = [["split", extents]] if extents else []
    return Function(start + whole, layout.size, tuple(extents), outputs=len(layout.outputs))


def _strided(extents: Sequence[int], strides: Sequence[int], offset: int) -> Stages:
    if not extents:
        return [["affine", [[0]], [offset]]]
    return [["split", list(extents)], ["affine", [list(strides)], [offset]]]


def _composed(layout: ComposedLayout) -> Function:
    flat = layout.base.flat
    extents, strides = [extent for extent, _ in flat], [stride for _, stride in flat]
    *outer, (_, offset) = layout.stages
    stages = _strided(extents, strides, offset)
    for place, (swizzle, _) in enumerate(reversed(layout.stages)):
        if swizzle.bits:
            stages.append(swizzled(swizzle))
        if place < len(outer) and outer[-1 - place][1]:
            stages.append(["affine", [[1]], [outer[-1 - place][1]]])
    return Function(stages, layout.size, tuple(extents))


def swizzled(swizzle: Swizzle) -> list[Any]:
    """Return the stage of a swizzle, which does not change bits above its period.

    Example:
        >>> swizzled(Swizzle(1, 0, 2))
        ['xor', [1, 2, 5], 0]
    """
    columns = [1 << bit for bit in range(swizzle.period.bit_length() - 1)]
    for target, source in swizzle_sources(swizzle).items():
        columns[source] ^= 1 << target
    return ["xor", columns, 0]


def _integer(layout: IntegerLayout) -> Function:
    extents = [extent for _, extent in layout.inputs]
    rows = [list(row) or [0] for row in layout.matrix]
    stages: Stages = [["split", extents]] if extents and layout.size else []
    if extents and not layout.size:  # no point, nothing to split
        rows = [[0] for _ in rows]
    stages.append(["affine", rows, list(layout.offset)])
    moduli = [modulus for _, modulus in layout.outputs]
    if any(moduli):
        stages.append(["mod", moduli])
    return Function(stages, layout.size, tuple(extents), outputs=len(rows))


def _hierarchical(layout: HierarchicalLayout) -> Function:
    value, digits = _bijection(layout.map)
    if not layout.guards:
        return Function(value, layout.size, digits)
    parts: list[Stages] = [value]
    constraints: list[list[Any]] = []
    count = 1 + sum(len(guard.bounds) for guard in layout.guards)
    for guard in layout.guards:
        start = 1 + sum(len(part[-1][1]) for part in parts[1:])
        image, more = _bijection(guard.map)
        extents = [extent for _, extent in guard.box.axes]
        parts.append([*image, ["split", extents]])
        for place, bound in enumerate(guard.bounds):
            constraints.append([_unit(count, start + place, -1), bound - 1, ">="])
        digits = max(digits, more, key=len)
    stages: Stages = [["fork", *parts], ["pieces", [[[], constraints, [[_unit(count, 0, 1), 0]]]]]]
    return Function(stages, layout.size, digits)


def _unit(count: int, place: int, value: int) -> list[int]:
    return [value if index == place else 0 for index in range(count)]


def _bijection(mapping: Any) -> tuple[Stages, tuple[int, ...]]:
    """Return the stages of a digit map or a table, and its digits."""
    if not isinstance(mapping, DigitMap):
        return [["table", list(mapping.values)]], (mapping.size,)
    columns = mapping.columns
    if columns is not None and not mapping.is_plain:
        return [["xor", list(columns), mapping.offset]], (2,) * len(columns)
    extents = [extent for extent, _ in mapping.modes]
    strides = [stride if isinstance(stride, int) else 0 for _, stride in mapping.modes]
    constant = sum(-stride * (extent - 1) for extent, stride in zip(extents, strides, strict=True) if stride < 0)
    if mapping.is_plain:
        return _strided(extents, strides, constant), tuple(extents)
    return _mixed(mapping, extents), tuple(extents)


def _mixed(mapping: DigitMap, extents: list[int]) -> Stages:
    """Return the stages of a digit map with shared bits and digits that are not powers of two.

    The source bits that flip shared bits, packed into one number, are mapped by a matrix over F2; the image bits have
    the weights of the target.
    """
    shared = sorted(shared_bits(mapping.modes))
    plain, gathered, constant = [0] * len(extents), [0] * len(extents), 0
    columns: list[int] = []
    for place, (extent, stride) in enumerate(mapping.modes):
        weights = (stride,) if isinstance(stride, int) else stride
        if set(weights) <= set(shared):
            gathered[place] = 1 << len(columns)
            columns.append(sum(1 << shared.index(weight) for weight in weights))
        elif isinstance(stride, int):
            plain[place] = stride
            constant -= min(stride, 0) * (extent - 1)
    flips = sum(1 << shared.index(weight) for weight in mapping.flips)
    mixed: Stages = [["affine", [gathered], [0]], ["xor", columns, flips], ["split", [2] * len(shared)]]
    return [
        ["split", extents],
        ["fork", [["affine", [plain], [constant]]], mixed],
        ["affine", [[1, *shared]], [0]],
    ]


def _opened(layout: PiecewiseLayout, names: tuple[str, ...]) -> Function:
    """Return a partial layout as a function of the parameters ``names`` and its coordinates."""
    count = len(names) + len(layout.axes)
    places = [names.index(name) for name in layout.params] + list(range(len(names), count))
    stages = _pieces(layout.value.pieces, count, places)
    return Function(stages, None, inputs=count, outputs=len(layout.outputs))


def _pieces(whole: Sequence[Piece], count: int, places: Sequence[int]) -> Stages:
    """Return the ``pieces`` stage of a function of ``count`` numbers; ``places`` are the positions of its inputs."""
    return [["pieces", [_piece(region, part, places, count) for part in whole for region in part.regions]]]


def _piece(region: Any, part: Any, order: Sequence[int], count: int) -> list[Any]:
    """Return one region with its values; fractions become floors, because values are integers."""
    floors: list[list[Any]] = []

    def added(own: Iterable[Form]) -> list[int]:
        """Append floors; return the position of each among all known numbers."""
        at: list[int] = []
        for form in own:
            floors.append([*line(form, at), form.denominator])
            at.append(count + len(floors) - 1)
        return at

    def line(form: Form, at: Sequence[int]) -> list[Any]:
        """Return the numerator of a form over the inputs and all floors so far."""
        row = [0] * (count + len(floors))
        for place, coefficient in zip(order, form.dims, strict=True):
            row[place] += coefficient
        for place, coefficient in zip(at, form.floors, strict=False):
            row[place] += coefficient
        return [row, form.constant]

    where = added(region.floors)
    tests: list[tuple[list[Any], str]] = [
        (line(form, where), "=" if equal else ">=") for form, equal in region.constraints
    ]
    values: list[list[Any]] = []
    for own, form in part.outputs:
        at = added(own)
        if form.denominator != 1:
            floors.append([*line(form, at), form.denominator])
            values.append([_unit(count + len(floors), count + len(floors) - 1, 1), 0])
        else:
            values.append(line(form, at))
    width = count + len(floors)
    constraints = [[_wide(row, width), constant, relation] for (row, constant), relation in tests]
    return [floors, constraints, [[_wide(row, width), constant] for row, constant in values]]


def _wide(row: Sequence[int], width: int) -> list[int]:
    return [*row, *([0] * (width - len(row)))]
