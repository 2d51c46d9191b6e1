"""Decide whether MFMA and WMMA accept a register layout, and AMD's LDS instructions a tile layout."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import Repair, shown
from layoutalg.ground.kinds import checked_kinds
from layoutalg.ground.layout import Layout
from layoutalg.ground.recognize import Departure, linear
from layoutalg.ground.verdict import Unknown
from layoutalg.notation.written import is_written, read_written
from layoutalg.proofs.admission import Admission, Admitted, Refused
from layoutalg.proofs.certify.banks import document
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.evidence import proved
from layoutalg.proofs.register_map import tile_elements
from layoutalg.synth.admission.ideas import Idea
from layoutalg.synth.admission.repairs import ranked, ranked_consumers
from layoutalg.synth.admission.request import CHECK, IntArray, Request
from layoutalg.synth.broken import Broken
from layoutalg.synth.fragments import Mismatch, Tiling, coordinates, tiling
from layoutalg.synth.lds import FILLS, TRANSPOSING, WIDTHS, FillPlan, LdsPlan, exchange, fill, read_or_write
from layoutalg.targets.layouts.amd_instructions import MFMA, WMMA, MatrixInstruction
from layoutalg.targets.registry import lookup
from layoutalg.targets.target_model import model_of

_TABLES = {"mfma": MFMA, "wmma": WMMA}
ACCESSES = (*WIDTHS, *TRANSPOSING, *FILLS)
UNDOCUMENTED = (
    "ds_read_b64_tr_b4", "ds_read_b96_tr_b6", "buffer_load_dwordx3_lds", "global_load_lds_dwordx3",
)  # fmt: skip
"""Existing instructions whose lane exchange, or placement in LDS, is undocumented for elements of whole bytes."""


@dataclass(frozen=True, slots=True)
class MatrixPlan:
    """A register layout divided into operands of one matrix instruction.

    Args:
        instruction: Its name.
        operand: ``"A"``, ``"B"``, ``"C"`` or ``"D"``.
        shape: (m, n, k).
        tiling: The registers and the tile of each instruction.
    """

    instruction: str
    operand: str
    shape: tuple[int, int, int]
    tiling: Tiling

    def __post_init__(self) -> None:
        checked_kinds(self, "LA832")

    def __str__(self) -> str:
        return f"{self.instruction} {self.operand}: {self.tiling}"

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data."""
        return {
            "schema": "layoutalg/matrix-plan/1", "instruction": self.instruction, "operand": self.operand,
            "shape": list(self.shape), "tiling": self.tiling.to_json(),
        }  # fmt: skip


def find_matrix(request: Request) -> Admission:
    """Divide the registers among instructions, or return the first place where that fails.

    Mathematically: admitted exactly if the layout is a tiling of the instruction's fragment (``synth.fragments``)
    with the elements of each 32-bit register in order.

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
    family, _, rest = request.consumer.partition(".")
    name, _, operand = rest.rpartition(".")
    tables = _TABLES[family]
    if operand not in ("A", "B", "C", "D") or not any(name in table for table in tables.values()):
        rule = f"must be {family}, a dense instruction and A, B, C or D, such as {family}.{_some(family)}.A"
        raise CHECK.malformed("consumer", rule, request.consumer)
    known = tables[request.target]
    if name not in known:
        because = f"{request.target} has no {name}"
        return _refused(request, "MATRIX_INSTRUCTION", because).deferred(
            repairs=lambda: _others(request, name, operand)
        )
    shape = known[name]
    bits = shape.element_bits if operand in ("A", "B") else shape.result_bits
    if request.dtype.bits not in (bits, shape.element_bits):
        because = f"operand {operand} of {name} has elements of {bits} bits, not {request.dtype.bits}"
        return _refused(request, "MATRIX_DTYPE", because, {"dtype": request.dtype.name})
    return _divided(request, name, operand, shape, bits)


def _divided(request: Request, name: str, operand: str, shape: MatrixInstruction, bits: int) -> Admission:
    fragment = model_of(request.target).fragment(f"{request.consumer.partition('.')[0]}.{name}", operand)
    if isinstance(fragment, Unknown):
        return fragment
    layout = request.layout
    if not isinstance(layout, Layout) or not {"register", "lane"} & set(layout.in_dims):
        axes = tuple(getattr(layout, "in_dims", ()))
        because = f"expected input axes 'register' and 'lane', got {axes}"
        return _refused(request, "REGISTER_AXES", because, {"axes": axes})
    sizes = list(fragment.out_dims.values())
    rank = len(layout.out_dims)
    if rank > len(sizes) or any(size > 1 for size in sizes[rank:]):
        because = f"the layout has {rank} output coordinates, the operand has {len(sizes) - (sizes[-1] == 1)}"
        return _refused(request, "REGISTER_AXES", because, {"coordinates": rank})
    found = tiling(layout, fragment, _word(request.target, operand, bits, fragment))
    if isinstance(found, Mismatch):
        return _refused(request, "FRAGMENT", found.because, found.witness).deferred(
            repairs=lambda: _others(request, name, operand)
        )
    asked = coordinates(layout)[0]
    seal = _same(_flat(found.table(fragment), asked), _flat(asked, asked), request.consumer)
    plan = MatrixPlan(name, operand, (shape.m, shape.n, shape.k), found)
    return Admitted(request.consumer, request.target, request.dtype.name, plan, seal, "documented")


def _word(target: str, operand: str, bits: int, fragment: LinearLayout) -> int:
    """Elements per 32-bit register; RDNA3 does not pack 16-bit results."""
    alone = target == "gfx1100" and operand in ("C", "D")
    return 1 if alone else min(max(1, 32 // bits), fragment.in_dims["register"])


def _flat(table: IntArray, like: IntArray) -> IntArray:
    """Flatten each coordinate to one number, by strides larger than any extent of ``like``."""
    strides = np.cumprod([1, *(int(like[..., dim].max()) + 1 for dim in range(like.shape[-1] - 1))])
    return np.asarray((table * strides).sum(axis=-1).reshape(-1), dtype=np.int64)


def _same(meaning: IntArray, asked: IntArray, consumer: str) -> Certificate:
    statement = {"f": document(meaning), "g": document(asked)}
    return proved("equality", statement, [{"by": "table"}], f"{consumer} denotes the requested layout")


def _some(family: str) -> str:
    return next(name for table in _TABLES[family].values() for name in table)


def _others(request: Request, name: str, operand: str) -> tuple[Repair, ...]:
    """The target's other instructions with the same operand and result widths that accept the layout."""
    family = request.consumer.partition(".")[0]
    made = next(table[name] for table in _TABLES[family].values() if name in table)
    others = {}
    for other, shape in _TABLES[family][request.target].items():
        if other != name and (shape.element_bits, shape.result_bits) == (made.element_bits, made.result_bits):
            for side in (operand, *(side for side in "AB" if operand in "AB" and side != operand)):
                consumer = f"{family}.{other}.{side}"
                others[consumer] = f"use {other}", f"{consumer} accepts this layout on {request.target}"
    return ranked_consumers(request, find_matrix, others)


def find_access(request: Request) -> Admission:
    """Return the accesses with the address of every lane and their turns, or why there are none.

    Without ``registers``, reads use the lane order of operand A of the target's matrix instructions: see ``synth.lds``.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> found = admissible("(64,64):(64,1)", "ds_read_b128", "gfx942")
        >>> print(found.descriptor)
        8 x ds_read_b128, 256 turns, lanes of operand A of MFMA 16x16, 8 along k each, lane 0 at byte 0
        >>> print(admissible("(64,64):(1,64)", "ds_read_b128", "gfx942").rules)
        ('LDS_CONTIGUOUS',)
    """
    answer = _access(request)
    if not isinstance(answer, Refused):
        return answer
    own = (_transposed,) if "read" in request.consumer else ()
    others = _other_accesses(request)
    return answer.deferred(
        repairs=lambda: ranked(request, _access, others, 8 * _grain(request.consumer), own=own, least=_least)
    )


def _least(request: Request) -> int:
    width = WIDTHS.get(request.consumer, FILLS.get(request.consumer, 8))
    total = math.prod(request.extents) * request.element_bytes
    return -(-total // (width * lookup(request.target).lanes))


def _other_accesses(request: Request) -> dict[str, str]:
    """Instructions of the same direction with other widths, or transposing reads for the type's width."""
    name = request.consumer
    if name in FILLS:
        stem = name.partition("_dword")[0]
        return {other: "take another instruction" for other in FILLS if other.startswith(stem) and other != name}
    verb = "write" if "write" in name else "read"
    found = {other: "take another instruction" for other in WIDTHS if f"_{verb}_" in other and other != name}
    turned = {other: "read it transposed" for other in TRANSPOSING if verb == "read" and other != name}
    return found | (turned if "registers" in request.options else {})


def _transposed(request: Request) -> Iterator[Idea]:
    """Use a transposing read, so each lane gets elements of a row from a tile with contiguous columns."""
    bits, extents = request.dtype.bits, request.extents
    name = next((name for name, width in TRANSPOSING.items() if width == bits), None)
    if name is None or request.options or len(extents) != 2 or any(size & size - 1 for size in extents):
        return
    many, lanes = 64 // bits, lookup(request.target).lanes
    if extents[0] % many or (extents[0] * extents[1]) % (lanes * many):
        return
    flat = np.arange(extents[0] * extents[1]).reshape(extents, order="F")
    runs = flat.T.reshape(-1, lanes, many)  # one run of a column per lane, adjacent lanes adjacent
    slot, source = exchange(name, many, lanes)
    held = runs[:, source, slot]
    table = held.transpose(0, 2, 1).reshape(-1, lanes)  # [register, lane]
    found = linear(np.asarray(table.reshape(-1, order="F"), dtype=np.int64))
    if isinstance(found, Departure):
        return
    axes = (("register", len(table).bit_length() - 1), ("lane", lanes.bit_length() - 1))
    outputs = tuple((f"dim{dim}", extent.bit_length() - 1) for dim, extent in enumerate(extents))
    registers = LinearLayout(axes, outputs, *found)
    changed = replace(request, consumer=name, options={"registers": registers})
    yield Idea("read it transposed", f"{name}, registers {registers}", 0, 2, (changed,))


def _access(request: Request) -> Admission:
    name = request.consumer
    if name in UNDOCUMENTED:
        return Unknown(f"the byte-to-lane mapping of {name} is undocumented for elements of whole bytes", ("amd",))
    if name not in ACCESSES:
        raise CHECK.malformed("consumer", "must be an instruction name without suffixes", name)
    if name in FILLS:
        request.only()
        request.without_problem("it can gather the tile from any addresses")
    else:
        request.only("registers", "lanes", "warps")
    size = request.element_bytes
    if not size or request.dtype.bits % 8:
        return Unknown(f"{request.dtype.bits}-bit elements share bytes; describe the layout in bytes", ("amd",))
    if name in TRANSPOSING and request.dtype.bits != TRANSPOSING[name]:
        because = f"{name} exchanges {TRANSPOSING[name]}-bit elements, not {request.dtype.bits}-bit ones"
        return _refused(request, "LDS_WIDTH", because, {"dtype": request.dtype.name})
    places = request.offsets * size
    grain = _grain(name)
    if request.align_bytes % grain:
        because = f"addresses must be {grain}-byte aligned; the tile's base is aligned to {request.align_bytes}"
        return _refused(request, "LDS_ALIGN", because, {"align_bytes": request.align_bytes})
    room = model_of(request.target).limit("lds_bytes_per_block")
    reach = int(places.max()) + size
    if not isinstance(room, Unknown) and isinstance(room.value, int) and reach > room.value:
        because = f"the tile spans {reach} bytes; a work-group has {room.value} bytes of LDS"
        return _refused(request, "LDS_RANGE", because, {"bytes": reach})
    lanes = lookup(request.target).lanes
    found: tuple[LdsPlan | FillPlan, IntArray, IntArray] | Broken | Unknown
    found = fill(name, places, size, lanes) if name in FILLS else _accessed(request, places, size, lanes)
    if isinstance(found, Unknown):
        return found
    if isinstance(found, Broken):
        return _refused(request, found.rule, found.reason, found.witness)
    plan, meaning, asked = found
    seal = _same(meaning, asked, name)
    return Admitted(name, request.target, request.dtype.name, plan, seal, "documented")


def _grain(name: str) -> int:
    if name in FILLS:
        return 4
    return 4 if name.endswith("b96") else WIDTHS.get(name, 8)


def _accessed(
    request: Request, places: IntArray, size: int, lanes: int
) -> tuple[LdsPlan, IntArray, IntArray] | Broken | Unknown:
    options = request.options
    held = options.get("registers")
    if is_written(held):
        held = read_written(held).layout
    if isinstance(held, Layout) and {"register", "lane"} <= set(held.in_dims):
        found, _ = coordinates(held)
        extents = request.extents
        if found.shape[-1] != len(extents) or (found < 0).any() or (found >= np.array(extents)).any():
            raise CHECK.malformed("registers", f"must map to coordinates of the tile {extents}", held)
        held = np.ravel_multi_index(tuple(np.moveaxis(found, -1, 0)), extents, order="F").astype(np.int64)
    elif held is not None:
        held = tile_elements(held, request.extents, options.get("lanes"), options.get("warps"))
    return read_or_write(request.target, request.consumer, places, held, size, lanes)


def _refused(
    request: Request,
    rule: str,
    because: str,
    witness: Mapping[str, object] | None = None,
) -> Refused:
    at = {name: value if isinstance(value, int) else shown(value) for name, value in (witness or {}).items()}
    return Refused(request.consumer, request.target, request.dtype.name, (rule,), (because,), at)
