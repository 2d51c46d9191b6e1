"""Read a text or value: its layout, and what it says about elements, sizes and memory.

Notation: ``tensor<64x32xf16, ...>``, ``!ttg.memdesc<64x32xf8E4M3FN, ...>``, ``ptr<f16, smem, ...>`` and
``!cute.memref<f16, ...>`` name the element type; ``smem_ptr[8b]`` and the ``elementBitWidth`` or ``element_bitwidth``
of Triton's ``nvmma_shared`` only its width. Everything else says nothing about the elements.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from layoutalg.cute.swizzle import ComposedLayout, Swizzle
from layoutalg.ground.errors import Diagnostic, LayoutError, MalformedError, shown
from layoutalg.ground.listed import listed
from layoutalg.notation import GLUON_AHEAD, parse_tile, takes_shape
from layoutalg.notation.printout import ELEMENT, Printout, read_printout
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE

if TYPE_CHECKING:
    from layoutalg.notation.ttgir import TensorType

POINTED = ("ptr", "memref")
"""One of these occurs in every printout that describes its elements."""
POINTER_BITS, SHOWN = 64, 60
_BYTE_SWIZZLE = re.compile(r"Sw<\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*,\s*(-?[0-9]{1,3})\s*,\s*byte\s*>(?=\s*o)")


@dataclass(frozen=True, slots=True)
class Written:
    """A layout and what its text says about it.

    Args:
        layout: The layout, with offsets in elements; None if only the rest was read.
        dtype: The element type as written, if any.
        bits: Element width, if the type or its width is written.
        shape: Tensor sizes, outermost first, if written separately from the layout.
        memory: ``"smem"``, ``"gmem"``, ``"rmem"`` or ``"tmem"``, if written.
        text: The shortened text, for messages; empty for a value.
    """

    layout: Any = None
    dtype: str | None = None
    bits: int | None = None
    shape: tuple[int, ...] | None = None
    memory: str | None = None
    text: str = ""


def read_written(value: object, shape: Any = None, *, known: Any = None, element_bytes: int | None = None) -> Written:
    """Return the given layout, and what its text says about it.

    Args:
        value: A text as for ``layoutalg.parse``; a type of ``layouts_of`` or a ``Printout``; an array of element
            offsets or nested lists of them; any other value is the layout itself.
        shape: Tensor sizes, outermost first, for texts without sizes, as for ``notation.parse_tile``.
        known: Sizes of another layout of the same tensor, likewise.
        element_bytes: Bytes of an element, to convert a swizzle on bytes before a layout of elements.

    Raises: MalformedError: LA802, and those of ``layoutalg.parse``. AdmissibilityError: LA111.

    Example:
        >>> found = read_written("Sw<3,4,3> o smem_ptr[8b](unset) o (_64,_128):(_128,_1)")
        >>> print(found.layout, found.bits, found.memory)
        Sw<3,4,3> o 0 o (64,128):(128,1) 8 smem
        >>> found = read_written("tensor<2xf16, #ttg.linear<{register = [[1]], lane = [], warp = [], block = []}>>")
        >>> found.dtype, found.bits, found.shape, found.memory
        ('f16', 16, (2,), 'rmem')
    """
    if isinstance(value, str):
        if not takes_shape(value) and any(word in value for word in POINTED):
            return _of_printout(read_printout(value), value)
        if element_bytes is not None:
            value = _BYTE_SWIZZLE.sub(lambda found: _recast(found, element_bytes), value)
        return replace(stated(value), layout=_single(parse_tile(value, shape, known)))
    if isinstance(value, Written):
        return value
    if isinstance(value, np.ndarray | list):
        return Written(listed(value))
    if isinstance(value, Printout):
        return _of_printout(value)
    return replace(stated(value), layout=value.layout()) if _is_type(value) else Written(_single(value))


def _single(value: Any) -> Any:
    """Return a value that is no tiled copy or matrix instruction, which has several layouts."""
    if type(value).__name__ != "PrintedTiling":  # by name, so as not to import its module
        return value
    names = ", ".join(f".layouts[{name!r}]" for name in value.layouts)
    because = f"it has several (thread, value) layouts: pass one of {names} of what layoutalg.parse returns"
    raise MalformedError(Diagnostic("LA802", "not a single layout", (str(value).partition("\n")[0],), because))


def is_written(value: object) -> bool:
    """Return whether a value is text or was read from text, unlike a bare layout."""
    return isinstance(value, str | Written | Printout) or _is_type(value)


def stated(value: object) -> Written:
    """Return what a text says about its layout, without building the layout; nothing for an unreadable text.

    Args:
        value: As for ``read_written``.

    Raises: MalformedError: LA710, if a text has types with different elements.

    Example:
        >>> stated("#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>").bits
        8
        >>> stated("(4,8):(8,1)").bits is None
        True
    """
    if isinstance(value, Written):
        return value
    if isinstance(value, Printout):
        return _of_printout(value)
    if not isinstance(value, str):
        return _of_type(value, value.text) if _is_type(value) else Written()
    if takes_shape(value):
        return _of_triton(value)
    if any(word in value for word in POINTED):
        with contextlib.suppress(LayoutError):
            return _of_printout(read_printout(value), value)
    return Written(text=shown(value, SHOWN))


def _is_type(value: object) -> TypeGuard[TensorType]:
    return type(value).__name__ == "TensorType"  # by name, so as not to import its module


def _of_printout(found: Printout, text: str = "") -> Written:
    return Written(found.layout, found.dtype, found.element_bits, None, found.space, shown(text, SHOWN) if text else "")


def _of_triton(text: str) -> Written:
    """Return what a Triton text says: its types, or its only attribute."""
    from layoutalg.notation.gluon import gluon_attribute
    from layoutalg.notation.ttg import GRAMMAR
    from layoutalg.notation.ttgir import found_in

    try:
        gluon = GLUON_AHEAD.match(text.lstrip())
        types, attribute = ((), gluon_attribute(text)) if gluon else found_in(text)
    except LayoutError:
        return Written(text=shown(text, SHOWN))
    names = list(dict.fromkeys(entry.dtype for entry in types))
    if len(names) > 1:
        raise GRAMMAR.error(text, f"its types have different elements, {' and '.join(names)}: name one type")
    if types:
        return _of_type(types[0], text)
    # other attributes say nothing about the elements
    bits = attribute.entries.get("elementBitWidth") if attribute and attribute.kind == "nvmma_shared" else None
    return Written(None, None, bits if isinstance(bits, int) else None, text=shown(text, SHOWN))


def _of_type(found: TensorType, text: str) -> Written:
    """Return what a type says; a pointer has 64 bits, and an i1 occupies a byte."""
    name: str | None = found.dtype
    width = ELEMENT.fullmatch(found.dtype)
    bits = int(width[1]) if width else None
    if found.dtype.startswith("!tt.ptr"):
        name, bits = None, POINTER_BITS
    elif found.dtype == "i1":
        name, bits = "bool", 8
    inside = "tmem" if "tensor_memory" in found.attribute.kind else "smem"
    memory = inside if "memdesc" in found.text else "rmem"
    return Written(None, name, bits, found.layout_shape, memory, shown(text, SHOWN))


def _recast(found: re.Match[str], element_bytes: int) -> str:
    bits, base, shift = map(int, found.groups())
    return str(Swizzle(bits, base, shift, "byte").recast_elements(element_bytes))


def unit_hint(layout: object, element_bits: int) -> str | None:
    """Return a hint if a layout's swizzle matches the hardware's only when it counts bytes; otherwise None.

    Mathematically: CuTe prints ``Sw<b,m,s>`` over ``smem_ptr`` for byte addresses. On elements of 2^w bytes that is
    ``Sw<b,m-w,s>``, which is what a layout of element offsets needs.

    Args:
        layout: A layout, whose last swizzle is checked; any other value gives None.
        element_bits: Element width.

    Example:
        >>> from layoutalg.notation import parse
        >>> unit_hint(parse("Sw<3,4,3> o 0 o (64,64):(64,1)"), 16)
        'Sw<3,4,3> counts elements here. Printed over smem_ptr it counts bytes (128B), on 16-bit elements Sw<3,3,3>'
        >>> unit_hint(parse("Sw<3,3,3> o 0 o (64,64):(64,1)"), 16), unit_hint(parse("(4,8):(8,1)"), 16)
        (None, None)
    """
    if not isinstance(layout, ComposedLayout) or element_bits < 8 or element_bits & (element_bits - 1):
        return None
    swizzle, width = layout.stages[0][0], element_bits.bit_length() - 4
    meant = _hardware_name(swizzle)
    if width == 0 or not swizzle.bits or meant is None or swizzle.base < width:
        return None
    if _hardware_name(swizzle.raised(width)) is not None:
        return None
    on_elements = Swizzle(swizzle.bits, swizzle.base - width, swizzle.shift)
    printed = f"Printed over smem_ptr it counts bytes ({meant})"
    return f"{swizzle} counts elements here. {printed}, on {element_bits}-bit elements {on_elements}"


def _hardware_name(swizzle: Swizzle) -> str | None:
    """Return the hardware's name of a swizzle on byte addresses, or None."""
    steps = tuple([(swizzle.base + bit, swizzle.base + bit + swizzle.shift) for bit in range(swizzle.bits)])
    return next((name for name, entry in SWIZZLE_TABLE.items() if entry.xor == steps and steps), None)
