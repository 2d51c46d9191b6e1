"""Are two layouts the same function? Proved, refuted with a coordinate, or unknown; never a silent timeout.

Main definitions: ``equivalent``, ``Budget``.

Main statements: the coalesced form of a CuTe layout, and columns with constant of a map over F2, are complete normal
forms: unequal forms are unequal functions, and the first coordinate where they differ can be read off.

Implementation notes: engines are asked from the cheapest to the dearest: normal form, numpy table, ISL on digits, z3 on
digits. Each either decides or says why not. A coordinate that an engine finds is evaluated on both layouts before it is
reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from layoutalg.affine import PiecewiseLayout
from layoutalg.affine.digits import DigitSystem, digit_system, map_text
from layoutalg.affine.recognize import Departure
from layoutalg.affine.refine import Joint, joint_digits
from layoutalg.convert import AnyLayout, linear_form, value_at
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle, radix
from layoutalg.errors import BudgetError, Diagnostic, LayoutError, MalformedError
from layoutalg.f2 import LinearLayout
from layoutalg.inttuple import integer
from layoutalg.verdict import Proved, Refuted, Unknown, Verdict

ENGINES = ("normal-form", "table", "isl", "smt")
Stages: TypeAlias = list[tuple[Swizzle, int]]


@dataclass(frozen=True, slots=True)
class Budget:
    """What the engines may spend.

    Args:
        table_points: Largest domain that is enumerated.
        isl_operations: ISL's operation quota.
        smt_milliseconds: Time limit of z3.

    Raises:
        MalformedError: LA240, not a non-negative integer.
    """

    table_points: int = 2**20
    isl_operations: int = 100_000
    smt_milliseconds: int = 2_000

    def __post_init__(self) -> None:
        for name in ("table_points", "isl_operations", "smt_milliseconds"):
            value = integer(getattr(self, name), name, "LA240")
            # ISL and z3 read a limit of 0 as no limit at all
            if value < (0 if name == "table_points" else 1):
                raise _malformed(name, "must be positive", value)
            object.__setattr__(self, name, value)


def equivalent(
    f: AnyLayout, g: AnyLayout, budget: Budget | None = None, *, _engines: Sequence[str] = ENGINES
) -> Verdict:
    """Decide whether two layouts are the same function of the flat 1-D coordinate.

    Mathematically: equal size N and ``f(i) = g(i)`` for every i in [0, N). Axis names, nesting and the size of the
    codomain do not matter; the output of a linear layout is the packed one (first output axis in the low bits).

    Args:
        f: A CuTe, composed, linear or piecewise layout.
        g: Another one, of any of these types.
        budget: What the engines may spend; default ``Budget()``.

    Returns:
        ``Proved`` with the engine and its certificate; ``Refuted`` with the engine and a witness ``{coordinate, f, g}``
        (or the sizes, where these differ); ``Unknown`` with what each engine ran into.

    Raises:
        MalformedError: LA240, not a layout or not a budget.

    Example:
        >>> equivalent(CuteLayout((2, 4), (1, 2)), CuteLayout(8, 1))
        Proved(engine='normal-form', certificate={'coalesced': ((8, 1),), 'offset': 0})
        >>> equivalent(CuteLayout(4, 1), CuteLayout((2, 2), (1, 3))).witness
        {'coordinate': 2, 'f': 2, 'g': 3}

    Source: the ladder of engines; ``layoutalg.f2.carry`` and ``layoutalg.cute.radix`` for the normal forms.
    """
    limits = Budget() if budget is None else budget
    if not isinstance(limits, Budget):
        raise _malformed("budget", "must be a Budget or None", budget)
    for name, layout in (("f", f), ("g", g)):
        if not isinstance(layout, (CuteLayout, ComposedLayout, LinearLayout, PiecewiseLayout)):
            raise _malformed(name, "must be a CuteLayout, ComposedLayout, LinearLayout or PiecewiseLayout", layout)
    if f.size != g.size:
        return Refuted("size", {"size of f": f.size, "size of g": g.size})
    if f.size == 0:
        return Proved("size", {"size": 0})
    outputs = [len(layout.out_dims) if isinstance(layout, PiecewiseLayout) else 1 for layout in (f, g)]
    if outputs[0] != outputs[1]:
        return Refuted("outputs", {"outputs of f": outputs[0], "outputs of g": outputs[1]})
    tried: list[str] = []
    for engine in _engines:
        answer = _RUN[engine](f, g, limits)
        if not isinstance(answer, str):
            return answer
        tried.append(f"{engine}: {answer}")
    return Unknown("; ".join(tried), tuple(_engines))


def _refuted(engine: str, f: AnyLayout, g: AnyLayout, coordinate: int) -> Refuted | str:
    """Return the refutation at a coordinate after looking at both values."""
    left, right = _values(f, coordinate), _values(g, coordinate)
    if left == right:
        return f"its counterexample {coordinate} does not hold up: both are {left}"
    return Refuted(engine, {"coordinate": coordinate, "f": left, "g": right})


def _values(layout: AnyLayout, coordinate: int) -> int | tuple[int, ...]:
    if isinstance(layout, PiecewiseLayout) and len(layout.out_dims) != 1:
        return layout.at(coordinate)
    return value_at(layout, coordinate)


def _normal_form(f: AnyLayout, g: AnyLayout, _: Budget) -> Verdict | str:
    """Compare normal forms: strided under common swizzles, then F2."""
    if isinstance(f, PiecewiseLayout) or isinstance(g, PiecewiseLayout):
        return "a piecewise layout has no normal form"
    answer = _strided(f, g)
    if answer is not None:
        return answer
    if f.size & (f.size - 1):
        return "swizzles differ and the size is not a power of two"
    try:
        left, right = linear_form(f), linear_form(g)
    except BudgetError as error:
        return error.diagnostic.because
    if not isinstance(left, Departure) and left == right:
        return Proved("normal-form", {"columns": left[0], "constant": left[1]})
    # an affine map is fixed by 0 and the unit coordinates, and a departure breaks a relation among four coordinates
    suspects = {0, *(1 << bit for bit in range(f.size.bit_length() - 1))}
    for form in (left, right):
        if isinstance(form, Departure):
            top = 1 << (form.coordinate.bit_length() - 1)
            suspects |= {form.coordinate, top, form.coordinate ^ top}
    for coordinate in sorted(suspects):
        if value_at(f, coordinate) != value_at(g, coordinate):
            return _refuted("normal-form", f, g, coordinate)
    return "neither layout is affine over F2"


def _strided(f: AnyLayout, g: AnyLayout) -> Verdict | str | None:
    """Decide where both are strided once the swizzles they share on the outside are stripped; else None."""
    if not isinstance(f, (CuteLayout, ComposedLayout)) or not isinstance(g, (CuteLayout, ComposedLayout)):
        return None
    left, right = _stages(f), _stages(g)
    # a swizzle is a bijection, and so is adding an offset
    while left and right and left[0] == right[0]:
        del left[0], right[0]
    if any(swizzle.bits for swizzle, _ in (*left, *right)):
        return None
    offset_f, offset_g = sum(offset for _, offset in left), sum(offset for _, offset in right)
    modes_f, modes_g = _modes(f), _modes(g)
    if (offset_f, modes_f) == (offset_g, modes_g):
        return Proved("normal-form", {"coalesced": modes_f, "offset": offset_f})
    if offset_f != offset_g:
        return _refuted("normal-form", f, g, 0)
    position = 1
    for (extent_f, stride_f), (extent_g, stride_g) in zip(modes_f, modes_g, strict=False):
        if stride_f != stride_g:
            break
        position *= min(extent_f, extent_g)
        if extent_f != extent_g:
            break
    return _refuted("normal-form", f, g, position)


def _stages(layout: CuteLayout | ComposedLayout) -> Stages:
    """Return the (swizzle, offset) pairs, outermost first, with the identity swizzles inside folded into offsets."""
    answer: Stages = []
    for swizzle, offset in layout.stages if isinstance(layout, ComposedLayout) else ():
        if swizzle.bits == 0 and answer:
            # Sw o (a + (b + x)): the identity below passes its offset on
            answer[-1] = (answer[-1][0], answer[-1][1] + offset)
        else:
            answer.append((swizzle, offset))
    return answer


def _modes(layout: CuteLayout | ComposedLayout) -> tuple[tuple[int, int], ...]:
    return radix.merge(layout.base.flat if isinstance(layout, ComposedLayout) else layout.flat)


def _table(f: AnyLayout, g: AnyLayout, budget: Budget) -> Verdict | str:
    """Compare all values."""
    if f.size > budget.table_points:
        return f"{f.size} points are more than {budget.table_points}"
    try:
        different = f.table() != g.table()
    except LayoutError as error:
        return error.diagnostic.because
    wrong = np.flatnonzero(different.any(axis=1) if different.ndim == 2 else different)
    return _refuted("table", f, g, int(wrong[0])) if wrong.size else Proved("table", {"points": f.size})


def _digits(layout: AnyLayout, prefix: str) -> tuple[DigitSystem | PiecewiseLayout, list[int]]:
    """Return a function on digits and the extents of these."""
    if isinstance(layout, PiecewiseLayout):
        return layout, [extent for _, extent in layout.inputs]
    system = digit_system(layout, prefix)
    return system, [extent for _, extent in system.digits]


def _joint(f: AnyLayout, g: AnyLayout) -> tuple[Joint, DigitSystem | PiecewiseLayout, DigitSystem | PiecewiseLayout]:
    (left, left_extents), (right, right_extents) = _digits(f, "f"), _digits(g, "g")
    return joint_digits(left_extents, right_extents), left, right


def _isl(f: AnyLayout, g: AnyLayout, budget: Budget) -> Verdict | str:
    """Compare as maps on common digits."""
    from layoutalg.affine import isl

    joint, left, right = _joint(f, g)
    texts = [side.text if isinstance(side, PiecewiseLayout) else map_text(side) for side in (left, right)]
    links = [joint.text(joint.left), joint.text(joint.right)]
    try:
        point = isl.first_difference(texts[0], texts[1], (links[0], links[1]), budget.isl_operations)
    except BudgetError as error:
        return error.diagnostic.because
    if point is None:
        return Proved("isl", {"maps": tuple(texts), "digits": tuple(links)})
    names = [name for name, _ in joint.digits]
    return _refuted("isl", f, g, joint.coordinate(dict(zip(names, point, strict=True))))


def _smt(f: AnyLayout, g: AnyLayout, budget: Budget) -> Verdict | str:
    """Ask z3 for a difference on common digits."""
    from layoutalg import smt

    joint, left, right = _joint(f, g)
    try:
        point = smt.first_difference(smt.Question(joint, left, right), budget.smt_milliseconds)
    except BudgetError as error:
        return error.diagnostic.because
    if point is None:
        return Proved("smt", {"solver": "z3", "logic": "QF_LIA", "digits": joint.digits})
    return _refuted("smt", f, g, joint.coordinate(point))


_RUN = {"normal-form": _normal_form, "table": _table, "isl": _isl, "smt": _smt}


def _malformed(argument: str, rule: str, actual: object) -> MalformedError:
    shown = repr(actual)
    return MalformedError(
        Diagnostic(
            code="LA240",
            what="this question about equality is malformed",
            where=(argument,),
            because=f"{rule}, not {shown if len(shown) <= 120 else shown[:117] + '...'}",
        )
    )
