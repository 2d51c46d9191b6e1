"""Inverses: left, right and two-sided, of layouts with gaps, padding and modes off the chain.

Main statements: the digits of an inverse are those of the chain of strides 1, s, s t, ..., each with the weight that
its mode has in the 1-D coordinate. The proofs for all values take two modes, one step of the chain after another, which
is the step of the induction over the modes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise, product

from layoutalg.cute import CuteLayout, left_inverse, right_inverse
from layoutalg.cute.complement import Chain
from layoutalg.cute.inverse import left_digits, right_digits
from layoutalg.ground.digits import Flat, evaluate, merge
from layoutalg.ground.errors import AdmissibilityError
from layoutalg.proofs.laws.engines import by, enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.places import digits_of, index, modes
from layoutalg.proofs.laws.solvers import CVC5, Z3
from layoutalg.proofs.laws.trial import Trial

_TWO = "all extents >= 2, all strides; two modes: the step of the induction"
_PADDED = "two modes with strides d and d m, any m >= s, all extents"
_STRIDED = "layoutalg.cute.inverse"
_FOUND = ("_left_by_drift", "_left_by_search")
_BOX = "layouts of at most 2 modes with extents 1..4 and strides -2..5"


def _right(trial: Trial, inverse: Callable[[Flat], Flat] = right_digits) -> None:
    flat = modes(trial, 2)
    (s0, _), (s1, _) = flat
    trial.assume(s0 >= 2, s1 >= 2)
    found = inverse(flat)
    if len(found) == 1 and found[0][1] == 1 and found[0][0] == s0 * s1:
        at = digits_of(trial, "j", (s0, s1))
        i = index(trial, at, (s0, s1))
        trial.divides(i, found[0][0], 0, i)
    else:
        digits = digits_of(trial, "k", [extent for extent, _ in found])
        i = index(trial, digits, [extent for extent, _ in found]) if found else 0
        at = [0, 0]
        for digit, (_, weight) in zip(digits, found, strict=True):
            at[0 if weight == 1 else 1] = digit
    c = evaluate(found, i)
    trial.divides(c, s0, at[1], at[0])
    trial.divides(at[1], s1, 0, at[1])
    trial.claim(evaluate(flat, c) == i, "L(R(i)) = i")


def _without_gaps(flat: Flat) -> Flat:
    """Count only the modes that move in the weights."""
    return right_digits(tuple([mode for mode in flat if mode[1] > 0]))


def _left(trial: Trial, inverse: Callable[[Chain], Flat] = left_digits, swapped: bool = False) -> None:
    d, s, t, g = [trial.extent(name) for name in ("d", "s", "t", "g")]
    p, j, k = trial.digit("p", s), trial.digit("j", s), trial.digit("k", t)
    v, w = (t, 1) if swapped else (1, s)
    trial.assume(s >= 2, t >= 2)
    m = p + s * g
    trial.divides(d * m, s * d, g, d * p)
    trial.divides(d * m, d, m)
    found = inverse(((s, d, v), (t, d * m, w)))
    offset = j * d + k * (d * m)
    place = offset if d == 1 else j + m * k
    trial.divides(offset, d, place, 0)
    trial.divides(k, t, 0, k)
    if len(found) == (1 if d == 1 else 2):  # the modes became one digit
        trial.claim(m * k <= m * (t - 1), "the last row")
        trial.divides(place, found[-1][0], 0, place)
    elif p == 0:
        trial.divides(place, s, g * k, j)
        trial.divides(g * k, g, k)
    else:
        trial.divides(place, m, k, j)
    trial.claim(evaluate(found, offset) == j * v + k * w, "R(L(c)) = c")


_swapped = partial(_left, swapped=True)


def _no_padding(chain: Chain) -> Flat:
    """Round the gap to whole steps instead of letting the digit run through it."""
    (s, d, v), (t, e, w) = chain
    return merge(((d, 0), (s, v), (e // (s * d), 0), (t, w)))


def _onto(trial: Trial, inverse: Callable[[Flat], Flat] = right_digits) -> None:
    s, t = trial.extent("s"), trial.extent("t")
    trial.assume(s >= 2, t >= 2)
    flat = ((s, t), (t, 1)) if trial.flag("swapped") else ((s, 1), (t, s))
    c0, c1 = digits_of(trial, "c", (s, t))
    c = index(trial, (c0, c1), (s, t))
    value = evaluate(flat, c)
    found = inverse(flat)
    trial.claim(math.prod([extent for extent, _ in found]) == s * t, "the inverse has the size of the layout")
    if len(found) == 1:
        trial.divides(value, found[0][0], 0, value)
    else:
        trial.divides(value, t, c0, c1)
        trial.divides(c0, s, 0, c0)
    trial.claim(evaluate(found, value) == c, "R(L(c)) = c")


def _itself(flat: Flat) -> Flat:
    """Invert nothing."""
    return merge(flat)


def _layouts() -> Iterator[CuteLayout]:
    for count in (1, 2):
        for shape, stride in product(product(range(1, 5), repeat=count), product(range(-2, 6), repeat=count)):
            yield CuteLayout(shape, stride)


def _both_sides(layout: CuteLayout, inverse: Callable[[CuteLayout], CuteLayout] = CuteLayout.inverse) -> str | None:
    values = layout.table().tolist()
    onto = sorted(values) == list(range(layout.size))
    try:
        found = inverse(layout).table().tolist()
    except AdmissibilityError:
        return "a bijection is refused" if onto else None
    if not onto:
        return "an inverse of what is no bijection"
    same = [found[value] for value in values] == list(range(layout.size)) == [values[i] for i in found]
    return None if same else "the inverse does not undo the layout"


def _quasi(layout: CuteLayout, inverse: Callable[[CuteLayout], CuteLayout] = left_inverse) -> str | None:
    values = layout.table().tolist()
    moving = sorted((stride, extent) for extent, stride in layout.flat if stride and extent > 1)
    rows = all(wide % step == 0 and wide >= step * extent for (step, extent), (wide, _) in pairwise(moving))
    try:
        back = inverse(layout)
    except AdmissibilityError:
        return "padded rows are refused" if rows and min(values) >= 0 else None
    again = [back(value) for value in values]
    if [layout(place) if 0 <= place < layout.size else None for place in again] != values:
        return "L(R(L(c))) is not L(c)"
    whole = len(set(values)) == layout.size
    return "R(L(c)) is not c" if whole and again != list(range(layout.size)) else None


def _as_right(layout: CuteLayout) -> CuteLayout:
    """Take the right inverse for the left one."""
    return right_inverse(layout)


LAWS = (
    Law(
        "inverse.right",
        "L(right_inverse(L)(i)) = i for every i in its domain, by induction over the modes.",
        (
            "layoutalg.cute.right_inverse",
            *[f"{_STRIDED}.{name}" for name in ("right_strided", "right_digits")],
        ),
        integers(_right, partial(_right, inverse=_without_gaps), _TWO),
    ),
    Law(
        "inverse.left",
        "left_inverse(L)(L(c)) = c for strides that divide one another, rows padded by any amount, by induction over "
        "the modes in the order of their strides.",
        ("layoutalg.cute.left_inverse", "layoutalg.cute.inverse.left_digits"),
        (
            *by(Z3, _left, partial(_left, inverse=_no_padding), f"{_PADDED}; in this order"),
            *by(CVC5, _left, partial(_left, inverse=_no_padding), f"{_PADDED}; in this order"),
            *by(CVC5, _swapped, partial(_swapped, inverse=_no_padding), f"{_PADDED}; in the other order"),
        ),
    ),
    Law(
        "inverse.quasi",
        "L(left_inverse(L)(L(c))) = L(c) always, left_inverse(L)(L(c)) = c where L is injective; strides >= 0 that "
        "divide one another, rows padded or not, are never refused.",
        ("layoutalg.cute.left_inverse", *[f"{_STRIDED}.{name}" for name in ("left_strided", *_FOUND)]),
        enumerated(_layouts, _quasi, partial(_quasi, inverse=_as_right), f"all {_BOX}", 1056),
        "inverse.left is the part for all values; layouts whose strides do not divide one another are searched for "
        "among all mixed radices, in numbers of least squares",
    ),
    Law(
        "inverse.two_sided",
        "L.inverse() exists exactly where the values of L are 0, ..., size - 1; it undoes L on both sides, so it is "
        "unique.",
        ("layoutalg.cute.layout.CuteLayout.inverse", "layoutalg.cute.inverse._of_strided"),
        (
            *integers(_onto, partial(_onto, inverse=_itself), "all extents >= 2; two modes of a chain in either order"),
            *enumerated(_layouts, _both_sides, partial(_both_sides, inverse=_as_right), f"all {_BOX}", 1056),
        ),
    ),
)
