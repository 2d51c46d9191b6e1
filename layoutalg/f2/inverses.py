"""One-sided inverses of linear layouts, and redundant input bits.

A surjective layout has right inverses, an injective one left inverses; if both exist, they equal
``LinearLayout.inverse``.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.f2 import matrix
from layoutalg.f2.axes import unpack
from layoutalg.f2.build import check_surjective
from layoutalg.f2.layout import LinearLayout, eliminated, trusted
from layoutalg.f2.solutions import solve
from layoutalg.f2.steps import linear
from layoutalg.ground.check import refuse


def right_inverse(layout: LinearLayout, objective: str | Sequence[str] = "smallest") -> LinearLayout:
    """Return R with ``layout @ R == identity``, for a surjective layout; ``objective`` as in ``SolutionSet.choose``.

    Raises: AdmissibilityError: LA245.

    Example:
        >>> str(right_inverse(LinearLayout.from_bases({"i": [(1,), (1,), (2,)]}, {"o": 4})))
        'F2[o=(1)(4) -> i:8]'
    """
    linear(layout, "layout")
    check_surjective(layout)
    bits = layout.out_bits
    one = trusted(layout.out_axes, layout.out_axes, tuple(1 << bit for bit in range(bits)), 0)
    return solve(layout, one).choose(objective)


def left_inverse(layout: LinearLayout) -> LinearLayout:
    """Return L with ``L @ layout == identity``, for an injective layout.

    Mathematically: L inverts the layout on its image and maps the unit vectors outside the pivot rows to 0.

    Raises: AdmissibilityError: LA246.

    Example:
        >>> str(left_inverse(LinearLayout.from_bases({"i": [(2,)]}, {"o": 4})))
        'F2[o=(0)(1) -> i:2]'
    """
    linear(layout, "layout")
    reduced = eliminated(layout.columns)
    if reduced.null:
        because = f"rank {reduced.rank} is less than the {layout.in_bits} input bits"
        witness = {"kernel": unpack(reduced.null[0], layout.in_axes)}
        raise refuse("LA246", "the linear layout is not injective", because, witness, layout)
    columns = tuple(reduced.reduce(1 << bit)[1] for bit in range(layout.out_bits))
    return trusted(layout.out_axes, layout.in_axes, columns, matrix.apply(columns, layout.constant))


def free_variable_masks(layout: LinearLayout) -> dict[str, int]:
    """Return the redundant bits per input axis: with them at 0 the layout takes the same values, once each.

    Mathematically: bit j is redundant exactly when column j depends linearly on the columns before it.

    Example:
        >>> free_variable_masks(LinearLayout.from_bases({"reg": [(1,), (1,)], "lane": [(2,)]}, {"o": 4}))
        {'reg': 2, 'lane': 0}
    """
    linear(layout, "layout")
    packed = sum(1 << null.bit_length() - 1 for null in eliminated(layout.columns).null)
    return unpack(packed, layout.in_axes)
