"""Decide whether cp.async copies a tile from global to shared memory, with which size and zero fill."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from layoutalg.proofs.admission import Admission
from layoutalg.proofs.tile_map import layout_of, offsets
from layoutalg.synth.accesses import Moved, along_dimension, overlapping, unfit
from layoutalg.synth.admission.matrices import admitted, least, places_of, plan_of, refused
from layoutalg.synth.admission.repairs import ranked
from layoutalg.synth.admission.request import CHECK, IntArray, Request
from layoutalg.synth.broken import Broken
from layoutalg.targets.nvidia.accesses import FORMS, AccessForm, access_form, available, layout_of_table

WIDEST_FIRST = ("cp.async.cg.16", "cp.async.ca.8", "cp.async.ca.4")


def find(request: Request) -> Admission:
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
    for form in map(access_form, names):
        if not available(form, request.target):
            return refused(request, Broken("ACCESS_ARCH", f"{request.target} has no {form.name}"))
        found = _copied(request, form)
        if isinstance(found, Broken):
            first = first or found
            continue
        moved, sources, valid = found
        plan = plan_of(request, form, moved)
        if sources is not None:
            plan = replace(plan, global_bytes=layout_of_table(sources.T, ("lane", "instruction"), "byte"))
        if valid is not None:
            plan = replace(plan, source_bytes=tuple(valid.reshape(-1).tolist()))
        return admitted(request, form, moved, plan)
    others = {name: "take another size" for name in WIDEST_FIRST if name not in names}
    grain = access_form(names[0]).row_bits
    return refused(request, first or Broken("ACCESS_TILE", "no copy")).deferred(
        repairs=lambda: ranked(request, find, others, grain, least=_least)
    )


def _copied(request: Request, form: AccessForm) -> tuple[Moved, IntArray | None, IntArray | None] | Broken:
    """Return the copies, their global bytes and source sizes [instruction, lane], or the first broken rule."""
    places, bits = places_of(request), request.dtype.bits
    if request.align_bytes * 8 % form.row_bits:
        because = f"{form.name} needs {form.row_bits // 8}-byte alignment; the base is aligned to {request.align_bytes}"
        return Broken("ACCESS_ALIGNED", because, {"align_bytes": request.align_bytes})
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


def _least(request: Request) -> int:
    whole = replace(request, consumer=WIDEST_FIRST[0]) if request.consumer not in FORMS else request
    return least(whole)
