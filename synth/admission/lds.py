"""Decide whether MFMA and WMMA accept a register layout, and AMD's LDS instructions a tile layout."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from layoutalg.f2 import LinearLayout
from layoutalg.ground.layout import Layout
from layoutalg.ground.recognize import Departure, linear
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.notation.written import is_written, read_written
from layoutalg.proofs import certify
from layoutalg.proofs.admission import Admission, Refused
from layoutalg.proofs.certify import conditions
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.register_map import tile_elements
from layoutalg.synth.admission.ideas import Idea
from layoutalg.synth.admission.repairs import ranked
from layoutalg.synth.admission.request import CHECK, IntArray, Request, misaligned
from layoutalg.synth.fragments import coordinates
from layoutalg.synth.lds import FILLS, TRANSPOSING, WIDTHS, FillPlan, LdsPlan, exchange, fill, read_or_write
from layoutalg.targets.registry import lookup
from layoutalg.targets.target_model import model_of

ACCESSES = (*WIDTHS, *TRANSPOSING, *FILLS)
UNDOCUMENTED = (
    "ds_read_b64_tr_b4", "ds_read_b96_tr_b6", "buffer_load_dwordx3_lds", "global_load_lds_dwordx3",
)  # fmt: skip
"""Existing instructions whose lane exchange, or placement in LDS, is undocumented for elements of whole bytes."""


def find_lds(request: Request) -> Admission:
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
    return answer.deferred(
        repairs=lambda: ranked(
            request, _access, _other_accesses(request), 8 * _grain(request.consumer), own=own, least=_least
        )
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
        bits, exchanged = request.dtype.bits, TRANSPOSING[name]
        because = f"{name} exchanges {exchanged}-bit elements, not {bits}-bit ones"
        at = {"dtype": request.dtype.name}
        return request.refused(Broken("LDS_WIDTH", because, at, conditions.one_of(bits, exchanged)))
    places = request.offsets * size
    grain = _grain(name)
    if request.align_bytes % grain:
        because = f"addresses must be {grain}-byte aligned; the tile's base is aligned to {request.align_bytes}"
        return request.refused(misaligned("LDS_ALIGN", because, request.align_bytes, grain))
    room = model_of(request.target).limit("lds_bytes_per_block")
    reach = int(places.max()) + size
    if not isinstance(room, Unknown) and isinstance(room.value, int) and reach > room.value:
        because = f"the tile spans {reach} bytes; a work-group has {room.value} bytes of LDS"
        return request.refused(Broken("LDS_RANGE", because, {"bytes": reach}, lambda f: _unmoved(request, f)))
    lanes = lookup(request.target).lanes
    found: tuple[LdsPlan | FillPlan, IntArray, IntArray] | Broken | Unknown
    found = fill(name, places, size, lanes) if name in FILLS else _accessed(request, places, size, lanes)
    if isinstance(found, Unknown):
        return found
    if isinstance(found, Broken):
        return request.refused(found if found.evidence else replace(found, evidence=lambda f: _unmoved(request, f)))
    plan, meaning, asked = found
    return request.admitted(plan, certify.same_tables(meaning, asked, f"{name} moves the tile"), "documented")


def _unmoved(request: Request, f: IntArray) -> Certificate | None:
    """Exclude the vectors of lanes that move a tile along its last dimension."""
    name = request.consumer
    if name not in WIDTHS or request.options.get("registers") is not None:
        return None
    size, width = request.element_bytes, WIDTHS[name]
    systems = certify.forced.tile_rows(
        request.extents, [len(request.extents) - 1], 8 * size, width // size, 8 * _grain(name),
        align_bits=8 * request.align_bytes,
    )  # fmt: skip
    return certify.none_of(f, systems)


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
