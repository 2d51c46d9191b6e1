"""The cluster level: where the blocks of a cluster sit in a tensor.

References: Triton 3.9.0 (``cga_layout`` of the Gluon layouts).
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.targets.layouts.tile import (
    LOWERING_SOURCE,
    Vector,
    cga_bases,
    dims,
    extents,
    malformed,
    permutation,
    powers,
)


def cluster_bases(
    ctas_per_cga: Sequence[int], split: Sequence[int] | None = None, order: Sequence[int] | None = None
) -> tuple[Vector, ...]:
    """Return the basis vectors of the block axis of a cluster, in units of one block's part of the tensor.

    Mathematically: the blocks enumerate the box ``ctas_per_cga``, dimension ``order[0]`` fastest; along a dimension
    with fewer distinct parts than blocks, the upper block bits hold copies.

    Args:
        ctas_per_cga: Blocks per dimension, powers of two.
        split: Distinct parts per dimension, at most the number of blocks; None for one per block.
        order: Dimensions, fastest first; None for the last dimension first.

    Example:
        >>> cluster_bases((2, 4), split=(2, 2))
        ((0, 1), (0, 0), (1, 0))

    Source: Triton 3.9.0 (``CTAsPerCGA``, ``CTASplitNum``, ``CTAOrder``).
    """
    blocks = powers(ctas_per_cga, "ctas_per_cga")
    rank = len(blocks)
    parts = blocks if split is None else powers(split, "split", rank)
    fastest = tuple(range(rank - 1, -1, -1)) if order is None else permutation(order, "order", rank)
    found: list[Vector] = []
    for dim in fastest:
        if parts[dim] > blocks[dim]:
            raise malformed(f"split[{dim}]", f"must be at most the {blocks[dim]} blocks of the dimension", parts[dim])
        for bit in range(blocks[dim].bit_length() - 1):
            step = 1 << bit
            found.append(tuple(step if index == dim and step < parts[dim] else 0 for index in range(rank)))
    return tuple(found)


def across_blocks(layout: LinearLayout, cga: Sequence[Sequence[int]]) -> LinearLayout:
    """Return the layout of a larger tensor whose blocks each hold ``layout``.

    Mathematically: the direct sum of one block's layout and the cluster layout; dimension d of the tensor is that of
    the layout times the extent spanned by the cluster bases.

    Args:
        layout: One block's layout, without a block axis or with one of size 1; outputs ``dim0``, ``dim1``, ....
        cga: Basis vectors of the block axis, in units of the layout's extents.

    Example:
        >>> one = LinearLayout.from_bases({"lane": [(1,), (2,)]}, {"dim0": 4})
        >>> str(across_blocks(one, [(1,)]))
        'F2[lane=(1)(2), block=(4) -> dim0:8]'

    Source: Triton 3.9.0 (combination of block tile and cluster layout).
    """
    if not isinstance(layout, LinearLayout):
        raise malformed("layout", "must be a LinearLayout", layout)
    sizes = tuple(layout.out_dims.values())
    rank = len(sizes)
    if tuple(layout.out_dims) != dims(rank):
        raise malformed("layout", f"must have the outputs {dims(rank)}", tuple(layout.out_dims))
    if layout.in_dims.get("block", 1) != 1:
        raise AdmissibilityError(
            Diagnostic(
                code="LA703",
                what="the layout already runs over blocks",
                where=(str(layout),),
                because=f"its block axis has size {layout.in_dims['block']}, not 1",
                source=LOWERING_SOURCE,
            )
        )
    bases = cga_bases(cga, rank)
    blocks = tuple(tuple(step * size for step, size in zip(vector, sizes, strict=True)) for vector in bases)
    inputs = [(axis, images) for axis, images in layout.bases.items() if axis != "block"]
    whole = tuple(size * split for size, split in zip(sizes, extents(bases, rank), strict=True))
    named = tuple(zip(dims(rank), whole, strict=True))
    return LinearLayout.from_bases((*inputs, ("block", blocks)), named, tuple(layout.offset.values()))
