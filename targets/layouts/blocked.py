"""Blocked register layouts, their dot operands for scalar multiply-add, slices of any layout, and clusters.

References: arXiv 2505.23819 section 4.1; Triton 3.9.0 (``BlockedLayout``, ``SliceLayout``, ``DotOperandLayout``, and
``cga_layout`` of the Gluon layouts).
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.targets.layouts.tile import (
    LOWERING_SOURCE,
    Tile,
    Vector,
    cga_bases,
    dims,
    extents,
    integer,
    malformed,
    permutation,
    powers,
)


def blocked(
    size_per_thread: Sequence[int],
    threads_per_warp: Sequence[int],
    warps_per_cta: Sequence[int],
    order: Sequence[int],
    shape: Sequence[int],
    cga: Sequence[Sequence[int]] = (),
) -> LinearLayout:
    """Return the layout that gives each thread a box of elements, then each warp, then each block.

    Mathematically: the direct sum of the identities on the three boxes, each enumerated with dimension ``order[0]``
    fastest, repeated in registers to ``shape``. Where a box is larger than the tensor, register bits that leave it are
    dropped and lane and warp bits become copies.

    Args:
        size_per_thread: Elements per thread, per dimension; powers of two, as all extents here.
        threads_per_warp: Lanes per dimension.
        warps_per_cta: Warps per dimension.
        order: Dimensions, fastest first.
        shape: Tensor shape in elements.
        cga: Basis vectors of the block axis in units of one block's part of the tensor.

    Example:
        >>> str(blocked((1, 2), (8, 4), (2, 1), (1, 0), (16, 16)))
        'F2[register=(0,1)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0), warp=(8,0), block= -> dim0:16, dim1:16]'

    Source: arXiv 2505.23819 section 4.1; Triton 3.9.0 ``BlockedLayout``.
    """
    sizes = powers(shape, "shape")
    rank = len(sizes)
    fastest = permutation(order, "order", rank)
    tile = (
        Tile.start(fastest)
        .grow_all("register", powers(size_per_thread, "size_per_thread", rank), fastest)
        .grow_all("lane", powers(threads_per_warp, "threads_per_warp", rank), fastest)
        .grow_all("warp", powers(warps_per_cta, "warps_per_cta", rank), fastest)
    )
    return tile.fit(sizes, cga_bases(cga, rank), drop_register_copies=True)


def blocked_operand(
    operand: str,
    size_per_thread: Sequence[int],
    threads_per_warp: Sequence[int],
    warps_per_cta: Sequence[int],
    order: Sequence[int],
    shape: Sequence[int],
    cga: Sequence[Sequence[int]] = (),
) -> LinearLayout:
    """Return the layout of a multiply-add operand whose accumulator is ``blocked`` with the same arguments.

    Mathematically: each thread holds all of K for the rows (of A) or columns (of B) of its accumulator; lane, warp and
    block bits that run along K in the accumulator become copies.

    Args:
        operand: ``"A"`` (shape M x K) or ``"B"`` (shape K x N); a leading batch dimension is allowed.
        size_per_thread: As for ``blocked``, for the accumulator; so are the next three.
        threads_per_warp: Lanes per dimension.
        warps_per_cta: Warps per dimension.
        order: Dimensions, fastest first.
        shape: Shape of the operand in elements.
        cga: Cluster bases of the accumulator.

    Example:
        >>> layout = blocked_operand("A", (1, 1), (2, 2), (1, 1), (1, 0), (2, 4))
        >>> str(layout)
        'F2[register=(0,1)(0,2), lane=(0,0)(1,0), warp=, block= -> dim0:2, dim1:4]'

    Source: Triton 3.9.0 ``DotOperandLayout`` of a ``BlockedLayout``.
    """
    sizes = powers(shape, "shape")
    rank = len(sizes)
    fastest = permutation(order, "order", rank)
    inner = inner_dim(operand, rank)
    per_thread = list(powers(size_per_thread, "size_per_thread", rank))
    per_thread[inner] = sizes[inner]
    tile = Tile.start(fastest).grow_all("register", per_thread, fastest)
    for axis, counts in (
        ("lane", powers(threads_per_warp, "threads_per_warp", rank)),
        ("warp", powers(warps_per_cta, "warps_per_cta", rank)),
    ):
        for dim in fastest:
            tile = tile.copies(axis, counts[dim]) if dim == inner else tile.grow(axis, dim, counts[dim])
    return tile.fit(sizes, operand_cga(cga, inner, rank))


def inner_dim(operand: object, rank: int) -> int:
    """Return the dimension of the operand that a matrix product sums over: the last of A, the one before it of B."""
    if not isinstance(operand, str) or operand not in ("A", "B"):
        raise malformed("operand", "must be 'A' or 'B'", operand)
    if rank < 2:
        raise malformed("shape", "must have at least two dimensions", rank)
    return rank - 1 if operand == "A" else rank - 2


def operand_cga(cga: object, inner: int, rank: int) -> tuple[tuple[int, ...], ...]:
    """Return the cluster bases of an operand: those of the accumulator with the inner dimension set to zero."""
    bases = cga_bases(cga, rank)
    return tuple(tuple(0 if dim == inner else part for dim, part in enumerate(vector)) for vector in bases)


def slice_of(parent: LinearLayout, dim: int) -> LinearLayout:
    """Return the layout with one tensor dimension removed: each thread keeps its elements, minus that coordinate.

    Mathematically: the projection of ``parent`` along ``dim``; register bits that the projection sends to zero are
    dropped (they would be copies inside one thread); the other hardware axes keep theirs as copies.

    Args:
        parent: A layout onto ``dim0``, ``dim1``, ....
        dim: Dimension to remove; the later ones are renumbered.

    Example:
        >>> str(slice_of(blocked((1, 2), (8, 4), (2, 1), (1, 0), (16, 16)), 0))
        'F2[register=(1)(8), lane=(2)(4)(0)(0)(0), warp=(0), block= -> dim0:16]'

    Source: arXiv 2505.23819 section 4.1; Triton 3.9.0 ``SliceLayout``.
    """
    if not isinstance(parent, LinearLayout):
        raise malformed("parent", "must be a LinearLayout", parent)
    rank = len(parent.out_axes)
    if tuple(parent.out_dims) != dims(rank):
        raise malformed("parent", f"must have the outputs {dims(rank)}", tuple(parent.out_dims))
    removed = integer(dim, "dim")
    if removed >= rank:
        raise malformed("dim", f"must be below the rank {rank}", removed)
    bases = []
    for axis, images in parent.bases.items():
        kept = tuple(image[:removed] + image[removed + 1 :] for image in images)
        bases.append((axis, tuple(image for image in kept if any(image)) if axis == "register" else kept))
    sizes = tuple(parent.out_dims.values())
    offset = tuple(parent.offset.values())
    return LinearLayout.from_bases(
        bases,
        tuple(zip(dims(rank - 1), sizes[:removed] + sizes[removed + 1 :], strict=True)),
        offset[:removed] + offset[removed + 1 :],
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
