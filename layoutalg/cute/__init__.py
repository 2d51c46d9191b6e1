"""CuTe layouts, swizzles, swizzled layouts and their algebra. Every operation returns the exact result or raises.

``from layoutalg.cute import *`` is enough to evaluate any ``repr`` of these types. It does not shadow Python's
``filter`` and ``slice``; call those operations as ``layoutalg.cute.filter`` and ``layoutalg.cute.slice``.
"""

from layoutalg.cute.algebra import (
    append,
    coalesce,
    cosize,
    depth,
    dice,
    domain_offset,
    filter_zeros,
    flatten,
    group,
    make_layout,
    prepend,
    rank,
    replace,
    select,
    size,
    slice_and_offset,
    take,
    unflatten,
)
from layoutalg.cute.algebra import filter as filter
from layoutalg.cute.algebra import slice as slice
from layoutalg.cute.complement import complement, domain_distribute, max_common_layout, max_common_vector, nullspace
from layoutalg.cute.composition import composition
from layoutalg.cute.coordinates import Basis, CoordinateLayout, E, make_identity_layout
from layoutalg.cute.divide import (
    blocked_product,
    flat_divide,
    flat_product,
    logical_divide,
    logical_product,
    make_layout_like,
    make_ordered_layout,
    raked_product,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)
from layoutalg.cute.inttuple import ceil_div, compatible, crd2crd, crd2idx, idx2crd, product_each
from layoutalg.cute.inverse import left_inverse, right_inverse
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.morphism import Morphism
from layoutalg.cute.partition import (
    CopyAtom,
    TiledCopy,
    local_partition,
    local_tile,
    make_layout_tv,
    make_tiled_copy,
    thread_value_partition,
)
from layoutalg.cute.recast import downcast, max_alignment, recast, upcast
from layoutalg.cute.refinement import (
    MutualRefinement,
    Tractability,
    find_isomorphism,
    is_tractable,
    mutual_refinement,
    weak_composite,
)
from layoutalg.cute.swizzle import ComposedLayout, Swizzle, shift
from layoutalg.cute.tiled_mma import MmaAtom, TiledMMA

__all__ = [
    "Basis",
    "ComposedLayout",
    "CoordinateLayout",
    "CopyAtom",
    "CuteLayout",
    "E",
    "MmaAtom",
    "Morphism",
    "MutualRefinement",
    "Swizzle",
    "TiledCopy",
    "TiledMMA",
    "Tractability",
    "append",
    "blocked_product",
    "ceil_div",
    "coalesce",
    "compatible",
    "complement",
    "composition",
    "cosize",
    "crd2crd",
    "crd2idx",
    "depth",
    "dice",
    "domain_distribute",
    "domain_offset",
    "downcast",
    "filter_zeros",
    "find_isomorphism",
    "flat_divide",
    "flat_product",
    "flatten",
    "group",
    "idx2crd",
    "is_tractable",
    "left_inverse",
    "local_partition",
    "local_tile",
    "logical_divide",
    "logical_product",
    "make_identity_layout",
    "make_layout",
    "make_layout_like",
    "make_layout_tv",
    "make_ordered_layout",
    "make_tiled_copy",
    "max_alignment",
    "max_common_layout",
    "max_common_vector",
    "mutual_refinement",
    "nullspace",
    "prepend",
    "product_each",
    "raked_product",
    "rank",
    "recast",
    "replace",
    "right_inverse",
    "select",
    "shift",
    "size",
    "slice_and_offset",
    "take",
    "thread_value_partition",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "unflatten",
    "upcast",
    "weak_composite",
    "zipped_divide",
    "zipped_product",
]


def __dir__() -> list[str]:
    return sorted([*__all__, "filter", "slice"])
