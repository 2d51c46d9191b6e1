"""Values of integer layouts: which are taken, how often, at which index, and in which words they are printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.errors import LayoutError, RepresentabilityError
from layoutalg.ground.polynomial_text import polynomial
from layoutalg.ground.verdict import Proved, Refuted, Verdict
from layoutalg.integer.access import access, symbolic_access
from layoutalg.integer.engines import packed
from layoutalg.integer.expression import index_expression
from layoutalg.integer.forms import Index, index_by_strides
from layoutalg.integer.inverse import RightInverse, image_inverse, right_inverse
from layoutalg.integer.layout import IntegerLayout
from layoutalg.integer.reach import covers, injective, kernel_lattice
from layoutalg.proofs.laws.integer_layouts import (
    SMALL,
    Case,
    forgets_offset,
    layouts,
    listed,
    one,
    points_of,
    values_of,
)


def _every(step: int) -> Iterator[Case]:
    yield from list(one())[::step]


Answer = Callable[[IntegerLayout], Verdict]


def _wrong_injective(layout: IntegerLayout) -> Verdict:
    """Look at strides alone."""
    seen = {abs(a) for a in layout.matrix[0]}
    return Proved("strides") if len(seen) == len(layout.matrix[0]) else injective(layout)


def _reach(case: Case, injective: Answer = injective) -> str | None:
    (layout,) = case
    values = values_of(layout)
    verdict = injective(layout)
    if isinstance(verdict, Proved) != (len(set(values)) == len(values)):
        return "injective is wrong"
    if isinstance(verdict, Refuted):
        pair: Any = verdict.witness
        first, second = [tuple(pair[side].values()) for side in ("first", "second")]
        if first == second or layout.value(first) != layout.value(second):
            return "no collision"
    kernel = kernel_lattice(layout)
    for a, b in product(points_of(layout), repeat=2):
        gap = tuple([p - q for p, q in zip(a, b, strict=True)])
        if (layout.value(a) == layout.value(b)) != (gap in kernel):
            return "the kernel lattice is wrong"
    for low, high in ((0, 3), (1, 2)):
        told = covers(layout, {"offset": (low, high)})
        wanted = {(v,) for v in range(low, high)} <= set(values)
        if isinstance(told, Proved) != wanted:
            return "covers is wrong"
        if isinstance(told, Refuted):
            missed: Any = told.witness["missed"]
            if tuple(missed.values()) in values or not low <= missed["offset"] < high:
                return "nothing is missed there"
    return None


def _wrong_index(row: Any, constant: Any, extents: Any) -> Any:
    """Forget where an axis that runs backwards starts."""
    found = index_by_strides(row, constant, extents)
    return Index(found.modes, 0, found.modulus) if isinstance(found, Index) else found


def _indexed(case: Case, index: Callable[..., Any] = index_by_strides) -> str | None:
    (layout,) = case
    values = [value for (value,) in values_of(layout)]
    if layout.moduli[0]:
        return None
    least = min(values)
    values = [value - least for value in values]
    found = index(layout.matrix[0], layout.offset[0] - least, layout.extents)
    if isinstance(found, Index):
        for place in range(len(values)):
            at, rest = found.start, place
            for extent, stride in found.modes:
                rest, digit = divmod(rest, extent)
                at += digit * stride
            if not 0 <= at < len(values) or values[at] != place:
                return "the index of a value is wrong"
        return None
    if sorted(values) == list(range(len(values))):
        return "refused although a bijection"
    if isinstance(found, tuple):
        return None if found[0] != found[1] and values[found[0]] == values[found[1]] else "no collision"
    return None if found not in values or found < 0 else "nothing is missed there"


def _wrong_right(layout: IntegerLayout) -> Any:
    """Read every digit forwards."""
    found = right_inverse(layout)
    return (
        RightInverse(forgets_offset(found.layout), found.values, found.box)
        if isinstance(found, RightInverse)
        else found
    )


def _inverted(case: Case, right: Callable[[IntegerLayout], Any] = right_inverse) -> str | None:
    (layout,) = case
    try:
        found = right(layout)
    except LayoutError:
        return "refused"
    values = set(values_of(layout))
    if isinstance(found, RightInverse):
        for digits in points_of(found.layout):
            if layout.value(found.layout.value(digits)) != found.values.value(digits):
                return "f(R(c)) is not the value"
        found = image_inverse(layout)
    (axis,) = found.layout.axes
    line = np.array(range(-12, 24))
    if set(line[found.layout.contains({axis: line})].tolist()) != {value for (value,) in values}:
        return "the inverse is not defined at exactly the values"
    for (value,) in values:
        at = found.layout(**{axis: value})
        if layout.value([int(at[name]) for name in layout.in_dims]) != (value,):
            return "f(R(y)) is not y"
    return None


def _wrong_access(layout: IntegerLayout) -> Any:
    """Take the run without looking where it starts."""
    return type(found)(found.run, found.alignment, found.run) if (found := access(layout)) else found


def _vectors(case: Case, access: Callable[[IntegerLayout], Any] = access) -> str | None:
    (layout,) = case
    if layout.forms[0][2]:
        return None
    values, found = [value for (value,) in values_of(layout)], access(layout)
    size = len(values)

    def moves(width: int) -> bool:
        starts = range(0, size, width)
        whole = all(values[k : k + width] == list(range(values[k], values[k] + width)) for k in starts)
        return size % width == 0 and whole and all(values[k] % width == 0 for k in starts)

    widest = max([width for width in range(1, size + 1) if moves(width)])
    return None if found.width == widest else "another width"


def _text(case: Case, written: Callable[[IntegerLayout], Any] = index_expression) -> str | None:
    (layout,) = case
    text = written(layout)
    for at, (value,) in zip(points_of(layout), values_of(layout), strict=True):
        if text.evaluate(dict(zip(layout.in_dims, at, strict=True))) != value:
            return "the expression has another value"
    flat = index_expression(layout, "i")
    if not (isinstance(text.check(), Proved) and isinstance(flat.check(), Proved)):
        return "check says otherwise"
    same = all(flat.evaluate({"i": k}) == value for k, (value,) in enumerate(values_of(layout)))
    return None if same else "the expression in the flat index has another value"


def _wrong_inverse(layout: IntegerLayout) -> IntegerLayout:
    """Read digits that run backwards forwards."""
    return forgets_offset(layout.inverse())


def _bijections() -> Iterator[Case]:
    """Layouts moved so that their least value is 0, and layouts modulo their size."""
    for layout in layouts(2, range(1, 5), range(-4, 5)):
        if not layout.moduli[0]:
            yield (IntegerLayout(layout.inputs, layout.outputs, layout.matrix, (-layout.spans()[0][0],)),)
        elif layout.size > 1:
            yield (IntegerLayout(layout.inputs, (("offset", layout.size),), layout.matrix, layout.offset),)


def _undone(case: Case, inverse: Callable[[IntegerLayout], IntegerLayout] = IntegerLayout.inverse) -> str | None:
    (layout,) = case
    values = [value for (value,) in values_of(layout)]
    try:
        found = inverse(layout)
    except RepresentabilityError:
        return None if layout.moduli[0] else "a bijection over Z is refused"
    except LayoutError:
        return "a bijection is refused" if sorted(values) == list(range(len(values))) else None
    back = values_of(found)
    return None if [back[value] for value in values] == [(k,) for k in range(len(values))] else "R(f(i)) is not i"


def _two_outputs() -> Iterator[Case]:
    for rows in product(product(range(-1, 3), repeat=2), repeat=2):
        for m in (0, 3):
            yield (IntegerLayout((("i", 3), ("j", 2)), (("y", m), ("z", 0)), rows, (1, 0)),)


def _wrong_packing(layout: IntegerLayout) -> Any:
    """Add the outputs up."""
    rows = tuple([a + b for a, b in zip(*layout.matrix, strict=True)])
    return ((rows, 0, 0),)


def _packed(case: Case, pack: Callable[..., Any] = packed) -> str | None:
    (layout,) = case
    found = pack(layout)
    if found is None:
        return None
    ((row, constant, modulus),) = found
    one = IntegerLayout(layout.inputs, (("all", modulus),), (row,), (constant,))
    pairs = set(zip(values_of(layout), values_of(one), strict=True))
    same = len(pairs) == len(set(values_of(layout))) == len(set(values_of(one)))
    return None if same else "points share a value on one side alone"


Query = tuple[tuple[Any, ...], tuple[Any, ...], Any, tuple[str, ...]]
_QUERIES: tuple[Query, ...] = (
    ((64, 8), (1, "ld"), 0, ("ld % 8 == 0",)),
    ((8, 4), (1, "ld"), 4, ("ld % 8 == 0",)),
    (("n", 4), (1, "2*n"), 0, ("n % 4 == 0",)),
    ((8, 2), (1, "n*n + n"), 0, ()),
    ((8, "n"), (1, "ld"), "ld", ("ld % 6 == 0",)),
    ((4, 4), ("n", 1), 0, ("n % 2 == 0",)),
)


def _silent(extents: Any, strides: Any, offset: Any, assume: Any) -> Any:
    """Leave the offset out."""
    return symbolic_access(extents, strides, 0 if offset else 8, assume)


def _promised(case: Query, asked: Callable[..., Any] = symbolic_access) -> str | None:
    guaranteed, known = asked(*case).guaranteed, Assumptions(case[3])
    for n, ld in product(range(1, 17), repeat=2):
        sizes = {"n": n, "ld": ld}
        if known.broken_at(sizes):
            continue
        numbers = [[int(polynomial(value).value(sizes)) for value in values] for values in (*case[:2], (case[2],))]
        layout = IntegerLayout.from_strides({f"x{k}": e for k, e in enumerate(numbers[0])}, numbers[1], numbers[2][0])
        if access(layout).width % guaranteed:
            return f"the width is no multiple of {guaranteed} at {sizes}"
    return None


LAWS = (
    listed(
        "integer_values.taken",
        "injective, covers and the kernel lattice say of the values what going through them says.",
        ("reach.injective", "reach.covers", "reach.kernel_lattice"),
        one,
        _reach,
        partial(_reach, injective=_wrong_injective),
        SMALL,
        450,
    ),
    listed(
        "integer_values.index",
        "index_by_strides is the inverse of a form that is a bijection onto 0..size - 1, else shows why it is none.",
        ("forms.index_by_strides",),
        one,
        _indexed,
        partial(_indexed, index=_wrong_index),
        SMALL,
        450,
    ),
    listed(
        "integer_values.right_inverse",
        "f(R(y)) = y for every value y that R is defined at, and the image inverse is defined at all of them.",
        ("inverse.right_inverse", "inverse.image_inverse"),
        partial(_every, 8),
        _inverted,
        partial(_inverted, right=_wrong_right),
        f"every eighth of {SMALL}",
        57,
    ),
    listed(
        "integer_values.vectors",
        "the width of access is the greatest by which the flat index splits into consecutive, aligned vectors.",
        ("access.access",),
        one,
        _vectors,
        partial(_vectors, access=_wrong_access),
        SMALL,
        450,
    ),
    listed(
        "integer_values.expression",
        "the printed index expressions, in the axes and in the flat index, have the layout's value at every point.",
        tuple(
            f"expression.{name}"
            for name in ("index_expression", "evaluate", "IndexExpression.evaluate", "IndexExpression.check")
        ),
        one,
        _text,
        partial(_text, written=lambda layout: index_expression(forgets_offset(layout))),
        SMALL,
        450,
    ),
    listed(
        "integer_values.inverse",
        "R(f(i)) = i for a layout whose values are 0..size - 1, each once; all others are refused.",
        ("layout.IntegerLayout.inverse", "forms.index_by_table"),
        _bijections,
        _undone,
        partial(_undone, inverse=_wrong_inverse),
        "two axes of extents 1..4 and strides -4..4, over Z from 0 on and modulo the size",
        2511,
    ),
    listed(
        "integer_values.packed",
        "two points share all outputs exactly where they share the value of the packed form.",
        ("engines.packed",),
        _two_outputs,
        _packed,
        partial(_packed, pack=_wrong_packing),
        "two outputs, one of them over Z or modulo 3, strides -1..2",
        512,
    ),
    listed(
        "integer_values.symbolic_access",
        "at all sizes that meet the assumptions, the width of the access is a multiple of the guaranteed one.",
        ("access.symbolic_access",),
        lambda: iter(_QUERIES),
        _promised,
        partial(_promised, asked=_silent),
        "6 symbolic accesses at 256 sizes",
        6,
    ),
)
