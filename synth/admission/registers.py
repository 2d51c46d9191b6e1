"""Decide whether a matrix instruction accepts a register layout as an operand: mma, mfma, wmma, and wgmma's registers.

Mathematically: admitted exactly if the layout is a tiling of the instruction's fragment with the elements of each
32-bit register in order: see ``layoutalg.synth.fragments``. Coordinates are (row, k) for A, (k, column) for B, (row,
column) for C and D, and (row, stored element of the row) for A of sparse instructions. Warps of a warpgroup own 16 rows
each, in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from layoutalg.f2 import LinearLayout
from layoutalg.ground.record import Record
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs import certify
from layoutalg.proofs.admission import Admission, Grade, Refused
from layoutalg.proofs.certify import conditions
from layoutalg.synth.admission import movement
from layoutalg.synth.admission.accesses import find_access
from layoutalg.synth.admission.lds import find_lds
from layoutalg.synth.admission.repairs import ranked_consumers
from layoutalg.synth.admission.request import CHECK, Finder, Request
from layoutalg.synth.admission.wgmma import typed
from layoutalg.synth.fragments import Tiling, coordinates, tiling, wrong_axes
from layoutalg.targets.layouts.amd_instructions import MFMA, WMMA
from layoutalg.targets.layouts.nvidia_instructions import (
    ELEMENT_BITS,
    MMA,
    MMA_SP,
    MmaInstruction,
    SparseMma,
    fragment_of,
    mma_fragment,
    mma_sp_fragment,
    mma_sp_metadata,
    mma_sp_selectors,
    mma_sp_type,
    mma_type,
    variant_of,
)
from layoutalg.targets.nvidia import wgmma
from layoutalg.targets.registry import TARGETS, lookup
from layoutalg.targets.target_model import model_of

_AMD = {"mfma": MFMA, "wmma": WMMA}
WARPS = 4
"""Warps of one warpgroup, 16 rows each."""


@dataclass(frozen=True, slots=True)
class FragmentPlan(
    Record, code="LA823", schema="layoutalg/fragment-plan/2", json="instruction operand shape tiling excess?"
):
    """A register layout divided into operands of one matrix instruction.

    Args:
        instruction: Its name.
        operand: ``"A"``, ``"B"``, ``"C"`` or ``"D"``.
        shape: (m, n, k) of the instruction; of ``wgmma``, (64, K) for A and (64, N) for D.
        tiling: The registers and the tile of each instruction, or of each warp's part of it.
        excess: The register limit of the target that the layout exceeds, so that it spills; "" within the limits.
    """

    instruction: str
    operand: str
    shape: tuple[int, ...]
    tiling: Tiling
    excess: str = ""

    def __str__(self) -> str:
        spills = f"; spills: {self.excess}" if self.excess else ""
        return f"{self.operand} of {self.instruction}: {self.tiling}{spills}"


def _accepted(
    request: Request,
    plan: Callable[[Tiling], FragmentPlan | Broken],
    fragment: LinearLayout,
    word: int,
    grade: Grade,
    find: Finder,
    others: Callable[[], Iterable[tuple[str, tuple[str, str]]]] = tuple,
    together: int = 1,
) -> Admission:
    """Divide the registers among copies of a fragment; ``plan`` makes the plan of their tiling.

    A refusal offers ``others``, if ``find`` admits them, and the conversion into the fragment; ``together``: warps of
    one instruction.
    """
    layout = request.layout
    wrong = wrong_axes(layout, tuple(fragment.out_dims.values()))
    found = wrong or tiling(layout, fragment, word)
    made = found if isinstance(found, Broken) else plan(found)
    if isinstance(made, Broken):
        if wrong is not None and "axes" in made.witness:
            read = find_access if lookup(request.target).vendor == "nvidia" else find_lds
            tile = movement.read_tile(request, fragment, together)
            return request.refused(made, repairs=lambda: ranked_consumers(request, read, {}, tile))
        own = () if wrong else movement.converted(request, find, fragment, together)
        rule = "WGMMA_FRAGMENT" if together > 1 and found is made else made.rule
        return request.refused(
            replace(made, rule=rule), repairs=lambda: ranked_consumers(request, find, dict(others()), own)
        )
    asked, outer = coordinates(layout)
    steps = np.cumprod([1, *(int(asked[..., dim].max()) + 1 for dim in range(asked.shape[-1] - 1))])
    seal = certify.same_tables(made.tiling.table(fragment) @ steps, asked @ steps, f"{request.consumer} accepts them")
    lanes, registers = asked.shape[1:3]
    words = -(-registers * request.dtype.bits // 32)
    warps = math.prod(extent for name, extent in outer if name in ("warp", "wave", "warpgroup"))
    excess = model_of(request.target).register_excess(words, lanes * warps)
    return request.admitted(replace(made, excess=excess), seal, grade)


def _named(request: Request) -> tuple[str, str]:
    """Return the instruction and the operand that a consumer names."""
    name, _, operand = request.consumer.partition(".")[2].rpartition(".")
    return name, operand if operand in ("A", "B", "C", "D") else ""


# ---------------------------------------------------------------- mma


@dataclass(frozen=True, slots=True)
class _Mma:
    """A dense or sparse ``mma.sync``; ``variant`` is empty for dense ones."""

    variant: str
    name: str

    @property
    def table(self) -> Mapping[str, MmaInstruction | SparseMma]:
        """The table that lists this instruction."""
        return MMA_SP if self.variant else MMA

    @property
    def full(self) -> str:
        """Its name in the target models."""
        return ".".join(filter(None, ("mma", self.variant, self.name)))

    @property
    def ptx(self) -> str:
        """Its name in PTX."""
        return MMA_SP[self.name].ptx(self.variant) if self.variant else MMA[self.name].ptx

    def type(self, operand: str) -> str:
        """Element type of an operand."""
        return (mma_sp_type if self.variant else mma_type)(self.name, operand)

    def fragment(self, operand: str) -> LinearLayout:
        """The fragment: (register, lane) to operand coordinates."""
        return (mma_sp_fragment if self.variant else mma_fragment)(self.name, operand)


def find_mma(request: Request) -> Admission:
    """Divide the registers among ``mma.sync``, dense or sparse, or return the first place where that fails.

    Two options of A of ``mma.sp``: ``selector``, and ``metadata``, int[32, 8, 2]: the row and group that each nibble of
    each lane's metadata word describes. It must agree with what the instruction reads.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> from layoutalg.targets.layouts.nvidia import mma_operand
        >>> layout = mma_operand("A", (32, 32), (2, 1), 2)
        >>> found = admissible(layout, "mma.m16n8k16.f32.bf16.A")
        >>> print(found.descriptor.tiling.quotient)
        (((0, 0), (1, 0)), ((0, 1), (1, 1)))
        >>> admissible(layout, "mma.m16n8k8.f32.tf32.A", dtype="tf32").rules
        ('FRAGMENT',)
        >>> admissible(layout, "mma.sp.m16n8k32.f32.bf16.A").descriptor.instruction
        'mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32'
    """
    name, operand = _named(request)
    variant, short = variant_of(name)
    made = _Mma(variant, short or name)
    if made.name not in made.table or not operand:
        rule = "must be mma or mma.sp, an instruction and A, B, C or D, such as mma.m16n8k16.f32.bf16.A"
        raise CHECK.malformed("consumer", rule, request.consumer)
    request.only(*(("metadata", "selector") if variant and operand == "A" else ()))
    if made.full not in model_of(request.target).instructions:
        evidence = conditions.named(request.target, *(a for a in TARGETS if made.full in model_of(a).instructions))
        return request.refused(Broken("MMA_ARCH", f"{request.target} has no {made.ptx}", {}, evidence))
    shape, kind, given = made.table[made.name], made.type(operand), request.dtype.operand
    widths = tuple(dict.fromkeys((ELEMENT_BITS[kind], ELEMENT_BITS[shape.operand])))
    because = f"operand {operand} of {name} must be {kind}, got {request.dtype.name}"
    at = {"dtype": request.dtype.name}
    alike = ("s4", "u4") if kind in ("s4", "u4") else (kind,)
    if operand in ("A", "B") and given in ELEMENT_BITS and given not in alike:
        return request.refused(Broken("MMA_DTYPE", because, at, conditions.named(given, *alike)))
    if request.dtype.bits not in widths:
        return request.refused(Broken("MMA_DTYPE", because, at, conditions.one_of(request.dtype.bits, *widths)))
    if variant and operand == "A" and (told := _sparse(request, made.name)) is not None:
        return request.refused(told)
    fragment = made.fragment(operand)
    return _accepted(
        request,
        lambda found: FragmentPlan(made.ptx, operand, (shape.m, shape.n, shape.k), found),
        fragment,
        min(max(1, 32 // ELEMENT_BITS[kind]), fragment.in_dims["register"]),
        "measured" if lookup(request.target).measured else "documented",
        find_mma,
        lambda: _other_mma(made, operand),
    )


def _sparse(request: Request, name: str) -> Broken | None:
    """Compare the selector and the metadata, if given, with those of the instruction."""
    selector = CHECK.integer(request.options.get("selector", 0), "selector", 0)
    many = mma_sp_selectors(name)
    if selector >= many:
        speak = {4: "one lane of each four supplies", 2: "two lanes of each four supply", 1: "all lanes supply"}[many]
        because = f"{name} has {many} selector{'s' * (many > 1)}: {speak} metadata"
        return Broken("MMA_SELECTOR", because, {"selector": selector})
    return request.other_metadata(mma_sp_metadata(name, selector), "lane", "MMA_METADATA")


def _other_mma(made: _Mma, operand: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield other instructions with the same types, and other operands of the same element type."""
    mine = made.table[made.name]
    for name, shape in made.table.items():
        other = _Mma(made.variant, name)
        same = (shape.operand, shape.operand_b, shape.result) == (mine.operand, mine.operand_b, mine.result)
        for side in "ABD" if same else "":
            if (name, side) != (made.name, operand) and other.type(side) == made.type(operand):
                yield f"{other.full}.{side}", ("take another instruction", f"{other.full}.{side}")


# ---------------------------------------------------------------- mfma and wmma


def find_amd(request: Request) -> Admission:
    """Divide the registers among ``mfma`` or ``wmma`` instructions, or return the first place where that fails.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> from layoutalg.targets.layouts.amd import mfma_accumulator
        >>> layout = mfma_accumulator((64, 64), (32, 32), (2, 1))
        >>> found = admissible(layout, "mfma.v_mfma_f32_32x32x8_f16.D", "gfx942", "f32")
        >>> print(found.descriptor.tiling.quotient)
        (((0, 0), (1, 0)), ((0, 1), (1, 1)))
        >>> admissible(layout, "mfma.v_mfma_f32_16x16x16_f16.D", "gfx942", "f32").rules
        ('FRAGMENT',)
    """
    request.only()
    family = request.consumer.partition(".")[0]
    name, operand = _named(request)
    tables = _AMD[family]
    if not operand or not any(name in table for table in tables.values()):
        some = next(name for table in tables.values() for name in table)
        rule = f"must be {family}, a dense instruction and A, B, C or D, such as {family}.{some}.A"
        raise CHECK.malformed("consumer", rule, request.consumer)
    known = tables[request.target]

    def others() -> Iterator[tuple[str, tuple[str, str]]]:
        return _other_amd(request, family, name, operand)

    if name not in known:
        missing = Broken("MATRIX_INSTRUCTION", f"{request.target} has no {name}")
        return request.refused(missing, repairs=lambda: ranked_consumers(request, find_amd, dict(others())))
    shape = known[name]
    bits = shape.element_bits if operand in ("A", "B") else shape.result_bits
    widths = tuple(dict.fromkeys((bits, shape.element_bits)))
    if request.dtype.bits not in widths:
        because = f"operand {operand} of {name} has elements of {bits} bits, not {request.dtype.bits}"
        at = {"dtype": request.dtype.name}
        return request.refused(Broken("MATRIX_DTYPE", because, at, conditions.one_of(request.dtype.bits, *widths)))
    fragment = model_of(request.target).fragment(f"{family}.{name}", operand)
    if isinstance(fragment, Unknown):
        return fragment
    alone = request.target == "gfx1100" and operand in ("C", "D")  # RDNA3 does not pack 16-bit results
    return _accepted(
        request,
        lambda found: FragmentPlan(name, operand, (shape.m, shape.n, shape.k), found),
        fragment,
        1 if alone else min(max(1, 32 // bits), fragment.in_dims["register"]),
        "documented",
        find_amd,
        others,
    )


def _other_amd(request: Request, family: str, name: str, operand: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the target's other instructions with the same operand and result widths, and the operands they may have."""
    made = next(table[name] for table in _AMD[family].values() if name in table)
    sides = (operand, *(side for side in "AB" if operand in "AB" and side != operand))
    for other, shape in _AMD[family][request.target].items():
        if other != name and (shape.element_bits, shape.result_bits) == (made.element_bits, made.result_bits):
            for side in sides:
                consumer = f"{family}.{other}.{side}"
                yield consumer, (f"use {other}", f"{consumer} accepts this layout on {request.target}")


# ---------------------------------------------------------------- wgmma


def find_warpgroup(request: Request) -> Admission:
    """Divide the registers of a warpgroup among ``wgmma``: operand A or D, or return the first place where that fails.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> admissible(wgmma.register_layout("s8"), "wgmma.A.registers", dtype="s8").descriptor.shape
        (64, 32)
    """
    operands = typed(request)
    if isinstance(operands, Refused):
        return operands
    request, name = operands, operands.dtype.name
    operand = request.consumer.split(".")[1]
    each = {"f16": 2}.get(name, 1) if operand == "D" else 32 // wgmma.multiply(name).bits
    k = 8 if operand == "D" else wgmma.multiply(name).k
    fragment = fragment_of(operand, "k", 32 // each, {"row": 16, "col": 8, "k": k})

    def plan(found: Tiling) -> FragmentPlan | Broken:
        columns = _rows_apart(found) or (_columns(request, found, name) if operand == "D" else k)
        if isinstance(columns, Broken):
            return columns
        shape = f"m64n{columns}" if operand == "D" else f"m64k{columns}"
        return FragmentPlan(f"wgmma.{shape}.{name}", operand, (64, columns), found)

    return _accepted(request, plan, fragment, each, "measured", find_warpgroup, together=WARPS)


def _rows_apart(found: Tiling) -> Broken | None:
    """Return where the warps of a warpgroup do not own 16 rows each, in order, of one instruction."""
    for registers, points in zip(found.registers, found.starts, strict=True):
        if len(points) % WARPS:
            because = f"the warps must form whole warpgroups of {WARPS}"
            return Broken("WGMMA_FRAGMENT", because, {"warps": len(points)})
        for warp, point in enumerate(points):
            first = points[warp - warp % WARPS]
            needs = (first[0] // 64 * 64 + 16 * (warp % WARPS), first[1])
            if tuple(point) != needs:
                at = {"register": registers[0], "lane": 0, "warp": warp, "holds": tuple(point), "needs": needs}
                return Broken("WGMMA_FRAGMENT", "the warps of a warpgroup must own 16 rows each, in order", at)
    return None


def _columns(request: Request, found: Tiling, name: str) -> int | Broken:
    """Return N of the instructions that accumulate a tile: the one asked for, otherwise the largest."""
    columns: dict[tuple[int, int], list[int]] = {}
    for points in found.starts:
        for warp in range(0, len(points), WARPS):
            columns.setdefault((warp, points[warp][0]), []).append(points[warp][1])
    legal = wgmma.INTEGER_N if name == "s32" else wgmma.FLOAT_N
    runs = {tuple(sorted(set(held))) for held in columns.values()}
    width = max(len(run) * 8 for run in runs)
    n = CHECK.integer(request.options["n"], "n", 8, 257) if "n" in request.options else None
    whole = len(runs) == 1 and all(held[0] + 8 * i == at for held in runs for i, at in enumerate(held))
    chosen = n if n is not None else next((value for value in reversed(legal) if width % value == 0), 0)
    if whole and chosen in legal and width % chosen == 0:
        return chosen
    because = f"adjacent instructions of N = {', '.join(map(str, legal))} columns must cover the tile"
    return Broken("WGMMA_ROWS", because, {"columns": width, "n": chosen})
