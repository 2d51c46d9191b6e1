"""Write values in the notations of CuTe, Triton, MLIR and ISL.

Notation: ``cute_cpp`` writes every number as static, ``_128``, as CuTe C++ prints ``Int<128>``; ``cute_type`` is the
C++ type itself; ``cute_dsl`` is what the Python DSL prints. Values of other families are first converted by
``convert.to_cute``, to the same function of the flat coordinate. Units: elements; with ``element_bits``, swizzles act
on byte addresses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from layoutalg import convert
from layoutalg.cute import ComposedLayout, CoordinateLayout, CuteLayout, Swizzle
from layoutalg.cute.coordinates import Basis
from layoutalg.cute.inttuple import product_each
from layoutalg.cute.symbolic import SymbolicLayout
from layoutalg.f2 import LinearLayout, left_inverse
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.ground.layout import Layout
from layoutalg.ground.polynomial import Polynomial
from layoutalg.notation.memref import attribute
from layoutalg.notation.triton import to_attribute, to_gluon
from layoutalg.notation.ttg import shared_attribute
from layoutalg.notation.written import tile_extents
from layoutalg.piecewise import PiecewiseLayout, PointSet
from layoutalg.targets.layouts.padding import PaddedShared

FORMS = ("cute_cpp", "cute_type", "cute_dsl", "ttg", "gluon", "mlir", "isl")
CHECK = Checker("LA195", "invalid argument to to_text()")


def to_text(value: object, form: str, element_bits: int | None = None) -> str:
    """Return ``value`` exactly in the notation ``form``, or refuse; the ``to_text`` method of every layout calls this.

    Args:
        value: A layout, a swizzle, a padded or symbolic layout, a point set.
        form: One of ``FORMS``. ``"ttg"`` writes a shared layout, from coordinates to offsets, as ``swizzled_shared`` or
            ``nvmma_shared`` if it is exactly one, otherwise as ``shared_linear``. ``"mlir"`` writes the layout of a
            ``memref``: ``strided`` if every dimension has one stride, otherwise an ``affine_map``.
        element_bits: Element width. CuTe forms: writes the swizzle on byte addresses, with a pointer.
            ``"ttg"``: prefers ``nvmma_shared`` of this width.

    Raises: MalformedError: LA195. RepresentabilityError: LA196, LA711, and those of ``layoutalg.convert``.

    Example:
        >>> to_text(CuteLayout((128, 64), (64, 1)), "cute_type")
        'Layout<Shape<_128,_64>,Stride<_64,_1>>'
        >>> to_text(CuteLayout((4, 8), (8, 1)), "isl")
        '{ [c0, c1] -> [(8c0 + c1)] : 0 <= c0 <= 3 and 0 <= c1 <= 7 }'
    """
    CHECK.choice(form, "form", FORMS)
    if element_bits is not None:
        if form not in ("cute_cpp", "cute_type", "cute_dsl", "ttg"):
            raise CHECK.malformed("element_bits", "must be omitted except for the CuTe forms and ttg", element_bits)
        CHECK.integer(element_bits, "element_bits", 1, 1 << 12)
    if form == "isl" and isinstance(value, PointSet):
        return value.text
    if form in ("isl", "mlir") and not isinstance(value, PointSet):
        found: PiecewiseLayout = (
            value.to_piecewise() if isinstance(value, PaddedShared) else convert.to_piecewise(value)
        )
        return str(found.text) if form == "isl" else _mlir(value, found)
    if form in ("ttg", "gluon"):
        return _triton(value, form, element_bits)
    if isinstance(value, PointSet):
        _refuse(value, form, "it is a point set", "isl")
    if isinstance(value, SymbolicLayout):
        return _symbolic(value, form)
    if isinstance(value, CoordinateLayout):
        return _coordinates(value, form)
    writer = _CUTE[form]
    if isinstance(value, Swizzle):
        if value.unit == "byte":
            _refuse(value, form, "CuTe prints no unit", "str")
        return writer.swizzle(_on_bytes(value, element_bits))
    layout = value if isinstance(value, (CuteLayout, ComposedLayout)) else convert.to_cute(value)
    if isinstance(layout, CuteLayout):
        return writer.layout(layout)
    return _composed(layout, writer, element_bits, form)


class _Printed:
    """CuTe C++ output."""

    def number(self, value: int) -> str:
        return f"_{value}"

    def nest(self, value: Any, word: str = "") -> str:
        del word  # used only by C++ types, which name each list
        if not isinstance(value, tuple):
            return value if isinstance(value, str) else self.number(value)
        return f"({','.join([self.nest(entry) for entry in value])})"

    def layout(self, layout: CuteLayout) -> str:
        return f"{self.nest(layout.shape)}:{self.nest(layout.stride)}"

    def swizzle(self, swizzle: Swizzle) -> str:
        return f"Sw<{swizzle.bits},{swizzle.base},{swizzle.shift}>"

    def flag(self, bits: int) -> str:
        return f"smem_ptr[{bits}b](unset)"

    def composed(self, swizzle: Swizzle, offset: str, inner: str) -> str:
        return f"{self.swizzle(swizzle)} o {offset} o {inner}"


class _Dsl(_Printed):
    """CuTe Python DSL output."""

    def number(self, value: int) -> str:
        return str(value)

    def swizzle(self, swizzle: Swizzle) -> str:
        return f"S<{swizzle.bits},{swizzle.base},{swizzle.shift}>"


class _Type(_Printed):
    """A C++ type; CuTe defines the alias ``_128`` of ``Int<128>`` only for some numbers."""

    def number(self, value: int) -> str:
        return f"_{value}" if value in _NAMED else f"Int<{value}>"

    def nest(self, value: Any, word: str = "Shape") -> str:
        if not isinstance(value, tuple):
            return self.number(value)
        return f"{word}<{','.join([self.nest(entry, word) for entry in value])}>"

    def layout(self, layout: CuteLayout) -> str:
        return f"Layout<{self.nest(layout.shape)},{self.nest(layout.stride, 'Stride')}>"

    def swizzle(self, swizzle: Swizzle) -> str:
        return f"Swizzle<{swizzle.bits},{swizzle.base},{swizzle.shift}>"

    def flag(self, bits: int) -> str:
        return f"smem_ptr_flag_bits<{bits}>"

    def composed(self, swizzle: Swizzle, offset: str, inner: str) -> str:
        return f"ComposedLayout<{self.swizzle(swizzle)},{offset},{inner}>"


_NAMED = frozenset([*range(11), *[1 << bit for bit in range(4, 20)]])
"""Numbers N for which CuTe defines ``_N``."""
_CUTE: Mapping[str, _Printed] = {"cute_cpp": _Printed(), "cute_dsl": _Dsl(), "cute_type": _Type()}


def _on_bytes(swizzle: Swizzle, element_bits: int | None) -> Swizzle:
    """Convert a swizzle on elements to byte addresses; without a width, return it unchanged."""
    if element_bits is None or not swizzle.bits:
        return swizzle
    base = swizzle.base + element_bits.bit_length() - 4
    if element_bits & (element_bits - 1) or base < 0:
        _refuse(
            swizzle,
            "a pointer's swizzle",
            f"it does not move whole bytes with {element_bits}-bit elements",
            "cute_dsl",
        )
    return Swizzle(swizzle.bits, base, swizzle.shift)


def _composed(layout: ComposedLayout, writer: _Printed, element_bits: int | None, form: str) -> str:
    text = writer.layout(layout.base)
    if element_bits is not None:
        (swizzle, offset), *more = layout.stages
        if more or offset:
            because = "a pointer has one swizzle and no offset: omit element_bits"
            _refuse(layout, f"{form} with element_bits", because, form)
        flag, moved = writer.flag(element_bits), _on_bytes(swizzle, element_bits)
        if form != "cute_dsl":
            return writer.composed(moved, flag, text)
        because = "the DSL prints an element type there, not a width"
        _refuse(layout, f"{form} with element_bits", because, "cute_cpp")
    for swizzle, offset in reversed(layout.stages):
        text = writer.composed(swizzle, writer.number(offset), text)
    return text


def _coordinates(layout: CoordinateLayout, form: str) -> str:
    if form == "cute_type":
        _refuse(layout, form, "its strides are basis elements", "cute_cpp")
    writer = _CUTE[form]

    def spelt(stride: Any) -> Any:
        if isinstance(stride, tuple):
            return tuple([spelt(entry) for entry in stride])
        return _basis(stride, writer, layout, form)

    text = f"{writer.nest(layout.shape)}:{writer.nest(spelt(layout.stride))}"
    if CoordinateLayout(layout.shape, layout.stride).profile != layout.profile or not any(
        stride.terms for _, stride in layout.flat
    ):
        _refuse(layout, form, "CuTe prints no profile of the values, and the strides do not determine it", "str")
    return text


def _basis(stride: Basis, writer: _Printed, layout: CoordinateLayout, form: str) -> str:
    """Return a stride as CuTe prints it: the factor, then the path from the leaf up."""
    if len(stride.terms) > 1:
        _refuse(layout, form, f"{stride} is a sum of basis elements", "str")
    if not stride.terms:
        return writer.number(0)
    path, scale = stride.terms[0]
    if not path:
        _refuse(layout, form, f"{stride} mixes a number with coordinates", "str")
    return writer.number(scale) + "".join([f"@{step}" for step in reversed(path)])


def _symbolic(layout: SymbolicLayout, form: str) -> str:
    """Return a layout with ``?`` for each unknown number; names that carry more meaning are refused."""
    if form != "cute_dsl":
        _refuse(layout, form, "static numbers have no names", "cute_dsl")
    if layout.open_conditions:
        _refuse(layout, form, f"it is valid only if {layout.open_conditions[0]}", "str")
    divisors: dict[str, int] = {}
    for condition in layout.assumptions.conditions:
        found = re.fullmatch(r"([A-Za-z_]\w*) % (\d+) == 0", str(condition))
        if found is None or found[1] in divisors:
            _refuse(layout, form, f"the DSL cannot print the condition {condition}", "str")
        divisors[found[1]] = int(found[2])
    used: set[str] = set()

    def spelt(value: Any, stride: bool) -> Any:
        if isinstance(value, tuple):
            return tuple([spelt(entry, stride) for entry in value])
        return unknown(value, stride)

    def unknown(value: Polynomial, stride: bool) -> Any:
        number, name = value.as_int(), str(value)
        if number is not None:
            return number
        if not name.isidentifier() or name in used or stride != (name in layout.assumptions.integers):
            because = f"each ? is independent, an extent >= 1 or a stride of any sign; {name} says more"
            _refuse(layout, form, because, "str")
        used.add(name)
        return f"?{{div={divisors[name]}}}" if name in divisors else "?"

    writer = _CUTE[form]
    text = f"{writer.nest(spelt(layout.shape, False))}:{writer.nest(spelt(layout.stride, True))}"
    if set(divisors) - used or set(layout.assumptions.integers) - used:
        _refuse(layout, form, "it has assumptions about names that it does not use", "str")
    return text


def _triton(value: Any, form: str, element_bits: int | None) -> str:
    if isinstance(value, PaddedShared):
        return str(value) if form == "ttg" and not value.linear.constant else _padded(value, form)
    if not isinstance(value, LinearLayout):
        value = _from_offsets(value, form)
        if form == "ttg" and (found := shared_attribute(value, element_bits)) is not None:
            return found
    writer: Callable[[LinearLayout], str] = to_attribute if form == "ttg" else to_gluon
    return writer(value)


def _from_offsets(value: Any, form: str) -> LinearLayout:
    """Return a layout from coordinates to offsets as Triton has it, from (offset, block) to dim0, dim1, ..."""
    if not isinstance(value, Layout) or isinstance(value, SymbolicLayout | CoordinateLayout):
        _refuse(value, form, "Triton's layouts are linear, of registers or from the coordinates of a tensor", "str")
    try:
        layout = value if isinstance(value, CuteLayout | ComposedLayout) else convert.to_cute(value)
        found = convert.to_linear(layout)
    except RepresentabilityError as error:
        _refuse(value, form, f"Triton's shared layouts are linear over F2: {error.diagnostic.because}", "str")
    shape = product_each(layout.shape)
    if found.constant or shape == () or not found.rank == found.in_bits == found.out_bits:
        because = "Triton's linear shared layouts have dimensions, begin at offset 0 and use every offset once"
        _refuse(value, form, because, "str")
    sizes = shape if isinstance(shape, tuple) else (shape,)
    images = [column for (column,) in left_inverse(found).bases[next(iter(found.out_dims))]]
    offsets = [tuple(int(at) for at in np.unravel_index(image, sizes, order="F")) for image in images]
    return LinearLayout.from_bases({"offset": offsets, "block": []}, {f"dim{i}": size for i, size in enumerate(sizes)})


def _padded(value: PaddedShared, form: str) -> str:
    bases = value.linear.bases
    if value.linear.constant or bases.get("block"):
        _refuse(value, form, "it has a constant part or several blocks", "ttg")
    pairs, offsets = [list(pair) for pair in value.pairs], [list(image) for image in bases["offset"]]
    shape = list(value.linear.out_dims.values())
    return (
        f"gl.PaddedSharedLayout(interval_padding_pairs={pairs}, offset_bases={offsets}, cga_layout=[], shape={shape})"
    )


def _mlir(value: object, found: PiecewiseLayout) -> str:
    if isinstance(value, Swizzle):
        _refuse(value, "mlir", "it moves all integers and has no dimensions: apply it to a layout", "str")
    if not found.is_total:
        _refuse(value, "mlir", "it is not defined on a whole box of known extents", "isl")
    if (count := len(found.value.pieces)) != 1:
        _refuse(value, "mlir", f"a result of an affine map is one expression; this function has {count} pieces", "isl")
    return attribute(found, tile_extents(value) or tuple(found.in_dims.values()))


def _refuse(value: object, form: str, because: str, other: str) -> NoReturn:
    what = f"{form} cannot represent this value"
    instead = f"use {'str(value)' if other == 'str' else other} instead"
    raise RepresentabilityError(Diagnostic("LA196", what, (str(value)[:200],), f"{because}; {instead}"))
