"""Decide whether ``tcgen05`` reads a layout as operand A or B or as scale factors, or moves registers to and from D."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs import certify
from layoutalg.proofs.admission import Admission, Admitted, Refused
from layoutalg.proofs.certify import conditions
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.tcgen05 import ScalePlan, Tcgen05Plan
from layoutalg.synth.admission.ideas import Idea
from layoutalg.synth.admission.repairs import ranked, ranked_consumers
from layoutalg.synth.admission.request import CHECK, IntArray, Request, misaligned
from layoutalg.synth.fragments import wrong_axes
from layoutalg.synth.tcgen05 import OperandQuestion, find_operand, find_registers, find_scales
from layoutalg.synth.tcgen05.operand import unknown
from layoutalg.targets.layouts.tmem import ATOMS, SPLIT_ATOM
from layoutalg.targets.nvidia import tcgen05 as hardware

_LONG_K = "sm_103a"
"""Target with K = 96 for 4-bit elements, for CTA pairs with M = 256 (PTX ISA 9.1, 9.7.16.2.1)."""
_CLAIM = "the instructions denote the requested layout"
_FORMS = "must be tcgen05.A, .B, .D, .scale, or .ld or .st with a shape, such as tcgen05.ld.32x32b"


def find_tcgen05(request: Request) -> Admission:
    """Return the descriptors of an operand or of scale factors, or why there are none.

    Offsets of 4- and 6-bit elements of the f8f6f4 kinds count bytes: 16 packed elements per 16-byte chunk.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> found = admissible("Sw<3,3,3> o 0 o (128,64):(64,1)", "tcgen05.A", "sm_100a")
        >>> print(found.descriptor)
        A of tcgen05.mma.kind::f16, bf16, K-major, 128B: 4 descriptors of 128 x 16
          K step 2
          (0, 0): 0x4000404000010000
          (0, 16): 0x4000404000010002
          (0, 32): 0x4000404000010004
          (0, 48): 0x4000404000010006
        >>> admissible("(64,64):(1,64)", "tcgen05.A", "sm_100a", "e2m1", kind="mxf4").rules
        ('TCGEN05_ROWS',)
    """
    if request.consumer.split(".")[1:2] in (["D"], ["ld"], ["st"]):
        return find_held(request)
    answer = _shared(request)
    if not isinstance(answer, Refused) or answer.rules in (("TCGEN05_WS",), ("TCGEN05_DTYPE",)):
        return answer
    own = [_canonical_scales] if request.consumer == "tcgen05.scale" else []
    return answer.deferred(repairs=lambda: ranked(request, _shared, own=own))


def _canonical_scales(request: Request) -> Iterator[Idea]:
    """Yield the documented scale layout, with extents rounded up to whole blocks."""
    if len(request.extents) == 2:
        rows, groups = -(-request.extents[0] // 128) * 128, -(-request.extents[1] // 4) * 4
        for order in ("K", "MN"):
            layout = hardware.scale_layout(rows, groups, order=order)
            part = replace(request, layout=layout, extents=(rows, groups))
            added = max(0, rows * groups - 1 - int(request.offsets.max()))
            yield Idea("use the canonical layout", str(layout), added, 2 + (part.extents != request.extents), (part,))


def _shared(request: Request) -> Admission:
    if request.consumer == "tcgen05.scale":
        request.only()
        return _scales(request)
    if request.consumer not in ("tcgen05.A", "tcgen05.B"):
        raise CHECK.malformed("consumer", _FORMS, request.consumer)
    request.only("kind", "sparse", "cta_group", "ws")
    operand = request.consumer[-1]
    name = request.dtype.operand
    if name not in hardware.BITS:
        because = f"no tcgen05.mma kind supports {name}"
        return request.refused(
            Broken("TCGEN05_DTYPE", because, {"dtype": name}, conditions.named(name, *hardware.BITS))
        )
    options = request.options
    sparse, group, ws = request.flag("sparse"), options.get("cta_group", 1), request.flag("ws")
    entry = hardware.operand_kind(name, options.get("kind"))
    if operand == "A":
        plain = transposed = tuple(m // group for m in hardware.m_values(entry.name, group, ws, sparse))
    else:
        plain, transposed = (
            tuple(n // group for n in hardware.n_values(entry.name, group, ws, sparse, narrow))
            for narrow in (False, hardware.BITS[name] == 8)
        )
    if not plain:
        because = f"there is no tcgen05.mma.ws of {entry.name}, cta_group {group}"
        return request.refused(Broken("TCGEN05_WS", because))
    k = entry.k * (2 if sparse and operand == "B" else 1)
    depths = {k: plain}
    if request.target == _LONG_K and entry.container_bits == 4 and group == 2 and not sparse:
        depths[96] = (128,) if operand == "A" else plain  # M = 256 of a CTA pair
    if (shaped := _shape(request, operand, depths)) is not None:
        return request.refused(shaped)
    wanted = _bits(request.offsets, entry.container_bits, hardware.BITS[name])
    missing: list[Broken | Unknown] = []
    for depth, rows in depths.items():
        if request.extents[1] % depth or not any(request.extents[0] % size == 0 for size in rows):
            continue
        question = OperandQuestion(
            operand, name, entry.name, wanted, rows[::-1], transposed[::-1], depth, request.align_bytes
        )  # fmt: skip
        found = find_operand(question)
        if isinstance(found, Tcgen05Plan):
            return _admitted(request, found, wanted)
        missing.append(found)
    for answer in sorted(missing, key=lambda each: isinstance(each, Broken)):  # what is undocumented first
        if isinstance(answer, Unknown):
            return answer
        if entry.container_bits == hardware.BITS[name] and entry.container_bits % 8 == 0:
            answer = replace(answer, evidence=lambda f: _undescribed(request, f, plain, k))
        return request.refused(answer)
    return request.refused(Broken("TCGEN05_ROWS", "no instruction matches both the rows and the depth of the tile"))


def _undescribed(request: Request, f: IntArray, rows: tuple[int, ...], deep: int) -> Certificate | None:
    """Exclude every documented descriptor of an operand of whole bytes."""
    modes = certify.forced.modes(request.element_bytes, ("K", "MN"), atoms=True)
    return certify.forced.no_descriptors(
        f, request.extents, request.element_bytes, request.align_bytes, rows, deep, modes
    )


def find_held(request: Request) -> Admission:
    """Return the tensor-memory loads or stores that move a register layout, or the first register that none moves.

    ``tcgen05.D``: this CTA's part of an accumulator, (row, column); options: ``m`` (rows of the instruction),
    ``cta_group``, ``ws``, ``sparse``. ``tcgen05.ld.SHAPE``: a tile of tensor memory, (lane, column).

    Example:
        >>> from layoutalg.f2 import LinearLayout
        >>> from layoutalg.synth.admission import admissible
        >>> lanes, warps = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], [(32, 0), (64, 0)]
        >>> bases = {"register": [(0, 1), (0, 2), (0, 4)], "lane": lanes, "warp": warps}
        >>> held = LinearLayout.from_bases(bases, {"row": 128, "col": 8})
        >>> found = admissible(held, "tcgen05.D", "sm_100a", "f32").descriptor
        >>> found.shape, found.data_path, found.places[7]
        ('32x32b', 'D', ((0, 7), (32, 7), (64, 7), (96, 7)))
        >>> admissible(held, "tcgen05.ld.16x64b", "sm_100a", "f32").rules
        ('FRAGMENT',)
    """
    words = request.consumer.split(".")
    whole = words[1] == "D"
    if len(words) != (2 if whole else 3) or (not whole and words[2] not in hardware.SHAPES):
        raise CHECK.malformed("consumer", _FORMS, request.consumer)
    layout = request.layout
    if (broken := wrong_axes(layout, (128, 512))) is not None:
        return request.refused(broken)
    if whole and request.dtype.name not in ("f16", "f32", "s32"):
        because = f"D must be f16, f32 or s32, got {request.dtype.name}"
        evidence = conditions.named(request.dtype.name, "f16", "f32", "s32")
        return request.refused(Broken("TCGEN05_DTYPE", because, {"dtype": request.dtype.name}, evidence))
    if not whole and request.dtype.bits != 32 and request.dtype.name != "f16":
        return unknown(f"packing of {request.dtype.bits}-bit elements in a register")
    if whole:
        request.only("m", "cta_group", "ws", "sparse")
        shapes: tuple[str, ...] = tuple(ATOMS)
        sized = _placed(request)
        if isinstance(sized, Broken):
            return request.refused(sized)
        places, letter = sized
    else:
        request.only()
        shapes, places, letter = (words[2],), None, ""
    first: Broken | None = None
    for shape in shapes:
        found = find_registers(layout, shape, places, letter)
        if not isinstance(found, Broken):
            plan, meaning, asked = found
            return request.admitted(plan, certify.same_tables(meaning, asked, _CLAIM), "documented")
        first = first or found
    broken = first or Broken("FRAGMENT", "no shape fits")
    if "split_columns" in broken.witness:
        return unknown("whether the second half of 16x32bx2 may come first")
    names = (f"tcgen05.{words[1]}.{name}" for name in (*ATOMS, SPLIT_ATOM) if not whole and name != words[2])
    others = {name: ("take another shape", name) for name in names}
    return request.refused(replace(broken, evidence=None), repairs=lambda: ranked_consumers(request, find_held, others))


def _placed(request: Request) -> tuple[IntArray, str] | Broken:
    """Tensor-memory places of this CTA's part of D, and its data-path layout."""
    rows, columns = (int(size) for size in request.layout.out_dims.values())
    options = request.options
    group, ws, sparse = options.get("cta_group", 1), request.flag("ws"), request.flag("sparse")
    m = options.get("m", rows * (group if isinstance(group, int) else 1))
    try:
        letter = hardware.data_path(m, group, ws, sparse)
        layout = hardware.accumulator_layout(m, columns, group, ws, sparse)
    except ValueError as error:
        because = getattr(error, "diagnostic", None)
        return Broken(getattr(error, "rule", "TCGEN05_N"), str(because.because if because else error))
    table = np.asarray(layout.table(), dtype=np.int64).reshape(m, columns, order="F")
    return table[: m // group], letter


def _scales(request: Request) -> Admission:
    bits, extents = request.dtype.bits, request.extents
    if bits != 8:
        because = f"scales must have 8 bits, got {bits}"
        return request.refused(Broken("TCGEN05_DTYPE", because, {}, conditions.one_of(bits, 8)))
    if len(extents) != 2 or extents[0] % 128 or extents[1] % 4:
        because = f"scales are copied in blocks of 128 rows x 4 groups; the tile is {extents}"
        return request.refused(Broken("TCGEN05_SCALE_SHAPE", because, {"extents": extents}))
    if (broken := _aligned(request)) is not None:
        return request.refused(broken)
    found = find_scales(request.offsets)
    if isinstance(found, ScalePlan):
        return _admitted(request, found, request.offsets)
    return found if isinstance(found, Unknown) else request.refused(found)


def _shape(request: Request, operand: str, depths: Mapping[int, tuple[int, ...]]) -> Broken | None:
    """Return why extents are no multiple of an instruction's; ``depths``: instruction rows by K."""
    rows = next(iter(depths.values()))
    if len(request.extents) != 2:
        rank = len(request.extents)
        because = f"an operand has two dimensions, the tile has {rank}"
        return Broken("TCGEN05_RANK", because, {"extents": request.extents}, conditions.one_of(rank, 2))
    mn, along = request.extents
    if not any(mn % size == 0 for size in rows):
        some = f"{', '.join(map(str, rows[:6]))}{', ...' * (len(rows) > 6)}"
        because = f"an instruction reads {some} rows of {operand} here; the tile has {mn}"
        return Broken("TCGEN05_ROWS", because, {"rows": mn}, conditions.multiple(mn, *rows))
    if all(along % k for k in depths):
        because = f"an instruction reads {' or '.join(map(str, depths))} elements along K; the tile has {along}"
        return Broken("TCGEN05_K", because, {"k": along}, conditions.multiple(along, *depths))
    return _aligned(request)


def _aligned(request: Request) -> Broken | None:
    because = f"the base is aligned to {request.align_bytes} bytes; 16 are needed"
    return misaligned("TCGEN05_ALIGN", because, request.align_bytes, 16) if request.align_bytes % 16 else None


def _bits(elements: IntArray, container_bits: int, element_bits: int) -> IntArray:
    """Bit addresses of element offsets; elements narrower than their container are packed within 16-byte chunks."""
    if container_bits == element_bits:
        return elements * container_bits
    many = 128 // container_bits
    return elements // many * 128 + elements % many * element_bits


def _admitted(request: Request, plan: Tcgen05Plan | ScalePlan, wanted: IntArray) -> Admitted:
    meaning = plan.table()
    read = meaning if isinstance(meaning, np.ndarray) else wanted
    return request.admitted(plan, certify.same_tables(read, wanted, _CLAIM), "documented")
