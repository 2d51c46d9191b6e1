"""Decide whether two layouts are the same function: proved, refuted with a coordinate, or unknown with the reason.

The coalesced form of a CuTe or integer layout (including several outputs and moduli), the columns and constant of a map
over F2, and the map of a hierarchical layout are complete normal forms: unequal forms mean unequal functions, and a
coordinate where they differ can be read off.

Implementation notes: engines run from cheapest to most expensive: normal form, numpy table (a sample beyond its limit),
ISL and z3 on the pieces of both layouts over common digits. Each either decides or says why not. Solver answers are not
trusted: a counterexample is evaluated on both layouts before it is reported, and equality found by ISL or z3 is checked
at many coordinates, counted in the certificate. All engines share one time limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.bridges import smt
from layoutalg.bridges.affine import linear_form, over_z
from layoutalg.bridges.digits import Joint, joint_digits
from layoutalg.bridges.normal import (
    CONFIRM_POINTS,
    ONE_OF,
    TURNED,
    AnyFamily,
    Given,
    excluded,
    family_of,
    from_coordinates,
    lowered,
    normal,
    opposite,
    outputs,
    values_at,
)
from layoutalg.bridges.piecewise import in_pieces
from layoutalg.cute import ComposedLayout, CuteLayout, idx2crd
from layoutalg.cute.swizzle import Stages, staged
from layoutalg.ground import clock, limits
from layoutalg.ground.check import Checker
from layoutalg.ground.digits import Flat, merge
from layoutalg.ground.errors import BudgetError, LayoutError, MalformedError, shown
from layoutalg.ground.layout import read, takes_offsets
from layoutalg.ground.listed import ListedLayout
from layoutalg.ground.recognize import Departure
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.hierarchy import HierarchicalLayout
from layoutalg.integer import IntegerLayout, coalesced
from layoutalg.integer.forms import residue_form, sampled_coordinates
from layoutalg.piecewise import PiecewiseLayout, operations

check = Checker("LA240", "this question about equality is malformed")
ENGINES = ("normal-form", "table", "isl", "smt")
SOLVERS = ("isl", "smt")
CHUNK = 2**16
Answer: TypeAlias = "Proved | int | str"
"""A proof of equality, a coordinate where the values should differ, or why there is neither."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of the engines.

    Args:
        table_points: Largest domain that is enumerated.
        isl_operations: ISL's operation quota.
        smt_milliseconds: Time limit of z3.
        seconds: Wall time limit of all engines together.
    """

    table_points: int = 2**20
    isl_operations: int = 500_000
    smt_milliseconds: int = 2_000
    seconds: float = limits.EQUAL_SECONDS

    def __post_init__(self) -> None:
        for name in ("table_points", "isl_operations", "smt_milliseconds"):
            value = check.integer(getattr(self, name), name)
            # ISL and z3 treat a limit of 0 as unlimited
            if value < (0 if name == "table_points" else 1):
                raise check.malformed(name, "must be positive", value)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "seconds", clock.checked_seconds(self.seconds))


_USUAL = Budget()


def equivalent(f: Given, g: Given, budget: Budget | None = None, *, _engines: Sequence[str] = ENGINES) -> Verdict:
    """Decide whether two layouts are the same function of the flat 1-D coordinate.

    Mathematically: equal size N and ``f(i) = g(i)`` for every i in [0, N), first axis or mode fastest. Axis names,
    nesting and the size of the codomain are ignored.

    Outputs: a box codomain is flattened to one number, first axis fastest: the packed output of a linear layout (first
    output axis in the low bits), the flat index of the target of a hierarchical one. Outputs of an integer or piecewise
    layout have no extents; they are compared one by one in order, ignoring names and moduli (a residue is its least
    non-negative number), and different counts refute. A partial tile is undefined where a guard excludes the point: it
    equals only a tile that excludes the same points. If one of two piecewise layouts is partial or has parameters, they
    are compared at all points of their axes, by position, and for all parameter values.

    Directions: a Triton shared layout maps ``offset`` to ``dim0``, ``dim1``, ...; if the other layout maps coordinates
    to an offset, the Triton layout is inverted, and the verdict says so under ``direction``.

    Names: layouts with symbolic sizes are compared at all sizes that the assumptions and side conditions of both allow.
    A name is one size in both, each ``?`` a number of its own. A refutation has the ``sizes``.

    Args:
        f: A layout in any form that ``layoutalg.layout`` reads: of any family, a text, an array of element offsets, a
            function of coordinates; a form without extents takes those of ``g``.
        g: Another one.
        budget: Limits of the engines; default ``Budget()``.

    Returns:
        ``Proved`` with the engine and its certificate; ``Refuted`` with the engine and a witness ``{coordinate, f, g}``
        (None for undefined), with the coordinate by the modes or axes of ``f`` as ``point`` if it has several; or with
        the different sizes or output counts; ``Unknown`` with the reason of each engine, such as a timeout.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> equivalent(CuteLayout((2, 4), (1, 2)), CuteLayout(8, 1))
        Proved(engine='normal-form', certificate={'coalesced': ((8, 1),), 'offset': 0})
        >>> equivalent(CuteLayout(4, 1), CuteLayout((2, 2), (1, 3))).witness
        {'coordinate': 2, 'f': 2, 'g': 3}
        >>> equivalent(IntegerLayout.from_strides({"i": 4}, (3,), modulus=4), CuteLayout((2, 2), (3, 2))).witness
        {'coordinate': 3, 'f': 1, 'g': 5}
        >>> equivalent("(M,4):(4,1)", "(M,(2,2)):(4,(2,1))").witness
        {'sizes': {'M': 1}, 'coordinate': 1, 'f': 1, 'g': 2}

    Source: the ladder of engines; ``layoutalg.f2.carry`` and ``layoutalg.ground.digits`` for the normal forms.
    """
    spend = _USUAL if budget is None else budget
    if not isinstance(spend, Budget):
        raise check.malformed("budget", "must be a Budget or None", budget)
    given = {"f": f, "g": g}
    f, g = read(f, like=g), read(g, like=f)
    # by name, so as not to import its module
    concrete = [(name, each) for name, each in (("f", f), ("g", g)) if type(each).__name__ != "SymbolicLayout"]
    if len(concrete) < 2:
        from layoutalg.bridges.symbolic import compare

        for name, each in concrete:
            _layout(name, each, each)
        if not concrete and any(isinstance(each, str) and "?" in each for each in given.values()):
            return Unknown("each ? is a number of its own, in f and in g: name the sizes")
        return compare(f, g, lambda left, right: equivalent(left, right, spend))
    f, g = _layout("f", f, g), _layout("g", g, f)
    notes = {
        name: f"the function {'was tabulated' if isinstance(found, ListedLayout) else f'is {found}'}"
        for name, found in (("f", f), ("g", g))
        if callable(given[name]) and not type(given[name]).__module__.startswith("layoutalg.")
    }
    if not opposite(f, g):
        return _noted(_compared(f, g, spend, _engines), {f"read {name}": text for name, text in notes.items()})
    turned = TURNED.format("f" if takes_offsets(f) else "g")
    try:
        f, g = from_coordinates(f, g), from_coordinates(g, f)
    except MalformedError as error:
        return Refuted("direction", {"because": f"{turned}; it has none: {error.diagnostic.because}"})
    notes = {**{f"read {name}": text for name, text in notes.items()}, "direction": turned}
    return _noted(_compared(f, g, spend, _engines), notes)


def _noted(found: Verdict, notes: Mapping[str, str]) -> Verdict:
    """Return a verdict that says how its layouts were read."""
    if not notes:
        return found
    if isinstance(found, Unknown):
        return replace(found, reason="; ".join([*notes.values(), found.reason]))
    if isinstance(found, Proved):
        return replace(found, certificate={**found.certificate, **notes})
    return replace(found, witness={**found.witness, **notes})


def _compared(f: AnyFamily, g: AnyFamily, spend: Budget, engines: Sequence[str]) -> Verdict:
    """Decide equality of two layouts with the same direction."""
    if _is_open(f) or _is_open(g):
        return _partial_functions(f, g)
    if f.size != g.size:
        return Refuted("size", {"size of f": f.size, "size of g": g.size})
    if f.size == 0:
        return Proved("size", {"size": 0})
    if outputs(f) != outputs(g):
        return Refuted("outputs", {"outputs of f": outputs(f), "outputs of g": outputs(g)})
    tried: list[str] = []
    with clock.within(spend.seconds):
        for engine in engines:
            try:
                clock.check("equality of two layouts")
                answer = _answer(engine, f, g, spend)
            except BudgetError as error:
                answer = error.diagnostic.because
            if not isinstance(answer, str):
                return answer
            tried.append(f"{engine}: {answer}")
    return Unknown("; ".join(tried), tuple(engines))


def _layout(name: str, value: object, like: object) -> AnyFamily:
    """Return a layout in normal form, of the extents of another one if it has none; raise on other values (LA240)."""
    found = normal(read(value, like=like))
    if found is None:
        raise check.malformed(name, f"must be a {ONE_OF}", value)
    return found


def _partial_functions(f: AnyFamily, g: AnyFamily) -> Verdict:
    """Compare piecewise layouts, one partial or with parameters, at all points and parameter values."""
    if not (isinstance(f, PiecewiseLayout) and isinstance(g, PiecewiseLayout)):
        because = "a piecewise layout that is partial or has parameters can only be compared with piecewise layouts"
        return Unknown(f"isl: {because}", ("isl",))
    if f == g:
        return Proved("normal-form", {"map": f.text})
    shapes = [(len(layout.axes), len(layout.outputs)) for layout in (f, g)]
    if shapes[0] != shapes[1]:
        return Refuted("axes", {"axes and outputs of f": shapes[0], "axes and outputs of g": shapes[1]})
    try:
        found = f.difference(g)
    except BudgetError as error:
        return Unknown(f"isl: {error.diagnostic.because}", ("isl",))
    return Proved("isl", {"maps": (f.text, g.text)}) if found is None else Refuted("isl", {"at": found})


def _answer(engine: str, f: AnyFamily, g: AnyFamily, budget: Budget) -> Verdict | str:
    """Return the answer of one engine, checked by evaluating both layouts, or why it has none."""
    if engine != "table" and not (f.is_total and g.is_total):
        if engine != "normal-form":
            return "partial tiles are compared only by normal form and by table"
        answer = partial_tiles(f, g)
    else:
        answer = _RUN[engine](lowered(f), lowered(g), budget)
    if isinstance(answer, Proved) and engine in SOLVERS:
        at, count = _sampled_difference(f, g)
        if at is None:
            return Proved(engine, {**answer.certificate, "confirmed": f"{count} of {shown(f.size)} coordinates"})
        answer = at
    if not isinstance(answer, int):
        return answer
    # the engines saw lowered forms; the witness must be valid for the original layouts
    left, right = _value(f, answer), _value(g, answer)
    if left == right:
        return f"its counterexample {answer} is wrong: both values are {left}"
    return Refuted(engine, {"coordinate": answer, "f": left, "g": right}, point=_point(f, answer))


def _point(layout: AnyFamily, coordinate: int) -> object:
    """Return a flat coordinate nested like the shape, or by axis; None for a single mode."""
    axes = layout.in_dims
    if len(axes) < 2:
        return None
    if isinstance(layout, CuteLayout | ComposedLayout):
        return idx2crd(coordinate, layout.shape)
    found = [int(part) for part in np.unravel_index(coordinate, tuple(axes.values()), order="F")]
    return tuple(found) if isinstance(layout, ListedLayout) else dict(zip(axes, found, strict=True))


def _is_open(layout: AnyFamily) -> bool:
    """Return whether a piecewise layout is partial or has parameters, so has no flat coordinates."""
    return isinstance(layout, PiecewiseLayout) and not layout.is_total


def _value(layout: AnyFamily, coordinate: int) -> int | tuple[int, ...] | None:
    return layout.at(coordinate) if layout.is_total or layout.holds(coordinate) else None  # type: ignore[union-attr]


def _sampled_difference(f: AnyFamily, g: AnyFamily) -> tuple[int | None, int]:
    """Return the first sampled coordinate where the values differ (or None), and the number of samples."""
    index = sampled_coordinates(f.size)
    different = _different(f, g, index)
    return (int(index[int(np.argmax(different))]) if different.any() else None), len(index)


def _different(f: AnyFamily, g: AnyFamily, index: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return at which coordinates the values differ; undefined differs from every value."""
    left, right = values_at(f, index), values_at(g, index)
    answer = np.atleast_1d(np.asarray(left != right, dtype=bool).any(axis=1))
    if f.is_total != g.is_total:  # -1 stands for undefined, but may be a value of the other layout
        answer |= np.asarray((right if f.is_total else left)[:, 0] < 0, dtype=bool)
    return answer


def _table(f: AnyFamily, g: AnyFamily, budget: Budget) -> Answer:
    """Compare all values; of a domain that is too large only samples, which often refute."""
    if f.size > budget.table_points:
        at, count = _sampled_difference(f, g)
        most = budget.table_points
        return f"{shown(f.size)} points exceed the limit of {most}; {count} samples agree" if at is None else at
    step = max(1, CHUNK // max(1, outputs(f)))
    for start in range(0, f.size, step):
        clock.check("equality of two tables")
        index = np.arange(start, min(f.size, start + step), dtype=np.int64)
        try:
            different = _different(f, g, index)
        except LayoutError as error:
            return error.diagnostic.because
        if different.any():
            return start + int(np.argmax(different))
    return Proved("table", {"points": f.size})


def _joint(f: AnyFamily, g: AnyFamily) -> tuple[Joint, PiecewiseLayout, PiecewiseLayout]:
    """Return both layouts as pieces, and the digits that their axes have in common."""
    left, right = in_pieces(f), in_pieces(g)
    return joint_digits(*([extent for _, extent in side.inputs] for side in (left, right))), left, right


def _isl(f: AnyFamily, g: AnyFamily, budget: Budget) -> Answer:
    """Compare as maps on common digits."""
    joint, left, right = _joint(f, g)
    texts = [left.text, right.text]
    links = joint.text(joint.left), joint.text(joint.right)
    found = operations.difference(texts[0], texts[1], links, budget.isl_operations)
    if found is None:
        return Proved("isl", {"maps": tuple(texts), "digits": links})
    return joint.coordinate(dict(zip([name for name, _ in joint.digits], found[1], strict=True)))


def _smt(f: AnyFamily, g: AnyFamily, budget: Budget) -> Answer:
    """Compare on common digits with z3."""
    joint, left, right = _joint(f, g)
    point = smt.first_difference(joint, left, right, budget.smt_milliseconds)
    if point is None:
        return Proved("smt", {"solver": "z3", "logic": "QF_LIA", "digits": joint.digits})
    return joint.coordinate(point)


# normal forms


def partial_tiles(f: AnyFamily, g: AnyFamily) -> Answer:
    """Compare two layouts, at least one of them a partial tile."""
    found = _same_key(f, g)
    if found is not None:
        return found
    for tile, other in ((f, g), (g, f)):
        at = excluded(tile) if isinstance(tile, HierarchicalLayout) else None
        if at is not None and (other.is_total or other.holds(at)):  # type: ignore[union-attr]
            return at
    return "the guards differ, or the maps under equal guards"


def _same_key(f: AnyFamily, g: AnyFamily) -> Proved | None:
    """Return the proof that two layouts of one family have the same normal form, or None."""
    left, right = family_of(f).key(f), family_of(g).key(g)
    return Proved("normal-form", left) if left is not None and left == right else None


def by_form(f: AnyFamily, g: AnyFamily) -> Answer:
    """Compare normal forms of total layouts: strided below common swizzles, then over F2.

    Example:
        >>> by_form(CuteLayout(4, 1), CuteLayout((2, 2), (1, 3)))
        2
    """
    formless = next((kind.formless for kind in (family_of(f), family_of(g)) if kind.formless), "")
    if formless:
        return f"a {formless} has no normal form"
    found: Answer | None = _same_key(f, g) or _strided(f, g)
    if found is None:
        found = _modular(f, g)
    if found is not None:
        return found
    if outputs(f) != 1:
        return "the moduli differ and wrap"
    return _affine(f, g)


def _strided(f: AnyFamily, g: AnyFamily) -> Answer | None:
    """Decide if both are strided after stripping their common outer swizzles; else None."""
    if not isinstance(f, CuteLayout | ComposedLayout) or not isinstance(g, CuteLayout | ComposedLayout):
        return None
    left, right = f.stages, g.stages
    # swizzles and offsets are bijections, so equal outer ones cancel
    while left and right and left[0] == right[0]:
        left, right = left[1:], right[1:]
    modes = merge(f.base.flat)
    if any(swizzle.bits for swizzle, _ in (*left, *right)):
        return _periodic(left, right, modes) if modes == merge(g.base.flat) else None
    offset = sum(offset for _, offset in left)
    if offset != sum(offset for _, offset in right):
        return 0
    at = _break(modes, merge(g.base.flat))
    return Proved("normal-form", {"coalesced": modes, "offset": offset}) if at is None else at


def _periodic(left: Stages, right: Stages, modes: Flat) -> Proved | None:
    """Prove that two stacks of swizzles and offsets over the same modes are one function: s(x + P) = s(x) + P."""
    period = max(swizzle.period for swizzle, _ in (*left, *right))
    if period > CONFIRM_POINTS:
        return None
    whole = CuteLayout(period, 1)
    try:
        same = np.array_equal(staged(left, whole).table(), staged(right, whole).table())
    except MalformedError:  # a whole period leaves the range of 64 bits, the layouts need not
        return None
    if not same:
        return None
    return Proved("normal-form", {"coalesced": modes, "period": period})


def _modular(f: AnyFamily, g: AnyFamily) -> Answer | None:
    """Compare coalesced forms over the integers if both sides have the same moduli; else None."""
    left, right = _without_wraps(f), _without_wraps(g)
    if left is None or right is None or left.moduli != right.moduli:
        return None
    if left.offset != right.offset:
        return 0
    modes = coalesced(left)
    at = _break(modes, coalesced(right))
    if at is not None:
        return at
    return Proved("normal-form", {"coalesced": modes, "offset": left.offset, "moduli": left.moduli})


def _break(left: Iterable[tuple[int, Any]], right: Iterable[tuple[int, Any]]) -> int | None:
    """Return the first coordinate where coalesced modes of equal size differ, or None."""
    position = 1
    for (extent, stride), (other, step) in zip(left, right, strict=False):
        if stride != step:
            return position
        position *= min(extent, other)
        if extent != other:
            return position
    return None


def _without_wraps(layout: AnyFamily) -> IntegerLayout | None:
    """Return an integer or strided layout, over Z wherever a modulus does not wrap; None for other families."""
    found = over_z(layout)
    if found is None:
        return None
    outputs, rows, constants = [], [], []
    for (name, modulus), row, constant in zip(found.outputs, found.matrix, found.offset, strict=True):
        form = residue_form(row, constant, modulus, found.extents)
        outputs.append((name, 0 if form else modulus))
        rows.append(form[0] if form else row)
        constants.append(form[1] if form else constant)
    return IntegerLayout(found.inputs, tuple(outputs), tuple(rows), tuple(constants))


def _affine(f: AnyFamily, g: AnyFamily) -> Answer:
    """Compare two layouts of which at least one is affine over F2."""
    if f.size & (f.size - 1):
        return "swizzles differ and the size is not a power of two"
    left, right = linear_form(f), linear_form(g)
    if not isinstance(left, Departure) and left == right:
        return Proved("normal-form", {"columns": left[0], "constant": left[1]})
    # an affine map is determined by 0 and the unit coordinates; a departure breaks a relation among four coordinates
    suspects = {0, *(1 << bit for bit in range(f.size.bit_length() - 1))}
    for form in (left, right):
        if isinstance(form, Departure):
            top = 1 << (form.coordinate.bit_length() - 1)
            suspects |= {form.coordinate, top, form.coordinate ^ top}
    found = next((at for at in sorted(suspects) if f.at(at) != g.at(at)), None)
    return "neither layout is affine over F2" if found is None else found


_RUN: dict[str, Callable[[AnyFamily, AnyFamily, Budget], Answer]] = {
    "normal-form": lambda f, g, _: by_form(f, g),
    "table": _table,
    "isl": _isl,
    "smt": _smt,
}
