"""Strided layouts and swizzles: complements, inverses, affine forms, texts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

from laws import Row, tabled
from layoutalg.cute import (
    ComposedLayout,
    CoordinateLayout,
    CuteLayout,
    E,
    Morphism,
    Swizzle,
    ceil_div,
    complement,
    make_identity_layout,
    unflatten,
)
from layoutalg.cute.fit import affine, strided_form
from layoutalg.cute.inttuple import IntTuple, flatten
from layoutalg.cute.layout import from_flat
from layoutalg.cute.notation import parse_cute, parse_morphism
from layoutalg.cute.swizzle import IDENTITY, Cute, Stages
from layoutalg.f2.matrix import apply
from layoutalg.ground.errors import AdmissibilityError, LayoutError, RepresentabilityError

LAWS: list[Row] = []
law = partial(tabled, LAWS)

_SWIZZLES = (Swizzle(1, 0, 1), Swizzle(2, 0, 2), Swizzle(1, 1, -2), Swizzle(2, 1, 3))
_BASES = (
    CuteLayout((4, 4)), CuteLayout((4, 4), (4, 1)), CuteLayout((3, 4), (4, 1)), CuteLayout((2, (2, 3)), (2, (1, 8))),
    CuteLayout(6, 3), CuteLayout((4, 2), (-1, 4)), CuteLayout((2, 4), (0, 2)), CuteLayout(1, 0),
)  # fmt: skip


_STACKS: tuple[Stages, ...] = (
    *[((swizzle, offset),) for swizzle in _SWIZZLES for offset in (0, 3, 8)],
    ((IDENTITY, 5),),
    ((IDENTITY, 5), (Swizzle(1, 0, 1), 2)),
    ((Swizzle(1, 0, 1), 4), (Swizzle(2, 0, 2), 1)),
    ((Swizzle(2, 0, 2), 0), (Swizzle(2, 0, 2), 0)),
)


_CASES = "16 stacks of at most two swizzles over 8 layouts"


def _layout(stages: Stages, base: CuteLayout) -> ComposedLayout:
    found: Cute = base
    for swizzle, offset in reversed(stages):
        found = ComposedLayout(swizzle, offset, found)
    return found  # type: ignore[return-value]


def every_stack() -> Iterator[ComposedLayout]:
    """Yield every stack over every layout."""
    return (_layout(stages, base) for stages, base in product(_STACKS, _BASES))


def _mixed_radix(run: Sequence[int]) -> bool:
    """The longest arithmetic beginning is the first digit of every form, if it divides; else there is none."""
    if len(run) == 1:
        return run[0] == 0
    count = next((i for i, value in enumerate(run) if value != i * run[1]), len(run))
    whole = len(run) % count == 0
    rest = run[::count]
    return (
        whole
        and all(value == rest[i // count] + i % count * run[1] for i, value in enumerate(run))
        and (count == len(run) or _mixed_radix(rest))
    )


def strided_on(values: Sequence[int], extents: Sequence[int]) -> bool:
    """Return whether a function adds up over its modes and is mixed-radix on each: decided by its values alone."""
    weights = [math.prod(extents[:place]) for place in range(len(extents))]
    runs = [
        [values[weight * i] - values[0] for i in range(extent)] for weight, extent in zip(weights, extents, strict=True)
    ]
    sums = [sum(parts[::-1]) for parts in product(*runs[::-1])]
    return values[0] == 0 and sums == list(values) and all(_mixed_radix(run) for run in runs)


@law("composed.strided", every_stack, 128, _CASES)
def _plain(layout: ComposedLayout) -> str | None:
    """strided_form is shape:stride with the values of the stack, and is refused exactly where there is none."""
    values = layout.table().tolist()
    exists = strided_on(values, [extent for extent, _ in layout.base.flat])
    try:
        found = strided_form(layout, "a law")
    except RepresentabilityError:
        return "a strided function is refused" if exists else None
    return None if exists and found.table().tolist() == values else "the layout is another function"


_SMALL = "all swizzles with base + bits + |shift| <= 7"


def _every_swizzle() -> Iterator[Swizzle]:
    yield Swizzle(0, 0, 0)
    for bits in range(1, 8):
        for base in range(8 - bits):
            for size in range(bits, 8 - bits - base):
                yield from [Swizzle(bits, base, shift) for shift in (size, -size)]


@law("swizzle.matrix", _every_swizzle, 69, f"{_SMALL}, x < 256")
def _by_matrix(swizzle: Swizzle) -> str | None:
    """Sw is the F2 matrix of its columns: apply(matrix_columns(n), x) = Sw(x) for x < 2^n."""
    columns = swizzle.matrix_columns(8)
    wrong = next((x for x in range(256) if apply(columns, x) != swizzle(x)), None)
    return None if wrong is None else f"at {wrong}"


@law("swizzle.period", _every_swizzle, 69, f"and P is the least one: {_SMALL}")
def _least_period(swizzle: Swizzle) -> str | None:
    def fits(step: int) -> bool:
        return all(swizzle(x + step) == swizzle(x) + step for x in range(128))

    least = next(step for step in range(1, 129) if fits(step))
    return None if least == swizzle.period else f"the least period is {least}"


Shaped = tuple[CuteLayout, tuple[int, int]]


def _shaped() -> Iterator[Shaped]:
    layouts = [CuteLayout(extent, stride) for extent in (1, 2, 3, 4) for stride in (1, 2, 4)]
    return product(layouts, product(range(1, 9), range(1, 7)))


@law("complement.shape", _shaped, 576, "12 layouts, shapes to (8,6)")
def _by_shape(case: Shaped) -> str | None:
    """complement(A, S) for a shape S counts whole outermost steps mode by mode, and is refused exactly where these do
    not cover it.
    """
    layout, shape = case
    step = layout.size * layout.flat[0][1] if layout.size > 1 else 1
    steps = math.prod(flatten(ceil_div(shape, step)))
    try:
        found = complement(layout, shape)
    except LayoutError:
        return None if steps * step < math.prod(shape) else "a shape that is covered is refused"
    if steps * step < math.prod(shape):
        return "the shape is not covered"
    return None if found == complement(layout, steps * step) else "the outermost steps are not counted mode by mode"


_BOX = "layouts of at most 2 modes with extents 1..4 and strides -2..5"


def _layouts() -> Iterator[CuteLayout]:
    for count in (1, 2):
        for shape, stride in product(product(range(1, 5), repeat=count), product(range(-2, 6), repeat=count)):
            yield CuteLayout(shape, stride)


@law("inverse.two_sided", _layouts, 1056, f"all {_BOX}")
def _both_sides(layout: CuteLayout) -> str | None:
    values = layout.table().tolist()
    onto = sorted(values) == list(range(layout.size))
    try:
        found = layout.inverse().table().tolist()
    except AdmissibilityError:
        return "a bijection is refused" if onto else None
    if not onto:
        return "an inverse of what is no bijection"
    same = [found[value] for value in values] == list(range(layout.size)) == [values[i] for i in found]
    return None if same else "the inverse does not undo the layout"


@law("common.affine", every_stack, 128, "16 stacks over 8 layouts")
def _over_f2(layout: Cute) -> str | None:
    """affine(L) is the map x -> M x xor c over F2 of a layout whose size is a power of two, or there is none."""
    if layout.size & (layout.size - 1):
        return None if affine(layout) is None else "a form of a size that is no power of two"
    values = layout.table().tolist()
    bits = [values[1 << k] ^ values[0] for k in range(layout.size.bit_length() - 1)]
    exists = all(apply(bits, x) ^ values[0] == value for x, value in enumerate(values))
    found = affine(layout)
    if found is None:
        return "an affine map is not found" if exists else None
    return None if exists and (list(found[0]), found[1]) == (bits, values[0]) else "the columns are others"


def _nested_layouts() -> Iterator[CuteLayout]:
    shapes: tuple[IntTuple, ...] = (6, (2, 3), (3, 1, 2), ((2, 2), 3), (2, (3, (1, 2))), ((3,), (2, 2)), (2, 3, 2, 2))
    for shape in shapes:
        count = len(flatten(shape))
        for stride in product((0, 1, -2, 6), repeat=count):
            flat = from_flat(tuple(zip(flatten(shape), stride, strict=True)))
            yield unflatten(flat, shape) if isinstance(shape, tuple) else flat


def _values() -> Iterator[Any]:
    yield from _nested_layouts()
    for layout in (CuteLayout((4, (2, 2)), (1, (8, -4))), CuteLayout((4,)), CuteLayout(0, 3), CuteLayout(((), 4))):
        yield layout
        for swizzle in (Swizzle(0, 0, 0), Swizzle(2, 1, 3), Swizzle(1, 0, -1)):
            yield from [ComposedLayout(swizzle, offset, layout) for offset in (0, 7, -7)]
            yield ComposedLayout(Swizzle(1, 4, 2), 16, ComposedLayout(swizzle, 5, layout))
    yield from [Swizzle(3, 4, 3), Swizzle(3, 4, 3, "byte"), Swizzle(0, 2, -5), Swizzle(1, 0, -1, "byte")]
    yield from [make_identity_layout(shape) for shape in (4, (4, 8), (4, (2, 3)))]
    yield CoordinateLayout((4, 8), (E(1), 2 * E(0) - 3 * E(1)))
    yield CoordinateLayout(4, E(0), (0, 0))
    yield from [Morphism((4, (2, 3)), (3, (4, 2)), (1, 2, 0)), Morphism((6, 2), (6, 2), (0, None), (1, 10))]
    yield from [Morphism(4, (4, 3), (0,)), Morphism.identity(())]


@law("notation.round_trip", _values, 789, "layouts and stacks of every kind")
def _read_back(value: Any) -> str | None:
    """Every layout, swizzle and morphism is read back from the text it writes."""
    text = str(value)
    found = parse_morphism(text) if isinstance(value, Morphism) else parse_cute(text)
    return None if found == value else f"{text} is read as {found}"
