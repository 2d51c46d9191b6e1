"""Element types by their CuTe, Triton, PyTorch, NumPy, PTX and MLIR names.

TMA has no signed 8- and 16-bit types and no 8-bit floats; they are copied as unsigned integers of the same width, as in
CUTLASS. ``float``, ``int`` and ``long`` are refused because their width depends on the library, and so are ``f2``,
``f4`` and ``f8``, which count bytes in NumPy and bits elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from layoutalg.ground.check import Checker
from layoutalg.ground.document import Reader
from layoutalg.ground.errors import MalformedError, shown
from layoutalg.ground.record import Checked
from layoutalg.notation.written import stated
from layoutalg.targets.nvidia.tensormap import DTYPES, PLAIN_DTYPES
from layoutalg.targets.nvidia.tensormap.fields import name_of_enumerator

CHECK = Checker("LA375", "invalid tensor")


def read_choice(node: Reader, field: str, choices: Sequence[str]) -> str:
    """Read a name of a map's field, or the enumerator of ``cuda.h`` for it.

    Example:
        >>> read_choice(Reader("CU_TENSOR_MAP_SWIZZLE_64B"), "swizzle", ("NONE", "64B"))
        '64B'
    """
    return Reader(name_of_enumerator(field, node.value), node.pointer).text(choices)


@dataclass(frozen=True, slots=True)
class ElementType(Checked, code="LA374"):
    """An element type and the TensorMap type that carries it."""

    name: str  # canonical name: a TensorMap type, or ``e4m3``, ``s8`` and the like
    bits: int  # bits of an element
    tensormap: str | None  # the TensorMap type that copies it; None if none copies single elements
    note: str = ""  # why it is copied under another name, or cannot be copied

    @property
    def operand(self) -> str:
        """The name of the type as an operand of matrix instructions, which read f32 as tf32.

        Example:
            >>> element_type("float").operand, element_type("torch.float32").operand
            ('float', 'tf32')
        """
        return {"f32": "tf32", "tf32_ftz": "tf32", "i1": "b1"}.get(self.name, self.name)


_PACKED = "two elements share a byte: describe bytes (u8; halve the innermost extent and the other strides)"
_NOTES = {
    "e4m3": "a TensorMap copies bytes (u8); wgmma and mma have a type e4m3",
    "e5m2": "a TensorMap copies bytes (u8); wgmma and mma have a type e5m2",
    "float8": "a TensorMap copies bytes (u8)",
    "scale": "a TensorMap copies bytes (u8); mma accepts it as a scale",
    "s8": "a TensorMap copies bytes (u8); wgmma and mma have a type s8",
    "bool": "a TensorMap copies bytes (u8)",
    "s16": "a TensorMap copies 16 bits (u16)",
    "fp4": f"no TensorMap type copies single 4-bit elements: {_PACKED}, or use a TensorMap of u4_align8 or u4_align16",
    "fp6": "no TensorMap type copies single 6-bit elements (e2m3 or e3m2): use a TensorMap of u6_align16",
    "int4": f"no TensorMap type copies single 4-bit elements: {_PACKED}",
    "int2": "no TensorMap type copies single 2-bit elements: describe bytes, four elements each",
    "bit": "no TensorMap type copies single bits: describe bytes",
    "complex": "no TensorMap type is complex: describe real and imaginary parts, with a last dimension of 2",
    "float128": "no TensorMap type has 128 bits: describe u64, with a last dimension of 2",
    "fp8": "8 bits are e4m3 or e5m2 in these libraries: write which",
    "ambiguous": "the width depends on the library: write f32, f64, s32 or s64",
    "numpy": "f2, f4 and f8 count bytes in NumPy and bits elsewhere: write '<f4' or f32, e4m3 or e5m2",
    "pair": "this names a register of two elements: name the element",
}
_TYPES: tuple[tuple[str, int, str | None, str, str], ...] = (
    ("u8", 8, "u8", "", "uint8 byte b8 bits8 uchar unsignedchar float4e2m1fnx2"),
    ("s8", 8, "u8", "s8", "int8 i8 char signedchar"),
    ("bool", 8, "u8", "bool", "boolean"),
    (
        "e4m3",
        8,
        "u8",
        "e4m3",
        "fp8e4m3 float8e4m3fn float8e4m3 f8e4m3fn f8e4m3 floate4m3 fp8e4nv float8e4nv nvfp8e4m3 fp8e4m3fn",
    ),
    ("e5m2", 8, "u8", "e5m2", "fp8e5m2 float8e5m2 f8e5m2 floate5m2 fp8e5 float8e5 nvfp8e5m2"),
    ("e4m3fnuz", 8, "u8", "float8", "float8e4m3fnuz f8e4m3fnuz floate4m3fnuz fp8e4m3fnuz fp8e4b8 float8e4b8"),
    ("e5m2fnuz", 8, "u8", "float8", "float8e5m2fnuz f8e5m2fnuz floate5m2fnuz fp8e5m2fnuz fp8e5b16 float8e5b16"),
    ("e4m3b11fnuz", 8, "u8", "float8", "float8e4m3b11fnuz f8e4m3b11fnuz"),
    ("e4b15", 8, "u8", "float8", "fp8e4b15 float8e4b15"),
    ("e3m4", 8, "u8", "float8", "float8e3m4 f8e3m4"),
    ("ue4m3", 8, "u8", "scale", "floatue4m3"),
    ("ue8m0", 8, "u8", "scale", "e8m0 float8e8m0fnu float8e8m0 f8e8m0fnu floatue8m0 nvfp8e8m0"),
    ("u16", 16, "u16", "", "uint16 b16 ushort unsignedshort"),
    ("s16", 16, "u16", "s16", "int16 i16 short"),
    ("u32", 32, "u32", "", "uint32 b32"),
    ("s32", 32, "s32", "", "int32 i32"),
    ("u64", 64, "u64", "", "uint64 b64"),
    ("s64", 64, "s64", "", "int64 i64"),
    ("f16", 16, "f16", "", "float16 half fp16 nvhalf"),
    ("bf16", 16, "bf16", "", "bfloat16 nvbfloat16"),
    ("f32", 32, "f32", "", "float32 fp32 single"),
    ("f64", 64, "f64", "", "float64 double fp64"),
    ("tf32", 32, "tf32", "", "tfloat32 xf32"),
    ("e2m1", 4, None, "fp4", "fp4 fp4e2m1 float4e2m1fn float4e2m1 f4e2m1fn f4e2m1 floate2m1 nvfp4 mxfp4 nvfp4e2m1"),
    ("e2m3", 6, None, "fp6", "fp6e2m3 float6e2m3fn float6e2m3 f6e2m3fn f6e2m3 floate2m3 nvfp6e2m3"),
    ("e3m2", 6, None, "fp6", "fp6e3m2 float6e3m2fn float6e3m2 f6e3m2fn f6e3m2 floate3m2 nvfp6e3m2"),
    ("fp6", 6, None, "fp6", "float6 mxfp6"),
    ("s4", 4, None, "int4", "int4 i4 int4b"),
    ("u4", 4, None, "int4", "uint4 uint4b b4"),
    ("s2", 2, None, "int2", "int2 i2 int2b"),
    ("u2", 2, None, "int2", "uint2 uint2b b2"),
    ("i1", 1, None, "bit", "int1 b1 uint1 uint1b int1b bit pred"),
    ("complex", 0, None, "complex", "complex64 complex128 complex32 cfloat cdouble chalf"),
    ("f128", 128, None, "float128", "float128 longdouble"),
    ("s128", 128, None, "float128", "int128 i128"),
    ("u128", 128, None, "float128", "uint128 b128"),
    ("float", 0, None, "ambiguous", "int long unsigned uint ulong"),
    ("fp8", 0, None, "fp8", "float8"),
    ("f8", 0, None, "numpy", "f4 f2"),
    ("f16x2", 0, None, "pair", "bf16x2 half2 nvbfloat162 e4m3x2 e5m2x2 e2m1x2 e2m3x2 e3m2x2 u16x2 s16x2 f32x2"),
)
_KINDS = {
    other: ElementType(name, bits, carried, _NOTES.get(note, ""))
    for name, bits, carried, note, others in _TYPES
    for other in (name, *others.split())
}
_OF_TENSORMAP = {name: ElementType(name, entry.bits, name) for name, entry in DTYPES.items() if name in PLAIN_DTYPES}
_NUMPY = re.compile(r"[<=|]([fiub])([1248])")
_NUMPY_KINDS = {"f": "f", "i": "s", "u": "u", "b": "bool"}


def element_type(value: object) -> ElementType:
    """Return an element type.

    Args:
        value: A name or a type object of NumPy (``np.int8``, ``"<f4"``), PyTorch (``torch.float8_e4m3fn``), CuTe
            (``cutlass::half_t``, ``Float8E4M3FN``), Triton (``fp8e4nv``, ``tl.bfloat16``), PTX (``.e5m2``, ``.b16``) or
            MLIR (``f8E4M3FN``, ``i8``), or of a TensorMap, also by its enumerator in ``cuda.h``; the digits of a width
            stand for the type in ``WIDTHS``.

    Example:
        >>> [element_type(name).name for name in ("f8E4M3FN", "torch.float8_e5m2", ".b16", "cutlass::int8_t", "<f4")]
        ['e4m3', 'e5m2', 'u16', 's8', 'f32']
        >>> element_type("e4m3").tensormap, element_type("fp4").tensormap, element_type("fp4").bits
        ('u8', None, 4)
    """
    name = _spelling(name_of_enumerator("dtype", value))
    if name in _OF_TENSORMAP:
        return _OF_TENSORMAP[name]
    if numpy := _NUMPY.fullmatch(name):
        bits = "" if numpy[1] == "b" else str(8 * int(numpy[2]))
        name = _NUMPY_KINDS[numpy[1]] + bits
    short = (
        name.strip().replace("::", ".").rpartition(".")[2].lower().removesuffix("_t").replace("_", "").replace(" ", "")
    )
    short = _OF_DIGITS.get(name, short)
    if short not in _KINDS:
        rule = f"must be one of {', '.join(PLAIN_DTYPES)}, or another library's name for one"
        raise CHECK.malformed("dtype", rule, value)
    return _KINDS[short]


WIDTHS = {1: "i1", 2: "u2", 4: "u4", 8: "u8", 16: "bf16", 32: "f32", 64: "f64", 128: "u128"}
"""The type assumed if only the element width is known."""
_OF_DIGITS = {str(bits): name for bits, name in WIDTHS.items()}


def stated_type(
    dtype: object, *given: object, default: object = "bf16", check: Checker = CHECK, argument: str = "dtype"
) -> ElementType:
    """Return the element type: the one passed, otherwise the one in the texts, otherwise the default.

    Args:
        dtype: As for ``element_type``; None if not passed.
        given: Texts, or results of ``written.read_written``; other values are ignored.
        default: The type if neither ``dtype`` nor a text names one.
        check: The caller's checker, for errors.
        argument: The caller's name for the type.

    Raises: MalformedError: LA375, LA710; the code of ``check`` if two types differ.

    Example:
        >>> text = "Sw<3,4,3> o smem_ptr[8b](unset) o (_64,_128):(_128,_1)"
        >>> stated_type(None, text).name, stated_type("e4m3", text).name, stated_type(None, "(4,8):(8,1)").name
        ('u8', 'e4m3', 'bf16')
    """
    wide_only = int(dtype) if isinstance(dtype, str) and dtype in _OF_DIGITS else 0
    found = None if dtype is None or wide_only else element_type(dtype)
    if found is not None and not found.bits:
        raise check.malformed(argument, f"must name a single element type: {found.note}", dtype)
    says = "" if found is None else found.name
    bits = wide_only if found is None else found.bits
    for each in map(stated, given):
        kind = None if each.dtype is None else _named(each.dtype, found is None)
        wide = each.bits if kind is None else kind.bits
        if wide is None:
            continue
        if not (bits in (0, wide) if kind is None or found is None else _same(kind, found)):
            name = f"of {wide} bits" if kind is None else kind.name
            raise check.malformed(
                argument, f"must be {name}, as in {each.text or 'the layout'}", says or f"{bits} bits"
            )
        if found is None or (dtype is None and kind is not None and found.name == found.tensormap):
            found = kind  # two names for the same bytes: keep the more specific one
        bits = wide
        says = f"{bits} bits" if found is None else found.name
    if found is not None:
        return found
    if bits and bits not in WIDTHS:
        raise check.malformed(argument, "must be given if the text has only a width", f"{bits} bits")
    return element_type(WIDTHS[bits] if bits else default)


def stated_bits(
    bits: int | str | None, *given: object, default: int = 16, check: Checker = CHECK, argument: str = "element_bits"
) -> int:
    """Return the bits of an element: those passed, otherwise those in the texts, otherwise the default.

    Args:
        bits: Bits of an element, or the name of its type; None if not passed.
        given: As for ``stated_type``.
        default: The bits if neither ``bits`` nor a text has them.
        check: The caller's checker, for errors.
        argument: The caller's name for the bits.

    Raises: MalformedError: LA710; the code of ``check`` if two texts, or a text and ``bits``, differ.

    Example:
        >>> stated_bits(None, "smem_ptr[8b](unset) o (4,8):(8,1)"), stated_bits(None, "(4,8):(8,1)")
        (8, 16)
        >>> stated_bits("f32", "(4,8):(8,1)"), stated_bits("8", "smem_ptr[8b](unset) o (4,8):(8,1)")
        (32, 8)
    """
    if isinstance(bits, str):
        return stated_type(bits, *given, check=check, argument=argument).bits
    said = [each for each in map(stated, given) if each.bits is not None or (bits is None and each.dtype is not None)]
    if not said:
        return default if bits is None else check.integer(bits, argument)
    wide = stated_type(None, *said, check=check, argument=argument).bits
    if bits is not None and check.integer(bits, argument) != wide:
        raise check.malformed(argument, f"must be {wide}, as in {said[0].text or 'the layout'}", bits)
    return wide


def _named(name: str, needed: bool) -> ElementType | None:
    """Return the type that a text names; None for an unknown name if it is not needed."""
    try:
        return element_type(name)
    except MalformedError:
        if needed:
            raise
        return None


def _same(one: ElementType, other: ElementType) -> bool:
    """Whether two names can mean the same elements: integers of either sign, f32 and tf32, a type and its carrier."""
    if one.bits != other.bits:
        return False
    names, carriers = {one.name, other.name}, {one.tensormap, other.tensormap}
    whole = all(name[0] in "us" and name[1:].isdigit() for name in names)
    single = all(name.partition("_")[0] in ("f32", "tf32") for name in names)
    return len(names) == 1 or whole or single or (len(carriers) == 1 and carriers <= names)


def dtype_name(value: object) -> str:
    """Return the TensorMap name of an element type.

    Args:
        value: As for ``element_type``. 8- and 16-bit types without a TensorMap name become ``u8`` and ``u16``; a type
            that cannot be copied element by element is refused.

    Example:
        >>> [dtype_name(name) for name in ("bf16", "torch.float16", "BFloat16", "cutlass::half_t", np.int32, "fp8e4nv")]
        ['bf16', 'f16', 'bf16', 'f16', 's32', 'u8']
    """
    found = element_type(value)
    if found.tensormap is None:
        raise CHECK.malformed("dtype", f"must be one of {', '.join(PLAIN_DTYPES)}: {found.note}", value)
    return found.tensormap


def read_dtype(reader: Reader, choices: Sequence[str]) -> str:
    """Return the element type that a document names, one of ``choices``, by any name ``element_type`` knows.

    Example:
        >>> read_dtype(Reader("bfloat16"), PLAIN_DTYPES)
        'bf16'
    """
    name = reader.text()
    try:
        found = element_type(name)
    except MalformedError:
        return reader.text(choices)
    if found.tensormap is None:
        reader.fail(f"must be a type that a TensorMap copies: {found.note}")
    return found.tensormap if found.tensormap in choices else reader.text(choices)


def _spelling(value: object) -> str:
    """Return the name of a type given as text or as an object."""
    if isinstance(value, str):
        return value[:80]
    if isinstance(value, np.dtype) or (
        isinstance(value, type) and issubclass(value, (np.generic, int, float, complex))
    ):
        exact = np.dtype(value)
        return exact.name if exact.isnative else f"{exact.name} in foreign byte order"
    for attribute in ("name", "__name__"):
        name = getattr(value, attribute, None)
        if isinstance(name, str):
            return name[:80]
    return shown(value, 80)
