"""Shared memory as AMD's kernels lay it out and read it: a rotating swizzle, buffers in partitions, transposing reads.

Notation: as in ``shared``: ``offset`` (element offset inside a block's buffer) and ``block`` map to tensor coordinates;
``partition`` counts physical memories of one block.

References: Triton 3.9.0 (``AMDRotatingSharedEncodingAttr``, ``PartitionedSharedLayout``); AMD CDNA4 ISA, LDS
instructions (DS_READ_B64_TR_B16 and its kin).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.targets.layouts.shared import phased_shared
from layoutalg.targets.layouts.tile import Tile, choice, dims, entry, integer, malformed, power

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
