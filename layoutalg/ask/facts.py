"""Facts of an explanation: of a layout of any family, and of an answer about banks, swizzles, conversions or kernels.

Implementation notes: plans are recounted or rerun before anything is said; a bank report is itself the count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from layoutalg import convert
from layoutalg.ask.bank_turns import BankReport
from layoutalg.ask.global_sectors import TransactionReport
from layoutalg.codegen.kernels import ArrayKernel
from layoutalg.cute import ComposedLayout, CuteLayout, Morphism, Swizzle, coalesce
from layoutalg.cute.symbolic import SymbolicLayout, normal_form
from layoutalg.draw.grid import cells_of, cells_text, written
from layoutalg.draw.registers import steps_text
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import LayoutError, MalformedError, RepresentabilityError, shown
from layoutalg.ground.layout import Layout, takes_offsets
from layoutalg.integer import IntegerLayout
from layoutalg.proofs.conversion import ConversionPlan
from layoutalg.proofs.gather import GatherPlan
from layoutalg.proofs.padding import PaddingPlan
from layoutalg.proofs.swizzling import SwizzlePlan
from layoutalg.proofs.tile_map import extents_of
from layoutalg.proofs.universal import ClassPlan
from layoutalg.targets.layouts.padding import PaddedShared

GRID = 8
MAX_TABLE = 1 << 20
ANSWERS = (BankReport, TransactionReport, SwizzlePlan, PaddingPlan, ClassPlan, ConversionPlan, GatherPlan, ArrayKernel)
"""Answer types explained here."""
_RECHECKED = {
    **dict.fromkeys((SwizzlePlan, PaddingPlan, ClassPlan), "recounted from the addresses of every instruction"),
    ConversionPlan: "rerun on element labels; instructions and turns recounted",
    GatherPlan: "every index looked up again; instructions and turns recounted",
}


class Fact(NamedTuple):
    """A named fact: its lines, and the same as JSON-ready data."""

    name: str
    lines: tuple[str, ...]
    value: object


def said(name: str, text: str | list[str], value: object = None) -> Fact:
    """Return a fact; without ``value``, its data are its lines."""
    lines = tuple(text.split("\n")) if isinstance(text, str) else tuple(text)
    given = (lines[0] if len(lines) == 1 else list(lines)) if value is None else value
    return Fact(name, lines, given)


def layout_facts(layout: Any) -> Iterator[Fact]:
    """Yield the facts of a layout of any family.

    Example:
        >>> for fact in layout_facts(CuteLayout((4, 8), (1, 4))):
        ...     print(fact.name, "-", fact.lines[0])
        layout - (4,8):(1,4)
        family - CuTe shape:stride
        size - 32 elements, offsets below 32
        image - 32 distinct values, injective
        table -  0  4  8 12 16 20 24 28
        normal form - 32:1
        over F2 - linear: coordinate bits map to 1, 2, 4, 8, 16
        over Z - Z[c0:4=(1), c1:8=(4) -> offset]
    """
    yield said("layout", _text(lambda: layout))
    if layout.title:
        yield said("family", layout.title)
    if isinstance(layout, SymbolicLayout):
        yield said("size", f"{layout.size} elements")
        yield said("assumes", str(layout.assumptions))
        yield from symbolic_facts(layout)
        return
    of_cute = isinstance(layout, CuteLayout | ComposedLayout)
    if not isinstance(layout, Morphism | PaddedShared | Swizzle) and takes_offsets(layout):
        yield said("direction", "offset to coordinates; the forms below are its inverse's, coordinates to offset")
    size = _size(layout)
    if size is not None:
        reach = f", offsets below {shown(layout.cosize)}" if of_cute or isinstance(layout, PaddedShared) else ""
        data = {"elements": size, "cosize": layout.cosize} if reach else {"elements": size}
        yield said("size", f"{shown(size)} elements{reach}", _plain(data))
    if isinstance(layout, LinearLayout):
        text = f"{layout.rank} over F2; injective {layout.is_injective}, surjective {layout.is_surjective}"
        yield said("rank", text, layout.rank)
    yield from _image(layout, size)
    if isinstance(layout, CuteLayout):
        yield said("normal form", _text(lambda: coalesce(layout)))
    if isinstance(layout, Layout):
        yield from _other_families(layout, of_cute)


def symbolic_facts(layout: SymbolicLayout) -> Iterator[Fact]:
    """Yield the normal form of a symbolic layout, and what divides its offsets at all sizes.

    Example:
        >>> for fact in symbolic_facts(SymbolicLayout(("M", 64), ("K", 1), ("K % 8 == 0",))):
        ...     print(fact.name, "-", *fact.lines)
        normal form - (M,64):(K,1)
        multiples - strides of 8, 1; every offset of 1
        vectors - up to 8 elements along the mode of stride 1 are aligned at all sizes
        lattice - offsets are integer combinations of 1, K
    """
    form = normal_form(layout)
    yield said("normal form", str(form.layout))
    strides, most = ", ".join(map(str, form.gcds)), "" if form.exact else " at least"
    data = {"strides": list(form.gcds), "offsets": form.gcd, "exact": form.exact}
    yield said("multiples", f"strides of{most} {strides}; every offset of{most} {form.gcd}", data)
    text = "no vector of two or more elements is known to be contiguous and aligned at all sizes"
    if form.vector > 1:
        text = f"up to {form.vector} elements along the mode of stride 1 are aligned at all sizes"
    yield said("vectors", text, form.vector)
    if form.lattice is not None and form.generators:
        told = [str(each) for each in form.generators]
        yield said("lattice", f"offsets are integer combinations of {', '.join(told)}", told)


def _other_families(layout: Any, of_cute: bool) -> Iterator[Fact]:
    if of_cute:
        yield said("over F2", _tried(lambda: _columns(convert.to_linear(layout))))
    else:
        yield said("as CuTe", _tried(lambda: convert.to_cute(layout)))
        if not isinstance(layout, LinearLayout):
            yield said("over F2", _tried(lambda: convert.to_linear(layout)))
    if not isinstance(layout, IntegerLayout):
        yield said("over Z", _tried(lambda: convert.to_integer(layout)))


def _plain(data: dict[str, Any]) -> dict[str, object]:
    """Integers up to 2^53, which every JSON reader keeps exact; larger ones as text."""
    return {name: value if abs(value) < 2**53 else shown(value) for name, value in data.items()}


def _size(layout: Any) -> int | None:
    """The number of coordinates; None for swizzles and for partial or parametric layouts."""
    if isinstance(layout, PaddedShared):
        return int(layout.linear.size)
    try:
        return getattr(layout, "size", None)
    except LayoutError:
        return None


def _text(ask: Callable[[], object]) -> str:
    """The text of a value, if Python can write it: integers of more than 4300 digits raise ValueError."""
    try:
        return str(ask())
    except ValueError as error:
        if isinstance(error, LayoutError):
            raise
        return "a value with numbers too long to print"


def _tried(ask: Callable[[], object]) -> str:
    """The text of the answer, or the reason for the refusal."""
    try:
        return _text(ask)
    except RepresentabilityError as error:
        return f"no: {error.diagnostic.because or error.diagnostic.what}" + (
            f" (at {dict(error.diagnostic.witness)})" if error.diagnostic.witness else ""
        )
    except LayoutError as error:
        return f"not decided: {error.diagnostic.what}"


def _columns(linear: LinearLayout) -> str:
    images = [str(image[0]) for images in linear.bases.values() for image in images]
    constant = next(iter(linear.offset.values()))
    return f"linear: coordinate bits map to {', '.join(images) or 'nothing'}" + (
        f", xor {constant}" if constant else ""
    )


def _image(layout: Any, size: int | None) -> Iterator[Fact]:
    """The number of distinct values, and the corner of the table."""
    if size is None or not 0 < size <= MAX_TABLE or not isinstance(layout, Layout):
        return
    try:
        table = np.asarray(layout.table())
    except LayoutError as error:
        yield said("image", f"not decided: {error.diagnostic.what}")
        return
    rows = table.tolist()
    distinct = len({tuple(value) if isinstance(value, list) else value for value in rows})
    one_to_one = distinct == len(rows)
    data = {"distinct": distinct, "injective": one_to_one}
    yield said("image", f"{distinct} distinct values, {'' if one_to_one else 'not '}injective", data)
    yield said("table", _grid(layout, rows))


def _grid(layout: Any, values: list[Any]) -> list[str]:
    """The corner of a two-dimensional table, otherwise its first entries."""
    try:
        extents = (
            extents_of(layout) if isinstance(layout, CuteLayout | ComposedLayout) else tuple(layout.in_dims.values())
        )
    except LayoutError:
        extents = ()
    if len(extents) == 2 and extents[0] * extents[1] == len(values):
        return cells_text(cells_of(layout, GRID), side=GRID).splitlines()
    first = [written(tuple(each) if isinstance(each, list) else each) for each in values[:32]]
    return [" ".join(first) + (" ..." if len(values) > 32 else "")]


def answer_facts(answer: Any) -> tuple[list[Fact], bool]:
    """Return the facts of an answer, and whether its check passed."""
    if isinstance(answer, BankReport):
        return list(_bank_facts(answer)), True
    if isinstance(answer, TransactionReport):
        return list(_transaction_facts(answer)), True
    if isinstance(answer, ArrayKernel):
        return list(_kernel_facts(answer)), True
    again = _RECHECKED[type(answer)]
    try:
        answer.check()
    except MalformedError as error:
        because = error.diagnostic.because or error.diagnostic.what
        return [said("check", f"refuted: {because}", {"verdict": "refuted", "because": because})], False
    facts = [said("check", f"holds: {again}", {"verdict": "holds", "by": again})]
    if isinstance(answer, ConversionPlan):
        return [*facts, *_conversion_facts(answer)], True
    if isinstance(answer, GatherPlan):
        return [*facts, *_gather_facts(answer)], True
    facts += _lines(str(answer))
    if isinstance(answer, SwizzlePlan):
        facts.append(said("why", answer.why))
        facts.append(said("over F2", str(answer.smem)))
    served = answer.plan.served if isinstance(answer, ClassPlan) else answer.served
    targets = list(dict.fromkeys(each.target for each in served))
    return [*facts, said("targets", ", ".join(targets), targets)], True


def _lines(text: str) -> Iterator[Fact]:
    """The lines of an answer, split into name and text."""
    for line in text.splitlines():
        name, _, words = line.partition("  ")
        yield said(name.strip(), words.strip())


def _bank_facts(report: BankReport) -> Iterator[Fact]:
    head, *_ = str(report).splitlines()
    yield said("banks", head, {"turns": report.turns, "ideal": report.ideal, "conflict_free": report.conflict_free})
    if not report.conflict_free:
        yield said("worst", str(report.worst), report.worst.to_json())
        if (cure := report.cure) is not None:
            yield said("cure", f"{cure}: free of bank conflicts", str(cure))
    if report.assumed:
        yield said("note", report.assumed)
    yield said("why", report.why)
    yield said("words per bank", report.map_text.splitlines()[1:])


def _transaction_facts(report: TransactionReport) -> Iterator[Fact]:
    head, *_ = str(report).splitlines()
    counts = {"sectors": report.sectors, "lines": report.lines, "ideal": report.ideal, "coalesced": report.coalesced}
    yield said("transactions", head, counts)
    yield said("why", report.why)
    if (after := report.after) is not None:
        better = {"registers": str(report.better), "sectors": after.sectors}
        yield said("better", f"{report.better}: {after.sectors:,} sectors", better)
    for note in report.notes:
        yield said("note", note)
    yield said("sizes", f"{report.sector_bytes} and {report.line_bytes} bytes: {'; '.join(report.sources)}")


def _conversion_facts(plan: ConversionPlan) -> Iterator[Fact]:
    head, first, second, *_ = (line.split(maxsplit=1)[1] for line in str(plan).splitlines())
    yield said("conversion", head, {"mechanism": plan.mechanism, "cost": plan.cost.to_json(), "least": plan.least})
    yield said("from", first, plan.source.to_json())
    yield said("to", second, plan.destination.to_json())
    steps = steps_text(plan)
    yield said("steps", list(steps) or "none: the layouts are equal", list(steps))
    yield from _choice(plan)


def _choice(plan: ConversionPlan | GatherPlan) -> Iterator[Fact]:
    yield said("why", plan.why)
    if plan.excess:
        yield said("spills", plan.excess)
    others = [each for each in plan.alternatives if each.mechanism != plan.mechanism]
    if others:
        yield said("others", [" ".join(str(each).split()) for each in others], [each.to_json() for each in others])


def _gather_facts(plan: GatherPlan) -> Iterator[Fact]:
    head, first, second, along, *_ = (line.split(maxsplit=1)[1] for line in str(plan).splitlines())
    yield said("gather", head, {"mechanism": plan.mechanism, "cost": plan.cost.to_json()})
    yield said("from", first, plan.source.to_json())
    yield said("indices", second, plan.index.to_json())
    yield said("along", along, {"axis": plan.axis, "extent": plan.extent, "count": plan.count})
    if plan.stage is not None:
        turns = "an unknown number of turns" if plan.stage.turns < 0 else f"{plan.stage.turns} turns for equal indices"
        text = f"{plan.stage.smem_bytes} bytes, {plan.stage.store.instruction} then {plan.stage.load} in {turns}"
        yield said("shared", f"{text}, with a {plan.stage.barrier} barrier")
    yield from _choice(plan)


def _kernel_facts(made: ArrayKernel) -> Iterator[Fact]:
    kernel, launch, *shared = (line.split(maxsplit=1)[1] for line in str(made).splitlines())
    yield said("kernel", kernel)
    yield said("launch", launch, {"blocks": made.blocks, "threads": made.kernel.threads})
    yield said("moves", f"at least {made.moved_bytes} bytes", {"bytes": made.moved_bytes})
    for argument in made.arrays:
        extents = " x ".join(map(str, argument.shape))
        does = "written" if argument.written else "read"
        text = f"{extents} elements of {argument.element_bytes} bytes, {argument.align_bytes}-byte aligned, {does}"
        yield said(argument.name, text)
    if shared:
        yield said("shared", shared)
    if made.swizzle is not None:
        yield said("swizzle", made.swizzle.cute or str(made.swizzle.smem))
