"""Read a text or value: its layout, and what it says about elements, sizes and memory.

Notation: ``tensor<64x32xf16, ...>``, ``!ttg.memdesc<64x32xf8E4M3FN, ...>``, ``ptr<f16, smem, ...>`` and
``!cute.memref<f16, ...>`` name the element type; ``smem_ptr[8b]`` and the ``elementBitWidth`` or ``element_bitwidth``
of Triton's ``nvmma_shared`` only its width. Everything else says nothing about the elements.
"""

from __future__ import annotations

import contextlib
import functools
import re
import types
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from layoutalg.cute import CuteLayout
from layoutalg.cute.inttuple import product_each
from layoutalg.cute.swizzle import ComposedLayout, Swizzle
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, LayoutError, MalformedError, shown
from layoutalg.ground.layout import Layout, takes_offsets
from layoutalg.ground.listed import ListedLayout, listed
from layoutalg.notation import GLUON_AHEAD, MEMREF_AHEAD, parse_tile, takes_shape
from layoutalg.notation.printout import ELEMENT, TILED_AHEAD, Printout, read_printout
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE

if TYPE_CHECKING:
    from layoutalg.notation.ttgir import TensorType

POINTED = ("ptr", "memref")
"""One of these occurs in every printout that describes its elements."""
POINTER_BITS, SHOWN = 64, 60
FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial, np.ufunc)
"""Types of functions that are read as layouts."""
CHECK = Checker("LA992", "this value is no layout")
LIKE_LAYOUTS = ("CoordinateLayout", "Morphism", "PaddedShared", "PointSet", "Swizzle", "SymbolicLayout")
"""Other values that texts are read as; by name, so as not to import their modules."""
FORMS = (
    "a layout, its text, an array of element offsets, a function of coordinates with a shape, or an object with shape "
    "and strides"
)
_BYTE_SWIZZLE = re.compile(r"Sw<\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*,\s*(-?[0-9]{1,3})\s*,\s*byte\s*>(?=\s*o)")


@dataclass(frozen=True, slots=True)
class Written:
    """A layout and what its text says about it."""

    layout: Any = None  # the layout, with offsets in elements; None if only the rest was read
    dtype: str | None = None  # the element type as written, if any
    bits: int | None = None  # element width, if the type or its width is written
    shape: tuple[int, ...] | None = None  # tensor sizes, outermost first, if written separately from the layout
    memory: str | None = None  # ``"smem"``, ``"gmem"``, ``"rmem"`` or ``"tmem"``, if written
    text: str = ""  # the shortened text, for messages; empty for a value


def layout(
    value: object, shape: Sequence[int] | None = None, *, like: object = None, operand: str | None = None
) -> Any:
    """Return the layout given in any form.

    Args:
        value: A layout of any family or its text in any notation; integers indexed outermost dimension first (an array
            or nested lists), the element offsets of a tile; a function from coordinates, outermost first, to an
            element offset, which is evaluated at every point; a tensor or any object with ``shape`` and ``strides`` in
            elements.
        shape: Extents, outermost first, of a form that has none: a function, an affine map, a Triton attribute.
        like: A layout, in any form, whose extents serve if ``shape`` is None.
        operand: Which layout of a printed tiled copy or matrix instruction, as for ``operand_of``.

    Returns:
        A function or an affine map as strides, with one swizzle if needed, or a linear layout if one has all of its
        values; otherwise as a table.

    Raises: MalformedError: LA992, LA993, and those of ``layoutalg.parse``.

    Example:
        >>> print(layout(lambda i, j: 8 * i + (j ^ i), (8, 8)), layout("memref<4x8xf16, strided<[9, 1]>>"))
        Sw<3,0,3> o 0 o (8,8):(8,1) (4,8):(9,1)
        >>> print(layout([[0, 2], [1, 3]]))
        a table of 4 offsets over 2x2
    """
    value = value if operand is None else operand_of(value, operand)
    found = read_written(value, shape, known=like).layout
    if not isinstance(found, Layout) and type(found).__name__ not in LIKE_LAYOUTS:
        raise CHECK.malformed("value", f"must be {FORMS}", value)
    return found


def read_written(value: object, shape: Any = None, *, known: Any = None, element_bytes: int | None = None) -> Written:
    """Return the given layout, and what its text says about it.

    Args:
        value: As for ``layout``; also a type of ``layouts_of`` or a ``Printout``. Any other value is returned as it is.
        shape: Tensor sizes, outermost first, for forms without sizes.
        known: Another layout of the same tensor, or its sizes, likewise.
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
        plain = not takes_shape(value) and not MEMREF_AHEAD.match(value.lstrip())
        if plain and any(word in value for word in POINTED):
            return _of_printout(read_printout(value), value)
        if element_bytes is not None:
            value = _BYTE_SWIZZLE.sub(lambda found: _recast(found, element_bytes), value)
        sizes = tile_extents(known) if shape is None and takes_shape(value) else None
        parsed = parse_tile(value, shape, sizes)
        said = replace(stated(value), shape=parsed.tile) if _is_tiling(parsed) else stated(value)
        return replace(said, layout=_single(parsed))
    if isinstance(value, Written | Layout):
        return value if isinstance(value, Written) else Written(value)
    if isinstance(value, np.ndarray | list):
        return Written(listed(value))
    if isinstance(value, Printout):
        return _of_printout(value)
    if _is_type(value):
        return replace(stated(value), layout=value.layout())
    if isinstance(value, FUNCTIONS):
        from layoutalg.notation.given import of_function

        return Written(of_function(value, tile_extents(known) if shape is None else shape))
    return _of_tensor(value) or Written(_single(value))


def _of_tensor(value: object) -> Written | None:
    """Return the strides of a tensor and its type; None for any other value."""
    if type(value).__module__.startswith("layoutalg.") and type(value).__name__ != "Tensor":
        return None
    if getattr(value, "shape", None) is None and not hasattr(value, "__dlpack__"):
        return None
    from layoutalg.notation.given import of_strided

    found = of_strided(value)
    if found is None:
        return None
    width = ELEMENT.fullmatch(found[1] or "")
    return Written(found[0], found[1], int(width[1]) if width else None, text=f"the {type(value).__name__}")


def tile_extents(known: object) -> Any:
    """Return the extents of a layout in any form, outermost first; sizes as they are."""
    if known is None or isinstance(known, tuple):
        return known
    found = read_written(known).layout
    if isinstance(found, ListedLayout):
        return found.extents
    if isinstance(found, CuteLayout | ComposedLayout):
        return product_each(found.shape)
    return (
        tuple((found.out_dims if takes_offsets(found) else found.in_dims).values())
        if isinstance(found, Layout)
        else None
    )


def _single(value: Any) -> Any:
    """Return a value that is no tiled copy or matrix instruction with several layouts."""
    if not _is_tiling(value):
        return value
    first, *others = value.layouts.values()
    if all(other.size == first.size and np.array_equal(other.table(), first.table()) for other in others):
        return first
    names = ", ".join(map(repr, value.layouts))
    because = f"it has several (thread, value) layouts: name one in operand=, for layoutalg.layout or banks: {names}"
    raise MalformedError(Diagnostic("LA802", "not a single layout", (str(value).partition("\n")[0],), because))


def _is_tiling(value: object) -> bool:
    return type(value).__name__ == "PrintedTiling"  # by name, so as not to import its module


def operand_of(value: object, name: str) -> CuteLayout:
    """Return one (thread, value) layout of a printed tiled copy or matrix instruction, to flat coordinates of its tile.

    Args:
        value: The text, or what ``layoutalg.parse`` returns for it.
        name: ``"A"``, ``"B"`` or ``"C"``; of a copy ``"source"``, ``"destination"`` or ``"tiled"``.

    Raises: MalformedError: LA992, and those of ``layoutalg.parse``.

    Example:
        >>> print(operand_of('''MMA_Atom
        ...   Shape_MNK:  (_16,_8,_8)
        ...   LayoutA_TV: ((_4,_8),(_2,_2)):((_32,_1),(_16,_8))
        ...   LayoutB_TV: ((_4,_8),_2):((_16,_1),_8)
        ...   LayoutC_TV: ((_4,_8),(_2,_2)):((_32,_1),(_16,_8))''', "B"))
        ((4,8),(2,(1,1))):((16,1),(8,(0,0)))
    """
    found: Any = parse_tile(value) if isinstance(value, str) and TILED_AHEAD.match(value) else value
    if not _is_tiling(found):
        raise CHECK.malformed("operand", "must be omitted except for a printed tiled copy or matrix instruction", name)
    layouts: dict[str, CuteLayout] = found.layouts
    return layouts[CHECK.choice(name, "operand", tuple(layouts))]


def is_written(value: object) -> bool:
    """Return whether a value is text, was read from text, or is a function, unlike a bare layout."""
    return isinstance(value, (str, Written, Printout, *FUNCTIONS)) or _is_type(value)


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
        if _is_type(value):
            return _of_type(value, value.text)
        if _is_tiling(value):
            return _of_tiling(value, str(value))
        known = value is None or isinstance(value, (Layout, np.ndarray, list, tuple, *FUNCTIONS))
        return Written() if known else _of_tensor(value) or Written()
    if TILED_AHEAD.match(value):
        with contextlib.suppress(LayoutError):
            return _of_tiling(parse_tile(value), value)
    if takes_shape(value) and not MEMREF_AHEAD.match(value.lstrip()):
        return _of_triton(value)
    if MEMREF_AHEAD.match(value.lstrip()):
        return _of_memref(value)
    if any(word in value for word in POINTED):
        with contextlib.suppress(LayoutError):
            return _of_printout(read_printout(value), value)
    return Written(text=shown(value, SHOWN))


def _is_type(value: object) -> TypeGuard[TensorType]:
    return type(value).__name__ == "TensorType"  # by name, so as not to import its module


def _of_memref(text: str) -> Written:
    """Return what a memref type says about its elements; nothing for an affine map or an unreadable text."""
    from layoutalg.notation.memref import read_type

    try:
        _, dtype, more = read_type(text)
    except LayoutError:
        return Written(text=shown(text, SHOWN))
    width, shared = ELEMENT.fullmatch(dtype), {"3", "3 : i32", "#gpu.address_space<workgroup>"}
    memory = "smem" if shared & set(more) else None
    name, bits = ("bool", 8) if dtype == "i1" else (dtype, int(width[1])) if width else (None, None)
    return Written(None, name, bits, None, memory, shown(text, SHOWN))


def _of_tiling(found: Any, text: str) -> Written:
    """Return what a tiled copy says about its elements: a type in the DSL, ``16b`` in C++; nothing for others."""
    name = found.dtype or ""
    width, counted = ELEMENT.fullmatch(name), re.fullmatch(r"([0-9]{1,4})b", name)
    bits = int((counted or width)[1]) if counted or width else None  # type: ignore[index]
    head = text.strip().partition("\n")[0]
    return Written(None, None if counted else name or None, bits, text=shown(head, SHOWN))


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
