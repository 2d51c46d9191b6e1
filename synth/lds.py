"""How an AMD wave moves a tile between LDS and registers, or from global memory into LDS, or why it cannot.

An LDS access gives every lane consecutive bytes from one address; a transposing read gives register r of lane l the
element ``slot`` of the bytes addressed by lane ``source``. So the register with a lane's first element fixes the lane's
address, and any other register that disagrees is a witness. A load into LDS writes the lanes one after the other from
one base, so the vectors of a wave form one contiguous run in LDS, whatever their global addresses.

References: AMD CDNA3 and CDNA4 ISA guides, LDS instructions and buffer loads with the LDS bit; ``targets.banks`` for
the turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.errors import RepresentabilityError
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.certify import conditions
from layoutalg.synth.fragments import coordinates
from layoutalg.targets import banks
from layoutalg.targets.layouts.amd import operand_block
from layoutalg.targets.layouts.shared import transposed_read

IntArray: TypeAlias = npt.NDArray[np.int64]
WIDTHS: Mapping[str, int] = MappingProxyType(
    {f"ds_{verb}_b{bits}": bits // 8 for verb in ("read", "write") for bits in (32, 64, 96, 128)}
)
"""Bytes per lane."""
TRANSPOSING: Mapping[str, int] = MappingProxyType({"ds_read_b64_tr_b16": 16, "ds_read_b64_tr_b8": 8})
"""Element bits of the transposing reads."""
FILLS: Mapping[str, int] = MappingProxyType(
    {
        "buffer_load_dword_lds": 4, "global_load_lds_dword": 4,
        "buffer_load_dwordx4_lds": 16, "global_load_lds_dwordx4": 16,
    }
)  # fmt: skip
"""Bytes per lane of loads into LDS."""
GIVEN = "as given"
"""Report text for lanes chosen by the caller."""


@dataclass(frozen=True, slots=True)
class LdsPlan(
    Record,
    Shown,
    code="LA832",
    schema="layoutalg/lds-plan/1",
    json="instruction element_bits addresses turns lanes",
):
    """LDS accesses of one instruction.

    Args:
        instruction: Its name.
        element_bits: Bits of an element.
        addresses: Per access, the byte address of each lane, None for inactive lanes.
        turns: Turns of the banks for all accesses; None if the phases are unknown.
        lanes: What each lane moves, in words.
    """

    instruction: str
    element_bits: int
    addresses: tuple[tuple[int | None, ...], ...]
    turns: int | None
    lanes: str = GIVEN

    def __str__(self) -> str:
        turns = "turns unknown" if self.turns is None else f"{self.turns} turns"
        first = f"lane 0 at byte {self.addresses[0][0]}"
        return f"{len(self.addresses)} x {self.instruction}, {turns}, lanes {self.lanes}, {first}"


@dataclass(frozen=True, slots=True)
class FillPlan(Record, code="LA832", schema="layoutalg/lds-fill-plan/1", json="instruction element_bits bases starts"):
    """Loads from global memory into LDS.

    Args:
        instruction: Its name.
        element_bits: Bits of an element.
        bases: Per instruction, the LDS byte where lane 0 writes.
        starts: Per instruction and lane, the tile coordinate of the first element loaded; None for inactive lanes.
    """

    instruction: str
    element_bits: int
    bases: tuple[int, ...]
    starts: tuple[tuple[tuple[int, ...] | None, ...], ...]

    def __str__(self) -> str:
        first = f"from LDS byte {self.bases[0]}, lane 0 loads {self.starts[0][0]}"
        return f"{len(self.bases)} x {self.instruction}, {first}"


def read_or_write(
    target: str, instruction: str, places: IntArray, held: IntArray | None, size: int, lanes: int
) -> tuple[LdsPlan, IntArray, IntArray] | Broken | Unknown:
    """Return the accesses that move a tile or given registers, the bytes they move and the bytes requested.

    Args:
        target: Architecture.
        instruction: A name of ``WIDTHS`` or ``TRANSPOSING``.
        places: The LDS byte of every tile element, indexed outermost dimension first.
        held: int64[warp, lane, register]: the flat tile element (dimension 0 fastest) in every register. None: reads
            use the lanes of operand A of the target's matrix instructions if its blocks divide the tile; otherwise the
            tile is moved row by row, neighbouring lanes moving neighbouring vectors.
        size: Bytes of an element.
        lanes: Lanes of the wave.
    """
    width = WIDTHS.get(instruction, 8)
    if width % size:
        return _cut(f"{instruction} moves {width} bytes per lane, not whole {size}-byte elements", width, size)
    many = width // size
    flat = places.reshape(-1, order="F")
    said = GIVEN
    if held is None and "read" in instruction and instruction not in TRANSPOSING:
        held, said = _operand(target, places.shape, 8 * size, many)
    if held is None:
        if instruction in TRANSPOSING:
            return Unknown(f"{instruction} exchanges data between lanes: pass registers= to say what each lane gets")
        said = f"along dimension {places.ndim - 1}"
        if places.shape[-1] % many:
            because = f"rows of {places.shape[-1]} elements do not divide into vectors of {width} bytes"
            return Broken("LDS_WIDTH", because, {"extent": places.shape[-1]})
        vectors = np.arange(flat.size).reshape(places.shape, order="F").reshape(-1, many)
        padded: IntArray = np.full((-(-len(vectors) // lanes) * lanes, many), -1, dtype=np.int64)
        padded[: len(vectors)] = vectors
        groups: IntArray = padded.reshape(-1, lanes, many)
    else:
        if held.shape[1] != lanes:
            return Broken("LDS_LANES", f"a wave of {target} has {lanes} lanes", {"lanes": held.shape[1]})
        if held.shape[2] % many:
            because = f"{held.shape[2]} registers of {size} bytes do not divide into accesses of {width} bytes"
            return Broken("LDS_WIDTH", because, {"registers": held.shape[2]})
        groups = held.reshape(held.shape[0], lanes, -1, many).transpose(0, 2, 1, 3).reshape(-1, lanes, many)
    slot, source = exchange(instruction, many, lanes)
    asked = np.where(groups >= 0, flat[groups], -1)
    starts = np.where(groups >= 0, asked - slot * size, -1)
    first = np.zeros((lanes, 2), dtype=np.int64)
    zero = np.argwhere(slot == 0)
    first[source[slot == 0]] = zero
    addresses = starts[:, first[:, 0], first[:, 1]]
    wrong = np.argwhere(starts != addresses[:, source])
    if len(wrong):
        access, lane, register = (int(part) for part in wrong[0])
        needed = int(addresses[access, source[lane, register]] + slot[lane, register] * size)
        at = {"access": access, "lane": lane, "register": register, "byte": int(asked[access, lane, register])}
        return Broken("LDS_CONTIGUOUS", f"each lane moves {width} consecutive bytes", {**at, "needs": needed})
    grain = 4 if width == 12 else width
    active = addresses >= 0
    wrong = np.argwhere(active & (addresses % grain != 0))
    if len(wrong):
        access, lane = (int(part) for part in wrong[0])
        because = f"addresses of {instruction} must be multiples of {grain} bytes"
        return Broken("LDS_ALIGN", because, {"access": access, "lane": lane, "byte": int(addresses[access, lane])})
    moved, elements = asked[groups >= 0], groups[groups >= 0]
    if "write" in instruction and (broken := _overlap(moved, elements)):
        return broken
    meaning = (addresses[:, source] + slot * size)[groups >= 0]
    listed = tuple(tuple(at if at >= 0 else None for at in access) for access in addresses.tolist())
    return LdsPlan(instruction, 8 * size, listed, _turns(target, instruction, listed), said), meaning, moved


def _cut(because: str, width: int, size: int) -> Broken:
    return Broken("LDS_WIDTH", because, {}, conditions.multiple(width, size))


def _operand(target: str, extents: tuple[int, ...], bits: int, many: int) -> tuple[IntArray | None, str]:
    """Return the flat tile elements of lanes that read operand A, int64[1, lane, register], and the report text."""
    block = operand_block(target, bits, many, (extents[0], extents[1])) if len(extents) == 2 else None
    if block is None:
        return None, ""
    points = coordinates(block[0])[0][0]
    rows, depth = block[0].out_dims.values()
    first = np.arange(0, extents[0], rows)[:, None] + extents[0] * np.arange(0, extents[1], depth)
    inside = points[..., 0] + extents[0] * points[..., 1]
    held = inside[:, None, :] + first.reshape(1, -1, 1)
    return held.reshape(1, len(inside), -1), f"of operand A of {block[1]}, {many} along k each"


def exchange(instruction: str, many: int, lanes: int) -> tuple[IntArray, IntArray]:
    """Return the slot and the source lane of what each register [lane, register] receives.

    Example:
        >>> slot, source = exchange("ds_read_b64", 4, 64)
        >>> slot[5].tolist(), source[5].tolist()
        ([0, 1, 2, 3], [5, 5, 5, 5])
    """
    if instruction not in TRANSPOSING:
        lane, register = np.meshgrid(np.arange(lanes), np.arange(many), indexing="ij")
        return register.astype(np.int64), lane.astype(np.int64)
    table = transposed_read(TRANSPOSING[instruction])
    lane, register = np.meshgrid(np.arange(lanes), np.arange(many), indexing="ij")
    found = table.apply({"register": register.reshape(-1), "lane": lane.reshape(-1)})
    return found["slot"].reshape(lanes, many), found["source"].reshape(lanes, many)


def _turns(target: str, instruction: str, addresses: tuple[tuple[int | None, ...], ...]) -> int | None:
    try:
        return sum(banks.turns(target, instruction, access) for access in addresses)
    except RepresentabilityError:
        return None


def _overlap(places: IntArray, elements: IntArray) -> Broken | None:
    """Two different elements at one byte."""
    order = np.lexsort((elements, places))
    same = (places[order][1:] == places[order][:-1]) & (elements[order][1:] != elements[order][:-1])
    if not same.any():
        return None
    spot = int(np.argmax(same))
    at = {"byte": int(places[order][spot]), "both": (int(elements[order][spot]), int(elements[order][spot + 1]))}
    return Broken("LDS_OVERLAP", "two elements are written to the same byte", at, conditions.distinct)


def fill(
    instruction: str, places: IntArray, size: int, lanes: int
) -> tuple[FillPlan, IntArray, IntArray] | Broken | Unknown:
    """Return the loads that fill a tile, given every LDS byte; its last dimension is contiguous in global memory."""
    width = FILLS[instruction]
    if width % size:
        return _cut(f"{instruction} writes {width} bytes per lane, not whole {size}-byte elements", width, size)
    many = width // size
    flat = places.reshape(-1)
    broken = _overlap(flat, np.arange(flat.size))
    if broken:
        return broken
    order = np.argsort(flat, kind="stable")
    if flat.size % many:
        return Broken(
            "LDS_CHUNK", f"{flat.size} elements do not divide into vectors of {width} bytes", {"elements": flat.size}
        )
    vectors = order.reshape(-1, many)
    bytes_of = flat[vectors]
    wrong = np.argwhere(bytes_of != bytes_of[:, :1] + size * np.arange(many))
    if len(wrong):
        spot = tuple(int(part) for part in wrong[0])
        because = f"each lane writes {width} consecutive bytes, but the tile fills only part of them"
        return Broken("LDS_CHUNK", because, {"byte": int(bytes_of[spot[0], 0]), "then": int(bytes_of[spot])})
    inner = places.shape[-1]
    wrong = np.argwhere((vectors != vectors[:, :1] + np.arange(many)) | (vectors // inner != vectors[:, :1] // inner))
    if len(wrong):
        spot = tuple(int(part) for part in wrong[0])
        at = [tuple(map(int, np.unravel_index(int(vectors[spot[0], step]), places.shape))) for step in (0, spot[1])]
        because = "each lane loads neighbours along the last dimension, and these elements are not"
        return Broken("GLOBAL_CONTIGUOUS", because, {"byte": int(bytes_of[spot]), "after": at[0], "holds": at[1]})
    starts = bytes_of[:, 0]
    odd = starts[starts % width != 0]
    if len(odd):
        if int(odd[0]) % 4 or width == 4:
            return Broken("LDS_ALIGN", "lanes must write at multiples of 4 bytes", {"byte": int(odd[0])})
        return Unknown(f"undocumented: whether {instruction} may write at byte {int(odd[0])}, not {width}-byte aligned")
    return _waves(instruction, starts, vectors, places, size, lanes)


def _waves(
    instruction: str, starts: IntArray, vectors: IntArray, places: IntArray, size: int, lanes: int
) -> tuple[FillPlan, IntArray, IntArray]:
    """Assign vectors to waves; each wave is a run of lanes starting at its first vector."""
    width, many = FILLS[instruction], vectors.shape[1]
    bases: list[int] = []
    waves: list[list[tuple[int, ...] | None]] = []
    meaning = np.zeros(vectors.shape, dtype=np.int64)
    for number, (start, vector) in enumerate(zip(starts.tolist(), vectors[:, 0].tolist(), strict=True)):
        if not bases or start >= bases[-1] + lanes * width:
            bases.append(start)
            waves.append([None] * lanes)
        lane = (start - bases[-1]) // width
        waves[-1][lane] = tuple(map(int, np.unravel_index(vector, places.shape)))
        meaning[number] = bases[-1] + lane * width + size * np.arange(many)
    plan = FillPlan(instruction, 8 * size, tuple(bases), tuple(map(tuple, waves)))
    inner = places.reshape(-1)
    index = np.array([
        np.ravel_multi_index(start, places.shape) + step
        for wave in waves for start in wave if start is not None for step in range(many)
    ], dtype=np.int64)  # fmt: skip
    return plan, meaning.reshape(-1), inner[index]
