"""Digits: maps between them, morphisms of nested tuples, and offsets of layouts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any, TypeAlias

from layoutalg.cute.pointed import Map, followed, prefix_products, strides_at, transpose
from layoutalg.ground.digits import evaluate, placed, point_at
from layoutalg.hierarchy.bijection import composed, reversed_as, turned_back, value_at
from layoutalg.proofs.laws.law import INTEGERS, Law, stated
from layoutalg.proofs.laws.term import every, some
from layoutalg.proofs.laws.trial import Trial, digits_of, index, state_digits
from layoutalg.proofs.tensormap.bounds import lattice_points

LAWS: list[Law] = []
law = partial(stated, LAWS)

Digit: TypeAlias = tuple[Any, Any]


_TWO = "two digits of any extents >= 2 in either order, each reversed or not; the step of the induction"
_FLAGS = tuple(product((False, True), repeat=3))
"""Whether the digits change places, and whether each is reversed."""


def _extents(trial: Trial) -> tuple[Any, Any]:
    m, n = trial.integer("m"), trial.integer("n")
    trial.assume(m >= 2, n >= 2)
    return m, n


def _point(trial: Trial, m: Any, n: Any) -> tuple[Any, Any, Any]:
    """Return an index and its two digits."""
    low, high = trial.digit("x", m), trial.digit("y", n)
    trial.divides(low + m * high, m, high, low)
    trial.divides(high, n, 0, high)
    return low + m * high, low, high


def _modes(m: Any, n: Any, flags: Sequence[bool]) -> tuple[Digit, Digit]:
    """Return the digits m, n, in the target in this order or the other one."""
    crossed, first, second = flags
    low, high = (n, 1) if crossed else (1, m)
    return (m, -low if first else low), (n, -high if second else high)


def _image(m: Any, n: Any, flags: Sequence[bool], low: Any, high: Any) -> tuple[Any, Any]:
    """Return the target's digits, fastest first."""
    crossed, first, second = flags
    low, high = m - 1 - low if first else low, n - 1 - high if second else high
    return (high, low) if crossed else (low, high)


@law("digits.carries", INTEGERS, "all extents >= 2, one axis before all others")
def _carries(trial: Trial) -> None:
    """The coordinates of the flat index x + m y are x and y."""
    m, n = _extents(trial)
    index, low, high = _point(trial, m, n)
    point = point_at((("x", m), ("y", n)), index)
    trial.claim(every(point["x"] == low, point["y"] == high), "the coordinates of x + m y are x and y")


@law("digits.bijection", INTEGERS, _TWO)
def _bijective(trial: Trial) -> None:
    """A permutation of digits, some reversed, has as digits of its value those of the index, moved, c or e - 1 - c; so
    it is a bijection.
    """
    m, n = _extents(trial)
    index, low, high = _point(trial, m, n)
    for flags in _FLAGS:
        one, two = _image(m, n, flags, low, high)
        weight = n if flags[0] else m
        found = value_at(_modes(m, n, flags), (), index)
        trial.claim(found == one + weight * two, "the value has the digits that the source has, moved and reversed")


@law(
    "digits.composition",
    INTEGERS,
    (
        "two digits of any extents >= 2, both maps in either order, the inner one reversing the first and the "
        "outer one the second; the step of the induction"
    ),
)
def _composes(trial: Trial) -> None:
    """A digit goes where the outer map takes it, reversed as the image of 0 shows: this is one map after the other."""
    m, n = _extents(trial)
    index, low, high = _point(trial, m, n)
    trial.divides(m, m, 1)
    trial.divides(n, n, 1)
    inner, outer = (trial.flag("u"), True, False), (trial.flag("v"), False, True)
    here = _modes(m, n, inner)
    a, b = (n, m) if inner[0] else (m, n)
    there = _modes(a, b, outer)
    middle, (one, two) = value_at(here, (), index), _image(m, n, inner, low, high)
    trial.divides(middle, a, two, one)
    trial.divides(two, b, 0, two)
    digits = composed(list(placed(there)), here)
    last, (first, second) = _image(a, b, outer, one, two), _image(a, b, outer, *_image(m, n, inner, 0, 0))
    c, d = (b, a) if outer[0] else (a, b)
    origin = first + c * second
    trial.divides(origin, 1, origin)
    trial.divides(origin, c, second, first)
    trial.divides(second, d, 0, second)
    whole = reversed_as(tuple(digits), (), origin)
    trial.claim(value_at(whole, (), index) == last[0] + c * last[1], "the digits of the composition")
    trial.claim(value_at(there, (), middle) == last[0] + c * last[1], "one map after the other")


@law("digits.inverse", INTEGERS, _TWO)
def _turns_back(trial: Trial) -> None:
    """A digit goes back to its weight, reversed again: A^-1 o A = 1 = A o A^-1."""
    m, n = _extents(trial)
    index, low, high = _point(trial, m, n)
    for flags in _FLAGS:
        here = _modes(m, n, flags)
        value, (one, two) = value_at(here, (), index), _image(m, n, flags, low, high)
        a, b = (n, m) if flags[0] else (m, n)
        trial.divides(value, a, two, one)
        trial.divides(two, b, 0, two)
        found, origin = turned_back(placed(here))
        first, second = (m - 1 if flags[1] else 0), (n - 1 if flags[2] else 0)
        trial.claim(origin == first + m * second, "the image of 0")
        trial.divides(origin, 1, origin)
        trial.divides(origin, m, second, first)
        trial.divides(second, n, 0, second)
        modes = [mode for _, mode in (found[::-1] if flags[0] else found)]
        trial.claim(value_at(reversed_as(tuple(modes), (), origin), (), value) == index, "the inverse undoes the map")


@law("morphism.functorial", INTEGERS, "8 pairs of maps of 2 leaves, all extents")
def _functorial(trial: Trial) -> None:
    """|g f| = |g| after |f|, which is the composition of the layouts; by induction over the leaves."""
    middle, free = (trial.extent("t0"), trial.extent("t1")), trial.extent("u")
    for number, (inner, outer) in enumerate(product(_INTO, _ONWARD)):
        domain = tuple([free if entry is None else middle[entry] for entry in inner])
        owner = transpose(outer, 2)
        codomain = tuple([free if entry is None else middle[entry] for entry in owner])
        f, g, whole = [
            tuple(zip(extents, strides_at(mapping, prefix_products(target)[:-1]), strict=True))
            for extents, mapping, target in (
                (domain, inner, middle),
                (middle, outer, codomain),
                (domain, followed(inner, outer), codomain),
            )
        ]
        digits = digits_of(trial, f"x{number}_", domain)
        x = index(trial, digits, domain)
        carried = [0 if entry is None else digits[entry] for entry in transpose(inner, 2)]
        y = evaluate(f, x)
        state_digits(trial, y, carried, middle)
        trial.claim(evaluate(whole, x) == evaluate(g, y), "|g f|(x) = |g|(|f|(x))")


_INTO: tuple[Map, ...] = ((0, 1), (1, 0), (None, 0), (1, None))


_ONWARD: tuple[Map, ...] = ((1, 0), (None, 1))


@law("origins.lattice_points", INTEGERS, "all bounds, coordinates and origins, all steps >= 1")
def _exact(trial: Trial) -> None:
    """Low <= x + step u < high exactly for first <= u <= last, so one interval stands for all origins."""
    low, high, x, u = [trial.integer(name) for name in ("low", "high", "x", "u")]
    step = trial.extent("step")
    first, last = lattice_points(low, high, x, step)
    for gap in (u - first, first - 1 - u, last - u, u - last - 1):
        trial.claim(some(gap < 0, step * gap >= 0), "a product of signs")
    inside = every(x + step * u >= low, x + step * u < high)
    between = every(first <= u, u <= last)
    trial.claim(bool(inside) == bool(between), "in bounds exactly between the ends")
