"""Between integer layouts and CuTe layouts: exact, or refused with the reason.

Main definitions: ``from_cute``, ``to_cute``.
"""

from __future__ import annotations

from layoutalg.cute.layout import CuteLayout
from layoutalg.ground.errors import Diagnostic, LayoutError, RepresentabilityError
from layoutalg.integer.forms import residue_form
from layoutalg.integer.layout import IntegerLayout, layout_or_refuse
from layoutalg.integer.matrix import malformed
from layoutalg.integer.reshape import reshape

FLAT = "i"


def from_cute(layout: CuteLayout, flat: bool = False, output: str = "offset") -> IntegerLayout:
    """Return a CuTe layout as an integer layout on its digits, or on its 1-D coordinate. Elements.

    Mathematically: the axes ``c0, c1, ...`` are the leaves of the shape, fastest first, so the flat indices of both
    agree. With ``flat`` the only axis is ``i``, the 1-D coordinate.

    Raises: RepresentabilityError: LA732.

    Example:
        >>> print(from_cute(CuteLayout(((2, 2), 3), ((1, 16), 2))))
        Z[c0:2=(1), c1:2=(16), c2:3=(2) -> offset]
        >>> print(from_cute(CuteLayout((4, 3), (2, 8)), flat=True))
        Z[i:12=(2) -> offset]
    """
    if not isinstance(layout, CuteLayout):
        raise malformed("layout", "must be a CuteLayout", layout, "LA738")
    digits = IntegerLayout.from_strides(
        [(f"c{place}", extent) for place, (extent, _) in enumerate(layout.flat)],
        [stride for _, stride in layout.flat],
        output=output,
    )
    return reshape(digits, [(FLAT, layout.size)]) if flat else digits


def to_cute(layout: IntegerLayout) -> CuteLayout:
    """Return an integer layout as a CuTe layout with one mode per axis; the flat indices of both agree. Elements.

    Raises: RepresentabilityError: LA738.

    Example:
        >>> print(to_cute(IntegerLayout.from_strides({"i": 3, "j": 5}, (5, 1))))
        (3,5):(5,1)
    """
    where = (str(layout_or_refuse(layout)),)
    if len(layout.outputs) != 1:
        raise _refused(where, f"a CuTe layout has one output, not {len(layout.outputs)}", None)
    m = layout.moduli[0]
    form = residue_form(layout.matrix[0], layout.offset[0], m, layout.extents)
    if form is None:
        raise _refused(where, f"the output wraps modulo {m}", {"modulus": m})
    row, constant = form
    if constant and layout.size:
        raise _refused(where, f"a CuTe layout is 0 at the origin, this one is {constant}", {"value": constant})
    try:
        if len(layout.inputs) == 1:
            return CuteLayout(layout.extents[0], row[0])
        return CuteLayout(layout.extents, row)
    except LayoutError as error:
        raise _refused(where, error.diagnostic.because or error.diagnostic.what, None) from error


def _refused(where: tuple[str, ...], because: str, witness: dict[str, object] | None) -> RepresentabilityError:
    return RepresentabilityError(
        Diagnostic(
            code="LA738", what="the integer layout is not a CuTe layout", where=where, because=because, witness=witness
        )
    )
