"""The two kinds of linear layout that Triton distinguishes: distributed tensors and shared memory.

Source: Zhou et al., "Linear Layouts", arXiv:2505.23819v3, section 4 (definitions of distributed and memory layouts).
"""

from __future__ import annotations

from collections.abc import Iterator

from layoutalg.f2.axes import fields, unpack
from layoutalg.f2.layout import LinearLayout, linear
from layoutalg.ground.verdict import Proved, Refuted

_ENGINE = "columns"


def is_distributed_layout(layout: LinearLayout) -> Proved | Refuted:
    """Whether the layout spreads a tensor over registers, lanes and warps without mixing coordinate bits.

    Mathematically: linear and surjective, every column has at most one bit set, and no two nonzero columns are equal (a
    zero column is a broadcast). The verdict serves as a bool; a refutation names the first column that breaks the rule.

    Example:
        >>> blocked = LinearLayout.from_bases({"register": [(1,)], "lane": [(2,), (0,)]}, {"x": 4})
        >>> bool(is_distributed_layout(blocked))
        True
        >>> print(is_distributed_layout(LinearLayout.from_bases({"lane": [(1,), (3,)]}, {"x": 4})))
        refuted       a column of a distributed layout has at most one bit set
          at          axis=lane, bit=1, image={'x': 3}
    """
    layout = linear(layout, "layout")
    seen: dict[int, str] = {}
    for column, at in _columns(layout):
        if column.bit_count() > 1:
            return _refuted("a column of a distributed layout has at most one bit set", **at)
        if column in seen:
            return _refuted("nonzero columns of a distributed layout differ", **at, equals=seen[column])
        if column:
            seen[column] = f"{at['axis']}[{at['bit']}]"
    missed = layout.missed()
    if missed is not None:
        return _refuted("a distributed layout reaches every coordinate", missed=missed)
    return _linear(layout, "distributed")


def is_memory_layout(layout: LinearLayout) -> Proved | Refuted:
    """Whether the layout is one of shared memory: a permutation of offsets that XORs at most one bit into another.

    Mathematically: linear and invertible, and every column has one or two bits set, as every swizzle of TMA and of
    Triton has. The verdict serves as a bool; a refutation names the first column that breaks the rule.

    Example:
        >>> swizzled = LinearLayout.from_bases({"offset": [(0, 1), (0, 2), (1, 1), (2, 2)]}, {"row": 4, "col": 4})
        >>> bool(is_memory_layout(swizzled)), bool(is_distributed_layout(swizzled))
        (True, False)
        >>> print(is_memory_layout(LinearLayout.from_bases({"offset": [(1,), (2,), (7,)]}, {"x": 8})))
        refuted       a column of a memory layout has one or two bits set
          at          axis=offset, bit=2, image={'x': 7}
    """
    layout = linear(layout, "layout")
    for column, at in _columns(layout):
        if not 1 <= column.bit_count() <= 2:
            return _refuted("a column of a memory layout has one or two bits set", **at)
    if not layout.is_invertible:
        because = {"inputs": layout.in_bits, "outputs": layout.out_bits, "rank": layout.rank}
        return _refuted("a memory layout is invertible: bits of inputs and outputs equal the rank", **because)
    return _linear(layout, "memory")


def _columns(layout: LinearLayout) -> Iterator[tuple[int, dict[str, object]]]:
    for axis, low, bits in fields(layout.in_axes):
        for bit, column in enumerate(layout.columns[low : low + bits]):
            yield column, {"axis": axis, "bit": bit, "image": unpack(column, layout.out_axes)}


def _linear(layout: LinearLayout, kind: str) -> Proved | Refuted:
    if layout.constant:
        return _refuted(f"a {kind} layout is linear: it maps 0 to 0", offset=layout.offset)
    return Proved(_ENGINE, {"claim": f"this is a {kind} layout", "columns": len(layout.columns)})


def _refuted(what: str, **at: object) -> Refuted:
    return Refuted(_ENGINE, {"what": what, **at})
