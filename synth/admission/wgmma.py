"""Decide whether ``wgmma`` accepts a layout: A or B in shared memory, dense or sparse; A in registers; accumulators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from layoutalg.f2 import LinearLayout
from layoutalg.ground.document import load_json
from layoutalg.ground.errors import BudgetError, Repair, RepresentabilityError
from layoutalg.ground.kinds import checked_kinds
from layoutalg.ground.layout import Layout
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Admission, Admitted, Refused
from layoutalg.proofs.certify.banks import document
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.evidence import proved
from layoutalg.proofs.certify.operands import no_operand, operand
from layoutalg.proofs.listed import listed
from layoutalg.proofs.wgmma import OperandPlan, OperandProblem, requested_addresses
from layoutalg.proofs.wgmma.operand import PROBLEM_SCHEMA, operand_dtype
from layoutalg.synth.admission.repairs import ranked
from layoutalg.synth.admission.request import ALIGN_BYTES, CHECK, IntArray, Request
from layoutalg.synth.fragments import Mismatch, Tiling, coordinates, tiling
from layoutalg.synth.wgmma import InadmissibleOperandError, synthesize_wgmma
from layoutalg.synth.wgmma.parts import ALIGN_BYTES as PART_BYTES
from layoutalg.synth.wgmma.parts import parts
from layoutalg.synth.wgmma.refusal import closest
from layoutalg.targets.nvidia import wgmma as hardware

RULE = "WGMMA_LAYOUT"
SHARED = ("wgmma.A", "wgmma.B", "wgmma.A.sparse", "wgmma.B.sparse")
OF_REGISTERS = ("wgmma.A.registers", "wgmma.A.registers.sparse", "wgmma.D")
"""Consumers of register layouts: (register, lane, warp) -> (row, k) of A, (row, column) of D."""
WARPS = 4
"""Warps of one warpgroup, 16 rows each."""
_SAME = {"f32": "tf32", "tf32_ftz": "tf32"}


@dataclass(frozen=True, slots=True)
class RegisterPlan:
    """A register layout divided into operands of ``wgmma``.

    Args:
        operand: ``"A"`` or ``"D"``.
        dtype: Element type.
        shape: Tile of one instruction: (64, K) for A, (64, N) for D.
        tiling: Registers and place of each warp's part: 16 rows by K, or by 8 columns of D.
    """

    operand: str
    dtype: str
    shape: tuple[int, int]
    tiling: Tiling

    def __post_init__(self) -> None:
        checked_kinds(self, "LA815")

    def __str__(self) -> str:
        rows, columns = self.shape
        return f"{self.operand} of wgmma in registers, {rows} x {columns} {self.dtype}, per warp {self.tiling}"

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data."""
        return {
            "schema": "layoutalg/wgmma-registers/1", "operand": self.operand, "dtype": self.dtype,
            "shape": list(self.shape), "tiling": self.tiling.to_json(),
        }  # fmt: skip


def find(request: Request, repair: bool = True) -> Admission:
    """Return the descriptors or registers, or why there are none.

    In shared memory: each instruction has a descriptor that denotes its part of the layout, all with one major and one
    swizzle; ``.sparse``: the stored elements of sparse A, or B of a sparse instruction. In registers: the layout is a
    tiling of the fragment, and the warps of a warpgroup own 16 rows each, in order.

    Args:
        request: The request.
        repair: Whether a refusal gets repairs, the closest descriptor and a certificate, or its reason alone.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> admissible("Sw<3,3,3> o 0 o (64,64):(1,64)", "wgmma.A", dtype="f16").descriptor.major
        'MN'
        >>> admissible("(64,64):(1,64)", "wgmma.A", dtype="e4m3").rules
        ('WGMMA_MAJOR', 'WGMMA_PITCH')
        >>> admissible(hardware.register_layout("s8"), "wgmma.A.registers", dtype="s8").descriptor.shape
        (64, 32)
    """
    registers = request.consumer in OF_REGISTERS
    if not registers and request.consumer not in SHARED:
        raise CHECK.malformed("consumer", f"must be one of {', '.join((*SHARED, *OF_REGISTERS))}", request.consumer)
    request.only(*(("n",) if request.consumer == "wgmma.D" else ("metadata", "selector")
                   if request.consumer == "wgmma.A.sparse" else ()))  # fmt: skip
    if not hardware.has_wgmma(request.target):
        return _refused(request, "WGMMA_ARCH", f"{request.target} has no wgmma; use {hardware.ARCH}")
    if request.consumer == "wgmma.D":
        return _accumulator(request)
    name = operand_dtype(_SAME.get(request.dtype.name, request.dtype.name))
    if name is None:
        known = ", ".join(hardware.DTYPES)
        refused = _refused(request, "WGMMA_DTYPE", f"operands must be one of {known}, got {request.dtype.name}")
        return refused if registers or not repair else refused.deferred(repairs=lambda: _repairs(request))
    if request.consumer.endswith(".sparse") and not hardware.multiply(name).sparse:
        return _refused(request, "WGMMA_SPARSE", f"wgmma has no sparse A of {name}")
    if registers:
        each, k = 32 // hardware.multiply(name).bits, hardware.multiply(name).k
        return _registers(request, "A", name, _fragment(each, k, 2), (64, k), each)
    return _shared(request, name, repair)


def _shared(request: Request, name: str, repair: bool) -> Admission:
    sparse = request.consumer.endswith(".sparse")
    side = request.consumer.split(".")[1]
    told = _metadata(request, name)
    if told is not None:
        return told
    try:
        problem = OperandProblem.of(
            side, name, request.layout, tile=request.extents, align_bytes=request.align_bytes, sparse=sparse
        )
        plan = synthesize_wgmma(problem, repair=False)
    except RepresentabilityError as error:
        found = _by_parts(request, side, name, sparse) if request.dtype.bits in (1, 8, 16, 32) else None
        if found is not None:
            return found
        rule = "WGMMA_BITS" if name == "b1" else RULE
        refused = _refused(request, rule, error.diagnostic.because, error.diagnostic.witness or {})
        return refused.deferred(repairs=lambda: _repairs(request)) if repair else refused
    except InadmissibleOperandError as error:
        rules, reasons = (error.rules, error.reasons) if error.rules else ((RULE,), (error.diagnostic.because,))
        refused = Refused(request.consumer, request.target, name, rules, reasons)
        if not repair:
            return refused
        return refused.deferred(
            witness=lambda: closest(problem) or {},
            repairs=lambda: _repairs(request),
            certificate=lambda: _evidence(problem),
        )
    return Admitted(request.consumer, request.target, name, plan, operand(plan), "measured")


def _repairs(request: Request) -> tuple[Repair, ...]:
    def stated(answer: Admitted) -> Mapping[str, object] | None:
        plan = answer.descriptor
        return plan.problem.to_json() if isinstance(plan, OperandPlan) else None

    return ranked(request, lambda part: find(part, repair=False), stated=stated)


def _by_parts(request: Request, side: str, name: str, sparse: bool) -> Admitted | Unknown | None:
    """Return the descriptors of a tile that has no digits, part by part; None if some part has none."""
    bits = request.dtype.bits
    if bits == 1 and (request.offsets % 8 != np.arange(request.offsets.shape[-1]) % 8).any():
        return None  # a bit must keep its position in the byte
    places = request.offsets * bits // 8
    k = hardware.instruction_k(bits, sparse and side == "B")
    plan = parts(places, hardware.instruction_rows(side, name), bits, k)
    if plan is None:
        return None
    if request.align_bytes < PART_BYTES:
        because = f"descriptors exist for a base aligned to {PART_BYTES} bytes; other bases were not tried"
        return Unknown(because, ("wgmma",))
    statement = {"f": document(plan.read().reshape(-1)), "g": document(places.reshape(-1))}
    seal = proved("equality", statement, [{"by": "table"}], f"{request.consumer} reads the requested layout")
    return Admitted(request.consumer, request.target, name, plan, seal, "measured")


def _metadata(request: Request, name: str) -> Refused | None:
    """Compare the metadata layout, if given, with the one that the instruction reads."""
    if "metadata" not in request.options:
        return None
    selector = CHECK.integer(request.options.get("selector", 0), "selector", 0, 2)
    wanted = hardware.metadata_coordinates(hardware.multiply(name).bits, selector)
    heard = wanted[..., 0] >= 0
    given = np.asarray(request.options["metadata"])
    if given.shape != wanted.shape or given.dtype.kind not in "iu":
        rule = "must be integers [thread, nibble, 2]: the row and group that each nibble describes"
        raise CHECK.malformed("metadata", rule, given.shape)
    wrong = np.argwhere(heard & (given != wanted).any(axis=-1))
    if not len(wrong):
        return None
    thread, nibble = (int(part) for part in wrong[0])
    holds, needs = (tuple(int(part) for part in table[thread, nibble]) for table in (given, wanted))
    described = "no row" if holds[0] < 0 else f"row {holds[0]}, group {holds[1]}"
    because = f"nibble {nibble} of thread {thread} describes {described}; expected row {needs[0]}, group {needs[1]}"
    witness = {"thread": thread, "nibble": nibble, "holds": holds, "needs": needs}
    return _refused(request, "WGMMA_METADATA", because, witness)


def _fragment(each: int, columns: int, row_groups: int) -> LinearLayout:
    """One warp's part: ``each`` elements per lane, four lanes along the columns, eight rows, then the next groups."""
    inside = [(0, 1 << place) for place in range(each.bit_length() - 1)]
    rows = [(8 << place, 0) for place in range(row_groups.bit_length() - 1)]
    far = [(0, step) for step in (4 * each << place for place in range(16)) if step < columns]
    lanes = [(0, each), (0, 2 * each), (1, 0), (2, 0), (4, 0)]
    bases = {"register": [*inside, *rows, *far], "lane": lanes}
    return LinearLayout.from_bases(bases, {"row": 8 * row_groups, "column": columns})


def _registers(
    request: Request, side: str, name: str, fragment: LinearLayout, shape: tuple[int, int], word: int
) -> Admission:
    layout = request.layout
    if not isinstance(layout, Layout) or not {"register", "lane"} & set(layout.in_dims) or len(layout.out_dims) != 2:
        because = "the layout must map (register, lane, warp) to two coordinates"
        return _refused(request, "WGMMA_FRAGMENT", because, {"axes": tuple(getattr(layout, "in_dims", ()))})
    found = tiling(layout, fragment, word)
    if isinstance(found, Mismatch):
        return _refused(request, "WGMMA_FRAGMENT", found.because, found.witness)
    apart = _warps(found)
    if apart is not None:
        return _refused(request, "WGMMA_FRAGMENT", *apart)
    asked = coordinates(layout)[0]
    statement = {"f": document(_flat(found.table(fragment), asked)), "g": document(_flat(asked, asked))}
    seal = proved("equality", statement, [{"by": "table"}], f"{request.consumer} accepts the registers")
    plan = RegisterPlan(side, name, shape, found)
    return Admitted(request.consumer, request.target, name, plan, seal, "measured")


def _warps(found: Tiling) -> tuple[str, dict[str, object]] | None:
    """Return where the warps of a warpgroup do not own 16 rows each, in order, of one instruction."""
    for registers, points in zip(found.registers, found.starts, strict=True):
        if len(points) % WARPS:
            return f"the warps must form whole warpgroups of {WARPS}", {"warps": len(points)}
        for warp, point in enumerate(points):
            first = points[warp - warp % WARPS]
            needs = (first[0] // 64 * 64 + 16 * (warp % WARPS), first[1])
            if tuple(point) != needs:
                at = {"register": registers[0], "lane": 0, "warp": warp, "holds": tuple(point), "needs": needs}
                return "the warps of a warpgroup must own 16 rows each, in order", at
    return None


def _accumulator(request: Request) -> Admission:
    kinds = {"f16": 2, "f32": 1, "s32": 1}
    name = request.dtype.name
    if name not in kinds:
        return _refused(request, "WGMMA_DTYPE", f"accumulators must be f16, f32 or s32, got {name}")
    admission = _registers(request, "D", name, _fragment(2, 8, 2), (64, 8), kinds[name])
    if not isinstance(admission, Admitted):
        return admission
    found: Tiling = admission.descriptor.tiling
    columns: dict[Any, list[int]] = {}
    for points in found.starts:
        for warp in range(0, len(points), WARPS):
            columns.setdefault((warp, points[warp][0]), []).append(points[warp][1])
    legal = hardware.INTEGER_N if name == "s32" else hardware.FLOAT_N
    runs = {tuple(sorted(set(held))) for held in columns.values()}
    widths = {len(run) * 8 for run in runs}
    n = CHECK.integer(request.options["n"], "n", 8, 257) if "n" in request.options else None
    whole = len(runs) == 1 and all(held[0] + 8 * i == at for held in runs for i, at in enumerate(held))
    width = max(widths)
    chosen = n if n is not None else next((value for value in reversed(legal) if width % value == 0), 0)
    if not whole or chosen not in legal or width % chosen:
        because = f"adjacent instructions of N = {', '.join(map(str, legal))} columns must cover the tile"
        return _refused(request, "WGMMA_ROWS", because, {"columns": width, "n": chosen})
    plan = RegisterPlan("D", name, (64, chosen), found)
    return Admitted(request.consumer, request.target, name, plan, admission.certificate, "measured")


def _flat(table: IntArray, like: IntArray) -> IntArray:
    """Flatten each coordinate to one number."""
    return np.asarray(table[..., 0] + (int(like[..., 0].max()) + 1) * table[..., 1], dtype=np.int64).reshape(-1)


def is_problem(layout: object) -> bool:
    """Return whether the layout is an operand problem, its document or its JSON text.

    Example:
        >>> is_problem("(64,64):(64,1)")
        False
    """
    if isinstance(layout, str):
        return layout.lstrip().startswith("{") and f'"{PROBLEM_SCHEMA}"' in layout
    return isinstance(layout, OperandProblem) or (
        isinstance(layout, Mapping) and layout.get("schema") == PROBLEM_SCHEMA
    )


def stated(
    layout: object,
    consumer: str,
    options: Mapping[str, object],
    dtype: object = None,
    tile: Sequence[int] | None = None,
    align_bytes: object = ALIGN_BYTES,
) -> tuple[object, str, None, int, dict[str, object]]:
    """Return an operand problem as the arguments of a request: layout, type, tile, alignment, options."""
    given = load_json(layout) if isinstance(layout, str) else layout
    problem = given if isinstance(given, OperandProblem) else OperandProblem.from_json(given)
    named = f"wgmma.{problem.operand}" + (".sparse" if problem.sparse else "")
    if consumer.startswith("wgmma.") and consumer != named:
        raise CHECK.malformed("consumer", f"must be {named}, as in the problem", consumer)
    if dtype is not None and operand_dtype(dtype) != problem.dtype:
        raise CHECK.malformed("dtype", f"must be {problem.dtype}, as in the problem", dtype)
    if tile is not None and CHECK.vector(tile, "tile") != problem.shape:
        raise CHECK.malformed("tile", f"must be {problem.shape}, as in the problem", tile)
    if align_bytes not in (ALIGN_BYTES, problem.align_bytes):
        raise CHECK.malformed("align_bytes", f"must be {problem.align_bytes}, as in the problem", align_bytes)
    places = requested_addresses(problem) * 8 // problem.element_bits
    if problem.element_bits < 8:
        places = places + np.arange(problem.shape[1]) % 8
    return listed(places), problem.dtype, None, problem.align_bytes, dict(options)


def _evidence(problem: OperandProblem) -> Certificate | None:
    try:
        return no_operand(problem)
    except BudgetError:
        return None


def _refused(
    request: Request,
    rule: str,
    reason: str,
    witness: Mapping[str, object] | None = None,
    repairs: tuple[Repair, ...] = (),
    certificate: Certificate | None = None,
) -> Refused:
    name = request.dtype.name
    return Refused(request.consumer, request.target, name, (rule,), (reason,), witness or {}, repairs, certificate)
