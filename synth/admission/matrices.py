"""Decide whether ldmatrix, stmatrix, ld.shared or st.shared moves a tile or given registers, and how."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import Repair, RepresentabilityError
from layoutalg.ground.layout import Layout
from layoutalg.ground.recognize import Departure, linear
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.accesses import AccessPlan
from layoutalg.proofs.admission import Admission, Admitted, Grade, Refused
from layoutalg.proofs.certify.banks import document
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.evidence import false, proved
from layoutalg.proofs.register_map import tile_elements
from layoutalg.synth.accesses import Moved, divided, overlapping, whole_tile
from layoutalg.synth.admission.repairs import ranked
from layoutalg.synth.admission.request import CHECK, IntArray, Request
from layoutalg.synth.broken import Broken
from layoutalg.targets.banks import bank_model
from layoutalg.targets.nvidia.accesses import FORMS, AccessForm, access_form, available, layout, layout_of_table
from layoutalg.targets.registry import lookup

REACH = 2**32
"""Shared addresses have 32 bits."""


def find(request: Request) -> Admission:
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
        return refused(request, Broken("ACCESS_ARCH", f"{request.target} has no {form.name}"))
    answer = _moved(request, form)
    if isinstance(answer, Broken):
        return refused(request, answer).deferred(
            repairs=lambda: ranked(request, find, _others(request, form), form.row_bits)
        )
    return admitted(request, form, answer, plan_of(request, form, answer))


def admitted(request: Request, form: AccessForm, answer: Moved, plan: AccessPlan) -> Admitted:
    """Return the answer with its certificate: the instructions denote the requested function."""
    bits = request.dtype.bits
    meaning = np.asarray(layout(form.name, answer.addresses, bits).table(), dtype=np.int64).reshape(-1)
    requested = np.asarray(plan.requested.table(), dtype=np.int64).reshape(-1)
    ran = not form.element_bits and bool(lookup(request.target).measured)
    grade: Grade = "measured" if ran else "documented"
    where = f"{form.name} moves the requested elements"
    if not np.array_equal(meaning, requested):
        raise false(where, "the functions differ")

    def certificate() -> Certificate:
        return proved("equality", {"f": document(meaning), "g": document(requested)}, [{"by": "table"}], where)

    return Admitted.certified_later(
        certificate,
        consumer=request.consumer,
        target=request.target,
        dtype=request.dtype.name,
        descriptor=plan,
        evidence=grade,
    )


def _moved(request: Request, form: AccessForm) -> Moved | Broken:
    bits = request.dtype.bits
    places = places_of(request)
    if request.align_bytes * 8 % form.row_bits:
        rows = form.row_bits // 8
        because = f"rows must be {rows}-byte aligned; the tile's base is aligned to {request.align_bytes} bytes only"
        return Broken("ACCESS_ALIGNED", because, {"align_bytes": request.align_bytes})
    elements = np.arange(places.size, dtype=np.int64)
    flat = places.reshape(-1, order="F")
    if request.options.get("registers") is None:
        broken = overlapping(flat, elements) if form.store else None
        return broken or whole_tile(form, places, bits)
    held = _held(request)
    broken = overlapping(flat[held], held) if form.store else None
    return broken or divided(form, flat[held], held, bits)


def places_of(request: Request) -> IntArray:
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


def plan_of(request: Request, form: AccessForm, moved: Moved) -> AccessPlan:
    """Return the plan of instructions: their tables as layouts, and the turns."""
    bits = request.dtype.bits
    names = ("instruction", "warp")
    addresses, slots, parts = moved.addresses, moved.slots, moved.parts
    pieces = bits // min(bits, form.unit_bits)
    flat = places_of(request).reshape(-1, order="F")
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
    if form.element_bits or form.name.startswith("cp."):
        return None, None, ""
    try:
        model = bank_model(target, form.name)
    except RepresentabilityError:
        return None, None, ""
    turns, ideal = model.totals(addresses.reshape(-1, form.addresses))
    return turns, ideal, "" if model.evidence == "measured" else model.basis


def least(request: Request) -> int:
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


def refused(request: Request, broken: Broken, repairs: tuple[Repair, ...] = ()) -> Refused:
    """Return the refusal."""
    name = request.dtype.name
    return Refused(
        request.consumer, request.target, name, (broken.rule,), (broken.reason,), broken.witness, repairs, None
    )
