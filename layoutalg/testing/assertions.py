"""Assertions about layouts: each passes only with a proof, and fails with the first witness.

Main statements: a question not decided within the budget fails too, and says so.

Implementation notes: pytest is not needed. ``__tracebackhide__`` hides these frames, so that tracebacks end in
the test.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from layoutalg.ask.bank_turns import BankReport, banks
from layoutalg.bridges.equal import Budget, equivalent
from layoutalg.bridges.piecewise import in_pieces
from layoutalg.ground.errors import BudgetError, InfeasibleError, LayoutError, TargetRuleError, shown
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.proofs.symbolic.plan import SymbolicPlan
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProbe
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.synth.symbolic.call import tensormap
from layoutalg.synth.wgmma.plan import wgmma
from layoutalg.testing.functions import CHECK, Function, function_of
from layoutalg.testing.report import CHUNK, difference_report, saved

CONSUMERS = ("tma", "tma.store", "wgmma.A", "wgmma.B")
PICTURE_POINTS = 256
"""Most points of functions shown as grids by default."""


def assert_equivalent(
    f: Any, g: Any, *, budget: Budget | None = None, picture: bool | str | Path | None = None
) -> Proved:
    """Assert that two functions of the flat coordinate are equal.

    Mathematically: equal sizes N and f(i) = g(i) for all i in [0, N). Layouts are compared by ``la.equivalent``;
    tables, callables and foreign objects value by value.

    Args:
        f: A layout of any family or its text; a table of values; a callable of one flat coordinate or an array of them
            (returning a tuple for several outputs); or an object of another library with a size and a call.
        g: Likewise. A callable without a size gets the size of the other function.
        budget: Limits; ``table_points`` is also the most values compared one by one.
        picture: Whether the message shows both as grids; None for up to 256 points. A path also saves an SVG picture
            there, as the plugin option ``--layoutalg-pictures`` does for all comparisons.

    Returns:
        The proof.

    Raises: AssertionError: They differ, or it was not decided. MalformedError: LA456, LA240.

    Example:
        >>> assert_equivalent("(4,8):(8,1)", lambda i: i % 4 * 8 + i // 4)
        Proved(engine='table', certificate={'points': 32})
        >>> assert_equivalent("(2,2):(1,2)", [0, 1, 3, 2], picture=False)
        Traceback (most recent call last):
        AssertionError: the functions differ
          f      (2,2):(1,2)
          g      a table of 4 values
          at     coordinate 2 = (0,1): f is 2, g is 3
          in     2 of 4 coordinates
        <BLANKLINE>
          coordinate   of f  f  g
                   0  (0,0)  0  0
                   1  (1,0)  1  1
                   2  (0,1)  2  3  <--
                   3  (1,1)  3  2  <--
    """
    __tracebackhide__ = True
    spend = Budget() if budget is None else CHECK.kind(budget, Budget, "budget")
    one, other = function_of(f, "f"), function_of(g, "g")
    verdict = _compared(one, other, spend)
    if isinstance(verdict, Proved):
        return verdict
    lines = [f"f      {one.text}", f"g      {other.text}"]
    if isinstance(verdict, Unknown):
        raise _undecided("whether the functions are equal", lines, verdict)
    witness = verdict.witness.get("coordinate")
    if not isinstance(witness, int):
        raise _failure("the functions differ", [*lines, f"since  {_facts(verdict)}"])
    size = one.size or other.size or 0
    grids = picture is True or (picture is not False and size <= PICTURE_POINTS)
    lines += difference_report(one, other, witness, size, spend.table_points, grids)
    raise _failure("the functions differ", lines + saved(one, other, size, picture))


def assert_injective(f: Any, *, budget: Budget | None = None) -> Proved:
    """Assert that f is injective; arguments as for ``assert_equivalent``, and f must have a size.

    Raises: AssertionError: It is not, or it was not decided. MalformedError: LA456.

    Example:
        >>> assert_injective("(4,2):(1,3)")
        Traceback (most recent call last):
        AssertionError: f is not injective
          f      (4,2):(1,3)
          at     coordinates 3 = (3,0) and 4 = (0,1): both are 3
    """
    __tracebackhide__ = True
    one, size, most = _sized(f, budget)
    if size > most:
        return _beyond_tables(one, "whether f is injective", lambda pieces: pieces.collision())
    seen: dict[Any, int] = {}
    for at, value in enumerate(_listed(one, size)):
        if value in seen and value is not None:
            places = f"coordinates {_place(one, seen[value])} and {_place(one, at)}"
            raise _failure("f is not injective", [f"f      {one.text}", f"at     {places}: both are {shown(value)}"])
        seen[value] = at
    return Proved("table", {"points": size})


def assert_bijective(f: Any, *, budget: Budget | None = None) -> Proved:
    """Assert that f is a bijection onto 0, 1, ..., size - 1; arguments as for ``assert_injective``.

    Raises: AssertionError: It is not, or it was not decided. MalformedError: LA456.

    Example:
        >>> assert_bijective("(4,2):(1,4)")
        Proved(engine='table', certificate={'points': 8})
    """
    __tracebackhide__ = True
    one, size, most = _sized(f, budget)
    if size > most:
        return _beyond_tables(
            one, "whether f is a bijection onto 0, 1, ..., size - 1", lambda pieces: pieces.inverse() and None
        )
    assert_injective(f, budget=budget)
    for at, value in enumerate(_listed(one, size)):
        if not isinstance(value, int) or not 0 <= value < size:
            lines = [f"f      {one.text}", f"at     coordinate {_place(one, at)}: the value is {shown(value)}"]
            raise _failure(f"a value is outside 0, 1, ..., {size - 1}", lines)
    return Proved("table", {"points": size})


def assert_covers(f: Any, values: int | Iterable[Any], *, budget: Budget | None = None) -> Proved:
    """Assert that f takes every one of these values.

    Args:
        f: As for ``assert_injective``.
        values: The values, or a number n for 0, 1, ..., n - 1.
        budget: As for ``assert_equivalent``.

    Raises: AssertionError: A value is missing, or it was not decided. MalformedError: LA456.

    Example:
        >>> assert_covers("(4,2):(1,5)", 8)
        Traceback (most recent call last):
        AssertionError: f does not take every value
          f      (4,2):(1,5)
          value  4, the first of 1 missing
    """
    __tracebackhide__ = True
    one, size, most = _sized(f, budget)
    if size > most:
        raise _undecided(
            "which values f takes", [f"f      {one.text}"], Unknown(f"{size} points exceed the limit of {most}")
        )
    wanted = range(values) if isinstance(values, int) else values
    taken = set(_listed(one, size))
    missed = [value for value in wanted if value not in taken]
    if missed:
        told = f"value  {shown(missed[0])}, the first of {len(missed)} missing"
        raise _failure("f does not take every value", [f"f      {one.text}", told])
    return Proved("table", {"points": size})


def assert_conflict_free(
    registers: Any, shared: Any = None, element_bits: int | None = None, kind: str = "load", **options: Any
) -> BankReport:
    """Assert that an access has no bank conflicts; arguments as for ``la.banks``.

    Raises: AssertionError: It has conflicts. Those of ``la.banks``.

    Example:
        >>> assert_conflict_free("(32,1):(32,1)", None, 32)
        Traceback (most recent call last):
        AssertionError: bank conflicts: 32 turns where 1 would do
          registers  (32,1):(32,1)
          shared     None
          worst      warp 0, registers [0]: 32 turns instead of 1; bank 0 is touched by lanes (lane:byte) 0:0, 1:128, \
2:256, 3:384, 4:512, 5:640, 6:768, 7:896, ...
    """
    __tracebackhide__ = True
    report = banks(registers, shared, element_bits, kind, **options)
    if report.turns > report.ideal:
        lines = [f"registers  {registers}", f"shared     {shared}", f"worst      {report.worst}"]
        raise _failure(f"bank conflicts: {report.turns} turns where {report.ideal} would do", lines)
    return report


def assert_admissible(
    tensor: Any, tile: Any = None, smem: Any = None, *, consumer: str = "tma", **options: Any
) -> TensorMapPlan | SymbolicPlan | OperandPlan:
    """Assert that a copy or an instruction can carry a tile; return the proved plan.

    Args:
        tensor: As for ``la.tensormap`` and ``la.wgmma``.
        tile: Extents, outermost first.
        smem: The tile's shared-memory layout, of any family, or its text.
        consumer: ``"tma"``, ``"tma.store"``, ``"wgmma.A"`` or ``"wgmma.B"``.
        options: Those of ``la.tensormap`` or ``la.wgmma``.

    Raises: AssertionError: Nothing can carry it, with the broken rules and verified repairs; or it was not decided.
        MalformedError: LA456, and those of the two functions.

    Example:
        >>> assert_admissible(((1024, 512), None, "bf16"), (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)").tensor_map.box
        (64, 64)
    """
    __tracebackhide__ = True
    CHECK.choice(consumer, "consumer", CONSUMERS)
    try:
        if consumer.startswith("wgmma"):
            return wgmma(consumer[-1], tensor, tile, smem, **options)
        direction = "store" if consumer == "tma.store" else "load"
        plan = tensormap(tensor, tile, smem, **{"direction": direction, **options})
    except (InfeasibleError, TargetRuleError) as error:
        raise _failure(f"{consumer} cannot carry this tile", str(error).splitlines()) from None
    except BudgetError as error:
        raise _undecided(f"whether {consumer} can carry the tile", [], Unknown(error.diagnostic.because)) from None
    if isinstance(plan, TensorMapProbe):
        raise _undecided(f"whether {consumer} can carry the tile", [], Unknown(plan.reason))
    return plan


def _compared(f: Function, g: Function, budget: Budget) -> Verdict:
    """Return the verdict of ``equivalent`` for two layouts, otherwise compare value by value."""
    if f.layout is not None and g.layout is not None:
        return equivalent(f.layout, g.layout, budget)
    size = f.size if f.size is not None else g.size
    if size is None:
        raise CHECK.malformed("f and g", "must not both lack a size", f"{f.text} and {g.text}")
    if None not in (f.size, g.size) and f.size != g.size:
        return Refuted("size", {"size of f": f.size, "size of g": g.size})
    if size > budget.table_points:
        return Unknown(
            f"{size} points exceed the limit of {budget.table_points}, and one function is not a layout", ("table",)
        )
    for start in range(0, size, CHUNK):
        index = np.arange(start, min(size, start + CHUNK), dtype=np.int64)
        for place, pair in enumerate(zip(f.values(index), g.values(index), strict=True)):
            if pair[0] != pair[1]:
                return Refuted("table", {"coordinate": start + place, "f": pair[0], "g": pair[1]})
    return Proved("table", {"points": size})


def _sized(f: Any, budget: Budget | None) -> tuple[Function, int, int]:
    """Return the function, its size and the most points that may be enumerated."""
    spend = Budget() if budget is None else CHECK.kind(budget, Budget, "budget")
    found = function_of(f, "f")
    if found.size is None:
        raise CHECK.malformed("f", "must have a size", found.text)
    return found, found.size, spend.table_points


def _listed(f: Function, size: int) -> Iterable[Any]:
    for start in range(0, size, CHUNK):
        yield from f.values(np.arange(start, min(size, start + CHUNK), dtype=np.int64))


def _place(f: Function, index: int) -> str:
    return f"{index} = ({','.join(map(str, f.point(index)))})" if len(f.axes) > 1 else str(index)


def _beyond_tables(f: Function, question: str, ask: Any) -> Proved:
    """Decide by the piecewise form of a layout that is too large to enumerate."""
    __tracebackhide__ = True
    lines = [f"f      {f.text}"]
    if f.layout is None:
        raise _undecided(question, lines, Unknown(f"{f.size} points are too many to enumerate, and f is not a layout"))
    try:
        found = ask(in_pieces(f.layout))
    except BudgetError as error:
        raise _undecided(question, lines, Unknown(error.diagnostic.because)) from None
    except LayoutError as error:
        raise _failure(error.diagnostic.what, [*lines, f"since  {error.diagnostic.because}"]) from None
    if found is not None:
        raise _failure("f is not injective", [*lines, f"at     {shown(found)}"])
    return Proved("isl", {"points": f.size})


def _facts(verdict: Refuted) -> str:
    return ", ".join([f"{key}: {shown(value)}" for key, value in verdict.witness.items()]) or "they differ"


def _undecided(question: str, lines: list[str], verdict: Unknown) -> AssertionError:
    told = [
        *lines,
        f"since  {verdict.reason}",
        "so     this is neither proved nor refuted; try a larger budget=",
    ]
    return _failure(f"not decided {question}", told)


def _failure(what: str, lines: list[str]) -> AssertionError:
    return AssertionError("\n".join([what, *[f"  {line}".rstrip() for line in lines]]))
