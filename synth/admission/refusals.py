"""Certificates of refusals: conditions that every layout a consumer carries must meet, and where this one fails them.

Independent of the finder: the candidates are written from facts about the instruction (``proofs.certify.forced``). If
one of them may have a solution, there is no certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from layoutalg.ground.errors import LayoutError
from layoutalg.ground.layout import Layout
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Refused
from layoutalg.proofs.certify import forced
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.systems import System, missed, none_of, overlap
from layoutalg.proofs.register_map import tile_elements
from layoutalg.synth.admission.request import IntArray, Request
from layoutalg.synth.fragments import coordinates
from layoutalg.synth.lds import FILLS, TRANSPOSING, WIDTHS
from layoutalg.targets.layouts.amd_instructions import MFMA, WMMA
from layoutalg.targets.layouts.nvidia_instructions import ELEMENT_BITS, MMA, mma_fragment, mma_type
from layoutalg.targets.nvidia import tcgen05, wgmma
from layoutalg.targets.nvidia.accesses import AccessForm, access_form
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES
from layoutalg.targets.registry import TARGETS
from layoutalg.targets.target_model import Absent, model_of


def certified(request: Request, head: str, answer: Refused) -> Refused:
    """Return a refusal with its certificate, if the rule has one; ``head`` is a key of ``CONSUMERS``."""
    writer = WRITERS.get(head)
    return answer if writer is None else answer.deferred(certificate=lambda: _written(writer, request, head, answer))


def _written(
    writer: Callable[[Request], Certificate | None], request: Request, head: str, answer: Refused
) -> Certificate | None:
    held = answer.certificate
    if head == "wgmma" and held is not None:
        return held
    try:
        return writer(request) or held
    except LayoutError:  # out of time, or the evidence cannot be stated
        return held


def _flat(request: Request) -> IntArray:
    return np.ascontiguousarray(request.offsets.reshape(-1, order="F"))


def _accessed(request: Request) -> Certificate | None:
    """ldmatrix, stmatrix, ld.shared, st.shared: rows of the tile, or registers."""
    form, f, bits = access_form(request.consumer), _flat(request), request.dtype.bits
    if (unfit := _unfit(form, bits, request.options.get("registers") is None)) is not None:
        return none_of(f, unfit)
    if request.options.get("registers") is not None:
        return _registers(request, form, f)
    if form.store and (twice := overlap(f)) is not None:
        return twice
    last = len(request.extents) - 1
    if form.matrix_rows and not last:
        return none_of(f, forced.same(1, 2))
    both = form.matrix_rows and ".trans" in form.name
    return none_of(f, _rows(request, form, [last, last - 1] if both else [last]))


def _rows(request: Request, form: AccessForm, dimensions: list[int]) -> list[System]:
    bits = request.dtype.bits
    return forced.tile_rows(
        request.extents, dimensions, bits, form.moved_bits // bits, form.row_bits, high=max(1, form.matrix_rows),
        together=form.addresses, align_bits=8 * request.align_bytes,
    )  # fmt: skip


def _unfit(form: AccessForm, bits: int, whole: bool) -> list[System] | None:
    """Systems that state an unsupported element width; None if the width is supported."""
    if form.element_bits not in (0, bits):
        return forced.same(bits, form.element_bits)
    small, large = sorted((bits, form.unit_bits))
    if large % small:
        return forced.whole(large, small)
    if whole and ".trans" in form.name and form.unit_bits == 16 and bits != 16:
        return forced.same(bits, 16)
    if bits > (form.moved_bits if form.matrix_rows or not whole else form.unit_bits):
        return forced.whole(form.moved_bits if form.matrix_rows or not whole else form.unit_bits, bits)
    return None


def _registers(request: Request, form: AccessForm, f: IntArray) -> Certificate | None:
    """Division of registers among instructions."""
    options, bits = request.options, request.dtype.bits
    held = tile_elements(options["registers"], request.extents, options.get("lanes"), options.get("warps"))
    if form.store:
        elements = np.unique(held)
        if len(np.unique(f[elements])) != len(elements):
            return overlap(f)
    pieces = bits // min(bits, form.unit_bits)
    lane_bits, lane_rows = form.lanes()
    slot_bits, slot_rows = form.slots(bits)
    if held.shape[1] != len(lane_bits):
        return none_of(f, forced.same(held.shape[1], len(lane_bits)))
    suppliers = np.array([int(np.flatnonzero(lane_rows == row)[0]) for row in lane_rows], dtype=np.int64)
    inner = [int(bit) for bit in slot_bits[slot_rows == slot_rows[0]]]
    width = bits // pieces
    for register in range(held.shape[2]):
        for piece in range(pieces):
            systems = forced.slots(
                held[:, :, register], piece * width, bits, form.row_bits, lane_bits, suppliers, inner
            )
            made = none_of(f, systems)
            if made is not None:
                return made
    for register in range(held.shape[2]):  # every register has a place: is every slot of their rows filled?
        place = int(bits * f[held[0, 0, register]] - lane_bits[0]) % form.row_bits
        for slot in inner:
            distances = slot - place - width * np.arange(pieces)
            made = none_of(f, forced.missing(held, register, bits, distances))
            if made is not None:
                return made
    return None


def _copied(request: Request) -> Certificate | None:
    """cp.async of the requested size: rows along one of the last two dimensions."""
    if request.consumer in ("cp.async", "cp.async.ca", "cp.async.cg"):
        names = ["cp.async.cg.16", "cp.async.ca.8", "cp.async.ca.4", "cp.async.ca.16"]
        forms = [access_form(name) for name in names if name.startswith(request.consumer)]
    else:
        forms = [access_form(request.consumer)]
    f, bits, last = _flat(request), request.dtype.bits, len(request.extents) - 1
    if (twice := overlap(f)) is not None:
        return twice
    systems: list[System] = []
    for form in forms:
        unfit = _unfit(form, bits, True)
        systems += unfit or _rows(request, form, [last, last - 1] if last else [last])
    return none_of(f, systems)


def _fragment(request: Request) -> Certificate | None:
    """mma: the layout must tile the fragment."""
    name, _, operand = request.consumer.partition(".")[2].rpartition(".")
    if name not in MMA or f"mma.{name}" not in model_of(request.target).instructions:
        return None
    kind = mma_type(name, operand)
    given = {"f32": "tf32", "tf32_ftz": "tf32", "i1": "b1"}.get(request.dtype.name, request.dtype.name)
    if operand in ("A", "B") and given in ELEMENT_BITS and given != kind:
        return none_of(_values(request), forced.named(given, kind))
    fragment = mma_fragment(name, operand)
    widths = (ELEMENT_BITS[kind], ELEMENT_BITS[MMA[name].operand])
    word = min(max(1, 32 // ELEMENT_BITS[kind]), fragment.in_dims["register"])
    return _tiled(request, fragment, word, widths)


def _matrix(request: Request) -> Certificate | None:
    """mfma and wmma: the layout must tile the fragment."""
    family, _, rest = request.consumer.partition(".")
    name, _, operand = rest.rpartition(".")
    known = (MFMA if family == "mfma" else WMMA)[request.target]
    if name not in known:
        return None
    shape = known[name]
    bits = shape.element_bits if operand in ("A", "B") else shape.result_bits
    fragment = model_of(request.target).fragment(f"{family}.{name}", operand)
    if isinstance(fragment, Unknown):
        return None
    alone = request.target == "gfx1100" and operand in ("C", "D")
    word = 1 if alone else min(max(1, 32 // bits), fragment.in_dims["register"])
    return _tiled(request, fragment, word, (bits, shape.element_bits))


def _tiled(request: Request, fragment: Layout, word: int, widths: tuple[int, ...]) -> Certificate | None:
    layout = request.layout
    if not isinstance(layout, Layout) or not {"register", "lane"} & set(layout.in_dims):
        return None
    table = coordinates(layout)[0]
    f = table.reshape(-1, table.shape[-1])
    if request.dtype.bits not in widths:
        return none_of(f, forced.same(request.dtype.bits, *dict.fromkeys(widths)))
    sizes = tuple(fragment.out_dims.values())
    rank = table.shape[-1]
    if rank > len(sizes) or any(size > 1 for size in sizes[rank:]):
        return none_of(f, forced.same(rank, len(sizes) - (sizes[-1] == 1)))
    held = coordinates(fragment)[0][0][..., :rank]
    found = forced.fragments(table, held, sizes[:rank], word)
    return None if found is None else none_of(*found)


def _wgmma(request: Request) -> Certificate | None:
    """wgmma: descriptors of a tile that has no digits, or registers."""
    name = {"f32": "tf32", "tf32_ftz": "tf32"}.get(request.dtype.name, request.dtype.name)
    if request.consumer == "wgmma.D":
        known = ("f16", "f32", "s32")
        return none_of(_values(request), forced.named(request.dtype.name, *known)) if name not in known else None
    if name not in wgmma.DTYPES:
        return none_of(_values(request), forced.named(name, *wgmma.DTYPES))
    if request.consumer not in ("wgmma.A", "wgmma.B") or request.dtype.bits < 8:
        return None
    if len(request.extents) != 2:
        return none_of(_flat(request), forced.same(len(request.extents), 2))
    bits, side = request.dtype.bits, request.consumer[-1]
    rows, deep = (64 if side == "A" else 8), wgmma.instruction_k(bits)
    majors = ("K", "MN") if bits == 16 else ("K",)
    return _described(request, (rows,), deep, forced.modes(bits // 8, majors))


def _described(request: Request, rows: tuple[int, ...], deep: int, modes: list[forced.Mode]) -> Certificate | None:
    """Exclude every mode and base offset by some part of the operand and some base of the tile."""
    f, size, extents = _flat(request), request.element_bytes, request.extents
    fit = [count for count in rows if extents[0] % count == 0]
    if not fit:
        return none_of(f, forced.whole(extents[0], *rows))
    if extents[1] % deep:
        return none_of(f, forced.whole(extents[1], deep))
    least = min(fit)
    heads = range(0, extents[0], least) if len(fit) == 1 else (0,)
    candidates = []
    for mode in modes:
        period = 1 << (len(mode.columns) or 4)
        bases = tuple(range(0, period, request.align_bytes)) or (0,)
        for offset in range(max(1, period // 128)):
            candidates.append(forced.descriptors(extents, least, deep, size, mode, offset, bases, heads))
    return none_of(f, candidates)


def _tcgen05(request: Request) -> Certificate | None:
    """tcgen05 operands of whole bytes, in the documented modes."""
    name = {"f32": "tf32", "tf32_ftz": "tf32"}.get(request.dtype.name, request.dtype.name)
    if name not in tcgen05.BITS:
        return none_of(_flat(request), forced.named(name, *tcgen05.BITS))
    options = request.options
    if request.consumer not in ("tcgen05.A", "tcgen05.B"):
        return None
    if len(request.extents) != 2:
        return none_of(_flat(request), forced.same(len(request.extents), 2))
    sparse, group, ws = options.get("sparse", False), options.get("cta_group", 1), options.get("ws", False)
    entry = tcgen05.operand_kind(name, options.get("kind"))
    if entry.container_bits != tcgen05.BITS[name] or entry.container_bits % 8:
        return None
    if request.consumer[-1] == "A":
        counts: tuple[int, ...] = tuple(m // group for m in tcgen05.m_values(entry.name, group, ws, sparse))
        deep = entry.k
    else:
        counts = tuple(n // group for n in tcgen05.n_values(entry.name, group, ws, sparse, False))
        deep = entry.k * (2 if sparse else 1)
    return _described(request, counts, deep, forced.modes(request.element_bytes, ("K", "MN"), atoms=True))


def absent(request: Request, head: str, answer: Refused) -> Refused:
    """Certify that the target is not among those that have the consumer."""
    having = tuple(arch for arch in TARGETS if not isinstance(model_of(arch).consumer(head), Absent | Unknown))
    try:
        made = none_of(_values(request), forced.named(request.target, *having))
    except LayoutError:
        return answer
    return answer if made is None else replace(answer, certificate=made)


def _values(request: Request) -> IntArray:
    """The whole table of a tile or register layout."""
    if request.extents:
        return _flat(request)
    found = coordinates(request.layout)[0]
    return found.reshape(-1, found.shape[-1])


def _lds(request: Request) -> Certificate | None:
    """AMD's reads and writes of LDS: vectors of lanes."""
    name, size, f = request.consumer, request.element_bytes, _flat(request)
    if not size or request.dtype.bits % 8 or name in FILLS:
        return None
    if name in TRANSPOSING:
        if request.dtype.bits != TRANSPOSING[name]:
            return none_of(f, forced.same(request.dtype.bits, TRANSPOSING[name]))
        return None
    width = WIDTHS[name]
    grain = 4 if width == 12 else width
    if width % size:
        return none_of(f, forced.whole(width, size))
    if request.options.get("registers") is not None:
        return None
    if "write" in name and (twice := overlap(f)) is not None:
        return twice
    systems = forced.tile_rows(
        request.extents, [len(request.extents) - 1], 8 * size, width // size, 8 * grain,
        align_bits=8 * request.align_bytes,
    )  # fmt: skip
    return none_of(f, systems)


def _chunked(request: Request) -> Certificate | None:
    """TMA and bulk copies of any tensor: whole chunks of 16 bytes."""
    if "tensor" in request.options or request.problem is not None or not request.element_bytes:
        return None
    f, per = _flat(request), CHUNK_BYTES // request.element_bytes
    if (twice := overlap(f)) is not None:
        return twice
    taken = np.sort(f)
    places = np.unique(taken // per)
    counts = np.bincount(np.searchsorted(places, taken // per))
    if (counts != per).any():
        begin = int(places[int(np.argmax(counts != per))]) * per
        holes = np.setdiff1d(np.arange(begin, begin + per), taken)
        return missed(f, int(holes[0]))
    system = forced.chunks(request.offsets, per)
    return None if system is None else none_of(f, [system])


WRITERS: Mapping[str, Callable[[Request], Certificate | None]] = {
    **dict.fromkeys(("ldmatrix", "stmatrix", "ld.shared", "st.shared"), _accessed),
    "cp.async": _copied,
    "mma": _fragment,
    **dict.fromkeys(("mfma", "wmma"), _matrix),
    **dict.fromkeys((*WIDTHS, *TRANSPOSING, *FILLS), _lds),
    "tma": _chunked,
    "bulk": _chunked,
    "wgmma": _wgmma,
    "tcgen05": _tcgen05,
}
