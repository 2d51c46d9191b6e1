"""Left and right inverses of CuTe layouts.

Main definitions: ``left_inverse``, ``right_inverse``.

Main statements: the strides of a layout onto [0, n) form the chain 1, s_1, s_1 s_2, ... in some order of its modes;
reading the chain back, with each mode's weight in the 1-D coordinate as stride, inverts it.

References: J. Cecka, arXiv:2603.02298; CuTe ``left_inverse``, ``right_inverse``.
"""

from __future__ import annotations

from layoutalg.cute import radix
from layoutalg.cute.algebra import from_flat
from layoutalg.cute.complement import divisible_chain
from layoutalg.cute.layout import CuteLayout
from layoutalg.errors import AdmissibilityError, Diagnostic


def right_inverse(layout: CuteLayout) -> CuteLayout:
    """Return R with layout(R(i)) = i for all i < size(R).

    Mathematically: a section of L over [0, size(R)), found by following the strides 1, s, s t, ... through the modes;
    modes that do not continue the chain are left out, so R may be as small as ``1:0``.

    Args:
        layout: Any layout that is not empty; stride-0 and negative modes are left out. Elements.

    Returns:
        Coalesced layout from offsets to 1-D coordinates.

    Raises:
        AdmissibilityError: LA131, the layout is empty.

    Complexity: O(k log k) for k modes.

    Example:
        >>> print(right_inverse(CuteLayout((4, 8), (8, 1))))
        (8,4):(4,1)
        >>> print(right_inverse(CuteLayout(4, 2)))
        1:0

    Laws: composition(L, R) is the identity on [0, size(R)).
    Source: CuTe ``right_inverse``.
    """
    if layout.size == 0:
        raise AdmissibilityError(
            Diagnostic(
                code="LA131",
                what="the layout is empty",
                where=(f"right_inverse({layout})",),
                because="an empty layout does not even reach offset 0",
            )
        )
    chain: dict[int, tuple[int, int]] = {}
    weight = 1
    for extent, stride in radix.merge(layout.flat):
        if stride > 0:
            chain.setdefault(stride, (extent, weight))
        weight *= extent
    digits: list[tuple[int, int]] = []
    current = 1
    while current in chain:
        extent, weight = chain[current]
        digits.append((extent, weight))
        current *= extent
    return from_flat(radix.merge(tuple(digits)))


def left_inverse(layout: CuteLayout) -> CuteLayout:
    """Return R with R(layout(i)) = i where the layout is injective, and layout(R(layout(i))) = layout(i) always.

    Mathematically: a retraction of L. The strides must divide one another in turn; rows may be padded by any amount.
    Offsets that L leaves out get some value, in whole gaps that of the gap's first offset.

    Args:
        layout: Strides >= 0; once stride-0 modes are dropped, each stride is a multiple of the one before it and at
            least its stride times extent. Elements.

    Returns:
        Coalesced layout from offsets to 1-D coordinates, defined on at least [0, cosize).

    Raises:
        AdmissibilityError: LA131, empty; LA132, a negative stride; LA133, modes overlap, with two coordinates of equal
            offset; LA134, the strides form no divisible chain, with the two modes.

    Complexity: O(k log k) for k modes.

    Example:
        >>> print(left_inverse(CuteLayout((4, 8), (8, 1))))
        (8,4):(4,1)
        >>> print(left_inverse(CuteLayout(4, 2)))
        (2,4):(0,1)
        >>> print(left_inverse(CuteLayout((8, 16), (1, 12))))
        (12,16):(1,8)

    Laws: composition(R, L) is the identity on L's domain where L is injective.
    Source: CuTe ``left_inverse``, which refuses the padded case.
    """
    digits: list[tuple[int, int]] = []
    end, last = 1, (1, 1, 0)  # where the digits so far end, and the mode that wrote the last of them
    for mode in divisible_chain(layout, f"left_inverse({layout})", padded=True):
        extent, stride, weight = mode
        if stride % end:
            digits[-1] = (stride // last[1], last[2])  # padding: let the digit before run through the gap
        else:
            digits.append((stride // end, 0))
        digits.append((extent, weight))
        end, last = extent * stride, mode
    return from_flat(radix.merge(tuple(digits)))
