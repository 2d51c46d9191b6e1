"""Swizzles: involutions, linear over F2, and when they commute with offsets, widths and one another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

from layoutalg.cute import Swizzle
from layoutalg.cute.fit import first_leaving, swizzle_product
from layoutalg.f2.matrix import apply
from layoutalg.f2.split import one_swizzle, source_mask, swizzle_columns, swizzle_period, swizzled
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.laws.engines import bit_vectors, enumerated
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.term import every, some
from layoutalg.proofs.laws.trial import Trial
from layoutalg.proofs.tensormap.swizzle import XORS
from layoutalg.targets.nvidia.tensormap.facts import swizzle_xor, xored

Fields: TypeAlias = tuple[Any, Any, Any]
"""bits, base, shift."""
_ANY = "all swizzles with bits, base < 8 and |shift| < 16, all 32-bit numbers"
_SMALL = "all swizzles with base + bits + |shift| <= 7"


def _fields(trial: Trial, *, apart: bool = True) -> Fields:
    """Return any swizzle; without ``apart`` source and target may overlap."""
    bits, base, shift = trial.bits("bits", 4), trial.bits("base", 4), trial.bits("shift", 5)
    trial.assume(bits >= 0, base >= 0)
    if apart:
        trial.assume(some(every(shift >= 0, bits <= shift), every(shift < 0, bits <= -shift)))
    return bits, base, shift


def _plus(value: Any, bits: Any, base: Any, shift: Any) -> Any:
    """Add what a swizzle xors."""
    picked = value & source_mask(bits, base, shift)
    return value + (picked >> shift if shift >= 0 else picked << -shift)


def _involution(trial: Trial, apart: bool = True) -> None:
    fields = _fields(trial, apart=apart)
    x = trial.bits("x", 32)
    trial.claim(swizzled(swizzled(x, *fields), *fields) == x, "twice is once")


def _linear(trial: Trial, swizzled: Callable[..., Any] = swizzled) -> None:
    fields = _fields(trial)
    x, y = trial.bits("x", 32), trial.bits("y", 32)
    trial.claim(swizzled(x ^ y, *fields) == swizzled(x, *fields) ^ swizzled(y, *fields), "xor is kept")


def _periodic(trial: Trial, period: Callable[..., Any] = swizzle_period) -> None:
    fields = _fields(trial)
    x = trial.bits("x", 32)
    step = period(*fields)
    trial.claim(swizzled(x + step, *fields) == swizzled(x, *fields) + step, "a period more is a period more")


def _in_block(trial: Trial, period: Callable[..., Any] = swizzle_period) -> None:
    fields = _fields(trial)
    x = trial.bits("x", 32)
    change = swizzled(x, *fields) ^ x
    trial.claim(every(change >= 0, change < period(*fields)), "only bits below the period change")


def _no_shift(bits: Any, base: Any, shift: Any) -> Any:
    """Take the bits read for the highest bits."""
    return 1 << (base + bits + shift if shift >= 0 else base + bits)


def _no_shift_at_all(bits: Any, base: Any, shift: Any) -> Any:  # noqa: ARG001
    """Forget that the bits move."""
    return 1 << (base + bits)


def _commutes(trial: Trial, both: bool = True) -> None:
    fields = _fields(trial)
    bits, base, shift = fields
    x, offset = trial.bits("x", 32), trial.bits("o", 32)
    touched = source_mask(*fields)
    if both:
        touched = touched | source_mask(bits, base, -shift)
    trial.assume(offset & touched == 0, offset & x == 0)
    trial.claim(swizzled(offset + x, *fields) == offset + swizzled(x, *fields), "the offset comes through")


def _columns(trial: Trial, sign: int = 1) -> None:
    bits, base, shift = _fields(trial)
    columns = [trial.bits(f"c{k}", 24) for k in range(3)]
    moved = swizzle_columns(bits, base, shift * sign, columns)
    same = [apply(moved, x) == swizzled(apply(columns, x), bits, base, shift) for x in range(8)]
    trial.claim(every(*same), "the columns of the swizzled map are the swizzled columns")


@cache
def _swizzles(reach: int = 7) -> tuple[Swizzle, ...]:
    found = [Swizzle(0, 0, 0)]
    for bits in range(1, reach + 1):
        for base in range(reach + 1 - bits):
            for size in range(bits, reach + 1 - bits - base):
                found += [Swizzle(bits, base, shift) for shift in (size, -size)]
    return tuple(found)


def _of(swizzle: Swizzle) -> tuple[int, int, int]:
    return swizzle.bits, swizzle.base, swizzle.shift


def _recast(trial: Trial, lowered: Callable[[Swizzle, int], Swizzle] = Swizzle.recast_elements) -> None:
    x = trial.bits("x", 20)
    same, back = [], []
    for log in range(5):
        for each in _swizzles():
            if each.bits and each.base < log:
                continue
            whole = Swizzle(each.bits, each.base, each.shift, "byte")
            part = lowered(whole, 1 << log)
            same.append(swizzled(x * (1 << log), *_of(whole)) == swizzled(x, *_of(part)) * (1 << log))
            back.append(part.recast_bytes(1 << log) == whole or not each.bits)
    trial.claim(every(*same), "swizzling bytes is swizzling elements")
    trial.claim(every(*back), "recast_bytes undoes recast_elements")


def _as_printed(swizzle: Swizzle, _: int) -> Swizzle:
    """Take the fields of the byte swizzle for those of the element swizzle."""
    return Swizzle(swizzle.bits, swizzle.base, swizzle.shift)


def _product(trial: Trial, product: Callable[[Swizzle, Swizzle], Swizzle | None] = swizzle_product) -> None:
    x = trial.bits("x", 12)
    same = []
    for outer in _swizzles(5):
        for inner in _swizzles(5):
            found = product(outer, inner)
            if found is not None:
                same.append(swizzled(swizzled(x, *_of(inner)), *_of(outer)) == swizzled(x, *_of(found)))
    trial.claim(every(*same), "the product is the one after the other")


def _joined(outer: Swizzle, inner: Swizzle) -> Swizzle | None:
    """Join two runs on one diagonal that touch, forgetting what one writes and the other reads."""
    first, second = sorted((outer, inner), key=lambda each: each.base)
    if first.shift != second.shift or first.base + first.bits != second.base:
        return swizzle_product(outer, inner)
    try:
        return Swizzle(first.bits + second.bits, first.base, first.shift)
    except LayoutError:
        return Swizzle(0, 0, 0)


def _complete(
    pair: tuple[Swizzle, Swizzle], product: Callable[[Swizzle, Swizzle], object] = swizzle_product
) -> str | None:
    """A product that is refused is no swizzle; all swizzles that touch only its bits are compared."""
    outer, inner = pair
    found = product(outer, inner)
    values = tuple([outer(inner(x)) for x in range(128)])
    return None if (found is not None) == (values in _tables()) else f"{outer} after {inner} gives {found}"


@cache
def _tables() -> frozenset[tuple[int, ...]]:
    return frozenset(tuple([each(x) for x in range(128)]) for each in _swizzles())


def _pairs() -> Iterator[tuple[Swizzle, Swizzle]]:
    return ((outer, inner) for outer in _swizzles(5) for inner in _swizzles(5))


def _alike(outer: Swizzle, inner: Swizzle) -> Swizzle | None:
    """Multiply only a swizzle with itself or with the identity."""
    return swizzle_product(outer, inner) if outer == inner or not (outer.bits and inner.bits) else None


def _hardware(trial: Trial, pairs: Callable[[str], list[tuple[int, int]]] = swizzle_xor) -> None:
    x = trial.bits("x", 32)
    same = []
    for mode, runs in XORS.items():
        image = x
        for fields in runs:
            image = image ^ (swizzled(x, *fields) ^ x)
        same.append(xored(pairs(mode), x) == image)
        same.append(xored(pairs(mode), xored(pairs(mode), x)) == x)
    trial.claim(every(*same), "the engine's xors are the swizzles")


def _of_halves(mode: str) -> list[tuple[int, int]]:
    """Count addresses in elements of two bytes."""
    return [(target - 1, source - 1) for target, source in swizzle_xor(mode)]


def _every_swizzle() -> Iterator[Swizzle]:
    return iter(_swizzles())


def _by_matrix(swizzle: Swizzle, rows: int = 8) -> str | None:
    columns = swizzle.matrix_columns(rows)
    wrong = next((x for x in range(256) if apply(columns, x & (1 << rows) - 1) != swizzle(x)), None)
    return None if wrong is None else f"at {wrong}"


def _least_period(swizzle: Swizzle, period: Callable[[Swizzle], int] = lambda swizzle: swizzle.period) -> str | None:
    def fits(step: int) -> bool:
        return all(swizzle(x + step) == swizzle(x) + step for x in range(128))

    least = next(step for step in range(1, 129) if fits(step))
    return None if least == period(swizzle) else f"the least period is {least}"


def _leaving(swizzle: Swizzle, first: Callable[[Swizzle, int, int], int | None] = first_leaving) -> str | None:
    for size in range(1, 20):
        for bound in range(1, 24):
            found = next((x for x in range(size) if swizzle(x) >= bound), None)
            if first(swizzle, size, bound) != found:
                return f"of {size} numbers the first at or above {bound} is {found}"
    return None


def _last_corner(swizzle: Swizzle, size: int, bound: int) -> int | None:
    """Look at the last number alone."""
    return size - 1 if swizzle(size - 1) >= bound else None


def _matrices() -> Iterator[tuple[int, ...]]:
    return ((a, b, c) for a in range(16) for b in range(16) for c in range(16))


def _separates(columns: Sequence[int]) -> bool:
    return all(not one & other for k, one in enumerate(columns) for other in columns[:k])


def _splits(columns: tuple[int, ...], find: Callable[..., tuple[int, int, int] | None] = one_swizzle) -> str | None:
    found = find(columns)
    if found is not None:
        return None if _separates(swizzle_columns(*found, columns)) else f"{found} leaves two columns in one bit"
    tried = next((each for each in _swizzles(4) if _separates(swizzle_columns(*_of(each), columns))), None)
    return None if tried is None else f"{tried} would do"


def _upwards(columns: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Look for swizzles of positive shift alone."""
    found = one_swizzle(columns)
    return None if found is None or found[2] < 0 else found


_SWIZZLED = "layoutalg.f2.split.swizzled"

LAWS = (
    Law(
        "swizzle.involution",
        "Sw(Sw(x)) = x where |shift| >= bits, so that what is read is not written.",
        ("layoutalg.cute.Swizzle.inverse", _SWIZZLED),
        bit_vectors(_involution, partial(_involution, apart=False), _ANY),
    ),
    Law(
        "swizzle.linear",
        "Sw(x xor y) = Sw(x) xor Sw(y), negative numbers in two's complement.",
        ("layoutalg.cute.Swizzle.matrix_columns", _SWIZZLED),
        bit_vectors(_linear, partial(_linear, swizzled=_plus), _ANY),
    ),
    Law(
        "swizzle.matrix",
        "Sw is the F2 matrix of its columns: apply(matrix_columns(n), x) = Sw(x) for x < 2^n.",
        ("layoutalg.cute.Swizzle.matrix_columns", "layoutalg.f2.matrix.apply"),
        enumerated(_every_swizzle, _by_matrix, partial(_by_matrix, rows=6), f"{_SMALL}, x < 256", 69),
        why_bounded="`swizzle.linear` is the law for all numbers; this one adds that the columns are the images of the "
        "unit vectors, which the function computes number by number.",
    ),
    Law(
        "swizzle.columns",
        "Sw after an F2 map M is the F2 map whose columns are the swizzled columns of M.",
        ("layoutalg.f2.split.swizzle_columns", "layoutalg.f2.matrix.apply"),
        bit_vectors(
            _columns,
            partial(_columns, sign=-1),
            "all swizzles with bits, base < 8 and |shift| < 16, any three 24-bit columns",
        ),
    ),
    Law(
        "swizzle.period",
        "Sw(x + P) = Sw(x) + P for P = 2^(base + bits + |shift|), so one period describes it everywhere.",
        ("layoutalg.cute.Swizzle", "layoutalg.f2.split.swizzle_period"),
        (
            *bit_vectors(_periodic, partial(_periodic, period=_no_shift_at_all), _ANY),
            *enumerated(
                _every_swizzle,
                _least_period,
                partial(_least_period, period=lambda each: 1 << each.base + each.bits),
                f"and P is the least one: {_SMALL}",
                69,
            ),
        ),
    ),
    Law(
        "swizzle.block",
        "Sw changes only bits below its period: it permutes each aligned block of one period, so a bijection onto "
        "[0, N) stays one where the period divides N.",
        ("layoutalg.cute.ComposedLayout", "layoutalg.f2.split.swizzle_period"),
        bit_vectors(_in_block, partial(_in_block, period=_no_shift), _ANY),
    ),
    Law(
        "swizzle.offset",
        "Sw(o + x) = o + Sw(x) where o shares no bit with x and none with the bits that Sw reads or writes.",
        (_SWIZZLED,),
        bit_vectors(_commutes, partial(_commutes, both=False), _ANY),
    ),
    Law(
        "swizzle.recast",
        "Sw of bytes at w x is w times Sw' of elements at x, Sw' = recast_elements(w); recast_bytes undoes it.",
        ("layoutalg.cute.Swizzle.recast_elements", "layoutalg.cute.Swizzle.recast_bytes"),
        bit_vectors(_recast, partial(_recast, lowered=_as_printed), f"{_SMALL}, w = 1, 2, 4, 8, 16, all 20-bit x"),
    ),
    Law(
        "swizzle.product",
        "swizzle_product(A, B)(x) = A(B(x)), and it is refused exactly where A after B is no swizzle.",
        ("layoutalg.cute.fit.swizzle_product",),
        (
            *bit_vectors(
                _product,
                partial(_product, product=_joined),
                "all pairs of swizzles with base + bits + |shift| <= 5, all 12-bit numbers",
            ),
            *enumerated(
                _pairs,
                _complete,
                partial(_complete, product=_alike),
                "refusals: pairs of swizzles with base + bits + |shift| <= 5, against all up to 7",
                729,
            ),
        ),
    ),
    Law(
        "swizzle.hardware",
        "Each named swizzle of the copy engine is its own inverse and what the checker has under that name: "
        "32B, 64B, 128B are Sw<1,4,3>, Sw<2,4,3>, Sw<3,4,3> of byte addresses, the ATOM ones Sw<2,5,2> and Sw<1,6,1>.",
        (
            "layoutalg.targets.nvidia.tensormap.facts.apply_swizzle",
            "layoutalg.targets.nvidia.tensormap.facts.xored",
            "layoutalg.proofs.tensormap.swizzle.swizzled",
        ),
        bit_vectors(_hardware, partial(_hardware, pairs=_of_halves), "all seven names, all 32-bit addresses"),
    ),
    Law(
        "swizzle.first_leaving",
        "first_leaving(Sw, n, b) is the least x < n with Sw(x) >= b.",
        ("layoutalg.cute.fit.first_leaving",),
        enumerated(_every_swizzle, _leaving, partial(_leaving, first=_last_corner), f"{_SMALL}, n < 20, b < 24", 69),
        why_bounded="The search runs through the bits of n one by one and eliminates the images of the bits below, "
        "so n and Sw must be numbers.",
    ),
    Law(
        "swizzle.split",
        "one_swizzle(M) is a swizzle after which no two columns of M share a bit, or there is none.",
        ("layoutalg.f2.split.one_swizzle", "layoutalg.convert.to_cute"),
        enumerated(_matrices, _splits, partial(_splits, find=_upwards), "all matrices of 3 columns and 4 rows", 4096),
        why_bounded="Which rows are read decides every step of the search, so symbols branch once per matrix; what is "
        "found is covered for all columns by `swizzle.columns`.",
    ),
)
