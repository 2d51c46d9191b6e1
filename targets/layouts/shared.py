"""Shared-memory layouts: swizzled by phases, NVIDIA's swizzles, AMD's rotating swizzle, partitions, transposing reads.

Notation: a layout maps ``offset`` (element offset inside a block's buffer) and ``block`` to tensor coordinates; its
inverse places a coordinate. ``partition`` counts physical memories of one block.

References: PTX ISA 9.1 section 5.5.7 (swizzle modes); Triton 3.9.0 (``SwizzledSharedLayout``, ``NVMMASharedLayout``,
``AMDRotatingSharedEncodingAttr``, ``PartitionedSharedLayout``); AMD CDNA4 ISA, LDS instructions (DS_READ_B64_TR_B16 and
its kin).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, Repair
from layoutalg.targets.layouts.tile import (
    Tile,
    Vector,
    cga_bases,
    choice,
    dims,
    entry,
    flag,
    integer,
    malformed,
    permutation,
    power,
    powers,
    shape_per_cta,
)

SWIZZLE_SOURCE = "PTX ISA 9.1 section 5.5.7 (tensor swizzling modes); Triton 3.9.0 NVMMASharedLayout"
TMA_BOX = 256
"""Largest extent of one TMA box; longer outer dimensions use several consecutive boxes."""
SHARED_AXES = ("offset",)


def swizzled_shared(
    shape: Sequence[int],
    vec: int,
    per_phase: int,
    max_phase: int,
    order: Sequence[int],
    cga: Sequence[Sequence[int]] = (),
) -> LinearLayout:
    """Return the shared layout whose rows are permuted in vectors by an XOR with the row's phase.

    Mathematically: with c = ``order[0]`` of extent C and r = ``order[1]``, offset x + C y holds column
    x xor (vec ((y div per_phase) mod max_phase) mod C) of row y; the other dimensions follow in ``order``.

    Args:
        shape: Tensor shape, powers of two. A rank-1 tensor is not swizzled.
        vec: Elements moved together.
        per_phase: Rows that share a phase.
        max_phase: Number of phases.
        order: Dimensions, fastest first.
        cga: Cluster bases in units of one block's part.

    Example:
        >>> str(swizzled_shared((4, 4), 1, 1, 4, (1, 0)))
        'F2[offset=(0,1)(0,2)(1,1)(2,2), block= -> dim0:4, dim1:4]'

    Source: Triton 3.9.0 ``SwizzledSharedLayout``.
    """
    return phased_shared(shape, vec, per_phase, max_phase, order, cga)


def phased_shared(
    shape: Sequence[int],
    vec: int,
    per_phase: int,
    max_phase: int,
    order: Sequence[int],
    cga: Sequence[Sequence[int]],
    rotating: bool = False,
) -> LinearLayout:
    """Return ``swizzled_shared`` or, if rotating, ``rotating_shared``."""
    sizes = powers(shape, "shape")
    rank = len(sizes)
    fastest = permutation(order, "order", rank)
    vector, rows, phases = power(vec, "vec"), power(per_phase, "per_phase"), power(max_phase, "max_phase")
    bases = cga_bases(cga, rank)
    part = shape_per_cta(sizes, bases)
    column = fastest[0]
    images = list(_steps(column, part[column], rank))
    for position, dim in enumerate(fastest[1:]):
        for image in _steps(dim, part[dim], rank):
            if position == 0:
                phase = image[dim] // rows % phases
                if rotating:
                    phase ^= image[dim] // (rows * phases) % phases
                shift = vector * phase % part[column]
                image = tuple(shift if index == column else value for index, value in enumerate(image))
            images.append(image)
    bits = tuple(size.bit_length() - 1 for size in part)
    return Tile(fastest, bits, (("offset", tuple(images)),)).fit(sizes, bases)


def nvmma_shared(
    shape: Sequence[int],
    swizzle_bytes: int,
    element_bits: int,
    transposed: bool = False,
    fp4_padded: bool = False,
    cga: Sequence[Sequence[int]] = (),
) -> LinearLayout:
    """Return the shared layout that TMA writes and wgmma or tcgen05 read: 8-row cores with a 0/32/64/128-byte swizzle.

    Mathematically: with s swizzle bytes, rows of s bytes are stacked; in row y, 16-byte chunk number x holds chunk
    x xor ((y mod 8) div (128 / s)). All dimensions but the contiguous one form the rows, the last of them fastest, in
    boxes of at most 256; then the remaining columns, boxes first along dim0. Without swizzle, the identity on boxes of
    256, boxes first along the last dimension.

    Args:
        shape: Tensor shape, powers of two.
        swizzle_bytes: 0, 32, 64 or 128.
        element_bits: 8, 16, 32 or 64.
        transposed: Whether dim0 is contiguous instead of dim1; rank 2 only.
        fp4_padded: Pairs of 4-bit elements, each 8 bytes followed by 8 bytes of padding (128-byte swizzle, 8-bit
            elements); the padding offsets are copies of the data before them.
        cga: Cluster bases in units of one block's part.

    Example:
        >>> str(nvmma_shared((8, 16), 32, 16))
        'F2[offset=(0,1)(0,2)(0,4)(0,8)(1,0)(2,0)(4,8), block= -> dim0:8, dim1:16]'

    Source: PTX ISA 9.1 section 5.5.7; Triton 3.9.0 ``NVMMASharedLayout``.
    """
    sizes = powers(shape, "shape")
    rank = len(sizes)
    swizzle = choice(swizzle_bytes, "swizzle_bytes", (0, 32, 64, 128), SWIZZLE_SOURCE)
    bits = choice(element_bits, "element_bits", (8, 16, 32, 64), SWIZZLE_SOURCE)
    padded = flag(fp4_padded, "fp4_padded")
    if padded and (swizzle, bits) != (128, 8):
        raise malformed(
            "fp4_padded", "needs 128 swizzle bytes and 8 element bits", (swizzle, bits), "LA701", SWIZZLE_SOURCE
        )
    turned = flag(transposed, "transposed")
    if turned and rank != 2:
        # beyond two dimensions compilers disagree: Triton 3.9.0 uses sizes of other dimensions and loses elements
        raise malformed(
            "transposed", f"must be False for a tensor of rank {rank}: only rank 2 is unambiguous", True, "LA701"
        )
    inner = 0 if turned else rank - 1
    outer = tuple(dim for dim in range(rank - 1, -1, -1) if dim != inner)
    bases = cga_bases(cga, rank)
    part = shape_per_cta(sizes, bases)
    box = [min(size, TMA_BOX) for size in part]
    if swizzle == 0:
        tile = Tile.start(tuple(range(rank - 1, -1, -1)), SHARED_AXES)
        return tile.grow_all("offset", box, (inner, *outer)).fit(sizes, bases)
    columns = 8 * swizzle // bits // (2 if padded else 1)
    stacked = 1
    for dim in outer:
        stacked *= box[dim]
    if stacked < 8 or part[inner] < columns:
        # without swizzle any shape works; with one, the columns must fit and there must be 8 rows
        fits = [s for s in (64, 32) if s < swizzle and stacked >= 8 and part[inner] >= 8 * s // bits]
        smaller = Repair("use a narrower swizzle", f"swizzle_bytes = {(fits or [0])[0]}")
        raise AdmissibilityError(
            Diagnostic(
                code="LA706",
                what="the tensor is smaller than one swizzle core",
                where=(f"shape={sizes}", f"swizzle_bytes={swizzle}", f"element_bits={bits}"),
                repairs=() if padded else (smaller,),
                because=f"a core is 8 rows of {columns} elements; a block's part has {stacked} rows of {part[inner]}",
                witness={"rows": stacked, "columns": part[inner]},
                source=SWIZZLE_SOURCE,
            )
        )
    chunk, per_phase = 128 // bits, 128 // swizzle
    images = [_unit(rank, inner, _packed(1 << bit, padded)) for bit in range((8 * swizzle // bits).bit_length() - 1)]
    row = 1
    for dim in outer:
        for image in _steps(dim, box[dim], rank):
            shift = _packed(chunk * (row // per_phase), padded) if row < 8 else 0
            images.append(tuple(shift if index == inner else value for index, value in enumerate(image)))
            row *= 2
    box[inner] = columns
    covered = tuple(size.bit_length() - 1 for size in box)
    return Tile(tuple(range(rank)), covered, (("offset", tuple(images)),)).fit(sizes, bases)


def _steps(dim: int, size: int, rank: int) -> tuple[Vector, ...]:
    return tuple(_unit(rank, dim, 1 << bit) for bit in range(size.bit_length() - 1))


def _unit(rank: int, dim: int, value: int) -> Vector:
    return tuple(value if index == dim else 0 for index in range(rank))


def _packed(column: int, padded: bool) -> int:
    """Return the data column of a padded column: the first 8 of every 16 bytes are data, the rest copies."""
    return column // 16 * 8 + column % 8 if padded else column


READ_SOURCE = "AMD CDNA4 ISA, DS_READ_B64_TR_B16, _B8, _B4; Triton 3.9.0 for gfx1250"
PARTITION_SOURCE = "Triton 3.9.0 PartitionedSharedLayout (gfx1250)"
READS: Mapping[str, Mapping[int, tuple[int, tuple[int, ...], tuple[int, ...]]]] = MappingProxyType(
    {
        "gfx950": MappingProxyType(
            {16: (4, (1, 2, 16, 32), (4, 8)), 8: (8, (1, 16, 32), (2, 4, 8)), 4: (16, (16, 32), (1, 2, 4, 8))}
        ),
        "gfx1250": MappingProxyType(
            {16: (8, (8, 16), (1, 2, 4)), 8: (8, (4, 16), (1, 2, 8)), 4: (16, (8,), (1, 2, 4, 16))}
        ),
    }
)
"""Per architecture and element bits of a transposing read: elements E that a lane addresses; the source lane bits
selected by the lane bits above log2(E); the source lane bits selected by the register bits."""


def rotating_shared(
    shape: Sequence[int],
    vec: int,
    per_phase: int,
    max_phase: int,
    order: Sequence[int],
    cga: Sequence[Sequence[int]] = (),
) -> LinearLayout:
    """Return ``swizzled_shared`` with the phase also XORed by the number of its run of rows.

    Mathematically: as ``swizzled_shared`` with the phase p xor b, where p = (y div per_phase) mod max_phase and
    b = (y div (per_phase max_phase)) mod max_phase for row y: rows with one phase but in different runs differ too.

    Args:
        shape: Tensor shape, powers of two. A rank-1 tensor is not swizzled.
        vec: Elements moved together.
        per_phase: Rows that share a phase.
        max_phase: Number of phases.
        order: Dimensions, fastest first.
        cga: Cluster bases in units of one block's part. (Triton 3.9.0 leaves some offsets unused if blocks split the
            tensor; the chips this layout targets have no clusters.)

    Example:
        >>> str(rotating_shared((8, 4), 1, 1, 4, (1, 0)))
        'F2[offset=(0,1)(0,2)(1,1)(2,2)(4,1), block= -> dim0:8, dim1:4]'

    Source: Triton 3.9.0 ``AMDRotatingSharedEncodingAttr``.
    """
    return phased_shared(shape, vec, per_phase, max_phase, order, cga, rotating=True)


def partitioned_shared(piece: LinearLayout, partitions: int, groups: int, dim: int) -> LinearLayout:
    """Return a tensor split along one dimension into pieces that are placed round robin in separate memories.

    Mathematically: with piece extent e along ``dim``, piece i covers e i .. e (i + 1) - 1 and is group
    i div ``partitions`` of partition i mod ``partitions``; groups are consecutive in the offset. Result:
    (offset, block, partition) -> tensor coordinates.

    Args:
        piece: Layout of one piece, (offset, block) -> (dim0, ...), from a family in ``shared``. Its blocks
            stay inside the piece; ``across_blocks`` puts blocks around a whole partitioned tensor instead.
        partitions: Physical memories, a power of two of at least 2.
        groups: Pieces per memory, a power of two.
        dim: Dimension that is split.

    Example:
        >>> from layoutalg.targets.layouts.shared import swizzled_shared
        >>> str(partitioned_shared(swizzled_shared((2, 2), 1, 1, 1, (1, 0)), 2, 2, 0))
        'F2[offset=(0,1)(1,0)(4,0), block=, partition=(2,0) -> dim0:8, dim1:2]'

    Source: Triton 3.9.0 ``PartitionedSharedLayout``.
    """
    if not isinstance(piece, LinearLayout) or tuple(piece.in_dims) != ("offset", "block"):
        raise malformed("piece", "must be a LinearLayout of offset and block", piece)
    sizes = tuple(piece.out_dims.values())
    if tuple(piece.out_dims) != dims(len(sizes)):
        raise malformed("piece", f"must have the outputs {dims(len(sizes))}", tuple(piece.out_dims))
    if piece.constant:
        raise AdmissibilityError(
            Diagnostic(
                code="LA706",
                what="the layout of a piece must have no constant part",
                where=(str(piece),),
                because=f"its constant part is {piece.offset}",
                source=PARTITION_SOURCE,
            )
        )
    count, runs = power(partitions, "partitions"), power(groups, "groups")
    if count < 2:
        raise malformed("partitions", "must be at least 2", count)
    cut = integer(dim, "dim")
    if cut >= len(sizes):
        raise malformed("dim", f"must be below the rank {len(sizes)}", cut)
    bits = tuple(size.bit_length() - 1 for size in sizes)
    built = Tile(tuple(range(len(sizes))), bits, (*piece.bases.items(), ("partition", ())))
    built = built.grow("partition", cut, count).grow("offset", cut, runs)
    return LinearLayout.from_bases(built.bases, tuple(zip(dims(len(sizes)), built.sizes, strict=True)))


def transposed_read(element_bits: int, arch: str = "gfx950") -> LinearLayout:
    """Return which element each lane and register element receives from a transposing LDS read.

    Mathematically: every lane addresses E elements. On gfx950 (64 bits) the 16 E elements of a group of 16 lanes form a
    sequence, address lane after address lane; lane j of the group receives numbers j, j + 16, j + 32, ... of it. On
    gfx1250 register k of lane j receives element j mod E of a lane; with b3, b4 the bits of j, of lane
    k + 8 b3 + 16 b4 for 16-bit elements (128 bits), (k mod 4) + 4 b3 + 8 (k div 4) + 16 b4 for 8-bit elements (64
    bits) and (k mod 8) + 8 b4 + 16 (k div 8) for 4-bit elements (64 bits).

    Args:
        element_bits: 16, 8 or 4: on gfx950 ``ds_read_b64_tr_b16``, ``_b8``, ``_b4``, on gfx1250
            ``ds_load_tr16_b128``, ``ds_load_tr8_b64``, ``ds_load_tr4_b64``.
        arch: ``"gfx950"`` (wave64) or ``"gfx1250"`` (wave32).

    Returns:
        (register, lane) -> (slot, source): element ``slot`` of what lane ``source`` addresses.

    Example:
        >>> str(transposed_read(16))
        'F2[register=(0,4)(0,8), lane=(1,0)(2,0)(0,1)(0,2)(0,16)(0,32) -> slot:4, source:64]'
        >>> str(transposed_read(16, "gfx1250"))
        'F2[register=(0,1)(0,2)(0,4), lane=(1,0)(2,0)(4,0)(0,8)(0,16) -> slot:8, source:32]'

    Source: AMD CDNA4 ISA (DS_READ_B64_TR_B16, _B8, _B4); gfx1250 from the addresses Triton 3.9.0 compiles.
    """
    known = entry(arch, "arch", READS, READ_SOURCE)
    bits = choice(element_bits, "element_bits", tuple(known), READ_SOURCE)
    slots, lanes, registers = known[bits]
    lane = (*((1 << bit, 0) for bit in range(slots.bit_length() - 1)), *((0, source) for source in lanes))
    held = tuple((0, source) for source in registers)
    return LinearLayout.from_bases({"register": held, "lane": lane}, (("slot", slots), ("source", 1 << len(lane))))
