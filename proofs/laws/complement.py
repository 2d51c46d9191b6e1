"""Complements: what a layout leaves out, disjoint and complete, in order, and defined where a tiling exists.

Main statements: with strides g_0, g_0 s_0 g_1, ..., every x below the bound has one expansion in the radix g_0, s_0,
g_1, s_1, ..., n; the digits below s_k are the coordinate in A, the others that in the complement. So (A, C) is a
bijection onto [0, N).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise, product
from typing import Any

from layoutalg.cute import CuteLayout, ceil_div, complement
from layoutalg.cute.complement import Chain, divisible_chain, gaps
from layoutalg.cute.inttuple import flatten
from layoutalg.ground.digits import Flat, evaluate, merge
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.places import index
from layoutalg.proofs.laws.term import denied
from layoutalg.proofs.laws.trial import Trial

_CHAIN = "two modes with strides g and g s h, all g, h >= 1, all extents >= 2, all bounds: step of the induction"


def _chained(trial: Trial) -> tuple[list[Any], Chain, Any]:
    """Return g, s, h, t and the number of outermost steps; the modes s:g and t:(g s h); and the bound."""
    g, s, h, t, steps = [trial.extent(name) for name in ("g", "s", "h", "t", "steps")]
    end, slack = t * (s * g * h), trial.integer("slack")
    trial.assume(s >= 2, t >= 2, slack >= 0, slack < end)
    bound = steps * end - slack
    trial.assume(bound >= 1)
    trial.divides(-bound, end, -steps, slack)
    trial.divides(s * g * h, s * g, h)
    return [g, s, h, t, steps], ((s, g, 1), (t, s * g * h, s)), bound


def _covers(trial: Trial, fill: Callable[[Chain, int], Flat] = gaps) -> None:
    radix, chain, bound = _chained(trial)
    found = fill(chain, bound)
    digits = [trial.digit(f"x{k}", extent) for k, extent in enumerate(radix)]
    outside = [(digits[k], radix[k]) for k in (0, 2, 4) if radix[k] != 1]
    trial.claim(len(outside) == len(found), "a digit for every gap")
    for (_, extent), (count, _) in zip(outside, found, strict=True):
        trial.claim(count == extent, "a digit has the extent of its gap")
    x = digits[4]
    for digit, extent in zip(digits[3::-1], radix[3::-1], strict=True):
        x = digit + extent * x
    place = index(trial, [digit for digit, _ in outside], [count for count, _ in found]) if found else 0
    inside = evaluate(((radix[1], chain[0][1]), (radix[3], chain[1][1])), index(trial, digits[1:4:2], radix[1:4:2]))
    trial.claim(inside + evaluate(found, place) == x, "A(c) + C(j) = x")


def _rounded_down(chain: Chain, bound: int) -> Flat:
    """Leave out the gap within a step of the chain that is not 1."""
    (s, d, _), (t, e, _) = chain
    return merge(((e // (s * d), s * d), (-(-bound // (t * e)), t * e)))


def _ordered(trial: Trial, fill: Callable[[Chain, int], Flat] = gaps) -> None:
    _, chain, bound = _chained(trial)
    found = fill(chain, bound)
    for (count, stride), (_, wider) in pairwise(found):
        trial.claim(stride * count <= wider, "a mode starts behind the mode before it")
    for count, stride in found:
        trial.claim(count >= 2, "no mode is superfluous")
        trial.claim(stride >= 1, "strides are positive")


def _backwards(chain: Chain, bound: int) -> Flat:
    return tuple(reversed(gaps(chain, bound)))


def _least(trial: Trial, fill: Callable[[Chain, int], Flat] = gaps) -> None:
    (_, _, _, _, steps), chain, bound = _chained(trial)
    (_, _, _), (t, e, _) = chain
    trial.assume(steps >= 2)
    count, stride = fill(chain, bound)[-1]
    trial.claim(stride == t * e, "the outermost step follows the last mode")
    trial.claim(count * stride >= bound, "the bound is covered")
    trial.claim((count - 1) * stride < bound, "no step is superfluous")


def _truncated(chain: Chain, bound: int) -> Flat:
    """Leave out the outermost step, as if it were not begun."""
    *rest, (count, stride) = gaps(chain, bound)
    return (*rest, (count - 1, stride))


Case = tuple[CuteLayout, int]


def _cases() -> Iterator[Case]:
    for count in (1, 2):
        for shape, stride in product(product(range(1, 5), repeat=count), product(range(9), repeat=count)):
            for bound in (1, 7, 24):
                yield CuteLayout(shape, stride), bound


def _bijective(case: Case, complement: Callable[[CuteLayout, int], CuteLayout] = complement) -> str | None:
    layout, bound = case
    moving = [CuteLayout(extent, stride).table().tolist() for extent, stride in layout.flat if stride]
    values = [sum(parts) for parts in product(*moving)]
    try:
        found = complement(layout, bound)
    except LayoutError:
        return "a tile of an interval is refused" if _tiles(values) else None
    both = sorted(value + start for value in values for start in found.table().tolist())
    end = len(both)
    if both != list(range(end)):
        return "the layout and its complement are no bijection onto an interval"
    if end < bound:
        return "the bound is not covered"
    starts = found.table().tolist()
    return None if starts == sorted(starts) else "the complement is not in order"


def _tiles(values: list[int]) -> bool:
    """Return whether copies of a set of offsets tile an interval [0, n): the least free offset starts the next copy."""
    if len(set(values)) < len(values):
        return False
    taken: set[int] = set()
    free = 0
    for _ in range(64):
        copy = {free + value for value in values}
        if taken & copy:
            return False
        taken |= copy
        while free in taken:
            free += 1
        if free == len(taken):
            return True
    return False


def _by_ceilings(layout: CuteLayout, bound: int) -> CuteLayout:
    """Divide strides without a look at the remainder, as pycute does."""
    digits, current = [], 1
    for stride, extent in sorted((stride, extent) for extent, stride in layout.flat if stride):
        digits.append((stride // current, current))
        current = extent * stride
    digits.append((-(-bound // current), current))
    return CuteLayout(tuple([extent for extent, _ in digits]), tuple([stride for _, stride in digits]))


def _sorted_chain(trial: Trial, chain: Callable[..., Chain] = divisible_chain) -> None:
    _, ((s, d, _), (t, e, _)), _ = _chained(trial)
    trial.assume(s * d != e)
    swapped = trial.flag("swapped")
    flat = ((t, e), (s, d)) if swapped else ((s, d), (t, e))
    trial.claim(d < e, "the second stride is greater")
    trial.claim(denied(e < s * d), "and not below the reach of the first mode")
    found = chain(flat, "")
    for mode, wanted in zip(found, ((s, d, t if swapped else 1), (t, e, 1 if swapped else s)), strict=True):
        for got, given in zip(mode, wanted, strict=True):
            trial.claim(got == given, "modes keep extent, stride and weight")


def _as_given(flat: Flat, where: str) -> Chain:  # noqa: ARG001
    """Leave the modes in the order given."""
    (s, d), (t, e) = flat
    return ((s, d, 1), (t, e, s))


Shaped = tuple[CuteLayout, tuple[int, int]]


def _shaped() -> Iterator[Shaped]:
    layouts = [CuteLayout(extent, stride) for extent in (1, 2, 3, 4) for stride in (1, 2, 4)]
    return product(layouts, product(range(1, 9), range(1, 7)))


def _by_shape(case: Shaped, complement: Callable[..., CuteLayout] = complement) -> str | None:
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


def _of_the_size(layout: CuteLayout, bound: Any) -> CuteLayout:
    """Take the size of the shape, as pycute does."""
    return complement(layout, CuteLayout(bound).size)


_ABOUT = tuple(f"layoutalg.cute.complement.{name}" for name in ("complement", "complement_up_to", "gaps"))

LAWS = (
    Law(
        "complement.bijective",
        "Every x below the bound is A(c) + C(j) for one c and one j: the digits of x in the radix of both; so A and C "
        "are disjoint but for 0, and complete; by induction over the chain.",
        _ABOUT,
        integers(_covers, partial(_covers, fill=_rounded_down), _CHAIN),
    ),
    Law(
        "complement.ordered",
        "The modes of the complement are in order of their strides, each behind the reach of the one before, none of "
        "extent 1: C is increasing.",
        _ABOUT,
        integers(_ordered, partial(_ordered, fill=_backwards), _CHAIN),
    ),
    Law(
        "complement.least",
        "The outermost gap is counted to the least number of whole steps that covers the bound.",
        _ABOUT,
        integers(_least, partial(_least, fill=_truncated), f"{_CHAIN}; bounds past the layout"),
    ),
    Law(
        "complement.shape",
        "complement(A, S) for a shape S counts whole outermost steps mode by mode, and is refused exactly where these "
        "do not cover it.",
        ("layoutalg.cute.complement.complement", "layoutalg.cute.complement._bound_of", "layoutalg.cute.ceil_div"),
        enumerated(_shaped, _by_shape, partial(_by_shape, complement=_of_the_size), "12 layouts, shapes to (8,6)", 576),
        "ceil_div divides mode by mode, which is structure; complement.least is proved for all bounds",
    ),
    Law(
        "complement.chain",
        "divisible_chain brings modes into the order of their strides and keeps the weight that each has in the 1-D "
        "coordinate.",
        ("layoutalg.cute.complement.divisible_chain",),
        integers(_sorted_chain, partial(_sorted_chain, chain=_as_given), "two modes of a chain in either order"),
    ),
    Law(
        "complement.defined",
        "complement(A, n), with A a bijection onto an interval, at least [0, n), exists exactly where copies of the "
        "moving part of A tile an interval.",
        ("layoutalg.cute.complement.complement",),
        enumerated(
            _cases,
            _bijective,
            partial(_bijective, complement=_by_ceilings),
            "layouts of at most 2 modes with extents 1..4 and strides 0..8, bounds 1, 7 and 24",
            3996,
        ),
        "complement.bijective proves the value for all layouts; that no other layout tiles an interval is a theorem "
        "about sets (de Bruijn), not about values of a function, and was not tried with solvers",
    ),
)
