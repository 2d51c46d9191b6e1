"""Integer layouts: composition, inverses, normal forms and what is said about their values.

Notation: a layout is x -> A x + b on a box, some outputs read modulo m. Layouts of symbols are the library's own class
with symbols for its numbers, made without the checks of the constructor, which ask for numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise, product
from typing import Any

from layoutalg.ground.errors import LayoutError
from layoutalg.integer import axes as on_axes
from layoutalg.integer.axes import Modes, _first_difference, coalesced, merge, reshape, split
from layoutalg.integer.compose import compose
from layoutalg.integer.layout import IntegerLayout
from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.trial import Trial

Case = tuple[IntegerLayout, ...]
_STEP = "all extents >= 1, all strides; two axes: base and step of the induction"


def _of_symbols(extents: Any, rows: Any, moduli: Any) -> IntegerLayout:
    layout = object.__new__(IntegerLayout)
    fields = {
        "inputs": tuple([(f"x{k}", extent) for k, extent in enumerate(extents)]),
        "outputs": tuple([(f"y{k}", m) for k, m in enumerate(moduli)]),
        "matrix": rows,
        "offset": (0,) * len(rows),
    }
    for name, value in fields.items():
        object.__setattr__(layout, name, value)
    return layout


def _evaluated(modes: Modes, index: Any, output: int) -> Any:
    total: Any = 0
    for extent, stride in modes:
        index, digit = divmod(index, extent)
        total = total + digit * stride[output]
    return total


def _wrong_coalesced(layout: IntegerLayout) -> Modes:
    """Compare the first output alone."""
    modes = coalesced(_of_symbols(layout.extents, layout.matrix[:1], layout.moduli[:1]))
    if len(modes) != 1 or len(layout.extents) != 2:
        return coalesced(layout)
    return ((modes[0][0], tuple([row[0] for row in layout.matrix])),)


def _keeps(trial: Trial, form: Callable[[IntegerLayout], Modes] = coalesced) -> None:
    m, n = trial.extent("m"), trial.extent("n")
    rows = tuple([tuple([trial.integer(f"{name}{k}") for k in (0, 1)]) for name in "de"])
    x, y = trial.digit("x", m), trial.digit("y", n)
    layout = _of_symbols((m, n), rows, (0, 0))
    trial.divides(x + m * y, m, y, x)
    for output, value in enumerate(layout.value((x, y))):
        trial.claim(_evaluated(form(layout), x + m * y, output) == value, "the value at a flat index stays")


def _wrong_difference(left: Modes, right: Modes) -> Any:
    """Look at the longer of two extents."""
    (extent, stride), (other, step) = left[0], right[0]
    if stride != step:
        return 1
    return None if extent == other else (extent if extent > other else other)


def _differ(trial: Trial, first: Callable[[Modes, Modes], Any] = _first_difference) -> None:
    m, n, d, e = trial.extent("m"), trial.extent("n"), trial.integer("d"), trial.integer("e")
    s, t, a, b = trial.extent("s"), trial.extent("t"), trial.integer("a"), trial.integer("b")
    trial.assume(m >= 2, n >= 2, s >= 2, t >= 2, m * d != e, s * a != b, m * n == s * t)
    left: Any = ((m, (d,)), (n, (e,)))
    right: Any = ((s, (a,)), (t, (b,)))
    if m == s:
        return
    at = first(left, right)
    if at is None:
        trial.claim(False, "forms of unequal extents differ somewhere")
    for extent in (m, s):
        trial.divides(1, extent, 0, 1)
    if at != 1:
        small, large = (m, s) if m < s else (s, m)
        trial.claim(at == small, "the end of the shorter mode")
        trial.divides(small, small, 1)
        trial.divides(small, large, 0, small)
    trial.claim(_evaluated(left, at, 0) != _evaluated(right, at, 0), "the forms differ there")


def layouts(axes: int = 2, extents: range = range(1, 4), strides: range = range(-1, 4)) -> Iterator[IntegerLayout]:
    """All layouts of one output over Z, and some modulo 4."""
    for box, row in product(product(extents, repeat=axes), product(strides, repeat=axes)):
        named = {f"x{k}": extent for k, extent in enumerate(box)}
        for offset, modulus in ((0, 0), (1, 4)):
            yield IntegerLayout.from_strides(named, row, offset, modulus=modulus)


def points_of(layout: IntegerLayout) -> list[tuple[int, ...]]:
    """Return the points of a box in the order of the flat index."""
    return [at[::-1] for at in product(*map(range, reversed(layout.extents)))]


def values_of(layout: IntegerLayout) -> list[tuple[int, ...]]:
    """Return the values in the order of the flat index, from the definition."""
    return [
        tuple(
            [
                total % m if m else total
                for row, b, m in zip(layout.matrix, layout.offset, layout.moduli, strict=True)
                for total in [b + sum(map(math.prod, zip(row, at, strict=True)))]
            ]
        )
        for at in points_of(layout)
    ]


def one() -> Iterator[Case]:
    yield from ((layout,) for layout in layouts())


def forgets_offset(layout: IntegerLayout) -> IntegerLayout:
    return on_axes.shift(layout, [-b for b in layout.offset])


def _reshaped(case: Case, changed: Callable[[IntegerLayout], IntegerLayout] = lambda layout: layout) -> str | None:
    (layout,) = case
    values, (m, n) = values_of(layout), layout.extents
    twin = on_axes.rename(layout, {"offset": "other"})
    forms = {
        "split": changed(split(layout, "x1", {"a": 1, "b": n})),
        "normal form": changed(on_axes.normal_form(layout)),
        "flip twice": on_axes.flip(changed(on_axes.flip(layout, "x0")), "x0"),
        "permute twice": on_axes.permute(changed(on_axes.permute(layout, ["x1", "x0"])), ["x0", "x1"]),
        "shift there and back": on_axes.shift(changed(on_axes.shift(layout, [3])), [-3]),
        "a longer axis, shortened": on_axes.resize(changed(on_axes.resize(layout, "x1", n + 2)), "x1", n),
        "one output of two": on_axes.select_outputs(on_axes.stack(twin, changed(layout)), ["offset"]),
        "rename": changed(on_axes.rename(layout, {"x0": "z"})),
    }
    for change in ("merge", "reshape"):
        try:
            form = merge(layout, ["x0", "x1"], "z") if change == "merge" else reshape(layout, {"z": m * n})
            forms[change] = changed(form)
        except LayoutError:
            steps = {(b[0] - a[0]) % (layout.moduli[0] or 10**6) for a, b in pairwise(values)}
            if len(steps) < 2:
                return f"{change} was refused"
    for change, result in forms.items():
        if values_of(result) != values:
            return f"{change} changes the function"
    again = on_axes.normal_form(on_axes.normal_form(layout))
    if again != on_axes.normal_form(layout) or on_axes.same_function(layout, again) is not True:
        return "the normal form changes"
    backwards, part = on_axes.flip(layout, "x0"), on_axes.slice(layout, "x0", m - 1, 1)
    wanted = [values[m * y + m - 1 - x] for y in range(n) for x in range(m)]
    if values_of(changed(backwards)) != wanted or values_of(changed(part)) != [values[m * y + m - 1] for y in range(n)]:
        return "flip or slice is another function"
    return None if values_of(changed(on_axes.fix(layout, "x0", 0))) == values[::m] else "fix is another function"


def _pairs() -> Iterator[Case]:
    for row in product(range(-1, 3), repeat=2):
        for inner in layouts(1, range(1, 5), range(-1, 4)):
            named = IntegerLayout((("y", 4), ("z", 3)), (("offset", 0),), (row,), (2,))
            for modulus in (0, 5):
                outer = named if not modulus else IntegerLayout.from_strides({"y": 4, "z": 3}, row, 2, modulus=modulus)
                b, m = inner.offset[0], inner.moduli[0]
                rows = (inner.matrix[0], (1,))
                yield outer, IntegerLayout(inner.inputs, (("y", m), ("z", 0)), rows, (b, 0))


def _swapped(outer: IntegerLayout, inner: IntegerLayout) -> IntegerLayout:
    """Match outputs to axes by place."""
    turned = IntegerLayout(tuple(zip("zy", outer.extents, strict=True)), outer.outputs, outer.matrix, outer.offset)
    return compose(turned, inner)


def _composed(case: Case, compose: Callable[..., IntegerLayout] = compose) -> str | None:
    outer, inner = case
    middle = values_of(inner)
    try:
        found = values_of(compose(outer, inner))
    except LayoutError:
        if any(not (0 <= y < 4 and 0 <= z < 3) for y, z in middle):
            return None
        wanted = [outer.value(at) for at in middle]
        m = outer.moduli[0] or 10**6
        steps = {(b[0] - a[0]) % m for a, b in pairwise(wanted)}
        return "refused although affine" if len(steps) < 2 else None
    return None if found == [outer.value(at) for at in middle] else "another function"


SMALL = "one output, two axes of extents 1..3 and strides -1..3, over Z and modulo 4"
_WHY = "the layouts' constructor asks for numbers, and the engines end by tables or by eliminations on these"


def listed(
    name: str, says: str, about: tuple[str, ...], cases: Any, fails: Any, wrong: Any, scope: str, count: int
) -> Law:
    dotted = tuple(f"layoutalg.integer.{each}" for each in about)
    return Law(name, says, dotted, enumerated(cases, fails, wrong, scope, count), _WHY)


LAWS = (
    Law(
        "integer_layouts.coalesced",
        "the coalesced form is the same function of the flat index; by induction over the axes.",
        ("layoutalg.integer.axes.coalesced", "layoutalg.integer.layout.IntegerLayout.value"),
        integers(_keeps, partial(_keeps, form=_wrong_coalesced), f"{_STEP}; two outputs over Z"),
    ),
    Law(
        "integer_layouts.one_form",
        "coalesced forms of one size whose extents differ are different functions, and first_difference is a flat "
        "index where they differ.",
        ("layoutalg.integer.axes.coalesced", "layoutalg.integer.axes._first_difference"),
        integers(_differ, partial(_differ, first=_wrong_difference), "all extents >= 2, all strides; two modes each"),
    ),
    listed(
        "integer_layouts.rewrites",
        "split, merge, reshape, normal_form, flip, permute, shift, resize, stack and rename keep the function, or "
        "refuse where none is affine; slice and fix restrict it; the normal form stays as it is.",
        (
            *[f"reshape.{name}" for name in ("split", "merge", "reshape")],
            *[f"axes.{name}" for name in ("flip", "slice", "fix", "permute", "rename", "shift", "resize", "stack")],
            *[f"axes.{name}" for name in ("select_outputs", "normal_form")],
            "axes.same_function",
        ),
        one,
        _reshaped,
        partial(_reshaped, changed=forgets_offset),
        SMALL,
        450,
    ),
    listed(
        "integer_layouts.composition",
        "(f @ g)(x) = f(g(x)) at every point, or the refusal is right.",
        ("compose.compose",),
        _pairs,
        _composed,
        partial(_composed, compose=_swapped),
        "f of two axes with strides -1..2, over Z and modulo 5; g of one axis with extents 1..4 and strides -1..3",
        1280,
    ),
)
