"""Which elements each thread of a warpgroup holds for ``wgmma``: A in registers, the accumulator, sparse metadata.

Notation: thread t is lane l = t mod 32 of warp w = t div 32, with q = l mod 4 and g = l div 4.

References: PTX ISA 9.1 sections 9.7.15.5.1 (fragments) and 9.7.15.6.1 (sparse metadata), confirmed on a device.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from layoutalg.cute import CuteLayout
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.targets.nvidia.wgmma.descriptor import checked_integer
from layoutalg.targets.nvidia.wgmma.instructions import FLOAT_N, SOURCE, checked_bits, multiply

THREADS = 128
WORD_BITS = 32
A_WORDS = 4
"""32-bit registers of A that each thread holds for one instruction."""

SPARSE_CODES: Mapping[int, Mapping[int, tuple[int, ...]]] = MappingProxyType(
    {
        32: MappingProxyType({0b0100: (0,), 0b1110: (1,)}),
        **{
            bits: MappingProxyType({low | high << 2: (low, high) for low in range(3) for high in range(low + 1, 4)})
            for bits in (16, 8)
        },
    }
)
"""By element bits: the metadata nibble of a group, and the positions of its stored elements in the group.

A group is four elements with two stored, or two 32-bit elements with one stored."""


def register_coordinates(element_bits: int) -> npt.NDArray[np.int64]:
    """Return which element of A each thread holds in each slot of its four registers.

    Mathematically: with e = 32 div element_bits elements per register, value v of thread t is row g + 16 w +
    8 (v div e mod 2), column e q + v mod e + 4 e (v div 2 e): a bijection onto 64 x (256 div element_bits). For sparse
    A, these are the stored elements.

    Args:
        element_bits: 1, 8, 16 or 32.

    Returns:
        int64[128, 128 div element_bits, 2]: (row, k) of value v of thread t, low bits of a register first.

    Example:
        >>> register_coordinates(32)[5].tolist()
        [[1, 1], [9, 1], [1, 5], [9, 5]]
    """
    each = WORD_BITS // checked_bits(element_bits, "register_coordinates")
    t = np.arange(THREADS, dtype=np.int64)[:, None]
    v = np.arange(A_WORDS * each, dtype=np.int64)[None, :]
    row = t // 4 % 8 + 16 * (t // 32) + 8 * (v // each % 2)
    k = each * (t % 4) + v % each + 4 * each * (v // (2 * each))
    return np.stack(np.broadcast_arrays(row, k), axis=-1)


def metadata_coordinates(element_bits: int, selector: int = 0) -> npt.NDArray[np.int64]:
    """Return which row and group of sparse A each nibble of each thread's metadata word describes.

    Mathematically: a row has (512 div element_bits) elements, in groups of 4 (of 2 for 32 bits). For 8-bit elements
    nibble i of thread t is row g + 16 w + 8 (q mod 2), group 8 (q div 2) + i. For others only threads with
    q div 2 = selector are read: row g + 16 w + 8 (i div 4), group 4 (q mod 2) + i mod 4.

    Args:
        element_bits: 8, 16 or 32.
        selector: 0, or 1 for 16- and 32-bit elements.

    Returns:
        int64[128, 8, 2]: (row, group) of nibble i of thread t, low bits first; -1 if it is not read.

    Example:
        >>> metadata_coordinates(16)[[1, 2], ::4].tolist()
        [[[0, 4], [8, 4]], [[-1, -1], [-1, -1]]]
    """
    bits = checked_bits(element_bits, "metadata_coordinates")
    chosen = checked_integer("selector", selector, "metadata_coordinates")
    if bits not in SPARSE_CODES or chosen not in ((0,) if bits == 8 else (0, 1)):
        because = (
            f"sparse A has 8-bit elements with selector 0, or 16- or 32-bit elements with selector 0 or 1, not "
            f"{bits} bits with selector {shown(chosen)}"
        )
        raise MalformedError(Diagnostic("LA813", "no such sparse operand", ("metadata_coordinates",), because))
    t = np.arange(THREADS, dtype=np.int64)[:, None]
    i = np.arange(8, dtype=np.int64)[None, :]
    row, q = t // 4 % 8 + 16 * (t // 32), t % 4
    if bits == 8:
        return np.stack(np.broadcast_arrays(row + 8 * (q % 2), 8 * (q // 2) + i), axis=-1)
    places = np.stack(np.broadcast_arrays(row + 8 * (i // 4), 4 * (q % 2) + i % 4), axis=-1)
    return np.where((q // 2 == chosen)[:, :, None], places, -1)


def accumulator_coordinates(n: int) -> npt.NDArray[np.int64]:
    """Return which element of D each thread of the warpgroup holds in each accumulator register.

    Mathematically: value v of thread t is row g + 16 w + 8 ((v div 2) mod 2), column 2 q + v mod 2 + 8 (v div 4): a
    bijection onto 64 x n. An f16 accumulator holds values 2 i and 2 i + 1 in the low and high half of register i.

    Args:
        n: Columns of the instruction, 8..256 in steps of 8.

    Returns:
        int64[128, n/2, 2]: (row, column) of value v of thread t.

    Example:
        >>> accumulator_coordinates(16)[37, :5].tolist()
        [[17, 2], [17, 3], [25, 2], [25, 3], [17, 10]]
    """
    columns = checked_integer("n", n, "accumulator_coordinates")
    if columns not in FLOAT_N:
        because = f"n must be a multiple of 8 in 8..256, not {shown(columns)}"
        raise MalformedError(
            Diagnostic("LA359", "no such wgmma shape", ("accumulator_coordinates",), because, source=SOURCE)
        )
    places = np.asarray(_accumulator(columns).table(), dtype=np.int64).reshape(THREADS, columns // 2)
    return np.stack(np.divmod(places, columns), axis=-1)


def _accumulator(n: int) -> CuteLayout:
    return CuteLayout(((2, 2, n // 8), (4, 8), 4), ((1, 8 * n, 8), (2, n), 16 * n))


def register_layout(dtype: str) -> LinearLayout:
    """Return which element of A (for sparse A, stored element) each slot of each thread's four registers holds.

    Mathematically: ``register_coordinates`` as a linear layout: (register, lane, warp) to (row, k), where ``register``
    counts elements, low bits of a word first.

    Example:
        >>> str(register_layout("e4m3"))
        'F2[register=(0,1)(0,2)(8,0)(0,16), lane=(0,4)(0,8)(1,0)(2,0)(4,0), warp=(16,0)(32,0) -> row:64, k:32]'

    Laws: equals ``register_coordinates``.
    Source: PTX ISA 9.1 section 9.7.15.5.1.
    """
    bits = multiply(dtype).bits
    each = WORD_BITS // bits
    inside = [(0, 1 << place) for place in range(each.bit_length() - 1)]
    bases = {
        "register": [*inside, (8, 0), (0, 4 * each)],
        "lane": [(0, each), (0, 2 * each), (1, 0), (2, 0), (4, 0)],
        "warp": [(16, 0), (32, 0)],
    }
    return LinearLayout.from_bases(bases, {"row": 64, "k": 2 * A_WORDS * each})


def accumulator_layout(n: int) -> CuteLayout:
    """Return which element of D each thread holds in each value of its accumulator.

    Mathematically: (register, lane, warp) to ``row * n + column``, as ``accumulator_coordinates``; two values of an f16
    accumulator share a register.

    Args:
        n: Columns, 8..256 in steps of 8.

    Example:
        >>> print(accumulator_layout(24))
        ((2,2,3),(4,8),4):((1,192,8),(2,24),384)

    Laws: equals ``accumulator_coordinates``.
    Source: PTX ISA 9.1 section 9.7.15.5.1.
    """
    accumulator_coordinates(n)  # raises for an illegal N
    return _accumulator(n)
