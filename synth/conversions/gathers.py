"""Gathers: how threads fetch the elements their indices select along an axis from the registers of other threads.

Mathematically: imagine a thread with one register per (index register, index value). Finding these in the source is a
conversion (``fetched``), and its answer is linear in the bits of the index.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from layoutalg.f2 import matrix
from layoutalg.ground.verdict import Unknown
from layoutalg.notation.written import stated
from layoutalg.proofs.conversion import Alternative
from layoutalg.proofs.dtypes import stated_bits
from layoutalg.proofs.gather import CHECK, INDEX_BITS, MECHANISMS, MOST, GatherPlan, Stage, counted_gather, load_turns
from layoutalg.proofs.listed_access import UNCOUNTED
from layoutalg.synth.conversions.inside import Fetched, Places, fetched
from layoutalg.synth.conversions.reading import VALUES, Given, first_bits, parsed_one, read, shared_bytes
from layoutalg.synth.conversions.through import spread
from layoutalg.targets.instruction_costs import instruction_costs
from layoutalg.targets.registry import asked_bits, lookup

ALIGN_BYTES = 16


def gather(
    source: object,
    index: object,
    axis: str | int,
    element_bits: int | str | None = None,
    target: str = "sm_90a",
    *,
    shape: tuple[int, ...] | None = None,
    index_shape: tuple[int, ...] | None = None,
    smem_bytes: int | None = None,
    mechanism: str | None = None,
) -> GatherPlan | Unknown:
    """Return the cheapest plan by which every thread gathers the elements that its indices select along an axis.

    Mathematically: ``result[.., j, ..] = source[.., index[.., j, ..], ..]``, in the layout of the indices; 0 for an
    index outside the axis.

    Args:
        source: Register layout of the tensor, as for ``conversion``, linear over F2.
        index: Register layout of the indices; their tensor may differ from the source's only in the extent of the axis.
        axis: The axis, by name or position.
        element_bits: Bits of an element: 8, 16, 32, 64 or 128, or the name of its type; None for that of the
            source's text, or 16. Indices have 32.
        target: The target, for its lanes, banks and costs.
        shape: Extents of the source, for layouts that do not state them.
        index_shape: Extents of the tensor of indices; by default those of the source.
        smem_bytes: Shared memory that the plan may use; by default all that a block of the target can have.
        mechanism: ``"registers"``, ``"shuffles"`` or ``"shared"``: only plans of this mechanism.

    Returns:
        The plan of least cost with its alternatives; ``Unknown`` if none fits.

    Raises: MalformedError: LA933, LA935. InfeasibleError: LA934, if an index can select an element not in the source.

    Example:
        >>> from layoutalg import LinearLayout
        >>> bits = [(0, 1 << bit) for bit in range(5)]
        >>> rows = LinearLayout.from_bases({"register": [(1, 0)], "lane": bits}, {"row": 2, "col": 32})
        >>> plan = gather(rows, rows, "col", 32).check()
        >>> plan.mechanism, plan.cost.shuffles, gather(rows, rows, "row", 32).mechanism
        ('shuffles', 2, 'registers')
    """
    asked = lookup(CHECK.kind(target, str, "target"))
    bits = asked_bits(CHECK, stated_bits(element_bits, source, check=CHECK))
    if (wide := stated(index).bits) not in (None, INDEX_BITS):
        raise CHECK.malformed("index", f"must hold indices of {INDEX_BITS} bits", f"{wide} bits")
    if mechanism is not None:
        CHECK.choice(mechanism, "mechanism", MECHANISMS)
    ours = None if shape is None else CHECK.vector(shape, "shape", low=1)
    theirs = ours if index_shape is None else CHECK.vector(index_shape, "index_shape", low=1)
    given, wanted = (parsed_one(end, sizes) for end, sizes in ((source, ours), (index, theirs)))
    first = read(given, "source", asked.lanes, ours)
    second = read(wanted, "index", asked.lanes, theirs)
    question = _question(first, second, axis, bits, target)
    moved = fetched(question.source, question.virtual)
    limit = shared_bytes(target) if smem_bytes is None else CHECK.integer(smem_bytes, "smem_bytes", 0)
    made = [_by_places(question, moved), _by_memory(question, moved, limit)]
    return _chosen(made, mechanism)


@dataclass(frozen=True, slots=True)
class _Question:
    """The question: ``virtual`` is the layout of threads that hold everything their indices can select."""

    source: Places
    virtual: Places
    ends: tuple[Given, Given]
    tensor: tuple[tuple[str, int], ...]
    axis: str
    count: int
    element_bits: int
    target: str

    def plan(
        self, mechanism: str, columns: tuple[int, ...], constant: int, stage: Stage | None, why: str
    ) -> GatherPlan:
        held, index = (end.held() for end in self.ends)
        costs = instruction_costs(self.target)
        free = counted_gather((), mechanism, stage, index, self.element_bits, costs)
        plan = GatherPlan(
            held, index, self.tensor, self.axis, self.count, self.element_bits, self.target, mechanism, columns,
            constant, stage, free, why, (),
        )  # fmt: skip
        return replace(plan, cost=counted_gather(plan.words(), mechanism, stage, index, self.element_bits, costs))


def _question(first: Given, second: Given, axis: str | int, element_bits: int, target: str) -> _Question:
    for name, given in (("source", first), ("index", second)):
        if given.places is None:
            raise CHECK.malformed(name, "must be linear over F2, with power-of-two extents", given.counts)
        if VALUES in dict(given.tensor):
            raise CHECK.malformed(name, "must state its tensor: pass shape=, and index_shape= if that differs", name)
        if given.blocks:
            raise CHECK.malformed(
                name, "must have one block: gathers do not read other blocks' memory", len(given.blocks)
            )
    if first.counts[2] != second.counts[2]:
        raise CHECK.malformed("index", f"must have {first.counts[2]} warps, like the source", second.counts[2])
    names = [name for name, _ in first.tensor]
    if isinstance(axis, str):
        CHECK.choice(axis, "axis", names)
        place = names.index(axis)
    else:
        place = CHECK.integer(axis, "axis", -len(names), len(names)) % len(names)
    theirs = [name for name, _ in second.tensor]
    named = first.named and second.named
    order = theirs if named else names
    if (sorted(theirs) != sorted(names)) if named else len(theirs) != len(names):
        raise CHECK.malformed("index", f"must be of a tensor with the axes {', '.join(names)}", ", ".join(theirs))
    sizes = dict(zip(order, (size for _, size in second.tensor), strict=True))
    for at, (name, size) in enumerate(first.tensor):
        if at != place and sizes[name] != size:
            raise CHECK.malformed("index", f"must have extent {size} along {name}, like the source", sizes[name])
    starts = first_bits(dict(first.tensor))
    own, kept = _orders(sizes, names, names[place], starts)
    if second.places is None or first.places is None:
        raise AssertionError("refused above")
    extent = first.tensor[place][1]
    if prod(second.counts) * extent > MOST:
        raise CHECK.malformed("index", f"must have at most {MOST} places times indices", prod(second.counts) * extent)
    mapped = second.places.mapped(lambda element: matrix.apply(kept, element))
    along = tuple(1 << starts[names[place]] + bit for bit in range(extent.bit_length() - 1))
    virtual = Places((*mapped.registers, *along), mapped.lanes, mapped.warps, mapped.constant)
    turned = replace(second, places=second.places.mapped(lambda element: matrix.apply(own, element)))
    turned = replace(turned, tensor=tuple((name, sizes[name]) for name in names))
    return _Question(
        first.places, virtual, (first, turned), first.tensor, names[place], sizes[names[place]], element_bits, target
    )


def _orders(sizes: dict[str, int], names: list[str], axis: str, starts: dict[str, int]) -> tuple[list[int], list[int]]:
    """Per coordinate bit of the index tensor: that bit with the axes in the source's order, and the source bit of the
    same coordinate (0 along the axis)."""
    firsts = first_bits({name: sizes[name] for name in names})
    own, kept = [], []
    for name, size in sizes.items():
        for bit in range(size.bit_length() - 1):
            own.append(1 << firsts[name] + bit)
            kept.append(0 if name == axis else 1 << starts[name] + bit)
    return own, kept


def _inside(asked: _Question, moved: Fetched, threads: int) -> bool:
    """Whether no index selects an element outside its ``2^threads`` places: the thread's or the warp's."""
    low = len(asked.virtual.registers) + len(asked.virtual.lanes) * (threads > moved.registers)
    own = all(column >> threads == 1 << bit for bit, column in enumerate(moved.columns[low:]))
    return own and not any(column >> threads for column in (*moved.columns[:low], moved.constant))


def _by_places(asked: _Question, moved: Fetched) -> GatherPlan | Alternative:
    """The plan that reads registers of the same thread or warp."""
    if not _inside(asked, moved, moved.registers + moved.lanes):
        return Alternative("shuffles", "an index can select an element of another warp")
    here = _inside(asked, moved, moved.registers)
    name, where = ("registers", "thread") if here else ("shuffles", "warp")
    return asked.plan(name, moved.columns, moved.constant, None, f"indices only select elements of their {where}")


def _by_memory(asked: _Question, moved: Fetched, limit: int) -> GatherPlan | Alternative:
    """The plan through shared memory."""
    size = asked.element_bits // 8
    need = -(-size * (1 << matrix.rank(asked.source.columns)) // ALIGN_BYTES) * ALIGN_BYTES
    if need > limit:
        return Alternative("shared", f"the source needs {need} bytes, but only {limit} are available")
    found = spread(asked.source, asked.virtual, asked.element_bits, asked.target)
    if isinstance(found, str):
        return Alternative("shared", found)
    columns = tuple(found.at(column) for column in asked.virtual.columns)
    constant = found.at(asked.virtual.constant ^ asked.source.constant)
    inside = _inside(asked, moved, moved.registers + moved.lanes) and moved.forced and not found.store.idle
    stage = Stage(found.registers, found.store, found.load, UNCOUNTED, need, "warp" if inside else "block")
    why = "the whole source is stored, with the optimal swizzle for its stores and for loads of equal indices"
    plan = asked.plan("shared", columns, constant, stage, why)
    stage = replace(stage, turns=load_turns(asked.target, stage.load, plan.reads()[:, :, 0]))
    return asked.plan("shared", columns, constant, stage, why)


def _chosen(made: list[GatherPlan | Alternative], mechanism: str | None) -> GatherPlan | Unknown:
    """The plan of least cost."""
    able = [each for each in made if isinstance(each, GatherPlan) and mechanism in (None, each.mechanism)]
    if not able:
        told = [f"{each.mechanism}: {each.because if isinstance(each, Alternative) else each.why}" for each in made]
        return Unknown("; ".join(told), ("gather",))
    best = min(able, key=lambda each: each.cost.cycles)
    others = tuple(
        each if isinstance(each, Alternative)
        else Alternative(each.mechanism, each.why, each.cost, 0 if each.stage is None else each.stage.smem_bytes)
        for each in made
    )  # fmt: skip
    why = best.why
    for other in others:
        if other.cost is None:
            why += f"; {other.mechanism}: {other.because}"
        elif other.mechanism != best.mechanism:
            why += f"; {other.mechanism} would take {other.cost.cycles:g} cycles"
    return replace(best, why=why, alternatives=others).check()
