"""Decide whether ldmatrix, stmatrix, ld, st, st.async or cp.async moves a tile or given registers, and how."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import RepresentabilityError
from layoutalg.ground.layout import Layout
from layoutalg.ground.recognize import Departure, linear
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs import certify
from layoutalg.proofs.accesses import AccessPlan
from layoutalg.proofs.admission import Admission, Admitted, Grade, Refused
from layoutalg.proofs.certify import conditions
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.evidence import false
from layoutalg.proofs.register_map import tile_elements
from layoutalg.proofs.tile_map import layout_of, offsets
from layoutalg.synth.accesses import Moved, along_dimension, divided, overlapping, unfit, whole_tile
from layoutalg.synth.admission.repairs import ranked
from layoutalg.synth.admission.request import CHECK, IntArray, Request, misaligned
from layoutalg.targets.banks import bank_model
from layoutalg.targets.nvidia.accesses import FORMS, AccessForm, access_form, available, layout, layout_of_table
from layoutalg.targets.registry import TARGETS, lookup

if TYPE_CHECKING:
    from layoutalg.proofs.certify.systems import System

REACH = 2**32
"""Shared addresses have 32 bits."""
WIDEST_FIRST = ("cp.async.cg.16", "cp.async.ca.8", "cp.async.ca.4")


def find_access(request: Request) -> Admission:
    """Return the instructions with their addresses and registers, or why there are none.

    Without ``registers``: whether every row of every matrix (every vector) of the tile is one row of shared memory.
    With ``registers``: whether whole instructions move exactly these registers. See ``layoutalg.synth.accesses``.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> found = admissible("Sw<3,3,3> o 0 o (64,64):(64,1)", "ldmatrix.x4", dtype="f16")
        >>> found.descriptor.count, found.descriptor.turns
        (16, 64)
        >>> print(admissible("(64,64):(65,1)", "ldmatrix.x4", dtype="f16").rules)
        ('ACCESS_ALIGNED',)
    """
    request.only("registers", "lanes", "warps")
    form = access_form(request.consumer)
    offered = available(form, request.target)
    if offered is None:
        return Unknown(f"it is undocumented whether {request.target} has {form.name}", ("targets",))
    if not offered:
        return _lacking(request, form)
    answer = _moved(request, form)
    if isinstance(answer, Broken):
        return request.refused(
            answer if answer.evidence else replace(answer, evidence=lambda f: _unmoved(request, form, f)),
            repairs=lambda: ranked(request, find_access, _others(request, form), form.row_bits),
        )
    return _admitted(request, form, answer, _plan(request, form, answer))


def _lacking(request: Request, form: AccessForm) -> Refused:
    """Refuse because the target has no such form of the instruction."""
    evidence = conditions.named(request.target, *(arch for arch in TARGETS if available(form, arch)))
    return request.refused(Broken("ACCESS_ARCH", f"{request.target} has no {form.name}", {}, evidence))


def _admitted(request: Request, form: AccessForm, answer: Moved, plan: AccessPlan) -> Admitted:
    """Return the answer with its certificate: the instructions denote the requested function."""
    bits = request.dtype.bits
    meaning = np.asarray(layout(form.name, answer.addresses, bits).table(), dtype=np.int64).reshape(-1)
    requested = np.asarray(plan.requested.table(), dtype=np.int64).reshape(-1)
    ran = not form.element_bits and bool(lookup(request.target).measured)
    grade: Grade = "measured" if ran else "documented"
    where = f"{form.name} moves the requested elements"
    if not np.array_equal(meaning, requested):
        raise false(where, "the functions differ")
    return Admitted.certified_later(
        lambda: certify.same_tables(meaning, requested, where),
        consumer=request.consumer,
        target=request.target,
        dtype=request.dtype.name,
        descriptor=plan,
        evidence=grade,
    )


def _unmoved(request: Request, form: AccessForm, f: IntArray) -> Certificate | None:
    """Exclude the rows along every dimension, or the places of a register."""
    if request.options.get("registers") is not None:
        return _undivided(request, form, f)
    return certify.none_of(f, _rows(request, form, both=bool(form.matrix_rows) and ".trans" in form.name))


def _rows(request: Request, form: AccessForm, both: bool) -> list[System]:
    """Return the candidates of rows along the last dimension, or along the last two."""
    bits, last = request.dtype.bits, len(request.extents) - 1
    return certify.forced.tile_rows(
        request.extents, [last, last - 1] if both and last else [last], bits, form.moved_bits // bits, form.row_bits,
        high=max(1, form.matrix_rows), together=form.addresses, align_bits=8 * request.align_bytes,
    )  # fmt: skip


def _undivided(request: Request, form: AccessForm, f: IntArray) -> Certificate | None:
    """Exclude every place of some register in a row of shared memory, or every register for some slot of its row."""
    bits, held = request.dtype.bits, _held(request)
    pieces = bits // min(bits, form.unit_bits)
    lane_bits, lane_rows = form.lanes()
    slot_bits, slot_rows = form.slots(bits)
    if held.shape[1] != len(lane_bits):
        return certify.none_of(f, certify.forced.same(held.shape[1], len(lane_bits)))
    suppliers = np.array([int(np.flatnonzero(lane_rows == row)[0]) for row in lane_rows], dtype=np.int64)
    inner = [int(bit) for bit in slot_bits[slot_rows == slot_rows[0]]]
    width = bits // pieces
    for register in range(held.shape[2]):
        for piece in range(pieces):
            systems = certify.forced.slots(
                held[:, :, register], piece * width, bits, form.row_bits, lane_bits, suppliers, inner
            )
            made = certify.none_of(f, systems)
            if made is not None:
                return made
    for register in range(held.shape[2]):  # every register has a place: is every slot of their rows filled?
        place = int(bits * f[held[0, 0, register]] - lane_bits[0]) % form.row_bits
        for slot in inner:
            distances = slot - place - width * np.arange(pieces)
            made = certify.none_of(f, certify.forced.missing(held, register, bits, distances))
            if made is not None:
                return made
    return None


def _moved(request: Request, form: AccessForm) -> Moved | Broken:
    bits = request.dtype.bits
    places = _places(request)
    if request.align_bytes * 8 % form.row_bits:
        rows = form.row_bits // 8
        because = f"rows must be {rows}-byte aligned; the tile's base is aligned to {request.align_bytes} bytes only"
        return misaligned("ACCESS_ALIGNED", because, request.align_bytes, rows)
    elements = np.arange(places.size, dtype=np.int64)
    flat = places.reshape(-1, order="F")
    if request.options.get("registers") is None:
        broken = overlapping(flat, elements) if form.store else None
        return broken or whole_tile(form, places, bits)
    held = _held(request)
    broken = overlapping(flat[held], held) if form.store else None
    return broken or divided(form, flat[held], held, bits)


def _places(request: Request) -> IntArray:
    """Return the shared bit of every tile element."""
    bits, offsets = request.dtype.bits, request.offsets
    low, high = int(offsets.min()), int(offsets.max())
    if low < 0 or (high + 1) * bits > 8 * REACH:
        raise CHECK.malformed(
            "layout", f"must have offsets from 0 to {8 * REACH // bits - 1}", low if low < 0 else high
        )
    return offsets * bits


def _held(request: Request) -> IntArray:
    options = request.options
    return tile_elements(options["registers"], request.extents, options.get("lanes"), options.get("warps"))


def _plan(request: Request, form: AccessForm, moved: Moved) -> AccessPlan:
    """Return the plan of instructions: their tables as layouts, and the turns."""
    bits = request.dtype.bits
    names = ("instruction", "warp")
    addresses, slots, parts = moved.addresses, moved.slots, moved.parts
    pieces = bits // min(bits, form.unit_bits)
    flat = _places(request).reshape(-1, order="F")
    asked = flat[slots] + parts * (bits // pieces)
    requested = asked if bits % 8 else asked // 8
    many = slice(None) if moved.order else 0
    last = names if moved.order else names[:1]

    def arranged(table: IntArray) -> IntArray:
        """[instruction, warp, lane, slot] -> [slot, lane, instruction, warp]."""
        return np.asarray(table.transpose(3, 2, 0, 1)[..., many])

    slot_axes = ("register", "lane", *last)
    turns, ideal, basis = _turns(request.target, form, addresses)
    return AccessPlan(
        instruction=form.name,
        element_bits=bits,
        count=len(addresses),
        addresses=layout_of_table(addresses.transpose(2, 0, 1)[..., many], ("lane", *last), "byte"),
        registers=_coordinates(arranged(slots), arranged(parts), pieces, slot_axes, request.extents),
        requested=layout_of_table(arranged(requested), slot_axes, "bit" if bits % 8 else "byte"),
        order=moved.order,
        turns=turns,
        ideal=ideal,
        along=moved.along if moved.along >= 0 else None,
        basis=basis,
    )


def _coordinates(
    slots: IntArray, parts: IntArray, pieces: int, names: tuple[str, ...], extents: tuple[int, ...]
) -> Layout:
    """Return (register, lane, ...) -> tile coordinates, plus an output ``part`` if slots are parts of elements."""
    total = math.prod(extents)
    values = slots + parts * total
    outputs = [(f"dim{place}", extent) for place, extent in enumerate(extents)] + [("part", pieces)] * (pieces > 1)
    if values.size & (values.size - 1) == 0 and all(extent & (extent - 1) == 0 for _, extent in outputs):
        found = linear(values.reshape(-1, order="F"))
        if not isinstance(found, Departure):
            axes = tuple((name, extent.bit_length() - 1) for name, extent in zip(names, values.shape, strict=True))
            return LinearLayout(axes, tuple((name, extent.bit_length() - 1) for name, extent in outputs), *found)
    return layout_of_table(values, names, "element")


def _turns(target: str, form: AccessForm, addresses: IntArray) -> tuple[int | None, int | None, str]:
    """Return the turns of all instructions and warps, the least possible for the same lane groups, and the basis of
    the model if it was not measured. None: unknown."""
    if form.element_bits or ".async" in form.name:  # nobody has published how asynchronous writes use the banks
        return None, None, ""
    try:
        model = bank_model(target, form.name)
    except RepresentabilityError:
        return None, None, ""
    turns, ideal = model.totals(addresses.reshape(-1, form.addresses))
    return turns, ideal, "" if model.evidence == "measured" else model.basis


def _least(request: Request) -> int:
    """Return a lower bound on the instructions that move a tile."""
    form = access_form(request.consumer)
    return -(-math.prod(request.extents) * request.dtype.bits // (form.addresses * form.row_bits))


def _others(request: Request, form: AccessForm) -> dict[str, str]:
    """Other instructions of the target, with the kind of repair each one is."""
    found = {}
    for other in _other_forms(form):
        if available(other, request.target):
            turned = (".trans" in form.name) != (".trans" in other.name)
            kind = "read it transposed" if turned else "take another instruction"
            found[other.name] = kind if other.matrix_rows else "move vectors"
    return found


def _other_forms(form: AccessForm) -> Iterator[AccessForm]:
    """Yield forms of the same direction, nearest first: narrower, transposed, then vectors of decreasing width."""
    kind = "st" if form.store else "ld"
    if form.matrix_rows and not form.element_bits:
        trans = ".trans" in form.name
        counts = [count for count in (4, 2, 1) if 8 * count <= form.addresses]
        for turned in (trans, not trans):
            for count in counts:
                other = FORMS[f"{kind}matrix.x{count}{'.trans' if turned else ''}"]
                if other != form:
                    yield other
    names = ("v4.b32", "v2.b32", "b32", "b16", "b8")
    narrower = [FORMS[f"{kind}.shared.{name}"] for name in names]
    yield from (other for other in narrower if other.unit_bits < form.row_bits or form.matrix_rows)


# ---------------------------------------------------------------- cp.async


def find_copy(request: Request) -> Admission:
    """Return the copies with the addresses of every lane on both sides, or why there are none.

    The tile is cut into runs of the copy's size along its last or next-to-last dimension. Every run must be one aligned
    run of shared memory and, if ``global`` is given, of global memory; the elements inside ``bounds`` must be a prefix
    of each run, the rest is zero-filled. ``cp.async`` without a size uses the widest that works.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> source = {"global": "(64,64):(512,1)"}
        >>> found = admissible("Sw<3,3,3> o 0 o (64,64):(64,1)", "cp.async", dtype="f16", **source)
        >>> found.descriptor.instruction, found.descriptor.count
        ('cp.async.cg.16', 16)
        >>> print(admissible("(64,64):(65,1)", "cp.async.cg.16", dtype="f16").rules)
        ('ACCESS_ALIGNED',)
    """
    request.only("global", "global_align_bytes", "bounds")
    request.without_problem("options: global, global_align_bytes, bounds")
    chosen = request.consumer in ("cp.async", "cp.async.ca", "cp.async.cg")
    names = [name for name in WIDEST_FIRST if chosen and name.startswith(request.consumer)] or [request.consumer]
    if request.consumer == "cp.async.ca":
        names = ["cp.async.ca.16", *names]
    first: Broken | None = None
    forms = list(map(access_form, names))
    for form in forms:
        if not available(form, request.target):
            return _lacking(request, form)
        found = _copied(request, form)
        if isinstance(found, Broken):
            first = first or found
            continue
        moved, sources, valid = found
        plan = _plan(request, form, moved)
        if sources is not None:
            plan = replace(plan, global_bytes=layout_of_table(sources.T, ("lane", "instruction"), "byte"))
        if valid is not None:
            plan = replace(plan, source_bytes=tuple(valid.reshape(-1).tolist()))
        return _admitted(request, form, moved, plan)
    others = {name: "take another size" for name in WIDEST_FIRST if name not in names}
    grain = forms[0].row_bits
    return request.refused(
        replace(
            first or Broken("ACCESS_TILE", "no copy"),
            evidence=lambda f: _uncopied(request, list(map(access_form, names)), f),
        ),
        repairs=lambda: ranked(request, find_copy, others, grain, least=_least_copies),
    )


def _uncopied(request: Request, forms: list[AccessForm], f: IntArray) -> Certificate | None:
    """Exclude the rows of every size along the last two dimensions."""
    if (twice := certify.overlap(f)) is not None:
        return twice
    bits = request.dtype.bits
    systems: list[System] = []
    for form in forms:
        fits = form.moved_bits % bits == 0
        systems += _rows(request, form, both=True) if fits else certify.forced.whole(form.moved_bits, bits)
    return certify.none_of(f, systems)


def _copied(request: Request, form: AccessForm) -> tuple[Moved, IntArray | None, IntArray | None] | Broken:
    """Return the copies, their global bytes and source sizes [instruction, lane], or the first broken rule."""
    places, bits = _places(request), request.dtype.bits
    if request.align_bytes * 8 % form.row_bits:
        because = f"{form.name} needs {form.row_bits // 8}-byte alignment; the base is aligned to {request.align_bytes}"
        return misaligned("ACCESS_ALIGNED", because, request.align_bytes, form.row_bits // 8)
    broken = unfit(form, bits, whole=True) or overlapping(
        places.reshape(-1, order="F"), np.arange(places.size, dtype=np.int64)
    )
    if broken is not None:
        return broken
    first: Broken | None = None
    for along in range(places.ndim - 1, max(places.ndim - 3, -1), -1):
        moved = along_dimension(form, places, bits, along)
        found = moved if isinstance(moved, Broken) else _outside(request, form, moved)
        if not isinstance(found, Broken):
            return found
        first = first or found
    return first or Broken("ACCESS_TILE", "the tile has no dimension")


def _outside(
    request: Request, form: AccessForm, moved: Moved
) -> tuple[Moved, IntArray | None, IntArray | None] | Broken:
    """Add the global addresses and source sizes to the copies."""
    bits, extents = request.dtype.bits, request.extents
    slots = moved.slots[:, 0]
    sources = valid = None
    if request.options.get("global") is not None:
        source = layout_of(request.options["global"], extents, max(1, bits // 8))
        held = offsets(source, extents).reshape(-1, order="F")[slots] * bits
        align = CHECK.integer(request.options.get("global_align_bytes", 256), "global_align_bytes", 1)
        needed = held[..., :1] - held[..., :1] % form.row_bits + bits * np.arange(slots.shape[-1])
        wrong = np.argwhere(held != needed)
        if len(wrong) or align * 8 % form.row_bits or int(held.min()) < 0:
            at = tuple(int(x) for x in wrong[0]) if len(wrong) else (0, 0, 0)
            where = tuple(int(x) for x in np.unravel_index(int(slots[at]), extents, order="F"))
            because = (
                f"the element at {where} is at bit {int(held[at])} of global memory, whose base is aligned to {align} "
                f"bytes; {form.name} reads {form.row_bits // 8} aligned contiguous bytes"
            )
            return Broken("ASYNC_GLOBAL", because, {"coordinate": where, "bit": int(held[at])})
        sources = held[..., 0] // 8
    if request.options.get("bounds") is not None:
        bounds = CHECK.vector(request.options["bounds"], "bounds", len(extents))
        points = np.unravel_index(slots, extents, order="F")
        inside = np.all([point < bound for point, bound in zip(points, bounds, strict=True)], axis=0)
        many = inside.sum(axis=-1)
        wrong = np.argwhere(inside != (np.arange(slots.shape[-1]) < many[..., None]))
        if len(wrong) or (many * bits % 8).any():
            at = tuple(int(x) for x in wrong[0]) if len(wrong) else (0, 0, 0)
            where = tuple(int(x) for x in np.unravel_index(int(slots[at]), extents, order="F"))
            return Broken(
                "ASYNC_TAIL", f"the in-bounds elements are not a prefix of the copy at {where}", {"coordinate": where}
            )
        valid = many * bits // 8
    return moved, sources, valid


def _least_copies(request: Request) -> int:
    whole = replace(request, consumer=WIDEST_FIRST[0]) if request.consumer not in FORMS else request
    return _least(whole)
