"""What layouts take to 0, what two have in common, and the numbers that other operations rest on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from layoutalg.cute import (
    CuteLayout,
    ceil_div,
    complement,
    domain_distribute,
    filter_zeros,
    max_alignment,
    max_common_layout,
    nullspace,
    upcast,
)
from layoutalg.cute import filter as filtered
from layoutalg.cute.complement import still_digits
from layoutalg.cute.factor import max_residue, neighbours
from layoutalg.cute.fit import affine
from layoutalg.cute.inttuple import steps_over
from layoutalg.cute.swizzle import Cute
from layoutalg.f2 import matrix
from layoutalg.ground.digits import Flat, evaluate, merge
from layoutalg.ground.errors import AdmissibilityError, LayoutError
from layoutalg.proofs.laws.composed import every_stack
from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.places import digits_of, index, modes
from layoutalg.proofs.laws.trial import Trial

_BOX = "layouts of at most 2 modes with extents 1..4 and strides 0..4"


def _still(trial: Trial, find: Callable[[Flat], Flat] = still_digits) -> None:
    flat = modes(trial, 2)
    extents = [extent for extent, _ in flat]
    trial.assume(extents[0] >= 2, extents[1] >= 2)
    found = find(flat)
    digits = digits_of(trial, "i", [extent for extent, _ in found])
    i = index(trial, digits, [extent for extent, _ in found]) if found else 0
    c = evaluate(found, i)
    if len(found) == 1 and found[0][0] == extents[0] * extents[1]:
        trial.claim(evaluate(flat, c) == 0, "L is 0 everywhere")
        return
    at = [0, 0]
    if found:
        at[0 if found[0][1] == 1 else 1] = digits[0]
    trial.divides(c, extents[0], at[1], at[0])
    trial.divides(at[1], extents[1], 0, at[1])
    trial.claim(evaluate(flat, c) == 0, "L(R(i)) = 0")


def _from_one(flat: Flat) -> Flat:
    """Leave the modes that move out of the weights."""
    return merge(tuple([(extent, 1) for extent, stride in merge(flat) if stride == 0][:1]))


def _layouts() -> Iterator[CuteLayout]:
    for count in (1, 2):
        for shape, stride in product(product(range(1, 5), repeat=count), product(range(5), repeat=count)):
            yield CuteLayout(shape, stride)


def _kernel(layout: CuteLayout, find: Callable[[CuteLayout], CuteLayout] = nullspace) -> str | None:
    found = find(layout)
    places = found.table().tolist()
    if len(set(places)) != len(places) or any(layout(place) for place in places):
        return "the coordinates are not distinct, or the layout is not 0 there"
    return None if found.size * filtered(layout).size == layout.size else "there are more or fewer than still modes say"


def _values_of(layout: CuteLayout) -> CuteLayout:
    """Take the modes that move."""
    return filtered(layout)


def _filtered(layout: CuteLayout, drop: Callable[[CuteLayout], CuteLayout] = filtered) -> str | None:
    found, kept = drop(layout), filter_zeros(layout)
    times = math.prod(extent for extent, stride in layout.flat if stride == 0)
    values = Counter(layout.table().tolist())
    if {value: count * times for value, count in Counter(found.table().tolist()).items()} != values:
        return "the offsets are others, or hit otherwise often"
    same = kept.stride == layout.stride and set(kept.table().tolist()) == set(values)
    return None if same else "filter_zeros changes strides or offsets"


def _distinct(layout: CuteLayout) -> CuteLayout:
    """Drop every mode that does not bring a new offset."""
    return filtered(CuteLayout(layout.shape, tuple([0 if stride == 1 else stride for _, stride in layout.flat])))


Pair = tuple[CuteLayout, CuteLayout]


def _pairs() -> Iterator[Pair]:
    each = [layout for layout in _layouts() if 1 not in [extent for extent, _ in layout.flat]][::3]
    return product(each, each)


def _shared(pair: Pair, find: Callable[..., CuteLayout] = max_common_layout) -> str | None:
    first, second = pair
    found = find(first, second)
    values = range(found.size)
    if any(first(found(i)) != i or second(found(i)) != i for i in values):
        return "the layouts differ on the coordinates"
    table = second.table().tolist()
    if len(set(table)) < len(table):
        return None
    places = [table.index(i) if i in table else None for i in range(len(table) + 1)]
    agreed = [p is not None and p < first.size and first(p) == i for i, p in enumerate(places)]
    for size in range(agreed.index(False), found.size, -1):
        if _strided([place for place in places[:size] if place is not None]):
            return "a longer layout is common to both"
    return None


def _strided(values: list[int]) -> bool:
    """Return whether a table is that of some layout: its beginning is the first mode of every form."""
    if len(values) == 1:
        return values[0] == 0
    count = next((i for i, value in enumerate(values) if value != i * values[1]), len(values))
    rest = values[::count]
    whole = len(values) % count == 0 and all(
        v == rest[i // count] + i % count * values[1] for i, v in enumerate(values)
    )
    return whole and (count == len(values) or _strided(rest))


def _of_second(_: CuteLayout, second: CuteLayout) -> CuteLayout:
    """Follow the strides of one layout alone."""
    return max_common_layout(second, second)


Spread = tuple[tuple[int, int], int]


def _spreads() -> Iterator[Spread]:
    return (((a, b), n) for a, b, n in product(range(1, 7), range(1, 7), range(1, 13)))


def _spread(case: Spread, distribute: Callable[..., CuteLayout] = domain_distribute) -> str | None:
    shape, count = case
    size = math.prod(shape)
    try:
        found = distribute(shape, count)
    except AdmissibilityError:
        return "a divisor of the size is refused" if size % count == 0 else None
    values = found.table().tolist()
    if len(values) != count or values != sorted(set(values)) or values[-1] >= size:
        return "these are not that many coordinates in order"
    rest = complement(found, size)
    return None if found.size * rest.size == size else "they do not divide the shape"


def _fewer(shape: tuple[int, int], count: int) -> CuteLayout:
    """Take as many as possible from each mode on its own."""
    return CuteLayout(tuple(math.gcd(extent, count) for extent in shape), (1, shape[0]))


def _aligned(layout: CuteLayout, align: Callable[[CuteLayout], int] = max_alignment) -> str | None:
    def exact(count: int) -> bool:
        try:
            upcast(layout, count)
        except LayoutError:
            return False
        return True

    best = max(count for count in range(1, 18) if exact(count))
    return None if align(layout) == best else "it is not the greatest exact factor"


def _moving() -> Iterator[CuteLayout]:
    return (layout for layout in _layouts() if any(extent > 1 and stride for extent, stride in layout.flat))


def _contiguous(layout: CuteLayout) -> int:
    """Take the extent of the mode of stride 1."""
    return next((extent for extent, stride in layout.flat if stride == 1), 1)


def _over_f2(layout: Cute, form: Callable[[Cute], Any] = affine) -> str | None:
    if layout.size & (layout.size - 1):
        return None if form(layout) is None else "a form of a size that is no power of two"
    values = layout.table().tolist()
    bits = [values[1 << k] ^ values[0] for k in range(layout.size.bit_length() - 1)]
    exists = all(matrix.apply(bits, x) ^ values[0] == value for x, value in enumerate(values))
    found = form(layout)
    if found is None:
        return "an affine map is not found" if exists else None
    return None if exists and (list(found[0]), found[1]) == (bits, values[0]) else "the columns are others"


def _by_bits(layout: Cute) -> Any:
    """Read the columns off the powers of two."""
    values = layout.table().tolist()
    if layout.size & (layout.size - 1):
        return None
    return tuple([values[1 << k] ^ values[0] for k in range(layout.size.bit_length() - 1)]), values[0]


Fraction = tuple[int, int, int]


def _fractions() -> Iterator[Fraction]:
    return ((n, d, limit) for d in range(1, 15) for n in range(d) for limit in range(1, 10))


def _between(case: Fraction, find: Callable[..., Any] = neighbours) -> str | None:
    numerator, denominator, limit = case
    (a, b), (c, d) = find(numerator, denominator, limit)
    inside = a * denominator <= numerator * b and numerator * d < c * denominator
    if not (inside and c * b - a * d == 1 and max(b, d) <= limit < b + d):
        return "these are no neighbours around the fraction"
    residue, at = max_residue(numerator, limit, denominator)
    best = max(numerator * i % denominator for i in range(limit))
    same = residue == best and numerator * at % denominator == best and at < limit
    return None if same else "the greatest residue is another one"


def _rounded(numerator: int, denominator: int, limit: int) -> Any:
    """Round to the fractions with the greatest denominator."""
    low = numerator * limit // denominator
    return (low, limit), (low + 1, limit)


def _least_steps(trial: Trial, steps: Callable[[Any, Any], Any] = steps_over) -> None:
    extent, step = trial.integer("extent"), trial.extent("step")
    count = steps(extent, step)
    trial.claim(count * step >= extent, "the steps cover the extent")
    trial.claim((count - 1) * step < extent, "one step less does not")


Cover = tuple[Any, Any]


def _covers() -> Iterator[Cover]:
    yield from product(range(13), range(1, 8))
    yield from product(product(range(1, 5), range(1, 7)), range(1, 13))
    yield from product(product((4, 6), (3, 5)), product(range(1, 4), repeat=2))


def _covered(case: Cover, divide: Callable[..., Any] = ceil_div) -> str | None:
    shape, divisor = case
    found = divide(shape, divisor)
    if isinstance(shape, int):
        return None if found * divisor >= shape > (found - 1) * divisor else "it is not the least number of steps"
    if isinstance(divisor, int):
        first, second = shape
        whole = (-(-first // divisor), -(-second // -(-divisor // first)))
        return None if found == whole else "the divisor does not go through the modes"
    by_mode = tuple([divide(extent, step) for extent, step in zip(shape, divisor, strict=True)])
    return None if found == by_mode else "it does not divide mode by mode"


def _floor_of(extent: Any, step: Any) -> Any:
    return extent // step


def _floor(shape: Any, divisor: Any) -> Any:
    return shape // divisor if isinstance(shape, int) else ceil_div(shape, divisor)


LAWS = (
    Law(
        "common.nullspace",
        "L(nullspace(L)(i)) = 0 for distinct coordinates, size(L) / size(filter(L)) of them; by induction over modes.",
        ("layoutalg.cute.nullspace", "layoutalg.cute.complement.still_digits"),
        (
            *integers(_still, partial(_still, find=_from_one), "all extents >= 2, all strides; two modes"),
            *enumerated(_layouts, _kernel, partial(_kernel, find=_values_of), f"all {_BOX}", 420),
        ),
    ),
    Law(
        "common.filter",
        "filter(L) has the offsets of L, each hit as often as the modes that move hit it; filter_zeros keeps strides.",
        ("layoutalg.cute.algebra.filter", "layoutalg.cute.filter_zeros", "layoutalg.cute.algebra._without_zeros"),
        enumerated(_layouts, _filtered, partial(_filtered, drop=_distinct), f"all {_BOX}", 420),
        "it drops modes, then coalesces, which coalesce.function proves for all values",
    ),
    Law(
        "common.max_common",
        "a(R(i)) = b(R(i)) = i for R = max_common_layout(a, b), and no longer R has this where b is injective.",
        ("layoutalg.cute.max_common_layout",),
        enumerated(_pairs, _shared, partial(_shared, find=_of_second), f"pairs of every third of the {_BOX}", 6400),
        "where a digit stops agreeing is a search by bisection",
    ),
    Law(
        "common.distribute",
        "domain_distribute(S, N) are N coordinates in order that divide the shape; it exists exactly where N divides "
        "the size.",
        ("layoutalg.cute.domain_distribute",),
        enumerated(_spreads, _spread, partial(_spread, distribute=_fewer), "shapes up to (6,6), N up to 12", 432),
        "greatest common divisors have no form that solvers decide",
    ),
    Law(
        "common.alignment",
        "max_alignment(L) is the greatest N for which upcast(L, N) is exact.",
        ("layoutalg.cute.max_alignment", "layoutalg.cute.recast._alignment"),
        enumerated(_moving, _aligned, partial(_aligned, align=_contiguous), f"{_BOX} that are not constant", 348),
        "greatest common divisors have no form that solvers decide; recast.upcast is proved for all values",
    ),
    Law(
        "common.affine",
        "affine(L) is the map x -> M x xor c over F2 of a layout whose size is a power of two, or there is none.",
        ("layoutalg.cute.fit.affine", "layoutalg.cute.fit.carry_free"),
        enumerated(every_stack, _over_f2, partial(_over_f2, form=_by_bits), "16 stacks over 8 layouts", 128),
        "whether an addition carries is decided bit by bit over the strides of a layout",
    ),
    Law(
        "common.fractions",
        "neighbours(p, q, n) are Farey neighbours around p / q with denominators up to n; max_residue is the greatest "
        "value of p i mod q over i < n.",
        ("layoutalg.cute.factor.neighbours", "layoutalg.cute.factor.max_residue"),
        enumerated(
            _fractions, _between, partial(_between, find=_rounded), "denominators up to 14, limits up to 9", 945
        ),
        "the descent is a loop without a bound on its length",
    ),
    Law(
        "common.ceil_div",
        "ceil_div counts the least number of steps that cover a shape, mode by mode.",
        ("layoutalg.cute.ceil_div", "layoutalg.cute.inttuple.steps_over", "layoutalg.cute.inttuple._ceil_div"),
        (
            *integers(_least_steps, partial(_least_steps, steps=_floor_of), "all extents, all steps >= 1"),
            *enumerated(
                _covers, _covered, partial(_covered, divide=_floor), "extents up to 12, divisors up to 12", 415
            ),
        ),
    ),
)
