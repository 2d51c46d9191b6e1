"""The fields of a tiled tensor map, their names and the driver's numbers for them.

Notation: every tuple is innermost first, mode 0 is the contiguous one.

Implementation notes: a ``TensorMap`` may have values that no device accepts, so that the rules can name them; only
wrong types, unknown names and tuples of unequal length are refused on construction.

References: the enumerations of ``cuTensorMapEncodeTiled`` in ``cuda.h`` 12.0 to 13.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np

from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.targets.model import fact
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE

_INT_LIMIT = 1 << 63
_MOST_INTS = 1 << 16


@fact("LA374")
class DType:
    """An element type of the tensor map."""

    name: str  # name used here
    code: int  # the driver's enumerator
    bits: int  # bits of one element in global memory
    is_float: bool  # whether the driver treats it as floating point (NaN fill)
    format_code: int  # number in the encoded map's format field; of packed types as documented
    slot_bytes: int | None = None  # for packed types, shared-memory bytes of 16 elements; None for plain types
    rounds_tf32: bool = False  # whether the encoded map requests rounding to tf32

    @property
    def packed(self) -> bool:
        """Whether elements are 4 or 6 bits wide and travel in groups of 16."""
        return self.slot_bytes is not None


DTYPES: Mapping[str, DType] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            DType("u8", 0, 8, False, 0),
            DType("u16", 1, 16, False, 1),
            DType("u32", 2, 32, False, 2),
            DType("s32", 3, 32, False, 3),
            DType("u64", 4, 64, False, 4),
            DType("s64", 5, 64, False, 5),
            DType("f16", 6, 16, True, 6),
            DType("f32", 7, 32, True, 7),
            DType("f64", 8, 64, True, 9),
            DType("bf16", 9, 16, True, 10),
            DType("f32_ftz", 10, 32, True, 8),
            DType("tf32", 11, 32, True, 7, None, True),
            DType("tf32_ftz", 12, 32, True, 8, None, True),
            DType("u4_align8", 13, 4, False, 11, 8),
            DType("u4_align16", 14, 4, False, 12, 16),
            DType("u6_align16", 15, 6, False, 13, 16),
        )
    }
)
INTERLEAVE_CODES: Mapping[str, int] = MappingProxyType({"NONE": 0, "16B": 1, "32B": 2})
L2_PROMOTION_CODES: Mapping[str, int] = MappingProxyType({"NONE": 0, "64B": 1, "128B": 2, "256B": 3})
OOB_FILL_CODES: Mapping[str, int] = MappingProxyType({"ZERO": 0, "NAN": 1})
CODES: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "dtype": MappingProxyType({name: entry.code for name, entry in DTYPES.items()}),
        "interleave": INTERLEAVE_CODES,
        "swizzle": MappingProxyType({name: entry.map_code for name, entry in SWIZZLE_TABLE.items()}),
        "l2_promotion": L2_PROMOTION_CODES,
        "oob_fill": OOB_FILL_CODES,
    }
)
"""The driver's numbers of every enumeration by field and name."""
_ENUMERATIONS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "dtype": (
        "DATA_TYPE_",
        {
            "u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "s32": "INT32", "u64": "UINT64", "s64": "INT64",
            "f16": "FLOAT16", "f32": "FLOAT32", "f64": "FLOAT64", "bf16": "BFLOAT16", "f32_ftz": "FLOAT32_FTZ",
            "tf32": "TFLOAT32", "tf32_ftz": "TFLOAT32_FTZ", "u4_align8": "16U4_ALIGN8B",
            "u4_align16": "16U4_ALIGN16B", "u6_align16": "16U6_ALIGN16B",
        },
    ),
    "interleave": ("INTERLEAVE_", {name: name for name in INTERLEAVE_CODES}),
    "swizzle": ("SWIZZLE_", {name: name for name in SWIZZLE_TABLE}),
    "l2_promotion": (
        "L2_PROMOTION_", {name: name if name == "NONE" else f"L2_{name}" for name in L2_PROMOTION_CODES}
    ),
    "oob_fill": ("FLOAT_OOB_FILL_", {"ZERO": "NONE", "NAN": "NAN_REQUEST_ZERO_FMA"}),
}  # fmt: skip
ENUMERATORS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        field: MappingProxyType({name: f"CU_TENSOR_MAP_{prefix}{tail}" for name, tail in tails.items()})
        for field, (prefix, tails) in _ENUMERATIONS.items()
    }
)
"""The enumerators of ``cuda.h`` by field and name."""
_ENUMERATED = {text: (field, name) for field, names in ENUMERATORS.items() for name, text in names.items()}
INTERLEAVES: tuple[str, ...] = tuple(INTERLEAVE_CODES)
SWIZZLES: tuple[str, ...] = tuple(SWIZZLE_TABLE)
L2_PROMOTIONS: tuple[str, ...] = tuple(L2_PROMOTION_CODES)
OOB_FILLS: tuple[str, ...] = tuple(OOB_FILL_CODES)
PLAIN_DTYPES: tuple[str, ...] = tuple(name for name, entry in DTYPES.items() if not entry.packed)
FLOAT_DTYPES: tuple[str, ...] = tuple(name for name, entry in DTYPES.items() if entry.is_float)
CONVERTING_DTYPES: tuple[str, ...] = ("f32_ftz", "tf32", "tf32_ftz")
BIT_PRESERVING_DTYPES: tuple[str, ...] = tuple(name for name in PLAIN_DTYPES if name not in CONVERTING_DTYPES)
"""Types whose elements arrive bit for bit; the other three are the tf32 and flush-to-zero types."""


def malformed(code: str, what: str, because: str = "", where: tuple[str, ...] = ()) -> MalformedError:
    """Return the error for malformed input."""
    return MalformedError(Diagnostic(code, what, where, because))


def checked_int(name: str, value: object, code: str = "LA300") -> int:
    """Return an integer argument as ``int``; booleans, floats and integers outside 64 signed bits are refused."""
    if type(value) is int:
        answer = value
    elif isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        answer = int(value)
    else:
        raise malformed(code, f"{name} is not an integer", f"{name} = {shown(value)} is a {type(value).__name__}")
    if not -_INT_LIMIT <= answer < _INT_LIMIT:
        raise malformed(
            code, f"{name} does not fit a signed 64-bit integer", f"{name} = {shown(answer)}, allowed -2^63..2^63-1"
        )
    return answer


def checked_ints(name: str, values: object, code: str = "LA300") -> tuple[int, ...]:
    """Return a sequence of integers as a tuple of ``int``."""
    exact: Any = values
    whole = type(exact) is tuple and set(map(type, exact)) == {int}
    if whole and -_INT_LIMIT <= min(exact) <= max(exact) < _INT_LIMIT:
        return tuple(exact)
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, np.ndarray)):
        raise malformed(code, f"{name} is not a sequence of integers", f"{name} = {shown(values)}")
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise malformed(code, f"{name} is not one-dimensional", f"{name} has shape {values.shape}")
    entries = tuple(itertools.islice(values, _MOST_INTS + 1))
    if len(entries) > _MOST_INTS:
        raise malformed(code, f"{name} has too many entries", f"{name} = {shown(values)}, allowed {_MOST_INTS}")
    return tuple([checked_int(f"{name}[{index}]", value, code) for index, value in enumerate(entries)])


def name_of_enumerator(field: str, value: object) -> object:
    """Return the name that an enumerator of ``cuda.h`` has here; any other value unchanged.

    Args:
        field: A field of ``ENUMERATORS``.
        value: Text such as ``CU_TENSOR_MAP_SWIZZLE_128B``, also qualified; a member of an ``Enum`` of such a name.

    Example:
        >>> name_of_enumerator("swizzle", "CU_TENSOR_MAP_SWIZZLE_128B"), name_of_enumerator("oob_fill", "ZERO")
        ('128B', 'ZERO')
    """
    text = value.name if isinstance(value, Enum) else value
    if not isinstance(text, str):
        return value
    found = _ENUMERATED.get(text.strip().replace("::", ".").rpartition(".")[2])
    return found[1] if found and found[0] == field else value


def checked_name(name: str, value: object, allowed: Mapping[str, object], code: str = "LA301") -> str:
    """Return a name that must be in a table, or the one that an enumerator of ``cuda.h`` stands for."""
    value = name_of_enumerator(name, value)
    if not isinstance(value, str) or value not in allowed:
        rule = f"{name} must be one of " + ", ".join(allowed)
        if isinstance(value, str) and value in _ENUMERATED:
            rule += f"; {value} is a value of {_ENUMERATED[value][0]}"
        raise malformed(code, f"{name} {shown(value)} is not known", rule)
    return str(value)


def normalise(
    value: Any,
    names: Mapping[str, Mapping[str, object]],
    numbers: Sequence[str],
    modes: Mapping[str, int],
    codes: tuple[str, str] = ("LA300", "LA301"),
) -> None:
    """Check and convert the fields of a map under construction; element strides are 1 if none is given.

    Args:
        value: A frozen dataclass with ``dims``.
        names: Known names by field.
        numbers: Fields that are integers.
        modes: Fields that are sequences, and how many entries they have less than ``dims``.
        codes: Codes of the errors for wrong numbers and unknown names.
    """
    put = object.__setattr__
    for name, known in names.items():
        put(value, name, checked_name(name, getattr(value, name), known, codes[1]))
    for name in numbers:
        put(value, name, checked_int(name, getattr(value, name), codes[0]))
    put(value, "dims", checked_ints("dims", value.dims, codes[0]))
    rank = len(value.dims)
    for name, fewer in modes.items():
        found, wanted = checked_ints(name, getattr(value, name), codes[0]), max(rank - fewer, 0)
        found = found or (1,) * (rank if name == "element_strides" else 0)
        if len(found) != wanted:
            because = f"dims has {rank} entries, so {name} needs {wanted}, not {len(found)}"
            raise malformed(codes[0], f"{name} has the wrong length", because)
        put(value, name, found)


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tiled view of a global tensor that the copy engine walks box by box.

    Mathematically: element x of the tensor (0 <= x[i] < dims[i]) is at byte
    ``base_address + x[0] * element bytes + sum over i >= 1 of x[i] * strides_bytes[i - 1]``; a box at start s has
    the elements ``s[0] + j[0]`` and ``s[i] + j[i] * element_strides[i]``, with 0 <= j[0] < box[0] and
    0 <= j[i] < ceil(box[i] / element_strides[i]).

    Args:
        dtype: Element type, a name of ``DTYPES``; like the other names also an enumerator of ``ENUMERATORS``.
        dims: Extents of the tensor, elements, innermost first. Any rank is representable.
        strides_bytes: Distance in bytes between neighbours along modes 1, 2, ...; one fewer than ``dims``.
        box: Extents of the box, elements of the tensor (before element strides).
        element_strides: Step along each mode, elements; empty means all 1.
        interleave: ``"NONE"``, ``"16B"`` or ``"32B"``.
        swizzle: Shared-memory pattern, a name of ``SWIZZLES``.
        l2_promotion: L2 fetch size; the default is the driver's zero, ``"NONE"``. It never changes the data.
        oob_fill: What elements outside the tensor are loaded as, ``"ZERO"`` or ``"NAN"``.
        base_address: Byte address of element 0.

    Example:
        >>> TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B").element_strides
        (1, 1)
    """

    dtype: str
    dims: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...] = ()
    interleave: str = "NONE"
    swizzle: str = "NONE"
    l2_promotion: str = "NONE"
    oob_fill: str = "ZERO"
    base_address: int = 0

    def __post_init__(self) -> None:
        normalise(self, CODES, ("base_address",), {"strides_bytes": 1, "box": 0, "element_strides": 0})

    @property
    def rank(self) -> int:
        """Number of modes."""
        return len(self.dims)
