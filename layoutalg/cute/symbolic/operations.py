"""The CuTe algebra on symbolic layouts; each result carries the conditions it needs.

Main statements: for all sizes that meet the assumptions and side conditions of a result, the result at those sizes is
the same function as the operation of ``layoutalg.cute`` on the operands at those sizes. A condition that never holds
raises; one that may hold is carried as open.

Implementation notes: if several sets of conditions suffice, the one with the least demanding open conditions is chosen;
it is not claimed to be the weakest possible.

References: J. Cecka, arXiv:2603.02298.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import ParamSpec, TypeAlias, TypeVar

from layoutalg.cute import composition as concrete
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.symbolic.follow import Flat, Link, chain, follow, merged, no_form, quotient
from layoutalg.cute.symbolic.layout import SymbolicLayout, SymbolicValue, int_nest, symbolic
from layoutalg.cute.symbolic.ledger import Ledger, Nested, graft, leaves
from layoutalg.ground import clock, limits
from layoutalg.ground.assumptions import Assumptions, SideCondition
from layoutalg.ground.conditions import Condition, at_least, equal
from layoutalg.ground.decide import find_sizes
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, LayoutError, MalformedError, shown
from layoutalg.ground.layout import composes
from layoutalg.ground.limits import TUPLE_DEPTH, TUPLE_MODES
from layoutalg.ground.polynomial import ONE, ZERO, Polynomial, names_of, product_of
from layoutalg.ground.polynomial_text import PolynomialLike, polynomial

Operand: TypeAlias = "SymbolicLayout | CuteLayout"
Tiler: TypeAlias = "SymbolicLayout | CuteLayout | PolynomialLike | tuple[Tiler, ...] | None"
Piece: TypeAlias = "tuple[Nested, Nested, Ledger]"
"""Shape, stride and the ledger under which they are valid."""


def _shared(first: Assumptions, second: Assumptions, names: tuple[frozenset[str], frozenset[str]]) -> Assumptions:
    """Merge two assumptions; a name that is a size on either side stays a size."""
    sizes = (names[0] - set(first.integers)) | (names[1] - set(second.integers))
    signed = [name for name in (*first.integers, *second.integers) if name not in sizes]
    return Assumptions((*first.conditions, *second.conditions), signed)


def ledger_of(operands: Iterable[SymbolicLayout], where: str) -> Ledger:
    """Return the ledger of an operation with the assumptions and conditions of its operands."""
    known, names = Assumptions(), frozenset[str]()
    entries: list[SideCondition] = []
    for operand in operands:
        used = operand.symbols | operand.assumptions.names
        known = _shared(known, operand.assumptions, (names, used))
        names |= used
        entries += operand.conditions
    return Ledger(known, entries, where)


def bad_tiler(rule: str, actual: object) -> MalformedError:
    """Return the error for a malformed tiler (LA630)."""
    got = actual if isinstance(actual, str) else shown(actual)
    return MalformedError(
        Diagnostic(code="LA630", what="the tiler is malformed", because=f"the tiler {rule}; got {got[:120]}")
    )


def by_mode(operand: SymbolicLayout, tiler: Tiler, name: str, step: Callable[..., Piece]) -> SymbolicLayout:
    """Apply ``step`` to the layout, or to each mode of a tuple tiler."""
    _check_nest(tiler, 0, [0])
    ledger = ledger_of((operand, *_layouts_of(tiler)), f"{name}({operand}, {_tiler_text(tiler)})")

    def walk(shape: Nested, stride: Nested, part: Tiler, ledger: Ledger) -> Piece:
        if part is None:
            return shape, stride, ledger
        if not isinstance(part, tuple):
            mode = tuple(zip(leaves(shape), leaves(stride), strict=True))
            return step(mode, symbolic(part, ledger.assumptions), ledger)
        if isinstance(shape, Polynomial) or isinstance(stride, Polynomial) or len(part) != len(shape):
            raise bad_tiler(f"needs one entry per mode of {operand}", _tiler_text(part))
        shapes: list[Nested] = []
        strides: list[Nested] = []
        for extent, pace, entry in zip(shape, stride, part, strict=True):
            extents, paces, ledger = walk(extent, pace, entry, ledger)
            shapes.append(extents)
            strides.append(paces)
        return tuple(shapes), tuple(strides), ledger

    shape, stride, ledger = walk(operand.shape, operand.stride, tiler, ledger)
    return SymbolicLayout(shape, stride, ledger.assumptions, ledger.conditions)


def _check_nest(tiler: Tiler, level: int, seen: list[int]) -> None:
    """Raise if a tiler nests too deep or has too many entries."""
    seen[0] += 1
    if level > TUPLE_DEPTH or seen[0] > TUPLE_MODES:
        raise bad_tiler(f"must nest at most {TUPLE_DEPTH} deep and have at most {TUPLE_MODES} entries", tiler)
    if isinstance(tiler, tuple):
        for entry in tiler:
            _check_nest(entry, level + 1, seen)


def _layouts_of(tiler: Tiler) -> list[SymbolicLayout]:
    if isinstance(tiler, tuple):
        return [layout for entry in tiler for layout in _layouts_of(entry)]
    return [tiler] if isinstance(tiler, SymbolicLayout) else []


def _tiler_text(tiler: Tiler) -> str:
    if isinstance(tiler, tuple):
        return "(" + ",".join([_tiler_text(entry) for entry in tiler]) + ")"
    return (
        "_" if tiler is None else str(tiler) if isinstance(tiler, SymbolicLayout | CuteLayout | str) else shown(tiler)
    )


P = ParamSpec("P")
T = TypeVar("T")


def _in_time(operation: Callable[P, T]) -> Callable[P, T]:
    """Run an operation under the symbolic time limit."""

    @functools.wraps(operation)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with clock.within(limits.SYMBOLIC_SECONDS):
            return operation(*args, **kwargs)

    return run


@_in_time
def coalesce(layout: Operand) -> SymbolicLayout:
    """Return the layout in fewer modes with the same function of the 1-D coordinate.

    Mathematically: adjacent modes fuse where the next stride is known to continue the run; no condition is added.

    Args:
        layout: Any symbolic layout.

    Example:
        >>> print(coalesce(SymbolicLayout(("M", "N"), (1, "M"))))
        M*N:1
        >>> print(coalesce(SymbolicLayout(("M", "N"), (1, "K"))))
        (M,N):(1,K)
        >>> print(coalesce(SymbolicLayout(("M", "N"), (1, "K"), ("K == M",))))
        M*N:1

    Laws: keeps the function of the 1-D coordinate; idempotent.
    """
    operand = symbolic(layout)
    ledger = ledger_of((operand,), f"coalesce({operand})")
    return _from_flat(merged(operand.flat, ledger), ledger)


@composes(SymbolicLayout, SymbolicLayout)
@composes(SymbolicLayout, CuteLayout)
@_in_time
def composition(outer: Operand, inner: Tiler) -> SymbolicLayout:
    """Return ``outer`` after ``inner``: the layout c -> outer(inner(c)).

    Mathematically: each mode of ``inner`` is followed through the extents of ``outer``: it stays inside an extent,
    skips extents that divide its stride, or fills an extent that its stride divides. All digits in one mode of
    ``outer`` together stay inside its extent, so nothing carries.

    Args:
        outer: A layout.
        inner: A layout; a size n, meaning ``n:1``; or a tuple with one such entry per mode of ``outer``, where None
            keeps the mode.

    Example:
        >>> print(composition(SymbolicLayout(("M", "N"), ("N", 1)), (64, 64)))
        (64,64):(N,1) where M >= 64, N >= 64
        >>> rows = SymbolicLayout((4, "N"), ("M/4", "M"))
        >>> print(composition(SymbolicLayout(("M", "N"), ("N", 1)), rows))
        (4,N):(M*N/4,1) where M % 4 == 0
        >>> print(composition(SymbolicLayout(("M", "N"), ("N", 1), ("M % 4 == 0",)), rows))
        (4,N):(M*N/4,1)
    """
    operand = symbolic(outer)
    return by_mode(operand, inner, "composition", _compose)


@_in_time
def complement(layout: Operand, cosize: PolynomialLike | None = None) -> SymbolicLayout:
    """Return the layout of the offsets that ``layout`` skips.

    Mathematically: as ``layoutalg.cute.complement``. The modes are ordered so that each stride is a multiple of
    stride times extent of the mode before it.

    Args:
        layout: Strides positive or 0. Elements.
        cosize: Bound to cover; default that of the layout. That the outermost gap divides it is a side condition.
            Elements.

    Example:
        >>> print(complement(SymbolicLayout("M", "N"), "M*N*K"))
        (N,K):(1,M*N)
        >>> print(complement(SymbolicLayout(64, 1), "M"))
        M/64:64 where M % 64 == 0
    """
    operand = symbolic(layout)
    bound = None if cosize is None else polynomial(cosize)
    ledger = ledger_of((operand,), f"complement({operand}{'' if bound is None else f', {bound}'})")
    if bound is not None:
        ledger.require(at_least(bound, 1))
        if not bound.whole:
            ledger.require(Condition("integral", bound))
    links, ledger = chain(merged(operand.flat, ledger), ledger)
    gaps, end = _gaps(links, ledger)
    if bound is not None and not ledger.holds(at_least(end, bound)):
        gaps.append((quotient(bound, end, ledger), end))
    else:
        _require_end(gaps, links, ledger)
    return _from_flat(merged(tuple(gaps), ledger), ledger)


@_in_time
def right_inverse(layout: Operand) -> SymbolicLayout:
    """Return R with layout(R(i)) = i for all i < size(R).

    Mathematically: the strides 1, s, s t, ... are followed as far as they are known to continue; no condition is added.
    A longer inverse may exist at particular sizes.

    Args:
        layout: Any symbolic layout. Elements.

    Example:
        >>> print(right_inverse(SymbolicLayout(("M", "N"), ("N", 1))))
        (N,M):(M,1)

    Laws: composition(L, R) is the identity on [0, size(R)).
    """
    operand = symbolic(layout)
    ledger = ledger_of((operand,), f"right_inverse({operand})")
    left = _weighted(merged(operand.flat, ledger))
    digits: list[tuple[Polynomial, Polynomial]] = []
    current = ONE
    while True:
        found = next((mode for mode in left if ledger.holds(equal(mode[1], current))), None)
        if found is None:
            return _from_flat(merged(tuple(digits), ledger), ledger)
        left.remove(found)
        digits.append((found[0], found[2]))
        current = current * found[0]


@_in_time
def left_inverse(layout: Operand) -> SymbolicLayout:
    """Return R with R(layout(i)) = i for every 1-D coordinate i whose coordinates in stride-0 modes are 0.

    Mathematically: as ``layoutalg.cute.left_inverse`` on the layout's own offsets; rows may be padded. Stride-0
    modes repeat offsets, so R(layout(i)) is i with 0 in those modes. Values at skipped offsets are unspecified.

    Args:
        layout: Strides positive or 0. Elements.

    Example:
        >>> print(left_inverse(SymbolicLayout(("M", "N"), (1, "P"), ("P >= M",))))
        (P,N):(1,M)
        >>> print(left_inverse(SymbolicLayout(("M", "N", "K"), (1, 0, "M"))))
        (M,K):(1,M*N)

    Laws: composition(R, L) is the identity on L's domain where L is injective; composition(L, composition(R, L)) = L.
    """
    operand = symbolic(layout)
    ledger = ledger_of((operand,), f"left_inverse({operand})")
    links, ledger = chain(merged(operand.flat, ledger), ledger, padded=True)
    digits: list[tuple[Polynomial, Polynomial]] = []
    end, last = ONE, ONE
    for link in links:
        if link.whole:
            digits.append((quotient(link.stride, end, ledger), ZERO))
        else:
            digits[-1] = (quotient(link.stride, last, ledger), digits[-1][1])
        digits.append((link.extent, link.weight))
        end, last = link.extent * link.stride, link.stride
    return _from_flat(merged(tuple(digits), ledger), ledger)


@_in_time
def logical_divide(layout: Operand, tiler: Tiler) -> SymbolicLayout:
    """Return the layout split into (tile, rest): layout after (T, complement(T, size of layout)).

    Args:
        layout: A layout.
        tiler: A layout; a size n, meaning ``n:1``; or a tuple with one such entry per mode, where None keeps the
            mode. That the tile divides the size is a side condition.

    Example:
        >>> print(logical_divide(SymbolicLayout(("M", "N"), ("N", 1)), (64, 64)))
        ((64,M/64),(64,N/64)):((N,64*N),(1,64)) where M % 64 == 0, N % 64 == 0

    Source: CuTe ``logical_divide``; unlike CuTe, never pads a rest that does not fit.
    """
    return by_mode(symbolic(layout), tiler, "logical_divide", _divide)


@_in_time
def logical_product(layout: Operand, tiler: Operand | PolynomialLike) -> SymbolicLayout:
    """Return the layout repeated in the order of ``tiler``: (A, complement(A, size(A) cosize(T)) after T).

    Args:
        layout: The tile A. Strides positive or 0.
        tiler: A layout T with strides positive or 0; a size n means ``n:1``.

    Example:
        >>> print(logical_product(SymbolicLayout(("M", 4), (4, 1)), "N"))
        ((M,4),N):((4,1),4*M)
    """
    tile = symbolic(layout)
    if tiler is None or isinstance(tiler, tuple):
        raise bad_tiler("must be a layout or a size", tiler)
    order = symbolic(tiler, tile.assumptions)
    ledger = ledger_of((tile, order), f"logical_product({tile}, {order})")
    span = cosize(order)
    for entry in span.conditions:
        ledger.require(entry.condition)
    links, ledger = chain(merged(tile.flat, ledger), ledger)
    gaps, end = _gaps(links, ledger)
    # the outermost gap is only followed as far as the offsets of T reach, so any large enough extent works
    rest = merged((*gaps, (tile.size * span.value, end)), ledger)
    shape, stride, ledger = _follow(rest, order, ledger, endless=True)
    return SymbolicLayout((tile.shape, shape), (tile.stride, stride), ledger.assumptions, ledger.conditions)


@_in_time
def cosize(layout: Operand) -> SymbolicValue:
    """Return 1 + the greatest offset of a layout with strides of at least 0.

    Example:
        >>> print(cosize(SymbolicLayout(("M", "N"), ("N", 1))))
        M*N
    """
    operand = symbolic(layout)
    ledger = ledger_of((operand,), f"cosize({operand})")
    total = ONE
    for extent, stride in operand.flat:
        ledger.require(at_least(stride, 0))
        total = total + (extent - 1) * stride
    return SymbolicValue(total, ledger.assumptions, ledger.conditions)


def _from_flat(flat: Flat, ledger: Ledger) -> SymbolicLayout:
    if not flat:
        flat = ((ONE, ZERO),)
    shape: Nested = tuple([extent for extent, _ in flat]) if len(flat) > 1 else flat[0][0]
    stride: Nested = tuple([step for _, step in flat]) if len(flat) > 1 else flat[0][1]
    return SymbolicLayout(shape, stride, ledger.assumptions, ledger.conditions)


def _weighted(flat: Flat) -> list[tuple[Polynomial, Polynomial, Polynomial]]:
    """Return (extent, stride, weight in the 1-D coordinate) of each mode."""
    answer: list[tuple[Polynomial, Polynomial, Polynomial]] = []
    weight = ONE
    for extent, stride in flat:
        answer.append((extent, stride, weight))
        weight = weight * extent
    return answer


def _gaps(links: list[Link], ledger: Ledger) -> tuple[list[tuple[Polynomial, Polynomial]], Polynomial]:
    """Return the gaps before each mode of a chain, and where the chain ends."""
    gaps: list[tuple[Polynomial, Polynomial]] = []
    end = ONE
    for link in links:
        gaps.append((quotient(link.stride, end, ledger), end))
        end = link.extent * link.stride
    return gaps, end


def _require_end(gaps: list[tuple[Polynomial, Polynomial]], links: list[Link], ledger: Ledger) -> None:
    """Require more than one point after the outermost gap; otherwise that gap would be past the end."""
    beyond = ONE
    for (gap, _), link in zip(reversed(gaps), reversed(links), strict=True):
        beyond = beyond * link.extent
        if not ledger.holds(equal(gap, ONE)):
            ledger.require(at_least(beyond, 2))
            return


def _compose(mode: Flat, inner: SymbolicLayout, ledger: Ledger) -> Piece:
    return _follow(merged(mode, ledger), inner, ledger)


def _divide(mode: Flat, tile: SymbolicLayout, ledger: Ledger) -> Piece:
    size = product_of([extent for extent, _ in mode])
    links, ledger = chain(merged(tile.flat, ledger), ledger)
    gaps, end = _gaps(links, ledger)
    gaps.append((quotient(size, end, ledger), end))
    rest = _from_flat(merged(tuple(gaps), ledger), ledger)
    both = SymbolicLayout((tile.shape, rest.shape), (tile.stride, rest.stride), rest.assumptions, rest.conditions)
    return _follow(merged(mode, ledger), both, ledger)


def _follow(outer: Flat, inner: SymbolicLayout, ledger: Ledger, endless: bool = False) -> Piece:
    """Return ``outer`` after ``inner``; a refusal is confirmed at concrete sizes."""
    plain = _plain(outer, inner)
    if plain is not None and not endless:
        answer = symbolic(concrete(*plain), ledger.assumptions)
        return answer.shape, answer.stride, ledger
    try:
        runs, ledger = follow(outer, inner.flat, ledger, endless)
    except AdmissibilityError as error:
        raise _confirmed(error, outer, inner, ledger) from error
    shapes: list[Nested] = [run[0][0] if len(run) == 1 else tuple([extent for extent, _ in run]) for run in runs]
    strides: list[Nested] = [run[0][1] if len(run) == 1 else tuple([step for _, step in run]) for run in runs]
    return graft(iter(shapes), inner.shape), graft(iter(strides), inner.stride), ledger


def _plain(outer: Flat, inner: SymbolicLayout) -> tuple[CuteLayout, CuteLayout] | None:
    """Return both operands as concrete layouts, or None if a name occurs."""
    values = [value.as_int() for mode in (*outer, *inner.flat) for value in mode]
    if None in values:
        return None
    return _at(outer, {}), CuteLayout(int_nest(inner.shape, {}), int_nest(inner.stride, {}))


def _at(flat: Flat, sizes: dict[str, int]) -> CuteLayout:
    modes = [(int_nest(extent, sizes), int_nest(step, sizes)) for extent, step in flat]
    if len(modes) == 1:
        return CuteLayout(*modes[0])
    return CuteLayout(tuple([extent for extent, _ in modes]), tuple([step for _, step in modes]))


def _confirmed(error: AdmissibilityError, outer: Flat, inner: SymbolicLayout, ledger: Ledger) -> LayoutError:
    """Return the error with sizes at which the concrete operation raises too, or if it does not, ``no_form``."""
    names = names_of([value for mode in (*outer, *inner.flat) for value in mode])
    found = find_sizes(ledger.known, None, True, names=names)
    if found is None:
        return error
    sizes = dict(found)
    try:
        left, right = _at(outer, sizes), _at(inner.flat, sizes)
        concrete(left, right)
    except LayoutError as refusal:
        diagnostic = error.diagnostic
        because = f"{diagnostic.because}; composition({left}, {right}) is refused: {refusal.diagnostic.because}"
        return AdmissibilityError(replace(diagnostic, because=because, witness=sizes))
    return no_form(ledger.where, f"every known form needs a condition that does not hold: {error.diagnostic.because}")
