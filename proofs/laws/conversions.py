"""Conversions between families: when sums are xors, round trips, equality, composition, tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np

from layoutalg import convert
from layoutalg.bridges.composition import compose
from layoutalg.bridges.equal import equivalent
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle, coalesce
from layoutalg.f2 import LinearLayout
from layoutalg.f2.carry import shifted, sum_of_bits
from layoutalg.f2.matrix import apply
from layoutalg.ground.errors import LayoutError, RepresentabilityError
from layoutalg.ground.verdict import Proved
from layoutalg.hierarchy import Box, DigitMap, HierarchicalLayout
from layoutalg.integer import IntegerLayout
from layoutalg.proofs.laws.engines import bit_vectors, enumerated
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.term import every, some
from layoutalg.proofs.laws.trial import Trial

Maps = Callable[..., Any]
_CONVERSIONS = (convert.to_linear, convert.to_cute, convert.to_integer, convert.to_piecewise)


def _carry_free(trial: Trial, sum_of_bits: Maps = sum_of_bits) -> None:
    """Where columns are returned the sum is their xor; where none are, some x with two bits shows it."""
    offset = trial.bits("o", 16)
    addends = [trial.bits(f"a{k}", 16) for k in range(3)]
    found = sum_of_bits(offset, addends)

    def value(x: int) -> Any:
        return sum([addend for k, addend in enumerate(addends) if x >> k & 1], offset)

    if found is None:
        pairs = [(1 << j, 1 << k) for j, k in combinations(range(3), 2)]
        trial.claim(some(*[value(x | y) != value(x) ^ value(y) ^ offset for x, y in pairs]), "some pair carries")
    else:
        same = [value(x) == offset ^ apply(found, x) for x in range(8)]
        trial.claim(every(*same), "the sum is the xor of the columns")


def _strides(_: Any, addends: Sequence[Any]) -> Any:
    """Take the strides themselves for the columns, where they share no bit."""
    return sum_of_bits(0, addends)


def _departs(values: Sequence[int]) -> bool:
    """Whether values are not affine over F2 in the bits of their place."""
    units = [values[0] ^ values[1 << bit] for bit in range(len(values).bit_length() - 1)]
    return any(values[0] ^ apply(units, x) != value for x, value in enumerate(values))


def _shift(case: tuple[tuple[int, int], int, int], shifted: Maps = shifted) -> str | None:
    columns, constant, offset = case
    values = [offset + (apply(columns, x) ^ constant) for x in range(4)]
    found = shifted(columns, constant, offset)
    if found is None:
        return None if _departs(values) else "an affine sum is refused"
    return None if [apply(found[0], x) ^ found[1] for x in range(4)] == values else "the shifted map"


def _added(columns: tuple[int, int], constant: int, offset: int) -> Any:
    """Add the offset to the constant and keep the columns."""
    return columns, constant + offset


def _shift_cases() -> Iterator[tuple[tuple[int, int], int, int]]:
    return (((a, b), c, o) for a, b, c, o in product(range(8), range(8), range(0, 8, 3), range(-4, 8)))


@cache
def _strided() -> tuple[CuteLayout, ...]:
    return tuple(
        [
            CuteLayout((a, b), (d, e))
            for a, b in product((1, 2, 3, 4), repeat=2)
            for d, e in product((-1, 0, 1, 2, 3, 4), repeat=2)
        ]
    )


def _linear(layout: CuteLayout, convert: Maps = convert.to_linear) -> str | None:
    """Exact, or refused with a coordinate where an affine map would differ."""
    values = layout.table().tolist()
    power = len(values).bit_count() == 1 and min(values) >= 0
    try:
        found = convert(layout)
    except RepresentabilityError:
        return "an affine layout is refused" if power and not _departs(values) else None
    return None if found.table().tolist() == values else "other values"


def _by_strides(layout: CuteLayout) -> LinearLayout:
    """Write stride 2^j as the column of each bit, carries or not."""
    if any(extent & (extent - 1) for extent, _ in layout.flat) or any(stride < 0 for _, stride in layout.flat):
        return convert.to_linear(layout)
    columns = tuple([d << bit for extent, d in layout.flat for bit in range(extent.bit_length() - 1)])
    return LinearLayout((("i", len(columns)),), (("offset", 8),), columns)


@cache
def _layouts() -> tuple[Any, ...]:
    """Return layouts of all families that have one output."""
    strided = [each for each in _strided()[::9] if each.size]
    swizzled = [ComposedLayout(Swizzle(b, 0, s), o, L) for L in strided[::5] for b, s, o in ((1, 1, 0), (2, -2, 3))]
    linear = [
        LinearLayout((("i", 2), ("j", 1)), (("o", 3),), columns, c)
        for columns, c in (((1, 2, 4), 0), ((4, 1, 2), 3), ((3, 1, 5), 0), ((0, 1, 1), 1), ((7, 6, 4), 2))
    ]
    boxes = [Box.of(x=8), Box.of(x=12)]
    digits = [((2, 4), (4, 1)), ((8, -1),), ((2, 1), (2, (1, 2)), (2, 4)), ((3, 4), (4, 1)), ((4, -3), (3, 1))]
    maps = [DigitMap(modes) for modes in digits]
    hierarchical = [HierarchicalLayout(boxes[m.size > 8], boxes[m.size > 8], m) for m in maps]
    integer = [
        IntegerLayout.from_strides({"i": a, "j": b}, strides, modulus=m)
        for (a, b), strides, m in product(((4, 2), (3, 4)), ((1, 4), (3, 1)), (0, 4, 5))
    ]
    return (*strided, *swizzled, *linear, *hierarchical, *integer)


def _values(layout: Any) -> list[int]:
    return [convert.value_at(layout, index) for index in range(layout.size)]


def _exact(layout: Any, to_cute: Maps = convert.to_cute) -> str | None:
    """Every conversion has the same value at every point, or is refused; so has a second one of what it returns."""
    values = _values(layout)
    for to in (convert.to_linear, to_cute, convert.to_integer, convert.to_piecewise):
        try:
            there = to(layout)
        except RepresentabilityError:
            continue
        if _values(there) != values:
            return f"{to.__name__ if hasattr(to, '__name__') else to} changes a value"
        for back in _CONVERSIONS[:3]:
            try:
                if _values(back(there)) != values:
                    return "the way back changes a value"
            except RepresentabilityError:
                continue
    return None


def _without_modulus(layout: Any) -> Any:
    """Drop the modulus of an integer layout."""
    if isinstance(layout, IntegerLayout):
        layout = IntegerLayout(
            layout.inputs, (*[(name, 0) for name, _ in layout.outputs],), layout.matrix, layout.offset
        )
    return convert.to_cute(layout)


def _decided(pair: tuple[Any, Any], same: Maps = equivalent) -> str | None:
    f, g = pair
    left, right = _values(f), _values(g)
    verdict = same(f, g)
    if bool(verdict) != (left == right):
        return "another answer than that of all points"
    if left == right or len(left) != len(right):
        return None
    at = verdict.witness["coordinate"]
    return None if (verdict.witness["f"], verdict.witness["g"]) == (left[at], right[at]) else "the witness"


def _pairs() -> Iterator[tuple[Any, Any]]:
    some = [each for each in _layouts() if each.size in (8, 12)]
    return ((f, g) for k, f in enumerate(some) for g in some[: k + 1])


def _by_text(f: Any, g: Any) -> Any:
    """Compare how layouts are written, and the first values."""
    return equivalent(f, g) if f.size == g.size and convert.value_at(f, 1) != convert.value_at(g, 1) else Proved("text")


def _functor(pair: tuple[CuteLayout, CuteLayout], after: Maps = compose) -> str | None:
    """convert(A) @ convert(B) = convert(A o B), wherever these are defined, has the values A(B(i))."""
    A, B = pair
    wanted = [A(value) for value in B.table().tolist()]
    try:
        if compose(A, B).table().tolist() != wanted:
            return "the composition of the layouts"
    except LayoutError:
        pass
    found = after(A, B, widen=True)
    if _values(found) != wanted:
        return "the composition in the narrowest family"
    try:
        outer, inner = convert.to_linear(A), convert.to_linear(B)
    except RepresentabilityError:
        return None
    both = compose(outer, inner, widen=True)
    return None if _values(both) == wanted else "the composition of the converted layouts"


def _along_one_mode(A: CuteLayout, B: CuteLayout, *, widen: bool) -> Any:  # noqa: ARG001
    """Multiply strides, as if B stayed inside the first mode of A."""
    (_, step), *_ = A.flat
    return CuteLayout(B.shape, tuple([stride * step for _, stride in B.flat]))


def _functor_cases() -> Iterator[tuple[CuteLayout, CuteLayout]]:
    outer = [CuteLayout((a, b), s) for a, b in ((2, 4), (4, 2), (2, 3)) for s in ((1, 4), (3, 1), (4, 1), (1, 2))]
    inner = [CuteLayout((2, 2), s) for s in ((1, 2), (2, 1), (1, 1), (0, 4), (4, 1), (3, 1))]
    return ((A, B) for A in outer for B in inner if max(B.table().tolist()) < A.size)


def _recognized(layout: CuteLayout, recognize: Maps = convert.recognize) -> str | None:
    found = recognize(layout.table())
    if isinstance(found, CuteLayout):
        return None if found == coalesce(layout) else "another form than the coalesced one"
    return None if np.array_equal(found.table(), layout.table()) else "another table"


def _with_modes(table: Any) -> Any:
    """Recognise the table as it stands: one mode of unit stride where it starts 0, 1."""
    values = table.tolist()
    return CuteLayout(len(values), 1) if values[:2] == [0, 1] else convert.recognize(table)


_TO = "layoutalg.convert."

LAWS = (
    Law(
        "convert.carry_free",
        "o + sum a_j x_j is affine over F2 exactly where the (o + a_j) xor o share no bit; these are its columns.",
        ("layoutalg.f2.carry.sum_of_bits", f"{_TO}to_linear"),
        bit_vectors(
            _carry_free,
            partial(_carry_free, sum_of_bits=_strides),
            "all offsets and three addends of 16 bits, negative too",
        ),
    ),
    Law(
        "convert.shifted",
        "shifted(M, c, o) is the affine map x -> o + (M x xor c), refused exactly where that is not affine.",
        ("layoutalg.f2.carry.shifted",),
        enumerated(
            _shift_cases,
            _shift,
            partial(_shift, shifted=_added),
            "all M of two 3-bit columns, three constants, offsets -4..7",
            2304,
        ),
        why_bounded="The carry is followed bit by bit as a set of inputs, so the columns must be numbers.",
    ),
    Law(
        "convert.to_linear",
        "to_linear(L) has L's values, and is refused exactly where L is not affine over F2 (or has a negative value).",
        (f"{_TO}to_linear",),
        enumerated(
            lambda: iter(_strided()),
            _linear,
            partial(_linear, convert=_by_strides),
            "all layouts of two modes with extents 1..4 and strides -1..4",
            576,
        ),
        why_bounded="`convert.carry_free` is the decision for all strides; this law adds the function around it.",
    ),
    Law(
        "convert.exact",
        "Each conversion, and each conversion of what it returns, has the same value at every point, or is refused.",
        (f"{_TO}to_linear", f"{_TO}to_cute", f"{_TO}to_integer", f"{_TO}to_piecewise", f"{_TO}value_at"),
        enumerated(
            lambda: iter(_layouts()),
            _exact,
            partial(_exact, to_cute=_without_modulus),
            "112 layouts of five families with at most 16 points",
            112,
        ),
        why_bounded="Twenty pairs of families, each with an algorithm of its own that reads numbers.",
    ),
    Law(
        "convert.equivalent",
        "equivalent(f, g) is what comparing all points says, and a witness is a point where they differ.",
        ("layoutalg.equivalent",),
        enumerated(
            _pairs,
            _decided,
            partial(_decided, same=_by_text),
            "all pairs of those of them that have 8 or 12 points",
            990,
        ),
        why_bounded="A pair of families has a normal form of its own; `coalesce.complete` and `f2.elimination` prove "
        "two of them.",
    ),
    Law(
        "convert.functorial",
        "Composition commutes with conversion: convert(A) after convert(B) has the values A(B(i)), as A after B has.",
        ("layoutalg.compose", f"{_TO}to_linear"),
        enumerated(_functor_cases, _functor, partial(_functor, after=_along_one_mode), "twelve layouts after six", 72),
        why_bounded="`linear.composition` is the law for all linear layouts, `convert.carry_free` the conversion.",
    ),
    Law(
        "convert.recognize",
        "recognize(table of L) is coalesce(L), or has its table.",
        (f"{_TO}recognize",),
        enumerated(
            lambda: iter(_strided()),
            _recognized,
            partial(_recognized, recognize=_with_modes),
            "all layouts of two modes with extents 1..4 and strides -1..4",
            576,
        ),
        why_bounded="It reads a table of numbers; that the form is the only one is `coalesce.complete`.",
    ),
)
