"""Are two layouts the same function? Proved, refuted with a coordinate, or unknown; never a silent timeout.

Main definitions: ``equivalent``, ``Budget``.

Main statements: the coalesced form of a CuTe or integer layout (several outputs and moduli included), columns with
constant of a map over F2, and the map of a hierarchical layout are complete normal forms: unequal forms are unequal
functions, and a coordinate where they differ can be read off.

Implementation notes: engines are asked from the cheapest to the dearest: normal form, numpy table (a sample beyond its
limit), ISL on digits, z3 on digits. Each either decides or says why not. Nothing that a solver says is believed as it
stands: a coordinate that an engine finds is evaluated on both layouts before it is reported, and equality found by ISL
or z3 is compared at many coordinates, which the certificate counts. All engines together run under one clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from layoutalg.bridges.digits import DigitSystem, digit_system, map_text
from layoutalg.bridges.linear import linear_form, value_at
from layoutalg.bridges.lower import excluded, lowered
from layoutalg.bridges.operand import FAMILIES, ONE_OF, AnyFamily, Given, plain
from layoutalg.bridges.piecewise import to_piecewise
from layoutalg.bridges.refine import Joint, joint_digits
from layoutalg.bridges.values import sampled_coordinates, values_at
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.cute.inttuple import integer
from layoutalg.ground import clock, limits
from layoutalg.ground.digits import merge
from layoutalg.ground.errors import BudgetError, Diagnostic, LayoutError, MalformedError, shown
from layoutalg.ground.recognize import Departure
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.hierarchy import HierarchicalLayout
from layoutalg.integer import IntegerLayout, coalesced
from layoutalg.integer.forms import residue_form
from layoutalg.piecewise import PiecewiseLayout

ENGINES = ("normal-form", "table", "isl", "smt")
SOLVERS = ("isl", "smt")
CHUNK = 2**16
Stages: TypeAlias = list[tuple[Swizzle, int]]


@dataclass(frozen=True, slots=True)
class Budget:
    """What the engines may spend.

    Args:
        table_points: Largest domain that is enumerated.
        isl_operations: ISL's operation quota.
        smt_milliseconds: Time limit of z3.
        seconds: Wall time of all engines together.

    Raises: MalformedError: LA240, LA004.
    """

    table_points: int = 2**20
    isl_operations: int = 500_000
    smt_milliseconds: int = 2_000
    seconds: float = limits.EQUAL_SECONDS

    def __post_init__(self) -> None:
        for name in ("table_points", "isl_operations", "smt_milliseconds"):
            value = integer(getattr(self, name), name, "LA240")
            # ISL and z3 read a limit of 0 as no limit at all
            if value < (0 if name == "table_points" else 1):
                raise _malformed(name, "must be positive", value)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "seconds", clock.checked_seconds(self.seconds))


_USUAL = Budget()


def equivalent(f: Given, g: Given, budget: Budget | None = None, *, _engines: Sequence[str] = ENGINES) -> Verdict:
    """Decide whether two layouts are the same function of the flat 1-D coordinate.

    Mathematically: equal size N and ``f(i) = g(i)`` for every i in [0, N), the coordinate counted with the first axis
    or mode fastest. Axis names, nesting and the size of the codomain do not matter.

    Outputs: a codomain that is a box is flattened, first axis fastest, to one number: the packed output of a linear
    layout (first output axis in the low bits), the flat index of the target of a hierarchical one. Outputs of an
    integer or piecewise layout have no extent to flatten by; they are compared one by one in their order, names and
    moduli aside (a residue is its least non-negative number), and different counts refute. A partial tile has no value
    where a guard excludes the point: it equals only a tile that leaves out the same points. Piecewise layouts of which
    one is partial or has parameters are compared at all points of their axes, by position, and all parameter values.

    Args:
        f: A layout of any family.
        g: Another one, of any family.
        budget: What the engines may spend; default ``Budget()``.

    Returns:
        ``Proved`` with the engine and its certificate; ``Refuted`` with the engine and a witness ``{coordinate, f, g}``
        (None for no value), or the sizes or the counts of outputs, where these differ; ``Unknown`` with what each
        engine ran into, the time included.

    Raises: MalformedError: LA240.

    Example:
        >>> equivalent(CuteLayout((2, 4), (1, 2)), CuteLayout(8, 1))
        Proved(engine='normal-form', certificate={'coalesced': ((8, 1),), 'offset': 0})
        >>> equivalent(CuteLayout(4, 1), CuteLayout((2, 2), (1, 3))).witness
        {'coordinate': 2, 'f': 2, 'g': 3}
        >>> equivalent(IntegerLayout.from_strides({"i": 4}, (3,), modulus=4), CuteLayout((2, 2), (3, 2))).witness
        {'coordinate': 3, 'f': 1, 'g': 5}

    Source: the ladder of engines; ``layoutalg.f2.carry`` and ``layoutalg.ground.digits`` for the normal forms.
    """
    spend = _USUAL if budget is None else budget
    if not isinstance(spend, Budget):
        raise _malformed("budget", "must be a Budget or None", budget)
    f, g = _layout("f", f), _layout("g", g)
    if not (_total(f) and _total(g)):
        return _partial_functions(f, g)
    if f.size != g.size:
        return Refuted("size", {"size of f": f.size, "size of g": g.size})
    if f.size == 0:
        return Proved("size", {"size": 0})
    outputs = [_outputs(layout) for layout in (f, g)]
    if outputs[0] != outputs[1]:
        return Refuted("outputs", {"outputs of f": outputs[0], "outputs of g": outputs[1]})
    tried: list[str] = []
    with clock.within(spend.seconds):
        for engine in _engines:
            try:
                clock.check("equality of two layouts")
                answer = _asked(engine, f, g, spend)
            except BudgetError as error:
                answer = error.diagnostic.because
            if not isinstance(answer, str):
                return answer
            tried.append(f"{engine}: {answer}")
    return Unknown("; ".join(tried), tuple(_engines))


def _layout(name: str, value: object) -> AnyFamily:
    """Return a layout, a tile behind an offset as a composed one, or refuse the argument (LA240)."""
    found = plain(value)
    if not isinstance(found, FAMILIES):
        raise _malformed(name, f"must be a {ONE_OF}", value)
    return found


def _total(layout: AnyFamily) -> bool:
    return not isinstance(layout, PiecewiseLayout) or layout.is_total


def _partial_functions(f: AnyFamily, g: AnyFamily) -> Verdict:
    """Compare piecewise layouts of which one is partial or has parameters, at all points and all parameter values."""
    if not (isinstance(f, PiecewiseLayout) and isinstance(g, PiecewiseLayout)):
        because = "a piecewise layout that is partial or has parameters is compared with piecewise layouts only"
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


def _asked(engine: str, f: AnyFamily, g: AnyFamily, budget: Budget) -> Verdict | str:
    """Return the answer of one engine, confirmed by evaluating both layouts, or why it has none."""
    answer = _partial(engine, f, g)
    if answer is None:
        answer = _RUN[engine](lowered(f), lowered(g), budget)
    if isinstance(answer, Refuted):
        # the engines saw the lowered forms, the witness must hold on the layouts themselves
        return _refuted(engine, f, g, cast(int, answer.witness["coordinate"]))
    if isinstance(answer, Proved) and engine in SOLVERS:
        at, count = _sampled_difference(f, g)
        if at is not None:
            return _refuted(engine, f, g, at)
        return Proved(engine, {**answer.certificate, "confirmed": f"{count} of {shown(f.size)} coordinates"})
    return answer


def _sampled_difference(f: AnyFamily, g: AnyFamily) -> tuple[int | None, int]:
    """Return the first of some coordinates where the values differ, None where they do not, and how many there are."""
    index = sampled_coordinates(f.size)
    different = _different(f, g, index)
    return (int(index[int(np.argmax(different))]) if different.any() else None), len(index)


def _different(f: AnyFamily, g: AnyFamily, index: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return at which coordinates the values differ; no value differs from every value."""
    left, right = values_at(f, index), values_at(g, index)
    answer = np.atleast_1d(np.asarray(left != right, dtype=bool).any(axis=1))
    tiles = [isinstance(layout, HierarchicalLayout) and bool(layout.guards) for layout in (f, g)]
    if tiles[0] != tiles[1]:  # -1 stands for no value, and may be a value of the other one
        answer |= np.asarray((left if tiles[0] else right)[:, 0] < 0, dtype=bool)
    return answer


def _refuted(engine: str, f: AnyFamily, g: AnyFamily, coordinate: int) -> Refuted | str:
    """Return the refutation at a coordinate after looking at both values."""
    left, right = _values(f, coordinate), _values(g, coordinate)
    if left == right:
        return f"its counterexample {coordinate} does not hold up: both are {left}"
    return Refuted(engine, {"coordinate": coordinate, "f": left, "g": right})


def _outputs(layout: AnyFamily) -> int:
    return len(layout.out_dims) if isinstance(layout, PiecewiseLayout | IntegerLayout) else 1


def _values(layout: AnyFamily, coordinate: int) -> int | tuple[int, ...] | None:
    if isinstance(layout, PiecewiseLayout | IntegerLayout) and len(layout.out_dims) != 1:
        return layout.at(coordinate)
    if isinstance(layout, HierarchicalLayout) and not layout.holds(coordinate):
        return None
    return value_at(layout, coordinate)


def _partial(engine: str, f: AnyFamily, g: AnyFamily) -> Verdict | str | None:
    """Decide a pair with a partial tile where algebra does; None where the engine is to be run."""
    tiles = [layout for layout in (f, g) if isinstance(layout, HierarchicalLayout) and layout.guards]
    if not tiles or engine == "table":
        return None
    if engine != "normal-form":
        return "partial tiles are compared by normal form and by table"
    if (
        isinstance(f, HierarchicalLayout)
        and isinstance(g, HierarchicalLayout)
        and (f.map, f.guards) == (g.map, g.guards)
    ):
        return Proved("normal-form", {"map": f.map, "guards": f.guards})
    for tile in tiles:
        at = excluded(tile)
        if at is not None and _values(f, at) != _values(g, at):
            return _refuted(engine, f, g, at)
    return "the guards differ, or the maps under equal guards"


def _normal_form(f: AnyFamily, g: AnyFamily, _: Budget) -> Verdict | str:
    """Compare normal forms: strided under common swizzles, then F2."""
    if isinstance(f, PiecewiseLayout) or isinstance(g, PiecewiseLayout):
        return "a piecewise layout has no normal form"
    if isinstance(f, HierarchicalLayout) and isinstance(g, HierarchicalLayout) and f.map == g.map:
        return Proved("normal-form", {"map": f.map})
    if isinstance(f, IntegerLayout) or isinstance(g, IntegerLayout):
        found = _modular(f, g)
        if found is not None:
            return found
        if _outputs(f) != 1:
            return "the moduli differ and wrap"
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


def _modular(f: AnyFamily, g: AnyFamily) -> Verdict | str | None:
    """Compare coalesced forms over the integers where both sides have the same moduli; else None."""
    sides = [_lifted(layout) for layout in (f, g)]
    if sides[0] is None or sides[1] is None or sides[0].moduli != sides[1].moduli:
        return None
    if sides[0].offset != sides[1].offset:
        return _refuted("normal-form", f, g, 0)
    left, right = coalesced(sides[0]), coalesced(sides[1])
    if left == right:
        return Proved("normal-form", {"coalesced": left, "offset": sides[0].offset, "moduli": sides[0].moduli})
    position = 1
    for (extent_f, stride_f), (extent_g, stride_g) in zip(left, right, strict=False):
        if stride_f != stride_g:
            break
        position *= min(extent_f, extent_g)
        if extent_f != extent_g:
            break
    return _refuted("normal-form", f, g, position)


def _lifted(layout: AnyFamily) -> IntegerLayout | None:
    """Return an integer or strided layout over Z wherever a modulus does not wrap; None for the other families."""
    if isinstance(layout, CuteLayout | ComposedLayout):
        if isinstance(layout, ComposedLayout) and any(swizzle.bits for swizzle, _ in layout.stages):
            return None
        offset = sum(offset for _, offset in layout.stages) if isinstance(layout, ComposedLayout) else 0
        modes = _modes(layout)
        inputs = [(f"c{place}", extent) for place, (extent, _) in enumerate(modes)]
        return IntegerLayout.from_strides(inputs, [stride for _, stride in modes], offset)
    if not isinstance(layout, IntegerLayout):
        return None
    outputs, rows, constants = [], [], []
    for (name, modulus), row, constant in zip(layout.outputs, layout.matrix, layout.offset, strict=True):
        form = residue_form(row, constant, modulus, layout.extents)
        outputs.append((name, 0 if form else modulus))
        rows.append(form[0] if form else row)
        constants.append(form[1] if form else constant)
    return IntegerLayout(layout.inputs, tuple(outputs), tuple(rows), tuple(constants))


def _strided(f: AnyFamily, g: AnyFamily) -> Verdict | str | None:
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
    return merge(layout.base.flat if isinstance(layout, ComposedLayout) else layout.flat)


def _table(f: AnyFamily, g: AnyFamily, budget: Budget) -> Verdict | str:
    """Compare all values; of a domain that is too large a few, which often refutes."""
    if f.size > budget.table_points:
        at, count = _sampled_difference(f, g)
        if at is not None:
            return _refuted("table", f, g, at)
        return f"{shown(f.size)} points are more than {budget.table_points}; {count} of them agree"
    step = max(1, CHUNK // max(1, _outputs(f)))
    for start in range(0, f.size, step):
        clock.check("equality of two tables")
        index = np.arange(start, min(f.size, start + step), dtype=np.int64)
        try:
            different = _different(f, g, index)
        except LayoutError as error:
            return error.diagnostic.because
        if different.any():
            return _refuted("table", f, g, start + int(np.argmax(different)))
    return Proved("table", {"points": f.size})


def _digits(layout: AnyFamily, prefix: str) -> tuple[DigitSystem | PiecewiseLayout, list[int]]:
    """Return a function on digits and the extents of these."""
    if isinstance(layout, IntegerLayout | HierarchicalLayout):
        layout = to_piecewise(layout)
    if isinstance(layout, PiecewiseLayout):
        return layout, [extent for _, extent in layout.inputs]
    system = digit_system(layout, prefix)
    return system, [extent for _, extent in system.digits]


def _joint(f: AnyFamily, g: AnyFamily) -> tuple[Joint, DigitSystem | PiecewiseLayout, DigitSystem | PiecewiseLayout]:
    (left, left_extents), (right, right_extents) = _digits(f, "f"), _digits(g, "g")
    return joint_digits(left_extents, right_extents), left, right


def _isl(f: AnyFamily, g: AnyFamily, budget: Budget) -> Verdict | str:
    """Compare as maps on common digits."""
    from layoutalg.piecewise import compare

    try:
        joint, left, right = _joint(f, g)
    except BudgetError as error:
        return error.diagnostic.because
    texts = [side.text if isinstance(side, PiecewiseLayout) else map_text(side) for side in (left, right)]
    links = [joint.text(joint.left), joint.text(joint.right)]
    try:
        point = compare.compared(texts[0], texts[1], (links[0], links[1]), budget.isl_operations).point
    except BudgetError as error:
        return error.diagnostic.because
    if point is None:
        return Proved("isl", {"maps": tuple(texts), "digits": tuple(links)})
    names = [name for name, _ in joint.digits]
    return _refuted("isl", f, g, joint.coordinate(dict(zip(names, point, strict=True))))


def _smt(f: AnyFamily, g: AnyFamily, budget: Budget) -> Verdict | str:
    """Ask z3 for a difference on common digits."""
    from layoutalg.bridges import smt

    try:
        joint, left, right = _joint(f, g)
        point = smt.first_difference(smt.Question(joint, left, right), budget.smt_milliseconds)
    except BudgetError as error:
        return error.diagnostic.because
    if point is None:
        return Proved("smt", {"solver": "z3", "logic": "QF_LIA", "digits": joint.digits})
    return _refuted("smt", f, g, joint.coordinate(point))


_RUN = {"normal-form": _normal_form, "table": _table, "isl": _isl, "smt": _smt}


def _malformed(argument: str, rule: str, actual: object) -> MalformedError:
    return MalformedError(
        Diagnostic(
            code="LA240",
            what="this question about equality is malformed",
            where=(argument,),
            because=f"{rule}, not {shown(actual)}",
        )
    )
