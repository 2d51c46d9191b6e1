"""Symbolic CuTe layouts: at all sizes that meet its conditions, an answer is the one of the concrete layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from layoutalg.cute import CuteLayout
from layoutalg.cute.symbolic import (
    SymbolicLayout,
    coalesce,
    complement,
    composition,
    cosize,
    left_inverse,
    logical_divide,
    logical_product,
    right_inverse,
)
from layoutalg.ground.errors import LayoutError, RepresentabilityError
from layoutalg.proofs.laws.engines import enumerated
from layoutalg.proofs.laws.law import Law

Sizes = dict[str, int]
Tiler = SymbolicLayout | str | int
_ROW = SymbolicLayout(("M", "N"), ("N", 1))
_COLUMN = SymbolicLayout(("M", "N"))
_PADDED = SymbolicLayout(("M", "N"), (1, "P"), ("P >= M",))
_BLOCKED = SymbolicLayout((4, "M", "N"), ("N", "4*N", 1))
_RUN = SymbolicLayout((4, "M"), (1, 4))
_SPREAD = SymbolicLayout(("M", 2), (4, 1))
_REPEATED = SymbolicLayout(("M", 2, "N"), (1, 0, "M"))
_EVEN = SymbolicLayout(("M", "N/2"), (1, "M"), ("N % 2 == 0",))
_LAYOUTS = (_ROW, _COLUMN, _PADDED, _BLOCKED, _RUN, _SPREAD, _REPEATED, _EVEN)
_TILERS: tuple[Tiler, ...] = (2, 4, "M", "N", SymbolicLayout((2, "N"), ("M", 1)), SymbolicLayout("N", "M"))
_SIZES = tuple(dict(zip("MNP", sizes, strict=True)) for sizes in product((1, 2, 3, 4, 8), (1, 2, 4), (3, 8)))


def _flat(shape: Any, stride: Any) -> list[tuple[int, int]]:
    if isinstance(shape, tuple):
        return [mode for part in zip(shape, stride, strict=True) for mode in _flat(*part)]
    return [(shape, stride)]


def _values(layout: CuteLayout) -> list[int]:
    """Return the values in the order of the 1-D coordinate, from the definition."""
    values = [0]
    for extent, stride in _flat(layout.shape, layout.stride):
        values = [value + stride * digit for digit in range(extent) for value in values]
    return values


def _at(layout: SymbolicLayout, sizes: Sizes) -> CuteLayout | None:
    """Return the layout at sizes, None where these do not meet its assumptions or conditions."""
    try:
        return layout.subs({name: sizes[name] for name in layout.symbols | layout.assumptions.names})
    except LayoutError:
        return None


def _tiler_at(tiler: Tiler, sizes: Sizes) -> CuteLayout | None:
    if isinstance(tiler, SymbolicLayout):
        return _at(tiler, sizes)
    return CuteLayout(sizes[tiler] if isinstance(tiler, str) else tiler, 1)


Unary = Callable[[SymbolicLayout], SymbolicLayout]
Binary = Callable[[SymbolicLayout, Tiler], SymbolicLayout]
Judge = Callable[..., bool]


def _without_conditions(operation: Callable[..., SymbolicLayout]) -> Callable[..., SymbolicLayout]:
    """Assume what is needed silently."""

    def careless(*operands: Any) -> SymbolicLayout:
        found = operation(*operands)
        answer = object.__new__(SymbolicLayout)
        for name in ("shape", "stride", "assumptions"):
            object.__setattr__(answer, name, getattr(found, name))
        object.__setattr__(answer, "conditions", ())
        return answer

    return careless


def _swapped(operation: Callable[..., SymbolicLayout]) -> Callable[..., SymbolicLayout]:
    """Turn the first two modes of an answer."""

    def turned(*operands: Any) -> SymbolicLayout:
        found = operation(*operands)
        if not isinstance(found.shape, tuple) or not isinstance(found.stride, tuple):
            return found
        (m, n, *more), (d, e, *rest) = found.shape, found.stride
        return SymbolicLayout((n, m, *more), (e, d, *rest), found.assumptions, found.conditions)

    return turned


def _one(case: int, operation: Unary, right: Judge) -> str | None:
    """Compare an operation on one layout with the concrete ones, at all sizes."""
    layout = _LAYOUTS[case]
    try:
        found = operation(layout)
    except RepresentabilityError:  # no polynomial says it
        return None
    tried = 0
    for sizes in _SIZES:
        here = _at(layout, sizes)
        answer = None if here is None else _at(found, sizes)
        if here is not None and answer is not None:
            tried += 1
            if not right(here, answer):
                return f"another answer at {sizes}"
    return None if tried else "no sizes meet the conditions"


def _two(case: tuple[int, int], operation: Binary, right: Judge) -> str | None:
    """Compare an operation on a layout and a tiler with the concrete ones, at all sizes."""
    layout, tiler = _LAYOUTS[case[0]], _TILERS[case[1]]
    try:
        found = operation(layout, tiler)
    except LayoutError:  # no sizes work, or no polynomial says it
        return None
    tried = 0
    for sizes in _SIZES:
        here, tile = _at(layout, sizes), _tiler_at(tiler, sizes)
        if here is None or tile is None:
            continue
        answer = _at(found, sizes)
        if answer is not None:
            tried += 1
            if not right(here, tile, answer):
                return f"another answer at {sizes}"
    return None if tried else "no sizes meet the conditions"


def _same(layout: CuteLayout, answer: CuteLayout) -> bool:
    return _values(layout) == _values(answer)


def _is_complement(layout: CuteLayout, answer: CuteLayout) -> bool:
    mine, rest = _values(layout), _values(answer)
    together = {a + b for a in mine for b in rest}
    return rest == sorted(set(rest)) and len(together) == len(set(mine)) * len(rest)


def _is_right(layout: CuteLayout, answer: CuteLayout) -> bool:
    values = _values(layout)
    return [values[at] for at in _values(answer)] == list(range(len(_values(answer))))


def _is_left(layout: CuteLayout, answer: CuteLayout) -> bool:
    values = _values(layout)
    back = [_value(answer, value) for value in values]
    return [values[at] for at in back] == values


def _value(layout: CuteLayout, index: int) -> int:
    """Return the value at a 1-D coordinate, the last mode being endless."""
    modes, total = _flat(layout.shape, layout.stride), 0
    for place, (extent, stride) in enumerate(modes):
        index, digit = (0, index) if place == len(modes) - 1 else divmod(index, extent)
        total += digit * stride
    return total


def _is_composed(layout: CuteLayout, tile: CuteLayout, answer: CuteLayout) -> bool:
    return _values(answer) == [_value(layout, value) for value in _values(tile)]


def _is_divided(layout: CuteLayout, tile: CuteLayout, answer: CuteLayout) -> bool:
    values, first = _values(answer), [_value(layout, value) for value in _values(tile)]
    return values[: len(first)] == first and sorted(values) == sorted(_values(layout))


def _is_product(layout: CuteLayout, tile: CuteLayout, answer: CuteLayout) -> bool:
    values, mine = _values(answer), _values(layout)
    order = [values[len(mine) * k] for k in range(len(_values(tile)))]
    copies = all(values[len(mine) * k :][: len(mine)] == [start + v for v in mine] for k, start in enumerate(order))
    ranks = [sorted(set(order)).index(start) for start in order]
    wanted = [sorted(set(_values(tile))).index(value) for value in _values(tile)]
    return copies and ranks == wanted and len(set(values)) == len(set(mine)) * len(set(order))


def _greatest(case: int, bound: Callable[[SymbolicLayout], Any] = cosize) -> str | None:
    layout, found = _LAYOUTS[case], bound(_LAYOUTS[case])
    for sizes in _SIZES:
        here = _at(layout, sizes)
        if (
            here is not None
            and found.subs({n: sizes[n] for n in layout.assumptions.names | layout.symbols}) != max(_values(here)) + 1
        ):
            return f"another bound at {sizes}"
    return None


def _agrees(case: tuple[int, int], after: Callable[..., SymbolicLayout] = SymbolicLayout.then) -> str | None:
    layout, tiler = _LAYOUTS[case[0]], _TILERS[case[1]]
    try:
        wanted = composition(layout, tiler)
    except LayoutError:
        return None
    inner = tiler if isinstance(tiler, SymbolicLayout) else SymbolicLayout(tiler, 1)
    return None if after(inner, layout) == wanted == layout @ inner else "another composition"


Offset = Callable[[SymbolicLayout, Any], Any]
_COORDINATES: tuple[tuple[SymbolicLayout, Any], ...] = (
    (_ROW, ("i", "j")),
    (_COLUMN, ("i", 0)),
    (_BLOCKED, ("i", 0, "j")),
    (_RUN, ("i", 0)),
    (_COLUMN, "i"),
    (_ROW, "i"),
    (_SPREAD, "i"),
    (_BLOCKED, "i"),
)


def _wrong_offset(layout: SymbolicLayout, coordinate: Any) -> Any:
    """Let the last digit wrap."""
    found = layout.expression(coordinate)
    return found + 1 if found.has(*[symbol for symbol in found.free_symbols if symbol.name == "i"]) else found


def _offset(case: int, offset: Offset = SymbolicLayout.expression) -> str | None:
    layout, coordinate = _COORDINATES[case]
    text = offset(layout, coordinate)
    for sizes in _SIZES[::3]:
        here = _at(layout, sizes)
        if here is None:
            continue
        extents = [extent for extent, _ in _flat(here.shape, here.stride)]
        strides = [stride for _, stride in _flat(here.shape, here.stride)]
        places = list(coordinate) if isinstance(coordinate, tuple) else []
        if not places:
            points = [({"i": k}, value) for k, value in enumerate(_values(here))]
        else:
            ranges = [range(e) if isinstance(name, str) else (name,) for name, e in zip(places, extents, strict=True)]
            points = [
                (
                    {name: x for name, x in zip(places, at, strict=True) if isinstance(name, str)},
                    sum([x * d for x, d in zip(at, strides, strict=True)]),
                )
                for at in product(*ranges)
            ]
        for values, wanted in points:
            known = {symbol: {**sizes, **values}[symbol.name] for symbol in getattr(text, "free_symbols", ())}
            if int(text.subs(known)) != wanted:
                return f"another offset at {sizes} and {values}"
    return None


_WHY = (
    "answers are polynomials of numbers and names whose search goes by what follows from assumptions; sizes are tried"
)
_SCOPE = f"sizes M of 1..4 and 8, N of 1, 2 and 4, P of 3 and 8; {len(_LAYOUTS)} layouts"


def _singles() -> Iterator[int]:
    yield from range(len(_LAYOUTS))


def _pairs() -> Iterator[tuple[int, int]]:
    yield from product(range(len(_LAYOUTS)), range(len(_TILERS)))


def _unary(name: str, says: str, operation: Unary, right: Judge, fault: Any = _swapped) -> Law:
    used = {"complement": ("follow.chain", "follow.quotient"), "left_inverse": ("follow.chain",)}
    about = (f"operations.{name}", "follow.merged", *used.get(name, ()))
    wrong = partial(_one, operation=fault(operation), right=right)
    return Law(
        f"symbolic.{name}",
        says,
        tuple(f"layoutalg.cute.symbolic.{each}" for each in about),
        enumerated(_singles, partial(_one, operation=operation, right=right), wrong, _SCOPE, len(_LAYOUTS)),
        _WHY,
    )


def _binary(name: str, says: str, operation: Any, right: Judge, fault: Any = _without_conditions) -> Law:
    tilers = () if name == "logical_product" else ("operations.by_mode",)
    about = (
        f"operations.{name}",
        "follow.follow",
        "follow.cheapest",
        "operations.ledger_of",
        "ledger.Ledger.holds",
        *tilers,
    )
    scope = f"{_SCOPE} and {len(_TILERS)} tilers"
    return Law(
        f"symbolic.{name}",
        says,
        tuple(f"layoutalg.cute.symbolic.{each}" for each in about),
        enumerated(
            _pairs,
            partial(_two, operation=operation, right=right),
            partial(_two, operation=fault(operation), right=right),
            scope,
            len(_LAYOUTS) * len(_TILERS),
        ),
        _WHY,
    )


LAWS = (
    _unary("coalesce", "coalesce(L) is the same function as L at all sizes.", coalesce, _same),
    _unary(
        "complement",
        "at all sizes that meet the conditions, the complement is ascending and meets each offset of L once.",
        complement,
        _is_complement,
        lambda _: coalesce,
    ),
    _unary("right_inverse", "L(R(i)) = i at all sizes that meet the conditions.", right_inverse, _is_right),
    _unary("left_inverse", "L(R(L(i))) = L(i) at all sizes that meet the conditions.", left_inverse, _is_left),
    _binary(
        "composition", "(A after B)(i) = A(B(i)) at all sizes that meet the conditions.", composition, _is_composed
    ),
    _binary(
        "logical_divide",
        "the tile of a division is A after the tile, and all of it has the values of A, at all sizes that meet the "
        "conditions.",
        logical_divide,
        _is_divided,
    ),
    _binary(
        "logical_product",
        "a product is copies of A that share no offset, in the order of T, at all sizes that meet the conditions.",
        logical_product,
        _is_product,
        _swapped,
    ),
    Law(
        "symbolic.cosize",
        "cosize(L) is one more than the greatest offset at all sizes.",
        ("layoutalg.cute.symbolic.operations.cosize",),
        enumerated(
            _singles,
            _greatest,
            partial(_greatest, bound=lambda layout: cosize(coalesce(_swapped(complement)(layout)))),
            _SCOPE,
            len(_LAYOUTS),
        ),
        _WHY,
    ),
    Law(
        "symbolic.operators",
        "B.then(A) and A @ B are composition(A, B).",
        tuple(f"layoutalg.cute.symbolic.layout.SymbolicLayout.{name}" for name in ("then", "__matmul__")),
        enumerated(
            _pairs,
            _agrees,
            partial(_agrees, after=lambda inner, layout: layout.then(inner)),
            f"{len(_LAYOUTS)} layouts and {len(_TILERS)} tilers",
            len(_LAYOUTS) * len(_TILERS),
        ),
        _WHY,
    ),
    Law(
        "symbolic.offset",
        "the expression of an offset has the offset's value at all sizes and coordinates.",
        (
            "layoutalg.cute.symbolic.layout.SymbolicLayout.expression",
            "layoutalg.cute.symbolic.ledger.offset_expression",
        ),
        enumerated(
            lambda: iter(range(len(_COORDINATES))),
            _offset,
            partial(_offset, offset=_wrong_offset),
            f"{len(_COORDINATES)} coordinates of 5 layouts, every third of the sizes",
            len(_COORDINATES),
        ),
        _WHY,
    ),
)
