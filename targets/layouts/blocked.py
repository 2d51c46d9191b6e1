"""Blocked register layouts, their dot operands for scalar multiply-add, and slices of any layout.

References: arXiv 2505.23819 section 4.1; Triton 3.9.0 (``BlockedLayout``, ``SliceLayout``, ``DotOperandLayout``).
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.f2 import LinearLayout
from layoutalg.targets.layouts.tile import Tile, cga_bases, dims, integer, malformed, permutation, powers


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
