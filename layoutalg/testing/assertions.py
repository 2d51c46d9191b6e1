"""Assertions about layouts for test suites: each passes on a proof alone, and fails with the first witness.

Main statements: what is not decided within the budget fails as well, and says so; it never passes.

Implementation notes: nothing here needs pytest. ``__tracebackhide__`` keeps these frames out of its tracebacks, so that
they end in the line of the test.
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
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.synth.tensormap.planner import tensormap
from layoutalg.synth.wgmma.plan import wgmma
from layoutalg.testing.functions import CHECK, Function, function_of
from layoutalg.testing.report import CHUNK, difference_report, saved

CONSUMERS = ("tma", "tma.store", "wgmma.A", "wgmma.B")
PICTURE_POINTS = 256
"""Most points of functions that are shown as grids where ``picture`` does not say."""


def assert_equivalent(
    f: Any, g: Any, *, budget: Budget | None = None, picture: bool | str | Path | None = None
) -> Proved:
    """Assert that two functions of the flat coordinate are the same.

    Mathematically: equal sizes N and f(i) = g(i) for all i in [0, N). Layouts are compared as ``la.equivalent`` does;
    tables, callables and foreign objects value by value.

    Args:
        f: A layout of any family or its text; a table of values; a callable of a flat coordinate, of one or of an array
            of them (a tuple for several outputs); or an object of another library with a size and a call.
        g: Likewise. A callable without a size takes the size of the other one.
        budget: What may be spent; ``table_points`` is also the most values that are compared one by one.
        picture: Whether both are shown as grids in the message; None for those of at most 256 points. A path saves an
            SVG picture there as well, as the option ``--layoutalg-pictures`` of the plugin does for all.

    Returns:
        The proof.

    Raises: AssertionError: They differ, or it was not decided. MalformedError: LA456, LA240.

    Example:
        >>> assert_equivalent("(4,8):(8,1)", lambda i: i % 4 * 8 + i // 4)
        Proved(engine='table', certificate={'points': 32})
        >>> assert_equivalent("(2,2):(1,2)", [0, 1, 3, 2], picture=False)
        Traceback (most recent call last):
        AssertionError: these are different functions
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
        raise _undecided("whether these are the same function", lines, verdict)
    witness = verdict.witness.get("coordinate")
    if not isinstance(witness, int):
        raise _failure("these are different functions", [*lines, f"since  {_facts(verdict)}"])
    size = one.size or other.size or 0
    grids = picture is True or (picture is not False and size <= PICTURE_POINTS)
    lines += difference_report(one, other, witness, size, spend.table_points, grids)
    raise _failure("these are different functions", lines + saved(one, other, size, picture))


def assert_injective(f: Any, *, budget: Budget | None = None) -> Proved:
    """Assert that no value is taken at two coordinates; arguments as for ``assert_equivalent``, and f has a size.

    Raises: AssertionError: A value is taken twice, or it was not decided. MalformedError: LA456.

    Example:
        >>> assert_injective("(4,2):(1,3)")
        Traceback (most recent call last):
        AssertionError: a value is taken twice
          f      (4,2):(1,3)
          at     coordinates 3 = (3,0) and 4 = (0,1): both are 3
    """
    __tracebackhide__ = True
    one, size, most = _sized(f, budget)
    if size > most:
        return _beyond_tables(one, "whether a value is taken twice", lambda pieces: pieces.collision())
    seen: dict[Any, int] = {}
    for at, value in enumerate(_listed(one, size)):
        if value in seen and value is not None:
            places = f"coordinates {_place(one, seen[value])} and {_place(one, at)}"
            raise _failure(
                "a value is taken twice", [f"f      {one.text}", f"at     {places}: both are {shown(value)}"]
            )
        seen[value] = at
    return Proved("table", {"points": size})


def assert_bijective(f: Any, *, budget: Budget | None = None) -> Proved:
    """Assert that the values are 0, 1, ..., size - 1, each once; arguments as for ``assert_injective``.

    Raises: AssertionError: They are not, or it was not decided. MalformedError: LA456.

    Example:
        >>> assert_bijective("(4,2):(1,4)")
        Proved(engine='table', certificate={'points': 8})
    """
    __tracebackhide__ = True
    one, size, most = _sized(f, budget)
    if size > most:
        return _beyond_tables(
            one, "whether the values are 0, 1, ..., size - 1", lambda pieces: pieces.inverse() and None
        )
    assert_injective(f, budget=budget)
    for at, value in enumerate(_listed(one, size)):
        if not isinstance(value, int) or not 0 <= value < size:
            lines = [f"f      {one.text}", f"at     coordinate {_place(one, at)}: the value is {shown(value)}"]
            raise _failure(f"a value lies outside 0, 1, ..., {size - 1}", lines)
    return Proved("table", {"points": size})


def assert_covers(f: Any, values: int | Iterable[Any], *, budget: Budget | None = None) -> Proved:
    """Assert that every one of these values is taken.

    Args:
        f: As for ``assert_injective``.
        values: The values, or a number n for 0, 1, ..., n - 1.
        budget: As for ``assert_equivalent``.

    Raises: AssertionError: One is not taken, or it was not decided. MalformedError: LA456.

    Example:
        >>> assert_covers("(4,2):(1,5)", 8)
        Traceback (most recent call last):
        AssertionError: a value is not taken
          f      (4,2):(1,5)
          value  4, the first of 1 that are not taken
    """
    __tracebackhide__ = True
    one, size, most = _sized(f, budget)
    if size > most:
        raise _undecided(
            "which values are taken", [f"f      {one.text}"], Unknown(f"{size} points are more than {most}")
        )
    wanted = range(values) if isinstance(values, int) else values
    taken = set(_listed(one, size))
    missed = [value for value in wanted if value not in taken]
    if missed:
        told = f"value  {shown(missed[0])}, the first of {len(missed)} that are not taken"
        raise _failure("a value is not taken", [f"f      {one.text}", told])
    return Proved("table", {"points": size})


def assert_conflict_free(
    registers: Any, shared: Any = None, element_bits: int | None = None, kind: str = "load", **options: Any
) -> BankReport:
    """Assert that no bank of shared memory is busier than it must be; arguments as for ``la.banks``.

    Raises: AssertionError: There are conflicts. Those of ``la.banks``.

    Example:
        >>> assert_conflict_free("(32,1):(32,1)", None, 32)
        Traceback (most recent call last):
        AssertionError: 32 turns of the banks where 1 would do
          registers  (32,1):(32,1)
          shared     None
          worst      warp 0, registers [0]: 32 turns instead of 1; bank 0 is touched by lanes (lane:byte) 0:0, 1:128, \
2:256, 3:384, 4:512, 5:640, 6:768, 7:896, ...
    """
    __tracebackhide__ = True
    report = banks(registers, shared, element_bits, kind, **options)
    if report.turns > report.ideal:
        lines = [f"registers  {registers}", f"shared     {shared}", f"worst      {report.worst}"]
        raise _failure(f"{report.turns} turns of the banks where {report.ideal} would do", lines)
    return report


def assert_admissible(
    tensor: Any, tile: Any = None, smem: Any = None, *, consumer: str = "tma", **options: Any
) -> TensorMapPlan | OperandPlan:
    """Assert that a copy or an instruction carries a tile, and return the plan with its proof.

    Args:
        tensor: As for ``la.tensormap`` and ``la.wgmma``.
        tile: Extents, outermost first.
        smem: The tile in shared memory: a layout of any family or its text.
        consumer: ``"tma"``, ``"tma.store"``, ``"wgmma.A"`` or ``"wgmma.B"``.
        options: Those of ``la.tensormap`` or ``la.wgmma``.

    Raises: AssertionError: It is proved that nothing carries it, with the broken rules and re-checked repairs; or it
        was not decided. MalformedError: LA456, and those of the two functions.

    Example:
        >>> assert_admissible(((1024, 512), None, "bf16"), (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)").tensor_map.box
        (64, 64)
    """
    __tracebackhide__ = True
    if consumer not in CONSUMERS:
        raise CHECK.malformed("consumer", f"must be one of {', '.join(CONSUMERS)}", consumer)
    try:
        if consumer.startswith("wgmma"):
            return wgmma(consumer[-1], tensor, tile, smem, **options)
        direction = "store" if consumer == "tma.store" else "load"
        return tensormap(tensor, tile, smem, **{"direction": direction, **options})
    except (InfeasibleError, TargetRuleError) as error:
        raise _failure(f"{consumer} carries no such tile", str(error).splitlines()) from None
    except BudgetError as error:
        raise _undecided(f"whether {consumer} carries the tile", [], Unknown(error.diagnostic.because)) from None


def _compared(f: Function, g: Function, budget: Budget) -> Verdict:
    """Return the library's verdict on two layouts, else that of the values one by one."""
    if f.layout is not None and g.layout is not None:
        return equivalent(f.layout, g.layout, budget)
    size = f.size if f.size is not None else g.size
    if size is None:
        raise CHECK.malformed("f and g", "must tell a size, at least one of them", f"{f.text} and {g.text}")
    if None not in (f.size, g.size) and f.size != g.size:
        return Refuted("size", {"size of f": f.size, "size of g": g.size})
    if size > budget.table_points:
        return Unknown(
            f"{size} points are more than {budget.table_points}, and one of the two is no layout", ("table",)
        )
    for start in range(0, size, CHUNK):
        index = np.arange(start, min(size, start + CHUNK), dtype=np.int64)
        for place, pair in enumerate(zip(f.values(index), g.values(index), strict=True)):
            if pair[0] != pair[1]:
                return Refuted("table", {"coordinate": start + place, "f": pair[0], "g": pair[1]})
    return Proved("table", {"points": size})


def _sized(f: Any, budget: Budget | None) -> tuple[Function, int, int]:
    """Return the function, its size and how many points may be enumerated."""
    spend = Budget() if budget is None else CHECK.kind(budget, Budget, "budget")
    found = function_of(f, "f")
    if found.size is None:
        raise CHECK.malformed("f", "must tell its size", found.text)
    return found, found.size, spend.table_points


def _listed(f: Function, size: int) -> Iterable[Any]:
    for start in range(0, size, CHUNK):
        yield from f.values(np.arange(start, min(size, start + CHUNK), dtype=np.int64))


def _place(f: Function, index: int) -> str:
    return f"{index} = ({','.join(map(str, f.point(index)))})" if len(f.axes) > 1 else str(index)


def _beyond_tables(f: Function, question: str, ask: Any) -> Proved:
    """Ask the pieces of a layout that is too large to enumerate."""
    __tracebackhide__ = True
    lines = [f"f      {f.text}"]
    if f.layout is None:
        raise _undecided(question, lines, Unknown(f"{f.size} points are too many to enumerate, and this is no layout"))
    try:
        found = ask(in_pieces(f.layout))
    except BudgetError as error:
        raise _undecided(question, lines, Unknown(error.diagnostic.because)) from None
    except LayoutError as error:
        raise _failure(error.diagnostic.what, [*lines, f"since  {error.diagnostic.because}"]) from None
    if found is not None:
        raise _failure("a value is taken twice", [*lines, f"at     {shown(found)}"])
    return Proved("isl", {"points": f.size})


def _facts(verdict: Refuted) -> str:
    return ", ".join([f"{key}: {shown(value)}" for key, value in verdict.witness.items()]) or "they differ"


def _undecided(question: str, lines: list[str], verdict: Unknown) -> AssertionError:
    told = [
        *lines,
        f"since  {verdict.reason}",
        "so     this is neither proved nor refuted; a larger budget= may decide it",
    ]
    return _failure(f"it is not decided {question}", told)


def _failure(what: str, lines: list[str]) -> AssertionError:
    return AssertionError("\n".join([what, *[f"  {line}".rstrip() for line in lines]]))
