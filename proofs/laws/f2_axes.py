"""Linear layouts rearranged: what renaming, turning, cutting and extending axes does to the values.

Notation: a layout has the input axes i of 4 and j of 2 points and the output axes o of 4 and p of 2, given by three
columns; a value is (o, p).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from layoutalg.f2 import LinearLayout
from layoutalg.f2.divide import quotient
from layoutalg.f2.reshape import rename_ins, rename_outs, squeeze_ins, squeeze_outs, transpose_outs
from layoutalg.f2.resize import (
    ensure_not_larger,
    ensure_not_smaller,
    remove_zero_bases,
    sublayout,
    zero_out,
)
from layoutalg.f2.subspace import Subspace
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.laws.engines import enumerated
from layoutalg.proofs.laws.law import Law

Columns = tuple[int, int, int]
_VECTORS = tuple(product(range(4), range(2)))
_POINTS = tuple(product(range(2), range(4)))


def _layout(columns: Columns) -> LinearLayout:
    first, second, third = [_VECTORS[column] for column in columns]
    return LinearLayout.from_bases({"i": [first, second], "j": [third], "k": []}, {"o": 4, "p": 2})


def _cases() -> Iterator[Columns]:
    yield from product(range(8), repeat=3)


def _at(columns: Columns, i: int, j: int) -> tuple[int, int]:
    o = p = 0
    for bit, column in zip((i & 1, i >> 1, j), columns, strict=True):
        if bit:
            o, p = o ^ _VECTORS[column][0], p ^ _VECTORS[column][1]
    return o, p


Changed = Callable[[LinearLayout], LinearLayout]


def _backwards(layout: LinearLayout) -> LinearLayout:
    """Take the bits of the first axis in the other order."""
    bases = {axis: list(images) for axis, images in layout.bases.items()}
    name = next(iter(bases))
    return LinearLayout.from_bases({**bases, name: bases[name][::-1]}, layout.out_dims)


def _rearranged(columns: Columns, changed: Changed = lambda layout: layout) -> str | None:
    layout = _layout(columns)
    renamed = changed(rename_outs(rename_ins(layout, {"i": "x"}), {"o": "y"}))
    turned, squeezed = changed(transpose_outs(layout, ("p", "o"))), changed(squeeze_ins(layout, "k"))
    if list(turned.out_dims) != ["p", "o"] or list(squeezed.in_dims) != ["i", "j"]:
        return "the axes are others"
    flat = squeeze_outs(changed(zero_out(layout, "p", 1)))
    for j, i in _POINTS:
        o, p = _at(columns, i, j)
        if renamed(x=i, j=j, k=0) != {"y": o, "p": p}:
            return "renaming changes the function"
        if turned(i=i, j=j, k=0) != {"o": o, "p": p} or squeezed(i=i, j=j) != {"o": o, "p": p}:
            return "turning or squeezing changes the function"
        if sublayout(layout, ("i", "k"), "o")(i=i, k=0) != {"o": _at(columns, i, 0)[0]}:
            return "a part has other values"
        if flat(i=i, j=j, k=0).get("o") != o or flat(i=i, j=j, k=0).get("p", 0) != 0:
            return "an output set to 0 is not, or another one is"
    short = remove_zero_bases(layout, "i")
    images = [_VECTORS[column] for column in columns[:2] if column]
    if list(short.bases["i"]) != images:
        return "columns of 0 are left, or others are gone"
    return None


def _fitted(columns: Columns, larger: Callable[..., LinearLayout] = ensure_not_smaller) -> str | None:
    layout = _layout(columns)
    small, wide = ensure_not_larger(layout, {"o": 2, "p": 2}), larger(layout, {"o": 16, "p": 2})
    for j, i in _POINTS:
        o, p = _at(columns, i, j)
        if wide(**dict.fromkeys(wide.in_dims, 0) | {"i": i, "j": j}) != {"o": o, "p": p}:
            return "what was there moves"
        found = small(i=i, j=j, k=0)
        if found["o"] >= 2 or (o < 2 and all(column < 4 for column in columns) and found != {"o": o, "p": p}):
            return "what fits moves"
    reached = {
        wide(**dict(zip(wide.in_dims, at, strict=True)))["o"] >> 2 for at in product(*map(range, wide.in_dims.values()))
    }
    return None if small.out_dims["o"] <= 2 and reached == {0, 1, 2, 3} else "the size is another"


def _wrong_inverse(layout: LinearLayout) -> LinearLayout:
    """Take the transpose for the inverse."""
    return layout


def _inverted(columns: Columns, inverse: Callable[[LinearLayout], Any] = LinearLayout.inverse) -> str | None:
    layout = squeeze_ins(_layout(columns), "k")
    values = {_at(columns, i, j) for j, i in _POINTS}
    try:
        found = inverse(layout)
    except LayoutError:
        return "a bijection is refused" if len(values) == 8 else None
    if ~layout != layout.inverse():
        return "~L is another layout"
    for j, i in _POINTS:
        o, p = _at(columns, i, j)
        if list(found.in_dims) != ["o", "p"] or found(o=o, p=p) != {"i": i, "j": j}:
            return "the inverse of a value is another point"
    return None


def _identity_part(columns: Columns, rest: Callable[[LinearLayout, str], LinearLayout] = quotient) -> str | None:
    base = LinearLayout.from_bases({"i": [_VECTORS[column] for column in columns[:2]]}, {"o": 4, "p": 2})
    layout = base * LinearLayout.identity({"w": 2})
    return None if rest(layout, "w") == base else "an axis that stays in place is not dropped"


Spaces = tuple[tuple[int, ...], tuple[int, ...]]


def _spaces() -> Iterator[Spaces]:
    yield from product([(), (1,), (3,), (5,), (1, 2), (3, 4), (6, 5), (1, 2, 4)], repeat=2)


def _span(vectors: tuple[int, ...]) -> set[int]:
    members = {0}
    for vector in vectors:
        members |= {member ^ vector for member in members}
    return members


def _summed(case: Spaces, add: Callable[[Subspace, Subspace], Subspace] = Subspace.sum) -> str | None:
    first, second = [Subspace.spanned((("x", 3),), vectors) for vectors in case]
    if _span(add(first, second).basis) != _span((*case[0], *case[1])):
        return "the sum is another space"
    rest = first.complement()
    whole = _span((*first.basis, *rest.basis)) == set(range(8))
    return None if whole and _span(first.basis) & _span(rest.basis) == {0} else "no complement"


_WHY = "names and sizes of axes are what is rewritten; columns go through all values"


def _law(
    name: str, says: str, about: tuple[str, ...], cases: Any, fails: Any, wrong: Any, scope: str, count: int
) -> Law:
    dotted = tuple(f"layoutalg.f2.{each}" for each in about)
    return Law(f"f2_axes.{name}", says, dotted, enumerated(cases, fails, wrong, scope, count), _WHY)


_ALL = "all 512 layouts of three columns"

LAWS = (
    _law(
        "rearranged",
        "renaming, turning, squeezing, sublayout, zero_out and remove_zero_bases keep the values they speak of.",
        (
            *(
                f"reshape.{name}"
                for name in ("rename_ins", "rename_outs", "transpose_outs", "squeeze_ins", "squeeze_outs")
            ),
            *(f"resize.{name}" for name in ("sublayout", "zero_out", "remove_zero_bases")),
        ),
        _cases,
        _rearranged,
        partial(_rearranged, changed=_backwards),
        _ALL,
        512,
    ),
    _law(
        "fitted",
        "ensure_not_larger and ensure_not_smaller leave what fits where it is, and the output has the size.",
        ("resize.ensure_not_larger", "resize.ensure_not_smaller"),
        _cases,
        _fitted,
        partial(_fitted, larger=lambda layout, shape: ensure_not_smaller(layout, {**shape, "o": 8})),
        _ALL,
        512,
    ),
    _law(
        "inverse",
        "L.inverse() and ~L take every value to its point, and exist exactly for bijections.",
        ("layout.LinearLayout.inverse", "layout.LinearLayout.__invert__"),
        _cases,
        _inverted,
        partial(_inverted, inverse=_wrong_inverse),
        _ALL,
        512,
    ),
    _law(
        "quotient",
        "quotient of L times the identity of an axis, by this axis, is L.",
        ("divide.quotient",),
        lambda: ((a, b, 0) for a, b in product(range(8), repeat=2)),
        _identity_part,
        partial(_identity_part, rest=lambda layout, _: layout),
        "all 64 layouts of two columns",
        64,
    ),
    _law(
        "subspaces",
        "the sum is the span of both, and a complement meets a subspace in 0 alone and spans the rest.",
        ("subspace.Subspace.sum", "subspace.Subspace.complement"),
        _spaces,
        _summed,
        partial(_summed, add=lambda first, _: first),
        "64 pairs of subspaces of F2^3",
        64,
    ),
)
