"""Build linear layouts: one-axis maps, inferred sizes, the direct sum.

The direct sum is associative with unit ``empty()``, not commutative; it is injective (surjective) exactly when both
factors are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from layoutalg.f2.axes import as_names, field, fields, fields_check, flag, gather, log2, width
from layoutalg.f2.layout import Bases, LinearLayout, trusted
from layoutalg.f2.steps import linear, mapped
from layoutalg.ground import limits
from layoutalg.ground.check import refuse
from layoutalg.ground.errors import MalformedError


def empty() -> LinearLayout:
    """Return the layout without axes, from one point to one point; the unit of ``direct_sum``.

    Example:
        >>> str(empty())
        'F2[ -> ]'
    """
    return LinearLayout((), (), ())


def identity_1d(size: int, in_dim: str, out_dim: str) -> LinearLayout:
    """Return ``x -> x`` from one axis to another of the same size, a power of two.

    Example:
        >>> str(identity_1d(4, "lane", "col"))
        'F2[lane=(1)(2) -> col:4]'
    """
    return strided_1d(size, 1, in_dim, out_dim)


def strided_1d(size: int, stride: int, in_dim: str, out_dim: str) -> LinearLayout:
    """Return ``x -> stride * x`` onto an axis of size ``size * stride``, both powers of two.

    Example:
        >>> str(strided_1d(4, 2, "lane", "col"))
        'F2[lane=(2)(4) -> col:8]'
    """
    _named(in_dim, out_dim)
    bits, shift = log2(size, "size"), log2(stride, "stride")
    outputs = ((out_dim, width(bits + shift, "stride")),)
    return trusted(((in_dim, bits),), outputs, tuple(1 << bit + shift for bit in range(bits)), 0)


def zeros_1d(size: int, in_dim: str, out_dim: str, out_size: int = 1) -> LinearLayout:
    """Return ``x -> 0`` onto an axis of size ``out_size``; above 1 the layout is not surjective.

    Example:
        >>> str(zeros_1d(4, "warp", "col"))
        'F2[warp=(0)(0) -> col:1]'
    """
    _named(in_dim, out_dim)
    bits = log2(size, "size")
    return trusted(((in_dim, bits),), ((out_dim, log2(out_size, "out_size")),), (0,) * bits, 0)


def _named(in_dim: object, out_dim: object) -> None:
    fields_check.name(in_dim, "in_dim")
    fields_check.name(out_dim, "out_dim")


def from_bases_minimal(
    bases: Bases | Sequence[tuple[str, Sequence[Sequence[int]]]],
    out_names: Sequence[str],
    offset: Mapping[str, int] | Sequence[int] | None = None,
    *,
    require_surjective: bool = True,
) -> LinearLayout:
    """Return the layout with the given images of the input bits and the smallest output axes that fit.

    Args:
        bases: As for ``LinearLayout.from_bases``.
        offset: As for ``LinearLayout.from_bases``.
        require_surjective: Raise if some output is never reached.

    Raises: MalformedError: LA200. AdmissibilityError: LA245.

    Example:
        >>> from_bases_minimal({"i": [(1, 0), (0, 2), (0, 1)]}, ("row", "col")).out_dims
        {'row': 2, 'col': 4}
    """
    flag(require_surjective, "require_surjective")
    names = as_names(out_names, "out_names", ordered=True)
    try:
        wide = LinearLayout.from_bases(bases, [(name, 1 << 60) for name in names], offset)
    except MalformedError:  # unusually large, or invalid
        wide = LinearLayout.from_bases(bases, [(name, 1 << limits.F2_AXIS_BITS) for name in names], offset)
    used = reduce(or_, wide.columns, wide.constant)
    places = [(low, field(used, (low, bits)).bit_length()) for _, low, bits in fields(wide.out_axes)]
    outputs = tuple((name, bits) for name, (_, bits) in zip(names, places, strict=True))
    layout = mapped(wide, outputs, lambda value: gather(value, places))
    if require_surjective:
        check_surjective(layout)
    return layout


def check_surjective(layout: LinearLayout) -> None:
    """Raise if some output is never reached.

    Raises: AdmissibilityError: LA245.
    """
    missed = layout.missed()
    if missed is not None:
        because = f"rank {layout.rank} is less than the {layout.out_bits} output bits"
        raise refuse("LA245", "the linear layout is not surjective", because, {"missed": missed}, layout)


def direct_sum(inner: LinearLayout, outer: LinearLayout) -> LinearLayout:
    """Return ``inner * outer``: the inner layout repeated at the positions given by the outer one.

    Mathematically: the inner layout takes the low bits of every shared axis:
    ``(inner * outer)(x + size_in * y) = inner(x) + size_out * outer(y)`` axis by axis, where the sizes are those of the
    axes of ``inner`` (1 for axes it lacks). The order of the axes agrees with both layouts.

    Raises: AdmissibilityError: LA242. MalformedError: LA200, LA241.

    Example:
        >>> str(direct_sum(identity_1d(2, "reg", "col"), identity_1d(4, "reg", "col")))
        'F2[reg=(1)(2)(4) -> col:8]'

    Source: arXiv 2505.23819 (product of layouts), extended to affine parts.
    """
    return linear(inner, "inner") * linear(outer, "outer")
