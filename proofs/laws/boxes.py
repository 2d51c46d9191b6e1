"""Affine forms on boxes: their range, their residues, and the first point where they reach a bound.

Notation: a form is a x + b y + c on the box 0 <= x < m, 0 <= y < n, the first axis fastest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

from layoutalg.ground.digits import Flat, evaluate, first_outside
from layoutalg.ground.digits import span as digit_span
from layoutalg.integer.engines import _Shift, _union, value_set
from layoutalg.integer.forms import filled, first_at_least, growing, residue_form, span
from layoutalg.proofs.laws.engines import bit_vectors, enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.term import every, some
from layoutalg.proofs.laws.trial import Trial

_TWO = "all boxes, all coefficients; two axes: base and step of the induction"
Row = tuple[tuple[int, ...], tuple[int, ...]]


def _signs(trial: Trial, slope: Any, extent: Any, digit: Any) -> None:
    """State the signs of products, so that the solvers need not multiply."""
    for distance in (digit, extent - 1 - digit):
        trial.claim(slope * distance >= 0 if slope > 0 else slope * distance <= 0, "a product of signs")


def _form(trial: Trial) -> tuple[Any, ...]:
    """Return any form of two axes, its box, and a point of it."""
    a, b, c = [trial.integer(name) for name in "abc"]
    m, n = trial.extent("m"), trial.extent("n")
    return a, b, c, m, n, trial.digit("x", m), trial.digit("y", n)


def _wrong_span(row: Sequence[int], constant: int, extents: Sequence[int]) -> tuple[int, int]:
    """Go to the extent itself."""
    ends = [a * extent for a, extent in zip(row, extents, strict=True)]
    return constant + sum([end if end < 0 else 0 for end in ends]), constant + sum(
        [end if end > 0 else 0 for end in ends]
    )


def _ranges(trial: Trial, span: Callable[..., tuple[int, int]] = span) -> None:
    a, b, c, m, n, x, y = _form(trial)
    low, high = span((a, b), c, (m, n))
    _signs(trial, a, m, x)
    _signs(trial, b, n, y)
    trial.claim(every(low <= a * x + b * y + c, a * x + b * y + c <= high), "no value leaves the range")
    corners = [c + s * a * (m - 1) + t * b * (n - 1) for s, t in product((0, 1), repeat=2)]
    digits = ((m, a), (n, b))
    trial.claim(every(digit_span(digits)[0] + c == low, digit_span(digits)[1] + c == high), "digits have the same span")
    trial.claim(every(some(*[low == at for at in corners]), some(*[high == at for at in corners])), "both ends occur")


def _wrong_residue(row: Sequence[int], constant: int, modulus: int, extents: Sequence[int]) -> Any:
    """Look at the greatest value alone."""
    base = constant % modulus
    lifted = tuple([(constant + a) % modulus - base if e > 1 else 0 for a, e in zip(row, extents, strict=True)])
    return (lifted, base) if span(lifted, base, extents)[1] < modulus else None


def _residues(trial: Trial, residue: Callable[..., Any] = residue_form) -> None:
    m, n, extent = trial.extent("m"), trial.integer("q"), trial.extent("n")
    base, after, turns = trial.digit("base", m), trial.digit("after", m), trial.integer("turns")
    constant, slope = m * n + base, m * turns + after - base
    x = trial.digit("x", extent)
    trial.divides(constant, m, n, base)
    trial.divides(constant + slope, m, n + turns, after)
    found = residue((slope,), constant, m, (extent,))
    if found is None:
        last = (extent - 1) * (after - base) + base
        trial.claim(some(last < 0, last >= m), "refused only where the affine candidate leaves the residues")
        return
    (step,), start = found
    if x == 0:
        trial.divides(slope * x + constant, m, n, base)
    else:
        _signs(trial, step, extent, x)
        trial.divides(slope * x + constant, m, n + x * turns, start + step * x)
    trial.claim((slope * x + constant) % m == start + step * x, "the residue is the affine form")


def _wrong_first(row: Sequence[int], constant: int, extents: Sequence[int], bound: int) -> Any:
    """Decide the fastest axis first."""
    turned = first_at_least(row[::-1], constant, extents[::-1], bound)
    return None if turned is None else turned[::-1]


def _firsts(trial: Trial, first: Callable[..., Any] = first_at_least) -> None:
    a, _, c, m, n, x, y = _form(trial)
    bound = trial.integer("bound")
    _signs(trial, a, m, x)
    found = first((a, 1), c, (m, n), bound)
    if found is None:
        trial.claim(a * x + y + c < bound, "None only where no point reaches the bound")
        return
    p, q = found
    trial.claim(a * p + q + c >= bound, "the point reaches the bound")
    trial.claim(every(p >= 0, p < m, q >= 0, q < n), "the point lies in the box")
    if y < q:
        trial.claim(a * x + y + c < bound, "no earlier row reaches it")
    elif y == q and x < p:
        if a > 0:
            trial.claim(a * (p - 1 - x) >= 0, "a product of signs")
        trial.claim(a * x + y + c < bound, "no earlier point of the row reaches it")


def _wrong_growing(row: Sequence[int], extents: Sequence[int]) -> Any:
    """Let a stride equal the reach of the smaller ones."""
    (a, m), (b, n) = sorted(zip(map(abs, row), extents, strict=True))
    return ((a, m), (b, n)) if a > 0 and b >= a * (m - 1) else None


def _grows(trial: Trial, growing: Callable[..., Any] = growing) -> None:
    a, b, _, m, n, x, y = _form(trial)
    trial.assume(m >= 2, n >= 2, a >= 0, b >= a)
    s, t = trial.digit("s", m), trial.digit("t", n)
    if growing((a, b), (m, n)) is None:
        return
    trial.assume(a * x + b * y == a * s + b * t)
    for distance in (m - 1 - (x - s), m - 1 - (s - x)):
        trial.claim(a * distance >= 0, "a product of signs")
    for gap in (y - t - 1, t - y - 1):
        trial.claim(some(gap < 0, b * gap >= 0), "a product of signs")
    trial.claim(y == t, "the slow digits agree")
    trial.claim(some(a * (x - s) != 0, x == s), "a stride other than 0 tells digits apart")
    trial.claim(x == s, "the fast digits agree")


def _rows() -> Iterator[Row]:
    for count in (1, 2, 3):
        for row, extents in product(product(range(-4, 8), repeat=count), product((1, 2, 3), repeat=count)):
            if count < 3 or (row[0] % 3 == 1 and extents != (1, 1, 1)):
                yield row, extents


def _values(case: Row) -> set[int]:
    row, extents = case
    return {sum([a * x for a, x in zip(row, at, strict=True)]) for at in product(*map(range, extents))}


def _wrong_filled(row: Sequence[int], extents: Sequence[int]) -> tuple[int, int, bool]:
    """Take the least stride for the step."""
    step, reach, whole = filled(row, extents)
    return min([abs(a) for a, e in zip(row, extents, strict=True) if a and e > 1], default=step), reach, whole


def _runs(case: Row, filled: Callable[..., tuple[int, int, bool]] = filled) -> str | None:
    values, (step, reach, whole) = _values(case), filled(*case)
    low, high = min(values), max(values)
    if not set(range(low, low + reach + 1, step)) <= values or any((v - low) % step for v in values):
        return "a value of the run is missing, or one lies off the steps"
    if whole:
        return None if reach == high - low else "the run is not all"
    return "the gap is a value" if {low + reach + step, high - reach - step} & values else None


def _wrong_union(bits: Any, stride: int, extent: int, shift: Any) -> Any:
    """Double once too often."""
    total, count = bits, 1
    while count < extent:
        total = total | shift(total, count * stride)
        count *= 2
    return total


def _unions(trial: Trial, union: Callable[..., Any] = _union, width: int = 8) -> None:
    bits = trial.bits("bits", width + 1)
    trial.assume(bits >= 0)
    for stride, extent in product((0, 1, 2, 3, 5), range(1, 8)):
        wanted = bits
        for k in range(1, extent):
            wanted = wanted | (bits << k * stride)
        trial.claim(union(bits, stride, extent, _Shift(0)) == wanted, f"the union of {extent} sets, {stride} apart")


def _wrong_set(row: Sequence[int], constant: int, modulus: int, extents: Sequence[int], limit: int) -> Any:
    """Forget the constant's residue."""
    return value_set(row, 0 if modulus else constant, modulus, extents, limit)


def _small_forms() -> Iterator[tuple[Sequence[int], int, int, Sequence[int]]]:
    for modulus, constant in ((0, 3), (5, 3), (6, 0), (8, 9)):
        for row, extents in product(product(range(-3, 5), repeat=2), product((1, 2, 4), repeat=2)):
            yield row, constant, modulus, extents


def _same_set(case: Any, values: Callable[..., Any] = value_set) -> str | None:
    row, constant, modulus, extents = case
    found = values(*case, 1000)
    seen: dict[int, list[tuple[int, ...]]] = {}
    for at in product(*map(range, extents)):
        value = constant + sum([a * x for a, x in zip(row, at, strict=True)])
        seen.setdefault(value % modulus if modulus else value, []).append(at)
    if {found.low + k for k in range(found.count) if found.bits >> k & 1} != set(seen):
        return "the bits are not the values"
    missing = next((v for v in range(-2, 12) if v not in seen), None)
    if found.first_missing(-2, 12) != missing:
        return "another value is missing first"
    if found.collision is None:
        return None if all(len(points) == 1 for points in seen.values()) else "a collision was overlooked"
    return None if any(set(found.collision) <= set(points) for points in seen.values()) else "no collision"


def _flats() -> Iterator[tuple[Flat, int]]:
    for strides, extents in product(product(range(-4, 8), repeat=2), product((1, 2, 3), repeat=2)):
        for bound in (0, 1, 3, 8):
            yield tuple(zip(extents, strides, strict=True)), bound


def _wrong_outside(flat: Flat, bound: int) -> int | None:
    """Look above alone."""
    found = first_at_least([d for _, d in flat], 0, [s for s, _ in flat], bound)
    return None if found is None else found[0] + flat[0][0] * found[1]


def _outside(case: tuple[Flat, int], first: Callable[[Flat, int], int | None] = first_outside) -> str | None:
    flat, bound = case
    values = [evaluate(flat, i) for i in range(math.prod([extent for extent, _ in flat]))]
    wanted = next((i for i, value in enumerate(values) if not 0 <= value < bound), None)
    return None if first(flat, bound) == wanted else "another coordinate is the first"


LAWS = (
    Law(
        "boxes.range",
        "span(a, c) is the least and the greatest value of a x + c on a box.",
        ("layoutalg.integer.forms.span", "layoutalg.ground.digits.span"),
        integers(_ranges, partial(_ranges, span=_wrong_span), _TWO),
    ),
    Law(
        "boxes.residue",
        "(a x + c) mod m is an affine function of x on a box exactly where residue_form gives one, and is that one.",
        ("layoutalg.integer.forms.residue_form",),
        integers(
            _residues, partial(_residues, residue=_wrong_residue), "all moduli, all boxes, all coefficients; one axis"
        ),
    ),
    Law(
        "boxes.first_at_least",
        "first_at_least is the first point of a box, in the order of the flat index, where a form reaches a bound.",
        ("layoutalg.integer.forms.first_at_least",),
        integers(
            _firsts,
            partial(_firsts, first=_wrong_first),
            "all boxes, bounds and coefficients; two axes, the slower one of coefficient 1",
        ),
    ),
    Law(
        "boxes.first_outside",
        "first_outside is the least 1-D coordinate whose value is negative or at least a bound.",
        ("layoutalg.ground.digits.first_outside",),
        enumerated(
            _flats,
            _outside,
            partial(_outside, first=_wrong_outside),
            "two modes of extents 1..3 and strides -4..7, bounds 0, 1, 3 and 8",
            5184,
        ),
        "z3 and cvc5 prove one slow stride of 1 in more than 5 s; the search is that of boxes.first_at_least",
    ),
    Law(
        "boxes.growing",
        "where each stride exceeds the reach of the smaller ones, no two points of a box share a value.",
        ("layoutalg.integer.forms.growing",),
        integers(_grows, partial(_grows, growing=_wrong_growing), _TWO),
    ),
    Law(
        "boxes.filled",
        "a form takes exactly the values low, low + step, ..., low + reach where its strides fill, and the next is a "
        "gap where they do not.",
        (
            "layoutalg.integer.forms.filled",
            "layoutalg.integer.forms.sorted_axes",
        ),
        enumerated(
            _rows, _runs, partial(_runs, filled=_wrong_filled), "coefficients -4..7, extents 1..3, up to 3 axes", 16308
        ),
        "the step is a greatest common divisor, which no engine here has as a symbol",
    ),
    Law(
        "boxes.shifted_sets",
        "doubling gives the union of a set moved by 0, d, ..., (n - 1) d.",
        ("layoutalg.integer.engines._union",),
        bit_vectors(_unions, partial(_unions, union=_wrong_union), "all sets of 8 values; d up to 5, n up to 7"),
    ),
    Law(
        "boxes.value_set",
        "the bits of value_set are the values of a form on a box, and its collision two points with one value.",
        ("layoutalg.integer.engines.value_set",),
        enumerated(
            _small_forms,
            _same_set,
            partial(_same_set, values=_wrong_set),
            "coefficients -3..4, extents 1, 2 and 4, two axes, over Z and modulo 5, 6 and 8",
            2304,
        ),
        "the sets are bits of one integer whose number is the range of the form; symbols have widths",
    ),
)
