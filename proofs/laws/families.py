"""Forms of one function in several families: conversions and normal forms keep it, and equality is that of values.

Notation: every layout is a function of its flat coordinate; beside each layout stand its values, from the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from layoutalg.bridges.affine import linear_form, to_integer, to_linear
from layoutalg.bridges.composition import compose
from layoutalg.bridges.cute import coalesced, recognize, to_cute
from layoutalg.bridges.equal import by_form, equivalent
from layoutalg.bridges.normal import lowered, normal, one_piece, unwrapped, value_at
from layoutalg.bridges.piecewise import to_piecewise
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.recognize import Departure
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.hierarchy import Box, DigitMap, HierarchicalLayout
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.proofs.laws.engines import enumerated
from layoutalg.proofs.laws.law import Law

Values = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """A layout of any family and its values."""

    layout: Any = field(compare=False)
    values: Values


def _digits(shape: tuple[int, ...], stride: tuple[int, ...]) -> list[int]:
    values = [0]
    for extent, step in zip(shape, stride, strict=True):
        values = [value + step * digit for digit in range(extent) for value in values]
    return values


def _swizzled(bits: int, base: int, shift: int, value: int) -> int:
    return value ^ (value >> shift & ((1 << bits) - 1) << base)


def _strided() -> Iterator[Known]:
    shapes: tuple[tuple[int, ...], ...] = ((8,), (2, 4), (2, 2, 2), (3, 2))
    for shape in shapes:
        for stride in product((1, 2, 4), repeat=len(shape)):
            yield Known(CuteLayout(shape, stride), tuple(_digits(shape, stride)))
    for bits, base, shift in ((1, 0, 1), (1, 0, 2), (2, 0, 2), (1, 1, 1)):
        for (shape, stride), offset in product((((8,), (1,)), ((4, 2), (2, 1)), ((2, 4), (4, 1))), (0, 3)):
            values = [_swizzled(bits, base, shift, offset + value) for value in _digits(shape, stride)]
            yield Known(ComposedLayout(Swizzle(bits, base, shift), offset, CuteLayout(shape, stride)), tuple(values))


def _linear() -> Iterator[Known]:
    for columns in ((1, 2, 4), (4, 2, 1), (1, 3, 7), (5, 2, 4), (0, 1, 2)):
        for offset in (0, 5):
            layout = LinearLayout.from_bases({"i": [(column,) for column in columns]}, {"o": 8}, offset=(offset,))
            flips = [[column for bit, column in enumerate(columns) if i >> bit & 1] for i in range(8)]
            yield Known(layout, tuple([_xor([offset, *flipped]) for flipped in flips]))


def _xor(numbers: list[int]) -> int:
    total = 0
    for number in numbers:
        total ^= number
    return total


def _modular() -> Iterator[Known]:
    for (m, n), (a, b), offset, modulus in product(((4, 2), (3, 2)), ((1, 4), (3, 2), (-1, 4)), (0, 3), (0, 4, 8)):
        layout = IntegerLayout.from_strides({"i": m, "j": n}, (a, b), offset, modulus=modulus)
        values = [offset + value for value in _digits((m, n), (a, b))]
        yield Known(layout, tuple([value % modulus if modulus else value for value in values]))


_TEXTS: tuple[tuple[str, Callable[[int], int]], ...] = (
    ("{ [i] -> [3i + 1] : 0 <= i < 8 }", lambda i: 3 * i + 1),
    ("{ [i] -> [(3i + 1) mod 8] : 0 <= i < 8 }", lambda i: (3 * i + 1) % 8),
    ("{ [i] -> [i] : 0 <= i < 4; [i] -> [11 - i] : 4 <= i < 8 }", lambda i: i if i < 4 else 11 - i),
    ("{ [i] -> [floor(i/2) + 4*(i mod 2)] : 0 <= i < 8 }", lambda i: i // 2 + 4 * (i % 2)),
)


def _others() -> Iterator[Known]:
    for text, value in _TEXTS:
        yield Known(PiecewiseLayout(text), tuple([value(i) for i in range(8)]))
    box = Box.of(x=8)
    for modes in (((2, 4), (4, 1)), ((8, -1),), ((2, 1), (2, (2,)), (2, (2, 4)))):
        values = [0]
        for extent, stride in modes:  # a negative stride adds the reversed digit, a tuple flips the bits of its weights
            if isinstance(stride, tuple):
                values = values + [_xor([value, *stride]) for value in values]
            else:
                steps = range(extent) if stride > 0 else range(extent - 1, -1, -1)
                values = [value + abs(stride) * step for step in steps for value in values]
        yield Known(HierarchicalLayout(box, box, DigitMap(modes)), tuple(values))


def _all() -> Iterator[Known]:
    for make in (_strided, _linear, _modular, _others):
        yield from make()


def _of(layout: Any) -> Values:
    return tuple([value_at(layout, i) for i in range(layout.size)])


Changed = Callable[[Any], Any]


def _moved(layout: Any) -> Any:
    """Forget an offset."""
    if isinstance(layout, ComposedLayout):
        return layout.base
    return layout


def _kept(case: Known, changed: Changed = lambda layout: layout) -> str | None:
    layout, values = case.layout, case.values
    if _of(layout) != values:
        return "the values are not those of the definition"
    forms: dict[str, Callable[[], Any]] = {
        "normal": lambda: normal(layout),
        "lowered": lambda: lowered(layout),
        "to_piecewise": lambda: to_piecewise(layout),
        "to_cute": lambda: to_cute(layout),
        "to_linear": lambda: to_linear(layout),
        "to_integer": lambda: to_integer(layout),
        "coalesced": lambda: coalesced(layout) if isinstance(layout, (CuteLayout, ComposedLayout)) else layout,
        "one piece": lambda: (one_piece(layout) if isinstance(layout, PiecewiseLayout) else None) or layout,
        "recognize": lambda: recognize(np.array(values)),
    }
    for name, make in forms.items():
        try:
            form = changed(make())
        except LayoutError:
            if name in ("normal", "lowered", "to_piecewise", "coalesced", "one piece"):
                return f"{name} was refused"
            continue
        if _of(form) != values:
            return f"{name} changes the function"
    return _read_off(case)


def _read_off(case: Known) -> str | None:
    """Compare what is read off a layout: its form over F2, and its digits without a modulus."""
    layout, values = case.layout, case.values
    if isinstance(layout, IntegerLayout) and (found := unwrapped(layout)) is not None:
        modes = [mode for axis in found[0] for mode in axis]
        shape, stride = zip(*modes, strict=True)
        if tuple([found[1] + value for value in _digits(shape, stride)]) != values:
            return "digits without a modulus change the function"
    if len(values) & (len(values) - 1):
        return None
    form, affine = linear_form(layout), [values[0] ^ values[1 << bit] for bit in range(len(values).bit_length() - 1)]
    flips = [_xor([values[0], *[c for bit, c in enumerate(affine) if i >> bit & 1]]) for i in range(len(values))]
    if isinstance(form, Departure):
        return "affine over F2, and refused" if tuple(flips) == values else None
    same = tuple(form[0]) == tuple(affine) and form[1] == values[0] and tuple(flips) == values
    return None if same else "another form over F2"


Pair = tuple[Known, Known]


def _pairs() -> Iterator[Pair]:
    chosen = [known for known in _all() if len(known.values) == 8][::3]
    yield from product(chosen, repeat=2)


def _by_size(f: Any, g: Any) -> Any:
    """Compare ends."""
    same = value_at(f, 0) == value_at(g, 0) and value_at(f, f.size - 1) == value_at(g, g.size - 1)
    return Proved("ends") if same else equivalent(f, g)


def _equal(case: Pair, told: Callable[[Any, Any], Any] = equivalent) -> str | None:
    f, g = case
    verdict, form = told(f.layout, g.layout), by_form(f.layout, g.layout)
    if isinstance(verdict, Proved) != (f.values == g.values):
        return "equality is wrong"
    if isinstance(verdict, Refuted):
        at: Any = verdict.witness["coordinate"]
        if (verdict.witness["f"], verdict.witness["g"]) != (f.values[at], g.values[at]) or f.values[at] == g.values[at]:
            return "the witness does not show it"
    if isinstance(form, Proved) and f.values != g.values:
        return "equal normal forms of unequal functions"
    return "the normal forms differ elsewhere" if isinstance(form, int) and f.values[form] == g.values[form] else None


def _composable() -> Iterator[Pair]:
    for f, g in list(_pairs())[::2]:
        if min(g.values) >= 0 and max(g.values) < 8:
            yield f, g


_widening = partial(compose, widen=True)


def _one_way(f: Any, g: Any) -> Any:
    """Take the inner layout for the answer."""
    return g if f is not g else compose(f, g, widen=True)


def _composed(case: Pair, after: Callable[[Any, Any], Any] = _widening) -> str | None:
    f, g = case
    found = after(f.layout, g.layout)
    return None if _of(found) == tuple([f.values[value] for value in g.values]) else "another function"


_WHY = "the constructors ask for numbers; the normal forms that the conversions rest on have laws of their own"
_SCOPE = "layouts of six families with 6 or 8 points, as listed"


def _law(
    name: str, says: str, about: tuple[str, ...], cases: Any, fails: Any, wrong: Any, scope: str, count: int
) -> Law:
    dotted = tuple(f"layoutalg.bridges.{each}" for each in about)
    return Law(f"families.{name}", says, dotted, enumerated(cases, fails, wrong, scope, count), _WHY)


LAWS = (
    _law(
        "kept",
        "to_cute, to_linear, to_integer, to_piecewise, normal, lowered, coalesced and recognize keep every value or "
        "refuse, and linear_form is the form over F2 exactly where there is one.",
        (
            *("normal.normal", "normal.lowered", "normal.one_piece", "normal.unwrapped", "cute.coalesced"),
            *("cute.to_cute", "linear.to_linear", "integer.to_integer", "piecewise.in_pieces", "cute.recognize"),
            *("linear.linear_form", "values.value_at"),
        ),
        _all,
        _kept,
        partial(_kept, changed=_moved),
        _SCOPE,
        125,
    ),
    _law(
        "equality",
        "equivalent proves exactly the pairs with equal values, its witness shows the others, and by_form agrees.",
        ("equal.equivalent", "forms.by_form"),
        _pairs,
        _equal,
        partial(_equal, told=_by_size),
        f"pairs of {_SCOPE}",
        1089,
    ),
    _law(
        "composition",
        "compose(f, g, widen=True) has the value f(g(i)) at every i, whatever families f and g are of.",
        ("composition.compose", "composition.widened"),
        _composable,
        _composed,
        partial(_composed, after=_one_way),
        f"every second pair of {_SCOPE}, the values of g in 0..7",
        460,
    ),
)
