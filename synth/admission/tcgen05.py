"""Decide whether ``tcgen05`` reads a layout as operand A or B or as scale factors, or moves registers to and from D."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from layoutalg.ground.layout import Layout
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Admission, Admitted, Refused
from layoutalg.proofs.certify.banks import document
from layoutalg.proofs.certify.evidence import proved
from layoutalg.synth.admission.ideas import Idea
from layoutalg.synth.admission.repairs import ranked, ranked_consumers
from layoutalg.synth.admission.request import CHECK, IntArray, Request
from layoutalg.synth.fragments import Mismatch
from layoutalg.synth.tcgen05 import Missing, OperandQuestion, find_operand, find_registers, find_scales
from layoutalg.targets.layouts.tmem import ATOMS, SPLIT_ATOM
from layoutalg.targets.nvidia import tcgen05 as hardware

_SAME = {"f32": "tf32", "tf32_ftz": "tf32"}
"""Type names as ``tcgen05.mma`` operands spell them."""
_LONG_K = "sm_103a"
"""Target with K = 96 for 4-bit elements, for CTA pairs with M = 256 (PTX ISA 9.1, 9.7.16.2.1)."""
_FORMS = "must be tcgen05.A, .B, .D, .scale, or .ld or .st with a shape, such as tcgen05.ld.32x32b"


def find(request: Request, repair: bool = True) -> Admission:
    """Return the descriptors of an operand or of scale factors, or why there are none.

    Offsets of 4- and 6-bit elements of the f8f6f4 kinds count bytes: 16 packed elements per 16-byte chunk.

    Args:
        request: The request.
        repair: Whether a refused operand gets repairs.

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
    answer = _shared(request)
    if not repair or not isinstance(answer, Refused) or answer.rules in (("TCGEN05_WS",), ("TCGEN05_DTYPE",)):
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
    name = _SAME.get(request.dtype.name, request.dtype.name)
    if name not in hardware.BITS:
        return _refused(request, "TCGEN05_DTYPE", f"no tcgen05.mma kind supports {name}", {"dtype": name})
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
        return _refused(request, "TCGEN05_WS", because)
    k = entry.k * (2 if sparse and operand == "B" else 1)
    depths = {k: plain}
    if request.target == _LONG_K and entry.container_bits == 4 and group == 2 and not sparse:
        depths[96] = (128,) if operand == "A" else plain  # M = 256 of a CTA pair
    shaped = _shape(request, operand, depths)
    if shaped is not None:
        return shaped
    wanted = _bits(request.offsets, entry.container_bits, hardware.BITS[name])
    missing: list[Missing] = []
    for depth, rows in depths.items():
        if request.extents[1] % depth or not any(request.extents[0] % size == 0 for size in rows):
            continue
        question = OperandQuestion(
            operand, name, entry.name, wanted, rows[::-1], transposed[::-1], depth, request.align_bytes
        )  # fmt: skip
        found = find_operand(question)
        if not isinstance(found, Missing):
            meaning = found.table()
            return _admitted(request, found, meaning if isinstance(meaning, np.ndarray) else wanted, wanted)
        missing.append(found)
    for found in sorted(missing, key=lambda entry: not entry.undocumented):
        if found.undocumented:
            return Unknown(f"undocumented: {found.undocumented}", ("tcgen05",))
        rule, because = found.forbidden or ("TCGEN05_LAYOUT", found.because)
        return _refused(request, rule, because, found.witness)
    return _refused(request, "TCGEN05_ROWS", "no instruction matches both the rows and the depth of the tile")


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
    if not isinstance(layout, Layout) or not {"register", "lane"} & set(layout.in_dims) or len(layout.out_dims) != 2:
        because = "the layout must map (register, lane) to two coordinates"
        return _refused(request, "REGISTER_AXES", because, {"axes": tuple(getattr(layout, "in_dims", ()))})
    if whole and request.dtype.name not in ("f16", "f32", "s32"):
        because = f"D must be f16, f32 or s32, got {request.dtype.name}"
        return _refused(request, "TCGEN05_DTYPE", because, {"dtype": request.dtype.name})
    if not whole and request.dtype.bits != 32 and request.dtype.name != "f16":
        return Unknown(f"undocumented: packing of {request.dtype.bits}-bit elements in a register", ("tcgen05",))
    if whole:
        request.only("m", "cta_group", "ws", "sparse")
        shapes: tuple[str, ...] = tuple(ATOMS)
        sized = _placed(request)
        if isinstance(sized, Refused):
            return sized
        places, letter = sized
    else:
        request.only()
        shapes, places, letter = (words[2],), None, ""
    mismatch: Mismatch | None = None
    for shape in shapes:
        found = find_registers(layout, shape, places, letter)
        if not isinstance(found, Mismatch):
            plan, meaning, asked = found
            return _admitted(request, plan, meaning, asked)
        mismatch = mismatch or found
    because, witness = (mismatch.because, mismatch.witness) if mismatch else ("no shape fits", {})
    if "split_columns" in witness:
        return Unknown("undocumented: whether the second half of 16x32bx2 may come first", ("tcgen05",))
    refused = _refused(request, "FRAGMENT", because, witness)
    if whole:
        return refused
    names = (f"tcgen05.{words[1]}.{name}" for name in (*ATOMS, SPLIT_ATOM) if name != words[2])
    others = {name: ("take another shape", name) for name in names}
    return refused.deferred(repairs=lambda: ranked_consumers(request, find_held, others))


def _placed(request: Request) -> tuple[IntArray, str] | Refused:
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
        return _refused(request, getattr(error, "rule", "TCGEN05_N"), str(because.because if because else error))
    table = np.asarray(layout.table(), dtype=np.int64).reshape(m, columns, order="F")
    return table[: m // group], letter


def _scales(request: Request) -> Admission:
    if request.dtype.bits != 8:
        return _refused(request, "TCGEN05_DTYPE", f"scales must have 8 bits, got {request.dtype.bits}")
    if len(request.extents) != 2 or request.extents[0] % 128 or request.extents[1] % 4:
        because = f"scales are copied in blocks of 128 rows x 4 groups; the tile is {request.extents}"
        return _refused(request, "TCGEN05_SCALE_SHAPE", because, {"extents": request.extents})
    if request.align_bytes % 16:
        return _refused(request, "TCGEN05_ALIGN", f"the base is aligned to {request.align_bytes} bytes; 16 are needed")
    wanted = request.offsets
    found = find_scales(wanted)
    if isinstance(found, Missing):
        if found.undocumented:
            return Unknown(f"undocumented: {found.undocumented}", ("tcgen05",))
        return _refused(request, "TCGEN05_SCALE_LAYOUT", found.because, found.witness)
    meaning = found.table()
    return _admitted(request, found, meaning if isinstance(meaning, np.ndarray) else wanted, wanted)


def _shape(request: Request, operand: str, depths: Mapping[int, tuple[int, ...]]) -> Refused | None:
    """Refuse extents that are no multiple of an instruction's; ``depths``: instruction rows by K."""
    rows = next(iter(depths.values()))
    if len(request.extents) != 2:
        because = f"an operand has two dimensions, the tile has {len(request.extents)}"
        return _refused(request, "TCGEN05_RANK", because, {"extents": request.extents})
    mn, along = request.extents
    if not any(mn % size == 0 for size in rows):
        because = (
            f"an instruction reads {', '.join(map(str, rows[:6]))}{', ...' * (len(rows) > 6)} rows of {operand} here"
        )
        return _refused(request, "TCGEN05_ROWS", f"{because}; the tile has {mn}", {"rows": mn})
    if all(along % k for k in depths):
        because = f"an instruction reads {' or '.join(map(str, depths))} elements along K; the tile has {along}"
        return _refused(request, "TCGEN05_K", because, {"k": along})
    if request.align_bytes % 16:
        because = f"the base is aligned to {request.align_bytes} bytes; 16 are needed"
        return _refused(request, "TCGEN05_ALIGN", because, {"align_bytes": request.align_bytes})
    return None


def _bits(elements: IntArray, container_bits: int, element_bits: int) -> IntArray:
    """Bit addresses of element offsets; elements narrower than their container are packed within 16-byte chunks."""
    if container_bits == element_bits:
        return elements * container_bits
    many = 128 // container_bits
    return elements // many * 128 + elements % many * element_bits


def _admitted(request: Request, plan: Any, meaning: IntArray, asked: IntArray) -> Admitted:
    statement = {"f": document(meaning.reshape(-1)), "g": document(asked.reshape(-1))}
    seal = proved("equality", statement, [{"by": "table"}], f"{request.consumer} denotes the requested layout")
    return Admitted(request.consumer, request.target, request.dtype.name, plan, seal, "documented")


def _refused(
    request: Request,
    rule: str,
    because: str,
    witness: Mapping[str, object] | None = None,
) -> Refused:
    name = request.dtype.name
    return Refused(request.consumer, request.target, name, (rule,), (because,), witness or {})
